//! Building segments from texts or from other segments.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::attributes::Attributes;
use super::lexical::text::each_word;
use super::segment::{
    ANALYSIS, COLUMNS, ColumnSums, Damaged, HEADER, MAGIC, Posting, Segment, TERM, check,
};
use super::vector::windows::window_of;

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
        self.add_words(attributes, text, |_| true);
    }

    /// Adds a document that is found by the words that `is_wanted` accepts. All words count for its length, so
    /// its score for them is the same as with all words.
    pub(super) fn add_words(
        &mut self,
        attributes: &Attributes,
        text: &str,
        is_wanted: impl Fn(&str) -> bool,
    ) {
        self.bytes += text.len();
        let mut words: Vec<(String, u32)> = Vec::new();
        let mut length: u32 = 0;
        each_word(text, |word| {
            if is_wanted(word) {
                words.push((word.to_owned(), length));
            }
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
        self.columns.key.len()
    }

    /// Returns true if the next document should go into a new segment. Segments work best with some
    /// ten thousand documents, and their 32-bit offsets limit them to 4 GB.
    pub fn is_full(&self) -> bool {
        self.len() >= MOST_DOCUMENTS || self.bytes >= MOST_BYTES
    }

    /// Returns true if no document was added.
    pub fn is_empty(&self) -> bool {
        self.columns.key.is_empty()
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

/// Merges segments: the kept documents of each, in order. `kept` has one value per document of its
/// segment.
///
/// # Errors
///
/// Returns [`Damaged`] if a segment is damaged.
pub fn merge(parts: &[(Segment<'_>, &[bool])]) -> Result<Vec<u8>, Damaged> {
    let mut columns = Columns::default();
    let mut places = Vec::with_capacity(parts.len());
    for (segment, kept) in parts {
        let place = |(document, kept): (usize, &bool)| {
            if *kept {
                columns.push(&segment.attributes(document), segment.length(document))
            } else {
                GONE
            }
        };
        places.push(kept.iter().enumerate().map(place).collect::<Vec<u32>>());
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

#[derive(Debug, Default)]
struct Columns {
    key: Vec<u64>,
    created: Vec<i64>,
    expires: Vec<i64>,
    skill: Vec<u32>,
    domain: Vec<u32>,
    user: Vec<u32>,
    length: Vec<u32>,
    kind: Vec<u8>,
    trust: Vec<u8>,
    note: Vec<u8>,
}

impl Columns {
    /// Appends a document and returns its number.
    fn push(&mut self, attributes: &Attributes, length: u32) -> u32 {
        let number = narrow(self.key.len());
        self.key.push(attributes.key);
        self.created.push(attributes.created);
        self.expires.push(attributes.expires);
        self.skill.push(attributes.skill);
        self.domain.push(attributes.domain);
        self.user.push(attributes.user);
        self.length.push(length);
        self.kind.push(attributes.kind);
        self.trust.push(attributes.trust);
        self.note.push(attributes.note);
        number
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.key.len() * COLUMNS);
        out.extend(self.key.iter().flat_map(|x| x.to_le_bytes()));
        out.extend(self.created.iter().flat_map(|x| x.to_le_bytes()));
        out.extend(self.expires.iter().flat_map(|x| x.to_le_bytes()));
        out.extend(self.skill.iter().flat_map(|x| x.to_le_bytes()));
        out.extend(self.domain.iter().flat_map(|x| x.to_le_bytes()));
        out.extend(self.user.iter().flat_map(|x| x.to_le_bytes()));
        out.extend(self.length.iter().flat_map(|x| x.to_le_bytes()));
        out.extend(&self.kind);
        out.extend(&self.trust);
        out.extend(&self.note);
        out
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
        let words: u64 = columns.length.iter().map(|n| u64::from(*n)).sum();
        let documents = columns.key.len();
        let soonest = columns.expires.iter().copied().min().unwrap_or(i64::MAX);
        let columns = columns.bytes();
        let sums = ColumnSums::of(&columns, documents);
        let names_at = HEADER + columns.len() + self.terms.len();
        let postings_at = names_at + self.names.len();
        let end = postings_at + self.postings.len();
        let mut out = Vec::with_capacity(end);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&ANALYSIS.to_le_bytes());
        out.extend_from_slice(&narrow(documents).to_le_bytes());
        out.extend_from_slice(&narrow(self.terms.len() / TERM).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&words.to_le_bytes());
        for at in [names_at, postings_at, end] {
            out.extend_from_slice(&(at as u64).to_le_bytes());
        }
        out.resize(72, 0);
        out.extend_from_slice(&sums.ranking.to_le_bytes());
        out.extend_from_slice(&sums.others.to_le_bytes());
        out.extend_from_slice(&soonest.to_le_bytes());
        let sum = xxh3_64(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        for section in [&columns, &self.terms, &self.names, &self.postings] {
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
