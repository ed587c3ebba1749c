//! Secrets that have a name: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`, "the password is …".
//!
//! The anchor is the word in the name. The name around it is read first, then the separator
//! (`separator`), then the value (`extent`); `values` decides about name and value. `documents`
//! reads values in other lines.

use std::ops::Range;

use super::documents;
use super::extent::{read, scheme};
use super::keys::{Set, holds, near, over_breaks, skip};
use super::lines;
use super::randomness;
use super::separator::separator;
use super::values;
use super::views;

/// Values of a secret whose name contains the anchor `at..end`.
pub(super) fn value(
    text: &[u8],
    at: usize,
    end: usize,
    kind: &'static str,
    class: Class,
) -> Vec<Range<usize>> {
    let Some(name) = name(text, at, end, kind, class) else {
        return Vec::new();
    };
    if let Some(found) = beside_name(text, &name) {
        let changed = changed_to(text, &found, &name);
        return std::iter::once(found).chain(changed).collect();
    }
    documents::values(text, &name)
}

/// Name around an anchor, or `None` if it does not name a secret.
fn name(text: &[u8], at: usize, end: usize, kind: &'static str, class: Class) -> Option<Name> {
    let mut start = at - Set::WORD.run_before(text, at, 60);
    // `\nPASSWORD=…`: the letter of an escape does not belong to the name.
    if start > 0
        && text[start - 1] == b'\\'
        && matches!(text.get(start), Some(b'n' | b't' | b'r'))
        && start < at
    {
        start += 1;
    }
    // Neither do the digits and the letter of a colour code.
    if start > 1 && text[start - 1] == b'[' && text[start - 2] == 0x1B {
        let colour = Set::DIGITS.run(text, start, at - start);
        let is_colour = text.get(start + colour) == Some(&b'm') && start + colour < at;
        start += usize::from(is_colour) * (colour + 1);
    }
    // `%22password%22`, `%26token%3D`
    if start > 0 && text[start - 1] == b'%' && at - start >= 2 {
        start += 2;
    }
    let stop = end + Set::WORD.run(text, end, 60);
    // Names are ASCII, so both slices are valid UTF-8.
    let before = std::str::from_utf8(&text[start..at]).ok()?;
    let after = std::str::from_utf8(&text[end..stop]).ok()?;
    // Rejects `bypassword`, accepts `dbPassword` and `PGPASSWORD`.
    let word = &text[at..end];
    // A bare `pass` is usually a verb, and test runners print `PASS:`.
    let is_bare = word.eq_ignore_ascii_case(b"pass") || word.eq_ignore_ascii_case(b"psk");
    let alone = before.chars().all(|c| !c.is_ascii_alphanumeric()) && after.is_empty();
    let alone = alone && !(start > 0 && matches!(text[start - 1], b'@' | b'/' | b'.'));
    let says = word[0].is_ascii_uppercase() && text.get(stop) == Some(&b':');
    let fits = !is_bare || (alone && !says);
    (fits && values::is_own(before, after, class)).then_some(Name {
        start,
        stop,
        kind,
        class,
        is_bare,
    })
}

fn beside_name(text: &[u8], name: &Name) -> Option<Range<usize>> {
    let Name { start, stop, .. } = *name;
    // Name of a secret inside a resource address.
    if text[..start].ends_with(b":") && holds(&text[start.saturating_sub(100)..start], b"arn:aws") {
        return None;
    }
    let (mut from, mut stands) = separator(text, stop, start, name)?;
    from = over_type(text, from);
    // `password: str = "…"`: the value follows the type.
    for _ in 0..2 {
        let (range, how) = read(text, from, stands, name)?;
        if judge(text, &range, name, how) {
            return Some(range);
        }
        let next = skip(text, range.end, b" \"'");
        if text.get(next) != Some(&b'=') || text.get(next + 1) == Some(&b'=') {
            return None;
        }
        from = skip(text, next + 1, b" ");
        stands = ValuePosition::Loose;
    }
    None
}

/// New value in a plan's diff: `"…" -> "…"`.
fn changed_to(text: &[u8], old: &Range<usize>, name: &Name) -> Option<Range<usize>> {
    let quote = skip(text, old.end, b"\"\\ ");
    let from = text[quote..].starts_with(b"-> ").then_some(quote + 3)?;
    let (range, how) = read(text, from, ValuePosition::Loose, name)?;
    judge(text, &range, name, how).then_some(range)
}

/// Position after a type and its `=`: `: &'static str = "…"`.
fn over_type(text: &[u8], from: usize) -> usize {
    let near = near(text, from, 60);
    let of_type = |b: &&u8| b.is_ascii_alphanumeric() || b"_&'<>[]|?., :*".contains(b);
    let length = near.iter().take_while(of_type).count();
    let is_type = length > 2 && near[..length].ends_with(b" ") && near[length..].starts_with(b"= ");
    let value = from + length + 2;
    let quoted = matches!(text.get(value), Some(b'"' | b'\'' | b'`'));
    if is_type && quoted { value } else { from }
}

/// Kind of secret in a JSON field of this name, or after such a flag; `None` if it is not a secret.
pub(super) fn of_field(name: &str, value: &str) -> Option<&'static str> {
    if matches!(name, "auth" | "_auth") && views::is_login(value.as_bytes()) {
        return Some("docker-auth");
    }
    let (kind, class) = values::named(name.trim_start_matches('-'))?;
    let secret = value.as_bytes();
    let secret = &secret[scheme(secret)..];
    values::is_secret(secret, class, ValuePosition::Quoted).then_some(kind)
}

/// Strictness of the value check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Chosen by people: a short word with a digit suffices.
    Password,
    /// Generated by programs: has to look random.
    Token,
    /// Ambiguous name, secret or not: long, in one piece, and random.
    Key,
    /// Vendor name alone; checked like `Key`.
    Provider,
    /// Words of a seed phrase.
    Phrase,
}

/// Position of a value in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValuePosition {
    /// In quotes.
    Quoted,
    /// Directly after `=`, as in an environment or a query.
    Tight,
    /// After a separator and a space.
    Loose,
    /// In a sentence: "the password is …".
    Prose,
}

/// Name that contains the word of an anchor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    pub(super) start: usize,
    pub(super) stop: usize,
    pub(super) kind: &'static str,
    pub(super) class: Class,
    /// Short word with other meanings, which needs a separator after it.
    pub(super) is_bare: bool,
}

impl Name {
    /// A password that has no name in the text.
    pub(super) const fn password(at: usize) -> Self {
        Self {
            start: at,
            stop: at,
            kind: "password",
            class: Class::Password,
            is_bare: false,
        }
    }
}

/// Returns `true` if the value at `range` beside a name is a secret.
pub(super) fn judge(text: &[u8], range: &Range<usize>, name: &Name, stands: ValuePosition) -> bool {
    let joined = without_breaks(&text[range.clone()]);
    if name.kind == "authorization" {
        return (randomness::is_random(&joined) || views::is_login(&joined))
            && !randomness::is_placeholder(&joined);
    }
    // A value that is called or indexed is code.
    let is_called =
        stands != ValuePosition::Quoted && matches!(text.get(range.end), Some(b'(' | b'['));
    // A value with a truncation mark may have lost the digits that identify it as a password.
    let is_left = name.class == Class::Password
        && stands != ValuePosition::Prose
        && joined.len() >= 6
        && joined.iter().all(u8::is_ascii_alphabetic)
        && lines::is_marked(text, range.end)
        && values::is_given(&joined);
    !is_called && (is_left || values::is_secret(&joined, name.class, stands))
}

fn without_breaks(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut at = 0;
    while at < value.len() {
        let next = over_breaks(value, at);
        if next > at {
            at = next;
        } else {
            out.push(value[at]);
            at += 1;
        }
    }
    out
}
