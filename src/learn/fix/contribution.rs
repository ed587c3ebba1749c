//! Which of the steps between a failure and its success contributed.
//!
//! A step contributes if it has to do with the error: it names what the error names, the file that
//! failed, or what the working call brought in. If the same call works later without any such step,
//! the last command that changed something is taken, but no edit: an unrelated edit is a
//! coincidence.

use crate::model::Step;

use super::difference::{Difference, tokens};
use super::subject::{names, subjects};
use super::{Failure, goal};
use crate::learn::goal::Kind;
use crate::learn::shell::basename;

/// Maximum number of contributing steps; the last ones count.
const MOST: usize = 3;

/// Subcommands that only show something.
const ASKS: &[&str] = &[
    "ps", "list", "ls", "status", "show", "get", "describe", "info", "inspect", "logs", "log",
    "version", "images", "help", "search", "view", "diff", "check", "outdated", "why", "tree",
    "verify", "validate", "lint", "test", "print", "dump", "cat",
];

/// Words that appear everywhere and relate nothing.
const COMMON: &[&str] = &[
    "error", "errors", "failed", "file", "line", "home", "work", "test", "tests", "main", "src",
    "lib", "code", "exit", "name", "path", "with", "from", "this", "that", "true", "false", "null",
    "none", "have", "find", "such", "directory", "python", "python3", "node", "node_modules",
    "index", "module", "import", "value", "type", "string", "data", "user", "users",
];

pub(super) fn contributing<'s>(
    changes: &[&'s Step],
    error: &Failure<'_>,
    own: &Difference,
    is_same_call: bool,
    code: &dyn Fn(&Step) -> String,
) -> Vec<&'s Step> {
    let related: Vec<&Step> = changes
        .iter()
        .copied()
        .filter(|step| is_related(step, error, own, is_same_call, code))
        .collect();
    if !related.is_empty() {
        return related[related.len().saturating_sub(MOST)..].to_vec();
    }
    if !is_same_call {
        return Vec::new();
    }
    let mut acts = changes.iter().rev().copied().filter(|step| acts(step));
    acts.next().into_iter().collect()
}

/// Returns `true` for a command that changes the environment: it installs, starts or creates.
fn acts(step: &Step) -> bool {
    let Kind::Shell(runs) = goal(step).kind else {
        return false;
    };
    runs.iter().any(|run| {
        let asks = run
            .name
            .split(' ')
            .chain(run.operands.iter().take(1).map(String::as_str));
        // `verify-commit` asks as `verify` does.
        let verb = |word: &str| word.split('-').next().unwrap_or_default().to_owned();
        if asks
            .into_iter()
            .any(|word| ASKS.contains(&verb(word).as_str()))
        {
            return false;
        }
        let first = run.name.split(' ').next().unwrap_or_default();
        !run.looks
            && !matches!(
                first,
                "git"
                    | "echo"
                    | "cd"
                    | "pwd"
                    | "date"
                    | "whoami"
                    | "sleep"
                    | "ls"
                    | "hostname"
                    | "uname"
                    | "id"
            )
    })
}

fn is_related(
    step: &Step,
    error: &Failure<'_>,
    own: &Difference,
    is_same_call: bool,
    code: &dyn Fn(&Step) -> String,
) -> bool {
    let goal = goal(step);
    if let Kind::Edit(paths, _) = &goal.kind {
        let named = paths.iter().map(|path| basename(path)).any(|file| {
            let brought_in = own.added.iter().any(|word| basename(word) == file);
            brought_in || is_same_call && (names(error.output, file) || names(error.call, file))
        });
        return named;
    }
    if !acts(step) {
        return false;
    }
    let said: Vec<String> = tokens(&code(step))
        .iter()
        .flat_map(|token| parts(token))
        .collect();
    let about = subjects(error.line);
    said.iter().any(|word| {
        about
            .iter()
            .any(|subject| basename(subject) == word || parts(subject).contains(word))
            || names(error.line, word)
            || is_same_call && names(error.output, word)
            || tokens(error.call)
                .iter()
                .any(|token| basename(token) == word && token.contains(['/', '.']))
            || own.added.iter().any(|added| basename(added) == word)
    })
}

/// Specific parts of a token.
fn parts(token: &str) -> Vec<String> {
    let token = token.to_ascii_lowercase();
    let mut all = vec![basename(&token).to_owned()];
    all.extend(token.split(['-', '_', '.', '/', '@']).map(str::to_owned));
    all.retain(|part| {
        part.len() > 2
            && !COMMON.contains(&part.as_str())
            && !part.bytes().all(|b| b.is_ascii_digit())
    });
    all
}
