//! Recognises prefixes that tools put before each line: line numbers, names of files and
//! containers, times, quote marks, diff marks, table frames.
//!
//! The functions copy nothing: they return the length of a prefix or compare two prefixes, so
//! findings keep their ranges in the original text.

use std::ops::Range;

use super::bytes::{Set, near, skip};

/// Maximum number of prefix marks per line, such as container log, time and nested quotes.
pub(super) const DEEP: usize = 4;

/// Longest part of a line that is read, in bytes.
const LONGEST: usize = 8192;

/// Line that contains `at`, without its end.
pub(super) fn line_at(text: &[u8], at: usize) -> Range<usize> {
    let from = at.saturating_sub(LONGEST);
    let start = memchr::memrchr(b'\n', &text[from..at]).map_or(from, |n| from + n + 1);
    let to = text.len().min(at + LONGEST);
    let end = memchr::memchr(b'\n', &text[at..to]).map_or(to, |n| at + n);
    let end = end - usize::from(end > start && text[end - 1] == b'\r');
    start..end
}

/// Line after the one that ends at `end`; `None` at the end of the text.
pub(super) fn next(text: &[u8], end: usize) -> Option<Range<usize>> {
    let end = end + usize::from(text.get(end) == Some(&b'\r'));
    (text.get(end) == Some(&b'\n') && end + 1 < text.len()).then(|| line_at(text, end + 1))
}

/// Line before the one that begins at `start`.
pub(super) fn previous(text: &[u8], start: usize) -> Option<Range<usize>> {
    let end = start.checked_sub(1)?;
    (text[end] == b'\n').then(|| line_at(text, end))
}

/// Lines below the one that ends at `end`, from top to bottom.
pub(super) fn below(text: &[u8], end: usize) -> impl Iterator<Item = Range<usize>> {
    std::iter::successors(next(text, end), |line| next(text, line.end))
}

/// Lines above the one that begins at `start`, from bottom to top.
pub(super) fn above(text: &[u8], start: usize) -> impl Iterator<Item = Range<usize>> {
    std::iter::successors(previous(text, start), |line| previous(text, line.start))
}

/// Line without these ends, in any order and number.
pub(super) fn without_ends<'t>(mut line: &'t [u8], ends: &[&[u8]]) -> &'t [u8] {
    while let Some(rest) = ends.iter().find_map(|end| line.strip_suffix(*end)) {
        line = rest;
    }
    line
}

/// Length of a line's tool prefix, without the indentation after it.
pub(super) fn prefix(line: &[u8]) -> usize {
    prefix_of(line, DEEP)
}

/// Length of at most `marks` marks at the start of a line.
pub(super) fn prefix_of(line: &[u8], marks: usize) -> usize {
    let mut at = 0;
    let mut bars = false;
    for _ in 0..marks {
        let more = element(&line[at..], bars);
        bars |= line[at..at + more].contains(&b'|');
        if more == 0 {
            break;
        }
        at += more;
    }
    at
}

/// Length of one mark. After a bar no container name follows: that is a table.
fn element(line: &[u8], bars: bool) -> usize {
    let blank = Set::BLANK.run(line, 0, LONGEST);
    let rest = &line[blank..];
    let length = match rest {
        [] => return 0,
        [0x1B, ..] => escape(rest),
        [b'0'..=b'9', ..] => time(rest).or_else(|| number(rest)).or_else(|| named(rest)),
        [b'[', ..] => bracket(rest),
        [b'>' | b'|' | b'#' | b'*', ..] => mark(rest, 1),
        [b'/', b'/', ..] => mark(rest, 2),
        [b'+', next @ ..] if blank == 0 && next.first() != Some(&b'+') => Some(1),
        [b'-', next @ ..] if blank == 0 && !matches!(next, [b' ' | b'-', ..]) => Some(1),
        // │ ┃ ║ ┆ ┊
        [0xE2, ..] => frame(rest),
        _ => month(rest)
            .or_else(|| level(rest))
            .or_else(|| container(rest).filter(|_| !bars))
            .or_else(|| named(rest)),
    };
    length.map_or(0, |length| blank + length)
}

fn one_space(text: &[u8], at: usize) -> usize {
    at + usize::from(text.get(at) == Some(&b' '))
}

fn mark(text: &[u8], length: usize) -> Option<usize> {
    matches!(text.get(length), None | Some(b' ' | b'\t' | b'>')).then(|| one_space(text, length))
}

fn frame(text: &[u8]) -> Option<usize> {
    let mut frames = ["│", "┃", "║", "┆", "┊"].iter();
    let is_frame = frames.any(|frame| text.starts_with(frame.as_bytes()));
    is_frame.then(|| one_space(text, 3))
}

/// Terminal colour code.
fn escape(text: &[u8]) -> Option<usize> {
    let end = 2 + Set::COLOUR.run(text, 2, text.len());
    (text.get(1) == Some(&b'[') && text.get(end) == Some(&b'm')).then_some(end + 1)
}

/// `12⇥`, `12→`, `12:`, `12-`, `12 |`, `12 │`.
fn number(text: &[u8]) -> Option<usize> {
    let digits = Set::DIGITS.run(text, 0, 8);
    let rest = &text[digits..];
    let blank = skip(rest, 0, b" ");
    match (rest, &rest[blank..]) {
        _ if digits > 7 => None,
        ([b'\t' | b':' | b'-', ..], _) => Some(digits + 1),
        _ if rest.starts_with("→".as_bytes()) => Some(digits + 3),
        (_, bar @ [b'|', ..]) => Some(digits + blank + one_space(bar, 1)),
        (_, bar) => frame(bar).map(|frame| digits + blank + frame),
    }
}

/// `path/of/a.file:12:` and `path/of/a.file-12-`.
fn named(text: &[u8]) -> Option<usize> {
    let line = near(text, 0, 300);
    let length = Set::PATH.run(line, 0, 300);
    let is_path = |path: &[u8]| path.iter().any(|b| matches!(b, b'.' | b'/'));
    let digits = |at: usize| Set::DIGITS.run(line, at, 300);
    if line.get(length) == Some(&b':') {
        let number = digits(length + 1);
        let behind = &line[length + 1 + number..];
        if number > 0 && behind.first() == Some(&b':') {
            return Some(length + number + 2);
        }
        // A path without line number must contain `.` or `/`: `a/b.c:rest`.
        let is_prefix = number == 0 && !matches!(behind, [b'/', b'/', ..] | [b' ', ..]);
        return (is_prefix && is_path(&line[..length])).then_some(length + 1);
    }
    // `grep` marks context lines with dashes.
    let dashes = (1..length).filter(|at| line[*at] == b'-' && is_path(&line[..*at]));
    let mut ends = dashes.map(|at| (digits(at + 1), at + 1));
    let (number, at) =
        ends.find(|(number, at)| *number > 0 && line.get(at + number) == Some(&b'-'))?;
    Some(at + number + 1)
}

/// `web-1  | `.
fn container(text: &[u8]) -> Option<usize> {
    let name = Set::DOTTED.run(text, 0, 80);
    let bar = skip(text, name, b" ");
    ((1..80).contains(&name) && text.get(bar) == Some(&b'|')).then(|| one_space(text, bar + 1))
}

/// `2026-02-20T10:00:00.123Z`, `2026-02-20 10:00:00,123`, `10:00:00.123`.
fn time(text: &[u8]) -> Option<usize> {
    let has_date = is_like(text, b"0000-00-00") || is_like(text, b"0000/00/00");
    let start = match text.get(10) {
        Some(b'T' | b' ' | b't') if has_date => 11,
        _ if has_date => 10,
        _ => 0,
    };
    let clock = text
        .get(start..)
        .filter(|clock| is_like(clock, b"00:00:00"))?;
    let end = clock.iter().position(u8::is_ascii_whitespace);
    Some(one_space(text, start + end.unwrap_or(clock.len())))
}

/// Returns true if a text begins like a form, in which `0` is any digit.
fn is_like(text: &[u8], form: &[u8]) -> bool {
    let mut pairs = text.iter().zip(form);
    text.len() >= form.len() && pairs.all(|(b, f)| b == f || *f == b'0' && b.is_ascii_digit())
}

/// `Feb 20 10:00:00 host app[812]: `.
fn month(text: &[u8]) -> Option<usize> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let name = text.get(..3)?;
    if !MONTHS.chunks(3).any(|month| month == name) || text.get(3) != Some(&b' ') {
        return None;
    }
    let colon = memchr::memmem::find(&text[..text.len().min(160)], b": ")?;
    let digits = text.get(4..6)?.iter().any(u8::is_ascii_digit);
    digits.then_some(colon + 2)
}

/// `[2026-02-20 10:00:00] `, `[info] `, `[web] `.
fn bracket(text: &[u8]) -> Option<usize> {
    let end = memchr::memchr(b']', &text[..text.len().min(60)])?;
    let inside = &text[1..end];
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b" :-.,_/+".contains(b);
    let plain = inside.iter().all(plain);
    let marker = inside.starts_with(b"REDACTED") || inside.starts_with(b"PRIVATE");
    (plain && !inside.is_empty() && !marker && text.get(end + 1) == Some(&b' ')).then_some(end + 2)
}

fn level(text: &[u8]) -> Option<usize> {
    const CAPITALS: Set = Set::of(b"AZ");
    const LEVELS: &[u8] = b"INFO DEBUG WARN WARNING ERROR TRACE FATAL NOTICE";
    let word = CAPITALS.run(text, 0, text.len());
    let mut levels = LEVELS.split(|b| *b == b' ');
    levels.any(|level| *level == text[..word]).then_some(())?;
    let colon = word + usize::from(text.get(word) == Some(&b':'));
    // Log levels are padded to the longest one; more spaces are indentation.
    let most = 6_usize.saturating_sub(colon).max(1);
    let end = skip(text, colon, b" ").min(colon + most);
    (end > colon).then_some(end)
}

/// Returns true if `other` begins like `prefix`, apart from the values of numbers and white space.
/// `-` equals `:`, because `grep` uses it on context lines.
pub(super) fn is_alike(prefix: &[u8], other: &[u8]) -> bool {
    let mut others = units(other);
    units(prefix).all(|unit| others.next() == Some(unit))
}

/// Byte class of each unit. Numbers and white space are one unit each.
fn units(text: &[u8]) -> impl Iterator<Item = u8> {
    let class = |b: &u8| match b {
        b'0'..=b'9' => b'0',
        b' ' | b'\t' => b' ',
        b'-' => b':',
        other => *other,
    };
    let mut before = None;
    text.iter().map(class).filter(move |class| {
        let is_same = before.replace(*class) == Some(*class);
        !(is_same && matches!(class, b'0' | b' '))
    })
}

/// Position after the prefix of the next line, if it is like the prefix of the line that contains
/// `at`; otherwise `next`, the start of that line.
pub(super) fn over_prefix(text: &[u8], at: usize, next: usize) -> usize {
    let own = line_at(text, at);
    let own_prefix = prefix(&text[own.clone()]);
    if own_prefix == 0 || own.start + own_prefix > at {
        return next;
    }
    // Skipped indentation already belongs to the prefix.
    let line = line_at(text, next);
    let length = prefix(&text[line.clone()]);
    let alike = is_alike(
        text[line.start..line.start + length].trim_ascii(),
        text[own.start..own.start + own_prefix].trim_ascii(),
    );
    if length > 0 && alike && line.start + length >= next {
        line.start + length
    } else {
        next
    }
}

/// Returns true if the text ends at `at` or a truncation mark follows.
pub(super) fn is_cut(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    rest.len() < 64 && rest.trim_ascii_start().is_empty() || is_marked(text, at)
}

/// Returns true if a truncation mark follows.
pub(super) fn is_marked(text: &[u8], at: usize) -> bool {
    let rest = near(text, at, 64).trim_ascii_start();
    let marks = "… ... [truncated [... <truncated (truncated [output [cut <cut […";
    let mut marks = marks.split(' ').chain(["--- truncated", "\\u2026"]);
    marks.any(|mark| rest.starts_with(mark.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_tools_are_recognised() {
        let check = |line: &str, rest: &str| {
            let length = prefix(line.as_bytes());
            assert_eq!(&line[length..], rest, "{line}");
        };
        check("     8\tpassword: x", "password: x");
        check("    12→  password: x", "  password: x");
        check("12:password: x", "password: x");
        check("conf/app.yml:12:  a: b", "  a: b");
        check("conf/app.yml-13-  a: b", "  a: b");
        check("conf/app.yml:a: b", "a: b");
        check("web-1  | a: b", "a: b");
        check("web-1  | 2026-02-20T10:00:00.123Z a: b", "a: b");
        check("2026-02-20 10:00:00,123 INFO a: b", "a: b");
        check("Feb 20 10:00:00 host app[812]: a: b", "a: b");
        check("[2026-02-20 10:00:00] INFO  a: b", "a: b");
        check("> > a: b", "a: b");
        check("+  a: b", "  a: b");
        check("│ a: b │", "a: b │");
        check("\u{1b}[32ma: b\u{1b}[0m", "a: b\u{1b}[0m");
        check("- a: b", "- a: b");
        check("--flag x", "--flag x");
        check("a: b", "a: b");
        check("https://x.example/a", "https://x.example/a");
        check("[REDACTED:password] x", "[REDACTED:password] x");
    }

    #[test]
    fn prefixes_are_alike_but_for_numbers() {
        let check = |a: &str, b: &str, expected: bool| {
            assert_eq!(
                is_alike(a.as_bytes(), b.as_bytes()),
                expected,
                "{a:?} {b:?}"
            );
        };
        check("     9\t", "    10\t", true);
        check("a.txt-13-", "a.txt:12:", true);
        check("web-1  | ", "web-1  | key: ", true);
        check("web-1  | ", "db-1   | ", false);
        check("", "> ", true);
    }
}
