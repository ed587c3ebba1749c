//! Derived table of procedures: the hashes that find the procedures for a call or a failure.
//!
//! Writers and readers compute the same terms. A collision only costs one comparison. A procedure that may not
//! be told, or that is unreadable, has no term and is never found.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::lessons::call::commands;
use crate::lessons::failure::ErrorLine;
use crate::lessons::failure::normalised;
use crate::model::text::{is_generic, key_words, one_line, telling_words};
use crate::model::{Kind, Procedure, Record as _, Trust};
use crate::store::workspace::Error;
use crate::store::{Scoped, Terms};
use memctl_shell::basename;

/// Version of the terms. A change invalidates saved tables.
const SCHEME: u64 = 12;
/// Maximum number of words of a command that are compared.
pub(crate) const COMMAND_WORDS: usize = 6;

/// Opens the table.
pub(crate) fn open(store: &Scoped) -> Result<Terms, Error> {
    store.terms(Kind::Procedure, SCHEME, &|entry| {
        let procedure = serde_json::from_slice(entry);
        procedure.as_ref().map(terms).unwrap_or_default()
    })
}

/// Rebuilds the table after procedures have changed, so that no later lookup has to.
pub(crate) fn prepare(store: &Scoped) -> Result<(), Error> {
    open(store).map(drop)
}

/// Terms of a procedure; empty if it may not be told.
fn terms(procedure: &Procedure) -> Vec<u64> {
    if !procedure.is_active() {
        return Vec::new();
    }
    let mut terms = BTreeSet::new();
    if let Some(applies) = &procedure.applies {
        for phrase in applies.errors.iter().chain(&applies.expected) {
            let longest = words(phrase).max_by_key(String::len);
            terms.extend(longest.map(|word| phrase_term(&word)));
        }
        terms.extend(applies.commands.iter().map(|command| command_term(command)));
    }
    match &procedure.pattern {
        Some(own) => {
            terms.insert(line_term(&own.error_line));
            terms.insert(line_term(&own.error_key));
            if procedure.trust() != Trust::Observed {
                terms.insert(approved_term(&own.error_key));
                let programs = commands(&own.failing_code).into_iter();
                terms.extend(programs.map(|simple| command_term(simple.program())));
            }
            if !procedure.is_episode() {
                let words = key_words(&own.error_key);
                terms.extend(words.iter().map(|word| word_term(word)));
            }
        }
        None if procedure.lesson.is_empty() => {
            for text in texts(procedure) {
                let words = key_words(&text);
                let telling = words.iter().filter(|word| !is_generic(word));
                terms.extend(telling.map(|word| word_term(word)));
            }
        }
        None => {}
    }
    terms.into_iter().collect()
}

/// Words of a text by which phrases are found, in lower case.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 1)
        .map(str::to_lowercase)
}

/// Term of procedures with a phrase whose longest word is this one.
pub(crate) fn phrase_term(word: &str) -> u64 {
    hash(b"w", word)
}

/// Term of procedures for commands that begin with these words.
pub(crate) fn command_term(command: &str) -> u64 {
    hash(b"c", &beginning(fixed(command).0.into_iter()))
}

/// Returns the words of a beginning before the first with a quote, a template or a sign of the shell, and `true` if
/// these are all.
pub(crate) fn fixed(command: &str) -> (Vec<&str>, bool) {
    let words: Vec<&str> = command.split_whitespace().collect();
    let varies = |word: &&str| word.contains(['"', '\'', '<', '…', '|', '>', ';', '&']);
    let end = words.iter().position(varies).unwrap_or(words.len());
    let is_whole = end == words.len();
    (words[..end].to_vec(), is_whole)
}

/// Beginning of a command: its program without a directory, and its next words.
pub(crate) fn beginning<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words = words.take(COMMAND_WORDS).enumerate();
    let words = words.map(|(at, word)| if at == 0 { basename(word) } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Term of procedures with this error line or key.
pub(crate) fn line_term(line: &str) -> u64 {
    hash(b"=", &one_line(line))
}

/// Term of approved procedures with this error key, so that they are found among any number of
/// others.
pub(crate) fn approved_term(key: &str) -> u64 {
    hash(b"!", &one_line(key))
}

/// Term of procedures whose error has a word.
pub(crate) fn word_term(word: &str) -> u64 {
    hash(b"~", word)
}

fn hash(space: &[u8], text: &str) -> u64 {
    xxh3_64(&[space, text.as_bytes()].concat())
}

/// Minimum number of words of an error whose names differ.
const WORDS: usize = 3;
/// Minimum number of specific words of a cue that a line holds: of what is quoted in a text, and of a whole text.
const TELLING_CUE: usize = 3;
const TELLING_TEXT: usize = 2;

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
    let whole = plain(message(&line.text));
    let key = message(&line.key);
    let words = key.split_whitespace();
    let is_telling =
        telling_words(key) > 0 && words.filter(|word| !word.contains('<')).count() >= WORDS;
    texts(procedure).iter().any(|text| {
        let quoted = text.split(['"', '\'', '`', '“', '”', '\n']);
        let cues = quoted.map(|cue| (cue, TELLING_CUE));
        let is_phrase = text.trim().contains(char::is_whitespace);
        let least = if is_phrase { TELLING_TEXT } else { TELLING_CUE };
        let mut cues = cues.chain([(text.as_str(), least)]);
        plain(text).contains(&whole) && telling_words(&whole) > 0
            || is_telling && text.lines().any(|one| normalised(one).contains(key))
            || cues.any(|(cue, least)| telling_words(cue) >= least && whole.contains(&plain(cue)))
    })
}

/// Error line without a head that every error has, as in `ERROR: …`: who tells of an error leaves it out.
fn message(line: &str) -> &str {
    match line.split_once(':') {
        Some((head, message)) if is_generic(&head.to_lowercase()) => message.trim_start(),
        _ => line,
    }
}

/// Text in lower case, without quotes, with single spaces.
fn plain(text: &str) -> String {
    let text: String = text
        .chars()
        .filter(|c| !"'\"`‘’“”«»".contains(*c))
        .collect();
    one_line(&text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        check(
            "The first statement failed: syntax error at end of input",
            "ERROR:  syntax error at end of input",
            true,
        );
        let expired = "curl: (60) SSL certificate problem: certificate has expired";
        check("certificate has expired", expired, true);
        check("it said that the certificate has expired", expired, false);
        check("connection refused", "KeyError: 'connection'", false);
        check("KeyError", "KeyError: 'x'", false);
        check("", "error: x", false);
    }
}
