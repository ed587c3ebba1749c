//! Keys: their shapes, and their text across the breaks that a terminal, a shell or a JSON writer inserted.
//!
//! A shape is read from its row in `rules/vendors.tsv` when its anchor is met. A break is skipped if the
//! key cannot be complete yet, or if the text after it looks like more of the key.

use std::ops::Range;

use super::lines;
use super::randomness::{self, changes};

/// Set of ASCII characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Set([u64; 2]);

impl Set {
    pub(super) const DIGITS: Self = Self::of(b"09");
    pub(super) const HEX: Self = Self::of(b"09afAF");
    pub(super) const UPPER: Self = Self::of(b"09AZ");
    pub(super) const ALNUM: Self = Self::of(b"09AZaz");
    pub(super) const WORD: Self = Self::of(b"09AZaz__--");
    pub(super) const DOTTED: Self = Self::of(b"09AZaz__--..");
    pub(super) const PATH: Self = Self::of(b"09AZaz__--..//@@++\\\\");
    pub(super) const BASE64: Self = Self::of(b"09AZaz++//==");
    pub(super) const BLANK: Self = Self::of(b"  \t\t");
    pub(super) const QUOTES: Self = Self::of(b"\"\"''\\\\");
    /// Base64 without its padding.
    pub(super) const BODY: Self = Self::of(b"09AZaz++//");
    /// Characters of header and query values.
    pub(super) const HEADER: Self = Self::of(b"09AZaz++//==__--..~~%%");
    const CUT: Self = Self::of(b"09AZaz++//==__--..~~%%$$");
    /// The crypt(3) alphabet.
    const CRYPT: Self = Self::of(b"09AZaz..//");
    /// Parameters before a hash.
    const PARAMS: Self = Self::of(b"09AZaz==,,");

    /// Set of these ranges, each of two bytes.
    const fn of(ranges: &[u8]) -> Self {
        let (mut bits, mut at) = ([0; 2], 0);
        while at < ranges.len() {
            let mut byte = ranges[at];
            while byte <= ranges[at + 1] {
                bits[(byte >> 6) as usize] |= 1 << (byte & 63);
                byte += 1;
            }
            at += 2;
        }
        Self(bits)
    }

    pub(super) const fn holds(self, byte: u8) -> bool {
        byte < 128 && self.0[(byte >> 6) as usize] >> (byte & 63) & 1 == 1
    }

    /// Length of the run that begins at `at`, at most `most`.
    pub(super) fn run(self, text: &[u8], at: usize, most: usize) -> usize {
        let rest = text.get(at..).unwrap_or_default().iter().take(most);
        rest.take_while(|b| self.holds(**b)).count()
    }

    /// Length of the run that ends at `at`, at most `most`.
    pub(super) fn run_before(self, text: &[u8], at: usize, most: usize) -> usize {
        let before = text[..at].iter().rev().take(most);
        before.take_while(|b| self.holds(**b)).count()
    }
}

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
    ("crypt", Set::CRYPT),
    ("params", Set::PARAMS),
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
        let (_, set) = SETS.iter().find(|(known, _)| *known == name)?;
        let (least, most) = length.split_once('-').unwrap_or((length, length));
        let most = if most.is_empty() {
            Some(Self::ANY)
        } else {
            most.parse().ok()
        };
        Some(Self::Run(*set, least.parse().ok()?, most?))
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
        Some(Part::Run(set, least, most)) => around(text, at, end, (set, least, most), &behind),
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
    (set, least, most): (Set, usize, usize),
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
    (!open && randomness::is_random(&text[start..end])).then_some(start..end)
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
    let run = if capitals { Set::UPPER } else { Set::CUT }.run(text, at, text.len());
    let body = &text[at..at + run];
    let random = randomness::is_random(body) || capitals && body.iter().any(u8::is_ascii_digit);
    let cut = run >= 8 && random && lines::is_cut(text, at + run);
    (cut && !randomness::is_placeholder(body)).then_some(at + run)
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
    if randomness::is_filler(body) || randomness::is_documented(body) {
        return false;
    }
    let has = |test: fn(&u8) -> bool| body.iter().any(test);
    let worded = has(|b| matches!(b, b'-' | b'_' | b'.'));
    match prefix {
        ..=2 => randomness::is_random(body),
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
                end_of_run(text, at, set, (least, most), parts.get(i + 1))?
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
    (least, most): (usize, usize),
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

/// Position after the break at `at` and the indentation that follows it; `at` itself if there is no
/// break.
///
/// Breaks are line ends, with or without a backslash, JSON-escaped line ends (once or twice), and
/// zero-width characters.
pub(super) fn over_breaks(text: &[u8], at: usize) -> usize {
    const HIDDEN: [&str; 6] = [
        "\u{200b}", "\u{200c}", "\u{200d}", "\u{2060}", "\u{feff}", "\u{ad}",
    ];
    let rest = text.get(at..).unwrap_or_default();
    match rest.first() {
        Some(b'\n' | b'\r' | b'\\') => {}
        Some(0xC2 | 0xE2 | 0xEF) => {
            let mark = HIDDEN.iter().find(|mark| rest.starts_with(mark.as_bytes()));
            return at + mark.map_or(0, |mark| mark.len());
        }
        _ => return at,
    }
    let slashes = rest.iter().take(4).take_while(|b| **b == b'\\').count();
    let behind = &rest[slashes..];
    let length = match behind {
        [b'\r', b'\n', ..] => 2,
        [b'\n' | b'\r', ..] => 1,
        [b'r', b'\\', b'n', ..] if slashes > 0 => 3,
        [b'r', b'\\', b'\\', b'n', ..] if slashes > 1 => 4,
        [b'n' | b'r', ..] if slashes > 0 => 1,
        _ => return at,
    };
    let after = behind[length..].iter().take(64);
    let indentation = after.take_while(|b| matches!(b, b' ' | b'\t')).count();
    at + slashes + length + indentation
}

/// White space.
pub(super) const SPACE: &[u8] = b" \t\n\r\x0c";

/// Position after at most 48 of these bytes.
pub(super) fn skip(text: &[u8], at: usize, over: &[u8]) -> usize {
    let at = at.min(text.len());
    let rest = text[at..].iter().take(48);
    at + rest.take_while(|b| over.contains(b)).count()
}

/// At most `most` bytes from `at`.
pub(super) fn near(text: &[u8], at: usize, most: usize) -> &[u8] {
    let rest = text.get(at..).unwrap_or_default();
    &rest[..rest.len().min(most)]
}

/// Returns true if a text contains a word.
pub(super) fn holds(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}

/// Returns true if a word can begin at `at`: no letter or digit precedes it, except as part of an
/// escape (`\n`, `%3D`, a terminal colour).
pub(super) fn can_begin(text: &[u8], at: usize) -> bool {
    match &text[..at.min(text.len())] {
        [] | [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        [before @ .., b'm'] => {
            let of_colour = |b: &u8| b.is_ascii_digit() || matches!(b, b';' | b'[');
            let colour = before
                .iter()
                .rev()
                .take(12)
                .take_while(|b| of_colour(b))
                .count();
            let (escape, colour) = before.split_at(before.len() - colour);
            colour.first() == Some(&b'[') && matches!(escape, [.., 0x1B | b'b' | b'3' | b'e'])
        }
        [.., last] => !last.is_ascii_alphanumeric(),
    }
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
