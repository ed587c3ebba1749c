//! Small change from a failing call to the one that worked: whether another failing call is of its kind, and
//! whether another call has it.

use std::collections::HashSet;

use super::difference::{difference, tokens};
use crate::lessons::call::{Call, Simple};
use crate::model::Pattern;
use crate::model::text::{one_line, telling_words};

/// Small difference of two calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(super) kind: ChangeKind,
    /// Words that only the failing call has.
    pub(crate) dropped: Vec<String>,
    /// Words that only the working call has.
    pub(crate) added: Vec<String>,
    /// Failing command.
    pub(super) failing: Simple,
}

/// Place of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Option,
    Environment,
    Prefix,
    Quoting,
    Text,
}

impl Change {
    /// Returns the small change between the calls of a pattern.
    pub(crate) fn of(pattern: &Pattern) -> Option<Self> {
        let tool = Some(pattern.tool.as_str()).filter(|tool| is_tool(tool, &pattern.failing_code));
        let failed = Call::of(&pattern.failing_code, tool)?;
        let worked = Call::of(&pattern.working_code, tool)?;
        difference(&failed, &worked, &one_line(&pattern.error_line))
    }

    /// Returns `true` if a failing call is the one of the pattern, but for names that its error does
    /// not have. `line` is the deciding line of both failures.
    pub(crate) fn fits(&self, now: &Call, line: &str) -> bool {
        let names_may_differ = telling_words(line) >= 2;
        let same = |a: &str, b: &str| a == b || (names_may_differ && self.are_names(a, b, line));
        let failing = &self.failing;
        let is_same = |other: &Simple| {
            let mut words = failing.words.iter().zip(&other.words).enumerate();
            failing.is_tool == other.is_tool
                && failing.words.len() == other.words.len()
                && failing.environment == other.environment
                && same(&failing.body, &other.body)
                && words.all(|(at, (a, b))| a == b || at > 0 && same(a, b))
        };
        // A client that names no arguments, or no tool, gives a text alone.
        let is_text = |other: &Simple| {
            let words = match other.words.as_slice() {
                [_, name, text @ ..] if other.is_tool && name.is_empty() => text,
                words if !other.is_tool && now.commands.len() == 1 => words,
                _ => return false,
            };
            let text = failing.words.iter().max_by_key(|word| word.len());
            failing.is_tool && text.is_some_and(|text| same(&one_line(text), &words.join(" ")))
        };
        let mut commands = now.commands.iter();
        commands.any(|other| is_same(other) || is_text(other))
    }

    /// Returns `true` if two texts differ in nothing but names that neither the error nor the change
    /// has. A bare word may be what the call does: `plan` is not `apply`.
    fn are_names(&self, a: &str, b: &str, line: &str) -> bool {
        let (old, new) = (tokens(a), tokens(b));
        let is_name = |text: &str| {
            text.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && !line.contains(text)
                && !self.dropped.iter().any(|word| word == text)
        };
        let is_bare = |text: &str| !text.contains(|c: char| c.is_whitespace() || "/.:".contains(c));
        !a.starts_with('-')
            && !is_bare(a)
            && old.len() == new.len()
            && old.iter().zip(&new).all(|(a, b)| {
                let is_keyword = |text: &str| text.chars().all(|c| c.is_ascii_uppercase());
                a == b || (is_name(a) && is_name(b) && !is_keyword(a) && !is_keyword(b))
            })
    }

    /// Returns `true` for other words of one text, as of a statement for a database, or other quotes around it.
    pub(crate) fn is_of_text(&self) -> bool {
        matches!(self.kind, ChangeKind::Text | ChangeKind::Quoting)
    }

    /// Returns `true` if two patterns of one failure say the same. Of texts about other names, the places decide.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let is_same = (&self.added, &self.dropped) == (&other.added, &other.dropped);
        let is_of_text = self.kind == ChangeKind::Text && self.failing != other.failing;
        let counts = |change: &Self| (change.added.len(), change.dropped.len());
        self.kind == other.kind && (is_same || is_of_text && counts(self) == counts(other))
    }

    /// Returns `true` if another change says the same about the same program.
    pub(crate) fn repeats(&self, other: &Self) -> bool {
        self.failing.program() == other.failing.program() && self.agrees(other)
    }

    /// Returns `true` if another change is this one of other names: of another table, with the type of its column.
    pub(crate) fn is_of_other_names(&self, other: &Self, line: &str) -> bool {
        let call = Call {
            commands: vec![other.failing.clone()],
            ..Call::default()
        };
        self.kind == ChangeKind::Text && self.agrees(other) && self.fits(&call, line)
    }

    /// Returns `true` if another failure of this kind was solved in the same way: one text has other words in the
    /// place of this change's words, such as the type of another column.
    pub(crate) fn is_made(&self, failed: &str, worked: &str) -> bool {
        let calls = || Some((Call::of(failed, None)?, Call::of(worked, None)?));
        let made = || calls().and_then(|(failed, worked)| difference(&failed, &worked, ""));
        self.kind == ChangeKind::Text && made().is_some_and(|made| self.agrees(&made))
    }

    /// Returns `true` if a shell line is about to fail in the same way: it runs the failing command, maybe with
    /// more behind it, and names nothing that the change adds.
    pub(crate) fn is_missing_in(&self, code: &str) -> bool {
        let failing = &self.failing;
        let is_begun = |now: &Simple| {
            let mut words = failing.words.iter().zip(&now.words);
            now.body == failing.body
                && now.words.len() >= failing.words.len()
                && words.all(|(a, b)| a == b)
                && failing
                    .environment
                    .iter()
                    .all(|set| now.environment.contains(set))
        };
        let name = |word: &str| word.split('=').next().map(str::to_owned);
        let is_named = |added: &String| code.split_whitespace().any(|now| name(now) == name(added));
        // Other quotes.
        let is_of_same_words = self.added.is_empty() && self.dropped.is_empty();
        let call = Call::of(code, None).unwrap_or_default();
        !failing.is_tool
            && !is_of_same_words
            && !self.added.iter().any(is_named)
            && call.commands.iter().any(is_begun)
    }

    /// Returns `true` if a call has what the change adds, and not what it drops.
    pub(crate) fn is_in(&self, code: &str) -> bool {
        let text: HashSet<String> = tokens(code).into_iter().collect();
        let words: HashSet<&str> = code.split_whitespace().collect();
        // Names of arguments are written otherwise.
        let is_name = |word: &String| self.failing.is_tool && word.starts_with("--");
        let has = |word: &String| {
            is_name(word)
                || words.contains(word.as_str())
                || tokens(word).iter().all(|token| text.contains(token))
        };
        self.added.iter().all(has)
            && !self.dropped.iter().any(has)
            && !(self.added.is_empty() && self.dropped.is_empty())
    }
}

/// Returns `true` if the tool of a pattern is a tool, and not the program of its shell line.
fn is_tool(tool: &str, code: &str) -> bool {
    code.starts_with(tool) && code[tool.len()..].trim_start().starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(failed: &str, worked: &str, line: &str) -> Option<Change> {
        let read = |code: &str| Call::of(code, Some("Bash")).unwrap();
        difference(&read(failed), &read(worked), line)
    }

    #[test]
    fn names_that_the_error_lacks_do_not_matter() {
        let line = "ERROR: syntax error at or near \";\"";
        let failed = "psql -c 'ALTER TABLE users ADD COLUMN last_name;'";
        let found = of(
            failed,
            "psql -c 'ALTER TABLE users ADD COLUMN last_name TEXT;'",
            line,
        );
        let found = found.unwrap();
        let fits =
            |code: &str, line: &str| found.fits(&Call::of(code, Some("Bash")).unwrap(), line);
        assert!(fits(failed, line));
        assert!(fits("psql -c 'ALTER TABLE profiles ADD COLUMN age;'", line));
        assert!(!fits(
            "psql -c 'ALTER TABLE profiles DROP COLUMN age;'",
            line
        ));
        assert!(!fits("psql -c 'SELECT 1;'", line));
        // A name of the error decides.
        assert!(!fits(
            "psql -c 'ALTER TABLE profiles ADD COLUMN age;'",
            "ERROR: no column age here"
        ));
        // A line that says nothing does not make two calls one failure.
        assert!(!fits(
            "psql -c 'ALTER TABLE profiles ADD COLUMN age;'",
            "command failed"
        ));
    }

    #[test]
    fn a_statement_with_words_of_its_own_in_that_place_follows_it() {
        let line = "ERROR: syntax error at or near \";\"";
        let first = "psql -c 'ALTER TABLE users ADD COLUMN last_name;'";
        let cured = "psql -c 'ALTER TABLE users ADD COLUMN last_name TEXT;'";
        let change = of(first, cured, line).unwrap();
        let other = "psql -c 'ALTER TABLE profiles ADD COLUMN age;'";
        let check = |worked: &str, expected: bool| {
            assert_eq!(change.is_made(other, worked), expected, "{worked}");
        };
        check(
            "psql -c 'ALTER TABLE profiles ADD COLUMN age INTEGER;'",
            true,
        );
        check("psql -c 'ALTER TABLE profiles DROP COLUMN age;'", false);
        check(
            "psql -d app -c 'ALTER TABLE profiles ADD COLUMN age;'",
            false,
        );
        check(other, false);
        let same = "psql -c 'ALTER TABLE profiles ADD COLUMN age INTEGER;'";
        let same = of(other, same, line).unwrap();
        assert!(change.is_of_other_names(&same, line));
        let another = of(
            "psql -c 'DROP TABLE a b;'",
            "psql -c 'DROP TABLE IF a b;'",
            line,
        );
        assert!(!change.is_of_other_names(&another.unwrap(), line));
    }

    #[test]
    fn call_that_is_about_to_fail_begins_as_the_failing_one() {
        let line = "ModuleNotFoundError: No module named 'orders'";
        let failing = "cd api && pytest tests/ -q";
        let change = of(failing, "cd api && PYTHONPATH=src pytest tests/ -q", line).unwrap();
        let check = |code: &str, expected: bool| {
            assert_eq!(change.is_missing_in(code), expected, "{code}");
        };
        check("pytest tests/ -q", true);
        check("make && pytest -q tests/ -k cart 2>&1 | tail -3", true);
        check("PYTHONPATH=src pytest tests/ -q", false);
        check("export PYTHONPATH=lib; pytest tests/", false);
        check("pytest", false);
        check("pytest other/", false);
        check("grep -rn 'pytest tests/' docs", false);
        let quoted = of("grep -rn f(x) src", "grep -rn 'f(x)' src", "syntax error");
        let is_missing = |change: Change| change.is_missing_in("grep -rn 'f(x)' src");
        assert!(!quoted.is_some_and(is_missing));
    }

    #[test]
    fn a_call_that_has_the_change_follows_it() {
        let change = of("psql -d app", "psql -d app -p 5433", "refused").unwrap();
        assert!(change.is_in("psql -p 5433 -d shop"));
        assert!(!change.is_in("psql -d shop"));
    }
}
