//! Search index over all records, kept in sync with the data files.
//!
//! It is stored in `.agentura/.index/search/` and may be deleted at any time. Each use brings it up
//! to date first. In a file that only grew, just the added entries are analysed. In any other
//! changed file, entries are recognised by their text, and only new ones are analysed. So results
//! always reflect the files, whichever program wrote them.
//!
//! - Here: an index, and this one and those of remote records searched as one.
//! - `segment`: one segment, in memory or mapped, the list of all, and which documents a search may return.
//! - `update`: changes of the records since the last save; writing and merging of segments.
//! - `vectors`: vectors, computed on demand.
//!
//! Invariants:
//! - Saved segments hold no document of a deleted record: a deletion leaves nothing behind.
//! - A segment has vectors of one embedder. Vectors of another embedder than the current one stay
//!   unused: they may have cost money, and only `memctl index` replaces them.
//! - No process waits for another: one that cannot save searches in memory.
//! - Damage is not an error: the index is rebuilt.

mod segment;
mod update;
mod vectors;

use std::cell::OnceCell;

use memctl_files::parallel::each;
use memctl_search::embedder::{Embedder, Embedding};
use memctl_search::{Admission, Damaged, Part, Ranker};
use segment::{IndexedSegment, List};

use crate::model::{Document, Kind};
use crate::store::workspace::{Error, document};
use crate::store::{Derived, Entry, Positions, Scoped, TrustSnapshot};

pub use segment::Filter;

/// Minimum number of segments for a second thread.
const MANY: usize = 8;

/// Number of new entries up to which they are analysed each time instead of saved.
const SPARE: usize = 64;

/// Index in sync with the files as they were when it was opened.
#[derive(Debug)]
pub(crate) struct Index {
    /// Workspace of remote records; `None` for this one.
    origin: Option<String>,
    derived: Derived,
    store: Scoped,
    /// Approvals of this user; loaded when the first result is shown.
    trust_snapshot: OnceCell<TrustSnapshot>,
    /// Current embedder; `None` if none is set, or its vector size is not known yet.
    embedding: Option<Embedding>,
    /// Entries by kind, in the order of [`Kind::ALL`].
    files: Vec<Positions>,
    segments: Vec<IndexedSegment>,
    /// List as saved.
    list: List,
}

/// Progress callback: number of records analysed, and the total.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(usize, usize);

impl Index {
    /// Opens the index as saved. It must be updated before use.
    pub(crate) fn open(store: &Scoped) -> Result<Self, Error> {
        let derived = store.derived("search").hold();
        let mut loaded = None;
        // A list with missing files was just replaced by another process, or is damaged.
        for _ in 0..3 {
            let list = derived.list().and_then(|bytes| List::parse(&bytes));
            let Some(list) = list else {
                break;
            };
            let indexed = each(&list.segments, list.segments.len() >= MANY, |files| {
                IndexedSegment::open(&derived, files)
            });
            if let Some(segments) = indexed.into_iter().collect::<Option<Vec<_>>>() {
                loaded = Some((list, segments));
                break;
            }
        }
        let (list, segments) = loaded.unwrap_or_else(|| (List::new(), Vec::new()));
        let files: Result<Vec<_>, _> = Kind::ALL.iter().map(|k| store.positions(*k)).collect();
        Ok(Self {
            origin: None,
            derived,
            store: store.clone(),
            trust_snapshot: OnceCell::new(),
            embedding: None,
            files: files?,
            segments,
            list,
        })
    }

    /// Updates the index. Saves the new entries if they are many, or if `save` is set.
    pub(crate) fn update(&mut self, save: bool, progress: Progress<'_>) -> Result<(), Error> {
        match self.try_update(save, progress) {
            Err(Error::Index) => self.renew(progress),
            updated => updated,
        }
    }

    /// Rebuilds the index from the data files after damage.
    pub(crate) fn renew(&mut self, progress: Progress<'_>) -> Result<(), Error> {
        self.segments.clear();
        self.list.segments.clear();
        self.list.covered.clear();
        self.try_update(true, progress)
    }

    /// Updates a saved index, so that it keeps nothing of a deleted record: the text could be guessed from
    /// its words and its vector.
    pub(crate) fn drop_gone(store: &Scoped) -> Result<(), Error> {
        let mut index = Self::open(store)?;
        if index.segments.is_empty() {
            return Ok(());
        }
        index.update(true, &mut |_, _| {})
    }

    /// Returns true if there are no records at all.
    pub(crate) fn is_blank(&self) -> bool {
        self.files.iter().all(Positions::is_empty)
    }

    /// Problems of the file of a kind, or of all files.
    pub(crate) fn problems(&self, kind: Option<Kind>) -> impl Iterator<Item = String> {
        let files = Kind::ALL.into_iter().zip(&self.files);
        files
            .filter(move |(of, _)| kind.is_none_or(|kind| kind == *of))
            .flat_map(|(_, file)| file.problems().map(ToString::to_string))
    }

    /// Returns true if every saved document has a vector of any embedder, or there are no records: then
    /// few are missing.
    pub(crate) fn has_all_vectors(&self) -> bool {
        let full =
            |indexed: &IndexedSegment| indexed.filled(indexed.embedding()) >= indexed.places.len();
        self.is_blank() || (!self.segments.is_empty() && self.segments.iter().all(full))
    }

    /// Number of documents that pass the filter, and number of those with a vector: of the current
    /// embedder, or of any if none is set.
    fn counts(&self, admission: &Admission) -> Result<(usize, usize), Damaged> {
        let (mut documents, mut vectors) = (0, 0);
        for indexed in &self.segments {
            let segment = indexed.segment()?;
            segment.verify()?;
            let mut admitted = indexed.in_force();
            segment.admit(admission, &mut admitted);
            let slots = indexed.slots(self.embedding.as_ref().or(indexed.embedding()));
            for place in (0..admitted.len()).filter(|place| admitted[*place]) {
                documents += 1;
                vectors += usize::from(slots.is_some_and(|slots| slots.is_filled(place)));
            }
        }
        Ok((documents, vectors))
    }

    /// Number of documents without a vector of the current embedder.
    pub(crate) fn without_vector(&self) -> usize {
        let missing = |indexed: &IndexedSegment| {
            indexed.places.len() - indexed.filled(self.embedding.as_ref())
        };
        self.segments.iter().map(missing).sum()
    }

    /// Returns true if all changes are in files.
    pub(crate) fn is_saved(&self) -> bool {
        let files = |indexed: &IndexedSegment| indexed.files();
        let mut files = self.segments.iter().map(files);
        files.all(|files| files.is_some_and(|files| self.list.segments.contains(&files)))
    }

    /// Rankable parts of the segments that `some` selects, restricted by the filter.
    fn parts(
        &self,
        admission: &Admission,
        some: impl Fn(&IndexedSegment) -> bool + Sync,
    ) -> Result<Vec<Part<'_>>, Damaged> {
        let embedding = self.embedding.as_ref();
        let part = |indexed| -> Result<Part<'_>, Damaged> {
            let indexed: &IndexedSegment = indexed;
            let segment = indexed.segment()?;
            segment.verify_for_ranking()?;
            let admitted = if !some(indexed) {
                Some(vec![false; indexed.places.len()])
            } else if indexed.has_gone() || !segment.admits_all(admission) {
                segment.verify()?;
                let mut admitted = indexed.in_force();
                segment.admit(admission, &mut admitted);
                Some(admitted)
            } else {
                None
            };
            let slots = indexed.slots(embedding);
            Ok(Part::new(segment, slots, admitted))
        };
        let parts = each(&self.segments, self.segments.len() >= MANY, part);
        parts.into_iter().collect()
    }

    /// Returns the record of a document by its place in the ranker's parts. `None` if the caller
    /// may not see it or it cannot be read.
    fn record(&self, part: usize, place: usize) -> Result<Option<(Entry, Document)>, Error> {
        let snapshot = || self.store.trust_snapshot();
        let trust_snapshot = self.trust_snapshot.get_or_init(snapshot);
        let found = self.read(part, place, Positions::entry)?;
        Ok(found.map(|(entry, document)| {
            let trust = trust_snapshot.of_entry(&entry, document.trust);
            (entry, Document { trust, ..document })
        }))
    }

    /// Reads a record without the access filter: derived data does not depend on the caller.
    fn any_record(&self, part: usize, place: usize) -> Result<Option<Document>, Error> {
        let found = self.read(part, place, Positions::any_entry)?;
        Ok(found.map(|(_, document)| document))
    }

    fn read(
        &self,
        part: usize,
        place: usize,
        entry: impl Fn(&Positions, u32) -> Result<Option<(u64, Entry)>, Error>,
    ) -> Result<Option<(Entry, Document)>, Error> {
        let indexed = self.segments.get(part).ok_or(Error::Index)?;
        let segment = indexed.segment()?;
        // A document that passed the filter is not gone.
        let row = indexed.places.get(place).ok_or(Error::Index)?;
        let file = self.files.get(usize::from(segment.kind(place)));
        match entry(file.ok_or(Error::Index)?, *row)? {
            Some((key, _)) if key != segment.key(place) => Err(Error::Index),
            found => Ok(found.and_then(|(_, entry)| {
                let document = readable(&entry)?;
                Some((entry, document))
            })),
        }
    }
}

/// Converts an entry to the document to index and show. It is redacted, since words and vectors in
/// the index could reveal secrets of an old file.
fn readable(entry: &Entry) -> Option<Document> {
    let document = document(entry)?;
    let content = memctl_redact::redact(&document.content).text.into_owned();
    Some(Document {
        content,
        ..document
    })
}

/// Record of a document, with its origin.
pub(crate) type RecordOf<'a> = (Option<&'a str>, Entry, Document);

/// Indexes of this memory and of remote records, this memory's own first, searched as one: a word has the
/// same weight everywhere. Each is stored next to its records and follows only those, so adding or removing
/// one workspace touches no other index.
#[derive(Debug)]
pub(crate) struct MultiIndex {
    indexes: Vec<Index>,
}

impl MultiIndex {
    /// Opens all indexes as saved. They must be updated before use.
    pub(crate) fn open(store: &Scoped) -> Result<Self, Error> {
        let mut indexes = vec![Index::open(store)?];
        for pulled in store.others() {
            indexes.push(Index {
                origin: Some(pulled.origin),
                ..Index::open(&pulled.store)?
            });
        }
        Ok(Self { indexes })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Index> {
        self.indexes.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Index> {
        self.indexes.iter_mut()
    }

    /// Brings all of them up to date; see [`Index::update`].
    pub(crate) fn update(&mut self, save: bool, progress: Progress<'_>) -> Result<(), Error> {
        self.iter_mut()
            .try_for_each(|index| index.update(save, progress))
    }

    /// Rebuilds all indexes from the data files.
    pub(crate) fn renew(&mut self, progress: Progress<'_>) -> Result<(), Error> {
        self.iter_mut().try_for_each(|index| index.renew(progress))
    }

    /// Number of documents that pass the filter, and number of those with a vector.
    pub(crate) fn counts(&self, admission: &Admission) -> Result<(usize, usize), Damaged> {
        let counts: Result<Vec<_>, _> = self.iter().map(|index| index.counts(admission)).collect();
        let sum = |(a, b): (usize, usize), (c, d): (usize, usize)| (a + c, b + d);
        Ok(counts?.into_iter().fold((0, 0), sum))
    }

    /// Number of documents without a vector of the current embedder.
    pub(crate) fn without_vector(&self) -> usize {
        self.iter().map(Index::without_vector).sum()
    }

    /// Sets the current embedder.
    pub(crate) fn ask_for(&mut self, embedding: Option<&Embedding>) {
        self.iter_mut()
            .for_each(|index| index.embedding = embedding.cloned());
    }

    /// Name of the current embedder.
    pub(crate) fn asked_for(&self) -> Option<&str> {
        let embedding = self.iter().find_map(|index| index.embedding.as_ref());
        embedding.map(|embedding| embedding.name.as_str())
    }

    /// Adds at most `limit` missing vectors, starting with this memory's own index; see
    /// [`Index::fill_missing`].
    pub(crate) fn fill_missing(
        &mut self,
        query: &str,
        admission: &Admission,
        limit: usize,
        embedder: &Embedder,
    ) -> Result<usize, Error> {
        let mut made = 0;
        for index in self.iter_mut() {
            if made < limit && index.without_vector() > 0 {
                made += index.fill_missing(query, admission, limit - made, embedder)?;
            }
        }
        Ok(made)
    }

    /// Ranker for the documents that pass the filter.
    pub(crate) fn ranker(&self, admission: &Admission) -> Result<Ranker<'_>, Damaged> {
        let mut parts = Vec::new();
        for index in self.iter() {
            parts.extend(index.parts(admission, |_| true)?);
        }
        Ok(Ranker::new(parts))
    }

    /// Returns the record of a document by its place in the ranker's parts, with its origin. `None`
    /// if the caller may not see it or it cannot be read.
    pub(crate) fn record(
        &self,
        mut part: usize,
        place: usize,
    ) -> Result<Option<RecordOf<'_>>, Error> {
        for index in self.iter() {
            if part < index.segments.len() {
                let record = index.record(part, place)?;
                let origin = index.origin.as_deref();
                return Ok(record.map(|(entry, document)| (origin, entry, document)));
            }
            part -= index.segments.len();
        }
        Err(Error::Index)
    }
}
