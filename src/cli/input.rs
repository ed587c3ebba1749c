//! Texts and documents that the user gives to a command: on the command line, in a file, or on standard input.

use std::io::Read as _;
use std::path::Path;

use serde_json::value::RawValue;

use super::context::Context;
use crate::model::error::UserError;
use crate::store::workspace::Error;
use memctl_files::{decoded, named};

/// Maximum size of a text from standard input or a file: 16 MiB.
const MAX_GIVEN: u64 = 16 << 20;

impl Context {
    /// Returns the given text, or standard input for `-`.
    pub(super) fn text(&self, given: &str) -> Result<String, UserError> {
        if given == "-" {
            self.read(Path::new("-"))
        } else {
            Ok(given.to_owned())
        }
    }

    /// Reads a JSON document from a file, or from standard input for `-`.
    pub(super) fn json(&self, path: &Path) -> Result<Box<RawValue>, UserError> {
        let text = self.read(path)?;
        serde_json::from_str(text.trim()).map_err(|source| {
            let path = path.to_owned();
            Error::NotJson { path, source }.into()
        })
    }

    /// Reads the text of a file, or of standard input for `-`.
    pub(super) fn read(&self, path: &Path) -> Result<String, UserError> {
        let unreadable = |source| Error::Unreadable {
            path: path.to_owned(),
            source,
        };
        let mut bytes = Vec::new();
        let limit = MAX_GIVEN + 1;
        if path == Path::new("-") {
            std::io::stdin()
                .lock()
                .take(limit)
                .read_to_end(&mut bytes)
                .map_err(unreadable)?;
        } else {
            let file = named::open(&self.environment.absolute(path)).map_err(unreadable)?;
            file.take(limit)
                .read_to_end(&mut bytes)
                .map_err(unreadable)?;
        }
        if bytes.len() as u64 > MAX_GIVEN {
            return Err(unreadable(invalid("larger than 16 MiB")).into());
        }
        decoded::text(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            unreadable(invalid(&format!("not valid UTF-8 at byte {at}"))).into()
        })
    }
}

/// Error about the content of a file that the user named.
fn invalid(reason: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, reason)
}
