//! Separators between the name of a secret and its value: signs, words, other fields.

use super::assignments::{Name, ValuePosition, skip};
use super::documents;
use super::keys::over_breaks;
use super::lines;

const BLANK: fn(&u8) -> bool = |byte| matches!(byte, b' ' | b'\t');

/// Start and position class of the value after a name that ends at `stop`.
pub(super) fn separator(
    text: &[u8],
    stop: usize,
    start: usize,
    name: &Name,
) -> Option<(usize, ValuePosition)> {
    let position = |tight| {
        if tight {
            ValuePosition::Tight
        } else {
            ValuePosition::Loose
        }
    };
    let closed = skip(text, stop, |b| b"\\\"'`]*".contains(b));
    let spaced = skip(text, closed, BLANK);
    let rest = text.get(spaced..)?;
    let length = match rest {
        [b':' | b'=' | b'!', b'=', b'=', ..]
        | [b'|', b'|', b'=', ..]
        | [b'%', b'3', b'D' | b'd', ..] => 3,
        [b':' | b'=' | b'!' | b'?' | b'+', b'=', ..] | [b'=', b'>', ..] => 2,
        // `Type::method` is a path.
        [b':', b':', ..] => return None,
        [b':' | b'=', ..] => 1,
        _ if rest.starts_with(b"%22%3A%22") || rest.starts_with(b"%22%3a%22") => 9,
        _ => 0,
    };
    if length > 0 {
        let behind = spaced + length;
        let from = skip(text, behind, |b| matches!(b, b' ' | b'\t' | b'*'));
        let tight = rest[0] != b':' && length != 2 && spaced == closed && from == behind;
        return Some((from, position(tight)));
    }
    // `Secret ID = `, `[None]: `, `(again): `, ` 1: `
    let word = over_word(text, spaced).filter(|_| spaced > stop);
    if let Some(from) = word.or_else(|| over_remark(text, spaced)) {
        return Some((from, ValuePosition::Loose));
    }
    let flag = flag(text, start, stop);
    if let Some(from) = after_comma(text, closed, spaced, stop, flag) {
        return Some((from, position(flag)));
    }
    if let Some(from) = documents::in_element(text, start, stop, closed) {
        return Some((from, ValuePosition::Quoted));
    }
    if name.is_bare {
        // `: PSK "…"`
        let quoted = text[start].is_ascii_uppercase() && matches!(rest.first(), Some(b'"'));
        return (quoted && spaced > stop).then_some((spaced, ValuePosition::Loose));
    }
    if closed > stop || matches!(rest.first(), Some(b'\n' | b'\r')) || rest.starts_with(b"--") {
        let found = beside(text, closed).or_else(|| documents::default_of(text, closed));
        return found.map(|from| (from, ValuePosition::Loose));
    }
    if spaced == stop {
        return None;
    }
    if flag {
        return Some((spaced, ValuePosition::Tight));
    }
    let says =
        |word: &&[u8]| rest.len() > word.len() && rest[..word.len()].eq_ignore_ascii_case(word);
    let said = [&b"is "[..], b"was ", b"to ", b"as "]
        .into_iter()
        .find(says);
    if let Some(word) = said {
        let from = skip(text, spaced + word.len(), |b| matches!(b, b' ' | b':'));
        return Some((from, ValuePosition::Prose));
    }
    documents::on_line(text, name, spaced)
}

/// Returns true if a name is a flag: `--name`, `-name` or `/name` at the start of a word.
fn flag(text: &[u8], start: usize, stop: usize) -> bool {
    let before = start.checked_sub(1).map(|at| text[at]);
    let begins = |b: Option<u8>| {
        b.is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'['))
    };
    match text[start..stop] {
        [b'-', ..] => begins(before),
        _ => before == Some(b'/') && begins(start.checked_sub(2).map(|at| text[at])),
    }
}

/// Position after the second word of a name and its separator: `Secret ID = `.
fn over_word(text: &[u8], at: usize) -> Option<usize> {
    let letters = text.get(at..)?.iter().take(8);
    let word = letters.take_while(|b| b.is_ascii_alphabetic()).count();
    let mut names = ["id", "key", "value", "token", "string", "text", "field"].iter();
    let fits = names.any(|name| text[at..at + word].eq_ignore_ascii_case(name.as_bytes()));
    let sign = skip(text, at + word, BLANK);
    let is_sign = matches!(text.get(sign), Some(b'=' | b':'))
        && !matches!(text.get(sign + 1), Some(b'=' | b':'));
    (fits && is_sign).then(|| skip(text, sign + 1, BLANK))
}

/// Position after a remark in brackets, or a number, and its colon.
fn over_remark(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let rest = &rest[..rest.len().min(40)];
    let end = match rest.first()? {
        b'[' => memchr::memchr(b']', rest)? + 1,
        b'(' => memchr::memchr(b')', rest)? + 1,
        b'0'..=b'9' => rest.iter().take_while(|b| b.is_ascii_digit()).count(),
        // `SET PASSWORD FOR 'name'@'host' = '…'`
        b'F' | b'f' if rest.len() > 4 && rest[..4].eq_ignore_ascii_case(b"for ") => {
            let near = &text[at..text.len().min(at + 120)];
            let line = &near[..memchr::memchr(b'\n', near).unwrap_or(near.len())];
            return memchr::memmem::find(line, b" = ").map(|equals| at + equals + 3);
        }
        _ => return None,
    };
    (rest.get(end) == Some(&b':') && rest.get(end + 1) == Some(&b' ')).then_some(at + end + 2)
}

/// `define('NAME', '…')`, `("name", "…")`, `["--flag", "…"]`: a quoted name, a comma, a quoted value.
fn after_comma(
    text: &[u8],
    closed: usize,
    spaced: usize,
    stop: usize,
    flag: bool,
) -> Option<usize> {
    if closed == stop || text.get(spaced) != Some(&b',') {
        return None;
    }
    let from = skip(text, spaced + 1, BLANK);
    let slashes = skip(text, from, |b| *b == b'\\');
    let quote = text.get(slashes)?;
    let first = text.get(slashes + 1)?;
    let quoted = matches!(quote, b'"' | b'\'');
    // The value is neither another flag nor part of a list of names.
    (quoted && *first != b'-' && (flag || !is_list_of_words(text, slashes))).then_some(from)
}

/// Returns true if the quoted text is a plain word, as in a list of field names.
fn is_list_of_words(text: &[u8], at: usize) -> bool {
    let of_word = |b: &&u8| b.is_ascii_alphabetic() || b"_- ".contains(b);
    let word = text[at + 1..].iter().take(60).take_while(of_word).count();
    let end = skip(text, at + 1 + word, |b| *b == b'\\');
    text.get(end) == Some(&text[at])
}

/// Value that belongs to a name which is itself a value: `"name": "DB_PASSWORD", "value": "…"`,
/// `key="Password" value="…"`, `--name x --value …`.
fn beside(text: &[u8], closed: usize) -> Option<usize> {
    // Up to two other pairs may separate name and value.
    let mut at = closed;
    for _ in 0..3 {
        if let Some(from) = value_at(text, at) {
            return Some(from);
        }
        at = over_pair(text, at)?;
    }
    None
}

const AROUND: fn(&u8) -> bool = |byte| b" \n\r\t\"'\\-".contains(byte);

fn value_at(text: &[u8], at: usize) -> Option<usize> {
    const FLAGS: &[&[u8]] = &[b"--value", b"--body", b"--secret-string", b"--secret-value"];
    let comma = skip(text, at, |b| matches!(b, b' ' | b','));
    if let Some(flag) = FLAGS.iter().find(|flag| text[comma..].starts_with(flag)) {
        let from = comma + flag.len();
        return matches!(text.get(from), Some(b' ' | b'=')).then_some(from + 1);
    }
    let broken = lines::over_prefix(text, comma, over_breaks(text, comma));
    let word = skip(text, broken, AROUND);
    let rest = text.get(word..)?;
    if rest.len() < 6 || !rest[..5].eq_ignore_ascii_case(b"value") {
        return None;
    }
    let colon = skip(text, word + 5, |b| matches!(b, b'"' | b'\'' | b'\\' | b' '));
    match text.get(colon) {
        Some(b':') => Some(skip(text, colon + 1, |b| *b == b' ')),
        Some(b'=') => Some(colon + 1),
        _ => None,
    }
}

/// Position after `, "name": "word"`.
fn over_pair(text: &[u8], at: usize) -> Option<usize> {
    let word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let comma = skip(text, at, |b| *b == b' ');
    (text.get(comma) == Some(&b',')).then_some(())?;
    let name = skip(text, comma + 1, AROUND);
    let colon = skip(text, skip(text, name, word), |b| {
        matches!(b, b'"' | b'\\' | b' ')
    });
    (text.get(colon) == Some(&b':')).then_some(())?;
    let value = skip(text, colon + 1, AROUND);
    let end = skip(text, value, word);
    (end > value).then(|| skip(text, end, |b| matches!(b, b'"' | b'\\')))
}
