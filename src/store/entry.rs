//! Entry of a data file, as text.
//!
//! Redaction of every JSON text that the store writes or hands out.
//!
//! The store calls the redactor itself, so no caller can write without it.

use std::borrow::Cow;

use memctl_files::json;

use crate::model::{Kind, Record};

/// One entry, as the text in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Kind of the record.
    pub kind: Kind,
    /// Id; empty if the entry has none.
    pub id: String,
    /// JSON text.
    pub text: Vec<u8>,
    /// Byte offset in the file.
    pub offset: u64,
}

impl Entry {
    /// Returns the id of the user, if the entry names one.
    pub fn user_id(&self) -> Option<Cow<'_, str>> {
        json::string_field(&self.text, "user_id").filter(|_| self.kind.has_user())
    }

    /// Parses the entry as a record of its kind.
    pub fn parse<R: Record>(&self) -> Result<R, serde_json::Error> {
        serde_json::from_slice(&self.text)
    }
}

/// JSON text after redaction.
#[derive(Debug, Clone)]
pub struct Redacted<'a> {
    /// The text; borrowed if nothing was redacted.
    pub text: Cow<'a, str>,
    /// Kinds of the redacted secrets.
    pub found: Vec<&'static str>,
}

/// Redacts a JSON text: a whole record, or the value of a field.
pub fn redact(json: &str) -> Redacted<'_> {
    let memctl_redact::Redacted { text, found } = memctl_redact::redact_json(json);
    Redacted { text, found }
}
