//! Removal of secrets from JSON text before storage; the caller supplies the redactor.

use std::borrow::Cow;

/// JSON text after redaction.
#[derive(Debug, Clone)]
pub struct Redacted<'a> {
    /// The text; borrowed if nothing was redacted.
    pub text: Cow<'a, str>,
    /// Kinds of the redacted secrets.
    pub found: Vec<&'static str>,
}

/// Redacts a JSON text before storage: a whole record, or the value of a field.
pub type Redaction = fn(&str) -> Redacted<'_>;

/// Redacts a JSON text; unchanged without a redactor.
pub(crate) fn redact(redaction: Option<Redaction>, json: &str) -> Cow<'_, str> {
    match redaction {
        Some(redact) => redact(json).text,
        None => json.into(),
    }
}
