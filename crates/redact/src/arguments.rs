//! Secrets among the arguments of a program: `mysql -pX`, `curl -u name:X`, `docker login -p X`.
//!
//! The table `rules/commands.tsv` lists programs and their secret arguments. This module splits a
//! line into words as a shell would, including lines escaped in JSON and lists of strings.

use std::ops::Range;

use super::bytes::{Set, can_begin, holds, list, near, over_breaks};
use super::lines;
use super::values::{self, Class, ValuePosition};

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
    if !can_begin(text, at) || !matches!(text.get(end), Some(b' ' | b'"' | b'\'' | b'\\')) {
        return Vec::new();
    }
    let arguments = split(text, end);
    let is_given = |word: &str| {
        let mut arguments = arguments.iter();
        arguments.any(|argument| text[argument.clone()] == *word.as_bytes())
    };
    let bracketed = places.strip_prefix('[');
    let words = bracketed.and_then(|rest| rest.split_once("] "));
    let (words, places) = words.unwrap_or(("", places));
    if !words.is_empty() && !words.split(' ').any(is_given) {
        return Vec::new();
    }
    let places = places.split(", ");
    places
        .filter_map(|place| of_place(text, &arguments, place))
        .collect()
}

/// Secret argument at a place as `rules/commands.tsv` writes it.
fn of_place(text: &[u8], arguments: &[Range<usize>], place: &str) -> Option<Range<usize>> {
    let given = |value: Range<usize>| is_secret(text, &value).then_some(value);
    let (option, value) = place.rsplit_once(' ').unwrap_or(("", place));
    match *value.as_bytes() {
        [b'X'] if option.bytes().all(|b| b"_ ".contains(&b)) => {
            let others = option.bytes().filter(|b| *b == b'_').count();
            given(last(text, arguments, others)?)
        }
        [b'X'] => arguments.iter().enumerate().find_map(|(i, argument)| {
            let rest = text[argument.clone()].strip_prefix(option.as_bytes())?;
            // `--option=X`
            let is_long = option.starts_with("--") && rest.starts_with(b"=");
            match rest {
                [] => given(arguments.get(i + 1)?.clone()),
                _ if is_long => given(unquoted(text, argument.end - rest.len() + 1..argument.end)),
                _ => None,
            }
        }),
        [b'_', sign, b'X'] if option.is_empty() => arguments.iter().find_map(|argument| {
            let value = &text[argument.clone()];
            let at = memchr::memchr(sign, value)?;
            let end = memchr::memchr(b'@', value).unwrap_or(value.len());
            given(argument.start + at + 1..argument.start + end.max(at + 1))
                .filter(|_| at > 0 && value[0] != b'-')
        }),
        [b'_', sign, b'X'] => arguments.iter().enumerate().find_map(|(i, argument)| {
            let rest = text[argument.clone()].strip_prefix(option.as_bytes())?;
            let Some(first) = rest.first() else {
                return behind(text, arguments.get(i + 1)?.clone(), sign);
            };
            let equals = usize::from(*first == b'=');
            let whole = unquoted(text, argument.end - rest.len() + equals..argument.end);
            behind(text, whole, sign).filter(|_| option.len() <= 2 || equals == 1)
        }),
        _ if option == "X" => {
            let last = arguments.last().filter(|_| arguments.len() <= 2)?;
            let value = &text[last.clone()];
            let long = value.iter().any(u8::is_ascii_digit) && value.len() >= 8;
            let secret = long
                && !value.iter().any(|b| b"/:=".contains(b))
                && values::is_secret(value, Class::Password, ValuePosition::Loose);
            given(last.clone()).filter(|_| secret)
        }
        // `-pX`
        _ => arguments.iter().find_map(|argument| {
            let option = value.trim_end_matches('X').as_bytes();
            let rest = text[argument.clone()].strip_prefix(option)?;
            let value = unquoted(text, argument.end - rest.len()..argument.end);
            let secret = &text[value.clone()];
            let secret = values::is_secret(secret, Class::Password, ValuePosition::Tight);
            given(value).filter(|_| secret)
        }),
    }
}

/// Last argument that is not an option, after at least this number of others.
fn last(text: &[u8], arguments: &[Range<usize>], others: usize) -> Option<Range<usize>> {
    let plain = arguments.iter().filter(|argument| {
        let argument = &text[(*argument).clone()];
        !argument.starts_with(b"-") && !is_switch(argument)
    });
    let plain: Vec<&Range<usize>> = plain.collect();
    let last = plain.last().filter(|_| plain.len() > others)?;
    let value = &text[(*last).clone()];
    let secret =
        values::is_random(value) || values::is_secret(value, Class::Password, ValuePosition::Loose);
    let name = value.iter().any(|b| b"/=\\".contains(b)) || value.ends_with(b"pkg");
    (secret && !name).then(|| (*last).clone())
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
        let random = values::is_random(password) && !path;
        return random.then_some(whole.start + at + 1..whole.start + at + 1 + password.len());
    }
    let is_plain =
        password == name || name.is_empty() && mark != b':' || password.starts_with(b"//");
    (!is_plain && values::is_given(password)).then_some(whole.start + at + 1..whole.end)
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
                let mut word = word(text, at, limit);
                at = word.end.max(at + 1);
                if Set::QUOTES.holds(text[word.start]) {
                    word = unquoted(text, word);
                }
                words.extend(Some(word).filter(|word| !word.is_empty()));
            }
        }
    }
    words
}

/// Range of the word that begins at `at`, with its quotes.
fn word(text: &[u8], at: usize, limit: usize) -> Range<usize> {
    let mut end = at;
    let mut quote = None;
    while end < limit {
        // An escaped quote opens and closes like a plain one.
        let is_escaped = text[end] == b'\\'
            && quote != Some(b'\'')
            && matches!(text.get(end + 1), Some(b'"' | b'\''));
        end += usize::from(is_escaped);
        let byte = text[end];
        match (byte, quote) {
            (b'\n' | b'\r', _) | (b' ' | b'\t' | b';' | b'|' | b'&' | b']' | b')', None) => break,
            (b'\\', None) if matches!(text.get(end + 1), Some(b'n' | b'\n')) => break,
            (b'"' | b'\'', None) => quote = Some(byte),
            (_, Some(open)) if open == byte => quote = None,
            (b',', None) if end > at && matches!(text[end - 1], b'"' | b'\'') => break,
            _ => {}
        }
        end += 1;
    }
    at..end
}

/// Secret that `echo` pipes into a program that reads a password; for `chpasswd` the part after the
/// colon. `at` is the position after the space.
pub(super) fn piped(text: &[u8], _: usize, at: usize) -> Option<Range<usize>> {
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
    is_secret(text, &value).then_some(value)
}
