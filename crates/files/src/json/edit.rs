//! Sets and removes fields of an object; all other bytes stay unchanged.

use std::ops::Range;

use super::object_fields::fields;
use super::spans::skip_space;

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

#[cfg(test)]
mod tests {
    use super::super::edit::*;

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
