//! Text without understanding: words, lines, quoted names, and the similarity of errors and of commands.
//!
//! Similarities are from 0 to 1, so that a threshold means the same in a store of any size. Words are
//! stemmed as in search. Words common to all errors ("failed", "not found") and placeholders have
//! little weight.

use std::collections::BTreeSet;

use memctl_search::words;
use regex_lite::Regex;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Words or phrases that are data, in a file beside the code that uses them.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct WordList(Vec<String>);

impl WordList {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(crate) fn contains(&self, word: &str) -> bool {
        self.iter().any(|one| one == word)
    }

    /// Returns `true` if one of them is a word of a text: a run of ASCII letters and digits.
    pub(crate) fn has_word_of(&self, text: &str) -> bool {
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| self.contains(word))
    }

    /// Returns `true` if a text begins with one of them.
    pub(crate) fn begin(&self, text: &str) -> bool {
        self.iter().any(|one| text.starts_with(one))
    }

    /// Returns `true` if one of them stands anywhere in a text.
    pub(crate) fn occur_in(&self, text: &str) -> bool {
        self.iter().any(|one| text.contains(one))
    }
}

/// Reads the word lists of a JSON file, or other data, that are part of the program.
pub(crate) fn word_lists<T: DeserializeOwned>(json: &str) -> T {
    #[expect(clippy::unwrap_used, reason = "the file is constant, and a test reads it")]
    serde_json::from_str(json).unwrap()
}

/// Regular expression that is part of the program.
pub(crate) fn regex(pattern: &str) -> Regex {
    #[expect(clippy::unwrap_used, reason = "the pattern is constant")]
    Regex::new(pattern).unwrap()
}

/// Type names, which describe the kind of error.
pub(crate) const TYPES: &[&str] = &[
    "int", "str", "float", "bool", "bytes", "list", "dict", "tuple", "set", "NoneType", "None",
    "object", "function", "method", "module", "type", "coroutine", "generator", "undefined",
    "null", "string", "number", "boolean", "any", "never", "unknown", "void", "String", "&str",
    "()", "nil", "u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "f32",
    "f64", "char",
];

/// Returns the words in lower case. Apostrophes stay: `don't` is one word.
pub(crate) fn plain_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Collapses each run of white space to one space.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text as an agent is told it: on one line, redacted, without fence markers, and cut to this length in UTF-16
/// units.
pub(crate) fn told_line(text: &str, longest: usize) -> String {
    let text = memctl_redact::unfenced(&memctl_redact::redact(text).text);
    memctl_redact::beginning(&one_line(&text), longest).into_owned()
}

/// Quoted names in an error line, in order.
pub(crate) fn quoted_names(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut rest, mut before) = (line, None);
    while let Some(first) = rest.chars().next() {
        if let Some((inside, after)) = quoted(rest, before) {
            if !inside.is_empty() && !TYPES.contains(&inside) {
                found.push(inside);
            }
            rest = after;
            before = Some('\'');
        } else {
            rest = &rest[first.len_utf8()..];
            before = Some(first);
        }
    }
    found
}

/// Quoted text at the start of `rest`, and the text after it. An apostrophe inside a word is not a
/// quote.
pub(crate) fn quoted(rest: &str, before: Option<char>) -> Option<(&str, &str)> {
    let open = rest.chars().next()?;
    let close: &[char] = match open {
        '"' => &['"'],
        '\'' => &['\''],
        // Older programs quote like `name'.
        '`' => &['`', '\''],
        '‘' => &['’'],
        '“' => &['”'],
        '«' => &['»'],
        _ => return None,
    };
    if before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let inside = &rest[open.len_utf8()..];
    if open == '"' && inside.starts_with('"') {
        return Some(("", &inside[1..]));
    }
    let (at, mark) = inside.char_indices().find(|(at, c)| {
        let after = inside[at + c.len_utf8()..].chars().next();
        close.contains(c) && !(*c == '\'' && after.is_some_and(char::is_alphanumeric))
    })?;
    (at > 0).then(|| (&inside[..at], &inside[at + mark.len_utf8()..]))
}

/// Words of errors of all kinds, stemmed as in search, and words of placeholders.
const GENERIC: &[&str] = &[
    "error", "fail", "failur", "cannot", "can", "could", "couldn", "unabl", "not", "no", "found",
    "find", "such", "file", "directori", "command", "line", "exit", "code", "status", "invalid",
    "unexpect", "except", "fatal", "warn", "name", "path", "num", "number", "hash", "id", "url",
    "str", "n", "ip", "time", "date", "version", "expect", "got", "open", "read", "run", "while",
    "process", "return", "test", "has", "have", "does", "did", "must", "should", "exist", "miss",
];
/// Weight of a generic word, relative to a specific one.
const GENERIC_WEIGHT: f64 = 0.15;

/// Distinct words of an error key.
pub(crate) fn key_words(key: &str) -> BTreeSet<String> {
    words(key).into_iter().collect()
}

/// Number of specific words in a key.
pub(crate) fn telling_words(key: &str) -> usize {
    key_words(key)
        .iter()
        .filter(|word| !is_generic(word))
        .count()
}

/// Returns `true` for a word of errors of all kinds, and for a number.
pub(crate) fn is_generic(word: &str) -> bool {
    GENERIC.contains(&word) || word.chars().all(|c| c.is_ascii_digit())
}

/// Weight of a word of an error, relative to a specific one.
pub(crate) fn weight(word: &str) -> f64 {
    if is_generic(word) {
        GENERIC_WEIGHT
    } else {
        1.0
    }
}

/// How like two sets of words are: the share of their weight that they have in common (a weighted
/// Dice coefficient).
pub(crate) fn similarity(
    a: &BTreeSet<String>,
    b: &BTreeSet<String>,
    weight: &dyn Fn(&str) -> f64,
) -> f64 {
    let sum =
        |words: &mut dyn Iterator<Item = &String>| words.map(|word| weight(word)).sum::<f64>();
    let all = sum(&mut a.iter()) + sum(&mut b.iter());
    if all <= 0.0 {
        return 0.0;
    }
    2.0 * sum(&mut a.intersection(b)) / all
}

/// Maximum number of texts that are compared with each other.
const COMPARED: usize = 40;
/// Minimum similarity of the words of two texts about the same thing.
const SAME_THING: f64 = 0.6;

/// Puts the later of two texts about the same thing before the earlier one, if nobody said which one
/// holds. `of` returns the text of an item, and a value that is greater for a later one.
pub(crate) fn later_first<T, B: Ord>(items: &mut [T], of: impl Fn(&T) -> (String, B)) {
    let compared = items.len().min(COMPARED);
    let mut earlier: Vec<(BTreeSet<String>, B)> = Vec::with_capacity(compared);
    for at in 0..compared {
        let (text, born) = of(&items[at]);
        let words = key_words(&text);
        let is_earlier = |(other, before): &(BTreeSet<String>, B)| {
            *before < born && similarity(&words, other, &|_| 1.0) >= SAME_THING
        };
        let to = earlier.iter().position(is_earlier).unwrap_or(at);
        items[to..=at].rotate_right(1);
        earlier.insert(to, (words, born));
    }
}

/// Similarity of two commands or pieces of code. The same program counts for half, shared tokens
/// for the rest.
#[expect(clippy::cast_precision_loss, reason = "a command has few tokens")]
pub(crate) fn of_commands(a: &str, b: &str) -> f64 {
    let (left, right) = (tokens(a), tokens(b));
    if left.is_empty() || right.is_empty() {
        return 0.0;
    }
    let common = left.intersection(&right).count() as f64;
    let shared = 2.0 * common / (left.len() + right.len()) as f64;
    if same_program(a, b) {
        f64::midpoint(1.0, shared)
    } else {
        shared
    }
}

/// Returns `true` if two commands run the same program.
pub(crate) fn same_program(a: &str, b: &str) -> bool {
    program(a).is_some() && program(a) == program(b)
}

/// Program that a command runs, without its setup.
fn program(command: &str) -> Option<&str> {
    let last = command
        .rsplit(['\n', ';'])
        .find(|part| !part.trim().is_empty())?;
    let last = last.rsplit("&&").next().unwrap_or(last);
    let mut words = last.split_whitespace();
    let word = words.find(|word| {
        let is_setting = word
            .split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        !is_setting
            && !matches!(
                *word,
                "sudo" | "env" | "time" | "exec" | "nohup" | "command"
            )
    })?;
    word.rsplit('/').next()
}

/// Tokens of code: runs of letters, digits, `_`, `-` and `.`.
fn tokens(code: &str) -> BTreeSet<String> {
    code.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'))
        .map(|token| token.trim_end_matches(['.', '-']))
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_text_about_the_same_thing_comes_first() {
        let mut rules = [
            ("Name the branch.", 1),
            ("Deploy the shop on Thursday.", 2),
            ("Never push.", 3),
            ("Deploy the shop on Tuesday.", 4),
            ("Deploy the shop on Monday.", 0),
        ];
        later_first(&mut rules, |(text, born)| ((*text).to_owned(), *born));
        assert_eq!(rules.map(|(_, born)| born), [1, 4, 2, 3, 0]);
    }

    #[test]
    fn case_and_marks_make_no_difference() {
        let check = |a: &str, b: &str, same: bool| {
            assert_eq!(plain_words(a) == plain_words(b), same, "{a} / {b}");
        };
        check("Use **pnpm**, never npm!", "use pnpm never `npm`", true);
        check("don't", "dont", false);
        check("use pnpm", "pnpm use", false);
        check("…", "", true);
    }
}

#[cfg(test)]
mod tests_of_likeness {
    use super::*;

    #[test]
    fn errors_are_alike_by_the_words_that_say_something() {
        let check = |a: &str, b: &str, from: f64, to: f64| {
            let found = similarity(&key_words(a), &key_words(b), &weight);
            assert!((from..=to).contains(&found), "{a} | {b}: {found}");
        };
        let indices = "TypeError: string indices must be integers";
        check(indices, indices, 1.0, 1.0);
        check(
            indices,
            "TypeError: string indices must be integers, not <name>",
            0.9,
            1.0,
        );
        check(indices, "TypeError: unsupported operand types", 0.0, 0.5);
        check(
            "error: cannot find module <name>",
            "error: cannot find crate <name>",
            0.0,
            0.4,
        );
        check(
            "<path>: No such file or directory",
            "<name>: command not found",
            0.0,
            0.2,
        );
        check("", indices, 0.0, 0.0);
        check("", "", 0.0, 0.0);
    }

    #[test]
    fn commands_are_alike_by_program_and_tokens() {
        let check = |a: &str, b: &str, from: f64, to: f64| {
            let found = of_commands(a, b);
            assert!((from..=to).contains(&found), "{a} | {b}: {found}");
        };
        check("pip install x", "pip install x", 1.0, 1.0);
        check("cd /p && pip install x", "sudo pip install y", 0.6, 0.9);
        check("FOO=1 cargo test --lib", "cargo build", 0.5, 0.8);
        check("git push", "ls -la", 0.0, 0.0);
        check("", "ls", 0.0, 0.0);
    }
}
