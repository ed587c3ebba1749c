//! Anchors of secrets: a few characters that every such secret contains, such as the prefix of a
//! key, the word in a name, or `://`.
//!
//! A bit table holds the first three bytes of every anchor, so ordinary text costs one lookup per
//! byte. Building the table takes microseconds, far less than compiling a regular expression, and
//! happens once per process.

use std::sync::LazyLock;

use super::patterns::{Detector, Pattern, patterns};

/// Anchor literal and its pattern.
pub(super) struct Entry {
    pub(super) literal: &'static [u8],
    /// Matches regardless of ASCII case.
    folds: bool,
    pub(super) pattern: &'static Pattern,
    /// Next entry in the same bucket.
    next: u16,
}

/// Index of all anchors by their first bytes.
pub(super) struct Table {
    /// Hashes of the first three bytes of every anchor.
    bits: Box<[u64; 1024]>,
    /// Hashes of the first four bytes of longer anchors, checked after `bits`.
    longer: Box<[u64; 1024]>,
    /// Subset of `bits` for anchors without a fourth byte.
    shorter: Box<[u64; 1024]>,
    longer_buckets: Box<[u16; 4096]>,
    shorter_buckets: Box<[u16; 1024]>,
    entries: Vec<Entry>,
}

const NONE: u16 = u16::MAX;

/// Hashes three bytes to 16 bits, ignoring ASCII case.
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

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        bits: Box::new([0; 1024]),
        longer: Box::new([0; 1024]),
        shorter: Box::new([0; 1024]),
        longer_buckets: Box::new([NONE; 4096]),
        shorter_buckets: Box::new([NONE; 1024]),
        entries: Vec::with_capacity(1024),
    };
    // `at` returns later additions first.
    for pattern in patterns().rev() {
        for anchor in pattern.anchors.iter().rev() {
            table.add(anchor.as_bytes(), pattern);
        }
    }
    table
});

impl Table {
    fn add(&mut self, literal: &'static [u8], pattern: &'static Pattern) {
        match *literal {
            // Bot tokens share two known bytes, then one of a few: base64 of digits.
            [a, b] if matches!(pattern.how, Detector::Discord) => {
                for third in *b"AEIMQUYcgk" {
                    let three = first_three(&[a, b, third]);
                    set(&mut self.bits, hash(three));
                    for fourth in *b"wxyz012345" {
                        set(&mut self.longer, hash_of_four(three, fourth));
                    }
                }
            }
            // A two-byte anchor matches with any third byte that can follow it.
            [a, b] => (0x21..0x7F)
                .filter(|c| third_fits(pattern.how, *c))
                .for_each(|c| self.add_bits(first_three(&[a, b, c]))),
            [a, b, c] => self.add_bits(first_three(&[a, b, c])),
            [_, _, _, fourth, ..] => {
                let three = first_three(literal);
                set(&mut self.bits, hash(three));
                set(&mut self.longer, hash_of_four(three, fourth));
            }
            _ => {}
        }
        let bucket = if literal.len() > 3 {
            &mut self.longer_buckets[Self::bucket_of_four(literal)]
        } else {
            &mut self.shorter_buckets[Self::bucket_of_two(literal)]
        };
        let index = u16::try_from(self.entries.len()).unwrap_or(NONE);
        let next = std::mem::replace(bucket, index);
        self.entries.push(Entry {
            literal,
            folds: pattern.how.folds(),
            pattern,
            next,
        });
    }

    /// Adds an anchor without a fourth byte.
    fn add_bits(&mut self, three: u32) {
        set(&mut self.bits, hash(three));
        set(&mut self.shorter, hash(three));
    }

    /// Bucket for anchors of four bytes and more.
    fn bucket_of_four(bytes: &[u8]) -> usize {
        (hash_of_four(first_three(bytes), bytes[3]) & 4095) as usize
    }

    /// Bucket for shorter anchors, by two bytes, so that a two-byte anchor has one bucket.
    fn bucket_of_two(bytes: &[u8]) -> usize {
        let two = u32::from(bytes[0] | 0x20) | u32::from(bytes[1] | 0x20) << 8;
        (two.wrapping_mul(0x9E37_79B1) >> 22) as usize
    }

    fn may_begin(&self, three: u32) -> bool {
        is_set(&self.bits, hash(three))
    }

    /// Returns true if an anchor may begin with these bytes.
    pub(super) fn may_begin_with(&self, three: u32, fourth: Option<&u8>) -> bool {
        self.may_begin(three)
            && (is_set(&self.shorter, hash(three))
                || fourth.is_none_or(|fourth| is_set(&self.longer, hash_of_four(three, *fourth))))
    }

    /// Anchors that match at `at`, the last added first.
    pub(super) fn at<'a>(&'a self, text: &'a [u8], at: usize) -> impl Iterator<Item = &'a Entry> {
        let rest = &text[at..];
        let mut long = match rest {
            [_, _, _, _, ..] => self.longer_buckets[Self::bucket_of_four(rest)],
            _ => NONE,
        };
        let mut short = match rest {
            [_, _, ..] => self.shorter_buckets[Self::bucket_of_two(rest)],
            _ => NONE,
        };
        std::iter::from_fn(move || {
            loop {
                let from_long = long != NONE && (short == NONE || long > short);
                let index = if from_long { long } else { short };
                let entry = self.entries.get(usize::from(index))?;
                *(if from_long { &mut long } else { &mut short }) = entry.next;
                if entry.stands(rest) {
                    return Some(entry);
                }
            }
        })
    }
}

impl Entry {
    fn stands(&self, rest: &[u8]) -> bool {
        rest.get(..self.literal.len()).is_some_and(|head| {
            if self.folds {
                head.eq_ignore_ascii_case(self.literal)
            } else {
                head == self.literal
            }
        })
    }
}

/// Next position where an anchor may begin.
pub(super) fn next_candidate(table: &Table, text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    if rest.len() < 3 {
        return None;
    }
    let mut three = u32::from(rest[0]) << 8 | u32::from(rest[1]) << 16;
    for (i, byte) in rest[2..].iter().enumerate() {
        three = three >> 8 | u32::from(*byte) << 16;
        if table.may_begin_with(three, rest.get(i + 3)) {
            return Some(from + i);
        }
    }
    None
}

/// Returns true if this byte can follow a two-byte anchor. Fewer bytes mean fewer candidates.
const fn third_fits(how: Detector, byte: u8) -> bool {
    match how {
        Detector::VaultLegacy | Detector::Telegram | Detector::Key(_) => {
            byte.is_ascii_alphanumeric()
        }
        _ => true,
    }
}
