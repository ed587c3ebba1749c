//! Extent of a value that belongs to the name of a secret: in quotes, in an element, or up to the sign that
//! ends it.

use std::ops::Range;

use super::bytes::{Set, list, near, over_breaks, skip, without_breaks};
use super::keys::is_more_of_it;
use super::lines;
use super::values::{self, Class, ValuePosition};
use super::views;

/// Longest value that is read, in bytes.
const LONGEST: usize = 4096;

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
        return (values::is_random(&joined) || views::is_login(&joined))
            && !values::is_placeholder(&joined);
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

/// Length of `Bearer ` or another scheme at the start of a value.
pub(super) fn scheme(value: &[u8]) -> usize {
    let is_of = |name: &&&str| {
        let rest = value.get(name.len()..);
        let is_name = rest.is_some() && value[..name.len()].eq_ignore_ascii_case(name.as_bytes());
        is_name && rest.is_some_and(|rest| rest.starts_with(b" "))
    };
    let name = list("schemes").iter().find(is_of);
    name.map_or(0, |name| skip(value, name.len(), b" "))
}

/// Value that begins at `from`, without its quotes, and its position class.
pub(super) fn read(
    text: &[u8],
    mut from: usize,
    stands: ValuePosition,
    name: &Name,
) -> Option<(Range<usize>, ValuePosition)> {
    const WORDS: Set = Set::of(b"az  ");
    // `b"…"`, `f'…'`
    let is_prefix = text.get(from).is_some_and(|b| b"brfuBR@".contains(b));
    if is_prefix && matches!(text.get(from + 1), Some(b'"' | b'\'')) {
        from += 1;
    }
    if let Some(&quote @ (b'"' | b'\'' | b'`')) = text.get(from) {
        let mut start = from + 1;
        if text[start..].starts_with(&[quote, quote]) {
            start += 2;
        }
        let end = quoted_end(text, start, quote);
        start += scheme(&text[start..end]);
        return (start < end).then_some((start..end, ValuePosition::Quoted));
    }
    if name.class == Class::Phrase {
        let words = WORDS.run(text, from, 240);
        let length = text[from..from + words].trim_ascii_end().len();
        return (length > 0).then_some((from..from + length, ValuePosition::Quoted));
    }
    if stands == ValuePosition::Quoted {
        let rest = near(text, from, LONGEST);
        let value = rest.split(|b| b"<\n".contains(b)).next()?.trim_ascii();
        let start = from + rest.len() - rest.trim_ascii_start().len();
        return (!value.is_empty()).then_some((start..start + value.len(), ValuePosition::Quoted));
    }
    from += scheme(text.get(from..)?);
    let plain = |text: &[u8]| plain_length(text, name.class, stands);
    let mut end = from + plain(&text[from..]);
    loop {
        let next = over_breaks(text, end);
        if next == end {
            break;
        }
        let more = plain(&text[next..]);
        let run = &text[next..next + more];
        let continued = text.get(end) == Some(&b'\\') && text.get(end + 1) == Some(&b'\n');
        let behind = skip(text, next + more, b" \t");
        let named = matches!(text.get(behind), Some(b':' | b'=' | b'('))
            || run.ends_with(b":")
            || run.contains(&b'=') && !run.ends_with(b"=");
        let alike = is_more_of_it(run) && end > from + 7;
        if more == 0 || named || !(continued || alike) {
            break;
        }
        end = next + more;
    }
    while end > from
        && matches!(text[end - 1], b'.' | b':' | b'!' | b'?')
        && stands != ValuePosition::Tight
        && !ends_line(text, from, end)
    {
        end -= 1;
    }
    (end > from).then_some((from..end, stands))
}

/// Returns true if the value ends its line, so that a final `!` or `?` belongs to it.
fn ends_line(text: &[u8], from: usize, end: usize) -> bool {
    let alone = matches!(text.get(end), None | Some(b'\n' | b'\r'));
    let value = &text[from..end];
    alone && value.iter().any(u8::is_ascii_digit) && value.ends_with(b"!") | value.ends_with(b"?")
}

fn quoted_end(text: &[u8], start: usize, quote: u8) -> usize {
    const SLASHES: Set = Set::of(b"\\\\");
    let limit = text.len().min(start + LONGEST);
    let mut at = start;
    while let Some(found) = memchr::memchr2(quote, b'\n', &text[at..limit]) {
        at += found;
        let before = SLASHES.run_before(text, at, at - start);
        if text[at] == b'\n' {
            // A line end inside quotes: either a wrapped key, which continues directly, or a quote
            // that opens nothing.
            let next = over_breaks(text, at);
            let run = plain_length(&text[next..], Class::Token, ValuePosition::Loose);
            let goes_on = run >= 4 && text.get(next + run) == Some(&quote);
            if before == 0 && !goes_on {
                return at;
            }
        } else if before.is_multiple_of(2) {
            return at;
        }
        at += 1;
    }
    // Ends at a character boundary.
    let mut end = limit;
    while end < text.len() && end > start && (text[end] & 0xC0) == 0x80 {
        end -= 1;
    }
    end
}

fn plain_length(text: &[u8], class: Class, stands: ValuePosition) -> usize {
    // Markers and references begin with a bracket of their own.
    let first = usize::from(matches!(text.first(), Some(b'<' | b'[')));
    let limit = text.len().min(LONGEST);
    let rest = &text[first.min(limit)..limit];
    // A password that people chose may have `&`; in a query it begins the next field.
    let joins = |at: usize| {
        class == Class::Password
            && (stands == ValuePosition::Prose
                || stands == ValuePosition::Loose && rest[..at].iter().any(u8::is_ascii_digit))
            && at > 0
            && goes_on(&rest[at + 1..])
    };
    let ends = |(at, b): (usize, &u8)| {
        b.is_ascii_whitespace()
            || !b.is_ascii()
            || b",;)}]<>\"'`|\\([\x1b".contains(b)
            || *b == b'&' && !joins(at)
    };
    let length = rest.iter().enumerate().position(ends).unwrap_or(rest.len());
    if length == 0 { 0 } else { first + length }
}

/// Returns true if what follows `&` belongs to the value: no name of a field, no entity.
fn goes_on(text: &[u8]) -> bool {
    let length = Set::ALNUM.run(text, 0, text.len());
    length > 0 && !matches!(text.get(length), Some(b'=' | b';'))
}
