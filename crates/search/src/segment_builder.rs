//! Building segments from texts or from other segments.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::segment::{
    ANALYSIS, Attributes, Damaged, HEADER, MAGIC, NUMBERS, Posting, ROW, Segment, TERM, check,
};
use super::text::each_word;
use super::vectors::window_of;

/// Number of documents in a full segment.
const MOST_DOCUMENTS: usize = 1 << 15;
/// Bytes of text in a full segment.
const MOST_BYTES: usize = 1 << 28;
/// Marks a document that a merge leaves out.
const GONE: u32 = u32::MAX;

/// Segment under construction.
#[derive(Debug, Default)]
pub struct Builder {
    columns: Columns,
    terms: HashMap<Box<str>, List>,
    bytes: usize,
}

impl Builder {
    /// Adds a document.
    pub fn add(&mut self, attributes: &Attributes, text: &str) {
        self.bytes += text.len();
        let mut words: Vec<(String, u32)> = Vec::new();
        let mut length: u32 = 0;
        each_word(text, |word| {
            words.push((word.to_owned(), length));
            length = length.saturating_add(1);
        });
        let document = self.columns.push(attributes, length);
        let window = |place| window_of(place, length).map_or(0, |window| 1u64 << window);
        words.sort_unstable();
        for same in words.chunk_by(|a, b| a.0 == b.0) {
            let posting = Posting {
                document,
                count: narrow(same.len()),
                windows: same
                    .iter()
                    .fold(0, |bits, (_, place)| bits | window(*place)),
            };
            let word = same[0].0.as_str();
            if let Some(list) = self.terms.get_mut(word) {
                list.push(posting);
            } else {
                self.terms.entry(word.into()).or_default().push(posting);
            }
        }
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.columns.kinds.len()
    }

    /// Returns true if the next document should go into a new segment. Segments work best with some
    /// ten thousand documents, and their 32-bit offsets limit them to 4 GB.
    pub fn is_full(&self) -> bool {
        self.len() >= MOST_DOCUMENTS || self.bytes >= MOST_BYTES
    }

    /// Returns true if no document was added.
    pub fn is_empty(&self) -> bool {
        self.columns.kinds.is_empty()
    }

    /// Serializes the segment.
    pub fn segment(&self) -> Vec<u8> {
        let mut terms: Vec<(&Box<str>, &List)> = self.terms.iter().collect();
        terms.sort_unstable_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        let mut writer = Writer::default();
        for (name, list) in terms {
            writer.term(name.as_bytes(), list);
        }
        writer.finish(&self.columns)
    }
}

/// Merges segments: the kept documents of each, in order. `retained` has one value per document of its
/// segment.
///
/// # Errors
///
/// Returns [`Damaged`] if a segment is damaged.
pub fn merge(parts: &[(Segment<'_>, &[bool])]) -> Result<Vec<u8>, Damaged> {
    let mut columns = Columns::default();
    let mut places = Vec::with_capacity(parts.len());
    for (segment, retained) in parts {
        let place = |(document, retained): (usize, &bool)| {
            if *retained {
                columns.push(&segment.attributes(document), segment.length(document))
            } else {
                GONE
            }
        };
        places.push(retained.iter().enumerate().map(place).collect::<Vec<u32>>());
    }
    let mut writer = Writer::default();
    let mut next = vec![0; parts.len()];
    loop {
        let name = |i: usize| (next[i] < parts[i].0.terms()).then(|| parts[i].0.name(next[i]));
        let Some(least) = (0..parts.len()).filter_map(name).min() else {
            return Ok(writer.finish(&columns));
        };
        let mut list = List::default();
        for (i, (segment, _)) in parts.iter().enumerate() {
            if next[i] >= segment.terms() || segment.name(next[i]) != least {
                continue;
            }
            for posting in segment.postings(next[i])? {
                let document = places[i].get(posting.document as usize);
                match document.copied().ok_or(Damaged)? {
                    GONE => {}
                    document => list.push(Posting {
                        document,
                        ..posting
                    }),
                }
            }
            next[i] += 1;
        }
        if list.documents > 0 {
            writer.term(least, &list);
        }
    }
}

/// Columns and rows of a segment.
#[derive(Debug, Default)]
struct Columns {
    lengths: Vec<u32>,
    kinds: Vec<u8>,
    rows: Vec<[u8; ROW]>,
    /// Earliest expiry time.
    soonest: Option<i64>,
}

impl Columns {
    /// Appends a document and returns its number.
    fn push(&mut self, attributes: &Attributes, length: u32) -> u32 {
        let number = narrow(self.kinds.len());
        self.lengths.push(length);
        self.kinds.push(attributes.kind);
        let mut row = [0; ROW];
        row[..8].copy_from_slice(&attributes.key.to_le_bytes());
        row[8..16].copy_from_slice(&attributes.created.to_le_bytes());
        row[16..24].copy_from_slice(&attributes.expires.to_le_bytes());
        row[24..28].copy_from_slice(&attributes.skill.to_le_bytes());
        row[28..32].copy_from_slice(&attributes.domain.to_le_bytes());
        row[32..36].copy_from_slice(&attributes.user.to_le_bytes());
        row[36..].copy_from_slice(&[attributes.trust, attributes.note]);
        self.rows.push(row);
        let soonest = self.soonest.unwrap_or(i64::MAX);
        self.soonest = Some(soonest.min(attributes.expires));
        number
    }
}

/// Postings list of one term.
#[derive(Debug, Default)]
pub(super) struct List {
    bytes: Vec<u8>,
    documents: u32,
    next: u32,
}

impl List {
    pub(super) fn push(&mut self, posting: Posting) {
        let long = u64::from(posting.windows != 0);
        let more = u64::from(posting.count != 1) | long;
        // Documents arrive in order, and a segment has fewer than 2^31.
        let gap = u64::from(posting.document - self.next);
        push_varint(&mut self.bytes, gap << 1 | more);
        if more == 1 {
            push_varint(&mut self.bytes, u64::from(posting.count) << 1 | long);
        }
        match (long, posting.count) {
            (0, _) => {}
            (_, 1) => push_varint(&mut self.bytes, posting.windows.trailing_zeros().into()),
            _ => push_varint(&mut self.bytes, posting.windows),
        }
        self.next = posting.document + 1;
        self.documents += 1;
    }
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Growing sections of a segment.
#[derive(Debug, Default)]
struct Writer {
    terms: Vec<u8>,
    names: Vec<u8>,
    postings: Vec<u8>,
}

impl Writer {
    /// Adds a term. Terms must arrive in name order.
    fn term(&mut self, name: &[u8], list: &List) {
        self.names.extend_from_slice(name);
        self.postings.extend_from_slice(&list.bytes);
        for number in [
            narrow(self.names.len()),
            narrow(self.postings.len()),
            list.documents,
            check(name, &list.bytes, list.documents),
        ] {
            self.terms.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn finish(self, columns: &Columns) -> Vec<u8> {
        let words: u64 = columns.lengths.iter().map(|n| u64::from(*n)).sum();
        let lengths = columns.lengths.iter().flat_map(|n| n.to_le_bytes());
        let ranking: Vec<u8> = lengths.chain(columns.kinds.iter().copied()).collect();
        let rows = columns.rows.as_flattened();
        let numbers: [u64; NUMBERS] = [
            u64::from(ANALYSIS),
            columns.kinds.len() as u64,
            (self.terms.len() / TERM) as u64,
            words,
            self.names.len() as u64,
            self.postings.len() as u64,
            xxh3_64(&ranking),
            xxh3_64(rows),
            columns.soonest.unwrap_or(i64::MAX).cast_unsigned(),
        ];
        let sections = [&ranking[..], rows, &self.terms, &self.names, &self.postings];
        let size: usize = sections.iter().map(|section| section.len()).sum();
        let mut out = Vec::with_capacity(HEADER + size);
        out.extend_from_slice(MAGIC);
        out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let sum = xxh3_64(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        for section in sections {
            out.extend_from_slice(section);
        }
        out
    }
}

/// Count in segment format. Segments stay far below the limit.
pub(super) fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(crate) mod tests;
