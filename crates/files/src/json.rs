//! JSON as text: finds the ends of values without interpreting them, and changes fields in place.
//!
//! The store must keep entries that a strict parser rejects (Python writes `NaN`, `Infinity` and
//! lone surrogates), and must preserve unchanged bytes. It therefore works on spans of text. Only
//! the structure is checked: brackets, quotes, commas and colons. The meaning of numbers and
//! escapes is left to the parser of the entry.
//!
//! No function recurses: text nested 10⁵ deep takes a long loop, not a stack overflow.
//!
//! A change of a field leaves all other bytes as they are. An id is replaced wherever it is a whole string
//! value: in a reference to another record, in a list of rules, deep in the data of a session. Keys, and
//! ids inside sentences, stay. A change of the layout touches white space alone.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;

use serde_json::Value;

/// Reason why the end of a value was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The text ends inside the value.
    Incomplete,
    /// Invalid text at this byte position.
    Malformed(usize),
}

/// Texts, numbers, truth values and nulls of a value, in their order.
pub fn leaves(value: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter().rev()),
            Value::Object(fields) => open.extend(fields.values().rev()),
            leaf => found.push(leaf),
        }
    }
    found
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
                Some(_) => return Err(Stop::Malformed(at)),
            }
        }
    }
}

/// Skips `"key" :` and the following white space.
fn skip_key(text: &[u8], at: usize) -> Result<usize, Stop> {
    match text.get(at) {
        None => return Err(Stop::Incomplete),
        Some(b'"') => {}
        Some(_) => return Err(Stop::Malformed(at)),
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
        Some(_) => Err(Stop::Malformed(at)),
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
            b'\n' => return Err(Stop::Malformed(at)),
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
        Err(Stop::Malformed(at))
    }
}

/// Returns the fields of an object: each decoded key with the span of its value. Ends early if the
/// object is not complete.
pub fn fields(object: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Range<usize>)> {
    let start = skip_space(object, 0);
    let is_object = object.get(start) == Some(&b'{');
    let mut at = is_object.then(|| skip_space(object, start + 1));
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
    string(field(object, name)?)
}

/// Returns the text of a JSON string; `None` for any other value.
pub fn string(value: &[u8]) -> Option<Cow<'_, str>> {
    (value.first() == Some(&b'"')).then(|| decode(value))
}

/// Decodes a quoted string. Invalid escapes (lone surrogates) become `U+FFFD`.
fn decode(quoted: &[u8]) -> Cow<'_, str> {
    let inner = &quoted[1..quoted.len() - 1];
    if !inner.contains(&b'\\') {
        return String::from_utf8_lossy(inner);
    }
    let text = serde_json::from_str(&String::from_utf8_lossy(quoted));
    text.map_or_else(|_| String::from_utf8_lossy(inner), Cow::Owned)
}

/// Returns the texts of the items of an array, up to the first damage.
pub fn items(array: &str) -> Vec<&str> {
    let text = array.as_bytes();
    let mut found = Vec::new();
    let mut at = skip_space(text, 1);
    while let Ok(end) = skip_value(text, at) {
        found.push(&array[at..end]);
        let next = skip_space(text, end);
        if text.get(next) != Some(&b',') {
            break;
        }
        at = skip_space(text, next + 1);
    }
    found
}

/// Returns a text with others in place of its parts, which are given in their order.
fn spliced(text: &str, parts: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut from = 0;
    for (span, new) in parts {
        out.push_str(&text[from..span.start]);
        out.push_str(new);
        from = span.end;
    }
    out + &text[from..]
}

/// Sets fields of an object to new JSON texts; all other bytes stay unchanged. New fields go to the
/// end, with the given indentation.
pub fn with_fields(object: &str, changes: &[(&str, String)], indent: usize) -> String {
    let spans: Vec<_> = fields(object.as_bytes()).collect();
    let last_end = spans.last().map(|(_, span)| span.end);
    let (mut parts, mut added) = (Vec::new(), String::new());
    let pad = " ".repeat(indent);
    for (name, value) in changes {
        if let Some((_, span)) = spans.iter().rev().find(|(key, _)| key == name) {
            parts.push((span.clone(), value.clone()));
            continue;
        }
        let is_only = added.is_empty() && last_end.is_none();
        let comma = if is_only { "" } else { "," };
        let name = Value::from(*name).to_string();
        added.extend([comma, "\n", &pad, &name, ": ", value]);
    }
    parts.sort_by_key(|(span, _)| span.start);
    let end = last_end.unwrap_or_else(|| object.find('{').map_or(0, |at| at + 1));
    parts.push((end..end, added));
    spliced(object, &parts)
}

/// Removes fields of an object, each with its comma; all other bytes stay unchanged.
pub fn without_fields(object: &str, names: &[&str]) -> String {
    let bytes = object.as_bytes();
    let opening = object.find('{').map_or(0, |at| at + 1);
    let spans: Vec<_> = fields(bytes).collect();
    let behind_comma = |n: usize| skip_space(bytes, spans[n].1.end) + 1;
    let mut parts = Vec::new();
    let mut kept_one = false;
    for (n, (key, span)) in spans.iter().enumerate() {
        if !names.contains(&&**key) {
            kept_one = true;
            continue;
        }
        // Remove the comma before the field, or the one after it if no field is left before it.
        let start = match n.checked_sub(1) {
            None => opening,
            Some(before) if kept_one => spans[before].1.end,
            Some(before) => behind_comma(before),
        };
        let end = if kept_one || n + 1 == spans.len() {
            span.end
        } else {
            behind_comma(n)
        };
        parts.push((start..end, String::new()));
    }
    spliced(object, &parts)
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
        let Ok(end) = skip_string(bytes, start) else {
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

/// Returns the brackets, commas, colons, strings and words of a JSON text, in their order.
fn tokens(json: &str) -> impl Iterator<Item = &str> {
    let bytes = json.as_bytes();
    let mut at = skip_space(bytes, 0);
    std::iter::from_fn(move || {
        let is_mark = |b: &u8| matches!(b, b'{' | b'}' | b'[' | b']' | b',' | b':' | b'"');
        let end = match bytes.get(at)? {
            b'"' => skip_string(bytes, at).unwrap_or(bytes.len()),
            mark if is_mark(mark) => at + 1,
            _ => bytes[at..]
                .iter()
                .position(|b| is_mark(b) || b.is_ascii_whitespace())
                .map_or(bytes.len(), |n| at + n.max(1)),
        };
        let token = &json[at..end];
        at = skip_space(bytes, end);
        Some(token)
    })
}

/// Formats JSON with two spaces per level, `": "`, and one value per line. `level` is the depth of
/// the first bracket.
pub fn pretty(json: &str, mut level: usize) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 4);
    let new_line = |out: &mut String, level: usize| {
        out.push('\n');
        for _ in 0..level {
            out.push_str("  ");
        }
    };
    let mut tokens = tokens(json).peekable();
    while let Some(token) = tokens.next() {
        if matches!(token, "}" | "]") {
            level = level.saturating_sub(1);
            new_line(&mut out, level);
        }
        out.push_str(token);
        match token {
            "{" | "[" => {
                if let Some(end) = tokens.next_if(|next| matches!(*next, "}" | "]")) {
                    out.push_str(end);
                } else {
                    level += 1;
                    new_line(&mut out, level);
                }
            }
            "," => new_line(&mut out, level),
            ":" => out.push(' '),
            _ => {}
        }
    }
    out
}

/// Maximum number of brackets within each other. Many readers stop at 128, and records stand within others.
const DEEPEST: usize = 100;

/// Returns the first number or text that the grammar allows and common readers refuse: a number beyond the
/// range of a float, or half of a surrogate pair. Says so of brackets that are nested too deeply.
pub fn unreadable(json: &str) -> Option<&str> {
    let mut depth = 0_usize;
    tokens(json).find_map(|token| {
        let is_refused = match token.as_bytes() {
            [b'"', ..] => token.contains("\\u") && serde_json::from_str::<String>(token).is_err(),
            [b'-' | b'0'..=b'9', ..] => serde_json::from_str::<f64>(token).is_err(),
            [b'{' | b'[', ..] => {
                depth += 1;
                return (depth > DEEPEST).then_some("more than 100 brackets within each other");
            }
            [b'}' | b']', ..] => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => false,
        };
        is_refused.then_some(token)
    })
}

/// Formats JSON on one line, without white space outside of strings.
pub fn compact(json: &str) -> String {
    tokens(json).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_value_is_found() {
        let whole = |text: &str| {
            let padded = format!("{text} ");
            assert_eq!(skip_value(padded.as_bytes(), 0), Ok(text.len()), "{text}");
        };
        whole("{}");
        whole("[ ]");
        whole(r#"{"a": [1, {"b": "x\"]}"}, NaN, -Infinity, 1e+16], "c": null}"#);
        whole(r#""\ud83d lone \udcff""#);
        whole("123456789012345678901234567890");
        whole(
            &"[".repeat(100_000)
                .chars()
                .chain("]".repeat(100_000).chars())
                .collect::<String>(),
        );
    }

    #[test]
    fn a_cut_value_is_incomplete_and_a_wrong_one_malformed() {
        let text = r#"{"a": [1, {"b": "x\\"}, true], "c": nul"#;
        for end in 0..text.len() {
            assert_eq!(
                skip_value(&text.as_bytes()[..end], 0),
                Err(Stop::Incomplete),
                "{end}"
            );
        }
        let malformed = |text: &str, at: usize| {
            let found = skip_value(text.as_bytes(), 0);
            assert_eq!(found, Err(Stop::Malformed(at)), "{text}");
        };
        malformed("{a: 1}", 1);
        malformed(r#"{"a" 1}"#, 5);
        malformed(r#"{"a": 1 "b": 2}"#, 8);
        malformed("[1, 2}", 5);
        malformed("[tru, 1]", 1);
        malformed("{\"a\": \"x\n}", 8);
        malformed("[1,]", 3);
    }

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

    #[test]
    fn what_common_readers_refuse_is_found() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        for (json, expected) in [
            (&*nested(100), None),
            (
                &*nested(130),
                Some("more than 100 brackets within each other"),
            ),
            (
                r#"{"a": [1e308, -0.0, 12345678901234567890123], "b": "\ud83d\ude00 1e400", "c": null}"#,
                None,
            ),
            (r#"{"a": [1, 1e400]}"#, Some("1e400")),
            (r#"{"\ud800": true}"#, Some(r#""\ud800""#)),
            ("-1e999", Some("-1e999")),
        ] {
            assert_eq!(unreadable(json), expected, "{json}");
            assert_eq!(
                serde_json::from_str::<Value>(json).is_ok(),
                expected.is_none()
            );
        }
    }

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
