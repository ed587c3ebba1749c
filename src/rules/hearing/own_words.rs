//! Own words of a person in a message: without code, logs, tags and what they quote of others.
//!
//! Invariant: a text of others in the message is no demand of the person, so where it is not clear whose words
//! they are, they are left out.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex_lite::{Captures, Regex};

use crate::model::text::regex;
use crate::rules::vocabulary::WORDS;

/// Ends of the names of errors.
const ERRORS: [&str; 3] = ["Error", "Exception", "Warning"];
/// Length of a quotation that repeats someone, in words and in bytes.
const QUOTED_WORDS: usize = 3;
const QUOTED_BYTES: usize = 13;
/// Maximum number of words of a sentence.
const LONGEST: usize = 80;

/// Returns what the person typed, without code blocks, quoted lines, log lines, and text between
/// tags.
pub(super) fn own_words(text: &str) -> String {
    let text = without_tags(&memctl_sessions::own_words(text));
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced && !is_foreign(start) {
            lines.push(line);
        }
    }
    lines.join("\n").trim().to_owned()
}

/// Returns `true` for the name of an error before its message: `ValueError:`.
fn is_error(word: &str) -> bool {
    let name = word.strip_suffix(':').unwrap_or_default();
    let is_name = name
        .chars()
        .all(|c| c.is_alphanumeric() || "._".contains(c));
    is_name && ERRORS.iter().any(|end| name.ends_with(end))
}

/// Replaces an error within a line by `…`: from its name to the end of its quotation, sentence or line.
pub(super) fn without_errors(own: &str) -> String {
    let of_line = |line: &str| {
        let mut words = line
            .split(' ')
            .map(|word| word.trim_start_matches(['`', '\'', '"']));
        let Some(name) = words.find(|word| is_error(word)) else {
            return line.to_owned();
        };
        let at = line.find(name).unwrap_or_default();
        let (before, error) = line.split_at(at);
        let mark = before.chars().next_back().filter(|c| "`'\"".contains(*c));
        let end = match mark {
            Some(mark) => error.find(mark).map(|end| end + mark.len_utf8()),
            None => error.find(". ").map(|end| end + 1),
        };
        format!("{before}…{}", &error[end.unwrap_or(error.len())..])
    };
    own.split('\n').map(of_line).collect::<Vec<_>>().join("\n")
}

fn is_foreign(line: &str) -> bool {
    let mut words = line.split(' ');
    let is_log = |word: &str| WORDS.log.contains(word) || is_error(word);
    WORDS.foreign.begin(line)
        || words.next().is_some_and(is_log)
        || words.next().is_some_and(|word| WORDS.log.contains(word))
}

/// Quotation within a line, with its marks.
static QUOTATION: LazyLock<Regex> =
    LazyLock::new(|| regex("[\"“„«「『”]([^\"”“»」』«\n]*)[\"”“»」』«]"));

/// Replaces quotations of several words by `…`. A quoted name stays.
pub(super) fn without_quotations(text: &str) -> Cow<'_, str> {
    QUOTATION.replace_all(text, |quotation: &Captures<'_>| {
        let inside = &quotation[1];
        let is_said = inside.split_whitespace().count() >= QUOTED_WORDS;
        if is_said || inside.len() >= QUOTED_BYTES {
            " … ".to_owned()
        } else {
            quotation[0].to_owned()
        }
    })
}

/// A sentence without what stands between single quotation marks or backticks, if that is of several words.
pub(super) fn without_said(sentence: &str) -> String {
    let mut own = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while let Some(at) = rest.find(['\'', '`']) {
        let (before, quoted) = rest.split_at(at);
        let behind = &quoted[1..];
        // An apostrophe stands within a word.
        let is_end = |end: &usize| !behind[end + 1..].starts_with(char::is_alphanumeric);
        let mut ends = behind.match_indices(&quoted[..1]).map(|(end, _)| end);
        let end = ends.find(is_end).filter(|end| {
            let is_open = !before.ends_with(char::is_alphanumeric);
            is_open && behind[..*end].split_whitespace().count() >= QUOTED_WORDS
        });
        own.push_str(before);
        own.push_str(if end.is_some() { "…" } else { &quoted[..1] });
        rest = end.map_or(behind, |end| &behind[end + 1..]);
    }
    own.push_str(rest);
    own
}

/// Replaces `<name …>…</name>` by a line break. A tag that is not closed stays.
fn without_tags(text: &str) -> String {
    let mut own = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let tag = &rest[at..];
        if let Some(end) = closing(tag) {
            own.push_str(&rest[..at]);
            own.push('\n');
            rest = &tag[end..];
        } else {
            own.push_str(&rest[..=at]);
            rest = &tag[1..];
        }
    }
    own.push_str(rest);
    own
}

/// Position after the closing tag of the tag that a text starts with.
fn closing(tag: &str) -> Option<usize> {
    let name = &tag[1..];
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        .then_some(())?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
    let close = format!("</{}>", &name[..end]);
    Some(tag.find(&close)? + close.len())
}

/// Splits the own words into sentences. Every line ends a sentence.
pub(super) fn sentences(own: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in own.split('\n') {
        let is_mark = |c: char| "-*•0123456789.)( ".contains(c);
        let line = line.trim().trim_start_matches(is_mark);
        let mut begin = 0;
        for (at, c) in line.char_indices() {
            let next = at + c.len_utf8();
            let ends = next == line.len()
                || ("。！？；".contains(c))
                || (".!?;:–—-".contains(c) && line[next..].starts_with([' ', '\t']));
            if !ends {
                continue;
            }
            let sentence = line[begin..next].trim();
            begin = next;
            if (1..=LONGEST).contains(&sentence.split_whitespace().count()) {
                found.push(sentence.to_owned());
            }
        }
    }
    found
}

/// Words of a lower-case text. Dots, apostrophes and hyphens inside a word are part of it.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in text.chars() {
        if c.is_alphanumeric() || ".'-_".contains(c) {
            if let Some(word) = words.last_mut() {
                word.push(c);
            }
        } else {
            words.push(String::new());
        }
    }
    let trimmed = words
        .iter()
        .map(|word| word.trim_matches(['.', '\'', '-', '_']));
    let found = trimmed.filter(|word| !word.is_empty());
    found.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_person_wrote_is_left() {
        let check = |text: &str, expected: &str| assert_eq!(own_words(text), expected, "{text:?}");
        check("use x", "use x");
        check("see\n```sh\nnpm i\n```\nwhy?", "see\nwhy?");
        check("see\n```\nnot closed", "see");
        check("> quoted\nand mine\n$ ls\n[12:00] log", "and mine");
        check("mine\nnpm WARN old\nValueError: x\nwarning: y", "mine");
        check("a <b c>d</b> e", "a \n e");
        check("1 < 2 and <i> too", "1 < 2 and <i> too");
        check("<é>x</é> <a", "");
        check("<task-notification>always ask</task-notification>", "");
    }

    #[test]
    fn quotations_of_several_words_are_left_out() {
        let check = |text: &str, expected: &str| {
            assert_eq!(without_quotations(text), expected, "{text:?}");
        };
        check("Sam said \"never do this\" again", "Sam said  …  again");
        check("write \"Dear all\" first", "write \"Dear all\" first");
        check("pone «no uses eso, usa otro» ahí", "pone  …  ahí");
        check("„kein Docker mehr hier“ steht da", " …  steht da");
        check("5\" wide\nand 6\" high", "5\" wide\nand 6\" high");
        check("\"", "\"");
    }

    #[test]
    fn errors_within_a_line_are_left_out() {
        let check =
            |text: &str, expected: &str| assert_eq!(without_errors(text), expected, "{text:?}");
        check("I get `IOError: no disk, never mind` here", "I get `… here");
        check(
            "what is KeyError: 'x' not there. Use get.",
            "what is … Use get.",
        );
        check(
            "ümlaut\nraise a ValueError here",
            "ümlaut\nraise a ValueError here",
        );
    }

    #[test]
    fn lines_and_marks_end_sentences() {
        let check =
            |text: &str, expected: &[&str]| assert_eq!(sentences(text), expected, "{text:?}");
        check("Use v1.2 here! Ok?", &["Use v1.2 here!", "Ok?"]);
        check(
            "- one thing\n2) another thing",
            &["one thing", "another thing"],
        );
        check("ünï çödé; zwei", &["ünï çödé;", "zwei"]);
        check("不要。先问", &["不要。", "先问"]);
        check(&"word ".repeat(81), &[]);
    }
}
