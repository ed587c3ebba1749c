//! Run of one program: its name with its subcommand, and its arguments.
//!
//! `ssh`, `xargs` and `find -exec` count as programs, because a retry repeats the whole call.

use std::collections::HashSet;

use memctl_shell::{basename, is_assignment, takes_value};

use super::Simple;
use crate::lessons::vocabulary::WORDS;

/// Run of one program.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Program with its subcommand: `git status`, `cargo test`, `build.py`.
    pub(crate) name: String,
    /// Arguments that are not flags.
    pub(crate) operands: Vec<String>,
    /// Words behind options of a script, before its subcommand: their values, or the subcommand behind a switch.
    pub(crate) values: Vec<String>,
    /// Words of code arguments.
    pub(crate) code: HashSet<String>,
    /// Words of prose arguments, such as a message or a title.
    pub(crate) prose: HashSet<String>,
    /// Only reads files.
    pub(crate) looks: bool,
}

impl Run {
    pub(crate) fn of(simple: &Simple) -> Self {
        let mut words: &[String] = &simple.words;
        let program = |word: &String| {
            let name = basename(word);
            // `python3.12`, `pip3`.
            let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            let is_known = bare == "pip" || WORDS.interpreters.contains(bare);
            if is_known { bare } else { name }.to_owned()
        };
        let mut name = words.first().map(program).unwrap_or_default();
        let by_path = words.first().is_some_and(|w| w.contains('/'));
        words = words.get(1..).unwrap_or_default();
        if let Some((inner, rest)) = behind_runner(&name, words).and_then(<[String]>::split_first) {
            name = program(inner);
            words = rest;
        }
        let mut code = HashSet::new();
        let mut operands: Vec<String> = Vec::new();
        let mut values = Vec::new();
        if WORDS.interpreters.contains(&name) {
            let taking_a_value = [
                "-cp", "-classpath", "--class-path", "-W", "-X", "--require", "-r", "-I",
                "--import", "--loader",
            ];
            // `php -d memory_limit=1G x.php`, but `python -d x.py`.
            let is_valued = |words: &[String]| {
                taking_a_value.contains(&words[0].as_str())
                    || words[0] == "-d" && words[1].contains('=')
            };
            while words.len() > 2 && is_valued(words) {
                words = &words[2..];
            }
            let is_what =
                |w: &String| !w.starts_with('-') || ["-c", "-m", "-e"].contains(&w.as_str());
            match words.iter().position(is_what) {
                Some(at) if words[at] == "-m" => {
                    if let Some(module) = words.get(at + 1) {
                        // `python -m pkg.main` runs `pkg/main.py`.
                        name = match module.rsplit_once('.') {
                            Some((_, file)) => format!("{file}.py"),
                            None => module.clone(),
                        };
                        words = &words[at + 2..];
                    }
                }
                Some(at) if words[at].starts_with('-') => {
                    code = code_words(words.get(at + 1).map_or("", String::as_str));
                    words = &[];
                }
                Some(at) if is_subcommand(&name, &words[at]) => {
                    (name, words) = with_subcommands(name, &words[at..], &mut values);
                }
                Some(at) => {
                    // `./x.py`, `python x.py` and `python3 -u x.py` run the same program.
                    let script = basename(&words[at]).to_owned();
                    (name, words) = with_subcommands(script, &words[at + 1..], &mut values);
                }
                None => {}
            }
        } else if WORDS.layered.contains(&name) || by_path {
            (name, words) = with_subcommands(name, words, &mut values);
        }
        if !simple.body.is_empty() {
            code.extend(code_words(&simple.body));
        }
        let mut prose = HashSet::new();
        for word in words {
            if word.split_whitespace().count() > 3 && !WORDS.looks.contains(&name) {
                prose.extend(code_words(word));
            } else if !word.starts_with('-') && !word.bytes().all(|b| b.is_ascii_digit()) {
                operands.push(word.clone());
            }
        }
        let in_place = |w: &String| w.starts_with("-i") || w == "--in-place" || w == "-pi";
        let edits = (name == "sed" || name == "awk") && simple.words.iter().any(in_place);
        let looks = WORDS.looks.contains(&name) && !edits;
        Self {
            name,
            operands,
            values,
            code,
            prose,
            looks,
        }
    }
}

/// Returns `true` if an interpreter with subcommands is given one, and no file: `bun test`.
fn is_subcommand(interpreter: &str, word: &str) -> bool {
    WORDS.layered.contains(interpreter) && !word.contains(['.', '/'])
}

/// Command that a runner of programs, modules or scripts runs: `npx`, `uv run`, `python -m`, `sh`;
/// `None` if the words are no such command.
pub(crate) fn wrapped(words: &[String]) -> Option<Vec<String>> {
    let (first, rest) = words.split_first()?;
    let program = basename(first);
    let inner = if let Some(inner) = behind_runner(program, rest) {
        inner
    } else if let Some(module) = module_of(program, rest) {
        &rest[module..]
    } else if WORDS.interpreters.contains(program) || program == "python3" {
        // `sh tools/build` runs `tools/build`. The words of `-c` are code.
        let is_script = |word: &&String| !word.starts_with('-') && !is_subcommand(program, word);
        rest.first().filter(is_script)?;
        rest
    } else {
        return None;
    };
    let flags = inner.iter().take_while(|word| word.starts_with('-'));
    let mut inner = inner[flags.count()..].to_vec();
    let first = inner.first_mut()?;
    *first = basename(first).to_owned();
    Some(inner)
}

/// Words of the command that a runner runs: `jest src` of `npx -y jest src`, `pytest` of `uv run pytest`.
fn behind_runner<'w>(program: &str, rest: &'w [String]) -> Option<&'w [String]> {
    let is_run = |word: &String| word == "run";
    let runs_another = WORDS.runners.contains(program)
        || WORDS.managers.contains(program) && rest.first().is_some_and(is_run);
    let skipped = rest
        .iter()
        .take_while(|word| word.starts_with('-') || is_run(word));
    runs_another.then(|| &rest[skipped.count()..])
}

/// Place of the module that `python -m` runs, among the words after the program.
fn module_of(program: &str, rest: &[String]) -> Option<usize> {
    let module = rest.iter().position(|word| word == "-m")?;
    program.starts_with("python").then_some(module + 1)
}

/// Program name with subcommands, and the remaining arguments.
fn with_subcommands<'w>(
    mut name: String,
    mut words: &'w [String],
    values: &mut Vec<String>,
) -> (String, &'w [String]) {
    let is_known = WORDS.layered.contains(&name);
    let mut depth = 0;
    while depth < 2 {
        // `git -C DIR status`: the value of an option is not a subcommand. A script of a project may have any options.
        let may_be_valued = |option: &str, next: &str| {
            let is_long = option.starts_with("--") && option.len() > 2 && !option.contains('=');
            let is_of_script = !is_known && depth == 0 && is_long && !next.starts_with('-');
            takes_value(&name, option, next) || is_of_script
        };
        if let [option, value, rest @ ..] = words
            && option.starts_with('-')
            && may_be_valued(option, value)
        {
            if !is_known {
                values.push(value.clone());
            }
            words = rest;
            continue;
        }
        match words.first() {
            // `cargo +nightly check` is `cargo check`, and `make CROSS=arm- image` is `make image`.
            Some(flag) if depth == 0 && (flag.starts_with(['-', '+']) || is_assignment(flag)) => {
                words = &words[1..];
            }
            Some(sub)
                if is_bare(sub) && (depth == 0 || WORDS.deeper.contains(last_word(&name))) =>
            {
                name = format!("{name} {sub}");
                words = &words[1..];
                depth += 1;
            }
            _ => break,
        }
    }
    (name, words)
}

fn last_word(name: &str) -> &str {
    name.rsplit(' ').next().unwrap_or(name)
}

/// Returns true if a word can be a subcommand.
fn is_bare(word: &str) -> bool {
    word.len() < 40
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
}

/// Words of code with two bytes or more.
pub(crate) fn code_words(text: &str) -> HashSet<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')
        .filter(|word| word.len() > 1)
        .map(str::to_owned)
        .collect()
}
