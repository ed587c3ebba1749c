//! Text helpers for session files: fields of JSON, injected text, and length limits; and JSON that may be
//! cut off or have half a character.

use std::borrow::Cow;

use memctl_redact::{Clean, redact_value};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum length of an output in bytes.
pub(super) const MAX_OUTPUT: usize = 6_000;
/// Maximum length of a text in call arguments, in bytes.
pub(super) const MAX_INPUT: usize = 8_000;
/// Maximum length of a remark in bytes.
pub(super) const MAX_REMARK: usize = 4_000;

/// Parsed JSON, or the text itself if it is not valid JSON.
pub(super) fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned()))
}

/// Text of a value; empty for any other value.
pub(super) fn of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Text of a value; `None` for any other value.
pub(super) fn owned(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Exit code in a value.
pub(super) fn code(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|code| i32::try_from(code).ok())
}

/// Removes the middle of a text longer than `max` bytes, since tools report their action first and
/// the result last. The whole text is redacted before, so that no part of a secret remains.
pub(super) fn cut(text: &Clean<'_>, max: usize) -> String {
    text.ends(max / 2, max / 2)
}

/// Redacts a value and shortens every long text in it.
pub(super) fn cut_values(value: &mut Value) {
    redact_value(value);
    cut_clean(value);
}

/// Shortens texts that are redacted already.
fn cut_clean(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MAX_INPUT => *text = cut(&Clean::of(text), MAX_INPUT),
        Value::Array(values) => values.iter_mut().for_each(cut_clean),
        Value::Object(fields) => fields.values_mut().for_each(cut_clean),
        _ => {}
    }
}

/// Output of a call without injected text, redacted and shortened.
pub(super) fn output(text: &str) -> String {
    cut(&Clean::of(&without_injected(text)), MAX_OUTPUT)
}

/// Tags around text that hosts and memories add to a session. The last is this program's own fence;
/// its name is followed by a nonce.
const INJECTED: &[&str] = &[
    "system-reminder", "hook_context", "session_context", "memctl",
];

/// Removes text that hosts and memories inject.
pub(super) fn without_injected(text: &str) -> Cow<'_, str> {
    without_elements(text, INJECTED, "")
}

/// Removes the elements with these names, and fences of this program. An open element ends with the text.
pub(super) fn without_elements<'t>(text: &'t str, names: &[&str], instead: &str) -> Cow<'t, str> {
    let mut rest = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = memchr::memchr(b'<', &text.as_bytes()[at..]) {
        let start = at + found;
        at = start + 1;
        let is_outside = |c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_';
        let tag = text[at..].split(is_outside).next().unwrap_or_default();
        if names.contains(&tag) || tag.starts_with("memctl-") {
            let close = format!("</{tag}>");
            let end = text[start..].find(&close);
            at = end.map_or(text.len(), |end| start + end + close.len());
            rest.push_str(&text[copied..start]);
            rest.push_str(instead);
            copied = at;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    Cow::Owned(rest + &text[copied..])
}

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
pub fn whole_characters(json: &str) -> Option<String> {
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
    fn injected_text_is_removed() {
        let check = |text: &str, expected: &str| assert_eq!(without_injected(text), expected);
        check("a", "a");
        check("a<system-reminder>x</system-reminder>b", "ab");
        check(
            "a<hook_context>x</hook_context>\n<hook_context>y</hook_context>b",
            "a\nb",
        );
        check("a<memctl-3f2a>x<b></memctl-3f2a>b", "ab");
        check("<memctl>x</memctl>b", "b");
        check("a<memctl-3f2a>x</memctl-9999>b", "a");
        check(
            "a <memctlx> b <system-reminders> c",
            "a <memctlx> b <system-reminders> c",
        );
        check("a<system-reminder>cut", "a");
    }

    #[test]
    fn long_texts_lose_their_middle() {
        let cut = |text| cut(&Clean::of(text), 6);
        assert_eq!(cut("äöü"), "äöü");
        assert_eq!(cut("aäbcdefgä"), "aä\n…\ngä");
    }
}

#[cfg(test)]
mod tests_of_json {
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
