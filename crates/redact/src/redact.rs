//! Redaction of texts, and the only functions that cut a redacted text.
//!
//! A secret becomes `[REDACTED:kind]`, a private passage `[PRIVATE]`. Neither marker is matched
//! again, so redaction is idempotent. Text without secrets is returned unchanged.
//!
//! A secret that is cut before redaction loses the parts that identify it: its end, its prefix, its
//! name. Cutting for a file, a prompt or a terminal therefore requires a [`Clean`], and only redaction
//! creates one.

use std::borrow::Cow;

use super::json::redact_json;
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

/// Longest redaction marker, in bytes.
const MARKER: usize = 60;

/// Text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clean<'a>(Cow<'a, str>);

impl<'a> Clean<'a> {
    /// Redacts a text.
    pub fn of(text: &'a str) -> Self {
        Self(redact(text).text)
    }

    /// Redacts an owned text, without a copy if it contains no secret.
    pub fn of_owned(text: String) -> Clean<'static> {
        match redact(&text).text {
            Cow::Borrowed(_) => Clean(Cow::Owned(text)),
            Cow::Owned(clean) => Clean(Cow::Owned(clean)),
        }
    }

    /// Redacts a JSON document.
    pub fn of_json(json: &'a str) -> Self {
        Self(redact_json(json).text)
    }

    /// Redacted text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Redacted text as an owned string.
    pub fn into_string(self) -> String {
        self.0.into_owned()
    }

    /// First `most` bytes at most; never splits a character or a marker.
    pub fn head(&self, most: usize) -> &str {
        let mut end = most.min(self.0.len());
        while !self.0.is_char_boundary(end) {
            end -= 1;
        }
        if end < self.0.len() {
            end = self.marker_over(end).map_or(end, |(start, _)| start);
        }
        &self.0[..end]
    }

    /// Last `most` bytes at most; never splits a character or a marker.
    pub fn tail(&self, most: usize) -> &str {
        let mut start = self.0.len().saturating_sub(most);
        while !self.0.is_char_boundary(start) {
            start += 1;
        }
        start = self.marker_over(start).map_or(start, |(_, end)| end);
        &self.0[start..]
    }

    /// First and last bytes with `…` between them, or the whole text if it fits.
    pub fn ends(&self, head: usize, tail: usize) -> String {
        if self.0.len() <= head + tail {
            return self.0.clone().into_owned();
        }
        format!("{}\n…\n{}", self.head(head), self.tail(tail))
    }

    /// First `most` bytes at most, followed by ` …` if the text is longer.
    pub fn cut(&self, most: usize) -> String {
        if self.0.len() <= most {
            return self.0.clone().into_owned();
        }
        format!("{} …", self.head(most).trim_end())
    }

    /// Range of the marker around a position.
    fn marker_over(&self, at: usize) -> Option<(usize, usize)> {
        let bytes = self.0.as_bytes();
        let from = at.saturating_sub(MARKER);
        let start = from + memchr::memrchr(b'[', &bytes[from..at])?;
        let rest = &self.0[start..];
        if !rest.starts_with("[REDACTED:") && !rest.starts_with("[PRIVATE]") {
            return None;
        }
        let end = start + rest.find(']')? + 1;
        (at < end).then_some((start, end))
    }
}

#[cfg(test)]
#[path = "tests/redact.rs"]
mod tests;
