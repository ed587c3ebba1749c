//! Conditions of a pattern on a command: text for people, runners and removed options, the whole line, and
//! commands that only look.

use memctl_shell::{Bare, Reading, Simple, basename};

use crate::rules::vocabulary::WORDS;

/// Options of a command that changes nothing and tests nothing.
const LOOKS: [&str; 15] = [
    "help", "version", "dry-run", "dryrun", "just-print", "recon", "question", "collect-only",
    "co", "list", "list-tests", "no-run", "what-if", "noop", "syntax-check",
];
/// Programs whose `-n` is a dry run, as is their `-q`.
const MAKERS: [&str; 4] = ["make", "gmake", "bmake", "ninja"];
/// Programs that run nothing from their operands.
const READERS: [&str; 49] = [
    "[", "ag", "awk", "bat", "batcat", "cat", "cd", "chmod", "chown", "code", "command", "cp",
    "curl", "diff", "echo", "egrep", "emacs", "fd", "file", "find", "gh", "git", "grep", "head",
    "jq", "less", "ls", "man", "mkdir", "more", "mv", "nano", "nl", "open", "printf", "rg", "rm",
    "sed", "shellcheck", "stat", "tail", "tee", "test", "touch", "type", "vi", "vim", "wc",
    "which",
];
/// Words of the shell that begin no command of their own.
const LOOPS: [&str; 5] = ["for", "while", "until", "case", "done"];

/// Returns the reading of a command that a pattern of a rule with these words is tried on. Only a pattern that
/// names the program, or a rule about messages, sees the text for people. An option in such text does not count.
pub(super) fn reading<'s>(simple: &'s Simple, rule: &str, pattern: &str) -> &'s Reading {
    // A search pattern is no subcommand.
    let is_kept = |word: &&String| {
        let silent = simple.silent.as_ref().map(|silent| silent.plain.as_str());
        let second = silent.and_then(|plain| plain.split_whitespace().nth(1));
        silent.is_none() || second == Some(word)
    };
    let program = simple.words.first();
    let subcommand = simple.words.get(1).filter(is_kept);
    let heads = program.into_iter().chain(subcommand);
    let mut heads = heads.map(|word| basename(word));
    let is_about = heads.any(|head| head.len() > 1 && names_word(pattern, head));
    let reading = if is_about || WORDS.messages.occur_in(&rule.to_lowercase()) {
        &simple.quiet
    } else {
        &simple.silent
    };
    reading.as_ref().unwrap_or(&simple.typed)
}

/// Returns `true` if a pattern names a program or a subcommand.
fn names_word(pattern: &str, word: &str) -> bool {
    let plain = [r"\b", r"\s", r"\S", r"\w"]
        .iter()
        .fold(pattern.to_owned(), |plain, escape| {
            plain.replace(escape, " ")
        });
    let plain = plain.replace('\\', "");
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    plain.split(|c| !is_part(c)).any(|one| one == word)
}

/// Returns `true` if a rule speaks of the removed options or runner of a command, or of the way to start a
/// program: it may demand the runner.
pub(super) fn names_taken(rule: &str, bare: &Bare) -> bool {
    if !bare.lacks_options && WORDS.directly.occur_in(&rule.to_lowercase()) {
        return true;
    }
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '+');
    let mut words = rule
        .split(|c: char| !is_part(c))
        .filter(|word| !word.is_empty());
    words.any(|word| {
        let is_same = |one: &String| match one.len() {
            // `-C` and `-c` are two options.
            ..3 => one == word,
            _ => one.eq_ignore_ascii_case(word),
        };
        bare.taken.iter().any(is_same)
    })
}

/// Returns `true` if a pattern may mean more than one command: only then it is tried with the whole line.
pub(super) fn spans_commands(pattern: &str) -> bool {
    const SIGNS: [&str; 8] = ["&", ";", "#", r"\n", r"\|\|", r"\S]", "(?s", "<<"];
    let in_class = pattern.split('[').skip(1).any(|class| {
        let class = class.split(']').next().unwrap_or_default();
        !class.starts_with('^') && class.contains('|')
    });
    in_class
        || SIGNS.iter().any(|sign| pattern.contains(sign))
        || LOOPS.iter().any(|word| names_word(pattern, word))
}

/// Returns `true` if a pattern speaks of a pipe.
pub(super) fn has_pipe(pattern: &str) -> bool {
    pattern.contains(r"\|") || pattern.contains("[|]")
}

/// Returns `true` if a command only asks for help, and the pattern does not speak of that.
pub(super) fn is_help(simple: &Simple, pattern: &str) -> bool {
    simple.words.iter().skip(1).any(|word| word == "--help") && !pattern.contains("help")
}

/// Returns `true` for a dry run of what a pattern names with its subcommand, unless the rule or the pattern speaks
/// of that. A rule about a program holds for its dry runs, too.
pub(super) fn is_rehearsal(simple: &Simple, rule: &str, pattern: &str) -> bool {
    let mut words = simple.words.iter().skip(1);
    let subcommand = words.clone().find(|word| !word.starts_with('-'));
    let is_dry = words.any(|word| word == "--dry-run" || word.starts_with("--dry-run="));
    is_dry
        && subcommand.is_some_and(|word| names_word(pattern, word))
        && ![rule, pattern]
            .iter()
            .any(|text| text.to_lowercase().contains("dry"))
}

/// Returns `true` if a command that a pattern matches did not do what the pattern says: a dry run, a list, or
/// a program that reads or moves what is named. A pattern that says so means it.
pub(super) fn only_looks(simple: &Simple, pattern: &str) -> bool {
    let Some((program, rest)) = simple.words.split_first() else {
        return false;
    };
    let program = basename(program);
    let dense = |text: &str| text.replace(|c: char| !c.is_alphanumeric(), "");
    let letters_of_pattern = dense(pattern);
    let is_dry = |word: &String| {
        let Some(letters) = word.strip_prefix('-') else {
            return false;
        };
        if let Some(long) = letters.strip_prefix('-') {
            let name = long.split('=').next().unwrap_or(long);
            LOOKS.contains(&name) && !letters_of_pattern.contains(&dense(name))
        } else {
            let is_flags = letters.chars().all(|c| "BSeiknqstw".contains(c));
            MAKERS.contains(&program)
                && is_flags
                && letters.contains(['n', 'q'])
                && !pattern.contains(word.as_str())
        }
    };
    READERS.contains(&program) && !names_word(pattern, program) || rest.iter().any(is_dry)
}

#[cfg(test)]
mod tests {
    use memctl_shell::commands;

    use super::*;

    #[test]
    fn a_look_is_told_from_a_run() {
        let check = |line: &str, after: &str, expected: bool| {
            assert_eq!(
                only_looks(&commands(line)[0], after),
                expected,
                "{line}: {after}"
            );
        };
        check("make lint", "^make lint", false);
        check("make -j4 -k lint", "^make lint", false);
        check("make -kn lint", "^make lint", true);
        check("tox --list", "^tox", true);
        check("tox --help", "^tox", true);
        check("shipit plan --dry-run=client", "^shipit plan", true);
        check(
            "shipit plan --dry-run",
            r"^shipit plan.*--dry[_-]run",
            false,
        );
        check("vim bin/probe.sh", r"bin/probe\.sh", true);
        check("git add bin/probe.sh", r"bin/probe\.sh", true);
        check("git fetch", r"^git fetch\b", false);
        check("bin/probe.sh", r"bin/probe\.sh", false);
    }

    #[test]
    fn a_pattern_of_one_command_is_told_from_one_of_several() {
        let check = |pattern: &str, expected: bool| {
            assert_eq!(spans_commands(pattern), expected, "{pattern}");
        };
        check(r"^kubectl\b.*-n live\b", false);
        check(r"^(a|b)\b[^|;&]*c", true);
        check(r"^curl.*\|\s*sh", false);
        check("a && b", true);
        check("[;|]", true);
        check(r"^for\b", true);
    }
}
