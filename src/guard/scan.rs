//! One pass over a text that finds every secret in it.
//!
//! Each secret has an anchor, a few characters that it cannot be without: the prefix of a key, the
//! word in a name, `://`. The first three bytes of every anchor are kept in a table of bits, so that
//! a byte of ordinary text costs one lookup and nothing else; building the table takes
//! microseconds, which no regular expression does. What an anchor is the anchor of, is decided
//! where it stands.
//!
//! A second pass looks at line ends only: at a prefix that a line break has cut in two.

use std::ops::Range;
use std::sync::LazyLock;

use super::assignments;
use super::body::{can_begin, end_of, over_breaks};
use super::shapes::{Part, SHAPES, Set, Shape};
use super::structures;
use super::values::{self, Class, NAMES};

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

/// What stands at an anchor.
#[derive(Debug, Clone, Copy)]
enum Anchor {
    /// The prefix of a key.
    Key(&'static Shape),
    /// The word in a name.
    Name(&'static str, Class),
    /// A marker that stands for something that was found before.
    Marker,
    Private,
    KeyBlock,
    KeyBlockTail,
    WebToken,
    Address,
    Bearer,
    Basic,
    Cookie,
    Telegram,
    AzureClient,
    Terraform,
    Mailchimp,
    UserFlag,
    GluedFlag,
    Argument,
}

struct Entry {
    literal: &'static [u8],
    /// Whether capitals do not matter.
    folds: bool,
    anchor: Anchor,
    /// The next entry of the same bucket.
    next: u16,
}

struct Table {
    /// What anchors begin with, by three bytes.
    bits: Box<[u64; 1024]>,
    /// What anchors of four bytes and more begin with, by four; looked at where the first says yes.
    longer: Box<[u64; 1024]>,
    /// Of the first, those of anchors that have no fourth byte.
    shorter: Box<[u64; 1024]>,
    buckets: Box<[u16; 1024]>,
    entries: Vec<Entry>,
}

const NONE: u16 = u16::MAX;

/// Three bytes, capitals as small letters, as one number of 16 bits.
fn hash(three: u32) -> u32 {
    (three | 0x0020_2020).wrapping_mul(0x9E37_79B1) >> 16
}

fn hash_of_four(three: u32, fourth: u8) -> u32 {
    let four = three | u32::from(fourth) << 24 | 0x2020_2020;
    four.wrapping_mul(0x85EB_CA6B) >> 16
}

fn set(bits: &mut [u64; 1024], hash: u32) {
    bits[(hash >> 6 & 1023) as usize] |= 1 << (hash & 63);
}

fn is_set(bits: &[u64; 1024], hash: u32) -> bool {
    bits[(hash >> 6 & 1023) as usize] >> (hash & 63) & 1 == 1
}

fn first_three(bytes: &[u8]) -> u32 {
    u32::from(bytes[0]) | u32::from(bytes[1]) << 8 | u32::from(bytes[2]) << 16
}

/// How the ids that a bot's token begins with can begin, in base64: three digits.
const DISCORD: [&[u8]; 3] = [b"MNO", b"DTjz", b"AEIMQUYcgk"];

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        bits: Box::new([0; 1024]),
        longer: Box::new([0; 1024]),
        shorter: Box::new([0; 1024]),
        buckets: Box::new([NONE; 1024]),
        entries: Vec::with_capacity(512),
    };
    // What is added later is looked at first.
    for a in DISCORD[0] {
        for b in DISCORD[1] {
            for c in DISCORD[2] {
                table.add_bits(first_three(&[*a, *b, *c]));
            }
        }
    }
    for (word, kind, class) in NAMES.iter().rev() {
        table.add(word.as_bytes(), true, Anchor::Name(kind, *class));
    }
    for shape in SHAPES.iter().rev() {
        for prefix in shape.prefixes.iter().rev() {
            table.add(prefix.as_bytes(), false, Anchor::Key(shape));
        }
    }
    for (literal, folds, anchor) in [
        (&b"bearer"[..], true, Anchor::Bearer),
        (b"basic", true, Anchor::Basic),
        (b"cookie", true, Anchor::Cookie),
        (b"://", false, Anchor::Address),
        (b":AA", false, Anchor::Telegram),
        (b"Q~", false, Anchor::AzureClient),
        (b".atlasv1.", false, Anchor::Terraform),
        (b"-us", false, Anchor::Mailchimp),
        (b" -u ", false, Anchor::UserFlag),
        (b"--user ", false, Anchor::UserFlag),
        (b" -p", false, Anchor::GluedFlag),
        (b"sshpass -p", false, Anchor::Argument),
        (b"eyJ", false, Anchor::WebToken),
        (b"-----BEGIN", false, Anchor::KeyBlock),
        (b"---- BEGIN", false, Anchor::KeyBlock),
        (b"-----END", false, Anchor::KeyBlockTail),
        (b"<private", true, Anchor::Private),
        (b"[REDACTED:", false, Anchor::Marker),
    ] {
        table.add(literal, folds, anchor);
    }
    table
});

impl Table {
    fn add(&mut self, literal: &'static [u8], folds: bool, anchor: Anchor) {
        match *literal {
            // An anchor of two bytes is told by both of them and any third.
            [a, b] => (0x20..0x7F).for_each(|c| self.add_bits(first_three(&[a, b, c]))),
            [a, b, c] => self.add_bits(first_three(&[a, b, c])),
            [_, _, _, fourth, ..] => {
                let three = first_three(literal);
                set(&mut self.bits, hash(three));
                set(&mut self.longer, hash_of_four(three, fourth));
            }
            _ => {}
        }
        let bucket = Self::bucket(literal);
        let index = u16::try_from(self.entries.len()).unwrap_or(NONE);
        let next = std::mem::replace(&mut self.buckets[bucket], index);
        self.entries.push(Entry {
            literal,
            folds,
            anchor,
            next,
        });
    }

    /// An anchor that has no fourth byte.
    fn add_bits(&mut self, three: u32) {
        set(&mut self.bits, hash(three));
        set(&mut self.shorter, hash(three));
    }

    /// Buckets go by the first two bytes, so that anchors of two bytes have one.
    fn bucket(bytes: &[u8]) -> usize {
        let two = u32::from(bytes[0] | 0x20) | u32::from(bytes[1] | 0x20) << 8;
        (two.wrapping_mul(0x9E37_79B1) >> 22) as usize
    }

    fn may_begin(&self, three: u32) -> bool {
        is_set(&self.bits, hash(three))
    }

    /// The same, with a closer look at the fourth byte.
    fn may_begin_with(&self, three: u32, fourth: Option<&u8>) -> bool {
        is_set(&self.shorter, hash(three))
            || fourth.is_none_or(|fourth| is_set(&self.longer, hash_of_four(three, *fourth)))
    }

    /// The anchors that stand at `at`, in the order in which they are to be tried.
    fn at<'a>(&'a self, text: &'a [u8], at: usize) -> impl Iterator<Item = &'a Entry> {
        let mut index = self.buckets[Self::bucket(&text[at..])];
        let rest = &text[at..];
        std::iter::from_fn(move || {
            loop {
                let entry = self.entries.get(usize::from(index))?;
                index = entry.next;
                let head = rest.get(..entry.literal.len());
                let stands = head.is_some_and(|head| {
                    if entry.folds {
                        head.eq_ignore_ascii_case(entry.literal)
                    } else {
                        head == entry.literal
                    }
                });
                if stands {
                    return Some(entry);
                }
            }
        })
    }
}

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

/// The next place where the first three bytes of an anchor may stand.
fn next_candidate(table: &Table, text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    if rest.len() < 3 {
        return None;
    }
    let mut three = u32::from(rest[0]) << 8 | u32::from(rest[1]) << 16;
    for (i, byte) in rest[2..].iter().enumerate() {
        three = three >> 8 | u32::from(*byte) << 16;
        if table.may_begin(three) && table.may_begin_with(three, rest.get(i + 3)) {
            return Some(from + i);
        }
    }
    None
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

fn begins_discord(text: &[u8]) -> bool {
    DISCORD
        .iter()
        .zip(text)
        .all(|(set, byte)| set.contains(byte))
        && text.len() > 3
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
