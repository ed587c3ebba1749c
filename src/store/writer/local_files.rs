//! Moves records between the local and the shared file of their kind, and updates the references to them.
//!
//! - An approved record moves to the shared file, in the order of its id: two people who approve records
//!   rarely write the same lines, so git can merge them. It gets an id there in the form of the source
//!   documents, and keeps its local one in [`LOCAL_ID`].
//! - An undo moves it back, under its local id.
//! - References follow both ways (see `rename`); `Scoped::current_id` finds the record by its old id.
//!
//! A record is written to its new file before it leaves the old one. A note names the moving records until that
//! is done, so that the next writer finishes after a crash.
//!
//! Deliberately absent: new ids for clashes, since no clone gives the id of a local record; and changes to ids
//! in sentences and in logs, whose lines are past events. A reader of a log asks
//! [`Scoped::current_id`](crate::store::Scoped::current_id).

use std::collections::{BTreeMap, HashSet};

use memctl_files::json;
use serde::{Deserialize, Serialize};

use crate::model::{IdShape, Kind, LOCAL_ID, local_number, numbered};
use crate::store::files::directory::MOVING;
use crate::store::files::tombstones;
use crate::store::renaming::{self, NewIds};
use crate::store::{
    AuditAction, DataFile, Error, Row, SMALL_FILE, Snapshot, Step, Writer, atomic,
    ignore_local_files,
};

/// A record that moves to the other file of its kind.
pub(super) struct MovingRecord {
    /// Id in the old file.
    pub(super) from: String,
    /// Id in the new file.
    pub(super) to: String,
    /// Text for the new file.
    pub(super) text: String,
}

/// Note of a move that may be unfinished.
#[derive(Debug, Serialize, Deserialize)]
struct Move {
    kind: Kind,
    /// `true` if the records move to the local file.
    is_local: bool,
    /// New ids by the old ones.
    ids: NewIds,
}

impl Writer {
    /// Moves records that are approved to the shared file of their kind, each with its text.
    pub(super) fn share(
        &mut self,
        kind: Kind,
        records: &[(&str, &str)],
    ) -> Result<Vec<MovingRecord>, Error> {
        let to = DataFile::shared(kind);
        let mut moving: Vec<MovingRecord> = Vec::new();
        for (id, text) in records {
            let given: Vec<&str> = moving.iter().map(|one| one.to.as_str()).collect();
            let new = self.shared_id(kind, id, &given)?;
            self.journal(Step::moved(to, id, &new));
            if new != *id {
                self.store().audit(AuditAction::Added, &[(&new, None)])?;
            }
            let text = if new == *id {
                (*text).to_owned()
            } else {
                let ids = [(kind.id_field(), new.as_str()), (LOCAL_ID, *id)];
                let fields = ids.map(|(name, id)| (name, format!("\"{id}\"")));
                json::with_fields(text, &fields, 6)
            };
            moving.push(MovingRecord {
                from: (*id).to_owned(),
                to: new,
                text,
            });
        }
        self.move_to(to, &moving)?;
        Ok(moving)
    }

    /// Returns the id that a local record gets in the shared file: its number if that is free, or the
    /// next one. At a primary database an id is for good.
    fn shared_id(&self, kind: Kind, id: &str, given: &[&str]) -> Result<String, Error> {
        let shared = self.store().file(DataFile::shared(kind)).snapshot()?;
        if self.is_at_primary() {
            return Ok(id.to_owned());
        }
        let own = match local_number(kind, id) {
            Some(number) => numbered(kind, number),
            None => id.to_owned(),
        };
        let mut removed = tombstones::of_kind(self.lock().directory(), kind)?;
        let is_free = !given.contains(&own.as_str()) && removed.all(|removed| removed.id != own);
        if is_free && !shared.holds(&own)? {
            return Ok(own);
        }
        let given = given.iter().filter_map(|id| IdShape::of(kind, id));
        let beside = self.highest_beside(DataFile::shared(kind))?;
        let highest = given.fold(shared.table.header.highest.max(beside), Ord::max);
        Ok(numbered(kind, highest.number + 1))
    }

    /// Moves a record to the local file of its kind or back. Returns `false` if it is not in the other
    /// one.
    pub fn move_back(&mut self, kind: Kind, id: &str, is_local: bool) -> Result<bool, Error> {
        let mut files = DataFile::of(kind);
        let (Some(to), Some(from)) = (
            files.clone().find(|file| file.is_local == is_local),
            files.find(|file| file.is_local != is_local),
        ) else {
            return Ok(false);
        };
        let snapshot = self.prepare(from)?;
        let Some((_, entry)) = self.store().find_in(&snapshot, id)? else {
            return Ok(false);
        };
        let mut counters = self.store().counters(from);
        let text = counters.shown(&entry).into_owned();
        if !is_local {
            self.store().audit(AuditAction::Edited, &[(id, None)])?;
            return self.share(kind, &[(id, &text)]).map(|_| true);
        }
        let own = json::string_field(text.as_bytes(), LOCAL_ID);
        let own = own.as_deref().unwrap_or(id).to_owned();
        let fields = [(kind.id_field(), format!("\"{own}\""))];
        let text = json::without_fields(&text, &[LOCAL_ID]);
        let back = MovingRecord {
            from: id.to_owned(),
            to: own,
            text: json::with_fields(&text, &fields, 6),
        };
        self.journal(Step::moved(to, id, &back.to));
        self.store()
            .audit(AuditAction::Edited, &[(&back.to, None)])?;
        self.move_to(to, &[back])?;
        if counters.forget(id) {
            counters.write(self.lock())?;
        }
        Ok(true)
    }

    /// Writes records to another file of their kind, and removes them from the file that they were in.
    fn move_to(&mut self, to: DataFile, records: &[MovingRecord]) -> Result<(), Error> {
        self.begin_local(to)?;
        let ids = records.iter().map(|one| (one.from.clone(), one.to.clone()));
        let note = Move {
            kind: to.kind,
            is_local: to.is_local,
            ids: ids.collect(),
        };
        atomic::replace(self.lock().directory(), MOVING, &serde_json::to_vec(&note)?)?;
        let texts: Vec<(&str, &str)> = records
            .iter()
            .map(|one| (one.to.as_str(), one.text.as_str()))
            .collect();
        self.change_file(to, |writer, snapshot| writer.insert(snapshot, &texts))?;
        self.finish_move(&note)
    }

    /// Finishes the move of an earlier writer that was interrupted.
    pub(super) fn finish_moves(&mut self) -> Result<(), Error> {
        if self.is_settled {
            return Ok(());
        }
        self.is_settled = true;
        let note = self.lock().directory().read(MOVING, SMALL_FILE);
        let Some(note) = note.ok().flatten() else {
            return Ok(());
        };
        match serde_json::from_slice(&note) {
            Ok(note) => self.finish_move(&note),
            // Nothing moves before its note is complete.
            Err(_) => atomic::remove(self.lock().directory(), MOVING),
        }
    }

    /// Removes the records that have arrived from the file that they were in.
    fn finish_move(&mut self, note: &Move) -> Result<(), Error> {
        let [mut to, mut from] = [DataFile::shared(note.kind); 2];
        (to.is_local, from.is_local) = (note.is_local, !note.is_local);
        let arrived = self.prepare(to)?;
        let mut ids = NewIds::new();
        for (old, new) in &note.ids {
            if arrived.holds(new)? {
                ids.insert(old.clone(), new.clone());
            }
        }
        let removed: HashSet<&str> = ids.keys().map(String::as_str).collect();
        self.change_file(from, |writer, snapshot| {
            let going = snapshot.of_ids(&removed)?.into_iter();
            let going: Vec<_> = going.map(|(row, _)| (row, None)).collect();
            writer.store.file(from).change(snapshot, &going)
        })?;
        self.rename(ids)?;
        atomic::remove(self.lock().directory(), MOVING)
    }

    /// Tells git to ignore the local file of a kind before its first record.
    pub(super) fn begin_local(&self, file: DataFile) -> Result<(), Error> {
        let state = self.lock().directory().state(file.name());
        if !file.is_local || state.is_ok_and(|state| state.is_some()) {
            return Ok(());
        }
        ignore_local_files(self.lock().directory()).map(drop)
    }

    /// Inserts records into a file in the order of their ids. One that is there gets the new text.
    pub(super) fn insert(
        &self,
        snapshot: &Snapshot,
        records: &[(&str, &str)],
    ) -> Result<(), Error> {
        let (file, kind) = (self.store().file(snapshot.of), snapshot.of.kind);
        let order = |id: &[u8]| IdShape::of(kind, &String::from_utf8_lossy(id));
        let mut records = records.to_vec();
        records.sort_by_key(|(id, _)| order(id.as_bytes()));
        let rows: Vec<Row> = snapshot.rows().collect();
        if rows.is_empty() {
            return file.append(snapshot, &records);
        }
        let orders: Vec<_> = rows.iter().map(|row| order(row.id())).collect();
        // New texts before a row, in its place, and behind it.
        let mut texts: BTreeMap<usize, [Vec<&str>; 3]> = BTreeMap::new();
        for (id, text) in records {
            let own = order(id.as_bytes());
            // An id of another form goes behind all.
            let earlier = |other: &Option<IdShape>| own.is_none() || *other < own;
            let there = rows.iter().position(|row| row.id() == id.as_bytes());
            let (row, part) = match (there, orders.iter().rposition(earlier)) {
                (Some(row), _) => (row, 1),
                (None, Some(row)) => (row, 2),
                (None, None) => (0, 0),
            };
            texts.entry(row).or_default()[part].push(text);
        }
        let mut changes = Vec::new();
        for (row, [before, own, behind]) in texts {
            let old = snapshot.read(&rows[row])?;
            let old = String::from_utf8_lossy(&old);
            let own = own.last().copied().unwrap_or(&old);
            let all = before.into_iter().chain([own]).chain(behind);
            changes.push((rows[row], Some(all.collect::<Vec<_>>().join(",\n    "))));
        }
        file.change(snapshot, &changes)
    }

    /// Replaces ids in the records that can refer to a local one. Damage in the files of one kind keeps
    /// no other back.
    fn rename(&mut self, mut ids: NewIds) -> Result<(), Error> {
        ids.retain(|old, new| old != new);
        if ids.is_empty() {
            return Ok(());
        }
        let kinds = DataFile::ALL.into_iter().filter(|file| file.is_local);
        for kind in kinds.map(|file| file.kind) {
            for file in DataFile::of(kind) {
                match self.change_file(file, |writer, snapshot| writer.rename_in(snapshot, &ids)) {
                    Ok(()) | Err(Error::Damaged(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn rename_in(&self, snapshot: &Snapshot, ids: &NewIds) -> Result<(), Error> {
        let mut changes = Vec::new();
        for row in snapshot.rows() {
            let text = snapshot.read(&row)?;
            let text = String::from_utf8_lossy(&text);
            let new = renaming::with_new_ids(&text, ids);
            changes.extend(new.map(|new| (row, Some(new))));
        }
        self.store().file(snapshot.of).change(snapshot, &changes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use chrono::{DateTime, Utc};
    use serde_json::{Value, json};

    use crate::model::{Kind, Procedure, Reflexion, Scope};
    use crate::store::AuditContext;
    use crate::store::access::Scoped;
    use crate::store::access::query::Selection;
    use crate::store::files::inventory::DataFile;
    use crate::store::trust::Approvals;
    use crate::store::undo_journal::Step;
    use crate::store::writer::Writer;

    struct Memory {
        dir: tempfile::TempDir,
        store: Scoped,
    }

    const AT: &str = "2026-01-02T03:04:05Z";

    impl Memory {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let store = Scoped::new(dir.path().join("memory"), Scope::All)
                .trusting(Approvals::of(
                    Some(&dir.path().join("state")),
                    &dir.path().join("memory"),
                    false,
                ))
                .acting(AuditContext {
                    change: "00000000000a".to_owned(),
                    at: AT.to_owned(),
                    ..AuditContext::default()
                });
            fs::create_dir(dir.path().join("memory")).unwrap();
            Self { dir, store }
        }

        fn writer(&self) -> Writer {
            self.store.write(&mut || "k3v9q2".to_owned()).unwrap()
        }

        fn put(&self, name: &str, entries: &[Value]) {
            let text = json!({ "entries": entries }).to_string();
            fs::write(self.dir.path().join("memory").join(name), text).unwrap();
        }

        /// Adds a procedure and returns its id.
        fn learn(&self, error: &str) -> String {
            let now: DateTime<Utc> = AT.parse().unwrap();
            let learned: Procedure = serde_json::from_value(observed("", error)).unwrap();
            self.writer().append(learned, now).unwrap().procedure_id
        }

        fn approve(&self, id: &str) {
            let changes = [("trust", "approved")];
            self.writer().update(Kind::Procedure, id, &changes).unwrap();
        }

        /// Ids in the shared and in the local file, in their order.
        fn files(&self) -> [Vec<String>; 2] {
            self.ids_in(Kind::Procedure, "procedure_id")
        }

        fn ids_in(&self, kind: Kind, field: &str) -> [Vec<String>; 2] {
            let [shared, local] = [0, 1].map(|at| {
                let file = DataFile::of(kind).nth(at).unwrap();
                let path = self.dir.path().join("memory").join(file.name());
                let text = fs::read_to_string(path).unwrap_or_else(|_| "{}".to_owned());
                let file: Value = serde_json::from_str(&text).unwrap();
                let entries = file["entries"].as_array().cloned().unwrap_or_default();
                let ids = entries.iter().map(|entry| entry[field].as_str().unwrap());
                ids.map(str::to_owned).collect()
            });
            [shared, local]
        }

        fn listed(&self) -> Vec<String> {
            let mut ids = Vec::new();
            let all = Selection::default();
            let visit = &mut |entry: crate::store::Entry| ids.push(entry.id);
            self.store.each_entry(Kind::Procedure, &all, visit).unwrap();
            ids
        }
    }

    fn observed(id: &str, error: &str) -> Value {
        json!({ "procedure_id": id, "lesson": error, "trust": "observed", "data": {},
        "created_at": format!("{AT} {error}") })
    }

    fn approved(id: &str, error: &str) -> Value {
        let mut procedure = observed(id, error);
        procedure["trust"] = "approved".into();
        procedure
    }

    /// Id of a record that only this machine has.
    fn local(number: u32) -> String {
        format!("PROC-{number:03}-k3v9q2")
    }

    #[test]
    fn approved_record_gets_a_shared_id_and_keeps_its_number() {
        let memory = Memory::new();
        for error in ["one", "two", "three"] {
            memory.learn(error);
        }
        let (first, second, third) = ("PROC-001", "PROC-002", "PROC-003");
        assert_eq!(memory.files(), [vec![], vec![local(1), local(2), local(3)]]);
        memory.approve(&local(3));
        memory.approve(&local(1));
        assert_eq!(
            memory.files(),
            [vec![first.to_owned(), third.to_owned()], vec![local(2)]]
        );
        memory.approve(&local(2));
        assert_eq!(memory.files(), [vec![first, second, third], vec![]]);
        assert_eq!(memory.learn("four"), local(4));
        let fourth = local(4);
        assert_eq!(memory.listed(), [first, second, third, &fourth]);
        assert_eq!(memory.store.count(Kind::Procedure).unwrap(), 4);
        let newest = Selection {
            newest: Some(2),
            ..Selection::default()
        };
        let found = memory.store.list::<Procedure>(&newest).unwrap().records;
        let ids: Vec<_> = found.iter().map(|one| one.procedure_id.as_str()).collect();
        assert_eq!(ids, [third, &fourth]);
        // A shared record stays shared after any later change.
        memory
            .writer()
            .update(Kind::Procedure, first, &[("trust", "")])
            .unwrap();
        assert_eq!(memory.files()[0], [first, second, third]);
    }

    #[test]
    fn the_old_id_finds_the_record_that_was_approved_and_what_refers_to_it_follows() {
        let memory = Memory::new();
        memory.put("procedural_memory.json", &[approved("PROC-001", "theirs")]);
        memory.learn("mine");
        memory.learn("newer");
        // As a pull of git brings it afterwards.
        let theirs = [approved("PROC-001", "theirs"), approved("PROC-002", "more")];
        memory.put("procedural_memory.json", &theirs);
        let replaced = [("superseded_by", local(2))];
        memory
            .writer()
            .update(Kind::Procedure, &local(3), &replaced)
            .unwrap();
        assert_eq!(memory.listed().len(), 4);
        memory.approve(&local(2));
        let own = memory.store.get::<Procedure>(&local(2)).unwrap();
        assert_eq!(
            (own.procedure_id.as_str(), own.lesson.as_str()),
            ("PROC-004", "mine")
        );
        let older = memory.store.get::<Procedure>(&local(3)).unwrap();
        assert_eq!(older.superseded_by, "PROC-004");
        assert_eq!(
            memory
                .store
                .resolve(Kind::Procedure, &local(2), None)
                .unwrap(),
            "PROC-004"
        );
        // A change by the old id is one of the record.
        let changes = [(local(2), vec![("lesson", "mended")])];
        memory
            .writer()
            .update_all(Kind::Procedure, &changes)
            .unwrap();
        assert_eq!(
            memory.store.get::<Procedure>("PROC-004").unwrap().lesson,
            "mended"
        );
        assert_eq!(
            memory.store.get::<Procedure>("PROC-002").unwrap().lesson,
            "more"
        );
    }

    #[test]
    fn an_approval_of_several_moves_them_together_and_each_can_move_back() {
        let memory = Memory::new();
        for error in ["one", "two", "three"] {
            memory.learn(error);
        }
        let before = fs::read(
            memory
                .dir
                .path()
                .join("memory/procedural_memory.local.json"),
        )
        .unwrap();
        let changes = [3, 1].map(|number| (local(number), vec![("trust", "approved")]));
        memory
            .writer()
            .update_all(Kind::Procedure, &changes)
            .unwrap();
        assert_eq!(
            memory.files(),
            [
                vec!["PROC-001".to_owned(), "PROC-003".to_owned()],
                vec![local(2)]
            ]
        );
        let moved: Vec<_> = memory
            .store
            .changes()
            .unwrap()
            .into_iter()
            .filter(|line| matches!(line.step, Step::Moved { local: false, .. }))
            .collect();
        assert_eq!(moved.len(), 2);
        let mut writer = memory.writer();
        assert!(writer.move_back(Kind::Procedure, "PROC-001", true).unwrap());
        assert!(!writer.move_back(Kind::Procedure, "PROC-001", true).unwrap());
        assert!(!writer.move_back(Kind::Memory, "MEM-001", true).unwrap());
        assert!(writer.move_back(Kind::Procedure, "PROC-003", true).unwrap());
        for number in [1, 3] {
            let observed = [("trust", "observed")];
            writer
                .update(Kind::Procedure, &local(number), &observed)
                .unwrap();
        }
        drop(writer);
        assert_eq!(memory.files(), [vec![], vec![local(1), local(2), local(3)]]);
        let after = fs::read(
            memory
                .dir
                .path()
                .join("memory/procedural_memory.local.json"),
        )
        .unwrap();
        assert_eq!(after, before);
    }

    #[test]
    fn a_pulled_record_and_a_local_one_never_have_one_id() {
        let memory = Memory::new();
        memory.learn("mine");
        memory.put("procedural_memory.json", &[approved("PROC-001", "theirs")]);
        assert_eq!(memory.listed(), ["PROC-001".to_owned(), local(1)]);
        let lesson = |id: &str| memory.store.get::<Procedure>(id).unwrap().lesson;
        assert_eq!(
            (lesson("PROC-001"), lesson(&local(1))),
            ("theirs".into(), "mine".into())
        );
        memory.writer().check(Kind::Procedure).unwrap();
        let problems = memory.store.inspect(Kind::Procedure, &mut |_| {});
        assert_eq!(problems.unwrap(), []);
        assert_eq!(
            memory.files(),
            [vec!["PROC-001".to_owned()], vec![local(1)]]
        );
    }

    #[test]
    fn a_move_that_a_crash_interrupted_is_finished_by_the_next_writer() {
        let memory = Memory::new();
        memory.learn("one");
        memory.learn("two");
        let mut moved = approved("PROC-001", "one");
        moved["local_id"] = local(1).into();
        memory.put("procedural_memory.json", &[moved]);
        let note = json!({ "kind": "procedure", "is_local": false,
        "ids": { local(1): "PROC-001", local(2): "PROC-002" } });
        let path = memory.dir.path().join("memory/moving.local.json");
        fs::write(&path, note.to_string()).unwrap();
        assert_eq!(memory.learn("three"), local(3));
        // The second had not arrived.
        assert_eq!(
            memory.files(),
            [vec!["PROC-001".to_owned()], vec![local(2), local(3)]]
        );
        assert!(!path.exists());
    }

    #[test]
    fn a_rejected_candidate_stays_and_an_approved_one_moves() {
        let memory = Memory::new();
        let now: DateTime<Utc> = AT.parse().unwrap();
        for rule in ["Write dates as ISO 8601.", "Use pnpm."] {
            let rule: Reflexion = serde_json::from_value(json!({
                "reflexion_id": "", "skill": "a/b", "rule": rule, "status": "candidate",
                "created_at": AT
            }))
            .unwrap();
            memory.writer().append(rule, now).unwrap();
        }
        for (number, status) in [(1, "retired"), (2, "active")] {
            let id = format!("REFL-{number:03}-k3v9q2");
            memory
                .writer()
                .update(Kind::Reflexion, &id, &[("status", status)])
                .unwrap();
        }
        assert_eq!(
            memory.ids_in(Kind::Reflexion, "reflexion_id"),
            [["REFL-002"], ["REFL-001-k3v9q2"]]
        );
    }

    #[test]
    fn damage_in_the_rules_keeps_no_procedure_back() {
        let memory = Memory::new();
        memory.learn("one");
        let path = memory.dir.path().join("memory/reflexion_entries.json");
        fs::write(path, "{\"entries\": [{\"reflexion_id\": 1} x").unwrap();
        assert_eq!(memory.learn("two"), local(2));
        memory.approve(&local(1));
        assert_eq!(
            memory.files(),
            [vec!["PROC-001".to_owned()], vec![local(2)]]
        );
    }
}
