//! One pass over a text that finds all secrets, and the secrets to look for, as data: tables of anchors,
//! and the shapes at them.
//!
//! Anchors mark candidates, and the rule of each anchor decides there. Escaped or encoded
//! text in a line is searched as a text of its own (`views`). A second pass checks only line ends, for prefixes
//! that a line break splits.
//!
//! - `rules/vendors.tsv`: keys with a prefix or another fixed part. It grows by editing data.
//! - `rules/names.tsv`: values made secret by the name before them.
//! - `rules/structures.tsv`: secrets recognised by their surroundings: blocks, headers, addresses.
//! - `rules/commands.tsv`: arguments of programs.
//!
//! Each row has samples of secrets and of look-alikes, which a test runs. They are templates
//! (`tests/templates.rs`), so that no file contains a key. The fourth column stays text until an anchor
//! is met: a process that lives for a few milliseconds meets few of them.
//!
//! Anchors are indexed by their first bytes: a bit table holds the first three of every anchor and another
//! the first four, so ordinary text costs one lookup per byte. Building the index takes microseconds, far
//! less than compiling regular expressions or an automaton, and happens once per process.

use std::ops::Range;
use std::sync::LazyLock;

use super::arguments;
use super::assignments;
use super::blocks;
use super::bytes::{NAMES, Row, Set, over_breaks, rows, split};
use super::documents;
use super::extent::scheme;
use super::keys::key;
use super::structures;
use super::values::Class;
use super::views::{self, View};

/// Text range that must not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Kind: `aws-access-key`, `password`, `private`.
    pub kind: &'static str,
    /// Byte range; never splits a character.
    pub at: Range<usize>,
}

/// Kind of text between `<private>` and `</private>`.
pub(super) const PRIVATE: &str = "private";

/// Kind of base64 whose content holds a secret.
const ENCODED: &str = "encoded-secret";

/// All findings in a text, in order, without overlaps.
pub fn findings(text: &str) -> Vec<Finding> {
    findings_within(text, views::DEPTH)
}

/// Findings in the text, and in texts escaped in its lines or encoded in it, down to `depth` levels.
fn findings_within(text: &str, depth: usize) -> Vec<Finding> {
    let mut found = findings_of(text);
    let Some(depth) = depth.checked_sub(1) else {
        return found;
    };
    let mut inner = Vec::new();
    for (at, plain) in views::texts(text) {
        if !is_known(&found, &at) && !findings_within(&plain, depth).is_empty() {
            inner.push(Finding { kind: ENCODED, at });
        }
    }
    let mut from = 0;
    while let Some(mark) = views::next_mark(text.as_bytes(), from) {
        from = mark + 1;
        if !views::tells(text, mark) {
            continue;
        }
        let start = memchr::memrchr(b'\n', &text.as_bytes()[..mark]).map_or(0, |n| n + 1);
        let end = memchr::memchr(b'\n', &text.as_bytes()[mark..]);
        from = end.map_or(text.len(), |n| mark + n);
        let view = View::of(text, start..from);
        for Finding { kind, at } in findings_within(&view.text, depth) {
            let at = view.outer(&at);
            if !is_known(&found, &at) && !at.is_empty() {
                inner.push(Finding { kind, at });
            }
        }
    }
    merge(&mut found, inner);
    found
}

/// Kind of a value that the name of its field makes secret, or the flag before it.
pub(super) fn kind_of_field(name: &str, value: &str) -> Option<&'static str> {
    const NAME: Set = Set::of(b"09AZaz__--..  $$//");
    if name.len() > 80 || !name.bytes().all(|b| NAME.holds(b) || !b.is_ascii()) {
        return None;
    }
    let before = format!("\"{name}\": \"");
    // Most names have no anchor.
    let next = |from| TABLE.next_candidate(before.as_bytes(), from);
    let mut places = std::iter::successors(next(0), |at| next(at + 1));
    let has_anchor = |at| TABLE.at(before.as_bytes(), at).next().is_some();
    if !places.any(has_anchor) {
        return None;
    }
    // A quote or a line end inside would end the value.
    let value = value.replace('"', "'").replace(['\n', '\r'], " ");
    let found = findings_of(&format!("{before}{value}\""));
    let start = before.len() + scheme(value.as_bytes());
    let is_whole = |found: &Finding| found.at.start <= start && start < found.at.end;
    Some(found.into_iter().find(is_whole)?.kind)
}

fn is_known(found: &[Finding], at: &Range<usize>) -> bool {
    let mut found = found.iter();
    found.any(|old| old.at.start <= at.start && at.end <= old.at.end)
}

fn findings_of(text: &str) -> Vec<Finding> {
    let bytes = text.as_bytes();
    let mut found: Vec<Finding> = Vec::new();
    let table = &*TABLE;
    // Findings away from their anchor: further table rows, arguments of a program.
    let mut aside = Vec::new();
    let mut from = 0;
    // End of the stretch of text around the anchors, and their number in it.
    let (mut end, mut anchors) = (0, 0);
    while let Some(next) = table.next_candidate(bytes, from) {
        from = next + 1;
        if next >= end {
            end = end_of_stretch(bytes, next);
            anchors = 0;
        }
        anchors += usize::from(table.at(bytes, next).next().is_some());
        if anchors > MOST_ANCHORS {
            from = end;
            continue;
        }
        if let Some((kind, mut at)) = at_anchor(table, bytes, next, &mut aside) {
            from = from.max(at.end);
            // A finding that extends backwards starts after the previous one.
            at.start = at.start.max(found.last().map_or(0, |last| last.at.end));
            if let Some(kind) = kind.filter(|_| !at.is_empty()) {
                found.push(Finding { kind, at });
            }
        }
    }
    let cut = cut_in_two(table, bytes);
    aside.extend(cut.into_iter().filter(|cut| !is_known(&found, &cut.at)));
    merge(&mut found, aside);
    // A value cut at its maximum length may end inside a character; the range grows to include it.
    for Finding { at, .. } in &mut found {
        at.start = text.floor_char_boundary(at.start);
        at.end = text.ceil_char_boundary(at.end);
    }
    found
}

/// Maximum number of anchors in a stretch without white space and quotes: a text of nothing but beginnings of keys
/// would be read to its end at each.
const MOST_ANCHORS: usize = 256;

/// Position of the next white space, quote or comma.
fn end_of_stretch(text: &[u8], at: usize) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`,;<>".contains(byte);
    let length = text[at..].iter().skip(1).position(ends);
    length.map_or(text.len(), |length| at + 1 + length)
}

/// Range of the secret at an anchor and its kind, without one if the range is a marker of an earlier
/// redaction. Further parts of the secret go to `aside`.
fn at_anchor(
    table: &Table,
    text: &[u8],
    at: usize,
    aside: &mut Vec<Finding>,
) -> Option<(Option<&'static str>, Range<usize>)> {
    for entry in table.at(text, at) {
        let kind = entry.kind;
        if matches!(entry.how, How::Marker) {
            let end = memchr::memchr(b']', &text[at..text.len().min(at + 60)]);
            return end.map(|end| (None, at..at + end + 1));
        }
        let mut found = ranges(entry, text, at);
        found.retain(|range| !range.is_empty());
        let mut found = found.into_iter();
        let first = match entry.how {
            How::Aside(_) | How::Command(_) => None,
            _ => found.next(),
        };
        aside.extend(found.map(|at| Finding { kind, at }));
        if let Some(first) = first {
            return Some((Some(kind), first));
        }
    }
    None
}

/// Ranges of an anchor's secrets, in order.
fn ranges(entry: &Entry, text: &[u8], at: usize) -> Vec<Range<usize>> {
    let end = at + entry.literal.len();
    let one = match entry.how {
        How::Key(shape) => key(text, at, end, shape),
        How::One(find) => find(text, at, end),
        How::Many(find) | How::Aside(find) => return find(text, at, end),
        How::Name(class) => return assignments::value(text, at, end, entry.kind, class),
        How::Camel if at > 0 && text[at - 1].is_ascii_lowercase() => {
            return assignments::value(text, at, end, entry.kind, Class::Key);
        }
        How::Command(places) => return arguments::of_command(text, at, end, places),
        How::Camel | How::Marker => None,
    };
    one.into_iter().collect()
}

/// Secrets with a line break in their anchor.
fn cut_in_two(table: &Table, text: &[u8]) -> Vec<Finding> {
    /// Longest part of an anchor before the break, and of a secret after it, in bytes.
    const REACH: (usize, usize) = (32, 4096);
    /// Characters of an anchor and of a key.
    const KEY: Set = Set::of(b"09AZaz++//==__--..~~%%::");
    let mut found = Vec::new();
    let mut window = Vec::with_capacity(2 * REACH.0);
    let mut from = 0;
    while let Some(n) = memchr::memchr3(b'\n', b'\\', 0xE2, text.get(from..).unwrap_or_default()) {
        let at = from + n;
        from = at + 1;
        let at = at - usize::from(n > 0 && text[at] == b'\n' && text[at - 1] == b'\r');
        // Most lines end in punctuation.
        if KEY.run_before(text, at, 1) == 0 {
            continue;
        }
        let next = over_breaks(text, at);
        from = from.max(next);
        let tail = KEY.run_before(text, at, REACH.0);
        let head = KEY.run(text, next, REACH.0);
        if next == at || head == 0 {
            continue;
        }
        window.clear();
        window.extend_from_slice(&text[at - tail..at]);
        window.extend_from_slice(&text[next..next + head]);
        // Anchors that begin before the break.
        let ends = &window[..window.len().min(tail + 3)];
        let mut begin = 0;
        while let Some(anchor) = table.next_candidate(ends, begin).filter(|at| *at < tail) {
            begin = anchor + 1;
            let is_cut = |entry: &Entry| {
                let is_whole = matches!(entry.how, How::Key(_) | How::One(_) | How::Many(_));
                is_whole && anchor + entry.literal.len() > tail
            };
            if !table.at(&window, anchor).any(is_cut) {
                continue;
            }
            // Text without this one break.
            let until = text.len().min(next + REACH.1);
            let joined = [&text[at - tail..at], &text[next..until]].concat();
            if let Some((Some(kind), range)) = at_anchor(table, &joined, anchor, &mut Vec::new()) {
                let back = |n: usize| (if n <= tail { at } else { next }) + n - tail;
                found.push(Finding {
                    kind,
                    at: back(range.start)..back(range.end),
                });
            }
        }
    }
    found
}

/// Adds findings and merges those that overlap.
fn merge(found: &mut Vec<Finding>, more: Vec<Finding>) {
    if more.is_empty() {
        return;
    }
    found.extend(more);
    found.sort_by_key(|finding| (finding.at.start, finding.at.end));
    found.dedup_by(|next, last| {
        let overlaps = next.at.start < last.at.end;
        if overlaps {
            last.at.end = last.at.end.max(next.at.end);
        }
        overlaps
    });
}

/// Tables in their order: of equal anchors, the earlier row is tried first.
const TABLES: [(&str, Read); 4] = [
    (include_str!("rules/structures.tsv"), structure),
    (include_str!("rules/vendors.tsv"), |shape| {
        Some((How::Key(shape), false))
    }),
    (NAMES, |class| match class {
        "camel" => Some((How::Camel, false)),
        class => Some((How::Name(Class::read(class)?), true)),
    }),
    (include_str!("rules/commands.tsv"), |places| {
        Some((How::Command(places), false))
    }),
];

/// Reads the fourth column: how to find, and whether the case of the anchor is ignored.
type Read = fn(&'static str) -> Option<(How, bool)>;

/// How the secrets at an anchor are found.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    /// Key of this shape.
    Key(&'static str),
    /// Value of a name that contains the anchor.
    Name(Class),
    /// Value of a camel-case name that ends in the anchor, such as `deployKey`. Case matters.
    Camel,
    /// Arguments of a program, at these places.
    Command(&'static str),
    /// Redaction marker, which is skipped.
    Marker,
    One(fn(&[u8], usize, usize) -> Option<Range<usize>>),
    Many(fn(&[u8], usize, usize) -> Vec<Range<usize>>),
    /// Secrets elsewhere: other rules apply at the anchor, and the text between is searched too.
    Aside(fn(&[u8], usize, usize) -> Vec<Range<usize>>),
}

/// All rules: their row, how to find, and whether the case of the anchor is ignored.
pub(super) fn rules() -> impl Iterator<Item = (Row, How, bool)> {
    TABLES.into_iter().flat_map(|(table, read)| {
        rows(table).filter_map(move |row| {
            let (how, folds) = read(row.how)?;
            Some((row, how, folds))
        })
    })
}

fn structure(name: &str) -> Option<(How, bool)> {
    let folded = name.strip_suffix("/i");
    let how = match folded.unwrap_or(name) {
        "marker" => How::Marker,
        "private" => How::One(structures::private),
        "key_block" => How::Many(blocks::key_block),
        "key_block_tail" => How::Many(blocks::key_block_tail),
        "lines_below" => How::Many(blocks::lines_below),
        "web_token" => How::One(structures::web_token),
        "key_member" => How::One(structures::key_member),
        "xml_member" => How::One(structures::xml_member),
        "address" => How::One(structures::address),
        "bearer" => How::One(structures::credentials),
        "basic" => How::One(structures::basic),
        "cookie" => How::One(structures::cookie),
        "auth" => How::One(structures::auth),
        "pg_pass" => How::One(structures::pgpass),
        "sql" => How::One(structures::sql),
        "second_argument" => How::One(structures::second_argument),
        "expect" => How::One(structures::expect),
        "secret_data" => How::Aside(documents::secret_data),
        "behind_key" => {
            How::Aside(|text, at, end| Vec::from_iter(structures::behind_key(text, at, end)))
        }
        "piped" => How::Aside(|text, at, end| Vec::from_iter(arguments::piped(text, at, end))),
        _ => return None,
    };
    Some((how, folded.is_some()))
}

/// Anchor and what is to be found there.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) literal: &'static [u8],
    pub(super) kind: &'static str,
    pub(super) how: How,
    folds: bool,
    /// Next entry in the same bucket.
    next: u16,
}

/// Hashes as bits.
struct Bits(Box<[u64; 1024]>);

impl Bits {
    fn new() -> Self {
        Self(Box::new([0; 1024]))
    }

    fn add(&mut self, hash: u32) {
        self.0[(hash >> 6 & 1023) as usize] |= 1 << (hash & 63);
    }

    fn holds(&self, hash: u32) -> bool {
        self.0[(hash >> 6 & 1023) as usize] >> (hash & 63) & 1 == 1
    }
}

/// Index of all anchors by their first bytes.
pub(super) struct Table {
    /// First three bytes of every anchor.
    first: Bits,
    /// First three bytes of the anchors without a fourth.
    short: Bits,
    /// First four bytes of the others.
    long: Bits,
    /// Last entry of each bucket.
    buckets: Box<[u16; 4096]>,
    entries: Vec<Entry>,
}

const NONE: u16 = u16::MAX;

/// Hashes four bytes to 16 bits, ignoring ASCII case. Shorter texts have zeros at the end.
fn hash(four: u32) -> u32 {
    (four | 0x2020_2020).wrapping_mul(0x85EB_CA6B) >> 16
}

fn exact(three: u32) -> u32 {
    three.wrapping_mul(0x85EB_CA6B) >> 16
}

fn bytes(text: &[u8]) -> u32 {
    let byte = |i: usize| text.get(i).map_or(0, |byte| u32::from(*byte) << (8 * i));
    byte(0) | byte(1) | byte(2) | byte(3)
}

const THREE: u32 = 0x00FF_FFFF;

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        first: Bits::new(),
        short: Bits::new(),
        long: Bits::new(),
        buckets: Box::new([NONE; 4096]),
        entries: Vec::with_capacity(2048),
    };
    // `at` returns later additions first.
    let rules: Vec<_> = rules().collect();
    for (row, how, folds) in rules.iter().rev() {
        let (kind, how, folds) = (row.kind, *how, *folds);
        for literal in split(row.anchors, b'|') {
            table.add(Entry {
                literal: literal.as_bytes(),
                kind,
                how,
                folds,
                next: NONE,
            });
        }
    }
    table
});

impl Table {
    fn add(&mut self, entry: Entry) {
        let four = bytes(entry.literal);
        match *entry.literal {
            // A two-byte anchor matches with any letter or digit after it.
            [_, _] => (b'0'..=b'z')
                .filter(u8::is_ascii_alphanumeric)
                .for_each(|third| self.add_short(four | u32::from(third) << 16, entry)),
            [_, _, _] => self.add_short(four, entry),
            _ => {
                self.long.add(hash(four));
                self.link(four & THREE, entry);
            }
        }
    }

    /// Adds an anchor without a fourth byte. Many words begin like a short anchor in another case, so only
    /// the cases in which it matches are added.
    fn add_short(&mut self, three: u32, entry: Entry) {
        for case in 0..if entry.folds { 8 } else { 1 } {
            let flips = case & 1 | (case & 2) << 7 | (case & 4) << 14;
            self.short.add(exact(three ^ flips << 5));
        }
        self.link(three, entry);
    }

    fn link(&mut self, three: u32, entry: Entry) {
        self.first.add(hash(three));
        let index = u16::try_from(self.entries.len()).unwrap_or(NONE);
        let bucket = &mut self.buckets[(hash(three) & 4095) as usize];
        let next = std::mem::replace(bucket, index);
        self.entries.push(Entry { next, ..entry });
    }

    /// Anchors that match at `at`, the last added first.
    pub(super) fn at<'a>(&'a self, text: &'a [u8], at: usize) -> impl Iterator<Item = &'a Entry> {
        let rest = &text[at..];
        let mut next = self.buckets[(hash(bytes(rest) & THREE) & 4095) as usize];
        let chain = std::iter::from_fn(move || {
            let entry = self.entries.get(usize::from(next))?;
            next = entry.next;
            Some(entry)
        });
        chain.filter(|entry| entry.stands(rest))
    }

    /// Next position where an anchor may begin.
    pub(super) fn next_candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let mut three = bytes(rest) << 8;
        rest.get(2..)?.iter().enumerate().find_map(|(i, byte)| {
            three = three >> 8 | u32::from(*byte) << 16;
            let may_begin = self.first.holds(hash(three))
                && (self.short.holds(exact(three)) || self.long.holds(hash(bytes(&rest[i..]))));
            may_begin.then_some(from + i)
        })
    }
}

impl Entry {
    fn stands(&self, rest: &[u8]) -> bool {
        rest.get(..self.literal.len()).is_some_and(|head| {
            head == self.literal || self.folds && head.eq_ignore_ascii_case(self.literal)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Shape;
    use super::super::redact;
    use super::super::templates::{Random, fill};
    use super::*;

    /// Samples in a column of a rule.
    fn samples(row: &Row, column: usize) -> Vec<String> {
        let column = row.line.split('\t').nth(column).unwrap();
        let samples = column.split("||").filter(|sample| !sample.is_empty());
        samples.map(|sample| sample.replace('¶', "\n")).collect()
    }

    /// Checks every sample of every rule five times, each with different random parts.
    fn each(column: usize, check: impl Fn(&Row, &str, &[String])) {
        for (row, ..) in rules() {
            for template in samples(&row, column) {
                let mut random = Random::new(&template);
                for _ in 0..5 {
                    let planted = fill(&template, &mut random);
                    check(&row, &planted.text, &planted.secrets);
                }
            }
        }
    }

    #[test]
    fn samples_of_secrets_go_and_what_stands_around_them_stays() {
        each(4, |rule, text, secrets| {
            let redacted = redact(text);
            let (kind, clean) = (rule.kind, &redacted.text);
            assert!(
                redacted.found.contains(&kind),
                "{kind}: {redacted:?} from {text}"
            );
            let mut rest = clean.as_ref();
            let mut from = text;
            for secret in secrets {
                assert!(!clean.contains(secret), "{redacted:?} from {text}");
                let (before, after) = from.split_once(secret.as_str()).unwrap();
                assert!(rest.starts_with(before), "{redacted:?} from {text}");
                let marker = rest[before.len()..].find(']');
                let marker = marker.unwrap_or_else(|| panic!("{redacted:?} from {text}"));
                rest = &rest[before.len() + marker + 1..];
                from = after;
            }
            assert_eq!(rest, from, "{redacted:?} from {text}");
        });
    }

    #[test]
    fn samples_of_look_alikes_stay() {
        each(5, |_, text, _| assert_eq!(redact(text).text, text));
    }

    #[test]
    fn every_row_is_read_and_has_anchors_words_and_samples() {
        let lines = TABLES.iter().flat_map(|(table, _)| table.lines());
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(lines.count(), rules().count());
        for (row, how, _) in rules() {
            let line = row.line;
            let columns: Vec<&str> = line.split('\t').collect();
            assert_eq!(columns.len(), 6, "{line}");
            assert!(!columns[1].is_empty(), "{line}");
            assert!(row.anchors.split('|').all(|a| a.len() >= 2), "{line}");
            let marks = matches!(how, How::Marker);
            assert!(marks || !samples(&row, 4).is_empty(), "{line}: no secret");
            assert!(!samples(&row, 5).is_empty(), "{line}: no look-alike");
            if let How::Key(shape) = how {
                assert!(Shape::read(shape).is_some(), "{line}");
            }
        }
    }
}
