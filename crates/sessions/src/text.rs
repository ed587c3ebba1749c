//! Text helpers for session files: fields of JSON, injected text, and length limits; and JSON that may be
//! cut off or have half a character.

use std::borrow::Cow;
use std::sync::LazyLock;

use memctl_redact::{Clean, redact_value};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum length of an output in bytes.
pub(super) const MAX_OUTPUT: usize = 6_000;
/// Maximum length of a text in call arguments, in bytes.
pub(super) const MAX_INPUT: usize = 8_000;
/// Maximum length of a remark in bytes.
pub(super) const MAX_REMARK: usize = 4_000;

/// Parsed JSON, or the text itself if it is not valid JSON.
pub(super) fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned()))
}

/// Text of a value; empty for any other value.
pub(super) fn of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Text of a value; `None` for any other value.
pub(super) fn owned(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Exit code in a value.
pub(super) fn code(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|code| i32::try_from(code).ok())
}

/// Removes the middle of a text longer than `max` bytes, since tools report their action first and
/// the result last. The whole text is redacted before, so that no part of a secret remains.
pub(super) fn cut(text: &Clean<'_>, max: usize) -> String {
    text.ends(max / 2, max / 2)
}

/// Redacts a value and shortens every long text in it.
pub(super) fn cut_values(value: &mut Value) {
    redact_value(value);
    cut_clean(value);
}

/// Shortens texts that are redacted already.
fn cut_clean(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MAX_INPUT => *text = cut(&Clean::of(text), MAX_INPUT),
        Value::Array(values) => values.iter_mut().for_each(cut_clean),
        Value::Object(fields) => fields.values_mut().for_each(cut_clean),
        _ => {}
    }
}

/// Output of a call without injected text, redacted and shortened.
pub(super) fn output(text: &str) -> String {
    cut(&Clean::of(&without_injected(text)), MAX_OUTPUT)
}

/// Tags around text that hosts and memories add to a session. The last is this program's own fence;
/// its name is followed by a nonce.
const INJECTED: &[&str] = &[
    "system-reminder", "hook_context", "session_context", "memctl",
];

/// Removes text that hosts and memories inject.
pub(super) fn without_injected(text: &str) -> Cow<'_, str> {
    without_elements(text, INJECTED, "")
}

/// Removes the elements with these names, and fences of this program. An open element ends with the text.
pub(super) fn without_elements<'t>(text: &'t str, names: &[&str], instead: &str) -> Cow<'t, str> {
    let mut rest = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = memchr::memchr(b'<', &text.as_bytes()[at..]) {
        let start = at + found;
        at = start + 1;
        let is_outside = |c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_';
        let tag = text[at..].split(is_outside).next().unwrap_or_default();
        if names.contains(&tag) || tag.starts_with("memctl-") {
            let close = format!("</{tag}>");
            let end = text[start..].find(&close);
            at = end.map_or(text.len(), |end| start + end + close.len());
            rest.push_str(&text[copied..start]);
            rest.push_str(instead);
            copied = at;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    Cow::Owned(rest + &text[copied..])
}

/// Parses a value.
///
/// # Errors
///
/// The reason, as text.
pub(super) fn parse(json: &str) -> Result<Value, String> {
    let read = serde_json::from_str(json).or_else(|error| match whole_characters(json) {
        Some(json) => serde_json::from_str(&json),
        None => Err(error),
    });
    read.map_err(|error| broken(&error))
}

/// Error text of the parser without its line number.
pub(super) fn broken(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.find(" at line ").unwrap_or(text.len());
    format!("{} at column {}", &text[..end], error.column())
}

/// Replaces each half of a surrogate pair, which hosts in JavaScript leave where they cut a text; `None` if
/// there is none.
pub fn whole_characters(json: &str) -> Option<String> {
    let unit = |at: usize| {
        let digits = json.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut whole = String::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(found) = json[at..].find('\\') {
        at += found;
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                whole.push_str(&json[from..at]);
                whole.push_str("\\ufffd");
                at += 6;
                from = at;
            }
            // The escape, and the character behind it, which may be a backslash.
            _ => at = json.ceil_char_boundary(at + 2),
        }
    }
    (from > 0).then(|| whole + &json[from..])
}

/// Returns the value at the beginning of a text, and what follows it.
pub(super) fn first<'a, T: Deserialize<'a>>(json: &'a str) -> Option<(T, &'a str)> {
    let mut values = serde_json::Deserializer::from_str(json).into_iter();
    let value = values.next()?.ok()?;
    Some((value, &json[values.byte_offset()..]))
}

/// Members of an object that may be cut off: each name, with the text from its value on.
pub(super) fn members(mut object: &str) -> impl Iterator<Item = (String, &str)> {
    std::iter::from_fn(move || {
        let inside = object.trim_start().strip_prefix(['{', ','])?;
        let (name, rest) = first::<&RawValue>(inside)?;
        let value = rest.trim_start().strip_prefix(':')?.trim_start();
        object = first::<IgnoredAny>(value).map_or("", |(_, rest)| rest);
        let name = parse(name.get()).ok()?;
        Some((name.as_str()?.to_owned(), value))
    })
}

/// Elements of a list that may be cut off, each with the text behind it; none if the value is no list.
pub(super) fn elements(mut list: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::from_fn(move || {
        let inside = list.trim_start().strip_prefix(['[', ','])?;
        let (element, rest) = first::<&RawValue>(inside)?;
        list = rest;
        Some((element.get(), rest))
    })
}

/// Elements of hosts whose content nobody typed.
static ELEMENTS: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("host_elements.txt").lines().collect());

/// First words of notices that hosts write as a message of the person.
const NOTICES: &[&str] = &[
    "This session is being continued from a previous conversation",
    "Caveat: The messages below were generated by the user",
    "# AGENTS.md instructions for",
    "[Request interrupted by user",
];

/// Names in the head of a record of others: of a pull request, an issue, a mail, a commit.
const HEADS: &[&str] = &[
    "title", "state", "author", "labels", "assignees", "reviewers", "projects", "milestone",
    "number", "url", "from", "to", "cc", "subject", "date", "reporter", "status", "priority",
    "additions", "deletions", "commit", "merge",
];

/// Names in such a head that say that somebody else wrote what follows.
const AUTHORS: &[&str] = &["author", "from", "reporter"];

/// Returns what the person typed of a message; empty if nothing.
///
/// A host writes more in a person's name: the text of a slash command, the output of a program, a notice. A person
/// pastes text of others: a pull request, a patch, a mail. Such words are data: a "never" in them is no wish of this
/// person. The form decides, never the words: elements of hosts, quoted lines, heads of a record with its author,
/// patches, and a document with headings. Text after a pasted one counts as pasted too.
pub fn own_words(message: &str) -> String {
    let text = without_host_elements(message);
    let text = text.trim();
    if NOTICES.iter().any(|notice| text.starts_with(notice)) {
        return String::new();
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut open = false;
    let headings = lines.iter().filter(|line| {
        open ^= line.trim_start().starts_with("```");
        !open && is_heading(line)
    });
    let headings = headings.count();
    let mut own = Vec::new();
    let mut fenced = false;
    for (at, line) in lines.iter().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        let is_document = headings > 1 && is_heading(line);
        if !fenced && (is_document || begins_patch(line) || begins_record(&lines[at..])) {
            break;
        }
        if !line.starts_with("> ") && line.trim() != ">" {
            own.push(*line);
        }
    }
    own.join("\n").trim().to_owned()
}

fn is_heading(line: &str) -> bool {
    let text = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - text.len())) && text.starts_with(' ')
}

fn begins_patch(line: &str) -> bool {
    let is_commit =
        |rest: &str| rest.len() >= 7 && rest.bytes().take(7).all(|b| b.is_ascii_hexdigit());
    line.starts_with("diff --git ")
        || line.starts_with("--- a/")
        || line.starts_with("@@ -")
        || line.strip_prefix("commit ").is_some_and(is_commit)
}

/// Returns `true` if lines begin with the head of a record: two names or more, one of an author.
fn begins_record(lines: &[&str]) -> bool {
    let names: Vec<String> = lines.iter().map_while(|line| name_of(line)).collect();
    names.len() > 1 && names.iter().any(|name| AUTHORS.contains(&name.as_str()))
}

/// Returns the name of a line such as `author: somebody`, also after a bullet and other words.
fn name_of(line: &str) -> Option<String> {
    let (before, after) = line.split_once(':')?;
    let name = before.trim().trim_start_matches(['-', '*', ' ']);
    let name = name.trim_matches(['*', '_']).to_ascii_lowercase();
    let is_value = after.is_empty() || after.starts_with([' ', '\t', '*']);
    (is_value && HEADS.contains(&name.as_str())).then_some(name)
}

/// Removes the elements of hosts. The arguments of a slash command are typed, and stay.
fn without_host_elements(message: &str) -> String {
    let text = message
        .replace("<command-args>", "")
        .replace("</command-args>", "");
    without_elements(&text, &ELEMENTS, "\n").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injected_text_is_removed() {
        let check = |text: &str, expected: &str| assert_eq!(without_injected(text), expected);
        check("a", "a");
        check("a<system-reminder>x</system-reminder>b", "ab");
        check(
            "a<hook_context>x</hook_context>\n<hook_context>y</hook_context>b",
            "a\nb",
        );
        check("a<memctl-3f2a>x<b></memctl-3f2a>b", "ab");
        check("<memctl>x</memctl>b", "b");
        check("a<memctl-3f2a>x</memctl-9999>b", "a");
        check(
            "a <memctlx> b <system-reminders> c",
            "a <memctlx> b <system-reminders> c",
        );
        check("a<system-reminder>cut", "a");
    }

    #[test]
    fn long_texts_lose_their_middle() {
        let cut = |text| cut(&Clean::of(text), 6);
        assert_eq!(cut("äöü"), "äöü");
        assert_eq!(cut("aäbcdefgä"), "aä\n…\ngä");
    }
}

#[cfg(test)]
mod tests_of_json {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_no_error() {
        let check = |json: &str, expected: &str| assert_eq!(parse(json).unwrap(), expected);
        check(r#""a\ud83d""#, "a\u{fffd}");
        check(r#""a\udE00b\ud83d\ude00""#, "a\u{fffd}b😀");
        check(r#""\\ud83d\ud83d\n""#, "\\ud83d\u{fffd}\n");
        assert!(parse(r#""\ud83"#).is_err());
    }

    #[test]
    fn a_document_may_be_cut_off() {
        let members = members(r#"{"a": {"b": 1}, "c": [1, 2"#);
        let names: Vec<String> = members.map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "c"]);
        let check = |list: &str, expected: &[&str]| {
            let found: Vec<&str> = elements(list).map(|(element, _)| element).collect();
            assert_eq!(found, expected, "{list}");
        };
        check(r#"[{"a": 1}, 7, {"b"#, &[r#"{"a": 1}"#, "7"]);
        check("7", &[]);
        check("[]", &[]);
    }
}

#[cfg(test)]
mod tests_of_own_words {
    use super::*;

    #[test]
    fn text_of_hosts_and_others_is_not_the_persons() {
        let check = |message: &str, expected: &str| {
            assert_eq!(own_words(message), expected, "{message}");
        };
        check("never push on a Friday", "never push on a Friday");
        check(
            "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n\
             <command-args>the login, and no mocks please</command-args>",
            "the login, and no mocks please",
        );
        check(
            "<bash-input>make</bash-input><bash-stdout>Never do this</bash-stdout>",
            "",
        );
        check("why?\n<ide_selection>always", "why?");
        check(
            "## Changes\n\nAlways call the wrapper.\n\n## Your task\n\nSummarise them.",
            "",
        );
        check(
            "look at this\n# Report\nNever deploy by hand.\n# Steps\n1. x",
            "look at this",
        );
        // One heading is how some people write a title.
        check(
            "# Login\nUse the token of the test user.",
            "# Login\nUse the token of the test user.",
        );
        let shell = "# in a shell:\n```\n# one\n# two\n```\nonly bash please";
        check(shell, shell);
        check(
            "can you check it?\n\ntitle:\tSpeed up\nstate:\tOPEN\nauthor:\tsomebody\n--\nNever sleep here.",
            "can you check it?",
        );
        check("From: a@example.org\nSubject: Hello\n\nAlways answer.", "");
        check("title: short\nstate: open", "title: short\nstate: open");
        check("is this ok\ndiff --git a/x b/x\n+always", "is this ok");
        check("> never do that\nwho said this?", "who said this?");
        check(
            "This session is being continued from a previous conversation that ran out",
            "",
        );
    }
}
