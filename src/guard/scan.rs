//! One pass over a text that finds every secret in it.
//!
//! Where a secret may stand is told by its anchor (`anchors`); what an anchor is the anchor of, is
//! decided where it stands.
//!
//! A second pass looks at line ends only: at a prefix that a line break has cut in two.

use std::ops::Range;

use super::anchors::{Anchor, Entry, TABLE, Table, begins_discord, first_three, next_candidate};
use super::assignments;
use super::body::{can_begin, end_of, over_breaks};
use super::shapes::{Part, Set, Shape};
use super::structures;
use super::values;

/// Something that must not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is: `aws-access-key`, `password`, `private`.
    pub kind: &'static str,
    /// Where it stands, in bytes; never inside of a character.
    pub at: Range<usize>,
}

/// The kind of what stands between `<private>` and `</private>`.
pub(super) const PRIVATE: &str = "private";

/// Everything in a text that must not be stored, in its order; no two overlap.
pub fn findings(text: &str) -> Vec<Finding> {
    let bytes = text.as_bytes();
    let mut found: Vec<Finding> = Vec::new();
    if bytes.len() < 4 {
        return found;
    }
    let table = &*TABLE;
    let mut at = 0;
    while let Some(next) = next_candidate(table, bytes, at) {
        match look(table, bytes, next) {
            Look::Found(mut finding) => {
                // What reaches backwards ends what was found before.
                let before = found.last().map_or(0, |last| last.at.end);
                finding.at.start = finding.at.start.max(before);
                at = finding.at.end.max(next + 1);
                if !finding.at.is_empty() {
                    found.push(finding);
                }
            }
            Look::Skip(to) => at = to.max(next + 1),
            Look::Nothing => at = next + 1,
        }
    }
    let cut = cut_in_two(table, bytes, &found);
    if !cut.is_empty() {
        found.extend(cut);
        found.sort_by_key(|finding| (finding.at.start, finding.at.end));
        merge(&mut found);
    }
    // A value that was cut at its longest may end inside of a character: that goes too.
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

enum Look {
    Found(Finding),
    /// Nothing stands before this position.
    Skip(usize),
    Nothing,
}

fn look(table: &Table, text: &[u8], at: usize) -> Look {
    for entry in table.at(text, at) {
        if matches!(entry.anchor, Anchor::Marker) {
            let end = memchr::memchr(b']', &text[at..text.len().min(at + 60)]);
            return end.map_or(Look::Nothing, |end| Look::Skip(at + end + 1));
        }
        if let Some(finding) = resolve(entry, text, at) {
            return Look::Found(finding);
        }
    }
    if begins_discord(&text[at..])
        && let Some(at) = structures::discord(text, at)
    {
        return Look::Found(Finding {
            kind: "discord-token",
            at,
        });
    }
    Look::Nothing
}

fn resolve(entry: &Entry, text: &[u8], at: usize) -> Option<Finding> {
    let end = at + entry.literal.len();
    let (kind, range) = match entry.anchor {
        Anchor::Key(shape) => (shape.kind, key(shape, text, at, end)?),
        Anchor::Name(kind, class) => (kind, assignments::value(text, at, end, kind, class)?),
        Anchor::Marker => return None,
        Anchor::Private => (PRIVATE, structures::private(text, at)?),
        Anchor::KeyBlock => ("private-key", structures::key_block(text, at)?),
        Anchor::KeyBlockTail => ("private-key", structures::key_block_tail(text, at)?),
        Anchor::WebToken => ("jwt", structures::web_token(text, at)?),
        Anchor::Address => ("url-password", structures::address(text, at)?),
        Anchor::Bearer => ("bearer-token", structures::credentials(text, end)?),
        Anchor::Basic => ("basic-auth", structures::basic(text, end)?),
        Anchor::Cookie => ("cookie", structures::cookie(text, end)?),
        Anchor::Telegram => ("telegram-token", structures::telegram(text, at)?),
        Anchor::AzureClient => ("azure-secret", structures::azure_client(text, at)?),
        Anchor::Terraform => ("terraform-token", structures::terraform(text, at)?),
        Anchor::Mailchimp => ("mailchimp-key", structures::mailchimp(text, at)?),
        Anchor::UserFlag => ("password", structures::user_flag(text, end)?),
        Anchor::GluedFlag => ("password", structures::glued_flag(text, end)?),
        Anchor::Argument => ("password", assignments::argument(text, end)?),
    };
    Some(Finding { kind, at: range })
}

/// The key of this shape that begins at `at` and whose body begins at `body`.
fn key(shape: &Shape, text: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let first = text[at];
    // Some prefixes nobody mistakes, whatever somebody has glued to them.
    let unmistakable = body - at >= 4
        && text[body - 1] == b'_'
        && matches!(shape.body, [Part::Run(Set::Alnum | Set::Word, ..)]);
    if first.is_ascii_alphanumeric() && !unmistakable && !can_begin(text, at) {
        return None;
    }
    // In base64 a slash or a plus is no boundary.
    if body - at <= 4 && at > 0 && matches!(text[at - 1], b'/' | b'+') && is_base64_before(text, at)
    {
        return None;
    }
    let end = end_of(text, body, shape.body)?;
    is_plausible(&text[body..end], body - at).then_some(at..end)
}

/// Whether the text before `at` is a long run of base64.
fn is_base64_before(text: &[u8], at: usize) -> bool {
    let run = text[..at]
        .iter()
        .rev()
        .take(64)
        .take_while(|b| Set::Base64.holds(**b))
        .count();
    run >= 40
}

/// Placeholders and long names begin like keys too.
fn is_plausible(body: &[u8], prefix: usize) -> bool {
    if values::is_filler(body) {
        return false;
    }
    let digits = body.iter().filter(|b| b.is_ascii_digit()).count();
    let capitals = body.iter().any(u8::is_ascii_uppercase);
    let small = body.iter().any(u8::is_ascii_lowercase);
    let worded = body.iter().any(|b| matches!(b, b'-' | b'_' | b'.'));
    // After a prefix that is nearly a word, or in a body that may have words in it.
    if prefix <= 3 || worded {
        let mixed = capitals && small;
        let long = body.len() >= 30 && !worded;
        return digits > 0 || (mixed && (long || super::body::changes(body) >= 8));
    }
    true
}

/// Keys whose prefix has a line break in it.
fn cut_in_two(table: &Table, text: &[u8], found: &[Finding]) -> Vec<Finding> {
    const REACH: usize = 32;
    /// So much of a cut key is put together.
    const LONGEST_CUT: usize = 4096;
    let mut cut = Vec::new();
    let mut from = 0;
    let mut window = Vec::with_capacity(2 * REACH);
    while let Some(n) = memchr::memchr3(b'\n', b'\\', 0xE2, text.get(from..).unwrap_or_default()) {
        let at = from + n;
        let at = at - usize::from(at > from && text[at] == b'\n' && text[at - 1] == b'\r');
        let next = over_breaks(text, at);
        from = next.max(from + n + 1);
        let in_key = |b: u8| {
            b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b'=' | b':')
        };
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
            if window.len() < begin + 3 || !table.may_begin(first_three(&window[begin..])) {
                continue;
            }
            let in_two = |entry: &Entry| {
                let of_a_word = matches!(entry.anchor, Anchor::Name(..) | Anchor::Cookie);
                !of_a_word && begin + entry.literal.len() > tail
            };
            let is_cut = table.at(&window, begin).any(in_two);
            if !is_cut && !begins_discord(&window[begin..]) {
                continue;
            }
            // The text as it would read without this one break.
            let until = text.len().min(next + LONGEST_CUT);
            let joined = [&text[at - tail..at], &text[next..until]].concat();
            if let Look::Found(finding) = look(table, &joined, begin) {
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

/// Makes one of those that overlap.
fn merge(found: &mut Vec<Finding>) {
    found.dedup_by(|next, kept| {
        let overlaps = next.at.start < kept.at.end;
        if overlaps {
            kept.at.end = kept.at.end.max(next.at.end);
        }
        overlaps
    });
}
