//! Layers before the program of a command: assignments, words of the shell, and programs that run
//! another one.
//!
//! `uv run`, `npx` and `docker exec` are no layers: a rule may be about them.

use std::ops::Range;

use super::peel::{basename, is_shell};
use super::shell_scan::Word;

/// Kind of the beginning of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Number of words that only surround the command behind them.
    Dropped(usize),
    /// A program that runs lines of a shell.
    Lines(Vec<String>),
    /// A program that runs commands within its words.
    Commands(Vec<Range<usize>>),
    /// The program itself.
    Program,
    /// No command: the head of a loop.
    Nothing,
}

/// Options with an argument of their own, by program.
const WITH_ARGUMENT: &[(&str, &str)] = &[
    (
        "sudo",
        "-u -g -h -p -C -T -R -D -r -t -U --user --group --host --prompt --chdir --role --type",
    ),
    ("doas", "-u -C -a"),
    ("env", "-u -C --unset --chdir"),
    ("nice", "-n"),
    ("ionice", "-c -n"),
    ("timeout", "-k -s"),
    ("gtimeout", "-k -s"),
    ("stdbuf", "-i -o -e"),
    ("xargs", "-I -n -P -L -d -a -s -E"),
    ("exec", "-a"),
    ("time", "-f -o"),
    (
        "ssh",
        "-p -i -l -o -F -L -R -D -J -b -c -e -m -O -Q -S -w -W -E -B -I",
    ),
    ("watch", "-n -s"),
];

/// Returns the layer at the beginning of these words.
pub(crate) fn layer(words: &[Word]) -> Layer {
    let Some(first) = words.first() else {
        return Layer::Program;
    };
    let text = first.text.as_str();
    if is_assignment(text) {
        return Layer::Dropped(1);
    }
    let name = basename(text);
    match name {
        "then" | "do" | "else" | "elif" | "if" | "while" | "until" | "!" | "{" | "coproc" => {
            Layer::Dropped(1)
        }
        "}" | "fi" | "done" | "esac" | "for" | "select" | "case" | "function" => Layer::Nothing,
        "command" if matches!(at(words, 1), "-v" | "-V") => Layer::Program,
        "nohup" | "setsid" | "builtin" | "command" | "unbuffer" | "sudo" | "doas" | "nice"
        | "ionice" | "stdbuf" | "xargs" | "exec" | "time" | "env" => {
            wraps(words, behind(name, words))
        }
        // The first operand is a duration or a mask.
        "timeout" | "gtimeout" | "taskset" | "chrt" => wraps(words, behind(name, words) + 1),
        "find" => found(words),
        "ssh" => match joined(&words[(behind(name, words) + 1).min(words.len())..]) {
            line if line.is_empty() => Layer::Program,
            line => Layer::Lines(vec![line]),
        },
        "watch" => match joined(&words[behind(name, words).min(words.len())..]) {
            line if line.is_empty() => Layer::Program,
            line => Layer::Lines(vec![line]),
        },
        "eval" => Layer::Lines(vec![joined(&words[1..])]),
        "su" => script(words, |flag| flag == "-c" || flag == "--command"),
        _ if is_shell(name) => script(words, |flag| {
            flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c')
        }),
        _ => Layer::Program,
    }
}

fn at(words: &[Word], n: usize) -> &str {
    words.get(n).map_or("", |word| &word.text)
}

fn joined(words: &[Word]) -> String {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    texts.join(" ")
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches('+');
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Number of words up to the first one behind the options of a wrapper.
fn behind(name: &str, words: &[Word]) -> usize {
    let own = WITH_ARGUMENT.iter().find(|(program, _)| *program == name);
    let takes = |flag: &str| own.is_some_and(|(_, flags)| flags.split(' ').any(|one| one == flag));
    let mut n = 1;
    while n < words.len() {
        let flag = at(words, n);
        if flag == "--" {
            return n + 1;
        }
        if !flag.starts_with('-') || flag == "-" {
            return n;
        }
        n += if takes(flag) { 2 } else { 1 };
    }
    n
}

/// A wrapper is dropped if a command stands behind it.
fn wraps(words: &[Word], count: usize) -> Layer {
    if count < words.len() {
        Layer::Dropped(count)
    } else {
        Layer::Program
    }
}

/// Commands of `find … -exec … ;`.
fn found(words: &[Word]) -> Layer {
    let mut commands = Vec::new();
    let mut n = 1;
    while n < words.len() {
        if ["-exec", "-execdir", "-ok", "-okdir"].contains(&at(words, n)) {
            let from = n + 1;
            let is_end = |word: &Word| matches!(word.text.as_str(), ";" | "+");
            let length = words[from..].iter().position(is_end);
            let to = length.map_or(words.len(), |length| from + length);
            if from < to {
                commands.push(from..to);
            }
            n = to;
        }
        n += 1;
    }
    if commands.is_empty() {
        Layer::Program
    } else {
        Layer::Commands(commands)
    }
}

/// The line behind the option of a shell for one.
fn script(words: &[Word], is_flag: impl Fn(&str) -> bool) -> Layer {
    let at = words.iter().position(|word| is_flag(&word.text));
    match at.and_then(|at| words.get(at + 1)) {
        Some(line) => Layer::Lines(vec![line.text.clone()]),
        None => Layer::Program,
    }
}
