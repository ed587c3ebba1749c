//! The anchors of secrets: a few characters that a secret cannot be without, as the prefix of a key, the
//! word in a name, `://`.
//!
//! The first three bytes of every anchor are kept in a table of bits, so that a byte of ordinary text
//! costs one lookup and nothing else. The table is built in microseconds, which no regular expression
//! is, and once a process.

use std::sync::LazyLock;

use super::shapes::{SHAPES, Shape};
use super::values::{Class, NAMES};

/// What stands at an anchor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
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

/// An anchor: what stands in a text, and what that is.
pub(super) struct Entry {
    pub(super) literal: &'static [u8],
    /// Whether capitals do not matter.
    folds: bool,
    pub(super) anchor: Anchor,
    /// The next entry of the same bucket.
    next: u16,
}

/// All anchors, to be looked up by what they begin with.
pub(super) struct Table {
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

pub(super) fn first_three(bytes: &[u8]) -> u32 {
    u32::from(bytes[0]) | u32::from(bytes[1]) << 8 | u32::from(bytes[2]) << 16
}

/// How the ids that a bot's token begins with can begin, in base64: three digits.
const DISCORD: [&[u8]; 3] = [b"MNO", b"DTjz", b"AEIMQUYcgk"];

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| {
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

    pub(super) fn may_begin(&self, three: u32) -> bool {
        is_set(&self.bits, hash(three))
    }

    /// The same, with a closer look at the fourth byte.
    fn may_begin_with(&self, three: u32, fourth: Option<&u8>) -> bool {
        is_set(&self.shorter, hash(three))
            || fourth.is_none_or(|fourth| is_set(&self.longer, hash_of_four(three, *fourth)))
    }

    /// The anchors that stand at `at`, in the order in which they are to be tried.
    pub(super) fn at<'a>(&'a self, text: &'a [u8], at: usize) -> impl Iterator<Item = &'a Entry> {
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

/// The next place where the first three bytes of an anchor may stand.
pub(super) fn next_candidate(table: &Table, text: &[u8], from: usize) -> Option<usize> {
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

/// Whether a bot's token may begin here. It has no prefix, so it is no entry of the table.
pub(super) fn begins_discord(text: &[u8]) -> bool {
    DISCORD
        .iter()
        .zip(text)
        .all(|(set, byte)| set.contains(byte))
        && text.len() > 3
}
