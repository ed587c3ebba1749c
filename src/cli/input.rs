//! Texts and documents that a command is given: as an argument, a file or standard input.

use std::io::Read;
use std::path::Path;

use memctl_files::named;
use memctl_files::text::decoded;
use serde_json::value::{RawValue, to_raw_value};

use crate::cli::context::Context;
use crate::model::error::UserError;
use crate::store::workspace::Error;

/// Maximum size of a text from standard input or a file: 16 MiB.
const MAX_GIVEN: u64 = 16 << 20;

impl Context {
    /// Returns the given text, or standard input for `-`.
    pub(crate) fn text(&self, given: &str) -> Result<String, UserError> {
        if given == "-" {
            self.read(Path::new("-"))
        } else {
            Ok(given.to_owned())
        }
    }

    /// Fails if two options read standard input, which can be read only once.
    pub(crate) fn one_from_input(given: [(&str, Option<&str>); 2]) -> Result<(), UserError> {
        let [(a, _), (b, _)] = given;
        if given.iter().any(|(_, given)| *given != Some("-")) {
            return Ok(());
        }
        Err(UserError::usage(
            format!("only one of `{a}` and `{b}` can read standard input"),
            "pass the other as an argument",
        ))
    }

    /// Reads JSON given as text, as `@FILE`, or as `-` for standard input.
    pub(crate) fn json_of(
        &self,
        flag: &str,
        given: Option<&str>,
    ) -> Result<Option<Box<RawValue>>, UserError> {
        let Some(given) = given else {
            return Ok(None);
        };
        let file = given.strip_prefix('@').or((given == "-").then_some(given));
        if let Some(file) = file {
            return self.json(Path::new(file)).map(Some);
        }
        let json = serde_json::from_str(given.trim()).map_err(|error| {
            UserError::input(
                format!("`{flag}` is not JSON: {error}"),
                format!("put it in single quotes: {flag} '{{\"name\": \"…\"}}'"),
            )
        });
        json.map(Some)
    }

    /// Reads a JSON document from a file, or from standard input for `-`.
    pub(crate) fn json(&self, path: &Path) -> Result<Box<RawValue>, UserError> {
        parsed(path, self.read(path)?.trim())
    }

    /// Reads the input of a skill, if a file is given. Text that does not begin like a JSON document becomes
    /// `{"input": "…"}`, except in a file whose name says that it is JSON.
    pub(crate) fn input(&self, path: Option<&Path>) -> Result<Option<Box<RawValue>>, UserError> {
        let Some(path) = path else {
            return Ok(None);
        };
        let text = self.read(path)?;
        let text = text.trim();
        let is_json = path
            .extension()
            .is_some_and(|extension| extension == "json");
        match parsed(path, text) {
            Err(_) if !is_json && !text.is_empty() && !text.starts_with(['{', '[', '"']) => {
                Ok(Some(to_raw_value(&serde_json::json!({ "input": text }))?))
            }
            read => read.map(Some),
        }
    }

    /// Reads the text of a file, or of standard input for `-`.
    pub(crate) fn read(&self, path: &Path) -> Result<String, UserError> {
        let unreadable = |source| {
            let path = path.to_owned();
            let error = UserError::from(Error::Unreadable { path, source });
            error.with_hint("name a file that can be read, or `-` for standard input")
        };
        let mut bytes = Vec::new();
        let mut input: Box<dyn Read> = if path == Path::new("-") {
            Box::new(std::io::stdin().lock())
        } else {
            Box::new(named::open(&self.environment.absolute(path)).map_err(unreadable)?)
        };
        let read = input.by_ref().take(MAX_GIVEN + 1).read_to_end(&mut bytes);
        read.map_err(unreadable)?;
        if bytes.len() as u64 > MAX_GIVEN {
            return Err(unreadable(invalid("larger than 16 MiB")));
        }
        decoded(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            unreadable(invalid(&format!("not valid UTF-8 at byte {at}")))
        })
    }
}

fn parsed(path: &Path, text: &str) -> Result<Box<RawValue>, UserError> {
    if text.is_empty() {
        let message = format!("`{}` is empty", path.display());
        return Err(UserError::input(
            message,
            "give JSON, such as {\"text\": \"…\"}, or a text",
        ));
    }
    serde_json::from_str(text).map_err(|error| Error::not_json(path, &error).into())
}

/// Error about the content of a file that the user named.
fn invalid(reason: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, reason)
}
