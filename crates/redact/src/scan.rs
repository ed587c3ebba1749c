//! One pass over a text that finds all secrets.
//!
//! Anchors (`anchors`) mark candidates, and the pattern of each anchor decides there.
//!
//! A second pass checks only line ends, for prefixes that a line break splits.

use std::ops::Range;

use super::anchors::{Entry, TABLE, Table, first_three, next_candidate};
use super::arguments;
use super::assignments;
use super::blocks;
use super::body::{can_begin, end_of, over_breaks};
use super::class::Class;
use super::encoded;
use super::kubernetes;
use super::lines;
use super::logins;
use super::patterns::Detector;
use super::placeholders;
use super::shapes::{Part, Set};
use super::structures;
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
    if depth == 0 {
        return found;
    }
    let mut from = 0;
    let before = found.len();
    for encoded in encoded::texts(text) {
        let known =
            |old: &Finding| old.at.start <= encoded.at.start && encoded.at.end <= old.at.end;
        if !found[..before].iter().any(known)
            && !findings_within(&encoded.text, depth - 1).is_empty()
        {
            found.push(Finding {
                kind: ENCODED,
                at: encoded.at,
            });
        }
    }
    while let Some(slash) = memchr::memchr(b'\\', &text.as_bytes()[from..]) {
        let start = memchr::memrchr(b'\n', &text.as_bytes()[from..from + slash])
            .map_or(from, |n| from + n + 1);
        let end = memchr::memchr(b'\n', &text.as_bytes()[from + slash..])
            .map_or(text.len(), |n| from + slash + n);
        if let Some(view) = View::of(text, start..end) {
            for inner in findings_within(&view.text, depth - 1) {
                let at = view.outer(&inner.at);
                let known = |old: &Finding| old.at.start <= at.start && at.end <= old.at.end;
                if !found[..before].iter().any(known) && !at.is_empty() {
                    found.push(Finding {
                        kind: inner.kind,
                        at,
                    });
                }
            }
        }
        from = end;
    }
    if found.len() > before {
        found.sort_by_key(|finding| (finding.at.start, finding.at.end));
        merge(&mut found);
    }
    found
}

fn findings_of(text: &str) -> Vec<Finding> {
    let bytes = text.as_bytes();
    let mut found: Vec<Finding> = Vec::new();
    if bytes.len() < 4 {
        return found;
    }
    let table = &*TABLE;
    // Findings away from their anchor: further table rows, arguments of a program.
    let mut aside: Vec<Finding> = Vec::new();
    let mut at = 0;
    while let Some(next) = next_candidate(table, bytes, at) {
        match scan_at(table, bytes, next, &mut aside) {
            ScanStep::Found(mut finding) => {
                // A finding that extends backwards starts after the previous one.
                let before = found.last().map_or(0, |last| last.at.end);
                finding.at.start = finding.at.start.max(before);
                at = finding.at.end.max(next + 1);
                if !finding.at.is_empty() {
                    found.push(finding);
                }
            }
            ScanStep::Skip(to) => at = to.max(next + 1),
            ScanStep::Nothing => at = next + 1,
        }
    }
    aside.extend(cut_in_two(table, bytes, &found));
    if !aside.is_empty() {
        found.extend(aside);
        found.sort_by_key(|finding| (finding.at.start, finding.at.end));
        merge(&mut found);
    }
    // A value cut at its maximum length may end inside a character; the range grows to include it.
    for finding in &mut found {
        let at = &mut finding.at;
        at.start = (0..=at.start)
            .rev()
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(0);
        at.end = (at.end..text.len())
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(text.len());
    }
    found
}

enum ScanStep {
    Found(Finding),
    /// Continue at this position.
    Skip(usize),
    Nothing,
}

/// Finding at an anchor. Further parts of it elsewhere go to `aside`.
fn scan_at(table: &Table, text: &[u8], at: usize, aside: &mut Vec<Finding>) -> ScanStep {
    for entry in table.at(text, at) {
        let kind = entry.pattern.kind;
        match entry.pattern.how {
            Detector::Marker => {
                let end = memchr::memchr(b']', &text[at..text.len().min(at + 60)]);
                return end.map_or(ScanStep::Nothing, |end| ScanStep::Skip(at + end + 1));
            }
            // The pattern of the access key itself finds the key.
            Detector::BehindKey
            | Detector::SecretData
            | Detector::Command(..)
            | Detector::Piped => {
                let found = several(entry, text, at).into_iter();
                aside.extend(found.map(|at| Finding { kind, at }));
            }
            _ => {
                let mut found = several(entry, text, at)
                    .into_iter()
                    .filter(|range| !range.is_empty());
                if let Some(first) = found.next() {
                    aside.extend(found.map(|at| Finding { kind, at }));
                    return ScanStep::Found(Finding { kind, at: first });
                }
            }
        }
    }
    ScanStep::Nothing
}

/// Ranges of an anchor's secrets, in order.
fn several(entry: &Entry, text: &[u8], at: usize) -> Vec<Range<usize>> {
    let end = at + entry.literal.len();
    match entry.pattern.how {
        Detector::Name(class) => assignments::value(text, at, end, entry.pattern.kind, class),
        Detector::KeyBlock => blocks::key_block(text, at),
        Detector::KeyBlockTail => blocks::key_block_tail(text, at),
        Detector::LinesBelow => blocks::lines_below(text, at),
        Detector::SecretData => kubernetes::secret_data(text, at, end),
        Detector::Command(words, flags) => arguments::of_command(text, at, end, words, flags),
        Detector::Camel if at > 0 && text[at - 1].is_ascii_lowercase() => {
            assignments::value(text, at, end, entry.pattern.kind, Class::Key)
        }
        _ => resolve(entry, text, at, end).into_iter().collect(),
    }
}

fn resolve(entry: &Entry, text: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    match entry.pattern.how {
        Detector::Key(body) => key(body, text, at, end),
        Detector::Around(set, least, most, parts) => {
            structures::around(text, at, end, (set, least, most), parts)
        }
        Detector::Private => structures::private(text, at),
        Detector::WebToken => structures::web_token(text, at),
        Detector::Encoded => structures::encoded(text, at),
        Detector::KeyMember => structures::key_member(text, at, end),
        Detector::Address => structures::address(text, at),
        Detector::Bearer => structures::credentials(text, end),
        Detector::Basic => structures::basic(text, end),
        Detector::Cookie => structures::cookie(text, end),
        Detector::Telegram => structures::telegram(text, at),
        Detector::Discord => structures::discord(text, at),
        Detector::AzureClient => structures::azure_client(text, at),
        Detector::VaultLegacy => structures::vault_legacy(text, at),
        Detector::Auth => logins::auth(text, at, end),
        Detector::PgPass => logins::pgpass(text, at),
        Detector::Sql => logins::sql(text, end),
        Detector::SecondArgument => logins::second_argument(text, end),
        Detector::BehindKey => structures::behind_key(text, at),
        Detector::Piped => arguments::piped(text, end),
        Detector::Expect => logins::expect(text, at, end),
        Detector::Name(_)
        | Detector::Camel
        | Detector::Marker
        | Detector::KeyBlock
        | Detector::KeyBlockTail
        | Detector::LinesBelow
        | Detector::SecretData
        | Detector::Command(..) => None,
    }
}

/// Key that begins at `at`, with its body from `body`.
fn key(parts: &[Part], text: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let first = text[at];
    // Some prefixes are unmistakable, even directly after another word.
    let unmistakable = body - at >= 4
        && text[body - 1] == b'_'
        && matches!(parts, [Part::Run(Set::Alnum | Set::Word, ..)]);
    if first.is_ascii_alphanumeric() && !unmistakable && !can_begin(text, at) {
        return None;
    }
    // In base64, a slash or a plus is not a boundary.
    if body - at <= 4 && at > 0 && matches!(text[at - 1], b'/' | b'+') && is_base64_before(text, at)
    {
        return None;
    }
    let Some(end) = end_of(text, body, parts) else {
        // Remainder of a truncated key.
        let end = structures::cut_run(text, body).or_else(|| cut_capitals(text, body, parts))?;
        if !begins_like(&text[body..end], parts) {
            return None;
        }
        return is_plausible(&text[body..end], body - at).then_some(at..end);
    };
    is_plausible(&text[body..end], body - at).then_some(at..end)
}

/// End of a truncated key of capitals and digits, whose alphabet is too small for a randomness
/// check.
fn cut_capitals(text: &[u8], at: usize, parts: &[Part]) -> Option<usize> {
    let run = text[at..]
        .iter()
        .take_while(|b| Set::Upper.holds(**b))
        .count();
    let body = &text[at..at + run];
    let fits =
        matches!(parts, [Part::Run(Set::Upper, ..), ..]) && body.iter().any(u8::is_ascii_digit);
    (run >= 8 && fits && lines::is_cut(text, at + run)).then_some(at + run)
}

/// Returns true if a text could be the beginning of these parts.
fn begins_like(text: &[u8], parts: &[Part]) -> bool {
    let mut at = 0;
    for part in parts {
        match *part {
            Part::Run(set, least, most) => {
                let run = text[at..]
                    .iter()
                    .take(most)
                    .take_while(|b| set.holds(**b))
                    .count();
                at += run;
                if at == text.len() {
                    return true;
                }
                if run < least {
                    return false;
                }
            }
            Part::Is(byte) if text.get(at) == Some(&byte) => at += 1,
            Part::Is(_) => return at == text.len(),
        }
    }
    false
}

/// Returns true if the text before `at` is a long base64 run.
fn is_base64_before(text: &[u8], at: usize) -> bool {
    let run = text[..at]
        .iter()
        .rev()
        .take(64)
        .take_while(|b| Set::Base64.holds(**b))
        .count();
    run >= 40
}

/// Rejects placeholders and long names, which can begin like keys.
fn is_plausible(body: &[u8], prefix: usize) -> bool {
    if placeholders::is_filler(body) || placeholders::is_documented(body) {
        return false;
    }
    let digits = body.iter().filter(|b| b.is_ascii_digit()).count();
    let capitals = body.iter().any(u8::is_ascii_uppercase);
    let small = body.iter().any(u8::is_ascii_lowercase);
    let worded = body.iter().any(|b| matches!(b, b'-' | b'_' | b'.'));
    // After a prefix that is almost a word, or in a body that may contain words.
    if prefix <= 3 || worded {
        let mixed = capitals && small;
        let long = body.len() >= 30 && !worded;
        return digits > 0 || (mixed && (long || super::body::changes(body) >= 8));
    }
    true
}

/// Keys with a line break in the prefix.
fn cut_in_two(table: &Table, text: &[u8], found: &[Finding]) -> Vec<Finding> {
    const REACH: usize = 32;
    /// Longest part of a split key that is joined, in bytes.
    const LONGEST_CUT: usize = 4096;
    let mut cut = Vec::new();
    let mut from = 0;
    let mut window = Vec::with_capacity(2 * REACH);
    while let Some(n) = memchr::memchr3(b'\n', b'\\', 0xE2, text.get(from..).unwrap_or_default()) {
        let at = from + n;
        let at = at - usize::from(at > from && text[at] == b'\n' && text[at - 1] == b'\r');
        let in_key = |b: u8| {
            b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b'=' | b':')
        };
        // Most lines end in punctuation.
        if at == 0 || !in_key(text[at - 1]) {
            from += n + 1;
            continue;
        }
        let next = over_breaks(text, at);
        from = next.max(from + n + 1);
        let joins = next > at
            && at > 0
            && in_key(text[at - 1])
            && text.get(next).is_some_and(|b| in_key(*b));
        if !joins {
            continue;
        }
        let tail = text[..at]
            .iter()
            .rev()
            .take(REACH)
            .take_while(|b| in_key(**b))
            .count();
        let head = text[next..]
            .iter()
            .take(REACH)
            .take_while(|b| in_key(**b))
            .count();
        window.clear();
        window.extend_from_slice(&text[at - tail..at]);
        window.extend_from_slice(&text[next..next + head]);
        for begin in 0..tail {
            if window.len() < begin + 3
                || !table.may_begin_with(first_three(&window[begin..]), window.get(begin + 3))
            {
                continue;
            }
            let in_two = |entry: &Entry| {
                let of_keys = matches!(
                    entry.pattern.how,
                    Detector::Key(_)
                        | Detector::Around(..)
                        | Detector::WebToken
                        | Detector::Discord
                        | Detector::Telegram
                        | Detector::AzureClient
                        | Detector::KeyBlock
                        | Detector::KeyBlockTail
                        | Detector::Address
                        | Detector::Bearer
                        | Detector::Private
                );
                of_keys
                    && (begin + entry.literal.len() > tail
                        || matches!(entry.pattern.how, Detector::Discord))
            };
            let is_cut = table.at(&window, begin).any(in_two);
            if !is_cut {
                continue;
            }
            // Text without this one break.
            let until = text.len().min(next + LONGEST_CUT);
            let joined = [&text[at - tail..at], &text[next..until]].concat();
            if let ScanStep::Found(finding) = scan_at(table, &joined, begin, &mut Vec::new()) {
                let back = |n: usize| {
                    if n <= tail {
                        at - tail + n
                    } else {
                        next + n - tail
                    }
                };
                cut.push(Finding {
                    kind: finding.kind,
                    at: back(finding.at.start)..back(finding.at.end),
                });
            }
        }
    }
    cut.retain(|new| {
        !found
            .iter()
            .any(|old| old.at.start <= new.at.start && new.at.end <= old.at.end)
    });
    cut
}

/// Merges overlapping findings.
fn merge(found: &mut Vec<Finding>) {
    found.dedup_by(|next, kept| {
        let overlaps = next.at.start < kept.at.end;
        if overlaps {
            kept.at.end = kept.at.end.max(next.at.end);
        }
        overlaps
    });
}
