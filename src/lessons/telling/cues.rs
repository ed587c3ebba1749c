//! Procedures that another program wrote, found by the error that their cues or summaries quote.
//!
//! The document of an analyst is prose. It is for a failure if it holds the deciding line, whole or
//! but for the names in it, or if the line holds a whole cue.

use crate::lessons::failure::ErrorLine;
use crate::model::Procedure;
use crate::model::likeness::telling_words;

/// Placeholders of an error key.
const PLACEHOLDERS: [&str; 5] = ["<path>", "<name>", "<n>", "<id>", "<url>"];
/// Minimum number of words of an error whose names differ.
const WORDS: usize = 3;
/// Minimum number of specific words of a cue that a line holds.
const TELLING_CUE: usize = 3;

/// Texts of a procedure that may quote its error: failure, cause and cues.
pub(crate) fn texts(procedure: &Procedure) -> Vec<String> {
    if !procedure.origins.is_empty() {
        return Vec::new();
    }
    let fields = procedure.fields();
    if fields.steps().next().is_none() {
        return Vec::new();
    }
    let mut texts = vec![fields.failure, fields.root_cause];
    texts.extend(fields.cues);
    texts.retain(|text| !text.trim().is_empty());
    texts
}

/// Returns `true` if a procedure tells of an error.
pub(crate) fn tells_of(procedure: &Procedure, line: &ErrorLine) -> bool {
    let whole = plain(&line.text);
    let is_telling = telling_words(&line.key) > 0 && plain_words(&line.key) >= WORDS;
    texts(procedure).iter().any(|text| {
        let quoted = text.split(['"', '\'', '`', '“', '”', '\n']);
        let mut cues = quoted.chain([text.as_str()]);
        let text = plain(text);
        text.contains(&whole) && telling_words(&whole) > 0
            || is_telling && has_in_order(&text, &line.key)
            || cues.any(|cue| telling_words(cue) >= TELLING_CUE && whole.contains(&plain(cue)))
    })
}

/// Number of words of an error key that are no placeholders.
fn plain_words(key: &str) -> usize {
    let is_plain = |word: &&str| !word.contains('<') && word.chars().any(char::is_alphabetic);
    key.split_whitespace().filter(is_plain).count()
}

/// Text in lower case, without quotes, with single spaces.
fn plain(text: &str) -> String {
    let text: String = text
        .chars()
        .filter(|c| !"'\"`‘’“”«»".contains(*c))
        .collect();
    text.to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns `true` if a text has the parts of an error key between its placeholders, in order.
fn has_in_order(text: &str, key: &str) -> bool {
    let mut parts = vec![key.to_owned()];
    for placeholder in PLACEHOLDERS {
        let split = parts.iter().flat_map(|part| part.split(placeholder));
        parts = split.map(str::to_owned).collect();
    }
    let mut rest = text;
    let parts = parts.iter().map(|part| plain(part));
    for part in parts.filter(|part| part.contains(char::is_alphanumeric)) {
        let part = part.trim_matches(|c: char| !c.is_alphanumeric());
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lessons::failure::error_key::normalised;
    use serde_json::json;

    #[test]
    fn a_quoted_error_is_found_with_its_names_and_without() {
        let check = |cue: &str, error: &str, expected: bool| {
            let procedure = json!({"procedure_id": "PROC-001", "data": {
                "initial_failure_summary": cue, "learned_procedure_steps": ["do"]}});
            let procedure: Procedure = serde_json::from_value(procedure).unwrap();
            let line = ErrorLine {
                key: normalised(error),
                text: error.to_owned(),
            };
            assert_eq!(tells_of(&procedure, &line), expected, "{cue} | {error}");
        };
        let missing = "It said: ERROR: relation \"users\" does not exist";
        check(missing, "ERROR:  relation \"users\" does not exist", true);
        check(missing, "ERROR: relation \"orders\" does not exist", true);
        check(missing, "ERROR: column \"a\" does not exist", false);
        check(
            "ALTER TABLE failed with 'syntax error at end of input'",
            "ERROR: syntax error at end of input",
            true,
        );
        check("connection refused", "KeyError: 'connection'", false);
        check("KeyError", "KeyError: 'x'", false);
        check("", "error: x", false);
    }
}
