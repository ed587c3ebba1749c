//! Text helpers for session files: fields of JSON, injected text, and length limits.

use std::borrow::Cow;

use serde_json::Value;

use memctl_redact::{Clean, redact_value};

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

/// Text of a value; empty if it is none.
pub(super) fn of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Text of a value; `None` if it is none.
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

/// Removes the elements with these names, and fences of this program. What a cut text leaves open ends with it.
pub(super) fn without_elements<'t>(text: &'t str, names: &[&str], instead: &str) -> Cow<'t, str> {
    let mut kept = String::new();
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
            kept.push_str(&text[copied..start]);
            kept.push_str(instead);
            copied = at;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    Cow::Owned(kept + &text[copied..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_injected_is_taken_out() {
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
