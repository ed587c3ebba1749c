//! Removes a record, and remembers that it was removed. A session takes with it what was done in it.

use serde::Serialize;

use crate::model::{Document, Kind, Session};

use super::find::document;
use super::index::Index;
use super::{Engine, Error, mended};

/// What was removed.
#[derive(Debug, Serialize)]
pub struct ForgetReport {
    /// Its id, which is never given again.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// Its words, on one line: the last sight of them.
    pub summary: String,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Removes a record, by its id or the beginning of one; `for_good` leaves nothing to take back.
    pub fn forget(&self, id: &str, for_good: bool) -> Result<ForgetReport, Error> {
        let kind = Kind::of_id(id).ok_or_else(|| Error::NoId(id.to_owned()))?;
        let id = self.store.resolve(kind, id, None)?;
        let mut writer = self.writer()?;
        let entry = writer.store().find(kind, &id)?;
        let document = entry.as_ref().and_then(document);
        // What was done in a session goes first: after a crash it can be forgotten again.
        if let Some(Ok(session)) = entry
            .filter(|_| kind == Kind::Session)
            .map(|entry| entry.parse::<Session>())
        {
            writer.remove_execution_logs(&id, &session.names(), for_good)?;
        }
        let content = document.as_ref().map(remembered).unwrap_or_default();
        if for_good {
            writer.remove_for_good(kind, &id, content, self.now)?;
        } else {
            writer.remove(kind, &id, content, self.now)?;
        }
        let summary = document.map(|d| d.summary).unwrap_or_default();
        let warnings = mended(writer.take_mended()).collect();
        drop(writer);
        // A text can be guessed from its words and its vector: they go as well.
        Index::open(&self.store)?.drop_gone(&mut |_, _| {})?;
        Ok(ForgetReport {
            id,
            kind,
            summary,
            warnings,
        })
    }
}

/// What a tombstone remembers of a record, as a hash. A rule comes back word for word when the same thing
/// is said again; that is what is remembered of it, not its circumstances.
pub(super) fn remembered(document: &Document) -> &str {
    if document.kind == Kind::Reflexion {
        &document.summary
    } else {
        &document.content
    }
}
