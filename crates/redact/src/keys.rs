//! Keys: their shapes, and their text across the breaks that a terminal, a shell or a JSON writer inserted.
//!
//! A shape is read from its row in `rules/vendors.tsv` when its anchor is met. A break is skipped if the
//! key cannot be complete yet, or if the text after it looks like more of the key.

use std::ops::Range;

use super::bytes::{Set, can_begin, over_breaks};
use super::lines;
use super::values::{self, changes};

/// Names of the sets in `vendors.tsv`.
const SETS: [(&str, Set); 10] = [
    ("digits", Set::DIGITS),
    ("hex", Set::HEX),
    ("upper", Set::UPPER),
    ("alnum", Set::ALNUM),
    ("word", Set::WORD),
    ("dotted", Set::DOTTED),
    ("base64", Set::BASE64),
    ("header", Set::HEADER),
    // The alphabet of crypt(3), and the parameters before a hash.
    ("crypt", Set::of(b"09AZaz..//")),
    ("params", Set::of(b"09AZaz==,,")),
];

/// Part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Run of a set, with minimum and maximum length.
    Run(Set, usize, usize),
    /// One fixed byte.
    Is(u8),
}

impl Part {
    /// Length above that of any key.
    pub(super) const ANY: usize = 1 << 16;

    fn read(text: &str) -> Option<Self> {
        if let &[byte] = text.as_bytes() {
            return Some(Self::Is(byte));
        }
        let (name, length) = text.split_once(':')?;
        let (_, set) = SETS.iter().find(|(other, _)| *other == name)?;
        let (least, most) = length.split_once('-').unwrap_or((length, length));
        let most = match most {
            "" => Self::ANY,
            most => most.parse().ok()?,
        };
        Some(Self::Run(*set, least.parse().ok()?, most))
    }
}

/// Shape of a key around its anchor.
pub(super) struct Shape {
    /// Run before the anchor.
    before: Option<Part>,
    behind: Vec<Part>,
}

impl Shape {
    pub(super) fn read(text: &str) -> Option<Self> {
        let (before, behind) = match text.split_once('@') {
            Some((before, behind)) => (Some(Part::read(before.trim())?), behind),
            None => (None, text),
        };
        let parts = behind.split(' ').filter(|part| !part.is_empty());
        let behind = parts.map(Part::read).collect::<Option<_>>()?;
        Some(Self { before, behind })
    }
}

/// Key of a shape whose anchor is `at..end`.
pub(super) fn key(text: &[u8], at: usize, end: usize, shape: &str) -> Option<Range<usize>> {
    let Shape { before, behind } = Shape::read(shape)?;
    match before {
        Some(Part::Run(set, least, most)) => around(text, at, end, set, least, most, &behind),
        _ => behind_prefix(text, at, end, &behind),
    }
}

fn behind_prefix(text: &[u8], at: usize, body: usize, parts: &[Part]) -> Option<Range<usize>> {
    let prefix = body - at;
    // Some prefixes are unmistakable, even directly after another word.
    let unmistakable = prefix >= 4
        && text[body - 1] == b'_'
        && matches!(parts, [Part::Run(Set::ALNUM | Set::WORD, ..), ..]);
    if text[at].is_ascii_alphanumeric() && !unmistakable && !can_begin(text, at) {
        return None;
    }
    let before = at.checked_sub(1).map(|last| text[last]);
    // In base64, a slash or a plus is not a boundary.
    let in_base64 =
        matches!(before, Some(b'/' | b'+')) && Set::BASE64.run_before(text, at, 64) >= 40;
    if prefix <= 4 && in_base64 || prefix <= 2 && matches!(before, Some(b'.' | b'_')) {
        return None;
    }
    let end = end_of(text, body, parts).or_else(|| {
        let capitals = matches!(parts, [Part::Run(Set::UPPER, ..), ..]);
        let end = cut_run(text, body, capitals)?;
        // A short prefix alone tells too little.
        let tells = match parts {
            [Part::Run(set, ..), _, ..] if prefix <= 3 => body + set.run(text, body, end) < end,
            _ => true,
        };
        (tells && begins_like(&text[body..end], parts)).then_some(end)
    })?;
    is_plausible(&text[body..end], prefix).then_some(at..end)
}

/// Run of a set, the anchor `at..end`, and these parts.
fn around(
    text: &[u8],
    at: usize,
    end: usize,
    set: Set,
    least: usize,
    most: usize,
    parts: &[Part],
) -> Option<Range<usize>> {
    let own_line = set.run_before(text, at, most);
    // A key may be split over lines, and the line before a whole key may end in the same characters.
    let runs = [
        run_across_breaks(text, at, set, most),
        (at - own_line, own_line),
    ];
    let begins = |start: usize| {
        // `…/bot123456789:AA…`
        can_begin(text, start) || text[..start].ends_with(b"bot")
    };
    let (start, _) = runs
        .into_iter()
        .find(|(start, count)| *count >= least && begins(*start))?;
    let end = match parts {
        [] => end,
        _ => end_of(text, end, parts).or_else(|| cut_run(text, end, false))?,
    };
    let open = text.get(end).is_some_and(u8::is_ascii_alphanumeric);
    (!open && values::is_random(&text[start..end])).then_some(start..end)
}

/// Start and length of the run that ends at `at`. Breaks do not count.
fn run_across_breaks(text: &[u8], at: usize, set: Set, most: usize) -> (usize, usize) {
    let (mut start, mut count) = (at, 0);
    while count < most && start > 0 {
        let last = start - 1;
        let is_escape = matches!(text[last], b'n' | b'r') && last > 0 && text[last - 1] == b'\\';
        if set.holds(text[last]) && !is_escape {
            start = last;
            count += 1;
            continue;
        }
        // Longest break that ends here.
        let broken = (start.saturating_sub(24)..start).find(|from| {
            matches!(text[*from], b'\n' | b'\r' | b'\\' | 0xE2) && over_breaks(text, *from) == start
        });
        match broken {
            Some(from) if from > 0 && set.holds(text[from - 1]) => start = from,
            _ => break,
        }
    }
    (start, count)
}

/// End of a truncated run that is long enough to recognise. The alphabet of capitals is too small for a
/// check of randomness.
pub(super) fn cut_run(text: &[u8], at: usize, capitals: bool) -> Option<usize> {
    const CUT: Set = Set::of(b"09AZaz++//==__--..~~%%$$");
    let run = if capitals { Set::UPPER } else { CUT }.run(text, at, text.len());
    let body = &text[at..at + run];
    let random = values::is_random(body) || capitals && body.iter().any(u8::is_ascii_digit);
    let cut = run >= 8 && random && lines::is_cut(text, at + run);
    (cut && !values::is_placeholder(body)).then_some(at + run)
}

/// Returns true if a text could be the beginning of these parts.
fn begins_like(text: &[u8], parts: &[Part]) -> bool {
    let mut at = 0;
    for part in parts {
        match *part {
            _ if at == text.len() => return true,
            Part::Run(set, least, most) => {
                let run = set.run(text, at, most);
                at += run;
                if run < least {
                    return at == text.len();
                }
            }
            Part::Is(byte) if text[at] == byte => at += 1,
            Part::Is(_) => return false,
        }
    }
    at == text.len()
}

/// Rejects placeholders and long names, which can begin like keys.
fn is_plausible(body: &[u8], prefix: usize) -> bool {
    if values::is_filler(body) || values::is_documented(body) {
        return false;
    }
    let has = |test: fn(&u8) -> bool| body.iter().any(test);
    let worded = has(|b| matches!(b, b'-' | b'_' | b'.'));
    match prefix {
        ..=2 => values::is_random(body),
        // After a prefix that is almost a word, or in a body that may contain words.
        _ if prefix == 3 || worded => {
            let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
            let long = body.len() >= 30 && !worded;
            has(u8::is_ascii_digit) || mixed && (long || changes(body) >= 8)
        }
        _ => true,
    }
}

/// Returns the end of the text that these parts match from `at`, or `None`.
pub(super) fn end_of(text: &[u8], mut at: usize, parts: &[Part]) -> Option<usize> {
    for (i, part) in parts.iter().enumerate() {
        at = match *part {
            Part::Run(set, least, most) => {
                end_of_run(text, at, set, least, most, parts.get(i + 1))?
            }
            Part::Is(byte) => {
                at = over_breaks(text, at);
                (text.get(at) == Some(&byte)).then_some(at + 1)?
            }
        };
    }
    // A fixed-length run that continues is something else: a longer word, a hash.
    let goes_on = matches!(parts.last(), Some(Part::Run(set, least, most)) if least == most
        && text.get(at).is_some_and(|b| set.holds(*b) && b.is_ascii_alphanumeric()));
    (!goes_on).then_some(at)
}

/// Returns the end of a run. `behind` is the part that must follow it, if any.
fn end_of_run(
    text: &[u8],
    mut at: usize,
    set: Set,
    least: usize,
    most: usize,
    behind: Option<&Part>,
) -> Option<usize> {
    let mut count = 0;
    let mut line = memchr::memrchr(b'\n', &text[..at]).map_or(0, |n| n + 1);
    let mut width = 0;
    loop {
        let run = set.run(text, at, most - count);
        at += run;
        count += run;
        let next = over_breaks(text, at);
        if count == most || next == at {
            break;
        }
        let next = lines::over_prefix(text, at, next);
        let more = set.run(text, next, most - count);
        let after = text.get(next + more);
        let leads_on =
            matches!((behind, after), (Some(Part::Is(sign)), Some(byte)) if sign == byte);
        // Where two lines broke at the same column, a short rest belongs to the key as well.
        let wrapped = at - line == width
            && more <= width
            && after.is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'\\'));
        let is_more = is_more_of_it(&text[next..next + more]);
        if more == 0 || count >= least && !leads_on && !wrapped && !is_more {
            break;
        }
        width = at - line;
        at = next;
        line = next;
    }
    // Final punctuation of a sentence does not belong to the key.
    while count > least && at > 0 && matches!(text[at - 1], b'.' | b'-') {
        at -= 1;
        count -= 1;
    }
    (count >= least).then_some(at)
}

/// Returns true if the start of a line looks like the rest of a key, not like a word: at least
/// three changes between capitals, small letters, digits and other characters.
pub(super) fn is_more_of_it(run: &[u8]) -> bool {
    run.len() >= 6 && changes(run) >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_runs_and_characters() {
        let check = |text: &str, expected: Option<Part>| {
            assert_eq!(Part::read(text), expected, "{text}");
        };
        check("alnum:24", Some(Part::Run(Set::ALNUM, 24, 24)));
        check("hex:24-40", Some(Part::Run(Set::HEX, 24, 40)));
        check("word:24-", Some(Part::Run(Set::WORD, 24, Part::ANY)));
        check(":", Some(Part::Is(b':')));
        check(".", Some(Part::Is(b'.')));
        check("letters:4", None);
        check("alnum:", None);
        check("ab", None);
        let shape = Shape::read("hex:32 @ digits:1-2").unwrap();
        assert_eq!(shape.before, Some(Part::Run(Set::HEX, 32, 32)));
        assert_eq!(shape.behind, [Part::Run(Set::DIGITS, 1, 2)]);
    }
}
