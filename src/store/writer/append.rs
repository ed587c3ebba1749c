//! Adding of records, with ids from the store.

use chrono::{DateTime, Utc};

use crate::json;
use crate::model::{self, IdShape, Kind, Record, Reflexion};
use crate::store::access::scoped::Scoped;
use crate::store::audit::audit_event::AuditAction;
use crate::store::error::Error;
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data::json_write::NewEntry;
use crate::store::trust::acts;
use crate::store::undo_journal::step::Step;

use super::Writer;

impl Writer {
    /// Adds a record and returns it as stored, with its id. A record with an id keeps it; fails if
    /// it is taken. On return the record is on disk.
    pub fn append<R: Record>(&mut self, mut record: R, now: DateTime<Utc>) -> Result<R, Error> {
        if !self.store.access().covers_skill(R::KIND, record.skill()) {
            let what = record.skill().unwrap_or(R::KIND.name()).to_owned();
            return Err(Error::OutOfScope { what });
        }
        self.claim(&mut record)?;
        let mut own = Numbered {
            is_given: !record.id().is_empty(),
            written: None,
        };
        self.redone(R::KIND, |writer, snapshot| {
            writer.append_to(snapshot, &mut record, &mut own, now)
        })?;
        if record.trust() != model::Trust::Observed {
            self.vouch(R::KIND, record.id())?;
        }
        Ok(record)
    }

    fn append_to<R: Record>(
        &mut self,
        snapshot: &Snapshot,
        record: &mut R,
        own: &mut Numbered,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        if let Some(text) = own.written.take()
            && self.is_there(snapshot, R::KIND, record.id(), &text)?
        {
            // Another program has saved the record that it found here.
            let (kind, id) = (R::KIND, record.id().to_owned());
            self.journal(Step::Added { kind, id });
            return Ok(());
        }
        if !own.is_given {
            record.set_id(free_id(snapshot, R::KIND, now)?);
        } else if Scoped::holds(snapshot, R::KIND, record.id())? {
            return Err(Error::Exists {
                id: record.id().to_owned(),
            });
        }
        let (text, is_less) = self.redacted(record)?;
        if is_less {
            // Return the record as stored.
            *record = serde_json::from_str(&text)?;
            self.claim(record)?;
        }
        let text = json::pretty(&text, 2);
        let skill = record.skill().unwrap_or_default();
        let (kind, id) = (R::KIND, record.id().to_owned());
        self.note(
            Step::Added { kind, id },
            AuditAction::Added,
            record.user_id(),
        )?;
        let entry = NewEntry {
            text: &text,
            id: record.id(),
            skill,
        };
        self.send(kind, &[(record.id(), &text)])?;
        let done = self.store.file(kind).append(snapshot, &[entry]);
        if matches!(done, Err(Error::Changing { .. })) {
            own.written = Some(text);
        }
        self.followed(done)
    }

    /// Returns `true` if the file already holds the record, in any layout.
    fn is_there(
        &self,
        snapshot: &Snapshot,
        kind: Kind,
        id: &str,
        text: &str,
    ) -> Result<bool, Error> {
        let Some((_, entry)) = self.store.find_in(snapshot, kind, id)? else {
            return Ok(false);
        };
        let value = serde_json::from_slice::<serde_json::Value>;
        Ok(match (value(&entry.text), value(text.as_bytes())) {
            (Ok(there), Ok(own)) => there == own,
            _ => entry.text == text.as_bytes(),
        })
    }

    /// Records that this user vouches for the current text of a record. It then counts as theirs in
    /// every copy of the workspace on this machine. Does nothing for kinds that do not act on an
    /// agent.
    pub fn vouch(&mut self, kind: Kind, id: &str) -> Result<(), Error> {
        if !acts(kind) {
            return Ok(());
        }
        match (&self.key, self.store.find(kind, id)?) {
            (Some(key), Some(entry)) => self.store.approvals().approve_with(key, &[entry]),
            _ => Ok(()),
        }
    }

    /// Confirms the current check of a rule, so that it acts on calls.
    pub fn confirm_check(&mut self, id: &str) -> Result<(), Error> {
        match (&self.key, self.store.find(Kind::Reflexion, id)?) {
            (Some(key), Some(entry)) => {
                let rule: Reflexion = entry.parse()?;
                self.store.approvals().confirm_check(key, &rule)
            }
            _ => Ok(()),
        }
    }

    /// Assigns a record to the viewer. Fails if it belongs to another user.
    fn claim<R: Record>(&self, record: &mut R) -> Result<(), Error> {
        let viewer = self.store.viewer();
        if R::KIND.has_user()
            && let Some(own) = viewer.user_id().filter(|_| record.user_id().is_none())
        {
            record.set_user_id(own);
        }
        if R::KIND.has_user() && !viewer.sees(record.user_id()) {
            let what = record.user_id().unwrap_or(R::KIND.name()).to_owned();
            return Err(Error::OutOfScope { what });
        }
        Ok(())
    }
}

/// A record to be written.
struct Numbered {
    /// `true` if the caller has chosen its id.
    is_given: bool,
    /// Text of an attempt that was not found in the file afterwards.
    written: Option<String>,
}

/// Returns the next id, from the table's header; scans only if the clock went back.
fn free_id(snapshot: &Snapshot, kind: Kind, now: DateTime<Utc>) -> Result<String, Error> {
    let highest = snapshot.table.header.highest;
    if !kind.is_timestamped() {
        return Ok(model::numbered(kind, highest.number + 1));
    }
    let plain = model::timestamped(kind, now, 1);
    let shape = IdShape::of(kind, &plain).unwrap_or_default();
    if shape > highest {
        return Ok(plain);
    }
    if shape.number == highest.number {
        return Ok(model::timestamped(kind, now, highest.suffix + 1));
    }
    let mut taken = 0;
    snapshot.each(false, &mut |row| {
        let id = String::from_utf8_lossy(row.id());
        if let Some(other) = IdShape::of(kind, &id)
            && other.number == shape.number
        {
            taken = taken.max(other.suffix);
        }
        true
    })?;
    Ok(model::timestamped(kind, now, taken + 1))
}
