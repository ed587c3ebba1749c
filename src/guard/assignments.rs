//! Secrets that have a name: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`, "the password is …".
//!
//! The anchor is the word in the name. The name around it is read first, then the separator, then
//! the value; `values` decides about name and value. `documents` reads values in other lines.

use std::ops::Range;

use super::base64;
use super::body::over_breaks;
use super::class::{Class, Stands};
use super::documents;
use super::lines;
use super::secret_name::{Name, judge, skip};
use super::values;

/// Longest value that is read, in bytes.
const LONGEST: usize = 4096;

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
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let mut start = at
        - text[..at]
            .iter()
            .rev()
            .take(60)
            .take_while(|b| in_name(b))
            .count();
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
        let colour = text[start..at]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        start += if text.get(start + colour) == Some(&b'm') && start + colour < at {
            colour + 1
        } else {
            0
        };
    }
    // `%22password%22`, `%26token%3D`
    if start > 0 && text[start - 1] == b'%' && at - start >= 2 {
        start += 2;
    }
    let stop = end
        + text[end..]
            .iter()
            .take(60)
            .take_while(|b| in_name(b))
            .count();
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
    if text[..start].ends_with(b":")
        && memchr::memmem::rfind(&text[start.saturating_sub(100)..start], b"arn:aws").is_some()
    {
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
        let next = skip(text, range.end, |b| matches!(b, b' ' | b'"' | b'\''));
        if text.get(next) != Some(&b'=') || text.get(next + 1) == Some(&b'=') {
            return None;
        }
        from = skip(text, next + 1, |b| *b == b' ');
        stands = Stands::Loose;
    }
    None
}

/// New value in a plan's diff: `"…" -> "…"`.
fn changed_to(text: &[u8], old: &Range<usize>, name: &Name) -> Option<Range<usize>> {
    let quote = skip(text, old.end, |b| matches!(b, b'"' | b'\\' | b' '));
    let from = text[quote..].starts_with(b"-> ").then_some(quote + 3)?;
    let (range, how) = read(text, from, Stands::Loose, name)?;
    judge(text, &range, name, how).then_some(range)
}

/// Position after a type and its `=`: `: &'static str = "…"`.
fn over_type(text: &[u8], from: usize) -> usize {
    let near = &text[from.min(text.len())..text.len().min(from + 60)];
    let length = near
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || b"_&'<>[]|?., :*".contains(b)))
        .unwrap_or(near.len());
    let is_type = length > 2 && near[..length].ends_with(b" ") && near[length..].starts_with(b"= ");
    let value = from + length + 2;
    let quoted = matches!(text.get(value), Some(b'"' | b'\'' | b'`'));
    if is_type && quoted { value } else { from }
}

/// Kind of secret in a JSON field of this name, or after such a flag; `None` if it is not a secret.
pub(super) fn of_field(name: &str, value: &str) -> Option<&'static str> {
    if matches!(name, "auth" | "_auth") && base64::is_login(value.as_bytes()) {
        return Some("docker-auth");
    }
    let (kind, class) = values::named(name.trim_start_matches('-'))?;
    let secret = value.as_bytes();
    let secret = &secret[scheme(secret)..];
    values::is_secret(secret, class, Stands::Quoted).then_some(kind)
}

const BLANK: fn(&u8) -> bool = |byte| matches!(byte, b' ' | b'\t');

/// Start and position class of the value after a name that ends at `stop`.
fn separator(text: &[u8], stop: usize, start: usize, name: &Name) -> Option<(usize, Stands)> {
    let closed = skip(text, stop, |b| {
        matches!(b, b'\\' | b'"' | b'\'' | b'`' | b']' | b'*')
    });
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
        // `%22%3A%22`
        [
            b'%',
            b'2',
            b'2',
            b'%',
            b'3',
            b'A' | b'a',
            b'%',
            b'2',
            b'2',
            ..,
        ] => 9,
        _ => 0,
    };
    if length > 0 {
        let behind = spaced + length;
        let from = skip(text, behind, |b| matches!(b, b' ' | b'\t' | b'*'));
        let tight = rest[0] != b':' && length != 2 && spaced == closed && from == behind;
        return Some((from, if tight { Stands::Tight } else { Stands::Loose }));
    }
    if let Some(from) = over_word(text, spaced).filter(|_| spaced > stop) {
        return Some((from, Stands::Loose));
    }
    // `[None]: `, `(again): `, ` 1: `
    if let Some(from) = over_remark(text, spaced) {
        return Some((from, Stands::Loose));
    }
    let flag = flag(text, start, stop);
    if let Some(from) = after_comma(text, closed, spaced, stop, flag) {
        return Some((from, if flag { Stands::Tight } else { Stands::Loose }));
    }
    if let Some(from) = documents::in_element(text, start, stop, closed) {
        return Some((from, Stands::Quoted));
    }
    if name.is_bare {
        // `: PSK "…"`
        let quoted = text[start].is_ascii_uppercase() && matches!(rest.first(), Some(b'"'));
        return (quoted && spaced > stop).then_some((spaced, Stands::Loose));
    }
    if closed > stop || matches!(rest.first(), Some(b'\n' | b'\r')) || rest.starts_with(b"--") {
        let found = beside(text, closed).or_else(|| documents::default_of(text, closed));
        return found.map(|from| (from, Stands::Loose));
    }
    if spaced == stop {
        return None;
    }
    if flag {
        return Some((spaced, Stands::Tight));
    }
    let said = [&b"is "[..], b"was ", b"to ", b"as "]
        .into_iter()
        .find(|word| rest.len() > word.len() && rest[..word.len()].eq_ignore_ascii_case(word));
    if let Some(word) = said {
        let from = skip(text, spaced + word.len(), |b| matches!(b, b' ' | b':'));
        return Some((from, Stands::Prose));
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
    let word = text
        .get(at..)?
        .iter()
        .take(8)
        .take_while(|b| b.is_ascii_alphabetic())
        .count();
    let names = [
        &b"id"[..],
        b"key",
        b"value",
        b"token",
        b"string",
        b"text",
        b"field",
    ];
    let fits = names
        .iter()
        .any(|name| text[at..at + word].eq_ignore_ascii_case(name));
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
    let word = text[at + 1..]
        .iter()
        .take(60)
        .take_while(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'-' | b' '))
        .count();
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

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "`skip` takes a predicate of this form"
)]
fn is_around(byte: &u8) -> bool {
    matches!(
        byte,
        b' ' | b'\n' | b'\r' | b'\t' | b'"' | b'\'' | b'\\' | b'-'
    )
}

fn value_at(text: &[u8], at: usize) -> Option<usize> {
    const FLAGS: &[&[u8]] = &[b"--value", b"--body", b"--secret-string", b"--secret-value"];
    let comma = skip(text, at, |b| matches!(b, b' ' | b','));
    if let Some(flag) = FLAGS.iter().find(|flag| text[comma..].starts_with(flag)) {
        let from = comma + flag.len();
        return matches!(text.get(from), Some(b' ' | b'=')).then_some(from + 1);
    }
    let broken = lines::over_prefix(text, comma, over_breaks(text, comma));
    let word = skip(text, broken, is_around);
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
    let name = skip(text, comma + 1, is_around);
    let colon = skip(text, skip(text, name, word), |b| {
        matches!(b, b'"' | b'\\' | b' ')
    });
    (text.get(colon) == Some(&b':')).then_some(())?;
    let value = skip(text, colon + 1, is_around);
    let end = skip(text, value, word);
    (end > value).then(|| skip(text, end, |b| matches!(b, b'"' | b'\\')))
}

/// Length of `Bearer ` or another scheme at the start of a value.
fn scheme(value: &[u8]) -> usize {
    const SCHEMES: &[&[u8]] = &[
        b"bearer", b"basic", b"token", b"digest", b"bot", b"apikey", b"key", b"oauth",
        b"negotiate", b"geniekey", b"splunk", b"ssws", b"snyk", b"apitoken", b"aws4-hmac-sha256",
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

/// Value that begins at `from`, without its quotes, and its position class.
pub(super) fn read(
    text: &[u8],
    mut from: usize,
    stands: Stands,
    name: &Name,
) -> Option<(Range<usize>, Stands)> {
    // `b"…"`, `f'…'`
    if matches!(
        text.get(from),
        Some(b'b' | b'r' | b'f' | b'u' | b'B' | b'R' | b'@')
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
    if name.class == Class::Phrase {
        let words = |b: &u8| b.is_ascii_lowercase() || *b == b' ';
        let length = text
            .get(from..)?
            .iter()
            .take(240)
            .take_while(|b| words(b))
            .count();
        let length = text[from..from + length].trim_ascii_end().len();
        return (length > 0).then_some((from..from + length, Stands::Quoted));
    }
    if stands == Stands::Quoted {
        let length = text[from..]
            .iter()
            .take(LONGEST)
            .position(|b| matches!(b, b'<' | b'\n'));
        let length = length.unwrap_or(text.len().min(from + LONGEST) - from);
        let value = text[from..from + length].trim_ascii();
        let start = from
            + text[from..from + length]
                .iter()
                .take_while(|b| b.is_ascii_whitespace())
                .count();
        return (!value.is_empty()).then_some((start..start + value.len(), Stands::Quoted));
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
        let behind = skip(text, next + more, BLANK);
        let named = matches!(text.get(behind), Some(b':' | b'=' | b'('))
            || run.ends_with(b":")
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

/// Position after a backslash and the line break it escapes, or `at`.
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
            // A line end inside quotes: either a wrapped key, which continues directly, or a quote
            // that opens nothing.
            let next = over_breaks(text, at);
            let run = plain_length(&text[next..], Class::Token, Stands::Loose);
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
    // Ends at a character boundary.
    let mut end = limit;
    while end < text.len() && end > start && (text[end] & 0xC0) == 0x80 {
        end -= 1;
    }
    end
}

fn plain_length(text: &[u8], class: Class, stands: Stands) -> usize {
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
                    | 0x1B
            )
            // In form data, `%22` is a quote and `%26` begins the next field.
            || (*b == b'%' && class == Class::Password && stands == Stands::Tight && is_escaped_end(text))
    };
    // Markers and references begin with a bracket of their own.
    let first = usize::from(matches!(text.first(), Some(b'<' | b'[')));
    let limit = text.len().min(LONGEST);
    let rest = &text[first.min(limit)..limit];
    let length = rest.iter().position(ends).unwrap_or(rest.len());
    if length == 0 { 0 } else { first + length }
}

/// Returns true if the text contains an escape that ends a value.
fn is_escaped_end(text: &[u8]) -> bool {
    let near = &text[..text.len().min(300)];
    memchr::memmem::find(near, b"%22").is_some() || memchr::memmem::find(near, b"%26").is_some()
}
