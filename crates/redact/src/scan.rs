//! One pass over a text that finds all secrets.
//!
//! Anchors (`anchors`) mark candidates, and the rule of each anchor decides there. What is escaped in a line
//! or encoded is searched as a text of its own (`views`). A second pass checks only line ends, for prefixes
//! that a line break splits.

use std::ops::Range;

use super::arguments;
use super::assignments;
use super::bytes::{Set, over_breaks};
use super::keys::key;
use super::rules::{Entry, How, TABLE, Table};
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
    while let Some(slash) = memchr::memchr(b'\\', &text.as_bytes()[from..]) {
        let slash = from + slash;
        let start = memchr::memrchr(b'\n', &text.as_bytes()[from..slash]);
        let start = start.map_or(from, |n| from + n + 1);
        let end = memchr::memchr(b'\n', &text.as_bytes()[slash..]);
        from = end.map_or(text.len(), |n| slash + n);
        if let Some(view) = View::of(text, start..from) {
            for Finding { kind, at } in findings_within(&view.text, depth) {
                let at = view.outer(&at);
                if !is_known(&found, &at) && !at.is_empty() {
                    inner.push(Finding { kind, at });
                }
            }
        }
    }
    merge(&mut found, inner);
    found
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
    while let Some(next) = table.next_candidate(bytes, from) {
        from = next + 1;
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
    found.dedup_by(|next, kept| {
        let overlaps = next.at.start < kept.at.end;
        if overlaps {
            kept.at.end = kept.at.end.max(next.at.end);
        }
        overlaps
    });
}
