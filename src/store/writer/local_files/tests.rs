use std::fs;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::model::{Kind, Procedure, Reflexion, Scope};
use crate::store::access::query::Selection;
use crate::store::access::scoped::Scoped;
use crate::store::audit::audit_context::AuditContext;
use crate::store::files::data_files::DataFile;
use crate::store::trust::Approvals;
use crate::store::undo_journal::step::Step;
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
        self.store
            .write(&mut || "0123456789abcdef0123456789abcdef".to_owned())
            .unwrap()
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

#[test]
fn what_is_approved_moves_to_the_shared_file_in_the_order_of_its_id() {
    let memory = Memory::new();
    for error in ["one", "two", "three"] {
        memory.learn(error);
    }
    let (first, second, third) = ("PROC-001", "PROC-002", "PROC-003");
    assert_eq!(memory.files(), [vec![], vec![first, second, third]]);
    memory.approve(third);
    memory.approve(first);
    assert_eq!(memory.files(), [vec![first, third], vec![second]]);
    memory.approve(second);
    assert_eq!(memory.files(), [vec![first, second, third], vec![]]);
    assert_eq!(memory.learn("four"), "PROC-004");
    assert_eq!(memory.listed(), [first, second, third, "PROC-004"]);
    assert_eq!(memory.store.count(Kind::Procedure).unwrap(), 4);
    let newest = Selection {
        newest: Some(2),
        ..Selection::default()
    };
    let found = memory.store.list::<Procedure>(&newest).unwrap().records;
    let ids: Vec<_> = found.iter().map(|one| one.procedure_id.as_str()).collect();
    assert_eq!(ids, [third, "PROC-004"]);
    // A shared record stays shared after any later change.
    memory
        .writer()
        .update(Kind::Procedure, first, &[("trust", "")])
        .unwrap();
    assert_eq!(memory.files()[0], [first, second, third]);
}

#[test]
fn an_approval_of_several_moves_them_together_and_each_can_move_back() {
    let memory = Memory::new();
    for error in ["one", "two", "three"] {
        memory.learn(error);
    }
    let changes = ["PROC-003", "PROC-001"].map(|id| (id.to_owned(), vec![("trust", "approved")]));
    memory
        .writer()
        .update_all(Kind::Procedure, &changes)
        .unwrap();
    assert_eq!(
        memory.files(),
        [vec!["PROC-001", "PROC-003"], vec!["PROC-002"]]
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
    drop(writer);
    assert_eq!(
        memory.files(),
        [vec!["PROC-003"], vec!["PROC-001", "PROC-002"]]
    );
}

#[test]
fn a_pulled_record_keeps_its_id_and_the_local_one_gets_another() {
    let memory = Memory::new();
    memory.learn("mine");
    memory.learn("another");
    memory.put("procedural_memory.json", &[approved("PROC-001", "theirs")]);
    // Until something is written, the shared record counts.
    assert_eq!(memory.listed(), ["PROC-001", "PROC-002"]);
    let seen = memory.store.get::<Procedure>("PROC-001").unwrap();
    assert_eq!(seen.lesson, "theirs");
    memory.writer().check(Kind::Procedure).unwrap();
    assert_eq!(
        memory.files(),
        [vec!["PROC-001"], vec!["PROC-003", "PROC-002"]]
    );
    let mine = memory.store.get::<Procedure>("PROC-003").unwrap();
    assert_eq!(mine.lesson, "mine");
    let journal = memory.store.changes().unwrap();
    assert!(
        journal
            .iter()
            .all(|line| line.step.target() != Some("PROC-001"))
    );
}

#[test]
fn what_a_crash_between_two_files_left_counts_once_and_goes() {
    let memory = Memory::new();
    memory.learn("one");
    memory.learn("two");
    memory.put("procedural_memory.json", &[approved("PROC-001", "one")]);
    assert_eq!(memory.listed(), ["PROC-001", "PROC-002"]);
    let positions = memory.store.positions(Kind::Procedure).unwrap();
    assert_eq!(positions.len(), 3);
    assert_eq!(memory.learn("three"), "PROC-003");
    assert_eq!(
        memory.files(),
        [vec!["PROC-001"], vec!["PROC-002", "PROC-003"]]
    );
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
    for (id, status) in [("REFL-001", "retired"), ("REFL-002", "active")] {
        memory
            .writer()
            .update(Kind::Reflexion, id, &[("status", status)])
            .unwrap();
    }
    assert_eq!(
        memory.ids_in(Kind::Reflexion, "reflexion_id"),
        [["REFL-002"], ["REFL-001"]]
    );
}

#[test]
fn damage_in_the_rules_keeps_no_procedure_back() {
    let memory = Memory::new();
    memory.learn("one");
    let path = memory.dir.path().join("memory/reflexion_entries.json");
    fs::write(path, "{\"entries\": [{\"reflexion_id\": 1} x").unwrap();
    assert_eq!(memory.learn("two"), "PROC-002");
    assert_eq!(memory.files()[1], ["PROC-001", "PROC-002"]);
}
