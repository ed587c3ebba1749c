//! Derived table of procedures: hashes by which those for a call or a failure are found.
//!
//! Writers and readers compute the same terms. A collision only costs one comparison. A procedure
//! that may not be told has no term, and is never found; an unreadable one neither.

use std::collections::BTreeSet;

use crate::lessons::recovery::shell::basename;
use crate::model::likeness::{is_generic, key_words};
use crate::model::{Kind, Procedure, Record as _, Trust};
use crate::store::workspace::Error;
use crate::store::{Scoped, Terms};

use super::cues;
use crate::lessons::recovery::pattern;

/// Version of the terms. A change invalidates saved tables.
const SCHEME: u64 = 8;
/// Maximum number of words of a command that are compared.
pub(crate) const COMMAND_WORDS: usize = 6;

/// Opens the table.
pub(crate) fn open(store: &Scoped) -> Result<Terms, Error> {
    Ok(store.terms(Kind::Procedure, SCHEME, &terms_of_entry)?)
}

/// Rebuilds the table after procedures have changed, so that no later lookup has to.
pub(crate) fn prepare(store: &Scoped) -> Result<(), Error> {
    open(store).map(drop)
}

fn terms_of_entry(entry: &[u8]) -> Vec<u64> {
    let procedure = serde_json::from_slice::<Procedure>(entry);
    procedure.as_ref().map(terms).unwrap_or_default()
}

/// Terms of a procedure; empty if it may not be told.
fn terms(procedure: &Procedure) -> Vec<u64> {
    if !procedure.is_active() {
        return Vec::new();
    }
    let mut terms = BTreeSet::new();
    if let Some(applies) = &procedure.applies {
        for phrase in applies.errors.iter().chain(&applies.expected) {
            terms.extend(longest_word(phrase).map(|word| phrase_term(&word)));
        }
        terms.extend(applies.commands.iter().map(|command| command_term(command)));
    }
    match &procedure.pattern {
        Some(own) => {
            terms.insert(line_term(&own.error_line));
            terms.insert(line_term(&own.error_key));
            if procedure.trust() != Trust::Observed {
                terms.insert(approved_term(&own.error_key));
            }
            if !procedure.is_episode() {
                let words = key_words(&own.error_key);
                terms.extend(words.iter().map(|word| word_term(word)));
            }
        }
        None if procedure.lesson.is_empty() => {
            for text in cues::texts(procedure) {
                let words = key_words(&text);
                let telling = words.iter().filter(|word| !is_generic(word));
                terms.extend(telling.map(|word| word_term(word)));
            }
        }
        None => {}
    }
    terms.into_iter().collect()
}

/// Longest word of a phrase, in lower case.
fn longest_word(phrase: &str) -> Option<String> {
    words(phrase).max_by_key(String::len)
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
    hash(b"c", &beginning(command.split_whitespace()))
}

/// Beginning of a command: its program without a directory, and its next words.
pub(crate) fn beginning<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words = words.take(COMMAND_WORDS).enumerate();
    let words = words.map(|(at, word)| if at == 0 { basename(word) } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Term of procedures with this error line or key.
pub(crate) fn line_term(line: &str) -> u64 {
    hash(b"=", &pattern::plain(line))
}

/// Term of approved procedures with this error key, so that they are found among any number of
/// others.
pub(crate) fn approved_term(key: &str) -> u64 {
    hash(b"!", &pattern::plain(key))
}

/// Term of procedures whose error has a word.
pub(crate) fn word_term(word: &str) -> u64 {
    hash(b"~", word)
}

/// FNV-1a hash.
fn hash(space: &[u8], text: &str) -> u64 {
    let bytes = space.iter().chain(text.as_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
