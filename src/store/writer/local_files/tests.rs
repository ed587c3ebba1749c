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
    let ids = memory.store.all_ids("PROC-004").unwrap();
    assert!(ids.contains(&local(2)), "{ids:?}");
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
