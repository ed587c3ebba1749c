use std::fs;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::model::{Fix, Kind, Procedure, Reflexion, Scope};
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

    /// Adds a fix and returns its id.
    fn learn(&self, error: &str) -> String {
        let now: DateTime<Utc> = AT.parse().unwrap();
        let fix: Fix = serde_json::from_value(fix("", error)).unwrap();
        self.writer().append(fix, now).unwrap().fix_id
    }

    fn approve(&self, id: &str) {
        let changes = [("trust", "approved")];
        self.writer().update(Kind::Fix, id, &changes).unwrap();
    }

    /// Ids in the shared and in the local file, in their order.
    fn files(&self) -> [Vec<String>; 2] {
        self.ids_in(Kind::Fix, "fix_id")
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
        self.store.each_entry(Kind::Fix, &all, visit).unwrap();
        ids
    }
}

fn fix(id: &str, error: &str) -> Value {
    json!({ "fix_id": id, "error_key": error, "failing_code": "a", "working_code": "b",
        "created_at": format!("{AT} {error}") })
}

fn approved(id: &str, error: &str) -> Value {
    let mut fix = fix(id, error);
    fix["trust"] = "approved".into();
    fix
}

#[test]
fn what_is_approved_moves_to_the_shared_file_in_the_order_of_its_id() {
    let memory = Memory::new();
    for error in ["one", "two", "three"] {
        memory.learn(error);
    }
    let (first, second, third) = ("FIX-001", "FIX-002", "FIX-003");
    assert_eq!(memory.files(), [vec![], vec![first, second, third]]);
    memory.approve(third);
    memory.approve(first);
    assert_eq!(memory.files(), [vec![first, third], vec![second]]);
    memory.approve(second);
    assert_eq!(memory.files(), [vec![first, second, third], vec![]]);
    assert_eq!(memory.learn("four"), "FIX-004");
    assert_eq!(memory.listed(), [first, second, third, "FIX-004"]);
    assert_eq!(memory.store.count(Kind::Fix).unwrap(), 4);
    let newest = Selection {
        newest: Some(2),
        ..Selection::default()
    };
    let fixes = memory.store.list::<Fix>(&newest).unwrap().records;
    let ids: Vec<_> = fixes.iter().map(|fix| fix.fix_id.as_str()).collect();
    assert_eq!(ids, [third, "FIX-004"]);
    // A shared record stays shared after any later change.
    memory
        .writer()
        .update(Kind::Fix, first, &[("trust", "")])
        .unwrap();
    assert_eq!(memory.files()[0], [first, second, third]);
}

#[test]
fn an_approval_of_several_moves_them_together_and_each_can_move_back() {
    let memory = Memory::new();
    for error in ["one", "two", "three"] {
        memory.learn(error);
    }
    let changes = ["FIX-003", "FIX-001"].map(|id| (id.to_owned(), vec![("trust", "approved")]));
    memory.writer().update_all(Kind::Fix, &changes).unwrap();
    assert_eq!(
        memory.files(),
        [vec!["FIX-001", "FIX-003"], vec!["FIX-002"]]
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
    assert!(writer.move_back(Kind::Fix, "FIX-001", true).unwrap());
    assert!(!writer.move_back(Kind::Fix, "FIX-001", true).unwrap());
    assert!(!writer.move_back(Kind::Memory, "MEM-001", true).unwrap());
    drop(writer);
    assert_eq!(
        memory.files(),
        [vec!["FIX-003"], vec!["FIX-001", "FIX-002"]]
    );
}

#[test]
fn the_records_of_an_earlier_version_move_with_the_first_one_that_is_added() {
    let memory = Memory::new();
    let old = [
        fix("FIX-001", "old"),
        approved("FIX-002", "good"),
        fix("FIX-007", "older"),
    ];
    memory.put("fixes.json", &old);
    memory.approve("FIX-001");
    assert_eq!(memory.files()[0], ["FIX-001", "FIX-002", "FIX-007"]);
    fs::write(memory.dir.path().join("memory/.gitignore"), "mine").unwrap();
    assert_eq!(memory.learn("new"), "FIX-008");
    assert_eq!(
        memory.files(),
        [vec!["FIX-001", "FIX-002"], vec!["FIX-007", "FIX-008"]]
    );
    // The procedure of an approved fix stays where others find it.
    let mut good = approved("FIX-002", "good");
    good["procedure_id"] = "PROC-001".into();
    memory.put("fixes.json", &[approved("FIX-001", "old"), good]);
    let procedure =
        |id: &str| json!({ "procedure_id": id, "created_at": AT, "data": {}, "trust": "observed" });
    let procedures = ["PROC-001", "PROC-002"].map(procedure);
    memory.put("procedural_memory.json", &procedures);
    let new: Procedure = serde_json::from_value(procedure("")).unwrap();
    memory.writer().append(new, AT.parse().unwrap()).unwrap();
    assert_eq!(
        memory.ids_in(Kind::Procedure, "procedure_id"),
        [vec!["PROC-001"], vec!["PROC-002", "PROC-003"]]
    );
    let ignored = fs::read_to_string(memory.dir.path().join("memory/.gitignore")).unwrap();
    assert!(ignored.starts_with("mine\n"), "{ignored}");
    assert!(ignored.contains("\n*.local.json\n"), "{ignored}");
    // The move is a change of its own, which can be reverted without the record that was learned.
    let changes = memory.store.changes().unwrap();
    let of = |id: &str| {
        let line = changes.iter().rfind(|line| line.step.target() == Some(id));
        line.unwrap().change.clone()
    };
    assert_ne!(of("FIX-007"), of("FIX-008"));
    assert!(
        memory
            .writer()
            .move_back(Kind::Fix, "FIX-007", false)
            .unwrap()
    );
    assert_eq!(memory.learn("newer"), "FIX-009");
    assert_eq!(memory.files()[0], ["FIX-001", "FIX-002", "FIX-007"]);
}

#[test]
fn a_pulled_record_keeps_its_id_and_the_local_one_gets_another() {
    let memory = Memory::new();
    let now: DateTime<Utc> = AT.parse().unwrap();
    let procedure: Procedure = serde_json::from_value(json!({
        "procedure_id": "", "trust": "observed", "created_at": AT, "data": {}
    }))
    .unwrap();
    let procedure = memory.writer().append(procedure, now).unwrap();
    let mut mine = fix("", "mine");
    mine["procedure_id"] = procedure.procedure_id.into();
    let mine: Fix = serde_json::from_value(mine).unwrap();
    memory.writer().append(mine, now).unwrap();
    memory.learn("another");
    memory.put("fixes.json", &[approved("FIX-001", "theirs")]);
    let theirs = json!({ "procedure_id": "PROC-001", "trust": "approved",
        "created_at": "2026-01-01T00:00:00Z", "data": {} });
    memory.put("procedural_memory.json", &[theirs]);
    // Until something is written, the shared record counts.
    assert_eq!(memory.listed(), ["FIX-001", "FIX-002"]);
    let seen = memory.store.get::<Fix>("FIX-001").unwrap();
    assert_eq!(seen.error_key, "theirs");
    memory.writer().check(Kind::Fix).unwrap();
    assert_eq!(
        memory.files(),
        [vec!["FIX-001"], vec!["FIX-003", "FIX-002"]]
    );
    let mine = memory.store.get::<Fix>("FIX-003").unwrap();
    assert_eq!(
        (&*mine.error_key, &*mine.procedure_id),
        ("mine", "PROC-002")
    );
    assert_eq!(
        memory.ids_in(Kind::Procedure, "procedure_id"),
        [["PROC-001"], ["PROC-002"]]
    );
    let journal = memory.store.changes().unwrap();
    assert!(
        journal
            .iter()
            .all(|line| line.step.target() != Some("FIX-001"))
    );
}

#[test]
fn what_a_crash_between_two_files_left_counts_once_and_goes() {
    let memory = Memory::new();
    memory.learn("one");
    memory.learn("two");
    memory.put("fixes.json", &[approved("FIX-001", "one")]);
    assert_eq!(memory.listed(), ["FIX-001", "FIX-002"]);
    let positions = memory.store.positions(Kind::Fix).unwrap();
    assert_eq!(positions.len(), 3);
    assert_eq!(memory.learn("three"), "FIX-003");
    assert_eq!(
        memory.files(),
        [vec!["FIX-001"], vec!["FIX-002", "FIX-003"]]
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
fn damage_in_the_procedures_keeps_no_fix_back() {
    let memory = Memory::new();
    memory.learn("one");
    let path = memory.dir.path().join("memory/procedural_memory.json");
    fs::write(path, "{\"entries\": [{\"procedure_id\": 1} x").unwrap();
    assert_eq!(memory.learn("two"), "FIX-002");
    assert_eq!(memory.files()[1], ["FIX-001", "FIX-002"]);
}
