//! Segment of an open index; the manifest, which lists the files of all segments and the state of the records
//! that they cover; and the attributes of a document, with the filter for a search.
//!
//! The filter applies before counting and ranking. Excluded documents do not affect term rarity, so scores
//! reveal nothing about them.

use std::sync::OnceLock;

use memctl_search::embedder::Embedding;
use memctl_search::{
    ANALYSIS, Admission, Attributes, Damaged, KINDS, Segment, SlotLayout, Slots, UserFilter,
    name_hash, seconds, slot_width,
};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::{Document, Expiry, Kind, MemoryType, Scope, SkillPath, Trust, Viewer};
use crate::store::{Derived, DerivedWriter, Map, Positions};

/// Format version of the list and of its files; changes with each new format.
const FORMAT: u32 = 1;

/// Place of a document whose record has been deleted.
pub(super) const GONE: u32 = u32::MAX;

/// List of the files of an index.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct List {
    format: u32,
    analysis: u32,
    /// Number of the next new file.
    next: u64,
    /// Covered entries of each data file.
    pub(super) covered: Vec<Covered>,
    /// Segments, oldest first.
    pub(super) segments: Vec<Files>,
}

/// Covered part of a data file: its first entries, while it only grows. A kind has one for each of
/// its files, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Covered {
    pub(crate) kind: Kind,
    pub(crate) generation: u64,
    pub(crate) entries: usize,
}

/// Files of one segment, by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Files {
    pub(crate) documents: usize,
    pub(crate) words: u64,
    pub(crate) places: u64,
    pub(crate) vectors: Option<Vectors>,
}

/// File with the vectors of a segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Vectors {
    file: u64,
    /// Name of the embedder.
    embedder: String,
    /// Number of documents with a vector.
    filled: usize,
}

impl List {
    pub(crate) fn new() -> Self {
        Self {
            format: FORMAT,
            analysis: ANALYSIS,
            ..Self::default()
        }
    }

    /// Parses a saved list; `None` if it is damaged or has another version.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let list: Self = serde_json::from_slice(bytes).ok()?;
        (list.format == FORMAT && list.analysis == ANALYSIS).then_some(list)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Number of covered entries of each data file of a kind; `None` if one of them has changed
    /// otherwise than by growing.
    pub(crate) fn covers(&self, kind: Kind, now: &Positions) -> Option<Vec<usize>> {
        let of_kind = self.covered.iter().filter(|covered| covered.kind == kind);
        let mut covered = of_kind.map(|covered| (covered.generation, covered.entries));
        let covers = now.generations().map(|(generation, entries)| {
            let (own, first) = covered.next()?;
            (own == generation && first <= entries).then_some(first)
        });
        covers.collect()
    }

    /// Names of all files in the list.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.segments.iter().flat_map(|files| {
            let vectors = files.vectors.iter();
            let vectors = vectors.map(|vectors| name(vectors.file, VECTORS));
            let names = [name(files.words, WORDS), name(files.places, PLACES)];
            names.into_iter().chain(vectors)
        })
    }

    /// Writes a new file with these parts, and returns its number; `None` on failure.
    fn write(&mut self, writer: &DerivedWriter, ending: &str, parts: &[&[u8]]) -> Option<u64> {
        self.next += 1;
        let written = writer.write(&name(self.next, ending), parts);
        written.then_some(self.next)
    }
}

/// Endings of the files of a segment.
const WORDS: &str = "words";
const PLACES: &str = "places";
const VECTORS: &str = "vectors";

fn name(number: u64, ending: &str) -> String {
    format!("{number}.{ending}")
}

/// Vectors of one embedder for the documents of a segment; some may be missing.
#[derive(Debug)]
pub(crate) struct SegmentVectors {
    pub(super) slots: Map,
    /// Embedder of the vectors.
    pub(super) embedding: Embedding,
    /// Number of documents with a vector.
    pub(super) filled: usize,
    /// Number of their file; `None` if they are only in memory.
    pub(super) file: Option<u64>,
}

/// Segment with the places of its records and with its vectors.
#[derive(Debug)]
pub(crate) struct IndexedSegment {
    words: Map,
    words_file: Option<u64>,
    /// Place of each document's record among those of its kind, or [`GONE`].
    pub(super) places: Vec<u32>,
    /// Number of the file of the places; `None` if they are in no file, or have changed.
    pub(super) places_file: Option<u64>,
    pub(super) vectors: Option<SegmentVectors>,
    /// Places of the vectors, one for each document.
    singles: OnceLock<SlotLayout>,
    /// Places of the vectors, with those of windows.
    windows: OnceLock<SlotLayout>,
}

impl IndexedSegment {
    /// Creates a segment that is in no file yet.
    pub(super) fn new(words: Vec<u8>, places: Vec<u32>) -> Self {
        Self {
            words: Map::Memory(words),
            words_file: None,
            singles: OnceLock::new(),
            windows: OnceLock::new(),
            places,
            places_file: None,
            vectors: None,
        }
    }

    /// Opens a segment of the list; `None` if a file is missing or damaged.
    pub(super) fn open(derived: &Derived, files: &Files) -> Option<Self> {
        let words = derived.map(&name(files.words, WORDS))?;
        let places = read_places(&derived.map(&name(files.places, PLACES))?)?;
        if places.len() != files.documents {
            return None;
        }
        let vectors = files.vectors.as_ref().and_then(|vectors| {
            let (_, dimensions) = vectors.embedder.rsplit_once('/')?;
            Some(SegmentVectors {
                slots: derived.map(&name(vectors.file, VECTORS))?,
                embedding: Embedding {
                    name: vectors.embedder.clone(),
                    dimensions: dimensions.parse().ok()?,
                },
                filled: vectors.filled,
                file: Some(vectors.file),
            })
        });
        let mut indexed = Self {
            words,
            words_file: Some(files.words),
            places_file: Some(files.places),
            vectors,
            ..Self::new(Vec::new(), places)
        };
        if indexed.all_slots().is_none() {
            indexed.vectors = None;
        }
        Some(indexed)
    }

    /// Writes the parts that are not saved yet or have changed; `None` on failure.
    pub(super) fn save(
        &mut self,
        writer: &DerivedWriter,
        derived: &Derived,
        list: &mut List,
    ) -> Option<Files> {
        if self.words_file.is_none() {
            self.words_file = Some(list.write(writer, WORDS, &[&self.words])?);
        }
        if self.places_file.is_none() {
            let file = places_file(&self.places);
            self.places_file = Some(list.write(writer, PLACES, &[&file])?);
        }
        let mut vectors = self.vectors.iter_mut();
        if let Some(vectors) = vectors.find(|vectors| vectors.file.is_none()) {
            let file = list.write(writer, VECTORS, &[&vectors.slots])?;
            vectors.file = Some(file);
            // The vectors of a million records are no longer held in memory.
            if let Some(saved) = derived.map(&name(file, VECTORS)) {
                vectors.slots = saved;
            }
        }
        self.files()
    }

    /// The files of the segment; `None` if a part is in none.
    pub(super) fn files(&self) -> Option<Files> {
        let of = |vectors: &SegmentVectors| {
            Some(Vectors {
                file: vectors.file?,
                embedder: vectors.embedding.name.clone(),
                filled: vectors.filled,
            })
        };
        Some(Files {
            documents: self.places.len(),
            words: self.words_file?,
            places: self.places_file?,
            vectors: match &self.vectors {
                Some(vectors) => Some(of(vectors)?),
                None => None,
            },
        })
    }

    pub(super) fn segment(&self) -> Result<Segment<'_>, Damaged> {
        let segment = Segment::open(&self.words).ok_or(Damaged)?;
        let is_whole = segment.len() == self.places.len();
        is_whole.then_some(segment).ok_or(Damaged)
    }

    /// Embedder of the vectors.
    pub(super) fn embedding(&self) -> Option<&Embedding> {
        self.vectors.as_ref().map(|vectors| &vectors.embedding)
    }

    /// Returns true if the vectors come from another embedder.
    pub(super) fn is_of_another(&self, embedding: Option<&Embedding>) -> bool {
        self.vectors.is_some() && self.embedding() != embedding
    }

    /// Number of documents with a vector of this embedder.
    pub(super) fn filled(&self, embedding: Option<&Embedding>) -> usize {
        let vectors = self.vectors.as_ref();
        let vectors = vectors.filter(|vectors| Some(&vectors.embedding) == embedding);
        vectors.map_or(0, |vectors| vectors.filled.min(self.places.len()))
    }

    /// Vectors, if they come from this embedder.
    pub(super) fn slots(&self, embedding: Option<&Embedding>) -> Option<Slots<'_>> {
        (self.embedding() == embedding).then(|| self.all_slots())?
    }

    /// Vectors of any embedder.
    pub(super) fn all_slots(&self) -> Option<Slots<'_>> {
        let vectors = self.vectors.as_ref()?;
        let layout = self.layout(&vectors.embedding);
        Slots::open(&vectors.slots, &vectors.embedding, layout)
    }

    /// Places of the vectors of an embedder.
    pub(super) fn layout(&self, embedding: &Embedding) -> &SlotLayout {
        let reads_windows = embedding.reads_windows();
        let slots = [&self.singles, &self.windows][usize::from(reads_windows)];
        slots.get_or_init(|| match self.segment() {
            Ok(segment) if reads_windows => segment.slot_layout(),
            // A damaged segment is noticed by its use.
            _ => SlotLayout::single(self.places.len()),
        })
    }

    /// Returns true if records of some documents have been deleted.
    pub(super) fn has_gone(&self) -> bool {
        // No saved segment holds one.
        self.places_file.is_none() && self.places.contains(&GONE)
    }

    pub(super) fn in_force(&self) -> Vec<bool> {
        self.places.iter().map(|place| *place != GONE).collect()
    }

    /// Slots of the remaining documents, one after the other, and the number of filled ones.
    pub(super) fn kept_slots(&self, embedding: &Embedding) -> (Vec<u8>, usize) {
        let width = slot_width(embedding.dimensions);
        let slots = self.slots(Some(embedding));
        let (mut out, mut filled) = (Vec::new(), 0);
        for (document, _) in self.places.iter().enumerate().filter(|(_, p)| **p != GONE) {
            if let Some(slots) = slots.filter(|slots| slots.is_filled(document)) {
                out.extend_from_slice(slots.get(document));
                filled += 1;
            } else {
                let slots = self.layout(embedding).of_document(document).len();
                out.resize(out.len() + slots * width, 0);
            }
        }
        (out, filled)
    }
}

/// Reads places from their file: a checksum, then four bytes per place. `None` if it is damaged.
fn read_places(file: &[u8]) -> Option<Vec<u32>> {
    let (sum, bytes) = file.split_first_chunk()?;
    let (places, rest) = bytes.as_chunks();
    let is_intact = rest.is_empty() && u64::from_le_bytes(*sum) == xxh3_64(bytes);
    let places = places.iter().map(|place| u32::from_le_bytes(*place));
    is_intact.then(|| places.collect())
}

/// Content of a file with these places.
fn places_file(places: &[u32]) -> Vec<u8> {
    let bytes = places.iter().flat_map(|place| place.to_le_bytes());
    let bytes: Vec<u8> = bytes.collect();
    [&xxh3_64(&bytes).to_le_bytes()[..], &bytes].concat()
}

/// Conditions of a caller for a document to be found. The default admits everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Required kind.
    pub kind: Option<Kind>,
    /// Required skill.
    pub skill: Option<SkillPath>,
    /// Required memory type.
    pub memory_type: Option<MemoryType>,
    /// Minimum trust.
    pub trust: Option<Trust>,
    /// Earliest creation time, in seconds since 1970.
    pub since: Option<i64>,
    /// End of the creation time range (exclusive), in seconds since 1970.
    pub until: Option<i64>,
}

// The index has room for every kind.
const _: () = assert!(Kind::ALL.len() <= KINDS);

impl Filter {
    /// The filter as numbers, for the index: what has not expired by now, in seconds since 1970, and is in
    /// the scope and visible.
    pub(crate) fn admission(&self, now: i64, scope: &Scope, viewer: &Viewer) -> Admission {
        let domains = match scope {
            Scope::All => None,
            Scope::Domains(domains) => Some(domains.iter().map(|d| name_hash(d)).collect()),
        };
        Admission {
            now,
            kind: self.kind.map(kind_number),
            skill: self.skill.as_ref().map(|s| name_hash(&s.to_string())),
            domains,
            own: match viewer {
                Viewer::Owner => None,
                Viewer::User(id) => Some(user_filter(Some(name_hash(id.as_str())))),
                Viewer::Nobody => Some(user_filter(None)),
            },
            note: self.memory_type.map(note_number),
            trust: self.trust.map_or(0, |trust| trust as u8),
            since: self.since,
            until: self.until,
        }
    }
}

fn user_filter(user: Option<u32>) -> UserFilter {
    // A kind of a newer version counts as one that has a user.
    let mut kinds = [true; KINDS];
    for (has_user, kind) in kinds.iter_mut().zip(Kind::ALL) {
        *has_user = kind.has_user();
    }
    UserFilter { kinds, user }
}

/// Attributes of a document. `key` identifies this version of its record.
pub(crate) fn attributes(document: &Document, key: u64) -> Attributes {
    let skill = document.skill.as_deref();
    let path = skill.and_then(|skill| skill.parse::<SkillPath>().ok());
    let expires = document.expires.as_deref();
    Attributes {
        key,
        created: seconds(&document.created).unwrap_or(i64::MIN),
        expires: match Expiry::of(expires) {
            Expiry::Never => i64::MAX,
            Expiry::At(end) => end.timestamp(),
            // Records with an unreadable expiry time are never found.
            Expiry::Unreadable => i64::MIN,
        },
        skill: skill.map_or(0, name_hash),
        domain: path.map_or(0, |path| name_hash(path.domain())),
        user: document.user_id.as_deref().map_or(0, name_hash),
        kind: kind_number(document.kind),
        trust: document.trust as u8,
        note: document.memory_type.map_or(0, note_number),
    }
}

fn kind_number(kind: Kind) -> u8 {
    place_in(&Kind::ALL, kind)
}

/// Number of a memory type; 0 is none.
fn note_number(memory_type: MemoryType) -> u8 {
    place_in(&MemoryType::ALL, memory_type).saturating_add(1)
}

/// Place of one of all values. The order of all is part of the format of the index.
fn place_in<T: Copy + PartialEq>(all: &[T], one: T) -> u8 {
    let place = all.iter().position(|other| *other == one);
    place
        .and_then(|place| u8::try_from(place).ok())
        .unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_holds_by_itself() {
        let document = Attributes {
            key: 7,
            created: 100,
            expires: 200,
            skill: name_hash("hr/screening"),
            domain: name_hash("hr"),
            user: name_hash("alice"),
            kind: kind_number(Kind::Memory),
            trust: Trust::Approved as u8,
            note: note_number(MemoryType::TaskMemory),
        };
        let admits = |filter: &Filter, now: i64, scope: &str, viewer: &Viewer| {
            let admission = filter.admission(now, &Scope::parse(scope), viewer);
            admission.admits(&document)
        };
        let check = |filter: Filter, expected: bool| {
            let admits = admits(&filter, i64::MIN, "*", &Viewer::Owner);
            assert_eq!(admits, expected, "{filter:?}");
        };
        let all = Filter::default;
        check(all(), true);
        let at = |now| admits(&all(), now, "*", &Viewer::Owner);
        assert_eq!([199, 200].map(at), [true, false]);
        let kind = |kind| Filter { kind, ..all() };
        check(kind(Some(Kind::Memory)), true);
        check(kind(Some(Kind::Procedure)), false);
        let skill = |skill: &str| Filter {
            skill: skill.parse().ok(),
            ..all()
        };
        check(skill("hr/screening"), true);
        check(skill("hr/other"), false);
        let scope = |list| admits(&all(), i64::MIN, list, &Viewer::Owner);
        assert_eq!(["dev,hr", "dev"].map(scope), [true, false]);
        let viewer = |viewer| admits(&all(), i64::MIN, "*", &viewer);
        assert!(viewer(Viewer::User("alice".parse().unwrap())));
        assert!(!viewer(Viewer::User("bob".parse().unwrap())));
        assert!(!viewer(Viewer::Nobody));
        let note = |memory_type| Filter {
            memory_type: Some(memory_type),
            ..all()
        };
        check(note(MemoryType::TaskMemory), true);
        check(note(MemoryType::BrandMemory), false);
        let trust = |trust| Filter {
            trust: Some(trust),
            ..all()
        };
        check(trust(Trust::Observed), true);
        check(trust(Trust::User), false);
        let time = |since, until| Filter {
            since,
            until,
            ..all()
        };
        check(time(Some(100), Some(101)), true);
        check(time(Some(101), None), false);
        check(time(None, Some(100)), false);
    }

    #[test]
    fn memory_without_a_user_is_hidden_from_users_and_rules_have_none() {
        let viewers = [Viewer::User("alice".parse().unwrap()), Viewer::Nobody];
        for viewer in viewers {
            let admission = Filter::default().admission(i64::MIN, &Scope::All, &viewer);
            for kind in Kind::ALL {
                let document = Attributes {
                    kind: kind_number(kind),
                    ..Attributes::default()
                };
                assert_eq!(admission.admits(&document), !kind.has_user(), "{kind}");
            }
        }
    }

    #[test]
    fn record_without_a_domain_is_outside_every_scope() {
        let filter = Filter::default();
        let admission = filter.admission(i64::MIN, &Scope::parse("hr"), &Viewer::Owner);
        assert!(!admission.admits(&Attributes::default()));
    }

    #[test]
    fn users_record_without_a_domain_is_visible_in_every_nonempty_scope() {
        let check = |scope: &str, kind: Kind, user: &str, domain: &str, expected: bool| {
            let viewer = Viewer::User("alice".parse().unwrap());
            let filter = Filter::default();
            let admission = filter.admission(i64::MIN, &Scope::parse(scope), &viewer);
            let document = Attributes {
                kind: kind_number(kind),
                user: name_hash(user),
                domain: if domain.is_empty() {
                    0
                } else {
                    name_hash(domain)
                },
                ..Attributes::default()
            };
            let admits = admission.admits(&document);
            assert_eq!(admits, expected, "{scope} {kind} {user} {domain}");
        };
        check("hr", Kind::Memory, "alice", "", true);
        check("hr", Kind::Memory, "alice", "hr", true);
        check("hr", Kind::Memory, "alice", "finance", false);
        check("hr", Kind::Memory, "bob", "", false);
        check("hr", Kind::Procedure, "alice", "", false);
        check("", Kind::Memory, "alice", "", false);
        check("*", Kind::Memory, "alice", "", true);
    }
}
