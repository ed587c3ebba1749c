//! Difference of two calls, if it is small.
//!
//! One option, value, wrapper, assignment, quote, or a few words of one text differ; the operands are the
//! same. An uncertain difference is no small change. A [`Change`] knows whether another failing call is of its kind, and
//! whether another call has it.

use std::collections::HashSet;

use crate::lessons::call::{Call, Simple, without_value};
use crate::lessons::vocabulary::{WORDS, has_file_ending};
use crate::model::Pattern;
use crate::model::text::{one_line, telling_words};
use memctl_shell::{basename, is_assignment};

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
        let is_named = |added: &String| {
            let mut words = code.split_whitespace();
            words.any(|now| without_value(now) == without_value(added))
        };
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

/// Maximum number of words that a small change adds, and drops.
const SMALL: usize = 4;
/// Minimum likeness of a word to the one in its place.
const ALIKE: f64 = 0.75;

/// Small change from one call to another, in one command with the others equal, or the first ones left out; `None` if
/// it is more, or only plumbing.
pub(crate) fn difference(old: &Call, new: &Call, line: &str) -> Option<Change> {
    let left_out = old.commands.len().checked_sub(new.commands.len())?;
    if old.directories != new.directories {
        return None;
    }
    let commands = old.commands[left_out..].iter().zip(&new.commands);
    let mut differing = commands.filter(|(a, b)| a != b);
    let (failed, worked) = differing.next()?;
    let is_only = differing.next().is_none();
    let found = between(failed, worked, line).filter(|_| is_only)?;
    // The commands before it had worked, and need not run again.
    let is_around = matches!(found.kind, ChangeKind::Environment | ChangeKind::Prefix);
    (left_out == 0 || is_around).then_some(found)
}

/// Change between two commands.
fn between(old: &Simple, new: &Simple, line: &str) -> Option<Change> {
    let make = |kind, dropped, added| {
        Some(Change {
            kind,
            dropped,
            added,
            failing: old.clone(),
        })
    };
    // A here-document holds content.
    if old.body != new.body || old.is_tool && old.program() != new.program() {
        return None;
    }
    if old.words == new.words {
        if old.environment == new.environment {
            let is_quoted = old.quoting != new.quoting;
            return is_quoted.then(|| make(ChangeKind::Quoting, Vec::new(), Vec::new()))?;
        }
        let added = without(&new.environment, &old.environment);
        let is_prefix = |word: &String| WORDS.no_prefix.contains(word);
        let is_small = added.len() <= SMALL && !added.iter().any(is_prefix);
        let is_addition = is_small && without(&old.environment, &new.environment).is_empty();
        return is_addition.then(|| make(ChangeKind::Environment, Vec::new(), added))?;
    }
    if old.environment != new.environment {
        return None;
    }
    if let Some((dropped, added)) = prefix(&old.words, &new.words) {
        return make(ChangeKind::Prefix, dropped, added);
    }
    if old.program() != new.program() || contents(&old.words) != contents(&new.words) {
        return None;
    }
    // `sbt "testOnly a"`, and not `sbt testOnly a`.
    if !old.is_tool && old.words.join(" ") == new.words.join(" ") {
        return make(ChangeKind::Quoting, Vec::new(), Vec::new());
    }
    // One quoted text, such as a statement for a database. The command of a tool may be no more than the name of a
    // program, and a path.
    let pairs = old.words.iter().zip(&new.words).enumerate();
    let differing: Vec<_> = pairs.filter(|(_, (a, b))| a != b).collect();
    if let ([(at, (a, b))], true) = (differing.as_slice(), old.words.len() == new.words.len())
        && (old.is_tool || a.contains(char::is_whitespace))
    {
        let plain = |text: &str| text.replace(['\'', '"', '`', '\\'], "");
        if plain(a) == plain(b) {
            return make(ChangeKind::Quoting, Vec::new(), Vec::new());
        }
        if !is_path(a) || old.is_tool && old.words[at - 1] == "--command" {
            let (dropped, added) = text_change(a, b, line)?;
            return make(ChangeKind::Text, dropped, added);
        }
    }
    let added = options(&old.words, &new.words)?;
    // Of a tool, each argument is a name and a value.
    if old.is_tool && added.len() != 2 {
        return None;
    }
    make(ChangeKind::Option, Vec::new(), added)
}

/// Words of a command that are content: a message behind `-m`, and code for an interpreter behind `-c` or `-e`.
fn contents(words: &[String]) -> Vec<&String> {
    let is_content = |at: usize| {
        let name = without_value(&words[at]);
        let (before, option) = words[..at].split_at(at.saturating_sub(1));
        let option = option.first().map_or("", String::as_str);
        let ends = |end: &[char]| is_short(option) && option.ends_with(end);
        let is_interpreter = |word: &String| {
            let name = basename(word).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            WORDS.interpreters.contains(name)
        };
        WORDS.prose_options.contains(name)
            || WORDS.prose_options.contains(option)
            || ends(&['m']) && !words[at].bytes().all(|b| b.is_ascii_digit())
            || (ends(&['c', 'e']) || option == "--eval") && before.iter().any(is_interpreter)
    };
    let found = words.iter().enumerate().filter(|(at, _)| is_content(*at));
    found.map(|(_, word)| word).collect()
}

/// Returns `true` for one or several options of a letter.
fn is_short(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    (1..=4).contains(&letters.len()) && letters.bytes().all(|b| b.is_ascii_alphabetic())
}

/// Returns `true` for the path of a file, also one with spaces.
fn is_path(text: &str) -> bool {
    let is_code = |c: char| ";=(){}<>|\"'`,".contains(c);
    !text.contains(is_code) && (text.contains(['/', '\\']) || has_file_ending(text))
}

/// Wrapper words that only one of two commands begins with.
fn prefix(old: &[String], new: &[String]) -> Option<(Vec<String>, Vec<String>)> {
    let is_wrapper = |words: &[String]| {
        let first = words.first().map_or("", |word| basename(word));
        words.len() <= SMALL && !first.is_empty() && !WORDS.no_prefix.contains(first)
    };
    if let Some(before) = old.strip_suffix(new).filter(|words| is_wrapper(words)) {
        return Some((before.to_vec(), Vec::new()));
    }
    if let Some(before) = new.strip_suffix(old).filter(|words| is_wrapper(words)) {
        return Some((Vec::new(), before.to_vec()));
    }
    // One program in another directory, or in another version: `.venv/bin/x`, `x3`.
    let ((a, rest), (b, others)) = old.split_first().zip(new.split_first())?;
    let versioned = |name: &str| {
        name.trim_end_matches(|c: char| c.is_ascii_digit())
            .to_owned()
    };
    let is_same = versioned(basename(a)) == versioned(basename(b));
    (a != b && rest == others && is_same && !basename(a).is_empty())
        .then(|| (vec![a.clone()], vec![b.clone()]))
}

/// Options with a value, and `NAME=value`, that were added, with everything else as it was. An option without
/// one is a switch: it may switch anything off. One that is gone, or has another value, gives up what it was
/// there for.
fn options(old: &[String], new: &[String]) -> Option<Vec<String>> {
    let added = without(new, old);
    let is_selector = |word: &String| WORDS.selectors.contains(without_value(word));
    if added.is_empty() || added.len() > SMALL || added.iter().any(is_selector) {
        return None;
    }
    let mut words = new.iter().peekable();
    let mut rest = Vec::new();
    while let Some(word) = words.next() {
        if !added.contains(word) {
            rest.push(word.clone());
            continue;
        }
        // Options after `--` are for the program behind it: `cargo run -- --fast`. `-` is the standard input.
        let is_end = word == "--" || word == "-";
        let is_option = word.starts_with('-') || is_assignment(word);
        let holds_value = split_option(word).is_some_and(|(_, value)| !value.is_empty());
        let takes_next = |next: &&String| added.contains(next) && !next.starts_with('-');
        if !is_option || !(is_end || holds_value || words.next_if(takes_next).is_some()) {
            return None;
        }
    }
    (rest == old).then_some(added)
}

/// Name and value of an option in one word: `--out=a`, `NAME=value`, `-Ilib`.
pub(super) fn split_option(word: &str) -> Option<(&str, &str)> {
    let is_of_path = ["-I", "-L"].iter().any(|letter| word.starts_with(letter));
    let joined = || {
        word.split_at_checked(2)
            .filter(|(_, value)| is_of_path && !value.is_empty())
    };
    word.split_once('=').or_else(joined)
}

/// Words of a list that another lacks, counted.
fn without(words: &[String], others: &[String]) -> Vec<String> {
    let mut left = others.to_vec();
    let is_missing = |word: &&String| match left.iter().position(|other| other == *word) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    words.iter().filter(is_missing).cloned().collect()
}

/// Words that one text adds to another or drops from it, in one place; `None` if it is more, or if
/// a word takes the place of one that the error does not name.
fn text_change(old: &str, new: &str, line: &str) -> Option<(Vec<String>, Vec<String>)> {
    let (a, b) = (tokens(old), tokens(new));
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev());
    let end = end.take_while(|(a, b)| a == b).count();
    let (dropped, added) = (
        a[start..a.len() - end].to_vec(),
        b[start..b.len() - end].to_vec(),
    );
    let named = tokens(line);
    let is_small = dropped.len().max(added.len()) <= SMALL && start + end >= 3;
    // Another name is another goal: `orders` is not `refunds`, but `last_name` is meant by `lastname`.
    let is_alike = || {
        let plain = |words: &[String]| words.concat().replace(|c: char| !c.is_alphanumeric(), "");
        let (dropped, added) = (plain(&dropped), plain(&added));
        dropped == added || strsim::normalized_levenshtein(&dropped, &added) >= ALIKE
    };
    let is_replaced = !dropped.is_empty() && !added.is_empty();
    let is_meant = !is_replaced || dropped.iter().all(|word| named.contains(word)) && is_alike();
    let says_something = added
        .iter()
        .chain(&dropped)
        .any(|word| word.contains(char::is_alphanumeric));
    let is_change = is_small && is_meant && says_something && !reaches_more(old, new);
    is_change.then_some((dropped, added))
}

/// Words and punctuation marks of a text.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut in_word = false;
    for c in text.chars() {
        let continues = c.is_alphanumeric() || c == '_';
        if continues && in_word {
            if let Some(last) = found.last_mut() {
                last.push(c);
            }
        } else if !c.is_whitespace() {
            found.push(c.to_string());
        }
        in_word = continues;
    }
    found
}

/// Beginnings of statements that change rows.
const WRITES: [&str; 6] = ["update", "delete", "insert", "merge", "replace", "upsert"];
/// Words that bound what a statement reaches.
const BOUNDS: [&str; 4] = ["where", "limit", "having", "on"];
/// Words that make a statement destroy something.
const DESTROYS: [&str; 4] = ["drop", "truncate", "delete", "cascade"];

/// Returns `true` if a corrected statement may reach more rows, other ones, or more of them than the failing one: it
/// lost a bound, changes rows by other words, or destroys what the failing one left.
pub(super) fn reaches_more(old: &str, new: &str) -> bool {
    let (before, after) = (words(old), words(new));
    let count = |words: &[String], names: &[&str]| {
        words
            .iter()
            .filter(|word| names.contains(&word.as_str()))
            .count()
    };
    let is_write = before
        .iter()
        .chain(&after)
        .any(|word| WRITES.contains(&word.as_str()));
    let is_bounded = |names: &[&str]| count(&after, names) >= count(&before, names);
    // Quotes and signs are no words, and `lastname` is written `last_name`.
    let plain = |words: &[String]| words.concat().replace('_', "");
    is_write && plain(&before) != plain(&after)
        || !BOUNDS.iter().all(|bound| is_bounded(&[bound]))
        || count(&after, &DESTROYS) > count(&before, &DESTROYS)
}

/// Words of a statement in lower case, without its signs.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(failed: &str, worked: &str, line: &str) -> Option<Change> {
        let read = |code: &str| Call::of(code, Some("Bash")).unwrap();
        difference(&read(failed), &read(worked), line)
    }

    #[test]
    fn a_small_change_of_the_same_call_is_a_pattern() {
        let check = |failed: &str, worked: &str, is_small: bool| {
            let found = of(failed, worked, "error: it failed").is_some();
            assert_eq!(found, is_small, "{failed} -> {worked}");
        };
        for (failed, worked) in [
            ("cargo run --fast", "cargo run -- --fast"),
            ("rtk bun run test", "bun run test"),
            ("pytest tests/a.py", "uv run pytest tests/a.py"),
            ("goreleaser build", "POSTHOG_API_KEY=x goreleaser build"),
            ("psql -d app", "psql -d app -h localhost"),
            ("make pack", "make pack TARGET=web"),
            ("shop build", "shop build -tags full --out=a"),
            ("git revert it", "git revert -m 2 it"),
            ("pip install .[dev]", "pip install '.[dev]'"),
            ("python x.py", "python3 x.py"),
            ("pytest", "source .venv/bin/activate && pytest"),
            ("make build && rtk bun test", "bun test"),
            ("ruby run.rb", "ruby -Ilib run.rb"),
            ("bin/load --kind a", "bin/load --kind a -"),
            (
                "sq a.db 'select a from rows/b.csv'",
                "sq a.db \"select a from 'rows/b.csv'\"",
            ),
        ] {
            check(failed, worked, true);
        }
        for (failed, worked) in [
            ("go build", "go build 2>&1"),
            ("go test ./a", "go test -run X ./a"),
            ("go test ./a ./b", "go test ./a"),
            ("npm run lint", "npm run lint:fix"),
            ("import a.js", "import --help"),
            ("cd src && make", "make"),
            ("make", "cd src && make"),
            ("cargo test", "cargo build"),
            ("npm start --port=1", "npm start --port=2"),
            ("docker exec -it db sh", "docker exec -i db sh"),
            ("shop export --sorted", "shop export"),
            ("shop export --sorted", "shop export --sort"),
            ("shop export", "shop export --all"),
            ("shop -f a.json", "shop -x -f a.json"),
            ("PORT=1 make", "PORT=2 make"),
            ("x", "sudo x"),
            ("x", "sudo x --all"),
            ("npm test", "npm install && npm test"),
            ("git staus", "git status"),
            ("cat a.txt", "cat b.txt"),
            ("pytest -x tests/a", "pytest -x tests/b"),
            ("make", "make | head -20"),
            ("make build && make test", "make -j1 test"),
            ("cat <<E\nselect a\nE", "cat <<E\nselect a from b\nE"),
            (
                "psql <<E\nselect a from b\nE",
                "psql <<E\nselect a from b;\nE",
            ),
            (
                "cp 'My Files/cart/icon.png' b",
                "cp 'My Files/cart/src/icon.png' b",
            ),
            (
                "open '/data/My Files it failed/a'",
                "open '/data/My Files/a'",
            ),
            (
                "git commit -am 'Fix the cart of it'",
                "git commit -am 'Fix the cart'",
            ),
            ("git commit", "git commit -m 'Fix the cart'"),
            ("gh pr create --title a", "gh pr create --title 'a b'"),
            (
                "gh pr create --body='it failed'",
                "gh pr create --body='it did'",
            ),
            (
                "python3 -c 'print(1, 2, 3)'",
                "python3 -c 'print(1, 2, 3, 4)'",
            ),
            (
                "uv run python -c 'x = f(1, 2)'",
                "uv run python -c 'x = g.f(1, 2)'",
            ),
            ("node --eval 'a(1, 2)'", "node --eval 'await a(1, 2)'"),
            ("make --fast all", "make all"),
            ("bin/pack red --error web", "bin/pack --error web red"),
            ("cp a b", "cp b a"),
            ("bin/pack red --to web", "bin/pack --to web red"),
            ("cp --sync a b", "cp b --sync a"),
            ("CC=gcc make", "make"),
        ] {
            check(failed, worked, false);
        }
    }

    #[test]
    fn prose_of_a_tool_is_no_change() {
        let check = |failed: &str, worked: &str, expected: bool| {
            let line = "error: no label bug";
            let read = |code: &str| Call::of(code, Some("create_issue")).unwrap();
            let found = difference(&read(failed), &read(worked), line);
            assert_eq!(found.is_some(), expected, "{failed} | {worked}");
        };
        let failed = r#"{"query": "label bug in the cart", "body": "It is empty after a bug."}"#;
        check(
            failed,
            r#"{"query": "bug in the cart", "body": "It is empty after a bug."}"#,
            true,
        );
        check(
            failed,
            r#"{"query": "label bug in the cart", "body": "It is empty after a."}"#,
            false,
        );
        let failed = r#"{"file": "/srv/shop/label bug/a.txt", "rows": 3}"#;
        check(
            failed,
            r#"{"file": "/srv/shop/label/a.txt", "rows": 3}"#,
            false,
        );
    }
}

#[cfg(test)]
mod tests_of_statements {
    use super::*;

    #[test]
    fn corrected_statement_keeps_its_bounds_and_its_words() {
        let check = |old: &str, new: &str, expected: bool| {
            assert_eq!(reaches_more(old, new), expected, "{old} -> {new}");
        };
        check(
            "update a set b = 1 where order = 4",
            "update a set b = 1 where \"order\" = 4",
            false,
        );
        check(
            "update a set b = 1 where lastid = 4",
            "update a set b = 1 where last_id = 4",
            false,
        );
        check(
            "insert into a values (1 2)",
            "insert into a values (1, 2)",
            false,
        );
        check(
            "alter table a add column b",
            "alter table a add column b text",
            false,
        );
        check(
            "select * from order limit 5",
            "select * from \"order\" limit 5",
            false,
        );
        check("update a set b = 1 where c = 4", "update a set b = 1", true);
        check(
            "update a set b = 1 where c = 4",
            "update a set b = 1 where true",
            true,
        );
        check("delete from a where c = 4", "delete from a", true);
        check(
            "insert into a values (1)",
            "insert into a values (1) on conflict do nothing",
            true,
        );
        check(
            "select * from order limit 5",
            "select * from \"order\"",
            true,
        );
        check("alter table a add b", "alter table a drop b", true);
    }
}

#[cfg(test)]
mod tests_of_changes {
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
