//! Building segments from texts or from other segments.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::attributes::Attributes;
use super::lexical::text::words;
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
        self.bytes += text.len();
        let words = words(text);
        let length = narrow(words.len());
        let document = self.columns.push(attributes, length);
        let window = |place| window_of(place, length).map_or(0, |window| 1u64 << window);
        let mut words: Vec<(String, u64)> = words
            .into_iter()
            .zip(0..)
            .map(|(word, place)| (word, window(place)))
            .collect();
        words.sort_unstable();
        for same in words.chunk_by(|a, b| a.0 == b.0) {
            let posting = Posting {
                document,
                count: narrow(same.len()),
                windows: same.iter().fold(0, |bits, (_, window)| bits | window),
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
    text: Vec<u64>,
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
        self.text.push(attributes.text);
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
        out.extend(self.text.iter().flat_map(|x| x.to_le_bytes()));
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
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

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

/// The same segment in the layout without windows.
#[cfg(test)]
pub(crate) fn plain(bytes: &[u8]) -> Vec<u8> {
    use super::segment::PLAIN;

    let segment = Segment::open(bytes).unwrap();
    let mut writer = Writer::default();
    for term in 0..segment.terms() {
        let (mut list, mut next) = (List::default(), 0);
        for posting in segment.postings(term).unwrap() {
            let more = u64::from(posting.count != 1);
            push_varint(
                &mut list.bytes,
                u64::from(posting.document - next) << 1 | more,
            );
            if more == 1 {
                push_varint(&mut list.bytes, posting.count.into());
            }
            next = posting.document + 1;
            list.documents += 1;
        }
        writer.term(segment.name(term), &list);
    }
    let mut columns = Columns::default();
    for document in 0..segment.len() {
        columns.push(&segment.attributes(document), segment.length(document));
    }
    let mut out = writer.finish(&columns);
    out[..8].copy_from_slice(PLAIN);
    let sum = xxh3_64(&out[..96]);
    out[96..104].copy_from_slice(&sum.to_le_bytes());
    out
}

/// Count in segment format. Segments stay far below the limit.
pub(super) fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::filter::Filter;
    use super::super::segment_builder::*;
    use proptest::prelude::*;

    fn attributes(key: u64) -> Attributes {
        Attributes {
            key,
            text: key * 3,
            created: -5,
            expires: i64::MAX,
            skill: 7,
            domain: 8,
            user: 9,
            kind: 2,
            trust: 1,
            note: 0,
        }
    }

    fn build(texts: &[String], first: u64) -> Vec<u8> {
        let mut builder = Builder::default();
        for (key, text) in (first..).zip(texts) {
            builder.add(&attributes(key), text);
        }
        builder.segment()
    }

    /// All postings, as text.
    fn dump(bytes: &[u8]) -> Vec<String> {
        let segment = Segment::open(bytes).unwrap();
        let of_term = |term| {
            let name = String::from_utf8_lossy(segment.name(term)).into_owned();
            let postings = segment.postings(term).unwrap();
            postings.map(move |p| format!("{name} {} {}", p.document, p.count))
        };
        (0..segment.terms()).flat_map(of_term).collect()
    }

    #[test]
    fn a_segment_gives_back_what_was_put_in() {
        let texts = ["disk full disk", "", "memory full"].map(str::to_owned);
        let bytes = build(&texts, 10);
        assert_eq!(
            dump(&bytes),
            ["disk 0 2", "full 0 1", "full 2 1", "memori 2 1"]
        );
        let segment = Segment::open(&bytes).unwrap();
        assert_eq!((segment.len(), segment.words()), (3, 5));
        assert_eq!(segment.attributes(2), attributes(12));
        assert_eq!([0, 1, 2].map(|i| segment.length(i)), [3, 0, 2]);
        assert!(segment.find("disk").unwrap().is_some());
        assert!(segment.find("disc").unwrap().is_none());
        assert!(Segment::open(&Builder::default().segment()).is_some());
    }

    /// A long text with one word in its middle, and one at both ends.
    fn long() -> String {
        let filling = |range: std::ops::Range<usize>| {
            let words: Vec<String> = range.map(|n| format!("filling{n}")).collect();
            words.join(" ")
        };
        format!("edge {} middle {} edge", filling(0..100), filling(100..200))
    }

    #[test]
    fn a_long_document_says_which_windows_hold_a_word() {
        let bytes = build(&["edge".to_owned(), long()], 0);
        let segment = Segment::open(&bytes).unwrap();
        assert!(segment.has_windows());
        assert_eq!(
            [0, 1].map(|document| segment.is_long(document)),
            [false, true]
        );
        let postings = |word| -> Vec<Posting> { segment.find(word).unwrap().unwrap().collect() };
        let windows = postings("edg")
            .iter()
            .map(|p| p.windows)
            .collect::<Vec<_>>();
        let last = windows[1].ilog2();
        assert_eq!(windows, [0, 1 | 1 << last]);
        assert_eq!(segment.length(1).div_ceil(32) - 1, last);
        let middle = postings("middl")[0];
        assert_eq!((middle.document, middle.count), (1, 1));
        assert_eq!(middle.windows, 1 << (last / 2));

        let merged = merge(&[(segment, &[false, true])]).unwrap();
        let merged = Segment::open(&merged).unwrap();
        let moved = merged.find("edg").unwrap().unwrap().next().unwrap();
        assert_eq!((moved.document, moved.windows), (0, windows[1]));
    }

    #[test]
    fn segments_from_before_windows_are_read() {
        let bytes = build(&["disk full disk".to_owned(), long()], 10);
        let old = plain(&bytes);
        assert_eq!(dump(&old), dump(&bytes));
        let segment = Segment::open(&old).unwrap();
        assert!(!segment.has_windows());
        assert!(
            segment
                .postings(0)
                .unwrap()
                .all(|posting| posting.windows == 0)
        );
        let merged = merge(&[(segment, &[true, false])]).unwrap();
        assert_eq!(merged, build(&["disk full disk".to_owned()], 10));
    }

    #[test]
    fn the_first_to_expire_is_known_without_asking_each() {
        let mut builder = Builder::default();
        for expires in [i64::MAX, 50, 90] {
            builder.add(
                &Attributes {
                    expires,
                    ..attributes(1)
                },
                "text",
            );
        }
        let bytes = builder.segment();
        let segment = Segment::open(&bytes).unwrap();
        let at = |now| Filter {
            now,
            ..Filter::default()
        };
        assert_eq!(
            [49, 50].map(|now| segment.admits_all(&at(now))),
            [true, false]
        );
    }

    #[test]
    fn damage_is_noticed_before_it_answers() {
        let bytes = build(&["disk full disk".to_owned(), "memory".to_owned()], 0);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let Some(segment) = Segment::open(&damaged) else {
                continue;
            };
            for word in ["disk", "full", "memori"] {
                assert!(!matches!(segment.find(word), Ok(None)), "{word} {at}");
            }
            assert!(!matches!(segment.find("disc"), Ok(Some(_))), "{at}");
            let broken = (0..segment.terms()).any(|term| segment.postings(term).is_err());
            assert!(broken || segment.verify().is_err(), "{at}");
            // Lengths and kinds of the two documents: all that a ranking without a filter reads.
            let ranks = (HEADER + 2 * 44..HEADER + 2 * 49).contains(&at);
            assert_eq!(segment.verify_for_ranking().is_err(), ranks, "{at}");
        }
        for at in 0..bytes.len() {
            assert!(Segment::open(&bytes[..at]).is_none(), "{at}");
        }
    }

    fn texts() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec("([abc]{1,2} ){0,6}", 0..12)
    }

    proptest! {
        #[test]
        fn merged_segments_are_as_if_made_at_once(a in texts(), b in texts(), mask in any::<u32>()) {
            let kept: Vec<bool> = (0..a.len() + b.len()).map(|i| mask >> i & 1 == 1).collect();
            let (first, second) = (build(&a, 0), build(&b, a.len() as u64));
            let merged = merge(&[
                (Segment::open(&first).unwrap(), &kept[..a.len()]),
                (Segment::open(&second).unwrap(), &kept[a.len()..]),
            ]).unwrap();
            let mut at_once = Builder::default();
            for ((key, text), kept) in (0..).zip(a.iter().chain(&b)).zip(&kept) {
                if *kept {
                    at_once.add(&attributes(key), text);
                }
            }
            prop_assert_eq!(merged, at_once.segment());
        }

        #[test]
        fn no_bytes_bring_a_segment_to_a_stop(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..400, byte in any::<u8>()) {
            let mut whole = build(&["a b".to_owned(), "b c".to_owned()], 0);
            let at = at % whole.len();
            whole[at] = byte;
            for bytes in [&bytes, &whole] {
                if let Some(segment) = Segment::open(bytes) {
                    drop(merge(&[(segment, &vec![true; segment.len()])]));
                    let _count = segment.find("b").map(|found| found.map(Iterator::count));
                }
            }
        }
    }
}
