//! Entry of a data file, as text.

use std::borrow::Cow;

use memctl_files::json;

use crate::model::{Kind, Record};
use crate::store::DataFile;

/// One entry, as the text in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Kind of the record.
    pub kind: Kind,
    /// Id; empty if the entry has none.
    pub id: String,
    /// JSON text.
    pub text: Vec<u8>,
    /// `true` if it is in the local file of its kind.
    pub is_local: bool,
    /// Byte offset in the file.
    pub offset: u64,
}

impl Entry {
    /// Returns the file that it is in.
    pub(crate) fn file(&self) -> DataFile {
        DataFile {
            kind: self.kind,
            is_local: self.is_local,
        }
    }

    /// Returns the id of the user, if the entry names one.
    pub fn user_id(&self) -> Option<Cow<'_, str>> {
        json::string_field(&self.text, "user_id").filter(|_| self.kind.has_user())
    }

    /// Parses the entry as a record of its kind.
    pub fn parse<R: Record>(&self) -> Result<R, serde_json::Error> {
        serde_json::from_slice(&self.text)
    }
}
