//! Record to add, with its caller and what became of it.
//!
//! Ids for records to add.
//!
//! Digests of the entries of a file, for requests that look for an equal one.
//!
//! Only entries that came since the last look are read. A file that was replaced is read again. The
//! caller gets no text, so that entries of other users stay hidden: a digest that is known only says
//! that it pays to search.
//!
//! Deliberately absent: exactness. Two texts may have one digest, and an entry may be expired or
//! belong to somebody else.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use memctl_files::json;

use crate::model;
use crate::model::{IdShape, Kind, Record, Trust};
use crate::store::access::scoped::Scoped;
use crate::store::error::Error;
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data::offsets::Header;
use crate::store::files::data_files::DataFile;
use crate::store::redaction::redact;

/// Record to add, of any type.
pub(crate) trait Addition {
    fn kind(&self) -> Kind;
    /// Returns the file that it is added to.
    fn file(&self) -> DataFile;
    /// Returns the store of the caller, with their access and audit context.
    fn store(&self) -> &Scoped;
    /// Returns the id; empty until one is assigned.
    fn id(&self) -> &str;
    /// Returns `true` if the caller has chosen the id.
    fn is_numbered(&self) -> bool;
    fn number(&mut self, id: String);
    fn skill(&self) -> &str;
    fn user_id(&self) -> Option<&str>;
    fn now(&self) -> DateTime<Utc>;
    /// Returns `true` if the record counts as this user's own word.
    fn is_own_word(&self) -> bool;
    /// Returns the text for the file, and leaves the record as it is stored.
    fn text(&mut self) -> Result<String, Error>;
    /// Returns `true` if an entry says the same, so that nothing is to be added.
    fn repeats(&self, entry: &[u8]) -> bool;
    /// Position up to which the caller knows that no entry says the same.
    fn compared(&self) -> Option<Compared>;
    fn state(&mut self) -> &mut State;
}

/// Progress of an addition.
#[derive(Debug, Default)]
pub(crate) enum State {
    #[default]
    Waiting,
    /// The text was written and then not found, because another program saved the file.
    Unsure(String),
    Refused(Error),
    Repeated,
}

/// State of a file at which it was searched for an entry that says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    generation: u64,
    end: u64,
}

impl Compared {
    pub(super) fn of(header: &Header) -> Self {
        Self {
            generation: header.generation,
            end: header.tail,
        }
    }

    /// Returns the position behind which entries came until `now`; `None` if the file was replaced.
    pub(super) fn until(self, now: Self) -> Option<u64> {
        let is_longer = self.generation == now.generation && self.end <= now.end;
        is_longer.then_some(self.end)
    }
}

/// Returns `true` for the JSON text of an entry that says the same.
pub type Repeats = dyn Fn(&[u8]) -> bool + Send;

/// Condition on which a record is not added.
pub struct SkipCondition {
    /// State of the file in which no entry said the same.
    pub compared: Compared,
    /// Comparison with the record.
    pub repeats: Box<Repeats>,
}

/// Record of one type to add.
pub(crate) struct New<R> {
    pub(crate) record: R,
    pub(crate) state: State,
    /// Kinds of secrets redacted from it.
    pub(crate) left_out: Vec<&'static str>,
    file: DataFile,
    store: Scoped,
    unless: Option<SkipCondition>,
    is_numbered: bool,
    now: DateTime<Utc>,
}

impl<R: Record> New<R> {
    /// Checks that the caller of `store` may add the record.
    pub(crate) fn of(
        store: Scoped,
        mut record: R,
        now: DateTime<Utc>,
        unless: Option<SkipCondition>,
    ) -> Result<Self, Error> {
        if !store.access().covers_skill(R::KIND, record.skill()) {
            let what = record.skill().unwrap_or(R::KIND.name()).to_owned();
            return Err(Error::OutOfScope { what });
        }
        claim(&store, &mut record)?;
        let text = serde_json::to_vec(&record)?;
        Ok(Self {
            file: DataFile::for_record(R::KIND, &text),
            is_numbered: !record.id().is_empty(),
            record,
            state: State::default(),
            left_out: Vec::new(),
            store,
            unless,
            now,
        })
    }
}

impl<R: Record> Addition for New<R> {
    fn kind(&self) -> Kind {
        R::KIND
    }

    fn file(&self) -> DataFile {
        self.file
    }

    fn store(&self) -> &Scoped {
        &self.store
    }

    fn id(&self) -> &str {
        self.record.id()
    }

    fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    fn number(&mut self, id: String) {
        self.record.set_id(id);
    }

    fn skill(&self) -> &str {
        self.record.skill().unwrap_or_default()
    }

    fn user_id(&self) -> Option<&str> {
        self.record.user_id()
    }

    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    fn is_own_word(&self) -> bool {
        self.record.trust() != Trust::Observed
    }

    fn text(&mut self) -> Result<String, Error> {
        let text = serde_json::to_string(&self.record)?;
        let redacted = redact(&text);
        if !redacted.found.is_empty() {
            self.record = serde_json::from_str(&redacted.text)?;
            claim(&self.store, &mut self.record)?;
        }
        let text = json::pretty(&redacted.text, 2);
        self.left_out.extend(redacted.found);
        Ok(text)
    }

    fn repeats(&self, entry: &[u8]) -> bool {
        let unless = self.unless.as_ref();
        unless.is_some_and(|unless| (unless.repeats)(entry))
    }

    fn compared(&self) -> Option<Compared> {
        self.unless.as_ref().map(|unless| unless.compared)
    }

    fn state(&mut self) -> &mut State {
        &mut self.state
    }
}

/// Assigns a record to the viewer. Fails if it belongs to another user.
fn claim<R: Record>(store: &Scoped, record: &mut R) -> Result<(), Error> {
    let viewer = store.viewer();
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

/// Free ids of a kind.
pub(super) struct FreeIds<'a> {
    snapshot: &'a Snapshot,
    kind: Kind,
    highest: IdShape,
    /// Highest suffix of each time that an id was assigned for.
    assigned: HashMap<u64, u32>,
    /// Random word of the ids; `None` for ids that clones give, too.
    word: Option<&'a str>,
}

impl<'a> FreeIds<'a> {
    /// `beside` is the highest id in other files of the kind.
    pub(super) fn of(
        snapshot: &'a Snapshot,
        kind: Kind,
        beside: IdShape,
        word: Option<&'a str>,
    ) -> Self {
        let highest = snapshot.table.header.highest.max(beside);
        Self {
            snapshot,
            kind,
            highest,
            assigned: HashMap::new(),
            word,
        }
    }

    /// Returns the next id, from the table's header; scans only if the clock went back.
    pub(super) fn next(&mut self, now: DateTime<Utc>) -> Result<String, Error> {
        let (kind, highest) = (self.kind, self.highest);
        if !kind.is_timestamped() {
            self.highest.number += 1;
            let number = self.highest.number;
            return Ok(match self.word {
                Some(word) => model::local(kind, number, word),
                None => model::numbered(kind, number),
            });
        }
        let plain = model::timestamped(kind, now, 1);
        let shape = IdShape::of(kind, &plain).unwrap_or_default();
        let taken = if shape > highest {
            0
        } else if shape.number == highest.number {
            highest.suffix
        } else if let Some(assigned) = self.assigned.get(&shape.number) {
            *assigned
        } else {
            self.taken(shape.number)?
        };
        let suffix = taken + 1;
        self.assigned.insert(shape.number, suffix);
        self.highest = highest.max(IdShape { suffix, ..shape });
        Ok(model::timestamped(kind, now, suffix))
    }

    /// Returns the highest suffix of a time; 0 if its id is free.
    fn taken(&self, number: u64) -> Result<u32, Error> {
        let mut taken = 0;
        self.snapshot.each(false, &mut |row| {
            let id = String::from_utf8_lossy(row.id());
            if let Some(other) = IdShape::of(self.kind, &id)
                && other.number == number
            {
                taken = taken.max(other.suffix);
            }
            true
        })?;
        Ok(taken)
    }
}

/// Digests of the entries of the shared file of one kind.
#[derive(Debug, Default)]
pub struct SeenEntries(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    compared: Option<Compared>,
    digests: HashSet<u64>,
}

impl SeenEntries {
    /// Returns `true` if an entry may have this digest, and the state of the file that this holds
    /// for. `digest_of` computes the digest of an entry's text.
    pub fn may_hold(
        &self,
        store: &Scoped,
        kind: Kind,
        digest: u64,
        digest_of: &dyn Fn(&[u8]) -> Option<u64>,
    ) -> Result<(bool, Compared), Error> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = store.file(DataFile::shared(kind)).snapshot()?;
        let now = Compared::of(&snapshot.table.header);
        let from = seen.compared.and_then(|before| before.until(now));
        if from.is_none() {
            seen.digests.clear();
        }
        let from = from.unwrap_or(0);
        let mut failed = None;
        snapshot.each(true, &mut |row| {
            if row.at < from {
                return false;
            }
            match snapshot.read(row) {
                Ok(entry) => seen.digests.extend(digest_of(&entry)),
                Err(error) => failed = Some(error),
            }
            failed.is_none()
        })?;
        if let Some(error) = failed {
            *seen = Seen::default();
            return Err(error);
        }
        seen.compared = Some(now);
        Ok((seen.digests.contains(&digest), now))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use crate::model::{Memory, Scope};

    use super::*;

    #[test]
    fn only_what_came_since_is_read_unless_the_file_was_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let path = dir.path().join(Kind::Memory.file());
        let entries = |numbers: std::ops::Range<u64>| {
            let entry = |n| format!(r#"    {{"id": "MEM-{n:03}", "content": "{n:01000}"}}"#);
            let entries: Vec<String> = numbers.map(entry).collect();
            format!("{{\n  \"entries\": [\n{}\n  ]\n}}\n", entries.join(",\n"))
        };
        let seen = SeenEntries::default();
        let read = Cell::new(0);
        let holds = |digest| {
            read.set(0);
            let digest_of = |entry: &[u8]| {
                read.set(read.get() + 1);
                let content = json::string_field(entry, "content")?;
                content.parse().ok()
            };
            let (is_likely, _) = seen
                .may_hold(&store, Kind::Memory, digest, &digest_of)
                .unwrap();
            (is_likely, read.get())
        };
        assert_eq!(holds(7), (false, 0));
        // Files of this size have a table of offsets, which knows that one only grew.
        fs::write(&path, entries(0..100)).unwrap();
        assert_eq!(holds(7), (true, 100));
        assert_eq!(holds(100), (false, 0));
        let add = |content: &str| {
            let json = format!(
                r#"{{"id": "", "memory_type": "task_memory", "content": "{content}",
                    "metadata": {{}}, "created_at": "", "updated_at": ""}}"#
            );
            let memory: Memory = serde_json::from_str(&json).unwrap();
            let random = &mut || "0123456789abcdef".to_owned();
            let mut writer = store.write(random).unwrap();
            writer.append(memory, Utc::now()).unwrap();
        };
        // The first writer makes the file private, which changes its state.
        add("100");
        assert!(holds(100).0);
        add("101");
        assert_eq!(holds(101), (true, 1));
        fs::write(&path, entries(50..120)).unwrap();
        assert_eq!(holds(7), (false, 70));
        assert_eq!(holds(119), (true, 0));
    }
}
