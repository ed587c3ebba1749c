//! A failing call to find hints for: its error lines and keys, and its command.
//!
//! Error key: an error line without its details, so that the same mistake in another project has the same key.
//! Placeholders in angle brackets replace paths, addresses, numbers, hashes, ids and quoted names. Text that names
//! the *kind* of error stays: words, exception classes, `ENOENT`, codes such as `E0308` and `TS2304`, HTTP statuses,
//! and quoted built-in types. The key of a key is the key itself.

pub mod error_line;

use std::sync::LazyLock;

use memctl_redact::Clean;
use regex_lite::Regex;

use crate::lessons::call::Call;
use crate::lessons::failure::error_line::{error_line, error_lines, location};
use crate::lessons::vocabulary::WORDS;
use crate::model::text::{TYPES, one_line, quoted, regex};

/// Failure to look up.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Lines that may say the error, most specific first. The first one gives the key.
    pub(crate) lines: Vec<ErrorLine>,
    /// Output in lower case, with single spaces: redacted, without hints of this program.
    pub(crate) output: String,
    /// Code of an agent that runs it itself, and not a call of a host's tool.
    pub(crate) is_own_code: bool,
    /// Failing command or code, without the names of people; empty if it is not known.
    pub(crate) code: String,
    /// The line in comparable form.
    pub(crate) call: Option<Call>,
}

/// Line of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ErrorLine {
    /// Error key of the line.
    pub(crate) key: String,
    /// The line with its names and numbers.
    pub(crate) text: String,
}

impl Failure {
    /// Reads the output of a failing call, whose secrets are redacted already. Hints of this program
    /// in it are ignored. `None` if the output has no error.
    pub(crate) fn of_redacted(error: &str, tool: Option<&str>, code: &str) -> Option<Self> {
        let error = memctl_redact::strip_fenced(error);
        let lines: Vec<ErrorLine> = error_lines(&error)
            .into_iter()
            .map(|text| without_people(&text))
            .map(|text| ErrorLine {
                key: normalised(&text),
                text,
            })
            .filter(|line| !line.key.is_empty())
            .collect();
        let code = without_people(code);
        (!lines.is_empty()).then(|| Self {
            lines,
            output: one_line(&error).to_lowercase(),
            is_own_code: tool.is_none(),
            call: Call::of(&code, tool),
            code,
        })
    }

    /// Error key: that of the most specific line.
    pub(crate) fn key(&self) -> &str {
        self.lines.first().map_or("", |line| &line.key)
    }
}

/// Redacts a session text and strips the hints that this program showed the agent. Every text of a
/// session passes here before it is stored or cut.
pub(crate) fn clean(text: &str) -> Clean<'static> {
    Clean::of_owned(memctl_redact::strip_fenced(text).into_owned())
}

/// Redacts a session text, uncut.
pub(crate) fn redacted(text: &str) -> String {
    clean(text).into_string()
}

/// Text without the names of home directories, and without addresses that are given as a value.
pub(crate) fn without_people(text: &str) -> String {
    without_addresses(&without_home(text))
}

/// Text without the names of home directories, which name a person.
pub(crate) fn without_home(text: &str) -> String {
    static HOME: LazyLock<Regex> =
        LazyLock::new(|| regex(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s'\x22:]+"));
    HOME.replace_all(text, "~").into_owned()
}

/// Text without email addresses that are given as a value. The address of a login or a remote,
/// as in `ssh a@b.com`, belongs to the command.
fn without_addresses(text: &str) -> String {
    static ADDRESS: LazyLock<Regex> =
        LazyLock::new(|| regex(r#"(?<before>[='"<(])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"#));
    ADDRESS.replace_all(text, "$before<email>").into_owned()
}

/// Maximum length of a key, in characters.
const MAX_KEY: usize = 240;

/// Key of a failing output; `None` if it has no error line.
pub fn error_key(text: &str) -> Option<String> {
    let key = normalised(&error_line(text)?);
    (!key.is_empty()).then_some(key)
}

/// Replaces the details of an error line.
pub fn normalised(line: &str) -> String {
    let mut line = without_shell(line.trim());
    let mut out = String::new();
    if let Some(end) = location(line) {
        out.push_str("<path>:");
        line = line[end..].trim_start_matches(':');
    }
    let mut before = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            if !out.ends_with(' ') && !out.is_empty() {
                out.push(' ');
            }
            rest = rest.trim_start();
        } else if let Some((inside, after)) = quoted(rest, out.chars().next_back()) {
            let open = &rest[..first.len_utf8()];
            let close = &rest[open.len() + inside.len()..rest.len() - after.len()];
            if inside.is_empty()
                || TYPES.contains(&inside)
                || inside.starts_with('<') && inside.ends_with('>')
            {
                out.extend([open, inside, close]);
            } else {
                out.push_str("<name>");
            }
            rest = after;
        } else if let Some(placeholder) = PLACEHOLDERS.iter().find(|one| rest.starts_with(**one)) {
            out.push_str(placeholder);
            rest = &rest[placeholder.len()..];
        } else if is_word(first) {
            let mut end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            if rest[..end].contains("://") {
                let ends = |c: char| c.is_whitespace() || "\"'`<>()[]{},;".contains(c);
                end = rest.find(ends).unwrap_or(rest.len());
            }
            let (word, after) = rest.split_at(end);
            let bracketed = out.ends_with(['[', '(']) && after.starts_with([']', ')']);
            push_word(word, &before, bracketed, &mut out);
            word.trim_end_matches(':').clone_into(&mut before);
            rest = after;
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    let end = out
        .char_indices()
        .nth(MAX_KEY)
        .map_or(out.len(), |(at, _)| at);
    out.truncate(end);
    out.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '.' | ',' | ';'))
        .to_owned()
}

const PLACEHOLDERS: &[&str] = &["<path>", "<name>", "<n>", "<id>", "<url>"];

/// Removes the shell and line number of `bash: line 3: x: command not found`.
fn without_shell(line: &str) -> &str {
    static SHELL: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"^(?:[^:]*/)?(?:bash|zsh|sh|dash|ksh|fish|\(eval\)):+\s*(?:line )?(?:[0-9]+:\s*)?")
    });
    let end = SHELL.find(line).map_or(0, |shell| shell.end());
    &line[end..]
}

/// Returns true for characters of a word. All others are separate tokens.
fn is_word(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(
            c,
            '_' | '-' | '.' | '/' | '\\' | ':' | '~' | '@' | '%' | '#' | '*' | '+' | '$' | '?'
        )
}

/// Appends a word or its placeholder. Trailing punctuation stays.
fn push_word(word: &str, before: &str, bracketed: bool, out: &mut String) {
    let bare = word.trim_end_matches([':', '.', '?']);
    let marks = &word[bare.len()..];
    if bare.contains("://") {
        out.push_str("<url>");
    } else if is_path(bare) {
        out.push_str("<path>");
    } else if let Some(end) = location(bare) {
        out.push_str("<path>");
        out.push_str(bare[end..].trim_start_matches(':'));
    } else {
        let colon = marks.starts_with(':');
        let mut parts = bare.split(':').peekable();
        while let Some(part) = parts.next() {
            let coded = bracketed || colon || parts.peek().is_some() || says_code(before);
            push_part(part, before, coded, out);
            if parts.peek().is_some() {
                out.push(':');
            }
        }
    }
    out.push_str(marks);
}

/// Returns true if a code can follow this word.
fn says_code(before: &str) -> bool {
    let lower = before.to_ascii_lowercase();
    [
        "error", "code", "warning", "status", "http", "rule", "errno", "sqlstate", "<path>", "",
    ]
    .contains(&lower.as_str())
        || lower.ends_with("error")
}

fn push_part(part: &str, before: &str, coded: bool, out: &mut String) {
    if !part.bytes().any(|b| b.is_ascii_digit()) {
        // Email addresses are details.
        out.push_str(if part.contains('@') && part.contains('.') {
            "<id>"
        } else {
            part
        });
        return;
    }
    let sqlstate = before.eq_ignore_ascii_case("sqlstate") && part.len() == 5;
    if coded && (sqlstate || is_code(part) || is_status(part, before)) {
        out.push_str(part);
        return;
    }
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    let letters = part.chars().filter(|c| c.is_alphabetic()).count();
    let hexadecimal = part
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    let numeric = hexadecimal
        || part
            .bytes()
            .all(|b| b.is_ascii_digit() || b".-+%xX#*$".contains(&b));
    if numeric {
        let sign = part.starts_with(['-', '+']) && letters == 0;
        out.push_str(if sign { &part[..1] } else { "" });
        out.push_str("<n>");
        out.push_str(if part.ends_with('%') { "%" } else { "" });
        return;
    }
    // The unit of `12ms`, `1.5kB` stays. Names such as `utf-8`, `sha1`, `python3` contain digits.
    let number = part
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(part.len());
    let unit = &part[number..];
    if number > 0 && unit.len() <= 3 && unit.bytes().all(|b| b.is_ascii_lowercase() || b == b'B') {
        out.extend(["<n>", unit]);
        return;
    }
    let name = part.starts_with(|c: char| c.is_ascii_lowercase())
        && digits <= 2
        && letters >= 2
        && !part.contains('_');
    out.push_str(if name || is_exception(part) {
        part
    } else {
        "<id>"
    });
}

/// `E0308`, `TS2304`, `SA1019`: capitals followed by a number.
fn is_code(part: &str) -> bool {
    let letters = part.bytes().take_while(u8::is_ascii_uppercase).count();
    let number = part[letters..].trim_start_matches('-');
    (1..=8).contains(&letters)
        && (1..=5).contains(&number.len())
        && number.bytes().all(|b| b.is_ascii_digit())
}

/// `404` after a word that announces a status.
fn is_status(part: &str, before: &str) -> bool {
    let lower = before.to_ascii_lowercase();
    ["status", "http", "code", "error"].contains(&lower.as_str())
        && part.len() == 3
        && part.starts_with(['4', '5'])
        && part.bytes().all(|b| b.is_ascii_digit())
}

fn is_exception(part: &str) -> bool {
    part.ends_with("Error") || part.ends_with("Exception")
}

fn is_path(word: &str) -> bool {
    let word = word.trim_end_matches([':', '*']);
    let slashed = word.contains('/') || word.contains('\\');
    if !slashed {
        let ending = word.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
        return ending.is_some_and(|(_, ending)| WORDS.file_endings.contains(ending));
    }
    if location(word).is_some() || word.starts_with(['/', '~', '.', '@', '$']) {
        return word.len() > 1;
    }
    if word.as_bytes().get(1) == Some(&b':') {
        return true;
    }
    let both = [
        "and/or", "i/o", "n/a", "read/write", "tcp/ip", "client/server", "true/false", "yes/no",
    ];
    !both.contains(&word.to_ascii_lowercase().as_str()) && word.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_do_not_get_into_a_fix() {
        let check = |command: &str, expected: &str| {
            assert_eq!(without_people(command), expected);
        };
        check("ls /home/anna/x /Users/bob", "ls ~/x ~");
        check(
            "git -c user.email=anna.b@acme.example.com commit",
            "git -c user.email=<email> commit",
        );
        check("ssh anna@acme.example", "ssh anna@acme.example");
        check(
            "git clone git@github.com:a/b.git",
            "git clone git@github.com:a/b.git",
        );
    }
}

#[cfg(test)]
mod tests_of_keys {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn particulars_become_placeholders() {
        let check = |text: &str, expected: &str| {
            assert_eq!(error_key(text).as_deref(), Some(expected), "{text}");
        };
        check(
            "TypeError: string indices must be integers",
            "TypeError: string indices must be integers",
        );
        check(
            "NameError: name 'drugs' is not defined",
            "NameError: name <name> is not defined",
        );
        check(
            "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
            "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        );
        check(
            "Exit code 128\nfatal: unable to read e53647ba1f1e5203bedff558b482f178db045555",
            "fatal: unable to read <id>",
        );
        check(
            "ls: /a/b-3.txt: No such file or directory",
            "ls: <path>: No such file or directory",
        );
        check(
            "src/main.rs:10:5: error[E0308]: mismatched types",
            "<path>: error[E0308]: mismatched types",
        );
        check(
            "error[E0308]: mismatched types",
            "error[E0308]: mismatched types",
        );
        check(
            "src/a.ts(3,1): error TS2304: Cannot find name 'foo'.",
            "<path>(<n>,<n>): error TS2304: Cannot find name <name>",
        );
        check(
            "a.py:1:80: E501 line too long (93 > 79 characters)",
            "<path>: E501 line too long (<n> > <n> characters)",
        );
        check(
            "Error: ENOENT: no such file or directory, open 'C:\\a\\b'",
            "Error: ENOENT: no such file or directory, open <name>",
        );
        check(
            "/bin/bash: line 3: gti: command not found",
            "gti: command not found",
        );
        check(
            "(eval):1: no matches found: /Users/a/*git*",
            "no matches found: <path>",
        );
        check("zsh:1: parse error near `)'", "parse error near <name>");
        check(
            "error: unknown option `dry-run'",
            "error: unknown option <name>",
        );
        check(
            "Error: not enough seats on flight HAT139",
            "Error: not enough seats on flight <id>",
        );
        check(
            "Error: not enough balance in payment method gift_card_5094406",
            "Error: not enough balance in payment method <id>",
        );
        check(
            "Request failed with status code 429 after 1250ms",
            "Request failed with status code 429 after <n>ms",
        );
        check(
            "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
            "json.decoder.JSONDecodeError: Expecting value: line <n> column <n> (char <n>)",
        );
        check(
            "error: couldn't connect to http://localhost:8080/x?a=1",
            "error: couldn't connect to <url>",
        );
        check(
            "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0",
            "UnicodeDecodeError: <name> codec can't decode byte <n> in position <n>",
        );
        check("ERROR: x (SQLSTATE 42601)", "ERROR: x (SQLSTATE 42601)");
        check(
            "Found 2 matches of the string to replace",
            "Found <n> matches of the string to replace",
        );
    }

    #[test]
    fn the_same_mistake_elsewhere_has_the_same_key() {
        let check = |a: &str, b: &str| assert_eq!(error_key(a), error_key(b));
        check(
            "/home/a/x/src/lib.rs:1:2: error: cannot find value `foo` in this scope",
            "./other/mod.rs:99:12: error: cannot find value `barBaz` in this scope",
        );
        check(
            "bash: jq: command not found",
            "sh: line 12: jq: command not found",
        );
        check(
            "\u{1b}[1mKeyError: 'a b'\u{1b}[0m",
            "Exit code 1\nKeyError: 'c'",
        );
        check(
            "connect ECONNREFUSED 127.0.0.1:5432",
            "connect ECONNREFUSED 10.0.0.7:6379",
        );
    }

    #[test]
    fn a_key_is_its_own_key() {
        for line in [
            "open /a/b failed: 'x' at 3",
            "a.go:1:2: x `y`",
            "zsh:3: a",
            "at HAT139 (E12)",
        ] {
            let key = normalised(line);
            assert_eq!(normalised(&key), key, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,200}", ansi in "[\u{0}-\u{9f}]{0,60}") {
            drop(error_key(&text));
            drop(error_key(&(ansi + &text)));
        }
    }
}
