//! Redaction of texts and JSON documents.
//!
//! A secret becomes `[REDACTED:kind]`, a private passage `[PRIVATE]`. Neither marker is matched
//! again, so redaction is idempotent. Text without secrets is returned unchanged.

use std::borrow::Cow;

use super::scan::{Finding, PRIVATE, findings};

/// Redacted text and the kinds of secrets in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// Redacted text; borrowed if nothing was found.
    pub text: Cow<'a, str>,
    /// Kinds of the secrets, unique, in alphabetical order.
    pub found: Vec<&'static str>,
}

/// Maximum number of passes: a replacement can expose a neighbouring secret.
const ROUNDS: usize = 8;

/// Redacts a text.
pub fn redact(text: &str) -> Redacted<'_> {
    let mut redacted = Redacted {
        text: Cow::Borrowed(text),
        found: Vec::new(),
    };
    for _ in 0..ROUNDS {
        let found = findings(&redacted.text);
        if found.is_empty() {
            break;
        }
        redacted.found.extend(found.iter().map(|f| f.kind));
        redacted.text = Cow::Owned(replace(&redacted.text, &found));
    }
    redacted.found.sort_unstable();
    redacted.found.dedup();
    redacted
}

fn replace(text: &str, found: &[Finding]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for finding in found {
        out.push_str(&text[from..finding.at.start]);
        push_marker(&mut out, finding.kind);
        from = finding.at.end;
    }
    out.push_str(&text[from..]);
    out
}

fn push_marker(out: &mut String, kind: &str) {
    if kind == PRIVATE {
        out.push_str("[PRIVATE]");
    } else {
        out.extend(["[REDACTED:", kind, "]"]);
    }
}

/// Returns true if a text consists only of redaction markers and punctuation.
pub fn says_nothing(text: &str) -> bool {
    let mut rest = text.replace("[PRIVATE]", "");
    while let Some(at) = rest.find("[REDACTED:") {
        let end = rest[at..].find(']').map_or(rest.len(), |end| at + end + 1);
        rest.replace_range(at..end, "");
    }
    !rest.chars().any(char::is_alphanumeric)
}

/// Marker for a kind of secret.
pub(super) fn marker(kind: &str) -> String {
    let mut out = String::new();
    push_marker(&mut out, kind);
    out
}

#[cfg(test)]
mod tests;
