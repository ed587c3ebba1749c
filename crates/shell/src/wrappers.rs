//! Layers before the program of a command: assignments, words of the shell, and programs that run
//! another one.
//!
//! A wrapper is a row of [`WRAPPERS`]: its options that take a value, and the operands before the
//! command. `uv run`, `npx` and `docker exec` are no wrappers: a rule may be about them (see `options`).

use std::ops::Range;
use std::sync::LazyLock;

use crate::scan::{KEYWORDS, Word, is_assignment};
use crate::{basename, is_shell};

/// Kind of the beginning of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer {
    /// Number of words that only surround the command behind them.
    Dropped(usize),
    /// A program that runs lines of a shell.
    Lines(Vec<String>),
    /// A program that runs commands within its words.
    Commands(Vec<Range<usize>>),
    /// A shell that runs its standard input.
    Input,
    /// The program itself.
    Program,
    /// No command: the head of a loop.
    Nothing,
}

/// Form of the command that a wrapper runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// The words behind its options.
    Words,
    /// The words behind its options, joined to a line of a shell.
    Line,
    /// The value of an option, and otherwise its standard input.
    Shell,
}

/// Program that runs another one.
struct Wrapper {
    name: &'static str,
    /// Letters of options with a value.
    letters: &'static str,
    /// Long options with a value of their own, with commas.
    longs: &'static str,
    /// Number of operands before the command.
    operands: usize,
    /// Letter and name of the option whose value is a line of a shell.
    line: Option<(&'static str, &'static str)>,
    runs: Runs,
}

static WRAPPERS: LazyLock<Vec<Wrapper>> = LazyLock::new(|| {
    include_str!("wrappers.txt")
        .lines()
        .filter_map(wrapper)
        .collect()
});

/// Reads a row of the table; `None` for a comment.
fn wrapper(row: &'static str) -> Option<Wrapper> {
    let mut columns = row.split_whitespace().map(|column| match column {
        "-" => "",
        column => column,
    });
    let mut column = || columns.next();
    Some(Wrapper {
        name: column().filter(|name| *name != "#")?,
        letters: column()?,
        operands: column()?.parse().ok()?,
        longs: column()?,
        line: column()?.split_once(':'),
        runs: match column()? {
            "line" => Runs::Line,
            "shell" => Runs::Shell,
            _ => Runs::Words,
        },
    })
}

/// Commands of `tmux` that run a line.
const TMUX: &[&str] = &[
    "new", "new-session", "neww", "new-window", "run", "run-shell", "send", "send-keys", "splitw",
    "split-window",
];

/// Returns the layer at the beginning of these words.
pub fn layer(words: &[Word]) -> Layer {
    let Some(first) = words.first() else {
        return Layer::Program;
    };
    let text = first.text.as_str();
    if is_assignment(text) {
        return Layer::Dropped(1);
    }
    let name = basename(text);
    match name {
        _ if KEYWORDS.contains(&text) => Layer::Dropped(1),
        "coproc" if at(words, 2) == "{" => Layer::Dropped(2),
        "coproc" => Layer::Dropped(1),
        "function" if words.len() > 2 => Layer::Dropped(2),
        "}" | "fi" | "done" | "esac" | "for" | "select" | "case" | "function" => Layer::Nothing,
        "command" if matches!(at(words, 1), "-v" | "-V") => Layer::Program,
        "git" if (at(words, 1), at(words, 2)) == ("bisect", "run") => wraps(words, 3),
        "trap" if !at(words, 1).starts_with('-') => Layer::Lines(vec![at(words, 1).to_owned()]),
        "tmux" if !TMUX.contains(&at(words, 1)) => Layer::Program,
        "find" => found(words, &["-exec", "-execdir", "-ok", "-okdir"]),
        "fd" | "fdfind" => found(words, &["-x", "-X", "--exec", "--exec-batch"]),
        // With a user, its words are the command; without, it is `su`.
        "runuser" if !words.iter().any(|word| word.text.starts_with("-u")) => run("su", words),
        _ if is_shell(name) => shell(words),
        _ => run(name, words),
    }
}

/// Row of every shell.
const SHELL: &str = "sh";

fn named(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|one| one.name == name)
}

/// Layer of a wrapper.
fn run(name: &str, words: &[Word]) -> Layer {
    let Some(wrapper) = named(name) else {
        return Layer::Program;
    };
    let options = wrapper.options(words);
    let rest = &words[options.end..];
    match (options.line, wrapper.runs) {
        (Some(line), Runs::Shell) => Layer::Lines(vec![line]),
        (Some(line), _) => Layer::Lines(vec![format!("{line} {}", joined(rest))]),
        (None, Runs::Shell) => Layer::Input,
        (None, Runs::Words) => wraps(words, options.end),
        (None, Runs::Line) if rest.is_empty() && name == "ssh" => Layer::Input,
        (None, Runs::Line) if rest.is_empty() => Layer::Program,
        (None, Runs::Line) => Layer::Lines(vec![joined(rest)]),
    }
}

/// A shell runs the first operand behind `-c`, a script, or its input.
fn shell(words: &[Word]) -> Layer {
    let Some(shell) = named(SHELL) else {
        return Layer::Program;
    };
    let options = shell.options(words);
    let operand = words.get(options.end);
    let reads = words[1..options.end]
        .iter()
        .any(|word| word.text.starts_with('-') && word.text.ends_with('s'));
    match (options.line, operand) {
        // The value of `-c` is the first operand, also behind other options.
        (Some(line), _) if !line.is_empty() => Layer::Lines(vec![line]),
        (Some(_), Some(line)) => Layer::Lines(vec![line.text.clone()]),
        (None, Some(_)) if !reads => Layer::Program,
        _ => Layer::Input,
    }
}

/// Options of a wrapper, read.
struct Options {
    /// Value of the option for a line; empty for a shell, which takes it as an operand.
    line: Option<String>,
    /// Place behind the options and the operands before the command.
    end: usize,
}

impl Wrapper {
    fn options(&self, words: &[Word]) -> Options {
        let is_shell = self.name == SHELL;
        let mut options = Options { line: None, end: 1 };
        let mut operands = self.operands;
        while let Some(word) = words.get(options.end) {
            let text = word.text.as_str();
            if text == "--" {
                options.end += 1 + operands;
                break;
            }
            let is_option = text.starts_with('-') || is_shell && text.starts_with('+');
            if !is_option && operands == 0 {
                break;
            }
            options.end += 1;
            if !is_option {
                operands -= 1;
            } else if let Some(long) = text.strip_prefix("--") {
                let (name, value) = long
                    .split_once('=')
                    .map_or((long, None), |(n, v)| (n, Some(v)));
                let is_line = self.line.is_some_and(|(_, line)| line == name);
                let takes =
                    value.is_none() && (is_line || self.longs.split(',').any(|one| one == name));
                if is_line {
                    let value = value.unwrap_or_else(|| at(words, options.end));
                    options.line = Some(value.to_owned());
                }
                options.end += usize::from(takes);
            } else {
                self.cluster(&text[1..], words, &mut options, is_shell);
            }
        }
        options.end = options.end.min(words.len());
        options
    }

    /// Reads letters behind one `-`: the first one with a value takes the rest, or the next word.
    fn cluster(&self, letters: &str, words: &[Word], options: &mut Options, is_shell: bool) {
        for (place, letter) in letters.char_indices() {
            let is_line = self.line.is_some_and(|(line, _)| line.starts_with(letter));
            if is_line && is_shell {
                options.line = Some(String::new());
                continue;
            }
            if !is_line && !self.letters.contains(letter) {
                continue;
            }
            let rest = &letters[place + letter.len_utf8()..];
            let value = match rest {
                "" => at(words, options.end),
                rest => rest,
            };
            if is_line {
                options.line = Some(value.to_owned());
            }
            options.end += usize::from(rest.is_empty());
            return;
        }
    }
}

fn at(words: &[Word], n: usize) -> &str {
    words.get(n).map_or("", |word| &word.text)
}

fn joined(words: &[Word]) -> String {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    texts.join(" ")
}

/// A wrapper is dropped if a command follows it. One word with spaces is a line.
fn wraps(words: &[Word], count: usize) -> Layer {
    match words.get(count..) {
        Some([line]) if line.text.contains(' ') && !is_assignment(&line.text) => {
            Layer::Lines(vec![line.text.clone()])
        }
        Some([_, ..]) => Layer::Dropped(count),
        _ => Layer::Program,
    }
}

/// Commands behind options of `find` and `fd`.
fn found(words: &[Word], options: &[&str]) -> Layer {
    let mut commands = Vec::new();
    let mut n = 1;
    while n < words.len() {
        if options.contains(&at(words, n)) {
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
