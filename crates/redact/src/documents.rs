//! Named secrets whose value does not follow a separator: in the lines below the name, after white
//! space on the same line, or in the element that the name opens.
//!
//! Lines are read through `lines`, which ignores numbers and marks in front of them.
//!
//! Secrets of Kubernetes have their values before or after the line with their kind, in YAML and JSON.

use std::ops::Range;

use super::assignments::{Class, Name, ValuePosition, judge};
use super::keys::{SPACE, Set, holds, near, skip};
use super::lines;
use super::randomness;
use super::tables;
use super::values;

/// Number of lines of a block that are read.
const ROWS: usize = 200;

/// Values in the lines below a name, or in its table column.
pub(super) fn values(text: &[u8], name: &Name) -> Vec<Range<usize>> {
    let below = block(text, name);
    if below.is_empty() {
        tables::column(text, name)
    } else {
        below
    }
}

/// Value after white space on the same line: `set NAME value`, `password value` in a settings file,
/// two columns of a listing, `PASSWORD 'value'`.
pub(super) fn on_line(text: &[u8], name: &Name, spaced: usize) -> Option<(usize, ValuePosition)> {
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
        && randomness::is_random(word)
        && is_made(word);
    (firm && !word.contains(&b'_')).then_some((spaced, ValuePosition::Loose))
}

/// Start of the text in an element that this name opens or labels: `<password>…`,
/// `<string name="password">…`, `<key>password</key> <string>…`.
pub(super) fn in_element(text: &[u8], start: usize, stop: usize, closed: usize) -> Option<usize> {
    let before = text.get(start.checked_sub(1)?)?;
    let from = if matches!(before, b'<' | b':') && closed == stop {
        // `<ns:Password Type="…">`
        let before_colon = text[start.saturating_sub(24)..start - 1].iter().rev();
        let mut namespace = before_colon.take_while(|b| b.is_ascii_alphanumeric() || **b == b'<');
        let opened = *before == b'<' || namespace.any(|b| *b == b'<');
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
pub(super) fn default_of(text: &[u8], closed: usize) -> Option<usize> {
    let brace = skip(text, closed, b" ");
    (text.get(brace) == Some(&b'{')).then_some(())?;
    let inside = near(text, brace, 400).split(|b| *b == b'}').next()?;
    let word = memchr::memmem::find(inside, b"default")? + 7;
    let sign = skip(text, brace + word, b" ");
    (text.get(sign) == Some(&b'=')).then(|| skip(text, sign + 1, b" "))
}

/// Lines of a block below a name: `password: |`, `password = <<EOF`, `Your password:`.
fn block(text: &[u8], name: &Name) -> Vec<Range<usize>> {
    let own = lines::line_at(text, name.start);
    let closed = skip(text, name.stop, b"\"' *");
    if !matches!(text.get(closed), Some(b':' | b'=')) {
        return Vec::new();
    }
    let rest = text[closed + 1..own.end.max(closed + 1)].trim_ascii();
    let rest = lines::without_ends(rest, &[b"\x1b[0m", "│".as_bytes(), b" ", b"**"]);
    if let Some(mark) = rest.strip_prefix(b"<<") {
        return heredoc(text, &own, mark);
    }
    let is_mark = |b: &u8| b.is_ascii_digit() || b"-+".contains(b);
    let folded = match rest {
        [b'|' | b'>', marks @ ..] => marks.len() <= 2 && marks.iter().all(is_mark),
        _ => false,
    };
    if !folded && !rest.is_empty() {
        return Vec::new();
    }
    let indent = indentation(text, &own, own.clone());
    let mut found = Vec::new();
    let mut count = 0;
    for line in lines::below(text, own.end) {
        let body = body(text, &line, &own);
        let is_blank = body.is_empty();
        if is_blank && (folded || count == 0) && line.end - own.end < 400 {
            continue;
        }
        count += 1;
        if is_blank
            || indentation(text, &line, own.clone()) <= indent && (folded || count > 1)
            || count > ROWS
        {
            break;
        }
        let value = &text[body.clone()];
        // Without a YAML block mark: one line with one value, and only if it is clearly a secret.
        let firm = folded
            || randomness::is_random(value)
            || (name.class == Class::Password && is_made(value));
        if firm && judge(text, &body, name, ValuePosition::Quoted) {
            found.push(body);
        }
        if !folded {
            break;
        }
    }
    found
}

/// Small letters and digits, plus capitals or signs, in one piece.
fn is_made(value: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    value.len() >= 8
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
        && (has(u8::is_ascii_uppercase) || has(|b| matches!(b, b'!' | b'#' | b'@' | b'$' | b'%')))
        && !has(u8::is_ascii_whitespace)
        && !has(|b| matches!(b, b'/' | b'(' | b'=' | b':'))
        && (value.ends_with(b"}") || !value.contains(&b'{'))
}

fn heredoc(text: &[u8], own: &Range<usize>, mark: &[u8]) -> Vec<Range<usize>> {
    let mark = mark.iter().copied().filter(u8::is_ascii_alphanumeric);
    let mark: Vec<u8> = mark.collect();
    let mut found = Vec::new();
    if mark.is_empty() {
        return found;
    }
    for line in lines::below(text, own.end).take(20) {
        let body = body(text, &line, own);
        let value = &text[body.clone()];
        if value == mark {
            break;
        }
        if value.len() >= 4 && !randomness::is_placeholder(value) && !value.contains(&b' ') {
            found.push(body);
        }
    }
    found
}

/// Content of a line without tool prefix, indentation and closing frame.
pub(super) fn body(text: &[u8], line: &Range<usize>, own: &Range<usize>) -> Range<usize> {
    let start = line.start + front(text, line, own);
    let ends: [&[u8]; 5] = [b"\x1b[0m", "│".as_bytes(), b" ", b"\t", b"\r"];
    let content = lines::without_ends(&text[start..line.end], &ends);
    let blank = content.len() - content.trim_ascii_start().len();
    start + blank..start + content.len()
}

/// Length of a line's prefix; a dash counts only if the other line has one too.
pub(super) fn front(text: &[u8], line: &Range<usize>, own: &Range<usize>) -> usize {
    let length = lines::prefix(&text[line.clone()]);
    let diff = |line: &Range<usize>| {
        text.get(line.start) == Some(&b'-') && text.get(line.start + 1) == Some(&b' ')
    };
    if length == 0 && diff(line) && diff(own) {
        1
    } else {
        length
    }
}

pub(super) fn indentation(text: &[u8], line: &Range<usize>, own: Range<usize>) -> usize {
    let start = line.start + front(text, line, &own);
    Set::BLANK.run(text, start, line.end - start)
}

/// Distance from the kind that is read, in bytes.
const NEAR: usize = 16 << 10;

/// Values of the Kubernetes Secret whose kind is at `at`.
pub(super) fn secret_data(text: &[u8], at: usize, end: usize) -> Vec<Range<usize>> {
    if text[at..end].ends_with(b"\"") && text[at..end].starts_with(b"kind\"") {
        return json_data(text, at, end);
    }
    let line = lines::line_at(text, at);
    let behind = text[end..line.end.max(end)].trim_ascii();
    if ![&b""[..], b"\"", b"\x1b[0m", "│".as_bytes()].contains(&behind) {
        return Vec::new();
    }
    let (own, _) = column(text, &line);
    // Lines of the document that stand no deeper than its kind, in both directions.
    let is_of_document = |line: &Range<usize>| {
        let (indent, body) = column(text, line);
        let words = &text[body];
        let ends = words.starts_with(b"---")
            || indent == own && words.starts_with(b"kind:")
            || indent < own && !words.is_empty();
        !ends && line.start.abs_diff(at) <= NEAR
    };
    let above = lines::above(text, line.start).take_while(is_of_document);
    let below = lines::below(text, line.end).take_while(is_of_document);
    let lines = above.chain(below);
    let heads = lines.filter(|line| {
        let (indent, body) = column(text, line);
        indent == own && matches!(&text[body], b"data:" | b"stringData:")
    });
    let mut found = Vec::new();
    for head in heads {
        for line in lines::below(text, head.end) {
            let (indent, body) = column(text, &line);
            if indent <= own || body.is_empty() {
                break;
            }
            let Some(colon) = memchr::memmem::find(&text[body.clone()], b": ") else {
                continue;
            };
            let start = skip(text, body.start + colon + 2, b" \"");
            let value = &text[start..body.end.max(start)];
            let value = value.strip_suffix(b"\"").unwrap_or(value);
            if values::is_given(value) && !matches!(value.first(), Some(b'|' | b'>')) {
                found.push(start..start + value.len());
            }
        }
    }
    found
}

/// Indentation and content of a line; `- kind: Secret` in a list stands at its `kind`.
fn column(text: &[u8], line: &Range<usize>) -> (usize, Range<usize>) {
    let mut body = body(text, line, line);
    body.start += usize::from(text[body.clone()].starts_with(b"- ")) * 2;
    (body.start - line.start - front(text, line, line), body)
}

fn json_data(text: &[u8], at: usize, end: usize) -> Vec<Range<usize>> {
    const KIND: &[u8] = b"\"kind\"";
    const HEADS: [&[u8]; 2] = [b"ata\": {", b"ata\":{"];
    let from = at.saturating_sub(NEAR);
    let first =
        memchr::memmem::rfind(&text[from..at], KIND).map_or(from, |n| from + n + KIND.len());
    let behind = near(text, end, NEAR);
    let last = end + memchr::memmem::find(behind, KIND).unwrap_or(behind.len());
    let rfind = |head: &&[u8]| memchr::memmem::rfind(&text[first..at], head);
    let find = |head: &&[u8]| memchr::memmem::find(&text[end..last], head);
    let before = HEADS.iter().find_map(rfind).map(|n| first + n);
    let after = HEADS.iter().find_map(find).map(|n| end + n);
    let heads = before.into_iter().chain(after);
    let mut found = Vec::new();
    // `metadata` contains names, not secrets.
    for head in heads.filter(|head| !text[..*head].ends_with(b"metad")) {
        let close = head + memchr::memchr(b'}', near(text, head, NEAR)).unwrap_or(0);
        let mut at = head + b"ata\":".len();
        while let Some(colon) = text
            .get(at..close)
            .and_then(|rest| memchr::memchr(b':', rest))
        {
            let open = skip(text, at + colon + 1, SPACE) + 1;
            let length = memchr::memchr(b'"', near(text, open, NEAR));
            let Some(length) = length.filter(|_| text[open - 1] == b'"') else {
                break;
            };
            at = open + length + 1;
            if values::is_given(&text[open..open + length]) {
                found.push(open..open + length);
            }
        }
    }
    found
}
