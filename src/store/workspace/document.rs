//! Documents: records of any kind in one form.

use crate::model::{
    Correction, Document, Execution, Kind, Memory, Procedure, Record, Reflexion, Session, Trust,
};
use crate::store::{Entry, Scoped};

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
        Kind::Memory => of::<Memory>(entry),
        Kind::Session => of::<Session>(entry),
    }
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
