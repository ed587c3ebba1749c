//! Redaction of every JSON text that the store writes or hands out.
//!
//! The store calls the redactor itself, so no caller can write without it.

use std::borrow::Cow;

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
