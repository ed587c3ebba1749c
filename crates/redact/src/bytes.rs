//! Reading of texts, for all modules: sets of bytes, words, the breaks that a terminal, a shell or a JSON
//! writer inserts, and the tables of `rules/` with their rows and lists of words.

use std::sync::LazyLock;

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
    /// Parameters of a terminal colour.
    pub(super) const COLOUR: Self = Self::of(b"09;;");

    /// Set of these ranges, each of two bytes.
    pub(super) const fn of(ranges: &[u8]) -> Self {
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

    /// Returns true if a text has no other characters.
    pub(super) fn holds_all(self, text: &[u8]) -> bool {
        text.iter().all(|b| self.holds(*b))
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

/// Position after the break at `at` and the indentation that follows it; `at` itself if there is no
/// break.
///
/// Breaks are line ends, with or without a backslash, and zero-width characters.
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
    let slashes = skip(near(rest, 0, 4), 0, b"\\");
    let behind = &rest[slashes..];
    let length = match behind {
        [b'\r', b'\n', ..] => 2,
        [b'\n' | b'\r', ..] => 1,
        _ => return at,
    };
    at + slashes + length + Set::BLANK.run(behind, length, 64)
}

/// Text without its breaks.
pub(super) fn without_breaks(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let next = over_breaks(text, at);
        if next == at {
            out.push(text[at]);
        }
        at = next.max(at + 1);
    }
    out
}

/// Returns true if a word can begin at `at`: no letter or digit precedes it, except as part of a
/// terminal colour.
pub(super) fn can_begin(text: &[u8], at: usize) -> bool {
    match &text[..at.min(text.len())] {
        [] => true,
        [before @ .., b'm'] => {
            let colour = Set::COLOUR.run_before(before, before.len(), 12);
            let escape = &before[..before.len() - colour];
            matches!(escape, [.., 0x1B | b'b' | b'e', b'['])
        }
        [.., last] => !last.is_ascii_alphanumeric(),
    }
}

/// Position after the parameters and the letter of a terminal colour whose bracket, and perhaps an
/// earlier parameter, precede `at`; otherwise `at`.
pub(super) fn over_colour(text: &[u8], at: usize) -> usize {
    let digits = Set::DIGITS.run(text, at, 8);
    let is_colour =
        matches!(text[..at], [.., b'['] | [.., b'[', b';']) && text.get(at + digits) == Some(&b'm');
    at + usize::from(is_colour) * (digits + 1)
}

/// Names that make the value beside them secret.
pub(super) const NAMES: &str = include_str!("rules/names.tsv");

/// Row of a table of secrets.
pub(super) struct Row {
    /// Kind in the marker `[REDACTED:kind]`.
    pub(super) kind: &'static str,
    /// Texts of two bytes or more, separated by `|`; every such secret contains one of them.
    pub(super) anchors: &'static str,
    /// How the secret is found; the head of the table describes the column.
    pub(super) how: &'static str,
    /// The row, for its samples.
    #[cfg(test)]
    pub(super) line: &'static str,
}

/// Lines of a table, without its comments.
fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    split(table, b'\n').filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Rows of a table of secrets; a test rules out that one is malformed.
pub(super) fn rows(table: &'static str) -> impl Iterator<Item = Row> {
    lines(table).filter_map(|line| {
        let mut columns = split(line, b'\t');
        Some(Row {
            kind: columns.next()?,
            anchors: columns.nth(1)?,
            how: columns.next()?,
            #[cfg(test)]
            line,
        })
    })
}

/// Words of `rules/words.tsv` under this name; none if there is no such name.
pub(super) fn list(name: &str) -> &'static [&'static str] {
    static LISTS: LazyLock<Vec<(&str, Vec<&str>)>> = LazyLock::new(|| {
        let list = |line: &'static str| {
            let (name, words) = line.split_once('\t')?;
            Some((name, split(words, b'\t').collect()))
        };
        lines(include_str!("rules/words.tsv"))
            .filter_map(list)
            .collect()
    });
    let list = LISTS.iter().find(|(other, _)| *other == name);
    list.map_or(&[], |(_, words)| words)
}

/// Splits at a byte. A process that lives for a few milliseconds notices the splits of `str`.
pub(super) fn split(text: &'static str, at: u8) -> impl Iterator<Item = &'static str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = memchr::memchr(at, text.as_bytes());
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}
