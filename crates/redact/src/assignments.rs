//! Secrets that have a name: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`, "the password is …".
//!
//! The anchor is the word in the name. The name around it is read first, then the separator (signs, words, other
//! fields, the element that the name opens, white space), then the value (`extent`); `values` decides
//! about name and value. `documents` reads values in other lines.

use std::ops::Range;

use super::bytes::{SPACE, Set, holds, near, over_breaks, over_colour, skip};
use super::documents;
use super::extent::{Name, judge, read};
use super::lines;
use super::values::{self, Class, ValuePosition};

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
    // The digits and the letter of a colour code do not belong to the name.
    if text[..start].ends_with(b"\x1b[") {
        start = over_colour(&text[..at], start);
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
    const TYPE: Set = Set::of(b"09AZaz__&&''<<>>[[]]||??..,,  ::**");
    let near = near(text, from, 60);
    let length = TYPE.run(near, 0, 60);
    let is_type = length > 2 && near[..length].ends_with(b" ") && near[length..].starts_with(b"= ");
    let value = from + length + 2;
    let quoted = matches!(text.get(value), Some(b'"' | b'\'' | b'`'));
    if is_type && quoted { value } else { from }
}

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
    let closed = skip(text, stop, b"\"'`]*");
    let spaced = skip(text, closed, BLANK);
    let rest = text.get(spaced..)?;
    let length = match rest {
        [b':' | b'=' | b'!', b'=', b'=', ..] | [b'|', b'|', b'=', ..] => 3,
        [b':' | b'=' | b'!' | b'?' | b'+', b'=', ..] | [b'=', b'>', ..] => 2,
        // `Type::method` is a path.
        [b':', b':', ..] => return None,
        [b':' | b'=', ..] => 1,
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
    if let Some(from) = in_element(text, start, stop, closed) {
        return Some((from, ValuePosition::Quoted));
    }
    if name.is_bare {
        // `: PSK "…"`
        let quoted = text[start].is_ascii_uppercase() && matches!(rest.first(), Some(b'"'));
        return (quoted && spaced > stop).then_some((spaced, ValuePosition::Loose));
    }
    if closed > stop || matches!(rest.first(), Some(b'\n' | b'\r')) || rest.starts_with(b"--") {
        let found = beside(text, closed).or_else(|| default_of(text, closed));
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
    on_line(text, name, spaced)
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
    const LETTERS: Set = Set::of(b"AZaz");
    let word = LETTERS.run(text, at, 8);
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
    let [b'"' | b'\'', first] = near(text, from, 2) else {
        return None;
    };
    // The value is neither another flag nor part of a list of names.
    (*first != b'-' && (flag || !is_list_of_words(text, from))).then_some(from)
}

/// Returns true if the quoted text is a plain word, as in a list of field names.
fn is_list_of_words(text: &[u8], at: usize) -> bool {
    const WORDS: Set = Set::of(b"AZaz__--  ");
    let word = WORDS.run(text, at + 1, 60);
    text.get(at + 1 + word) == Some(&text[at])
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

const AROUND: &[u8] = b" \n\r\t\"'-";

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

/// Value after white space on the same line: `set NAME value`, `password value` in a settings file,
/// two columns of a listing, `PASSWORD 'value'`.
fn on_line(text: &[u8], name: &Name, spaced: usize) -> Option<(usize, ValuePosition)> {
    const SETS: &str = "set |setenv |setx |put |add |-gx |-x |-Ux |config |SetEnvironmentVariable";
    let line = lines::line_at(text, name.start);
    let own = line.start + lines::prefix(&text[line.clone()]).min(name.start - line.start);
    let before = &text[own.max(name.start.saturating_sub(300))..name.start];
    let rest = &text[spaced..line.end.max(spaced)];
    let has = |word: &[u8]| holds(before, word);
    // `| password | … |`
    let bar = if rest.starts_with("│".as_bytes()) {
        3
    } else {
        usize::from(rest.first() == Some(&b'|') && !has(b"|") && !has(b","))
    };
    // `machine … login … password …`, on one line or several.
    let above = &text[name.start.saturating_sub(300)..name.start];
    let is_login = holds(above, b"login ") && holds(above, b"machine ");
    // `WITH PASSWORD '…'`
    let loud = |b: &u8| b.is_ascii_uppercase() || *b == b'_';
    let is_quoted = matches!(rest.first(), Some(b'\'' | b'"'))
        && (name.class != Class::Password || text[name.start..name.stop].iter().all(loud));
    let is_set = || SETS.split('|').any(|word| has(word.as_bytes())) && !has(b". ") && !has(b"? ");
    if is_login || is_quoted || bar > 0 || is_set() {
        let from = if is_login {
            spaced
        } else {
            skip(text, spaced + bar, b" ")
        };
        return Some((from, ValuePosition::Loose));
    }
    // The name begins its line, and a single value ends it.
    let alone =
        before.iter().all(|b| b.is_ascii_whitespace() || *b == b'-') || before.ends_with(b"\"");
    let value = rest.strip_suffix("│".as_bytes()).unwrap_or(rest);
    let value = value.strip_suffix(b"\"}").unwrap_or(value).trim_ascii();
    let single = !value.is_empty() && !value.iter().any(u8::is_ascii_whitespace);
    let wide = spaced >= name.stop + 2 || text[name.stop] == b'\t';
    // Column of a tab-separated file.
    let tabbed = text[name.stop] == b'\t' && before.contains(&b'\t');
    if (alone || tabbed) && single && (wide || value.len() >= 8) {
        return Some((spaced, ValuePosition::Loose));
    }
    // "with password …": only a value that cannot be a word.
    let word = rest.split(u8::is_ascii_whitespace).next()?;
    let firm = name.class == Class::Password
        && word.len() >= 10
        && values::is_random(word)
        && values::is_made(word);
    (firm && !word.contains(&b'_')).then_some((spaced, ValuePosition::Loose))
}

/// Start of the text in an element that this name opens or labels: `<password>…`,
/// `<string name="password">…`, `<key>password</key> <string>…`.
fn in_element(text: &[u8], start: usize, stop: usize, closed: usize) -> Option<usize> {
    let before = text.get(start.checked_sub(1)?)?;
    let from = if matches!(before, b'<' | b':') && closed == stop {
        // `<ns:Password Type="…">`
        let namespace = Set::ALNUM.run_before(text, start - 1, 23);
        let opened = *before == b'<' || text[..start - 1 - namespace].ends_with(b"<");
        let inside = near(text, stop, 200);
        let end = memchr::memchr(b'>', inside)?;
        let attributes = &inside[..end];
        let is_tag = attributes.is_empty()
            || attributes[0] == b' '
                && !attributes.contains(&b'<')
                && !attributes.ends_with(b"/")
                && !attributes.contains(&b'{');
        (opened && is_tag).then_some(stop + end + 1)?
    } else if matches!(before, b'"' | b'\'' | b'.')
        && closed == stop + 1
        && text.get(closed) == Some(&b'>')
    {
        let inside = skip(text, closed + 1, SPACE);
        let opening = &text[start.saturating_sub(80)..start];
        let keys: [&[u8]; 4] = [b"name=", b"key=", b"Name=", b"Key="];
        let is_key = keys.iter().any(|word| holds(opening, word));
        let nested = text[inside..].starts_with(b"<value>").then_some(inside + 7);
        is_key.then_some(nested.unwrap_or(closed + 1))?
    } else if text[stop..].starts_with(b"</key>") {
        let behind = near(text, stop, 120);
        let string = memchr::memmem::find(behind, b"<string>")?;
        let gap = &behind[6..string];
        // Only a line prefix may separate the two.
        (gap.len() < 100 && !gap.contains(&b'<')).then_some(stop + string + 8)?
    } else {
        return None;
    };
    (text.get(from).is_some_and(|b| *b != b'<')).then_some(from)
}

/// Start of a variable's default value: `variable "db_password" { … default = "…" }`.
fn default_of(text: &[u8], closed: usize) -> Option<usize> {
    let brace = skip(text, closed, b" ");
    (text.get(brace) == Some(&b'{')).then_some(())?;
    let inside = near(text, brace, 400).split(|b| *b == b'}').next()?;
    let word = memchr::memmem::find(inside, b"default")? + 7;
    let sign = skip(text, brace + word, b" ");
    (text.get(sign) == Some(&b'=')).then(|| skip(text, sign + 1, b" "))
}
