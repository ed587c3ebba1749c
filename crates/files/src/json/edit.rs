//! Sets and removes fields of an object; all other bytes stay unchanged.
//!
//! Replaces string values in a text, and nothing else: the ids of records.
//!
//! An id is replaced wherever it is a whole string value: in a reference to another record, in a
//! list of rules, deep in the data of a session. Keys, and ids inside sentences, stay. The text
//! need not be strict JSON.
//!
//! Changes only the white space of JSON text. Numbers, strings and the order of keys stay
//! unchanged.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;

use super::spans::{fields, skip_space, skip_string};

/// Sets fields of an object to new JSON texts; all other bytes stay unchanged. New fields go to the
/// end, with the given indentation.
pub fn with_fields(object: &str, changes: &[(&str, String)], indent: usize) -> String {
    let mut edits: Vec<(Range<usize>, &str)> = Vec::new();
    let mut added: Vec<(&str, &str)> = Vec::new();
    let mut last_end = None;
    let spans: Vec<(String, Range<usize>)> = fields(object.as_bytes())
        .map(|(key, span)| {
            last_end = Some(span.end);
            (key.into_owned(), span)
        })
        .collect();
    for (name, value) in changes {
        match spans.iter().rev().find(|(key, _)| key == name) {
            Some((_, span)) => edits.push((span.clone(), value)),
            None => added.push((name, value)),
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
    let tail_at = last_end.unwrap_or_else(|| object.find('{').map_or(0, |at| at + 1));
    let mut out = String::with_capacity(object.len() + 64);
    let mut from = 0;
    for (span, value) in edits {
        out.push_str(&object[from..span.start]);
        out.push_str(value);
        from = span.end;
    }
    out.push_str(&object[from..tail_at]);
    let pad = " ".repeat(indent);
    for (i, (name, value)) in added.iter().enumerate() {
        let comma = if i == 0 && last_end.is_none() {
            ""
        } else {
            ","
        };
        let name = serde_json::Value::from(*name).to_string();
        out.extend([comma, "\n", &pad, &name, ": ", value]);
    }
    out.push_str(&object[tail_at..]);
    out
}

/// Removes fields of an object, each with its comma; all other bytes stay unchanged.
pub fn without_fields(object: &str, names: &[&str]) -> String {
    let bytes = object.as_bytes();
    let opening = object.find('{').map_or(0, |at| at + 1);
    let spans: Vec<(String, Range<usize>)> = fields(bytes)
        .map(|(key, span)| (key.into_owned(), span))
        .collect();
    let behind_comma = |n: usize| skip_space(bytes, spans[n].1.end) + 1;
    let mut out = String::with_capacity(object.len());
    let mut from = 0;
    let mut kept_one = false;
    for (n, (key, span)) in spans.iter().enumerate() {
        if !names.contains(&key.as_str()) {
            kept_one = true;
            continue;
        }
        // Remove the comma before the field, or the one after it if no field is left before it.
        let start = match n.checked_sub(1) {
            None => opening,
            Some(before) if kept_one => spans[before].1.end,
            Some(before) => behind_comma(before),
        };
        out.push_str(&object[from..start]);
        from = if kept_one || n + 1 == spans.len() {
            span.end
        } else {
            behind_comma(n)
        };
    }
    out.push_str(&object[from..]);
    out
}

/// Returns the text with other values for these; `None` if nothing changes.
pub fn with_other_strings<S: BuildHasher>(
    text: &str,
    ids: &HashMap<String, String, S>,
) -> Option<String> {
    if ids.is_empty() {
        return None;
    }
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(start) = bytes[at..].iter().position(|b| *b == b'"').map(|n| at + n) {
        let Some(end) = string_end(bytes, start) else {
            break;
        };
        let is_key = bytes[end..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':');
        if let Some(new) = ids.get(&text[start + 1..end - 1]).filter(|_| !is_key) {
            out.extend([&text[from..=start], new, "\""]);
            from = end;
        }
        at = end;
    }
    (from > 0).then(|| out + &text[from..])
}

/// Position after the string that starts here.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Formats JSON with two spaces per level, `": "`, and one value per line. `level` is the depth of
/// the first bracket.
pub fn pretty(json: &str, mut level: usize) -> String {
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len() + json.len() / 4);
    let new_line = |out: &mut String, level: usize| {
        out.push('\n');
        for _ in 0..level {
            out.push_str("  ");
        }
    };
    let mut at = skip_space(bytes, 0);
    while let Some(&b) = bytes.get(at) {
        let mut end = at + 1;
        match b {
            b'{' | b'[' => {
                let inside = skip_space(bytes, end);
                if matches!(bytes.get(inside), Some(b'}' | b']')) {
                    out.push_str(if b == b'{' { "{}" } else { "[]" });
                    end = inside + 1;
                } else {
                    out.push(char::from(b));
                    level += 1;
                    new_line(&mut out, level);
                }
            }
            b'}' | b']' => {
                level = level.saturating_sub(1);
                new_line(&mut out, level);
                out.push(char::from(b));
            }
            b',' => {
                out.push(',');
                new_line(&mut out, level);
            }
            b':' => out.push_str(": "),
            b'"' => {
                end = skip_string(bytes, at).unwrap_or(bytes.len());
                out.push_str(&json[at..end]);
            }
            _ => {
                end = bytes[at..]
                    .iter()
                    .position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
                    .map_or(bytes.len(), |n| at + n.max(1));
                out.push_str(&json[at..end]);
            }
        }
        at = skip_space(bytes, end);
    }
    out
}

/// Formats JSON on one line, without white space outside of strings.
pub fn compact(json: &str) -> String {
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len());
    let mut at = skip_space(bytes, 0);
    while at < bytes.len() {
        let end = if bytes[at] == b'"' {
            skip_string(bytes, at).unwrap_or(bytes.len())
        } else {
            let rest = bytes[at..].iter();
            rest.skip(1)
                .position(|b| b.is_ascii_whitespace() || *b == b'"')
                .map_or(bytes.len(), |n| at + n + 1)
        };
        out.push_str(&json[at..end]);
        at = skip_space(bytes, end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_a_field_leaves_the_others_as_they_are() {
        let check = |object: &str, expected: &str| {
            let changes = [("n", "2".to_owned()), ("new", "[1]".to_owned())];
            assert_eq!(with_fields(object, &changes, 2), expected);
        };
        check(
            "{\"big\":123456789012345678901234567890,  \"n\" : 1.0 }",
            "{\"big\":123456789012345678901234567890,  \"n\" : 2,\n  \"new\": [1] }",
        );
        check("{}", "{\n  \"n\": 2,\n  \"new\": [1]}");
        check("{\"x\": NaN}", "{\"x\": NaN,\n  \"n\": 2,\n  \"new\": [1]}");
    }

    #[test]
    fn fields_are_taken_out_as_if_they_had_never_been() {
        let check = |object: &str, names: &[&str], expected: &str| {
            assert_eq!(
                without_fields(object, names),
                expected,
                "{object} {names:?}"
            );
        };
        check(r#"{"a": 1, "b": 2}"#, &["b"], r#"{"a": 1}"#);
        check(r#"{"a": 1, "b": 2}"#, &["a"], r#"{ "b": 2}"#);
        check(r#"{"a": 1, "b": 2, "c": 3}"#, &["a", "b"], r#"{ "c": 3}"#);
        check(r#"{"a": 1, "b": 2, "c": 3}"#, &["a", "c"], r#"{ "b": 2}"#);
        check(r#"{"a": 1}"#, &["a"], "{}");
        check(r#"{"a": 1}"#, &["x"], r#"{"a": 1}"#);
        let before = "{\n      \"a\": 1\n    }";
        let added = [("b", "2".to_owned()), ("c", "[]".to_owned())];
        let after = with_fields(before, &added, 6);
        check(&after, &["b", "c"], before);
    }
}

#[cfg(test)]
mod tests_of_other_strings {
    use super::*;

    #[test]
    fn whole_strings_change_and_nothing_else() {
        let ids = [
            ("CORR-001", "CORR-009"),
            ("REFL-001", "REFL-002"),
            ("REFL-002", "REFL-003"),
        ];
        let ids: HashMap<String, String> = ids
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect();
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                with_other_strings(text, &ids).as_deref(),
                expected,
                "{text}"
            );
        };
        check(
            r#"{"correction_id":  "CORR-001", "all": ["REFL-001","REFL-002", "see REFL-001"], "CORR-001" : NaN}"#,
            Some(
                r#"{"correction_id":  "CORR-009", "all": ["REFL-002","REFL-003", "see REFL-001"], "CORR-001" : NaN}"#,
            ),
        );
        check(
            r#"{"a": "\"CORR-001\"", "b": "\\", "c": "CORR-001"}"#,
            Some(r#"{"a": "\"CORR-001\"", "b": "\\", "c": "CORR-009"}"#),
        );
        check(r#"{"a": "CORR-0010"}"#, None);
        check("{\"a\": \"CORR-001", None);
        check("{\"a\": \"\\", None);
    }
}

#[cfg(test)]
mod tests_of_layout {
    use super::*;

    #[test]
    fn pretty_changes_the_layout_only() {
        let json = r#"{"b":[1.0,{"a":"x, {y}"}],"a":{}, "e" : [ ]}"#;
        let expected = "{\n  \"b\": [\n    1.0,\n    {\n      \"a\": \"x, {y}\"\n    }\n  ],\n  \"a\": {},\n  \"e\": []\n}";
        assert_eq!(pretty(json, 0), expected);
        assert_eq!(pretty(expected, 0), expected);
        assert_eq!(pretty("3489.2794929999127", 2), "3489.2794929999127");
        assert_eq!(
            compact(expected),
            json.replace(' ', "").replace("x,{y}", "x, {y}")
        );
        assert_eq!(compact(" 1e+16 \n"), "1e+16");
    }
}
