//! The record that an id, an id prefix or `latest` means, records of any kind in one form, and lines of the
//! execution log.
//!
//! Audit events of reads.
//!
//! Writers audit themselves. Verbs that answer with records audit the read: always for kinds that belong to a
//! user (memories, sessions), and for every kind if `audit.reads = all`.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::error::message as chain;
use crate::model::{ActionType, Document, ExecutionLog, Kind, LogStatus, Record, Trust, by_kind};
use crate::store::workspace::{AuditReads, Error, Workspace, stamp};
use crate::store::{AuditAction, Entry, Scoped, Touched};

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
        Err(error @ Error::NotFound { .. }) => Err(match store.tombstone(kind, id)? {
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
            None => error,
        }),
        Err(error) => Err(error),
    }
}

/// Returns the entry of a record with exactly this id.
pub(crate) fn entry(store: &Scoped, kind: Kind, id: &str) -> Result<Entry, Error> {
    let found = store.find(kind, id)?;
    found.ok_or_else(|| Error::not_found(kind, id))
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
    Ok(serde_json::value::to_raw_value(value)?)
}

impl Workspace {
    /// Notes that records were read, where such reads are noted. What was not noted is said: the answer
    /// is given all the same, since a memory that is only read may lie where nobody can write.
    pub(crate) fn note_read<'a>(
        &self,
        records: impl IntoIterator<Item = (Kind, Touched<'a>)>,
    ) -> Option<String> {
        let all = self.settings.audit_reads == AuditReads::All;
        let noted = records
            .into_iter()
            .filter(|(kind, (id, _))| (all || kind.has_user()) && !id.is_empty());
        let noted: Vec<Touched<'_>> = noted.map(|(_, touched)| touched).collect();
        self.note_touched(&noted)
    }

    /// Audits reads of whole kinds by their number of records, if reads of all kinds are audited. Returns a
    /// warning if the event cannot be written.
    pub(crate) fn note_counted(&self, read: &[(Kind, u64)]) -> Option<String> {
        if self.settings.audit_reads != AuditReads::All {
            return None;
        }
        let read = read.iter().filter(|(_, count)| *count > 0);
        let numbers: Vec<String> = read.map(|(kind, count)| number(*kind, *count)).collect();
        let touched: Vec<Touched<'_>> = numbers.iter().map(|n| (n.as_str(), None)).collect();
        self.note_touched(&touched)
    }

    fn note_touched(&self, read: &[Touched<'_>]) -> Option<String> {
        let done = self.store.audit(AuditAction::Read, read);
        done.err()
            .map(|error| format!("this read is not in the audit: {}", chain(&error)))
    }

    /// Audits an export: records of users by id, others by number and kind. Returns a warning if the event
    /// cannot be written.
    pub(crate) fn note_exported(&self, entries: &[Entry]) -> Option<String> {
        let mut numbers: Vec<String> = Vec::new();
        for kind in Kind::ALL.into_iter().filter(|kind| !kind.has_user()) {
            let count = entries.iter().filter(|entry| entry.kind == kind).count();
            if count > 0 {
                numbers.push(number(kind, count as u64));
            }
        }
        let owned = entries.iter().filter(|entry| entry.kind.has_user());
        let owned: Vec<_> = owned.map(|e| (e.id.as_str(), e.user_id())).collect();
        let mut touched: Vec<Touched<'_>> = owned
            .iter()
            .map(|(id, user)| (*id, user.as_deref()))
            .collect();
        touched.extend(numbers.iter().map(|number| (number.as_str(), None)));
        let done = self.store.audit(AuditAction::Exported, &touched);
        done.err()
            .map(|error| format!("this export is not in the audit: {}", chain(&error)))
    }
}

/// Number and kind of audited records.
fn number(kind: Kind, count: u64) -> String {
    format!("{count} {}", kind.plural())
}
