//! The store from the view of its callers: no change to the files loses a record.

use std::fs;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use memctl::model::{Correction, Execution, Kind, Reflexion, Scope};
use memctl::store::{DataFile, Error, ProblemKind, RemovalMode, Scoped, Selection};
use proptest::prelude::*;
use serde_json::{Value, json};

const SEED: &str = r#"{
  "entries": [
    {
      "execution_id": "EXEC-20260220124341",
      "skill": "hr/resume-screen",
      "custom": {"z": 1, "a": [1e+16, 0.0, 123456789012345678901234567890]},
      "output_summary": { "overall_score": 72, "ratio": 3489.2794929999127,   "note": "r\u00e9sum\u00e9 — 日本語 😀" },
      "outcome": "accepted",
      "latency_ms": 1062
    }
  ]
}"#;

fn now() -> DateTime<Utc> {
    DateTime::parse_from_rfc3339("2026-02-20T12:43:41.681444Z")
        .unwrap()
        .to_utc()
}

fn store(dir: &Path) -> Scoped {
    Scoped::new(dir, Scope::All)
}

fn random() -> impl FnMut() -> String {
    let mut n = 0;
    move || {
        n += 1;
        format!("random-{n}")
    }
}

fn execution(skill: &str, output: &Value) -> Execution {
    serde_json::from_value(json!({ "skill": skill, "output_summary": output })).unwrap()
}

fn correction(text: &str) -> Correction {
    serde_json::from_value(json!({ "skill": "hr/resume-screen", "user_correction": text })).unwrap()
}

fn add(store: &Scoped, output: &Value) -> String {
    let record = execution("hr/resume-screen", output);
    store
        .write(&mut random())
        .unwrap()
        .append(record, now())
        .unwrap()
        .execution_id
}

fn ids(store: &Scoped, kind: Kind) -> Vec<String> {
    let mut ids = Vec::new();
    store
        .each_entry(kind, &Selection::default(), &mut |e| ids.push(e.id))
        .unwrap();
    ids
}

/// The file must be JSON for everybody, not only for us.
fn parsed(dir: &Path, kind: Kind) -> Value {
    serde_json::from_slice(&fs::read(dir.join(kind.file())).unwrap()).unwrap()
}

#[test]
fn an_untouched_entry_keeps_every_byte_through_a_hundred_writes() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("episodic_memory.json"), SEED).unwrap();
    let store = store(dir.path());
    for n in 0..100 {
        add(&store, &json!({ "n": n }));
    }
    let mut writer = store.write(&mut random()).unwrap();
    let changes = [("outcome", json!("rejected"))];
    writer
        .update(Kind::Execution, "EXEC-20260220124341-7", &changes)
        .unwrap();
    writer
        .remove(
            Kind::Execution,
            &[("EXEC-20260220124341-9", "x")],
            now(),
            RemovalMode::Undoable,
        )
        .unwrap();
    drop(writer);
    let text = fs::read_to_string(dir.path().join("episodic_memory.json")).unwrap();
    let entry = SEED
        .split_once("[\n")
        .unwrap()
        .1
        .split_once("\n  ]")
        .unwrap()
        .0;
    assert!(text.contains(entry));
    assert_eq!(
        parsed(dir.path(), Kind::Execution)["entries"]
            .as_array()
            .unwrap()
            .len(),
        100
    );
    let rejected: Execution = store.get("EXEC-20260220124341-7").unwrap();
    assert_eq!(rejected.outcome.as_str(), "rejected");
}

#[test]
fn a_changed_entry_keeps_its_other_fields() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("episodic_memory.json");
    fs::write(&path, SEED).unwrap();
    let changes = [
        ("outcome", json!("rejected")),
        ("reviewer_notes", json!("no")),
    ];
    store(dir.path())
        .write(&mut random())
        .unwrap()
        .update(Kind::Execution, "EXEC-20260220124341", &changes)
        .unwrap();
    let expected = SEED
        .replace("\"accepted\"", "\"rejected\"")
        .replace("1062\n", "1062,\n      \"reviewer_notes\": \"no\"\n");
    assert_eq!(fs::read_to_string(path).unwrap(), expected);
}

#[test]
fn ids_count_up_and_are_never_given_twice() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"corrections": [{"correction_id": "CORR-001"}, {"correction_id": "CORR-007"}, {"correction_id": "weird"}]}"#;
    fs::write(dir.path().join("corrections.json"), text).unwrap();
    let store = store(dir.path());
    let append = |text: &str| {
        store
            .write(&mut random())
            .unwrap()
            .append(correction(text), now())
            .unwrap()
            .correction_id
    };
    assert_eq!(append("a"), "CORR-008");
    assert_eq!(append("b"), "CORR-009");
    store
        .write(&mut random())
        .unwrap()
        .remove(
            Kind::Correction,
            &[("CORR-009", "b")],
            now(),
            RemovalMode::Undoable,
        )
        .unwrap();
    assert_eq!(append("c"), "CORR-010");
    store
        .write(&mut random())
        .unwrap()
        .remove(
            Kind::Correction,
            &[("CORR-010", "c")],
            now(),
            RemovalMode::Undoable,
        )
        .unwrap();
    // Not even after the derived table, which knows the highest id, is gone.
    fs::remove_dir_all(dir.path().join(".index")).unwrap();
    assert_eq!(append("d"), "CORR-011");
    assert_eq!(
        store
            .tombstone_of(Kind::Correction, "b")
            .unwrap()
            .unwrap()
            .id,
        "CORR-009"
    );
    assert_eq!(store.tombstone_of(Kind::Correction, "d").unwrap(), None);
    let tombstones = fs::read_to_string(dir.path().join("tombstones.jsonl")).unwrap();
    assert!(
        !tombstones.contains("\"b\""),
        "the content is hashed: {tombstones}"
    );
}

#[test]
fn correction_999_is_followed_by_1000() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"corrections": [{"correction_id": "CORR-999"}]}"#;
    fs::write(dir.path().join("corrections.json"), text).unwrap();
    let record = store(dir.path())
        .write(&mut random())
        .unwrap()
        .append(correction("a"), now())
        .unwrap();
    assert_eq!(record.correction_id, "CORR-1000");
}

#[test]
fn a_thousand_executions_of_one_second_have_a_thousand_ids() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let mut writer = store.write(&mut random()).unwrap();
    for n in 0..1000 {
        // A clock that steps back meets ids that are taken.
        let at = now() + TimeDelta::seconds([0, 1, 0, 2][n % 4]);
        writer.append(execution("hr/x", &json!({})), at).unwrap();
    }
    drop(writer);
    let mut ids = ids(&store, Kind::Execution);
    assert!(ids.contains(&"EXEC-20260220124341".to_owned()));
    assert!(ids.contains(&"EXEC-20260220124342-2".to_owned()));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 1000);
}

#[test]
fn an_id_that_is_taken_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("episodic_memory.json"), SEED).unwrap();
    let store = store(dir.path());
    let mut record = execution("hr/x", &json!({}));
    record.execution_id = "EXEC-20260220124341".into();
    let refused = store.write(&mut random()).unwrap().append(record, now());
    assert!(matches!(refused, Err(Error::Exists(id)) if id == "EXEC-20260220124341"));
    assert_eq!(
        fs::read_to_string(dir.path().join("episodic_memory.json")).unwrap(),
        SEED
    );
}

#[test]
fn entries_that_only_python_reads_are_kept_and_hide_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let odd = r#"{"execution_id": "EXEC-20260101000000", "skill": "hr/x", "cost_usd": NaN, "output_summary": {"a": -Infinity, "b": "\udcff"}}"#;
    let text = format!(
        "{{\"entries\": [{odd}, {{\"execution_id\": \"EXEC-20260101000001\", \"skill\": \"hr/x\"}}]}}"
    );
    fs::write(dir.path().join("episodic_memory.json"), text).unwrap();
    let store = store(dir.path());
    add(&store, &json!({}));
    let listing = store.list::<Execution>(&Selection::default()).unwrap();
    assert_eq!(listing.records.len(), 2);
    assert_eq!(listing.problems.len(), 1);
    assert_eq!(listing.problems[0].kind, ProblemKind::Unreadable);
    assert!(
        listing.problems[0]
            .message
            .starts_with("EXEC-20260101000000 is kept")
    );
    assert_eq!(store.count(Kind::Execution).unwrap(), 3);
    assert!(
        fs::read_to_string(dir.path().join("episodic_memory.json"))
            .unwrap()
            .contains(odd)
    );
    let changes = [("outcome", json!("rejected"))];
    store
        .write(&mut random())
        .unwrap()
        .update(Kind::Execution, "EXEC-20260101000000", &changes)
        .unwrap();
    let text = fs::read_to_string(dir.path().join("episodic_memory.json")).unwrap();
    assert!(text.contains("NaN") && text.contains(r#""b": "\udcff"}"#));
}

#[test]
fn a_lone_surrogate_alone_is_readable() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"entries": [{"execution_id": "EXEC-1", "skill": "hr/x", "output_summary": {"b": "\udcff"}}]}"#;
    fs::write(dir.path().join("episodic_memory.json"), text).unwrap();
    let record: Execution = store(dir.path()).get("EXEC-1").unwrap();
    assert_eq!(record.output_summary.get(), r#"{"b": "\udcff"}"#);
}

#[test]
fn a_crash_at_any_byte_of_a_write_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("episodic_memory.json");
    let store = store(dir.path());
    add(&store, &json!({ "n": 1 }));
    let before = fs::read(&path).unwrap();
    let second = add(&store, &json!({ "text": "two\nlines, {brackets}]" }));
    let after = fs::read(&path).unwrap();
    assert_eq!(second, "EXEC-20260220124341-2");
    let same = before
        .iter()
        .zip(&after)
        .take_while(|(a, b)| a == b)
        .count();
    // A writer waits before it repairs, in case the file is being saved: the waits overlap.
    let bytes: Vec<usize> = (same..after.len()).collect();
    std::thread::scope(|scope| {
        for bytes in bytes.chunks(bytes.len().div_ceil(16)) {
            scope.spawn(|| bytes.iter().for_each(|byte| crash(&before, &after, *byte)));
        }
    });
}

/// A write that replaces one text by another and ends before a byte.
fn crash(before: &[u8], after: &[u8], written: usize) {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    // Everything before the point of failure is new, the rest is old.
    let mut torn = after[..written].to_vec();
    torn.extend_from_slice(before.get(written..).unwrap_or_default());
    fs::write(dir.path().join("episodic_memory.json"), &torn).unwrap();
    let seen = ids(&store, Kind::Execution);
    assert!(
        seen.len() == 1 || seen.len() == 2,
        "byte {written}: {seen:?}"
    );
    let id = add(&store, &json!({ "n": 3 }));
    let now_seen = ids(&store, Kind::Execution);
    assert_eq!(now_seen.len(), seen.len() + 1, "byte {written}");
    assert_eq!(now_seen[..seen.len()], seen, "byte {written}");
    assert_eq!(now_seen.last(), Some(&id));
    let json = parsed(dir.path(), Kind::Execution);
    assert_eq!(json["entries"].as_array().unwrap().len(), now_seen.len());
}

#[test]
fn leftovers_of_a_crash_are_set_aside_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("corrections.json");
    let torn = "{\n  \"corrections\": [\n    {\"correction_id\": \"CORR-001\"},\n    {\"user_correction\": \"half a sent";
    fs::write(&path, torn).unwrap();
    let store = store(dir.path());
    let mut writer = store.write(&mut random()).unwrap();
    assert_eq!(
        writer
            .append(correction("next"), now())
            .unwrap()
            .correction_id,
        "CORR-002"
    );
    let mended = writer.take_repairs();
    assert_eq!(mended.len(), 1);
    assert_eq!((mended[0].kind, mended[0].line), (ProblemKind::TornTail, 4));
    let aside: Vec<_> = fs::read_dir(dir.path().join("recovered"))
        .unwrap()
        .collect();
    let text = fs::read_to_string(aside[0].as_ref().unwrap().path()).unwrap();
    assert!(text.contains("half a sent"));
}

#[test]
fn lock_holder_reads_the_file_and_waits_for_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let torn = "{\n  \"corrections\": [\n    {\"correction_id\": \"CORR-001\"},\n    {\"user_corr";
    fs::write(dir.path().join("corrections.json"), torn).unwrap();
    let store = store(dir.path());
    let all = Selection::default();
    let writer = store.write(&mut random()).unwrap();
    // Another reader could not tell this from a write that is going on.
    let own = writer.store().list::<Correction>(&all).unwrap();
    assert_eq!(own.records[0].correction_id, "CORR-001");
    assert_eq!(own.problems[0].kind, ProblemKind::TornTail);
}

#[test]
fn damage_in_the_middle_is_kept_and_the_rest_stays_usable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("corrections.json");
    let damaged = "{\n  \"corrections\": [\n    {\"correction_id\": \"CORR-001\"},\n    {\"correction_id\": \"CORR-002\" oops},\n    {\"correction_id\": \"CORR-003\"}\n  ]\n}";
    fs::write(&path, damaged).unwrap();
    let store = store(dir.path());
    assert_eq!(ids(&store, Kind::Correction), ["CORR-001", "CORR-003"]);
    let id = store
        .write(&mut random())
        .unwrap()
        .append(correction("x"), now())
        .unwrap()
        .correction_id;
    assert_eq!(id, "CORR-004");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"CORR-002\" oops"));
    assert_eq!(
        store.damaged_files(Kind::Correction).unwrap(),
        [DataFile::shared(Kind::Correction)]
    );

    let problems = store.inspect(Kind::Correction, &mut |_| {}).unwrap();
    assert_eq!(
        problems
            .iter()
            .filter(|p| p.kind == ProblemKind::Damage)
            .count(),
        1
    );
    assert_eq!(problems[0].line, 4);
    let repaired = store
        .repair(DataFile::shared(Kind::Correction), now())
        .unwrap()
        .unwrap();
    assert_eq!((repaired.kept, repaired.salvaged), (3, 0));
    assert_eq!(fs::read_to_string(repaired.copy).unwrap(), text);
    assert_eq!(
        parsed(dir.path(), Kind::Correction)["corrections"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        store
            .repair(DataFile::shared(Kind::Correction), now())
            .unwrap(),
        None
    );
}

#[test]
fn a_file_whose_end_is_broken_is_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let path = dir.path().join("corrections.json");
    for (text, salvaged) in [
        (
            "[{\"correction_id\": \"CORR-001\"}, {\"correction_id\": \"CORR-002\"}]",
            2,
        ),
        ("{\"entries\": [{\"correction_id\": \"CORR-001\"}]}", 1),
        ("no json at all", 0),
        ("{}", 0),
        // Torn after damage: the brackets cannot be matched.
        (
            "{\"corrections\": [\n {\"corrections\": [\n    {\"correction_id\": \"CORR-001\"},\n    {\"b\" x}, {",
            1,
        ),
    ] {
        fs::write(&path, text).unwrap();
        let refused = store
            .write(&mut random())
            .unwrap()
            .append(correction("x"), now());
        assert!(matches!(refused, Err(Error::Damaged(_))), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let repaired = store
            .repair(DataFile::shared(Kind::Correction), now())
            .unwrap()
            .unwrap();
        assert!(repaired.kept == salvaged, "{text}: {repaired:?}");
        store
            .write(&mut random())
            .unwrap()
            .append(correction("x"), now())
            .unwrap();
        let list = &parsed(dir.path(), Kind::Correction)["corrections"];
        assert_eq!(list.as_array().unwrap().len(), salvaged + 1);
    }
}

#[test]
fn two_documents_in_one_file_are_mended_into_one() {
    // File after two writers without a lock.
    let dir = tempfile::tempdir().unwrap();
    let text = "{\n  \"corrections\": [\n    {\"correction_id\": \"CORR-001\"}\n  ]\n}ction_id\": \"CORR-00\"},\n    {\"correction_id\": \"CORR-002\"}\n  ]\n}";
    fs::write(dir.path().join("corrections.json"), text).unwrap();
    let store = store(dir.path());
    assert_eq!(ids(&store, Kind::Correction), ["CORR-001"]);
    let repaired = store
        .repair(DataFile::shared(Kind::Correction), now())
        .unwrap()
        .unwrap();
    assert_eq!((repaired.kept, repaired.salvaged), (2, 1));
    assert_eq!(ids(&store, Kind::Correction), ["CORR-001", "CORR-002"]);
}

#[test]
fn a_newer_file_is_read_but_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("corrections.json");
    let text = r#"{"format": 2, "corrections": [{"correction_id": "CORR-001"}]}"#;
    fs::write(&path, text).unwrap();
    let store = store(dir.path());
    assert_eq!(ids(&store, Kind::Correction), ["CORR-001"]);
    let refused = store
        .write(&mut random())
        .unwrap()
        .append(correction("x"), now());
    assert!(matches!(
        refused,
        Err(Error::NewerFormat {
            found: 2,
            ours: 1,
            ..
        })
    ));
    assert!(
        store
            .repair(DataFile::shared(Kind::Correction), now())
            .unwrap()
            .is_none()
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_hand_edit_of_the_same_length_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let path = dir.path().join("corrections.json");
    store
        .write(&mut random())
        .unwrap()
        .append(correction("apples"), now())
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("CORR-001", "CORR-005");
    fs::write(&path, text).unwrap();
    assert_eq!(ids(&store, Kind::Correction), ["CORR-005"]);
    let next = store
        .write(&mut random())
        .unwrap()
        .append(correction("b"), now())
        .unwrap();
    assert_eq!(next.correction_id, "CORR-006");
}

#[test]
fn reading_changes_nothing_outside_the_derived_directory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("episodic_memory.json");
    fs::write(&path, SEED).unwrap();
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let store = store(dir.path());
    store.list::<Execution>(&Selection::default()).unwrap();
    store.resolve(Kind::Execution, "latest", None).unwrap();
    store.count(Kind::Correction).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), SEED);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    let names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names, ["episodic_memory.json"]);
}

#[test]
fn ids_are_found_by_a_unique_beginning_and_by_latest() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for skill in ["hr/a", "hr/b", "hr/a"] {
        let record = execution(skill, &json!({}));
        store
            .write(&mut random())
            .unwrap()
            .append(record, now())
            .unwrap();
    }
    let resolve = |text: &str| store.resolve(Kind::Execution, text, None);
    assert_eq!(resolve("latest").unwrap(), "EXEC-20260220124341-3");
    let b = "hr/b".parse().unwrap();
    let latest = store.resolve(Kind::Execution, "latest", Some(&b)).unwrap();
    assert_eq!(latest, "EXEC-20260220124341-2");
    assert_eq!(
        resolve("EXEC-20260220124341").unwrap(),
        "EXEC-20260220124341"
    );
    assert_eq!(
        resolve("exec-20260220124341-2").unwrap(),
        "EXEC-20260220124341-2"
    );
    let ambiguous = resolve("EXEC-2026").unwrap_err().to_string();
    assert_eq!(ambiguous, "`EXEC-2026` is a prefix of 3 ids");
    let missing = resolve("EXEC-20260220124349");
    assert!(matches!(missing, Err(Error::NotFound(..))));
}

#[test]
fn a_scope_hides_and_refuses_what_is_outside() {
    let dir = tempfile::tempdir().unwrap();
    let all = store(dir.path());
    for skill in ["hr/a", "finance/b", "hr"] {
        all.write(&mut random())
            .unwrap()
            .append(execution(skill, &json!({})), now())
            .unwrap();
    }
    let hr = Scoped::new(dir.path(), Scope::parse("hr"));
    assert_eq!(ids(&hr, Kind::Execution), ["EXEC-20260220124341"]);
    assert_eq!(hr.count(Kind::Execution).unwrap(), 1);
    assert!(
        hr.find(Kind::Execution, "EXEC-20260220124341-2")
            .unwrap()
            .is_none()
    );
    assert!(
        hr.resolve(Kind::Execution, "EXEC-20260220124341-2", None)
            .is_err()
    );
    assert_eq!(
        hr.resolve(Kind::Execution, "latest", None).unwrap(),
        "EXEC-20260220124341"
    );
    let before = fs::read(dir.path().join("episodic_memory.json")).unwrap();
    for skill in ["finance/x", "hr", ""] {
        let refused = hr
            .write(&mut random())
            .unwrap()
            .append(execution(skill, &json!({})), now());
        assert!(matches!(refused, Err(Error::OutOfScope(..))), "{skill}");
    }
    let foreign = "EXEC-20260220124341-2";
    let mut writer = hr.write(&mut random()).unwrap();
    assert!(
        writer
            .update(Kind::Execution, foreign, &[("outcome", json!("x"))])
            .is_err()
    );
    let removed = writer.remove(
        Kind::Execution,
        &[(foreign, "")],
        now(),
        RemovalMode::Undoable,
    );
    assert_eq!(removed.unwrap(), []);
    drop(writer);
    assert_eq!(
        fs::read(dir.path().join("episodic_memory.json")).unwrap(),
        before
    );
    let nobody = Scoped::new(dir.path(), Scope::parse(""));
    assert_eq!(nobody.count(Kind::Execution).unwrap(), 0);
}

#[test]
fn threads_that_write_at_once_lose_nothing_and_readers_see_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..25 {
                    add(&store(path), &json!({ "n": n, "text": "x".repeat(n * 40) }));
                }
            });
        }
        scope.spawn(|| {
            let mut last = 0;
            while last < 100 {
                let listing = store(path)
                    .list::<Execution>(&Selection::default())
                    .unwrap();
                assert_eq!(listing.problems, []);
                assert!(
                    listing.records.len() >= last,
                    "{} < {last}",
                    listing.records.len()
                );
                last = listing.records.len();
            }
        });
    });
    let mut ids = ids(&store(path), Kind::Execution);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}

/// Step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Append(String),
    Update(usize, String),
    Remove(usize),
    DropTable,
    Cut(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<String>().prop_map(Step::Append),
        2 => (any::<usize>(), any::<String>()).prop_map(|(i, text)| Step::Update(i, text)),
        2 => any::<usize>().prop_map(Step::Remove),
        1 => Just(Step::DropTable),
        1 => (1_usize..8).prop_map(Step::Cut),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The store equals a list after the same operations.
    #[test]
    fn the_store_behaves_like_a_list(steps in proptest::collection::vec(step(), 1..24)) {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let mut model: Vec<(String, String)> = Vec::new();
        // What looks like a secret is not stored.
        let stored = |text: &str| memctl_redact::redact(text).text.into_owned();
        for step in steps {
            match step {
                Step::Append(text) => {
                    let mut record: Reflexion = serde_json::from_str("{}").unwrap();
                    record.rule.clone_from(&text);
                    let text = stored(&text);
                    let mut writer = store.write(&mut random()).unwrap();
                    model.push((writer.append(record, now()).unwrap().reflexion_id, text));
                }
                Step::Update(i, text) if !model.is_empty() => {
                    let i = i % model.len();
                    let mut writer = store.write(&mut random()).unwrap();
                    writer.update(Kind::Reflexion, &model[i].0, &[("rule", json!(text))]).unwrap();
                    model[i].1 = stored(&text);
                }
                Step::Remove(i) if !model.is_empty() => {
                    let (id, text) = model.remove(i % model.len());
                    store.write(&mut random()).unwrap().remove(Kind::Reflexion, &[(&id, &text)], now(), RemovalMode::Undoable).unwrap();
                }
                Step::DropTable => drop(fs::remove_dir_all(dir.path().join(".index"))),
                Step::Cut(n) if !model.is_empty() => {
                    // Closing brackets may be lost; the entries are not.
                    let path = dir.path().join(Kind::Reflexion.file());
                    let bytes = fs::read(&path).unwrap();
                    let last = memchr::memmem::rfind(&bytes, b"\n    }").unwrap() + 6;
                    fs::write(&path, &bytes[..last.max(bytes.len() - n)]).unwrap();
                }
                _ => {}
            }
            let records = store.list::<Reflexion>(&Selection::default()).unwrap().records;
            let seen: Vec<_> = records.into_iter().map(|r| (r.reflexion_id, r.rule)).collect();
            prop_assert_eq!(&seen, &model);
        }
    }
}
