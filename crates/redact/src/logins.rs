//! Passwords beside a user name: in registry and database files, in SQL, in constructor arguments.

use std::ops::Range;

use super::base64;
use super::class::{Class, ValuePosition};
use super::extent::read;
use super::lines;
use super::secret_name::{Name, judge, skip};
use super::shapes::Set;
use super::values;

/// Value of `"auth"`: base64 of name and password. `at..end` is the word.
pub(super) fn auth(text: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    let before = at.checked_sub(1).map(|i| text[i]);
    if before.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')) {
        return None;
    }
    let behind = skip(text, end, |b| matches!(b, b'"' | b'\'' | b'\\' | b' '));
    let behind = behind + usize::from(text.get(behind) == Some(&b':'));
    let from = skip(text, behind, |b| matches!(b, b'"' | b'\'' | b'\\' | b' '));
    let length = text[from..]
        .iter()
        .take(4096)
        .take_while(|b| Set::Base64.holds(**b))
        .count();
    let value = &text[from..from + length];
    base64::is_login(value).then_some(from..from + length)
}

/// Second of two quoted arguments. `at` is the position after the bracket.
pub(super) fn second_argument(text: &[u8], at: usize) -> Option<Range<usize>> {
    let name = Name {
        start: at,
        stop: at,
        kind: "password",
        class: Class::Password,
        is_bare: false,
    };
    let from = skip(text, at, u8::is_ascii_whitespace);
    let (first, how) = read(text, from, ValuePosition::Loose, &name)?;
    let behind = first.end + usize::from(how == ValuePosition::Quoted);
    let comma = skip(text, behind, |b| matches!(b, b' ' | b'\\'));
    if text.get(comma) != Some(&b',') {
        return None;
    }
    let from = skip(text, comma + 1, u8::is_ascii_whitespace);
    let (second, how) = read(text, from, ValuePosition::Loose, &name)?;
    (how == ValuePosition::Quoted && judge(text, &second, &name, how)).then_some(second)
}

/// `IDENTIFIED BY '…'`, `IDENTIFIED WITH method BY '…'`. `at` is the position after the words.
pub(super) fn sql(text: &[u8], at: usize) -> Option<Range<usize>> {
    let near = &text[..text.len().min(at + 80)];
    let mut from = skip(near, at, u8::is_ascii_whitespace);
    let by = text[at.saturating_sub(2)..at].eq_ignore_ascii_case(b"by");
    if !by {
        let found = memchr::memmem::find(&near[from..], b" BY ")
            .or_else(|| memchr::memmem::find(&near[from..], b" by "))?;
        from = skip(text, from + found + 4, u8::is_ascii_whitespace);
    }
    let name = Name {
        start: at,
        stop: at,
        kind: "password",
        class: Class::Password,
        is_bare: false,
    };
    let (range, how) = read(text, from, ValuePosition::Tight, &name)?;
    let value = &text[range.clone()];
    let quoted = how == ValuePosition::Quoted && matches!(text[range.start - 1], b'\'' | b'"');
    let firm = quoted || value.iter().any(u8::is_ascii_digit);
    (firm && values::is_given(value)).then_some(range)
}

/// Last of five fields: `host:port:database:user:password`. `at` is the first colon.
pub(super) fn pgpass(text: &[u8], at: usize) -> Option<Range<usize>> {
    let line = lines::line_at(text, at);
    let rest = &text[at + 1..line.end.max(at + 1)];
    let star = text[at] == b'*';
    let skip = if star { 4 } else { 3 };
    let fields: Vec<&[u8]> = rest.splitn(skip + 1, |b| *b == b':').collect();
    let &[.., user, password] = fields.as_slice() else {
        return None;
    };
    let password = password.trim_ascii_end();
    if fields.len() != skip + 1 {
        return None;
    }
    let plain = |field: &&[u8]| {
        !field.is_empty()
            && field
                .iter()
                .all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b'"' | b'\''))
    };
    let fits = fields[..skip].iter().all(plain) && !user.iter().all(u8::is_ascii_digit);
    let start = line.end.max(at + 1) - fields[skip].len();
    let given = values::is_given(password)
        && values::is_secret(password, Class::Password, ValuePosition::Loose);
    (fits && given).then_some(start..start + password.len())
}

/// Answer that an `expect` script sends to a password prompt. `end` is the position after the
/// quote.
pub(super) fn expect(text: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    let before = &text[at.saturating_sub(160)..at];
    memchr::memmem::rfind(before, b"assword")
        .or_else(|| memchr::memmem::rfind(before, b"assphrase"))?;
    let rest = &text[end..text.len().min(end + 200)];
    let length = rest
        .iter()
        .position(|b| matches!(b, b'\\' | b'"' | b'\n'))?;
    let value = end..end + length;
    values::is_given(&text[value.clone()]).then_some(value)
}
