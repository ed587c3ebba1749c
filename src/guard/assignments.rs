//! Secrets that have a name: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`, "the password is …".
//!
//! The anchor is the word in the name. From there the whole name is read, then what separates it
//! from a value, then the value; `values` decides about both.

use std::ops::Range;

use super::body::over_breaks;
use super::values::{self, Class, Stands};

/// The longest value that is looked at.
const LONGEST: usize = 4096;

/// The value of a secret whose name holds the anchor `at..end`.
pub(super) fn value(
    text: &[u8],
    at: usize,
    end: usize,
    kind: &'static str,
    class: Class,
) -> Option<Range<usize>> {
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let start = at
        - text[..at]
            .iter()
            .rev()
            .take(60)
            .take_while(|b| in_name(b))
            .count();
    let stop = end
        + text[end..]
            .iter()
            .take(60)
            .take_while(|b| in_name(b))
            .count();
    // Names are ASCII, so that the slices are text.
    let before = std::str::from_utf8(&text[start..at]).ok()?;
    let after = std::str::from_utf8(&text[end..stop]).ok()?;
    // `bypassword` is no name; `dbPassword` and `PGPASSWORD` are.
    if !values::is_own(before, after) {
        return None;
    }
    let is_flag = before.starts_with("--");
    let (mut from, mut stands) = separator(text, stop, start, is_flag)?;
    // `password: str = "…"`: behind a type stands the value.
    for _ in 0..2 {
        let (range, how) = read(text, from, stands)?;
        if judge(text, &range, kind, class, how) {
            return Some(range);
        }
        let next = skip(text, range.end, |b| matches!(b, b' ' | b'"' | b'\''));
        if text.get(next) != Some(&b'=') || text.get(next + 1) == Some(&b'=') {
            return None;
        }
        from = skip(text, next + 1, |b| *b == b' ');
        stands = Stands::Loose;
    }
    None
}

/// The argument behind a flag that takes nothing but a password.
pub(super) fn argument(text: &[u8], end: usize) -> Option<Range<usize>> {
    let from = skip(text, end, |b| *b == b' ');
    let (range, _) = read(text, from, Stands::Tight)?;
    let known = values::is_placeholder(&text[range.clone()]);
    (!known && range.len() >= 4).then_some(range)
}

/// Whether a value of a JSON field of this name, or behind such a flag, is a secret; its kind.
pub(super) fn of_field(name: &str, value: &str) -> Option<&'static str> {
    let (kind, class) = values::named(name.trim_start_matches('-'))?;
    let secret = value.as_bytes();
    let secret = &secret[scheme(secret)..];
    values::is_secret(secret, class, Stands::Quoted).then_some(kind)
}

fn judge(text: &[u8], range: &Range<usize>, kind: &str, class: Class, stands: Stands) -> bool {
    let joined = without_breaks(&text[range.clone()]);
    if kind == "authorization" {
        return values::is_random(&joined) && !values::is_placeholder(&joined);
    }
    // What is called or looked into is a piece of a program.
    let is_called = stands != Stands::Quoted && matches!(text.get(range.end), Some(b'(' | b'['));
    !is_called && values::is_secret(&joined, class, stands)
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

fn skip(text: &[u8], at: usize, over: impl Fn(&u8) -> bool) -> usize {
    at + text[at.min(text.len())..]
        .iter()
        .take(24)
        .take_while(|b| over(b))
        .count()
}

/// Where the value begins behind a name that ends at `stop`, and how it stands there.
fn separator(text: &[u8], stop: usize, start: usize, is_flag: bool) -> Option<(usize, Stands)> {
    let closed = skip(text, stop, |b| {
        matches!(b, b'\\' | b'"' | b'\'' | b'`' | b']' | b'*')
    });
    let spaced = skip(text, closed, |b| matches!(b, b' ' | b'\t'));
    let rest = text.get(spaced..)?;
    let length = match rest {
        [b':' | b'=' | b'!', b'=', b'=', ..] => 3,
        [b':' | b'=' | b'!', b'=', ..] | [b'=', b'>', ..] => 2,
        // `Type::method` is a path.
        [b':', b':', ..] => return None,
        [b':' | b'=', ..] => 1,
        _ => 0,
    };
    if length > 0 {
        let behind = spaced + length;
        let from = skip(text, behind, |b| matches!(b, b' ' | b'\t' | b'*'));
        let tight = rest[0] == b'=' && length == 1 && spaced == closed && from == behind;
        return Some((from, if tight { Stands::Tight } else { Stands::Loose }));
    }
    if closed > stop || matches!(rest.first(), Some(b'\n' | b'\r')) {
        return beside(text, closed).map(|from| (from, Stands::Loose));
    }
    if spaced == stop {
        return None;
    }
    if is_flag {
        return Some((spaced, Stands::Tight));
    }
    let said = [&b"is "[..], b"was ", b"to ", b"as "]
        .into_iter()
        .find(|word| rest.len() > word.len() && rest[..word.len()].eq_ignore_ascii_case(word));
    if let Some(word) = said {
        let from = skip(text, spaced + word.len(), |b| matches!(b, b' ' | b':'));
        return Some((from, Stands::Prose));
    }
    // `machine … login … password …`, as `.netrc` has it.
    let line = memchr::memrchr(b'\n', &text[..start]).map_or(0, |n| n + 1);
    let netrc = memchr::memmem::find(&text[line.max(start.saturating_sub(300))..start], b"login ");
    netrc.map(|_| (spaced, Stands::Loose))
}

/// `"name": "DB_PASSWORD", "value": "…"`: the value beside a name that is itself a value.
fn beside(text: &[u8], closed: usize) -> Option<usize> {
    let comma = skip(text, closed, |b| matches!(b, b' ' | b','));
    let broken = over_breaks(text, comma);
    let word = skip(text, broken, |b| {
        matches!(b, b' ' | b'\n' | b'\r' | b'\t' | b'"' | b'\'' | b'\\')
    });
    let rest = text.get(word..)?;
    if rest.len() < 6 || !rest[..5].eq_ignore_ascii_case(b"value") {
        return None;
    }
    let colon = skip(text, word + 5, |b| matches!(b, b'"' | b'\'' | b'\\' | b' '));
    (text.get(colon) == Some(&b':')).then(|| skip(text, colon + 1, |b| *b == b' '))
}

/// The length of `Bearer ` and its like at the beginning of a value.
fn scheme(value: &[u8]) -> usize {
    const SCHEMES: &[&[u8]] = &[
        b"bearer", b"basic", b"token", b"digest", b"bot", b"apikey", b"key", b"oauth",
        b"negotiate", b"geniekey", b"splunk", b"ssws", b"snyk",
    ];
    SCHEMES
        .iter()
        .find(|name| {
            value.len() > name.len()
                && value[..name.len()].eq_ignore_ascii_case(name)
                && value[name.len()] == b' '
        })
        .map_or(0, |name| skip(value, name.len(), |b| *b == b' '))
}

/// The value that begins at `from`, without its quotes, and how it stands.
fn read(text: &[u8], mut from: usize, stands: Stands) -> Option<(Range<usize>, Stands)> {
    // `b"…"`, `f'…'`
    if matches!(
        text.get(from),
        Some(b'b' | b'r' | b'f' | b'u' | b'B' | b'R')
    ) && matches!(text.get(from + 1), Some(b'"' | b'\''))
    {
        from += 1;
    }
    let slashes = text[from.min(text.len())..]
        .iter()
        .take(4)
        .take_while(|b| **b == b'\\')
        .count();
    let quote = text
        .get(from + slashes)
        .copied()
        .filter(|b| matches!(b, b'"' | b'\'' | b'`'));
    if let Some(quote) = quote {
        let mut start = from + slashes + 1;
        if text[start..].starts_with(&[quote, quote]) {
            start += 2;
        }
        let end = quoted_end(text, start, quote, slashes);
        start += scheme(&text[start..end]);
        return (start < end).then_some((start..end, Stands::Quoted));
    }
    if slashes > 0 && over_breaks(text, from) == from {
        return None;
    }
    from = over_breaks_of_a_shell(text, from);
    from += scheme(text.get(from..)?);
    let mut end = from + plain_length(&text[from..]);
    loop {
        let next = over_breaks(text, end);
        if next == end {
            break;
        }
        let more = plain_length(&text[next..]);
        let run = &text[next..next + more];
        let continued = text.get(end) == Some(&b'\\') && text.get(end + 1) == Some(&b'\n');
        let named = matches!(text.get(next + more), Some(b':' | b'=' | b'('))
            || run.contains(&b'=') && !run.ends_with(b"=");
        let alike = run.len() >= 6 && super::body::changes(run) >= 3 && end > from + 7;
        if more == 0 || named || !(continued || alike) {
            break;
        }
        end = next + more;
    }
    while end > from
        && matches!(text[end - 1], b'.' | b':' | b'!' | b'?')
        && stands != Stands::Tight
    {
        end -= 1;
    }
    (end > from).then_some((from..end, stands))
}

/// A line that goes on behind a backslash.
fn over_breaks_of_a_shell(text: &[u8], at: usize) -> usize {
    if text.get(at) == Some(&b'\\') {
        over_breaks(text, at)
    } else {
        at
    }
}

fn quoted_end(text: &[u8], start: usize, quote: u8, slashes: usize) -> usize {
    let limit = text.len().min(start + LONGEST);
    let mut at = start;
    while let Some(found) = memchr::memchr2(quote, b'\n', &text[at..limit]) {
        at += found;
        let before = text[start..at]
            .iter()
            .rev()
            .take_while(|b| **b == b'\\')
            .count();
        if text[at] == b'\n' {
            // A line end inside of quotes: a key that somebody has wrapped, or a quote that was
            // none. The first goes on at once.
            let next = over_breaks(text, at);
            let run = plain_length(&text[next..]);
            let goes_on = run >= 4 && text.get(next + run) == Some(&quote);
            if before == 0 && !goes_on {
                return at;
            }
        } else if before <= slashes {
            return at - before;
        } else if slashes == 0 && before % 2 == 0 {
            return at;
        }
        at += 1;
    }
    // Cut at a character, not inside of one.
    let mut end = limit;
    while end < text.len() && end > start && (text[end] & 0xC0) == 0x80 {
        end -= 1;
    }
    end
}

fn plain_length(text: &[u8]) -> usize {
    let ends = |b: &u8| {
        b.is_ascii_whitespace()
            || !b.is_ascii()
            || matches!(
                b,
                b',' | b';'
                    | b')'
                    | b'}'
                    | b']'
                    | b'<'
                    | b'>'
                    | b'"'
                    | b'\''
                    | b'`'
                    | b'|'
                    | b'&'
                    | b'\\'
                    | b'('
                    | b'['
            )
    };
    // Markers and references begin with a bracket that belongs to them.
    let first = usize::from(matches!(text.first(), Some(b'<' | b'[')));
    let limit = text.len().min(LONGEST);
    let rest = &text[first.min(limit)..limit];
    let length = rest.iter().position(ends).unwrap_or(rest.len());
    if length == 0 { 0 } else { first + length }
}
