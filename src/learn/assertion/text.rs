//! What a text is, where words begin and end, and when two values are the same: as in the generated
//! Python and JavaScript.

use serde_json::Value;

/// The text that a person would read: every string, number and truth value, a line each, and no
/// keys.
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

/// Whether a text holds these words, in any case: from the beginning of a word, and to the end of
/// one where they have to stand alone. Scripts that do not part words with spaces have no borders.
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

/// Whether two values mean the same: numbers by their value, all else as it is.
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
