//! Definitions of text, word boundary and equality, identical in the generated Python and
//! JavaScript.

use serde_json::Value;

/// Readable text of a value: each string, number and truth value on its own line, without keys.
pub(super) fn text_of(value: &Value) -> String {
    fn walk(value: &Value, lines: &mut Vec<String>) {
        match value {
            Value::Null => {}
            Value::String(text) => lines.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| walk(item, lines)),
            Value::Object(fields) => fields.values().for_each(|item| walk(item, lines)),
            scalar => lines.push(scalar.to_string()),
        }
    }
    let mut lines = Vec::new();
    walk(value, &mut lines);
    lines.join("\n")
}

/// Returns true if a text contains these words, ignoring case. They must start at a word boundary
/// and, with `alone`, also end at one. Scripts without spaces have no boundaries.
pub(super) fn has_words(text: &str, words: &str, alone: bool) -> bool {
    let (text, words) = (text.to_lowercase(), words.to_lowercase());
    let bound = |a: Option<char>, b: Option<char>| {
        let is_word = |c: char| (c.is_alphanumeric() || c == '_') && u32::from(c) < 0x2E80;
        !(a.is_some_and(is_word) && b.is_some_and(is_word))
    };
    let (first, last) = (words.chars().next(), words.chars().next_back());
    if first.is_none() {
        return false;
    }
    let mut from = 0;
    while let Some(at) = text[from..].find(&words).map(|at| from + at) {
        let end = at + words.len();
        let begins = bound(text[..at].chars().next_back(), first);
        let ends = !alone || bound(last, text[end..].chars().next());
        if begins && ends {
            return true;
        }
        from = at + first.map_or(1, char::len_utf8);
    }
    false
}

/// Returns true if two values are equal; numbers compare by value.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}
