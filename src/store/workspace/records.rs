//! The record that an id, an id prefix or `latest` means, records of any kind in one form, and lines of the
//! execution log.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{ActionType, Document, ExecutionLog, Kind, LogStatus, Record, Trust, by_kind};
use crate::store::workspace::{Error, stamp};
use crate::store::{Entry, Error as StoreError, Scoped};

/// Resolves an id, an id prefix or `latest` to a record. Fails with [`Error::Forgotten`] for a
/// deleted record.
pub(crate) fn locate(store: &Scoped, id: &str) -> Result<(Kind, String), Error> {
    let kind = match Kind::of_id(id) {
        Some(kind) => kind,
        None if id == "latest" => Kind::Execution,
        None => return Err(Error::NoId(id.to_owned())),
    };
    Ok((kind, locate_as(store, kind, id)?))
}

/// Resolves an id, an id prefix or `latest` among the records of one kind. Fails with
/// [`Error::Forgotten`] for a deleted record.
pub(crate) fn locate_as(store: &Scoped, kind: Kind, id: &str) -> Result<String, Error> {
    match store.resolve(kind, id, None) {
        Ok(id) => Ok(id),
        Err(error @ StoreError::NotFound { .. }) => Err(match store.tombstone(kind, id)? {
            Some(tombstone) => Error::Forgotten {
                day: tombstone
                    .at
                    .split('T')
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
                id: tombstone.id,
                kind,
            },
            None => error.into(),
        }),
        Err(error) => Err(error.into()),
    }
}

/// An entry as a document; `None` where it is no readable record.
pub(crate) fn document(entry: &Entry) -> Option<Document> {
    fn of<R: Record>(entry: &Entry) -> Option<Document> {
        entry.parse::<R>().ok().map(|record| record.document())
    }
    by_kind!(entry.kind, of(entry))
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

/// Common fields of the lines of one writer.
#[derive(Debug)]
pub(crate) struct Scribe {
    now: DateTime<Utc>,
    random: fn() -> String,
    session: Option<String>,
}

impl Scribe {
    /// Creates the fields; `session` is the id of a session, or the id that an agent host gave it.
    pub(crate) fn new(now: DateTime<Utc>, random: fn() -> String, session: Option<&str>) -> Self {
        Self {
            now,
            random,
            session: session.map(|name| memctl_redact::redact(name).text.into_owned()),
        }
    }

    /// Returns a line for a successful step, with the optional fields empty.
    pub(crate) fn line(&self, step: &str, action: ActionType) -> ExecutionLog {
        ExecutionLog {
            id: (self.random)(),
            session_id: self.session.clone(),
            step_name: step.to_owned(),
            action_type: action,
            status: LogStatus::Success,
            created_at: stamp(self.now),
            ..ExecutionLog::default()
        }
    }
}

/// A value that a line carries.
pub(crate) fn data(value: &Value) -> Option<Box<RawValue>> {
    raw(value).ok()
}

/// JSON text of a value, as records carry it.
pub(crate) fn raw(value: &impl Serialize) -> Result<Box<RawValue>, Error> {
    serde_json::value::to_raw_value(value).map_err(|error| crate::store::Error::from(error).into())
}
