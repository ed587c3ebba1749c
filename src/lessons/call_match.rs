//! Does a command that somebody wrote occur among the calls of a session?
//!
//! Both sides are peeled: chains, pipes, assignments, wrappers, `cd` and quotes. A word of the written
//! command must stand in the call, in this order; a template part (`<file>`, `…`, `*`, `FILE` beside
//! other words) stands for anything. So a beginning is enough, and an invented option is noticed.
//!
//! Deliberately absent: what a command does, and whether it is safe.

use crate::learn::shell::{Simple, basename, commands};
use crate::learn::shell_command::{AROUND, wrapped};

use super::session_calls::SessionCall;

/// Maximum length of a name between `<` and `>`, in bytes.
const LONGEST_NAME: usize = 48;

/// A call with its simple commands.
#[derive(Debug)]
pub(crate) struct PeeledCall<'a> {
    /// Whole command line.
    line: &'a str,
    /// Words of each simple command.
    simples: Vec<Vec<String>>,
    /// The call failed.
    failed: bool,
}

/// Occurrence of a written command in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Occurrence {
    /// In no call.
    Nowhere,
    /// In failing calls only.
    Failed,
    /// In a call that worked.
    Worked,
}

/// Peels the commands of a session.
pub(crate) fn peeled(calls: &[SessionCall]) -> Vec<PeeledCall<'_>> {
    let commands = calls.iter().filter_map(|call| {
        let line = call.command()?;
        Some(PeeledCall {
            line,
            simples: simples(line),
            failed: call.failed,
        })
    });
    commands.collect()
}

/// Returns the best occurrence of a written command. Of a chain, each part must occur.
pub(crate) fn occurrence(written: &str, calls: &[PeeledCall<'_>]) -> Occurrence {
    let parts = simples(written);
    let parts = parts.iter().filter(|words| !is_around(words));
    let found = parts.map(|words| of_simple(words, calls)).min();
    let found = found.unwrap_or(Occurrence::Nowhere);
    if found > Occurrence::Nowhere && !assignments_occur(written, calls) {
        return Occurrence::Nowhere;
    }
    found
}

/// Returns `true` if a written text begins with the program of a call: it is meant as a command.
pub(crate) fn names_program(written: &str, calls: &[PeeledCall<'_>]) -> bool {
    let parts = simples(written);
    let Some(program) = parts.first().and_then(|words| words.first()) else {
        return false;
    };
    let all = calls.iter().flat_map(|call| &call.simples);
    let mut programs = all.filter_map(|words| words.first());
    programs.any(|known| basename(known) == basename(program))
}

/// Returns the simple commands of a line, without those that only go around others. A runner of
/// modules or programs is peeled too.
fn simples(line: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for Simple { words, .. } in commands(&without_angles(line)) {
        all.extend(wrapped(&words));
        all.push(words);
    }
    all
}

/// Replaces each `<name>` by `…`: a shell would read it as redirections.
fn without_angles(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('<') {
        let inner = &rest[at + 1..];
        let end = inner.find('>').filter(|end| {
            let name = &inner[..*end];
            !name.is_empty()
                && name.len() <= LONGEST_NAME
                && !name.contains(['<', '|', ';', '&', '(', '\n'])
                && !name.starts_with([' ', '/', '.'])
        });
        plain.push_str(&rest[..at]);
        match end {
            Some(end) => {
                plain.push('…');
                rest = &inner[end + 1..];
            }
            None => {
                plain.push('<');
                rest = inner;
            }
        }
    }
    plain + rest
}

fn is_around(words: &[String]) -> bool {
    let program = words.first().map_or("", |word| basename(word));
    AROUND.contains(&program)
}

fn of_simple(written: &[String], calls: &[PeeledCall<'_>]) -> Occurrence {
    let found = calls
        .iter()
        .filter(|call| call.simples.iter().any(|words| begins(written, words)))
        .map(|call| {
            if call.failed {
                Occurrence::Failed
            } else {
                Occurrence::Worked
            }
        });
    found.max().unwrap_or(Occurrence::Nowhere)
}

/// Returns `true` if the words of a call contain the written ones in their order, and both have the
/// same program.
fn begins(written: &[String], words: &[String]) -> bool {
    let (Some((program, written)), Some((run, words))) =
        (written.split_first(), words.split_first())
    else {
        return false;
    };
    if !is_like(basename(program), basename(run)) {
        return false;
    }
    let mut rest = words.iter();
    written
        .iter()
        .filter(|word| !is_template(word))
        .all(|word| rest.any(|actual| is_like(word, actual)))
}

/// Returns `true` for a word that stands for anything: `<file>`, `…`, `[args]`, `FILE`.
fn is_template(word: &str) -> bool {
    let word = word.trim_matches(['"', '\'', ',', ';']);
    let is_bracketed = |open, close| word.starts_with(open) && word.ends_with(close);
    let is_capital = word.len() > 1
        && word.chars().any(|c| c.is_ascii_uppercase())
        && word
            .chars()
            .all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '-' | '.'));
    word.is_empty()
        || word.chars().all(|c| matches!(c, '.' | '…' | '*'))
        || is_bracketed('<', '>')
        || is_bracketed('[', ']')
        || is_bracketed('{', '}')
        || is_capital
}

/// Returns `true` if a word is the other one, with any text for `<…>`, `…`, `...`, `{…}` and `*`.
fn is_like(word: &str, actual: &str) -> bool {
    if word == actual {
        return true;
    }
    let Some(pieces) = pieces(word) else {
        return false;
    };
    let mut rest = actual;
    for (at, piece) in pieces.iter().enumerate() {
        let found = if at == 0 {
            rest.strip_prefix(piece.as_str())
        } else if at + 1 == pieces.len() {
            return rest.ends_with(piece.as_str());
        } else {
            rest.find(piece.as_str())
                .map(|place| &rest[place + piece.len()..])
        };
        match found {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

/// Fixed pieces around the template parts of a word; `None` if it has none.
fn pieces(word: &str) -> Option<Vec<String>> {
    let mut pieces = vec![String::new()];
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '<' => rest.find('>').map(|end| end + 1),
            '{' => rest.find('}').map(|end| end + 1),
            '…' | '*' => Some(c.len_utf8()),
            '.' if rest.starts_with("...") => Some(3),
            _ => None,
        };
        match length {
            Some(length) => {
                pieces.push(String::new());
                rest = &rest[length..];
            }
            None => {
                if let Some(last) = pieces.last_mut() {
                    last.push(c);
                }
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    (pieces.len() > 1).then_some(pieces)
}

/// Returns `true` if each assignment of the written command stands in a call.
fn assignments_occur(written: &str, calls: &[PeeledCall<'_>]) -> bool {
    let written = without_angles(written);
    let words = written.split_whitespace();
    let mut assignments = words.filter(|word| {
        word.split_once('=').is_some_and(|(name, _)| {
            name.starts_with(|c: char| c.is_ascii_uppercase())
                && name
                    .chars()
                    .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        })
    });
    assignments.all(|word| {
        let mut of_calls = calls.iter().flat_map(|call| call.line.split_whitespace());
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        let is_open = word
            .split_once('=')
            .is_some_and(|(_, value)| is_template(value));
        of_calls.any(|actual| {
            let actual = actual.trim_matches(['"', '\'']);
            is_like(word, actual)
                || is_open && actual.split_once('=').is_some_and(|(set, _)| set == name)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(command: &str, failed: bool) -> SessionCall {
        SessionCall::new(Some("Bash"), command, "", failed)
    }

    #[test]
    fn a_written_command_is_found_as_it_ran() {
        let calls = [
            call(
                "cd app && PYTHONPATH=src bin/py -m pytest -p shop.testing tests/test_cart.py -q",
                false,
            ),
            call("python3 -m pytest tests", true),
            call("make db-up && SHOP_TENANT=main ./shopctl migrate", false),
            call("git commit -m \"SHOP-12: add a column\"", false),
            call(
                "BUILD_EPOCH=0 timeout 60 tools/build web 2>&1 | tail -3",
                false,
            ),
        ];
        let peeled = peeled(&calls);
        let check = |written: &str, expected| {
            assert_eq!(occurrence(written, &peeled), expected, "{written}");
        };
        check(
            "PYTHONPATH=src bin/py -m pytest -p shop.testing tests/<file>",
            Occurrence::Worked,
        );
        check("bin/py -m pytest", Occurrence::Worked);
        check("pytest", Occurrence::Failed);
        check("python3 -m pytest", Occurrence::Failed);
        check("PYTHONPATH=lib bin/py -m pytest", Occurrence::Nowhere);
        check("bin/py -m pytest --fast", Occurrence::Nowhere);
        check(
            "make db-up && SHOP_TENANT=main ./shopctl migrate",
            Occurrence::Worked,
        );
        check("SHOP_TENANT=<tenant> ./shopctl migrate", Occurrence::Worked);
        check("./shopctl rows", Occurrence::Nowhere);
        check(
            "git commit -m \"SHOP-<number>: <text>\"",
            Occurrence::Worked,
        );
        check(
            "git commit -m \"ABC-<number>: <text>\"",
            Occurrence::Nowhere,
        );
        check("BUILD_EPOCH=0 tools/build BUNDLE", Occurrence::Worked);
        check("cd app", Occurrence::Nowhere);
        check("", Occurrence::Nowhere);
        assert!(names_program("./shopctl rows", &peeled));
        assert!(!names_program("migrations/*.sql", &peeled));
    }
}
