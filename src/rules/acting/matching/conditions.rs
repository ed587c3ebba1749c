//! Conditions of a pattern on a command: text for people, runners and removed options, the whole line, and
//! commands that only look.

use memctl_shell::{Bare, Reading, Simple, basename, shows_help};

use crate::rules::vocabulary::WORDS;

/// Options of a command that changes nothing, by their letters: `--dry-run`, `--dryrun`.
const REHEARSALS: [&str; 6] = ["dryrun", "justprint", "noop", "recon", "simulate", "whatif"];
/// Other options of a command that tests nothing.
const LOOKS: [&str; 8] = [
    "version", "question", "collectonly", "co", "list", "listtests", "norun", "syntaxcheck",
];
/// Programs whose `-n` is a dry run, as is their `-q`.
const MAKERS: [&str; 4] = ["make", "gmake", "bmake", "ninja"];
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

/// Returns `true` if a rule speaks of the removed options or runner of a command.
pub(super) fn names_taken(rule: &str, bare: &Bare) -> bool {
    let program = bare
        .forms
        .first()
        .and_then(|form| form.split_whitespace().next());
    let is_same = |word: &str, one: &String| match one.len() {
        // `-C` and `-c` are two options.
        ..3 => one == word,
        _ => one.eq_ignore_ascii_case(word),
    };
    words_of(rule).any(|word| bare.taken.iter().any(|one| is_same(word, one)))
        || wants_runner(rule, &bare.runners, program.unwrap_or_default())
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '+');
    text.split(move |c: char| !is_part(c))
        .filter(|word| !word.is_empty())
}

/// Returns `true` if a rule wants a program behind this runner, or speaks of the way to start it. A runner of
/// another program does not count: "no black; format with uv run ruff" says nothing of `uv run black`.
pub(super) fn wants_runner(rule: &str, runners: &[String], program: &str) -> bool {
    if runners.is_empty() {
        return false;
    }
    let lower = rule.to_lowercase();
    let is_runner = |word: &str| runners.iter().any(|runner| runner == word);
    let is_of_program = |clause: &str| {
        // Text up to a quotation mark is the whole command.
        let closed = clause.replace(['`', '"', '\''], " \u{1} ");
        let words: Vec<&str> = closed
            .split_whitespace()
            .map(|word| word.trim_matches(['(', ')', '.']))
            .collect();
        let mut places = words.iter().enumerate().filter(|(_, word)| is_runner(word));
        places.any(|(at, word)| {
            let mut behind = words[at + 1..].iter();
            let next = behind.find(|word| !RUNS.contains(word) && !word.starts_with('-'));
            let is_other = |next: &&str| {
                let next = next.split('@').next().unwrap_or_default();
                next != program && next != "\u{1}" && !WORDS.english.contains(next)
            };
            // These are no programs that run another one.
            word.starts_with("container")
                || !next.is_some_and(is_other)
                || words[..at].contains(&program)
        })
    };
    WORDS.environments.occur_in(&lower) || clauses(&lower).any(is_of_program)
}

/// Subcommands of runners, between a runner and its command.
const RUNS: [&str; 7] = ["compose", "dlx", "exec", "run", "tool", "workspace", "x"];

fn clauses(text: &str) -> impl Iterator<Item = &str> {
    let sentences = text.split(". ");
    sentences
        .flat_map(|sentence| sentence.split([',', ';', ':', '\u{3001}', '\u{3002}', '\u{ff0c}']))
}

/// Returns `true` if a pattern may mean more than one command: only then it is tried with the whole line.
pub(super) fn spans_commands(pattern: &str) -> bool {
    const SIGNS: [&str; 6] = ["&", ";", r"\n", r"\|\|", "(?s", "<<"];
    let (plain, classes) = without_classes(pattern);
    // A class of operators alone stands between two commands. Among others they end a word: `[\s;]`.
    let separates = |class: &String| {
        let class = class.replace(r"\n", ";");
        class.chars().all(|c| matches!(c, '&' | ';' | '|' | ' '))
    };
    classes.iter().any(separates)
        || pattern.contains(r"\S]")
        || SIGNS.iter().any(|sign| plain.contains(sign))
        || LOOPS.iter().any(|word| names_word(pattern, word))
}

/// Splits a pattern into what stands outside of its classes, and their insides.
fn without_classes(pattern: &str) -> (String, Vec<String>) {
    let (mut plain, mut classes) = (String::new(), Vec::new());
    let mut class: Option<String> = None;
    let mut is_escaped = false;
    for c in pattern.chars() {
        match &mut class {
            Some(inside) if c == ']' && !is_escaped && !matches!(inside.as_str(), "" | "^") => {
                classes.extend(class.take());
            }
            Some(inside) => inside.push(c),
            None if c == '[' && !is_escaped => class = Some(String::new()),
            None => plain.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    (plain, classes)
}

/// Returns `true` if a pattern speaks of a pipe.
pub(super) fn has_pipe(pattern: &str) -> bool {
    pattern.contains(r"\|") || pattern.contains("[|]")
}

/// Returns `true` if a command only asks for help, and the pattern does not speak of that.
pub(super) fn is_help(simple: &Simple, pattern: &str) -> bool {
    // `help` and what the pattern is about: `shipit help release`.
    let is_about = match simple.words.as_slice() {
        [_, help, about, ..] => help == "help" && names_word(pattern, about),
        _ => false,
    };
    (is_about || shows_help(&simple.words))
        && !pattern.contains("help")
        && !pattern.contains("version")
}

/// Returns `true` for a dry run of what a pattern names with a subcommand, unless the rule or the pattern speaks
/// of that. A rule about a program holds for its dry runs, too.
pub(super) fn is_rehearsal(simple: &Simple, rule: &str, pattern: &str) -> bool {
    let words = || simple.words.iter().skip(1);
    let is_dry = |word: &String| {
        let name = word.split('=').next().unwrap_or_default();
        word.starts_with("--") && REHEARSALS.contains(&dense(name).as_str())
    };
    words().any(is_dry)
        && words().any(|word| names_word(pattern, word))
        && ![rule, pattern]
            .iter()
            .any(|text| text.to_lowercase().contains("dry"))
}

/// Letters and digits of a text.
fn dense(text: &str) -> String {
    text.replace(|c: char| !c.is_alphanumeric(), "")
}

/// Returns `true` if a command that a pattern matches did not do what the pattern says: a dry run, a list, or
/// a program that reads or moves what is named. A pattern that says so means it.
pub(super) fn only_looks(simple: &Simple, pattern: &str) -> bool {
    let Some((program, rest)) = simple.words.split_first() else {
        return false;
    };
    let program = basename(program);
    let letters_of_pattern = dense(pattern);
    let is_dry = |word: &String| {
        let Some(letters) = word.strip_prefix('-') else {
            return false;
        };
        if let Some(long) = letters.strip_prefix('-') {
            let name = dense(long.split('=').next().unwrap_or(long));
            let is_look = LOOKS.contains(&name.as_str()) || REHEARSALS.contains(&name.as_str());
            is_look && !letters_of_pattern.contains(&name)
        } else {
            let is_flags = letters.chars().all(|c| "BSeiknqstw".contains(c));
            MAKERS.contains(&program)
                && is_flags
                && letters.contains(['n', 'q'])
                && !pattern.contains(word.as_str())
        }
    };
    WORDS.readers.contains(program) && !names_word(pattern, program)
        || is_help(simple, pattern)
        || rest.iter().any(is_dry)
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
        check("terraform plan -help", "^terraform plan", true);
        check("shipit help plan", r"^shipit\b.*plan", true);
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
    fn a_runner_counts_if_the_rule_wants_the_program_behind_it() {
        let check = |rule: &str, line: &str, expected: bool| {
            let bare = commands(line)[0].typed.bare.pop().unwrap();
            assert_eq!(names_taken(rule, &bare), expected, "{rule}: {line}");
        };
        let line = "uv run spellcheck a";
        check("Never spellcheck; use uv run spellfix on it.", line, false);
        check("No spellcheck. Add it with `uv add`.", line, false);
        check("Only bare spellcheck, with two files.", line, false);
        check("Use `uv run`, never spellcheck alone.", line, true);
        check("Run spellcheck via uv please.", line, true);
        check("Use uv run spellcheck.", line, true);
        check("Start it with uv, and never so.", line, true);
        check("spellcheck only from the venv", line, true);
        let line = "docker compose exec web spellcheck";
        check("In the web container run spellcheck.", line, true);
        check("Start with docker compose up, not spellcheck.", line, false);
    }

    #[test]
    fn a_pattern_of_one_command_is_told_from_one_of_several() {
        let check = |pattern: &str, expected: bool| {
            assert_eq!(spans_commands(pattern), expected, "{pattern}");
        };
        check(r"^kubectl\b.*-n live\b", false);
        check(r"^(a|b)\b[^|;&]*c", false);
        check(r"(^|[\s/])\.env([\s;&]|$)", false);
        check(r"^a[]|;]b", false);
        check(r"a\s*[;&\n]+\s*b", true);
        check(r"^curl.*\|\s*sh", false);
        check("a && b", true);
        check("[;|]", true);
        check(r"^for\b", true);
    }
}
