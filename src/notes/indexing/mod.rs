//! Search index over all records, kept in sync with the data files.
//!
//! It is stored in `.agentura/.index/search/` and may be deleted at any time. Each use brings it up
//! to date first. In a file that only grew, just the added entries are analysed. In any other
//! changed file, entries are recognised by their text, and only new ones are analysed. So results
//! always reflect the files, whichever program wrote them.
//!
//! - `filter`: which documents a search may return.
//! - `manifest`: the files of the index, and the state of the records that they cover.
//! - `multi_index`: this index and those of remote records, searched as one.
//! - `held`: one segment, in memory or mapped.
//! - `follow`: changes of the records since the last save, and segments of new records.
//! - `save`: writing and merging of segments.
//! - `vectors`: vectors, computed on demand, and binary vectors of large segments.
//!
//! Invariants:
//! - Saved segments hold no document of a deleted record: a deletion leaves nothing behind.
//! - A segment has vectors of one embedder. Vectors of another embedder than the current one stay
//!   unused: they may have cost money, and only `memctl index` replaces them.
//! - No process waits for another: one that cannot save searches in memory.
//! - Damage is not an error: the index is rebuilt.

mod filter;
mod follow;
mod held;
mod manifest;
mod multi_index;
mod save;
mod vectors;

use std::cell::OnceCell;

use held::IndexedSegment;
use manifest::List;
use memctl_files::parallel::each;
use memctl_search::embedder::Embedding;
use memctl_search::{Damaged, Part};
pub(crate) use multi_index::MultiIndex;

use crate::model::{Document, Kind};
use crate::store::workspace::Error;
use crate::store::workspace::records::document;
use crate::store::{Derived, Entry, Positions, Scoped, TrustSnapshot};

pub use filter::Filter;

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
            let held = each(&list.segments, list.segments.len() >= MANY, |files| {
                IndexedSegment::open(&derived, files)
            });
            if let Some(segments) = held.into_iter().collect::<Option<Vec<_>>>() {
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

    fn try_update(&mut self, save: bool, progress: Progress<'_>) -> Result<(), Error> {
        let new_entries = self.follow()?;
        self.take_in(&new_entries, save, progress)
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
        let full = |held: &IndexedSegment| held.filled(held.embedding()) >= held.places.len();
        self.is_blank() || (!self.segments.is_empty() && self.segments.iter().all(full))
    }

    /// Number of documents that pass the filter, and number of those with a vector: of the current
    /// embedder, or of any if none is set.
    pub(crate) fn counts(&self, filter: &Filter) -> Result<(usize, usize), Damaged> {
        let admission = filter.admission();
        let (mut documents, mut vectors) = (0, 0);
        for held in &self.segments {
            let segment = held.segment()?;
            segment.verify()?;
            let mut admitted = held.kept();
            segment.admit(&admission, &mut admitted);
            let slots = held.slots(self.embedding.as_ref().or(held.embedding()));
            for (place, _) in admitted
                .iter()
                .enumerate()
                .filter(|(_, admitted)| **admitted)
            {
                documents += 1;
                vectors += usize::from(slots.is_some_and(|slots| slots.is_filled(place)));
            }
        }
        Ok((documents, vectors))
    }

    /// Number of documents without a vector of the current embedder.
    pub(crate) fn without_vector(&self) -> usize {
        let missing =
            |held: &IndexedSegment| held.places.len() - held.filled(self.embedding.as_ref());
        self.segments.iter().map(missing).sum()
    }

    /// Returns true if all changes are in files.
    pub(crate) fn is_saved(&self) -> bool {
        let saved = |held: &IndexedSegment| {
            let vectors = held.vectors.as_ref().map(|vectors| &vectors.slots);
            let own = matches!(vectors, Some(held::Bytes::Own(_)));
            held.files.as_ref().is_some_and(|files| {
                self.list.segments.contains(files) && !(own && files.vectors.is_none())
            })
        };
        self.segments.iter().all(saved)
    }

    /// Rankable parts of the segments that `some` selects, restricted by the filter.
    fn parts(
        &self,
        filter: &Filter,
        some: impl Fn(&IndexedSegment) -> bool + Sync,
    ) -> Result<Vec<Part<'_>>, Damaged> {
        let embedding = self.embedding.as_ref();
        let admission = filter.admission();
        let part = |held| -> Result<Part<'_>, Damaged> {
            let held: &IndexedSegment = held;
            let segment = held.segment()?;
            segment.verify_for_ranking()?;
            let admitted = if !some(held) {
                Some(vec![false; held.places.len()])
            } else if held.has_gone() || !segment.admits_all(&admission) {
                segment.verify()?;
                let mut admitted = held.kept();
                segment.admit(&admission, &mut admitted);
                Some(admitted)
            } else {
                None
            };
            let slots = held.slots(embedding);
            let binary = slots.and_then(|_| held.binary());
            Ok(Part::new(segment, slots, admitted).with_binary(binary))
        };
        let parts = each(&self.segments, self.segments.len() >= MANY, part);
        parts.into_iter().collect()
    }

    /// Returns the record of a document by its place in the ranker's parts. `None` if the caller
    /// may not see it or it cannot be read.
    pub(crate) fn record(&self, part: usize, place: usize) -> Result<Option<Document>, Error> {
        let trust_snapshot = self
            .trust_snapshot
            .get_or_init(|| self.store.trust_snapshot());
        let found = self.read(part, place, Positions::entry)?;
        Ok(found.map(|(entry, document)| Document {
            trust: trust_snapshot.of_entry(&entry, document.trust),
            ..document
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
        entry: impl Fn(&Positions, u32) -> Result<Option<(u64, Entry)>, crate::store::Error>,
    ) -> Result<Option<(Entry, Document)>, Error> {
        let held = self.segments.get(part).ok_or(Error::Index)?;
        let segment = held.segment()?;
        // A document that passed the filter is not gone.
        let row = held.places.get(place).ok_or(Error::Index)?;
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
