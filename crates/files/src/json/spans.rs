//! Ends of values: skips white space, strings, keys and whole values.
//!
//! Fields of an object: decoded keys with the spans of their values.

use std::borrow::Cow;
use std::ops::Range;

/// Reason why the end of a value was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The text ends inside the value.
    Incomplete,
    /// Invalid text at this position.
    Malformed {
        /// Byte position in the text.
        at: usize,
        /// Description of the expected text.
        expected: &'static str,
    },
}

/// Returns the position of the first byte at or after `at` that is not white space.
pub fn skip_space(text: &[u8], at: usize) -> usize {
    text[at..]
        .iter()
        .position(|b| !matches!(b, b' ' | b'\n' | b'\r' | b'\t'))
        .map_or(text.len(), |n| at + n)
}

/// Returns the position after the value that starts at `at`, which must not be white space.
pub fn skip_value(text: &[u8], mut at: usize) -> Result<usize, Stop> {
    // The expected closing brackets, innermost last.
    let mut open: Vec<u8> = Vec::new();
    loop {
        // Start of a value.
        match text.get(at) {
            None => return Err(Stop::Incomplete),
            Some(b @ (b'{' | b'[')) => {
                let close = if *b == b'{' { b'}' } else { b']' };
                at = skip_space(text, at + 1);
                if text.get(at) == Some(&close) {
                    at += 1;
                } else {
                    open.push(close);
                    if close == b'}' {
                        at = skip_key(text, at)?;
                    }
                    continue;
                }
            }
            Some(b'"') => at = skip_string(text, at)?,
            Some(_) => at = skip_word(text, at)?,
        }
        // End of a value, and of all containers that close right after it.
        loop {
            let Some(&close) = open.last() else {
                return Ok(at);
            };
            at = skip_space(text, at);
            match text.get(at) {
                None => return Err(Stop::Incomplete),
                Some(b',') => {
                    at = skip_space(text, at + 1);
                    if close == b'}' {
                        at = skip_key(text, at)?;
                    }
                    break;
                }
                Some(&b) if b == close => {
                    at += 1;
                    open.pop();
                }
                Some(_) => {
                    let expected = if close == b'}' {
                        "`,` or `}`"
                    } else {
                        "`,` or `]`"
                    };
                    return Err(Stop::Malformed { at, expected });
                }
            }
        }
    }
}

/// Skips `"key" :` and the following white space.
fn skip_key(text: &[u8], at: usize) -> Result<usize, Stop> {
    match text.get(at) {
        None => return Err(Stop::Incomplete),
        Some(b'"') => {}
        Some(_) => {
            return Err(Stop::Malformed {
                at,
                expected: "a key in quotes",
            });
        }
    }
    let at = skip_space(text, skip_string(text, at)?);
    match text.get(at) {
        None => Err(Stop::Incomplete),
        Some(b':') => {
            let at = skip_space(text, at + 1);
            if at == text.len() {
                Err(Stop::Incomplete)
            } else {
                Ok(at)
            }
        }
        Some(_) => Err(Stop::Malformed {
            at,
            expected: "`:`",
        }),
    }
}

/// Returns the position after the string whose opening quote is at `at`.
pub(crate) fn skip_string(text: &[u8], at: usize) -> Result<usize, Stop> {
    let mut at = at + 1;
    loop {
        let Some(found) = memchr::memchr3(b'"', b'\\', b'\n', &text[at..]) else {
            return Err(Stop::Incomplete);
        };
        at += found;
        match text[at] {
            b'"' => return Ok(at + 1),
            // A line break is invalid in a string: a quote is missing before it. Stopping here
            // instead of at the next quote limits the damage to one entry.
            b'\n' => {
                return Err(Stop::Malformed {
                    at,
                    expected: "a closing quote",
                });
            }
            _ => at += 2,
        }
        if at > text.len() {
            return Err(Stop::Incomplete);
        }
    }
}

/// Skips a number, or `true`, `false`, `null`, `NaN`, `Infinity`, `-Infinity`.
fn skip_word(text: &[u8], at: usize) -> Result<usize, Stop> {
    let length = text[at..]
        .iter()
        .position(|b| !matches!(b, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.'));
    let Some(length) = length else {
        // The word may continue after the end of the text read so far.
        return Err(Stop::Incomplete);
    };
    let word = &text[at..at + length];
    let is_number = word
        .iter()
        .all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
        && word.iter().any(u8::is_ascii_digit);
    let is_name = matches!(
        word,
        b"true" | b"false" | b"null" | b"NaN" | b"Infinity" | b"-Infinity"
    );
    if is_number || is_name {
        Ok(at + length)
    } else {
        Err(Stop::Malformed {
            at,
            expected: "a value",
        })
    }
}

/// Returns the fields of an object: each decoded key with the span of its value. Ends early if the
/// object is not complete.
pub fn fields(object: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Range<usize>)> {
    let start = skip_space(object, 0);
    let mut at = if object.get(start) == Some(&b'{') {
        Some(skip_space(object, start + 1))
    } else {
        None
    };
    std::iter::from_fn(move || {
        let key_start = at.take()?;
        let value_start = skip_key(object, key_start).ok()?;
        let key_end = skip_string(object, key_start).ok()?;
        let value_end = skip_value(object, value_start).ok()?;
        let next = skip_space(object, value_end);
        if object.get(next) == Some(&b',') {
            at = Some(skip_space(object, next + 1));
        }
        Some((decode(&object[key_start..key_end]), value_start..value_end))
    })
}

/// Returns the JSON text of the field `name` of an object.
pub fn field<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    // The last field of a name wins, as in common JSON parsers.
    let (_, span) = fields(object).filter(|(key, _)| key == name).last()?;
    Some(&object[span])
}

/// Returns the text of the string field `name` of an object.
pub fn string_field<'a>(object: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    let value = field(object, name)?;
    (value.first() == Some(&b'"')).then(|| decode(value))
}

/// Decodes a quoted string. Invalid escapes (lone surrogates) become `U+FFFD`.
pub(super) fn decode(quoted: &[u8]) -> Cow<'_, str> {
    let inner = &quoted[1..quoted.len() - 1];
    if !inner.contains(&b'\\') {
        return String::from_utf8_lossy(inner);
    }
    let lossy = String::from_utf8_lossy(quoted);
    if let Ok(text) = serde_json::from_str::<String>(&lossy) {
        return Cow::Owned(text);
    }
    Cow::Owned(String::from_utf8_lossy(inner).into_owned())
}

/// Returns the spans of the items of the array that starts here, up to the first damage.
pub fn item_spans(text: &[u8], start: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = skip_space(text, start + 1);
    while let Ok(end) = skip_value(text, at) {
        found.push(at..end);
        let next = skip_space(text, end);
        if text.get(next) != Some(&b',') {
            break;
        }
        at = skip_space(text, next + 1);
    }
    found
}

/// Returns the texts of the items of an array.
pub fn items(array: &str) -> Vec<&str> {
    let spans = item_spans(array.as_bytes(), 0).into_iter();
    spans.map(|span| &array[span]).collect()
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod tests_of_object_fields {
    use super::*;

    #[test]
    fn fields_are_found_by_their_decoded_key() {
        let object = br#" { "a": 1, "b\u00e9": {"a": 2}, "s": "x\ny", "s": "last" }"#;
        let keys: Vec<_> = fields(object).map(|(key, _)| key.into_owned()).collect();
        assert_eq!(keys, ["a", "bé", "s", "s"]);
        assert_eq!(string_field(object, "s").as_deref(), Some("last"));
        assert_eq!(string_field(object, "a"), None);
        assert_eq!(string_field(b"[1]", "a"), None);
        assert_eq!(fields(b"{}").count(), 0);
        assert_eq!(fields(b"{\"a\": 1, ").count(), 1);
    }
}
