//! Replaces string values in a text, and nothing else: the ids of records.
//!
//! An id is replaced wherever it is a whole string value: in a reference to another record, in a
//! list of rules, deep in the data of a session. Keys, and ids inside sentences, stay. The text
//! need not be strict JSON.

use std::collections::HashMap;
use std::hash::BuildHasher;

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

#[cfg(test)]
mod tests {
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
