//! Things that an error is about: the missing module, program, script, option or name.
//!
//! Two errors of one class with different subjects usually need different fixes: `pip install
//! opencv-python` helps with a missing `cv2`, and with no other module.

use crate::learn::error_key::quoted_names;

/// Names that tools use by default. A fix that brings one in depends on nothing.
const CONVENTIONAL: &[&str] = &[
    "origin", "upstream", "main", "master", "head", "latest", "default", "localhost", "postgres",
    "root", "stable", "nightly", ".", "..", "all", "true", "false", "-", "--",
];

/// Subjects of an error line: quoted names, options, and the program or file that is missing.
/// Lower case, without duplicates, in order.
pub(crate) fn subjects(line: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut push = |name: &str| {
        let name = clean(name);
        let is_shell =
            ["bash", "zsh", "sh", "dash", "/bin/sh", "/bin/bash"].contains(&name.as_str());
        if name.len() > 1
            && !is_shell
            && name.chars().any(char::is_alphanumeric)
            && !found.contains(&name)
        {
            found.push(name);
        }
    };
    for name in quoted_names(line) {
        for word in name.split_whitespace().filter(|word| !is_version(word)) {
            let word = word.split('=').next().unwrap_or(word);
            push(if is_absolute(word) {
                last_part(word)
            } else {
                word
            });
        }
    }
    // `python -m pytest: error: …` begins with the program, which has options of its own.
    let said = line.rsplit_once(": ").map_or(line, |(_, said)| said);
    for word in said.split_whitespace() {
        if word.starts_with('-')
            && word.len() > 1
            && word[1..].starts_with(|c: char| c.is_alphanumeric() || c == '-')
        {
            push(word.split('=').next().unwrap_or(word));
        }
    }
    let lower = line.to_ascii_lowercase();
    for said in [
        ": command not found",
        ": not found",
        ": no such file or directory",
    ] {
        if let Some(at) = lower.find(said) {
            let word = named_before(line.get(..at).unwrap_or_default());
            // An error code names nothing.
            push(
                word.filter(|w| w.contains(|c: char| !c.is_ascii_uppercase()))
                    .unwrap_or_default(),
            );
        }
    }
    // `Missing script: test`, `command not found: rg`, `No module named foo`.
    for said in [
        "command not found: ", "no matches found: ", "missing script: ", "no module named ",
        "fixture ", "host name ",
    ] {
        if let Some(at) = lower.find(said) {
            let after = line.get(at + said.len()..).unwrap_or_default();
            push(after.split_whitespace().next().unwrap_or_default());
        }
    }
    found
}

/// Returns the name that a message ends with, or that stands before its last part: `a.tgz` in
/// `tar: a.tgz: Cannot open`.
fn named_before(message: &str) -> Option<&str> {
    let mut parts = message.rsplit(": ");
    let last = parts.next()?;
    // A line number names nothing.
    let is_name = |part: &&str| !part.contains(' ') && part.contains(char::is_alphabetic);
    let before = parts.next().filter(is_name);
    let is_sentence = last.trim_start().contains(' ')
        && last
            .chars()
            .all(|c| c.is_alphabetic() || c == ' ' || c == '\'');
    // The first part is the program.
    match before {
        Some(name) if is_sentence && parts.next().is_some() => Some(name),
        _ => last.rsplit([' ', ':']).find(|word| !word.is_empty()),
    }
}

/// Returns `true` if a word of a fix comes from the tool's own conventions.
pub(crate) fn is_conventional(word: &str) -> bool {
    CONVENTIONAL.contains(&word.to_ascii_lowercase().as_str())
}

/// Returns `true` if a text has a name as a whole word, in any case. Names inside a path or a
/// longer name do not count, but the last part of a path does.
pub(crate) fn names(text: &str, name: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let name = name.to_ascii_lowercase();
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(&name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + name.len()..].chars();
        let (next, more) = (after.next(), after.next());
        let dotted = next == Some('.') && more.is_some_and(char::is_alphanumeric);
        !before.is_some_and(|c| inside(c) && !name.starts_with('-') || c == '.')
            && !next.is_some_and(inside)
            && !dotted
    })
}

fn clean(name: &str) -> String {
    name.trim_matches(|c: char| {
        !c.is_alphanumeric() && !matches!(c, '-' | '/' | '.' | '@' | '_' | '+')
    })
    .trim_end_matches(['.', ',', ':'])
    .to_ascii_lowercase()
}

/// A path of one machine, of which only the last part is worth anything.
pub(crate) fn is_absolute(word: &str) -> bool {
    word.starts_with(['/', '~']) || word.get(1..3).is_some_and(|drive| drive.starts_with(':'))
}

/// Last part of a path of any system.
pub(crate) fn last_part(path: &str) -> &str {
    let path = path.trim_end_matches(['/', '\\']);
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// `v0.9.101`, `5.7`: details that change with every release.
fn is_version(word: &str) -> bool {
    let word = word.strip_prefix('v').unwrap_or(word);
    word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_things_that_an_error_is_about_are_found() {
        let check = |line: &str, expected: &[&str]| assert_eq!(subjects(line), expected, "{line}");
        check("ModuleNotFoundError: No module named 'cv2'", &["cv2"]);
        check("bash: line 1: rg: command not found", &["rg"]);
        check("zsh: command not found: rg", &["rg"]);
        check("sh: 1: unzip: not found", &["unzip"]);
        check("error: unrecognized arguments: --cov=src", &["--cov"]);
        check(
            "p.c:1:10: fatal error: Python.h: No such file or directory",
            &["python.h"],
        );
        check(
            "custom build command for `openssl-sys v0.9.101`",
            &["openssl-sys"],
        );
        check("fatal: refusing to merge unrelated histories", &[]);
        check(
            "tar (child): out/a.tgz: Cannot open: No such file or directory",
            &["out/a.tgz"],
        );
        check(
            "sh: 1: cannot open deploy: No such file or directory",
            &["deploy"],
        );
        check("fatal: Cannot open: No such file or directory", &["open"]);
        check("npm error Missing script: \"test:unit\"", &["test:unit"]);
    }

    #[test]
    fn whole_names_are_found_in_a_text() {
        assert!(names("No module named 'src'", "src"));
        assert!(names("python: command not found", "python"));
        assert!(!names("python3.12: command not found", "python"));
        assert!(!names("python.x: not found", "python"));
        assert!(names("./bin/cli: Permission denied", "cli"));
        assert!(names("pytest --cov=src", "--cov"));
        assert!(!names("x --covers", "--cov"));
    }
}
