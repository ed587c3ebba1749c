//! Names in an error that a fix depends on.

use super::Failure;
use super::difference::{self, Difference};
use super::project;
use super::script::{self, Script};
use super::subject::{is_absolute, is_conventional, last_part, names, subjects};

/// Verbs whose operand is the name of a package.
pub(crate) const INSTALLS: &[&str] = &["install", "add", "get", "i", "require"];

/// Names that a fix depends on, and whether it is knowledge of one project.
///
/// A fix that brings in a name of its own (`opencv-python`) is a mapping from the subject of the
/// error to that name, and helps with this subject only. It does not depend on the subject if its
/// new words are options and verbs, or if the error itself says them.
pub(super) fn dependence(
    error: &Failure<'_>,
    difference: &Difference,
    failing: &str,
    working: &str,
) -> (Vec<String>, bool) {
    // The end of a path that the caller chose is no subject.
    let paths: Vec<&str> = error
        .line
        .split_whitespace()
        .map(|word| word.trim_matches(['\'', '"', '`', ',', ':', '.', '‘', '’']))
        .filter(|word| is_absolute(word))
        .collect();
    let is_own_path = |name: &String| {
        names(error.call, name)
            && paths
                .iter()
                .any(|path| last_part(path).eq_ignore_ascii_case(name))
    };
    let mut subjects = subjects(error.line);
    subjects.retain(|name| !is_own_path(name));
    let replaced: Vec<String> = difference
        .dropped
        .iter()
        .filter(|word| !word.starts_with('-'))
        .map(|word| word.to_ascii_lowercase())
        .filter(|word| names(error.line, word))
        .collect();
    let said = |word: &str| {
        let word = word.trim_matches(['\'', '"']);
        names(error.output, word)
            || names(failing, word)
            || difference::tokens(word).iter().any(|part| {
                part.len() > 2
                    && subjects
                        .iter()
                        .any(|subject| subject == &part.to_ascii_lowercase())
            })
    };
    let own: Vec<&String> = names_brought_in(difference, working)
        .into_iter()
        .filter(|word| !said(word) && !is_conventional(word))
        .collect();
    let tasks = project::tasks(working);
    let runs_task = difference
        .added
        .iter()
        .any(|word| tasks.contains(word) && !said(word));
    // A number that an option takes, such as a port, is a setting of one project.
    let all = difference::words(working);
    let is_value = |word: &String| {
        word.len() > 1
            && word.bytes().all(|b| b.is_ascii_digit())
            && all
                .windows(2)
                .any(|pair| pair[0].starts_with('-') && &pair[1] == word)
    };
    let is_setting = !failing.contains('{')
        && difference
            .added
            .iter()
            .any(|word| is_value(word) && !said(word))
        && error.line.bytes().any(|b| b.is_ascii_digit());
    let is_local = is_setting || runs_task;
    if !replaced.is_empty() && !difference.requoted {
        return (replaced, is_local);
    }
    if own.is_empty() && !runs_task {
        return (Vec::new(), is_local);
    }
    (subjects, is_local)
}

/// Added words that are names: neither options with their values, nor programs and their verbs.
fn names_brought_in<'d>(difference: &'d Difference, working: &str) -> Vec<&'d String> {
    let script = Script::of(working);
    let mut verbs: Vec<String> = Vec::new();
    let mut values: Vec<&str> = Vec::new();
    let mut wrappers: Vec<String> = Vec::new();
    for simple in script.parts.iter().flat_map(|part| &part.commands) {
        let run = script::plain(simple);
        let is_added = simple
            .words
            .first()
            .is_some_and(|w| difference.added.contains(w));
        // `poetry run pytest` is another way to run the same program.
        let inner = run.name.split(' ').next().unwrap_or_default();
        if is_added && simple.words.iter().skip(1).any(|w| w == inner) {
            wrappers.extend(simple.words.first().cloned());
        }
        verbs.extend(run.name.split(' ').map(str::to_owned));
        verbs.extend(
            simple
                .words
                .first()
                .filter(|word| !word.contains('='))
                .cloned(),
        );
        let installs = run.name.split(' ').next() != Some("git")
            && INSTALLS
                .iter()
                .any(|verb| simple.words.iter().any(|w| w == verb));
        for pair in simple.words.windows(2) {
            if pair[0].starts_with('-') && !pair[0].contains('=') && !installs {
                values.push(&pair[1]);
            }
        }
    }
    difference
        .added
        .iter()
        .filter(|word| {
            wrappers.contains(word)
                || is_dotted_value(word)
                || !(word.starts_with(['-', '+'])
                    || verbs.contains(word)
                    || values.contains(&word.as_str())
                    || word.bytes().all(|b| b.is_ascii_digit()))
        })
        .collect()
}

/// `--settings=config.local`: an option whose value is a name of the project.
fn is_dotted_value(word: &str) -> bool {
    let value = word
        .split_once('=')
        .filter(|(option, _)| option.starts_with("--"));
    value.is_some_and(|(_, value)| {
        value.split('.').count() > 1
            && value
                .split('.')
                .all(|part| part.starts_with(char::is_alphabetic))
    })
}
