//! Redacted texts, and the only functions that cut text for a file, a prompt or a terminal.
//!
//! A secret that is cut before redaction loses the parts that identify it: its end, its prefix, its
//! name. Cutting therefore requires a [`Clean`], and only redaction creates one.

use std::borrow::Cow;

use super::json::redact_json;
use super::redact::redact;

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
mod tests {
    use proptest::prelude::*;

    use super::super::samples;
    use super::*;

    #[test]
    fn markers_and_characters_stay_whole() {
        let text = Clean::of("a [REDACTED:password] é [PRIVATE] b");
        for at in 0..=text.as_str().len() {
            for part in [text.head(at), text.tail(at)] {
                assert_eq!(
                    part.matches(['[', ':']).count(),
                    part.matches("[REDACTED:password]").count() * 2
                        + part.matches("[PRIVATE]").count(),
                    "{part}"
                );
            }
        }
        assert_eq!(text.head(8), "a ");
        assert_eq!(text.tail(4), " b");
        assert_eq!(text.ends(3, 2), "a \n…\n b");
        assert_eq!(text.cut(1000), text.as_str());
    }

    proptest! {
        #[test]
        fn no_cut_of_a_clean_text_shows_what_the_whole_hides(
            before in "[ -~\n]{0,40}",
            kind in 0..samples::keys().len(),
            after in "[ -~\n]{0,40}",
            head in 0_usize..200,
            tail in 0_usize..200,
        ) {
            let (_, key) = samples::keys().swap_remove(kind);
            let text = format!("{before} {key} {after}");
            let clean = Clean::of(&text);
            for part in [clean.head(head), clean.tail(tail), &clean.ends(head, tail), &clean.cut(head)] {
                for piece in key.as_bytes().windows(12) {
                    let piece = std::str::from_utf8(piece).unwrap();
                    prop_assert!(!part.contains(piece) || before.contains(piece) || after.contains(piece));
                }
                let again = redact(part);
                prop_assert!(again.found.is_empty() || !clean.as_str().contains(part), "{again:?}");
            }
        }
    }
}
