//! Keys with a vendor prefix, read from `vendors.tsv`, which grows by editing data.
//!
//! The table is read once per process, which takes microseconds. A test checks every line.

use std::sync::LazyLock;

use super::super::shapes::{Part, Set};
use super::{Detector, Pattern};

const TABLE: &str = include_str!("vendors.tsv");

/// Length above that of any key.
const ANY: usize = 4096;

/// All keys, in the order of the table.
pub(super) static VENDORS: LazyLock<Vec<Pattern>> =
    LazyLock::new(|| rows().filter_map(pattern).collect());

fn rows() -> impl Iterator<Item = &'static str> {
    split(TABLE, b'\n').filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Splits at a byte. A process that lives for a few milliseconds notices the splits of `str`.
fn split(text: &'static str, at: u8) -> impl Iterator<Item = &'static str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = memchr::memchr(at, text.as_bytes());
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

/// Reads a line of the table; `None` if it is malformed.
fn pattern(line: &'static str) -> Option<Pattern> {
    let mut columns = split(line, b'\t');
    let (kind, finds) = (columns.next()?, columns.next()?);
    let anchors: Vec<&str> = split(columns.next()?, b'|').collect();
    let parts: Option<Vec<Part>> = split(columns.next()?, b' ').map(part).collect();
    Some(Pattern {
        kind,
        finds,
        anchors: anchors.leak(),
        how: Detector::Key(parts?.leak()),
        yes: samples(columns.next()),
        no: samples(columns.next()),
    })
}

/// Samples, which only tests read.
#[cfg(test)]
fn samples(column: Option<&'static str>) -> &'static [&'static str] {
    let column = column.unwrap_or_default();
    column.split("||").collect::<Vec<_>>().leak()
}

#[cfg(not(test))]
const fn samples(_: Option<&'static str>) -> &'static [&'static str] {
    &[]
}

fn part(text: &str) -> Option<Part> {
    let Some((name, length)) = text.split_once(':').filter(|(name, _)| !name.is_empty()) else {
        let &[byte] = text.as_bytes() else {
            return None;
        };
        return Some(Part::Is(byte));
    };
    let number = |text: &str| text.parse::<usize>().ok();
    let (least, most) = match length.split_once('-') {
        None => (number(length)?, number(length)?),
        Some((least, "")) => (number(least)?, ANY),
        Some((least, most)) => (number(least)?, number(most)?),
    };
    Some(Part::Run(Set::from_name(name)?, least, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for line in rows() {
            assert_eq!(line.split('\t').count(), 6, "{line}");
            assert!(pattern(line).is_some(), "{line}");
        }
        assert_eq!(VENDORS.len(), rows().count());
    }

    #[test]
    fn shapes_are_runs_and_characters() {
        let check = |text: &str, expected: &str| {
            let part = part(text).map(|part| format!("{part:?}"));
            assert_eq!(part.unwrap_or_default(), expected, "{text}");
        };
        check("alnum:24", "Run(Alnum, 24, 24)");
        check("hex:24-40", "Run(Hex, 24, 40)");
        check("word:24-", "Run(Word, 24, 4096)");
        check(":", "Is(58)");
        check(".", "Is(46)");
        check("letters:4", "");
        check("alnum:", "");
        check("ab", "");
    }
}
