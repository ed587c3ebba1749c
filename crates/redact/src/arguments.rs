//! Secrets among the arguments of a program: `mysql -pX`, `curl -u name:X`, `docker login -p X`.
//!
//! The table `rules/commands.tsv` lists programs and their secret arguments. This module splits a
//! line into words as a shell would, including lines escaped in JSON and lists of strings.

use std::ops::Range;

use super::assignments::{Class, ValuePosition};
use super::keys::{Set, holds, near, over_breaks};
use super::lines;
use super::randomness;
use super::rules::list;
use super::values;

/// Longest part of a line that is read, in bytes.
const LONGEST: usize = 4096;

/// Secrets among the arguments of the program at `at..end`, at these places.
pub(super) fn of_command(
    text: &[u8],
    at: usize,
    end: usize,
    places: &'static str,
) -> Vec<Range<usize>> {
    // An anchor may end in a space, the name of a program does not.
    let end = end - usize::from(text[end - 1] == b' ');
    if !begins(text, at) || !matches!(text.get(end), Some(b' ' | b'"' | b'\'' | b'\\')) {
        return Vec::new();
    }
    let arguments = split(text, end);
    let is_given = |word: &str| {
        arguments
            .iter()
            .any(|a| text[a.clone()] == *word.as_bytes())
    };
    let words = places
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let (words, places) = words.unwrap_or(("", places));
    if !words.is_empty() && !words.split(' ').any(is_given) {
        return Vec::new();
    }
    let places = places.split(", ").map(Place::read);
    places
        .filter_map(|place| of_place(text, &arguments, place))
        .collect()
}

/// Place of a secret argument, as `rules/commands.tsv` writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place<'t> {
    /// `-p X`; for a long option also `--option=X`.
    Next(&'t str),
    /// `-pX`, `pass:X`.
    Glued(&'t str),
    /// `-u _:X`: behind a name and this sign; without an option as any argument.
    Behind(&'t str, u8),
    /// `_ _ X`: the last argument that is not an option, after at least this number of others.
    Last(usize),
    /// `X only`: the last argument, after at most one other.
    Alone,
}

impl<'t> Place<'t> {
    fn read(text: &'t str) -> Self {
        let (option, value) = text.rsplit_once(' ').unwrap_or(("", text));
        match *value.as_bytes() {
            [b'X'] if option.bytes().all(|b| matches!(b, b'_' | b' ')) => {
                Self::Last(option.split(' ').filter(|word| !word.is_empty()).count())
            }
            [b'X'] => Self::Next(option),
            [b'_', sign, b'X'] => Self::Behind(option, sign),
            _ if option == "X" => Self::Alone,
            _ => Self::Glued(value.trim_end_matches('X')),
        }
    }
}

/// Returns true if the name of a program can begin at `at`.
fn begins(text: &[u8], at: usize) -> bool {
    at == 0
        || b" \t\n\r;|&(`\"'/[>=+:\\".contains(&text[at - 1])
        || text[..at].ends_with(b"\\n")
        || text[..at].ends_with("→".as_bytes())
        || text[..at].ends_with(b"m") && lines::prefix(&text[lines::line_at(text, at)]) > 0
}

fn of_place(text: &[u8], arguments: &[Range<usize>], place: Place<'_>) -> Option<Range<usize>> {
    let bytes = |argument: &Range<usize>| &text[argument.clone()];
    let given = |value: Range<usize>| is_secret(text, &value).then_some(value);
    match place {
        Place::Next(name) => arguments.iter().enumerate().find_map(|(i, argument)| {
            let value = bytes(argument);
            if value == name.as_bytes() {
                return given(arguments.get(i + 1)?.clone());
            }
            let rest = value.strip_prefix(name.as_bytes())?;
            let is_long = name.starts_with("--") && rest.starts_with(b"=");
            given(unquoted(text, argument.end - rest.len() + 1..argument.end)).filter(|_| is_long)
        }),
        Place::Glued(name) => arguments.iter().find_map(|argument| {
            let rest = bytes(argument).strip_prefix(name.as_bytes())?;
            let value = unquoted(text, argument.end - rest.len()..argument.end);
            let secret =
                values::is_secret(&text[value.clone()], Class::Password, ValuePosition::Tight);
            given(value).filter(|_| secret)
        }),
        Place::Behind("", mark) => arguments.iter().find_map(|argument| {
            let value = bytes(argument);
            let at = memchr::memchr(mark, value)?;
            let end = memchr::memchr(b'@', value)
                .unwrap_or(value.len())
                .max(at + 1);
            given(argument.start + at + 1..argument.start + end)
                .filter(|_| at > 0 && value[0] != b'-')
        }),
        Place::Behind(name, mark) => arguments.iter().enumerate().find_map(|(i, argument)| {
            let rest = bytes(argument).strip_prefix(name.as_bytes())?;
            if rest.is_empty() {
                return behind(text, arguments.get(i + 1)?.clone(), mark);
            }
            let equals = usize::from(rest[0] == b'=');
            let whole = unquoted(text, argument.end - rest.len() + equals..argument.end);
            behind(text, whole, mark).filter(|_| name.len() <= 2 || equals == 1)
        }),
        Place::Alone => {
            let last = arguments.last().filter(|_| arguments.len() <= 2)?;
            let value = bytes(last);
            let long = value.iter().any(u8::is_ascii_digit) && value.len() >= 8;
            let secret = long
                && !value.iter().any(|b| b"/:=".contains(b))
                && values::is_secret(value, Class::Password, ValuePosition::Loose);
            given(last.clone()).filter(|_| secret)
        }
        Place::Last(before) => {
            let plain = |argument: &&Range<usize>| {
                !matches!(bytes(argument).first(), None | Some(b'-')) && !is_switch(bytes(argument))
            };
            let plain: Vec<&Range<usize>> = arguments.iter().filter(plain).collect();
            let last = plain.last().filter(|_| plain.len() > before)?;
            let value = bytes(last);
            let secret = randomness::is_random(value)
                || values::is_secret(value, Class::Password, ValuePosition::Loose);
            let name = value.iter().any(|b| b"/=\\".contains(b)) || value.ends_with(b"pkg");
            given((*last).clone()).filter(|_| secret && !name)
        }
    }
}

/// `/add`, `/user:jane`: a Windows option.
fn is_switch(argument: &[u8]) -> bool {
    argument.len() > 2
        && argument[0] == b'/'
        && argument[1].is_ascii_alphabetic()
        && !argument[1..].contains(&b'/')
}

/// Returns the secret after the mark between a name and a value.
fn behind(text: &[u8], whole: Range<usize>, mark: u8) -> Option<Range<usize>> {
    let value = &text[whole.clone()];
    let at = memchr::memchr(mark, value)?;
    let (name, mut password) = (&value[..at], &value[at + 1..]);
    // Cookies: only the first, up to its `;`.
    if mark == b'=' {
        password = &password[..memchr::memchr(b';', password).unwrap_or(password.len())];
        let path = name.contains(&b'/') || name.contains(&b' ');
        let random = randomness::is_random(password) && !path;
        return random.then_some(whole.start + at + 1..whole.start + at + 1 + password.len());
    }
    let known = password == name || name.is_empty() && mark != b':' || password.starts_with(b"//");
    (!known && values::is_given(password)).then_some(whole.start + at + 1..whole.end)
}

fn is_secret(text: &[u8], value: &Range<usize>) -> bool {
    let value = &text[value.clone()];
    // Lower-case words may belong to a sentence, numbers may be ports.
    let letters = value.iter().all(u8::is_ascii_lowercase);
    let port = value.len() <= 5 && value.iter().all(|b| b.is_ascii_digit() || *b == b':');
    values::is_given(value) && !port && (!letters || value.len() >= 6)
}

fn unquoted(text: &[u8], value: Range<usize>) -> Range<usize> {
    let start = value.start + Set::QUOTES.run(text, value.start, value.len());
    start..value.end - Set::QUOTES.run_before(text, value.end, value.end - start)
}

/// Words of a command after its name, without their quotes.
fn split(text: &[u8], from: usize) -> Vec<Range<usize>> {
    let limit = text.len().min(from + LONGEST);
    let listed = matches!(text[from], b'"' | b'\'') && matches!(text.get(from + 1), Some(b','));
    let mut words = Vec::new();
    let mut at = from + usize::from(listed);
    while at < limit && words.len() < 64 {
        match text[at] {
            b' ' | b'\t' => at += 1,
            b',' if listed => at += 1,
            b'\\' if matches!(text.get(at + 1), Some(b'\n' | b'\r')) => {
                let next = over_breaks(text, at);
                let next = lines::over_prefix(text, at, next);
                at = next.max(at + 1);
            }
            // `curl "…" \` followed by an escaped line end.
            b'\\' if text[at..].starts_with(b"\\\\n") => at += 3,
            b'\n' | b'\r' | b';' | b'|' | b'&' | b')' | b'`' => break,
            b'\\' if text.get(at + 1) == Some(&b'n') => break,
            b']' if listed => break,
            // Frame of a box.
            0xE2 if text[at..].starts_with("│".as_bytes()) => break,
            _ => {
                let word = word(text, at, limit);
                at = word.end.max(at + 1);
                words.push(word);
            }
        }
    }
    words
        .into_iter()
        .map(|word| {
            let first = text[word.start];
            let quoted = matches!(first, b'"' | b'\'' | b'\\');
            if quoted { unquoted(text, word) } else { word }
        })
        .filter(|word| !word.is_empty())
        .collect()
}

/// Range of the word that begins at `at`, with its quotes.
fn word(text: &[u8], at: usize, limit: usize) -> Range<usize> {
    let mut end = at;
    let mut quote = None;
    while end < limit {
        let byte = text[end];
        match (byte, quote) {
            (b'\n' | b'\r', _) => break,
            (b'\\', None | Some(b'"')) if matches!(text.get(end + 1), Some(b'"' | b'\'')) => {
                // An escaped quote opens and closes like a plain one.
                end += 1;
                let byte = text[end];
                quote = match quote {
                    None => Some(byte),
                    Some(open) if open == byte => None,
                    open => open,
                };
            }
            (b'\\', None) if matches!(text.get(end + 1), Some(b'n' | b'\n')) => break,
            (b'"' | b'\'', None) => quote = Some(byte),
            (b'"' | b'\'', Some(open)) if open == byte => quote = None,
            (b' ' | b'\t' | b';' | b'|' | b'&' | b',' | b']' | b')', None)
                if byte != b',' || end > at && matches!(text[end - 1], b'"' | b'\'') =>
            {
                break;
            }
            _ => {}
        }
        end += 1;
    }
    at..end
}

/// Secret that `echo` pipes into a program that reads a password; for `chpasswd` the part after the
/// colon. `at` is the position after the space.
pub(super) fn piped(text: &[u8], _: usize, at: usize) -> Vec<Range<usize>> {
    piped_value(text, at).into_iter().collect()
}

fn piped_value(text: &[u8], at: usize) -> Option<Range<usize>> {
    let line = near(text, at, 1024).split(|b| *b == b'\n').next()?;
    let pipe = memchr::memrchr(b'|', line)?;
    let reads = |reader: &&&str| holds(&line[pipe..], reader.as_bytes());
    let reader = list("password readers").iter().find(reads)?;
    let words = split(text, at.checked_sub(1)?);
    let mut values = words.into_iter().rev();
    let mut value = values.find(|word| !text[word.clone()].starts_with(b"-"))?;
    if *reader == "chpasswd" {
        value.start += memchr::memchr(b':', &text[value.clone()])? + 1;
    }
    if text[value.clone()].ends_with(b"\\n") {
        value.end -= 2;
    }
    is_secret(text, &value).then_some(value)
}
