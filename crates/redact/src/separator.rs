//! Separators between the name of a secret and its value: signs, words, other fields.

use super::assignments::{Name, ValuePosition};
use super::documents;
use super::keys::{Set, near, over_breaks, skip};
use super::lines;

const BLANK: &[u8] = b" \t";

/// Words between a name and its value in a sentence.
const WORDS: [&[u8]; 4] = [b"is ", b"was ", b"to ", b"as "];

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
    let closed = skip(text, stop, b"\\\"'`]*");
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
        let from = skip(text, behind, b" \t*");
        let tight = rest[0] != b':' && length != 2 && spaced == closed && from == behind;
        return Some((from, position(tight)));
    }
    // `Secret ID = `, `[None]: `, `(again): `, ` 1: `
    let word = over_word(text, spaced).filter(|_| spaced > stop);
    if let Some(from) = word.or_else(|| over_remark(text, spaced)) {
        return Some((from, ValuePosition::Loose));
    }
    let flag = flag(text, start, stop);
    if closed > stop
        && rest.first() == Some(&b',')
        && let Some(from) = after_comma(text, spaced, flag)
    {
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
        |word: &&&[u8]| rest.len() > word.len() && rest[..word.len()].eq_ignore_ascii_case(word);
    if let Some(word) = WORDS.iter().find(says) {
        let from = skip(text, spaced + word.len(), b" :");
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
    let letters = near(text, at, 8).iter();
    let word = letters.take_while(|b| b.is_ascii_alphabetic()).count();
    let mut names = ["id", "key", "value", "token", "string", "text", "field"].iter();
    let fits = names.any(|name| near(text, at, word).eq_ignore_ascii_case(name.as_bytes()));
    let sign = skip(text, at + word, BLANK);
    let is_sign = matches!(text.get(sign), Some(b'=' | b':'))
        && !matches!(text.get(sign + 1), Some(b'=' | b':'));
    (fits && is_sign).then(|| skip(text, sign + 1, BLANK))
}

/// Position after a remark in brackets, or a number, and its colon.
fn over_remark(text: &[u8], at: usize) -> Option<usize> {
    let rest = near(text, at, 40);
    let end = match rest.first()? {
        b'[' => memchr::memchr(b']', rest)? + 1,
        b'(' => memchr::memchr(b')', rest)? + 1,
        b'0'..=b'9' => Set::DIGITS.run(rest, 0, 40),
        // `SET PASSWORD FOR 'name'@'host' = '…'`
        b'F' | b'f' if rest.len() > 4 && rest[..4].eq_ignore_ascii_case(b"for ") => {
            let line = near(text, at, 120).split(|b| *b == b'\n').next()?;
            return memchr::memmem::find(line, b" = ").map(|equals| at + equals + 3);
        }
        _ => return None,
    };
    (rest.get(end) == Some(&b':') && rest.get(end + 1) == Some(&b' ')).then_some(at + end + 2)
}

/// `define('NAME', '…')`, `("name", "…")`, `["--flag", "…"]`: a quoted name, a comma, a quoted value.
fn after_comma(text: &[u8], spaced: usize, flag: bool) -> Option<usize> {
    let from = skip(text, spaced + 1, BLANK);
    let slashes = skip(text, from, b"\\");
    let [b'"' | b'\'', first] = near(text, slashes, 2) else {
        return None;
    };
    // The value is neither another flag nor part of a list of names.
    (*first != b'-' && (flag || !is_list_of_words(text, slashes))).then_some(from)
}

/// Returns true if the quoted text is a plain word, as in a list of field names.
fn is_list_of_words(text: &[u8], at: usize) -> bool {
    let of_word = |b: &&u8| b.is_ascii_alphabetic() || b"_- ".contains(b);
    let word = text[at + 1..].iter().take(60).take_while(of_word).count();
    let end = skip(text, at + 1 + word, b"\\");
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

const AROUND: &[u8] = b" \n\r\t\"'\\-";

fn value_at(text: &[u8], at: usize) -> Option<usize> {
    const FLAGS: &[&[u8]] = &[b"--value", b"--body", b"--secret-string", b"--secret-value"];
    let comma = skip(text, at, b" ,");
    if let Some(flag) = FLAGS.iter().find(|flag| text[comma..].starts_with(flag)) {
        let from = comma + flag.len();
        return matches!(text.get(from), Some(b' ' | b'=')).then_some(from + 1);
    }
    let broken = lines::over_prefix(text, comma, over_breaks(text, comma));
    let word = skip(text, broken, AROUND);
    if !near(text, word, 5).eq_ignore_ascii_case(b"value") {
        return None;
    }
    let colon = skip(text, word + 5, b"\"'\\ ");
    match text.get(colon) {
        Some(b':') => Some(skip(text, colon + 1, b" ")),
        Some(b'=') => Some(colon + 1),
        _ => None,
    }
}

/// Position after `, "name": "word"`.
fn over_pair(text: &[u8], at: usize) -> Option<usize> {
    let word = |at| at + Set::WORD.run(text, at, 48);
    let comma = skip(text, at, b" ");
    let name = skip(text, comma + 1, AROUND);
    let colon = skip(text, word(name), b"\"\\ ");
    let value = skip(text, colon + 1, AROUND);
    let end = word(value);
    let is_pair = text.get(comma) == Some(&b',') && text.get(colon) == Some(&b':') && end > value;
    is_pair.then(|| skip(text, end, b"\"\\"))
}
