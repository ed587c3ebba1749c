//! JSON of session files, which may be cut off or have half a character.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// Parses a value.
///
/// # Errors
///
/// The reason, as text.
pub(super) fn parse(json: &str) -> Result<Value, String> {
    let read = serde_json::from_str(json).or_else(|error| match whole_characters(json) {
        Some(json) => serde_json::from_str(&json),
        None => Err(error),
    });
    read.map_err(|error| broken(&error))
}

/// Error text of the parser without its line number.
pub(super) fn broken(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.find(" at line ").unwrap_or(text.len());
    format!("{} at column {}", &text[..end], error.column())
}

/// Replaces each half of a surrogate pair, which hosts in JavaScript leave where they cut a text; `None` if
/// there is none.
fn whole_characters(json: &str) -> Option<String> {
    let unit = |at: usize| {
        let digits = json.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut whole = String::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(found) = json[at..].find('\\') {
        at += found;
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                whole.push_str(&json[from..at]);
                whole.push_str("\\ufffd");
                at += 6;
                from = at;
            }
            // The escape, and the character behind it, which may be a backslash.
            _ => at = json.ceil_char_boundary(at + 2),
        }
    }
    (from > 0).then(|| whole + &json[from..])
}

/// Returns the value at the beginning of a text, and what follows it.
pub(super) fn first<'a, T: Deserialize<'a>>(json: &'a str) -> Option<(T, &'a str)> {
    let mut values = serde_json::Deserializer::from_str(json).into_iter();
    let value = values.next()?.ok()?;
    Some((value, &json[values.byte_offset()..]))
}

/// Members of an object that may be cut off: each name, with the text from its value on.
pub(super) struct Members<'a>(&'a str);

impl<'a> Members<'a> {
    pub(super) fn of(object: &'a str) -> Self {
        Self(object)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (String, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let inside = self.0.trim_start().strip_prefix(['{', ','])?;
        let (name, rest) = first::<&RawValue>(inside)?;
        let value = rest.trim_start().strip_prefix(':')?.trim_start();
        self.0 = first::<IgnoredAny>(value).map_or("", |(_, rest)| rest);
        let name = parse(name.get()).ok()?;
        Some((name.as_str()?.to_owned(), value))
    }
}

/// Elements of a list that may be cut off. Each ends where the text behind it begins.
pub(super) struct List<'a>(&'a str);

impl<'a> List<'a> {
    /// `None` if the value is no list.
    pub(super) fn of(value: &'a str) -> Option<Self> {
        value.starts_with('[').then_some(Self(value))
    }
}

impl<'a> Iterator for List<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let inside = self.0.trim_start().strip_prefix(['[', ','])?;
        let (element, rest) = first::<&RawValue>(inside)?;
        self.0 = rest;
        Some((element.get(), rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_no_error() {
        let check = |json: &str, expected: &str| assert_eq!(parse(json).unwrap(), expected);
        check(r#""a\ud83d""#, "a\u{fffd}");
        check(r#""a\udE00b\ud83d\ude00""#, "a\u{fffd}b😀");
        check(r#""\\ud83d\ud83d\n""#, "\\ud83d\u{fffd}\n");
        assert!(parse(r#""\ud83"#).is_err());
    }

    #[test]
    fn a_document_may_be_cut_off() {
        let members = Members::of(r#"{"a": {"b": 1}, "c": [1, 2"#);
        let names: Vec<String> = members.map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "c"]);
        let list = List::of(r#"[{"a": 1}, 7, {"b"#).unwrap();
        let elements: Vec<&str> = list.map(|(element, _)| element).collect();
        assert_eq!(elements, [r#"{"a": 1}"#, "7"]);
        assert!(List::of("7").is_none());
        assert_eq!(List::of("[]").unwrap().count(), 0);
    }
}
