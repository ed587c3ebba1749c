//! Fixes of one place: another path to read, a literal, an edit of code or data.
//!
//! A code edit is general only if it adds an argument, an import or a setting, which is how an API
//! is used. A renamed variable or a repaired bracket helps nobody else.

use crate::model::Step;

use super::difference::Difference;
use super::subject::names;
use super::{Failure, goal};
use crate::learn::goal::{Goal, Kind};
use crate::learn::recover::says_missing;
use crate::learn::shell::basename;
use crate::learn::shell_command::Run;

/// Maximum number of words that a general edit adds.
const MOST_ADDED: usize = 8;
/// Maximum number of words that a general call adds; more are a program of their own.
const MOST_WORDS: usize = 40;

/// Files that configure a tool. An edit of one is a convention of the project.
const SETTINGS: &[&str] = &[
    ".toml", ".yaml", ".yml", ".json", ".ini", ".cfg", ".conf", ".env", ".properties", ".gradle",
    ".kts", ".lock", ".mod", ".xml", ".cmake", ".mk", "makefile", "dockerfile", "gemfile",
    "rakefile", "procfile", "cmakelists.txt", "requirements.txt", ".gitignore", ".npmrc", ".tf",
    ".eslintrc", ".babelrc",
];

pub(super) fn is_one_off(
    failed: &Step,
    success: &Step,
    own: &Difference,
    is_same_call: bool,
    changes: &[&Step],
    error: &Failure<'_>,
) -> bool {
    // Without one of the changes the call might not have worked.
    if changes.iter().any(|step| is_local_edit(step, error)) {
        return true;
    }
    if is_same_call {
        return false;
    }
    if own.added.len() > MOST_WORDS {
        return true;
    }
    let (before, after) = (goal(failed), goal(success));
    // A search with another operand only found the place.
    let as_many = |goal: &Goal| match &goal.kind {
        Kind::Shell(runs) => runs.len(),
        _ => 1,
    };
    let goes_elsewhere = own.added.iter().any(|word| word == "cd" || word == "-C");
    if before.is_search()
        && after.is_search()
        && failed.tool == success.tool
        && as_many(&before) == as_many(&after)
        && !goes_elsewhere
    {
        let is_place = |word: &String| !word.starts_with('-');
        let structural = ["limit", "offset", "pages", "head_limit"];
        // The script of a query language is a call form, like an option.
        let queries = ["jq", "yq", "awk", "gawk"].contains(&before.name().as_str());
        if queries && !says_missing(error.output) {
            return false;
        }
        return !own.requoted
            && own.dropped.iter().chain(&own.added).all(is_place)
            && !own
                .added
                .iter()
                .any(|word| structural.contains(&word.as_str()))
            && !own.added.iter().any(|word| word.contains('\\'))
            && before.name() == after.name();
    }
    match (&before.kind, &after.kind) {
        (Kind::Shell(old), Kind::Shell(new)) => {
            let code = |runs: &[Run]| runs.last().is_some_and(|run| !run.code.is_empty());
            code(old) && code(new) || is_other_literal(own, error) || is_other_way(own, error)
        }
        (Kind::Edit(..), Kind::Edit(..)) if failed.tool == success.tool => !is_frame(own),
        (Kind::Tool(_), Kind::Tool(_)) if failed.tool == success.tool => {
            // Another value in the same fields is data.
            let names: Vec<&String> = success
                .input
                .as_object()
                .into_iter()
                .flat_map(serde_json::Map::keys)
                .collect();
            let fields = own.added.iter().chain(&own.dropped);
            !own.requoted
                && !fields.into_iter().any(|word| names.contains(&word))
                && !own
                    .added
                    .iter()
                    .any(|word| error.output.contains(word.as_str()))
        }
        _ => false,
    }
}

/// An edit that failed by its frame, such as the marks of a patch: the frame is part of the error.
fn is_frame(own: &Difference) -> bool {
    own.added
        .iter()
        .any(|word| word.contains("***") || word == "Begin" || word == "replace_all")
}

/// Returns `true` if the calls differ in literals only: quoted data, paths, addresses, numbers.
fn is_other_literal(own: &Difference, error: &Failure<'_>) -> bool {
    if own.requoted {
        return false;
    }
    let literal = |word: &String| {
        let is_path = (word.contains('/') || has_ending(word)) && !word.starts_with(['-', '@']);
        word.contains(' ')
            || word.contains("://")
            || is_path
            || word.bytes().all(|b| b.is_ascii_digit())
    };
    let slash = |word: &String| word.trim_end_matches('/').to_owned();
    let punctuation = own.added.len() == own.dropped.len()
        && own
            .added
            .iter()
            .zip(&own.dropped)
            .all(|(new, old)| slash(new) == slash(old));
    !punctuation
        && !own.dropped.is_empty()
        && own.added.iter().chain(&own.dropped).all(literal)
        && !own
            .added
            .iter()
            .any(|word| error.output.contains(word.as_str()))
}

/// Returns `true` if the working call has hardly a word of the failing one: it is another way to
/// another end. If the program itself is missing, any way is worth knowing.
fn is_other_way(own: &Difference, error: &Failure<'_>) -> bool {
    let all = super::difference::words(error.call);
    let kept = all.len().saturating_sub(own.dropped.len());
    let program = all.iter().find(|word| !word.contains('='));
    let is_missing = program.is_some_and(|program| names(error.line, basename(program)));
    !is_missing && all.len() > 2 && kept * 10 < all.len() * 3
}

fn has_ending(word: &str) -> bool {
    let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
    (1..=5).contains(&ending.len())
        && ending.chars().all(char::is_alphanumeric)
        && ending.chars().any(char::is_alphabetic)
}

/// Returns `true` if a change is an edit of code or data in one place.
fn is_local_edit(step: &Step, error: &Failure<'_>) -> bool {
    let paths = match goal(step).kind {
        Kind::Edit(paths, _) => paths,
        // A script, or an editor of streams with words of the code, edits one place too.
        Kind::Shell(runs) => {
            let script = |run: &Run| run.writes && run.operands.iter().any(|word| has_words(word));
            return runs
                .iter()
                .any(|run| !run.code.is_empty() || script(run) && run.name == "sed");
        }
        _ => return false,
    };
    let old = step
        .argument(&["old_string", "old_str"])
        .unwrap_or_default();
    let new = step
        .argument(&[
            "new_string", "new_str", "content", "file_text", "new_source",
        ])
        .unwrap_or_default();
    if new.lines().count() > 12 {
        return true;
    }
    let difference = Difference::between(
        &format!("Edit f\n+ {}", one_line(old)),
        &format!("Edit f\n+ {}", one_line(new)),
    );
    let settings = paths.iter().all(|path| {
        let name = basename(path).to_ascii_lowercase();
        SETTINGS.iter().any(|ending| name.ends_with(ending))
    });
    if settings {
        // A value that the error named is replaced, or a setting is added.
        let named = difference
            .dropped
            .iter()
            .any(|word| error.output.contains(word.as_str()));
        return !named && !difference.dropped.is_empty();
    }
    let added: Vec<&String> = difference
        .added
        .iter()
        .filter(|word| word.len() > 2)
        .collect();
    let keyword = added
        .iter()
        .any(|word| new.contains(&format!("{word}=")) && !new.contains(&format!("{word}==")));
    let import = ["import ", "from ", "use ", "#include", "require("]
        .iter()
        .any(|form| new.contains(form) && !old.contains(form));
    let is_small = (1..=MOST_ADDED).contains(&added.len());
    !(difference.dropped.is_empty() && is_small && (keyword || import))
}

/// Returns `true` if a pattern has words of its own: `s/count/size/`, but not `s/\r$//`.
fn has_words(pattern: &str) -> bool {
    pattern.starts_with("s/")
        && pattern[1..]
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| word.len() > 2)
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}
