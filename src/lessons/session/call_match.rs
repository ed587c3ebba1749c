//! Checks if a command in a text occurs among the calls of a session.
//!
//! Both sides are reduced to simple commands: chains, pipes, assignments, wrappers, `cd` and quotes are
//! removed. The call must have the words of the written command in this order; the last one may be the
//! beginning of a word. A template part (`<file>`, `…`, `*`, `FILE`) matches anything, and `~` any home
//! directory. In the prose of a lesson, only programs, subcommands, options and variables must have occurred:
//! operands vary there.
//!
//! Deliberately absent: what a command does, and whether it is safe.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::lessons::call::{Globs, Simple, commands, wrapped};
use memctl_shell::basename;
use regex_lite::Regex;

use super::calls::SessionCall;
use crate::lessons::failure::without_home;
use crate::lessons::vocabulary::WORDS;
use crate::model::text::{one_line, regex};

/// A call with its simple commands.
#[derive(Debug)]
pub(crate) struct PeeledCall<'a> {
    /// Tool of the agent host.
    tool: &'a str,
    /// Whole command line, with `~` for home directories; empty for another tool.
    line: String,
    /// Words of each simple command.
    simples: Vec<Vec<String>>,
    /// Occurrence of each of its commands.
    occurrence: Occurrence,
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

/// Peels the calls of a session.
pub(crate) fn peeled(calls: &[SessionCall]) -> Vec<PeeledCall<'_>> {
    let peeled = calls.iter().map(|call| {
        let line = without_home(call.command().unwrap_or_default());
        PeeledCall {
            tool: &call.tool,
            simples: commands(&line).into_iter().flat_map(forms).collect(),
            line,
            occurrence: if call.failed {
                Occurrence::Failed
            } else {
                Occurrence::Worked
            },
        }
    });
    peeled.collect()
}

/// Words of a simple command, and those of what a runner of modules or programs runs.
fn forms(simple: Simple) -> Vec<Vec<String>> {
    let mut forms: Vec<Vec<String>> = wrapped(&simple.words).into_iter().collect();
    forms.push(simple.words);
    forms
}

/// Returns the best occurrence of a written beginning of a command, or of a tool. Of a chain, each part
/// must occur.
pub(crate) fn occurrence(written: &str, calls: &[PeeledCall<'_>]) -> Occurrence {
    let written = written.trim();
    let of_tool = calls.iter().filter(|call| is_tool(written, call.tool));
    if let Some(found) = of_tool.map(|call| call.occurrence).max() {
        return found;
    }
    let parts: Vec<Vec<Vec<String>>> = commands(&without_angles(written))
        .into_iter()
        .map(forms)
        .collect();
    let goes_around = |forms: &&Vec<Vec<String>>| forms.iter().all(|words| is_around(words));
    let is_only_around = parts.iter().all(|forms| goes_around(&forms));
    let parts = parts
        .iter()
        .filter(|forms| is_only_around || !goes_around(forms));
    let best = |forms: &Vec<Vec<String>>| {
        let found = forms.iter().map(|words| of_simple(words, calls));
        found.max().unwrap_or(Occurrence::Nowhere)
    };
    let found = parts.map(best).min().unwrap_or(Occurrence::Nowhere);
    if found > Occurrence::Nowhere && !assignments_occur(written, calls) {
        return Occurrence::Nowhere;
    }
    found
}

/// Returns `true` if a shell line runs what somebody wrote, apart from moving about, with any text for its
/// templates. The last word may be the beginning of one, unless the words are whole.
pub(crate) fn occurs(written: &str, line: &str, is_whole: bool) -> bool {
    let own: Vec<Vec<String>> = commands(line).into_iter().flat_map(forms).collect();
    let mut written = commands(&without_angles(written));
    written.retain(|one| !is_around(&one.words));
    let is_run = |one: &Simple| own.iter().any(|words| begins(&one.words, words, is_whole));
    !written.is_empty() && written.iter().all(is_run)
}

/// Returns `true` if a command of a call is a part of what somebody wrote, apart from moving about.
pub(crate) fn is_part(written: &str, own: &Simple, is_whole: bool) -> bool {
    let parts = commands(&without_angles(written));
    let mut parts = parts.iter().filter(|part| !is_around(&part.words));
    parts.any(|part| runs_as(part, own, is_whole))
}

/// Returns `true` if a command of a call, or what it runs, is a written one.
pub(crate) fn runs_as(written: &Simple, own: &Simple, is_whole: bool) -> bool {
    let run = wrapped(&own.words);
    let mut forms = run.iter().chain([&own.words]);
    forms.any(|words| begins(&written.words, words, is_whole))
}

/// Returns `true` if quotes in a line keep from the shell what somebody wrote as a pattern of files.
pub(crate) fn quotes_a_glob(written: &str, line: &str) -> bool {
    let (own, globs) = (Globs::of(&without_angles(written)), Globs::of(line));
    is_only_in(&own.open, &globs.quoted, &globs.open)
}

/// Returns `true` if a line lets the shell look for files where somebody wrote quotes.
pub(crate) fn opens_a_glob(written: &str, line: &str) -> bool {
    let (own, globs) = (Globs::of(&without_angles(written)), Globs::of(line));
    is_only_in(&own.quoted, &globs.open, &globs.quoted)
}

fn is_only_in(written: &[String], these: &[String], others: &[String]) -> bool {
    let is_in = |word: &str, words: &[String]| words.iter().any(|actual| is_like(word, actual));
    let mut written = written.iter();
    written.any(|word| is_in(word, these) && !is_in(word, others))
}

/// Returns the occurrence of a command in the prose of a lesson.
///
/// # Errors
///
/// Returns the part that no call of its program has: a subcommand, an option, a variable.
pub(crate) fn in_prose(written: &str, calls: &[PeeledCall<'_>]) -> Result<Occurrence, String> {
    let mut best = Occurrence::Nowhere;
    for simple in commands(&without_angles(written)) {
        let Some(program) = simple.words.first().map(|word| basename(word)) else {
            continue;
        };
        let of_program: Vec<(&PeeledCall<'_>, &Vec<String>)> = calls
            .iter()
            .flat_map(|call| call.simples.iter().map(move |words| (call, words)))
            .filter(|(_, words)| words.first().is_some_and(|word| basename(word) == program))
            .collect();
        if of_program.is_empty() {
            continue;
        }
        let has = |part: &str| {
            let part = name_of_option(part);
            let mut words = of_program
                .iter()
                .flat_map(|(_, words)| words.iter().skip(1));
            let is_open = |word: &str| !part.starts_with('-') && is_like(part, word);
            words.any(|word| name_of_option(word) == part || is_open(word))
        };
        let is_option = |word: &&String| {
            word.starts_with('-') && word.contains(char::is_alphabetic) && !is_template(word)
        };
        let subcommand = simple.words.get(1).filter(|word| {
            WORDS.layered.contains(program) && word.starts_with(|c: char| c.is_ascii_lowercase())
        });
        // Words after `--` are no options.
        let options = simple.words[1..].iter().take_while(|word| *word != "--");
        let mut parts = subcommand.into_iter().chain(options.filter(is_option));
        if let Some(part) = parts.find(|part| !has(part)) {
            return Err(part.clone());
        }
        let found = of_program.iter().map(|(call, _)| call.occurrence).max();
        best = best.max(found.unwrap_or(Occurrence::Nowhere));
    }
    if best > Occurrence::Nowhere && !assignments_occur(written, calls) {
        return Err("the variable".to_owned());
    }
    Ok(best)
}

/// Name of an option without its value.
fn name_of_option(word: &str) -> &str {
    if word.starts_with('-') {
        word.split_once('=').map_or(word, |(name, _)| name)
    } else {
        word
    }
}

/// Returns `true` if a written word names the tool of a call, also without the name of its server.
fn is_tool(written: &str, tool: &str) -> bool {
    let short = tool.rsplit("__").next().unwrap_or(tool);
    !written.is_empty() && (written == tool || written == short)
}

/// Replaces each `<name>` by `…`: a shell would read it as redirections.
pub(crate) fn without_angles(line: &str) -> Cow<'_, str> {
    static NAME: LazyLock<Regex> = LazyLock::new(|| regex(r"<[^<>|;&(\n /.][^<>|;&(\n]{0,47}>"));
    NAME.replace_all(line, "…")
}

fn is_around(words: &[String]) -> bool {
    let program = words.first().map_or("", |word| basename(word));
    WORDS.around.contains(program)
}

fn of_simple(written: &[String], calls: &[PeeledCall<'_>]) -> Occurrence {
    let has = |call: &&PeeledCall<'_>| {
        let mut simples = call.simples.iter();
        simples.any(|words| begins(written, words, false))
    };
    let found = calls.iter().filter(has).map(|call| call.occurrence);
    found.max().unwrap_or(Occurrence::Nowhere)
}

/// Returns `true` if the words of a call contain the written ones in their order, and both have the
/// same program. The last word may be the beginning of one, unless the words are whole.
fn begins(written: &[String], words: &[String], is_whole: bool) -> bool {
    let (Some((program, written)), Some((run, words))) =
        (written.split_first(), words.split_first())
    else {
        return false;
    };
    let program = basename(program);
    if !program.contains(char::is_alphanumeric) || !is_like(program, basename(run)) {
        return false;
    }
    let is_open = written.last().is_some_and(|word| is_template(word));
    let written: Vec<&String> = written.iter().filter(|word| !is_template(word)).collect();
    let last = written.len().saturating_sub(1);
    // A program in quotes has lines, and is written in one.
    let mut rest = words.iter();
    written.iter().enumerate().all(|(at, word)| {
        // The `--` before a template ends the options: it begins none.
        let is_last = at == last && !is_whole && !(is_open && *word == "--");
        let is_begun = |actual: &str| {
            let begun = || is_like(&format!("{word}…"), actual);
            is_last && (one_line(actual).starts_with(&one_line(word)) || begun())
        };
        rest.any(|actual| is_like(word, actual) || is_begun(actual))
    })
}

/// Returns `true` for a word that stands for anything: `<file>`, `…`, `[args]`, `FILE`.
fn is_template(word: &str) -> bool {
    let word = word.trim_matches(['"', '\'', ',', ';']);
    let is_bracketed = |open, close| word.starts_with(open) && word.ends_with(close);
    let is_capital = !word.starts_with('-')
        && word.chars().any(|c| c.is_ascii_uppercase())
        && word
            .chars()
            .all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '-' | '.'));
    word.is_empty()
        || !matches!(word, "." | "..") && word.chars().all(|c| matches!(c, '.' | '…' | '*'))
        || is_bracketed('<', '>')
        || is_bracketed('[', ']')
        || is_bracketed('{', '}')
        || is_capital
}

/// Returns `true` if a word is the other one, with any text for `<…>`, `…`, `...`, `{…}` and `*`. A text that makes an
/// option or a path above of it does not count.
fn is_like(word: &str, actual: &str) -> bool {
    if word == actual {
        return true;
    }
    let Some(pieces) = pieces(word) else {
        return false;
    };
    if pieces[0].is_empty() && (actual.starts_with('-') || actual.starts_with("../")) {
        return false;
    }
    let mut rest = actual;
    for (at, &piece) in pieces.iter().enumerate() {
        let found = if at == 0 {
            rest.strip_prefix(piece)
        } else if at + 1 == pieces.len() {
            return rest.ends_with(piece);
        } else {
            rest.find(piece).map(|place| &rest[place + piece.len()..])
        };
        match found {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

/// Fixed pieces around the template parts of a word; `None` if it has none. A word in capitals stands for anything,
/// but not in an option.
fn pieces(word: &str) -> Option<Vec<&str>> {
    static TEMPLATES: LazyLock<[Regex; 2]> = LazyLock::new(|| {
        let marks = r"<[^>]*>|\{[^}]*\}|…|\*|\.\.\.";
        [regex(marks), regex(&format!(r"{marks}|\b[A-Z][A-Z_]*\b"))]
    });
    let [of_option, of_word] = &*TEMPLATES;
    let template = if word.starts_with('-') {
        of_option
    } else {
        of_word
    };
    let pieces: Vec<&str> = template.split(word).collect();
    (pieces.len() > 1).then_some(pieces)
}

/// Returns `true` if a call has each assignment of the written command.
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
        let Some((name, value)) = word.split_once('=') else {
            return false;
        };
        of_calls.any(|actual| {
            let actual = actual.trim_matches(['"', '\'']).split_once('=');
            actual
                .is_some_and(|(set, to)| set == name && (is_template(value) || is_like(value, to)))
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
        check("BUILD_EPOCH=0 tools/build BUNDLE", Occurrence::Worked);
        check("cd app", Occurrence::Worked);
        check("cd elsewhere", Occurrence::Nowhere);
        check("git comm", Occurrence::Worked);
        check("make db", Occurrence::Worked);
        check("Bash", Occurrence::Worked);
        check("", Occurrence::Nowhere);
        // Nobody writes the home directory of a person into a lesson.
        let calls = [call("ls -1 /Users/ann/code/shop/docs", false)];
        let found = occurrence("ls -1 ~/code/shop", &super::peeled(&calls));
        assert_eq!(found, Occurrence::Worked);
        // A script is what its interpreter runs.
        let calls = [call("OBS_EPOCH=J2000 sh checks/run messier", false)];
        for written in [
            "checks/run",
            "sh checks/run",
            "OBS_EPOCH=J2000 checks/run <name>",
        ] {
            let found = occurrence(written, &super::peeled(&calls));
            assert_eq!(found, Occurrence::Worked, "{written}");
        }
    }

    #[test]
    fn prose_may_generalise_and_not_invent() {
        let calls = [
            call("gh api repos/a/b/pulls/12 -f body=\"x\"", false),
            call("git log --oneline --max-count=3", false),
            call("rg -n 'x' src", true),
        ];
        let peeled = peeled(&calls);
        let check = |written: &str, expected: Result<Occurrence, &str>| {
            let found = in_prose(written, &peeled);
            assert_eq!(found, expected.map_err(str::to_owned), "{written}");
        };
        check(
            "gh api repos/OWNER/REPO/pulls/N -f body=\"$body\"",
            Ok(Occurrence::Worked),
        );
        check("gh api -X PATCH repos/O/R", Err("-X"));
        check("gh pr view", Err("pr"));
        check("git log --max-count=9", Ok(Occurrence::Worked));
        check("rg -n -- <pattern>", Ok(Occurrence::Failed));
        check("rg -n -- \"--x|<more>\" src", Ok(Occurrence::Failed));
        check("migrations/*.sql", Ok(Occurrence::Nowhere));
        check("GH_TOKEN=<token> gh api repos/x", Err("the variable"));
    }
}
