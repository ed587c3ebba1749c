//! The index of everything that is remembered, kept in step with the files.
//!
//! It lies in `.agentura/.index/search/` and may be deleted at any time. Whoever opens it first brings
//! it up to date: entries that were added are analysed, and nothing else; of a file that was changed
//! otherwise, entries are recognised by their text, and only what is new is analysed. So what is found
//! is what the files say at that moment, whoever wrote them.
//!
//! - `list`: which files it consists of, and which state of the records they cover.
//! - `library`: it and the indexes of what was pulled, as one.
//! - `held`: one segment of it, in memory or mapped.
//! - `follow`: what has changed in the records since.
//! - `analyse`: new records as segments.
//! - `save`: the new state in files; merging.
//! - `meaning`: vectors, made as they are wanted.
//!
//! Invariants:
//! - Saved segments hold no document whose record is gone: what was forgotten leaves nothing
//!   behind.
//! - A segment has vectors of one embedder. Those of another than is asked for stay as they are and
//!   are never looked at: they may have cost money, and only `memctl index` replaces them.
//! - Nobody waits for anybody: who cannot save searches what it has in memory.
//! - Damage is not an error. The index is made again.

mod analyse;
mod follow;
mod held;
mod library;
mod list;
mod meaning;
mod save;

use std::cell::OnceCell;

use crate::guard;
use crate::model::{Document, Kind};
use crate::search::{Damaged, Filter, Part};
use crate::store::{Derived, Entry, Positions, Scoped, Standing};

use super::Error;
use super::find::document;

use held::{GONE, Held};
use list::List;

pub(super) use library::Library;
pub(super) use meaning::Embedding;

/// So few new entries are analysed each time rather than saved.
const SPARE: usize = 64;

/// The index, in step with the files as they were when it was opened.
#[derive(Debug)]
pub(super) struct Index {
    derived: Derived,
    store: Scoped,
    /// What counts as this user's own word; asked for once something is shown.
    standing: OnceCell<Standing>,
    /// Whose vectors are asked for; `None` where none are, or where their size is not known yet.
    embedding: Option<Embedding>,
    /// For each kind, in the order of [`Kind::ALL`].
    files: Vec<Positions>,
    segments: Vec<Held>,
    /// The list as it is saved.
    list: List,
}

/// Told how many records are analysed, out of how many.
pub(super) type Progress<'a> = &'a mut dyn FnMut(usize, usize);

impl Index {
    /// Opens the index as it was saved. It is of no use before it is brought up to date.
    pub(super) fn open(store: &Scoped) -> Result<Self, Error> {
        let derived = store.derived("search");
        let mut loaded = None;
        // A list whose files are gone was replaced this moment; one that stays so is damaged.
        for _ in 0..3 {
            let list = derived.list().and_then(|bytes| List::parse(&bytes));
            let Some(list) = list else {
                break;
            };
            let held = |files| Held::open(&derived, files);
            if let Some(segments) = list.segments.iter().map(held).collect::<Option<Vec<_>>>() {
                loaded = Some((list, segments));
                break;
            }
        }
        let (list, segments) = loaded.unwrap_or_else(|| (List::new(), Vec::new()));
        let files: Result<Vec<_>, _> = Kind::ALL.iter().map(|k| store.positions(*k)).collect();
        Ok(Self {
            derived,
            store: store.clone(),
            standing: OnceCell::new(),
            embedding: None,
            files: files?,
            segments,
            list,
        })
    }

    /// Brings the index up to date. What is new is saved where it is much, or where `save` asks
    /// for it.
    pub(super) fn update(&mut self, save: bool, progress: Progress<'_>) -> Result<(), Error> {
        match self.try_update(save, progress) {
            Err(Error::Index) => self.renew(progress),
            updated => updated,
        }
    }

    /// Makes the index again from the files: what was saved is damaged.
    pub(super) fn renew(&mut self, progress: Progress<'_>) -> Result<(), Error> {
        self.segments.clear();
        self.list.segments.clear();
        self.list.covered.clear();
        self.try_update(true, progress)
    }

    fn try_update(&mut self, save: bool, progress: Progress<'_>) -> Result<(), Error> {
        let news = self.follow()?;
        self.take_in(&news, save, progress)
    }

    /// Brings what is saved up to date, if anything is: no saved segment keeps a record that is gone.
    pub(super) fn drop_gone(mut self, progress: Progress<'_>) -> Result<(), Error> {
        if self.segments.is_empty() {
            return Ok(());
        }
        self.update(true, progress)
    }

    /// Whether nothing is remembered at all.
    pub(super) fn is_blank(&self) -> bool {
        self.files.iter().all(Positions::is_empty)
    }

    /// What is wrong with the file of a kind, or with all of them.
    pub(super) fn problems(&self, kind: Option<Kind>) -> impl Iterator<Item = String> {
        let files = Kind::ALL.into_iter().zip(&self.files);
        files
            .filter(move |(of, _)| kind.is_none_or(|kind| kind == *of))
            .flat_map(|(_, file)| file.problems().iter().map(ToString::to_string))
    }

    /// Whether every saved document has a vector, of whatever embedder: then at most a few are to be made.
    pub(super) fn has_all_vectors(&self) -> bool {
        let full = |held: &Held| held.filled(held.embedding()) >= held.places.len();
        !self.segments.is_empty() && self.segments.iter().all(full)
    }

    /// How many documents the filter admits, and how many of those have a vector: of the embedder that
    /// is asked for, and where none is, of whichever.
    pub(super) fn counts(&self, filter: &Filter) -> Result<(usize, usize), Damaged> {
        let (mut documents, mut vectors) = (0, 0);
        for held in &self.segments {
            let segment = held.segment()?;
            segment.verify()?;
            let mut admitted = held.kept();
            segment.admit(filter, &mut admitted);
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

    /// How many documents have no vector of the embedder that is asked for.
    pub(super) fn without_vector(&self) -> usize {
        let missing = |held: &Held| held.places.len() - held.filled(self.embedding.as_ref());
        self.segments.iter().map(missing).sum()
    }

    /// Whether everything that it holds is in files.
    pub(super) fn is_saved(&self) -> bool {
        let saved = |held: &Held| {
            let vectors = held.vectors.as_ref().map(|vectors| &vectors.slots);
            let own = matches!(vectors, Some(held::Bytes::Own(_)));
            held.files.as_ref().is_some_and(|files| {
                self.list.segments.contains(files) && !(own && files.vectors.is_none())
            })
        };
        self.segments.iter().all(saved)
    }

    /// How much room it takes.
    pub(super) fn bytes(&self) -> u64 {
        let size = |held: &Held| {
            let vectors = held.vectors.as_ref();
            let vectors = vectors.map_or(0, |vectors| vectors.slots.len());
            (held.words.len() + held.places.len() * 4 + vectors) as u64
        };
        self.segments.iter().map(size).sum()
    }

    /// What the filter admits of some of the segments, ready to be ranked.
    fn parts(
        &self,
        filter: &Filter,
        some: impl Fn(&Held) -> bool,
    ) -> Result<Vec<Part<'_>>, Damaged> {
        let mut parts = Vec::with_capacity(self.segments.len());
        for held in &self.segments {
            let segment = held.segment()?;
            segment.verify_for_ranking()?;
            let admitted = if !some(held) {
                Some(vec![false; held.places.len()])
            } else if held.has_gone() || !segment.admits_all(filter) {
                segment.verify()?;
                let mut admitted = held.kept();
                segment.admit(filter, &mut admitted);
                Some(admitted)
            } else {
                None
            };
            let slots = held.slots(self.embedding.as_ref());
            parts.push(Part::new(segment, slots, admitted));
        }
        Ok(parts)
    }

    /// The record of a document, by its place in the ranker's parts; `None` where the caller may not
    /// see it or it cannot be read.
    pub(super) fn record(&self, part: usize, place: usize) -> Result<Option<Document>, Error> {
        let standing = self.standing.get_or_init(|| self.store.standing());
        let found = self.read(part, place, Positions::entry)?;
        Ok(found.map(|(entry, document)| Document {
            trust: standing.of_entry(&entry, document.trust),
            ..document
        }))
    }

    /// The same, whoever may see it: what is derived from a record does not depend on who derives it.
    fn any_record(&self, part: usize, place: usize) -> Result<Option<Document>, Error> {
        let found = self.read(part, place, Positions::any_entry)?;
        Ok(found.map(|(_, document)| document))
    }

    fn read(
        &self,
        part: usize,
        place: usize,
        entry: impl Fn(&Positions, usize) -> Result<Option<(u64, Entry)>, crate::store::Error>,
    ) -> Result<Option<(Entry, Document)>, Error> {
        let held = self.segments.get(part).ok_or(Error::Index)?;
        let segment = held.segment().map_err(|_| Error::Index)?;
        // What the filter admitted is not gone.
        let row = held.places.get(place).copied().unwrap_or(GONE);
        let file = self.files.get(usize::from(segment.kind(place)));
        let Some((key, entry)) = entry(file.ok_or(Error::Index)?, row as usize)? else {
            return Ok(None);
        };
        if key != segment.key(place) {
            return Err(Error::Index);
        }
        let document = readable(&entry);
        Ok(document.map(|document| (entry, document)))
    }
}

/// An entry as the document that is indexed and shown: what an old file still holds of secrets is not
/// in it, since a text can be guessed from its words and its vector.
fn readable(entry: &Entry) -> Option<Document> {
    let document = document(entry)?;
    let content = guard::redact(&document.content).text.into_owned();
    Some(Document {
        content,
        ..document
    })
}

/// An entry that is new to the index: its kind, as a place in [`Kind::ALL`], and its place in the file.
type News = (usize, u32);
