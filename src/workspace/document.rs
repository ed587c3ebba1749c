//! Documents: records of any kind in one form.

use crate::model::{
    Correction, Document, EPISODE, Execution, Fix, Kind, Memory, Procedure, Record, Reflexion,
    Session, Trust,
};
use crate::store::{Entry, Error, Scoped, Selection};

/// An entry as a document; `None` where it is no readable record.
pub(crate) fn document(entry: &Entry) -> Option<Document> {
    fn of<R: Record>(entry: &Entry) -> Option<Document> {
        entry.parse::<R>().ok().map(|record| record.document())
    }
    match entry.kind {
        Kind::Execution => of::<Execution>(entry),
        Kind::Correction => of::<Correction>(entry),
        Kind::Reflexion => of::<Reflexion>(entry),
        Kind::Procedure => of::<Procedure>(entry),
        Kind::Fix => of::<Fix>(entry),
        Kind::Memory => of::<Memory>(entry),
        Kind::Session => of::<Session>(entry),
    }
}

/// Returns `true` if an entry is a recovery that is no fix. Most entries do not contain the word and
/// need no parsing.
pub(crate) fn is_episode(entry: &Entry) -> bool {
    entry.kind == Kind::Fix
        && memchr::memmem::find(&entry.text, EPISODE.as_bytes()).is_some()
        && entry.parse::<Fix>().is_ok_and(|fix| fix.is_episode())
}

/// Number of visible episodes. Reads every fix.
pub(crate) fn count_episodes(store: &Scoped) -> Result<u64, Error> {
    let mut count = 0;
    store.each_entry(Kind::Fix, &Selection::default(), &mut |entry| {
        count += u64::from(is_episode(&entry));
    })?;
    Ok(count)
}

/// The level of trust of an entry: `observed` where this user does not stand behind it.
pub(crate) fn level(store: &Scoped, entry: &Entry) -> Trust {
    let own = document(entry).map_or(Trust::Observed, |document| document.trust);
    store.trust_snapshot().of_entry(entry, own)
}

/// Text of a record that its tombstone hashes. For a rule this is the rule alone: the same correction yields
/// it again word for word, under other circumstances.
pub(crate) fn remembered(document: &Document) -> &str {
    if document.kind == Kind::Reflexion {
        &document.summary
    } else {
        &document.content
    }
}
