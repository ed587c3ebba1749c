use super::*;
use crate::model::{Correction, Scope};
use crate::store::writer::remove::RemovalMode;
use crate::store::{Approvals, AuditContext, RawEntry, Scoped};
use memctl_files::named;

fn store(dir: &std::path::Path) -> Scoped {
    let audit_context = AuditContext {
        change: "c".to_owned(),
        ..AuditContext::default()
    };
    let state = dir.join("state");
    let approvals = Approvals::of(Some(&state), dir, false);
    Scoped::new(dir, Scope::All)
        .acting(audit_context)
        .trusting(approvals)
}

fn correction(words: &str) -> Correction {
    serde_json::from_value(serde_json::json!({"skill": "hr/x", "user_correction": words})).unwrap()
}

fn bytes(dir: &std::path::Path) -> Vec<u8> {
    std::fs::read(dir.join("corrections.json")).unwrap()
}

/// Restores removed corrections.
fn put_back(writer: &mut Writer, removed: &[(&str, &str)]) -> usize {
    let entries = removed.iter().map(|(id, text)| RawEntry {
        id: (*id).to_owned(),
        is_local: false,
        text: (*text).to_owned(),
    });
    let entries: Vec<_> = entries.collect();
    writer
        .restore(Kind::Correction, &entries, Some(""))
        .unwrap()
}

#[test]
fn removed_records_come_back_to_their_places_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let mut writer = store.write(&mut || "key".to_owned()).unwrap();
    for words in ["a", "b", "c"] {
        writer
            .append(correction(words), chrono::DateTime::UNIX_EPOCH)
            .unwrap();
    }
    let before = bytes(dir.path());
    for id in ["CORR-001", "CORR-002", "CORR-003"] {
        writer
            .remove(
                Kind::Correction,
                &[(id, "")],
                chrono::DateTime::UNIX_EPOCH,
                RemovalMode::Undoable,
            )
            .unwrap();
        assert_ne!(bytes(dir.path()), before);
        let lines = store.changes().unwrap();
        let Some(Step::Removed {
            text: Some(text), ..
        }) = lines.last().map(|l| &l.step)
        else {
            panic!("{lines:?}");
        };
        assert_eq!(put_back(&mut writer, &[(id, text)]), 1);
        assert_eq!(bytes(dir.path()), before, "{id}");
        let forgotten = store.all_forgotten().unwrap();
        assert_eq!(forgotten.ids(Kind::Correction).count(), 0);
    }
}

#[test]
fn several_go_and_come_back_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let mut writer = store.write(&mut || "key".to_owned()).unwrap();
    let epoch = chrono::DateTime::UNIX_EPOCH;
    for words in ["a", "b", "c", "d", "e"] {
        drop(writer.append(correction(words), epoch).unwrap());
    }
    let before = bytes(dir.path());
    let all: Vec<String> = (1..=5).map(|n| format!("CORR-{n:03}")).collect();
    for ids in [&all[..], &all[..2], &all[1..4], &all[3..]] {
        let removals: Vec<_> = ids.iter().rev().map(|id| (id.as_str(), "")).collect();
        let earlier = store.changes().unwrap().len();
        let removed = writer.remove(Kind::Correction, &removals, epoch, RemovalMode::Undoable);
        assert_eq!(removed.unwrap().len(), ids.len());
        let lines = store.changes().unwrap();
        let mut run = Vec::new();
        for line in lines[earlier..].iter().rev() {
            if let Step::Removed {
                id,
                text: Some(text),
                ..
            } = &line.step
            {
                run.push((id.as_str(), text.as_str()));
            }
        }
        put_back(&mut writer, &run);
        assert_eq!(bytes(dir.path()), before, "{ids:?}");
    }
}

#[test]
fn several_are_found_at_one_look() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    // The table holds only the start of ids this long.
    let long = ["x".repeat(80), "x".repeat(81)];
    let entry = |id: &str| serde_json::json!({"correction_id": id, "skill": "hr/x"});
    let all = [
        "CORR-001", "CORR-002", "CORR-003", &long[0], &long[1], "CORR-002",
    ];
    let text = serde_json::json!({"corrections": all.map(entry)}).to_string();
    named::replace(&dir.path().join("corrections.json"), text.as_bytes()).unwrap();
    let check = |ids: &[&str], expected: &[&str]| {
        let (selected, mut found) = (ids.iter().copied().collect(), Vec::new());
        let mut visit = |entry: Entry| found.push(entry.id);
        store
            .each_of(Kind::Correction, &selected, &mut visit)
            .unwrap();
        assert_eq!(found, expected, "{ids:?}");
    };
    check(&["CORR-003", "CORR-002", "CORR-009", ""], &all[1..3]);
    check(&[&long[1], "CORR-001"], &["CORR-001", &long[1]]);
    check(&all, &all[..5]);
    check(&[], &[]);
}

#[test]
fn restored_record_has_no_tombstone() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let mut writer = store.write(&mut || "key".to_owned()).unwrap();
    let epoch = chrono::DateTime::UNIX_EPOCH;
    let kind = Kind::Correction;
    drop(writer.append(correction("a"), epoch).unwrap());
    let words = [("CORR-001", "its words")];
    let mut removed = writer
        .remove(kind, &words, epoch, RemovalMode::Undoable)
        .unwrap();
    let removed = removed.remove(0);
    let check = |is_removed: bool| {
        let forgotten = store.all_forgotten().unwrap();
        let found = store.tombstone_of(kind, "its words").unwrap();
        assert_eq!(found.is_some(), is_removed);
        assert_eq!(forgotten.has_content(kind, "its words"), is_removed);
        assert_eq!(forgotten.has_id(kind, "CORR-001"), is_removed);
        assert!(!forgotten.has_content(kind, "other words"));
    };
    check(true);
    let text = std::str::from_utf8(&removed.text).unwrap();
    let id = "CORR-001";
    put_back(&mut writer, &[(id, text)]);
    check(false);
}

#[test]
fn fields_go_back_unless_they_were_changed_since() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let mut writer = store.write(&mut || "key".to_owned()).unwrap();
    writer
        .append(correction("a"), chrono::DateTime::UNIX_EPOCH)
        .unwrap();
    let before = bytes(dir.path());
    let set = [("user_correction", "b"), ("ours", "new")];
    writer.update(Kind::Correction, "CORR-001", &set).unwrap();
    let Some(Step::Edited { fields, .. }) = store.changes().unwrap().pop().map(|l| l.step) else {
        panic!("no edit");
    };
    writer
        .update(Kind::Correction, "CORR-001", &[("ours", "newer")])
        .unwrap();
    let mut revert = |fields: &[Field]| {
        writer
            .revert_fields(Kind::Correction, "CORR-001", fields, false)
            .unwrap()
    };
    assert_eq!(revert(&fields), Reverted::ChangedSince("ours".to_owned()));
    let Some(Step::Edited { fields: newer, .. }) = store.changes().unwrap().pop().map(|l| l.step)
    else {
        panic!("no edit");
    };
    assert_eq!(revert(&newer), Reverted::Done);
    assert_eq!(revert(&fields), Reverted::Done);
    assert_eq!(bytes(dir.path()), before);
    assert_eq!(revert(&fields), Reverted::Already);
}

/// Asserts that the saved table of a file is that of a scan; the highest id may be one of a record that left.
fn assert_table_is_of(store: &Scoped, of: DataFile, after: &str) {
    let scanned = store.file(of).by_scan().unwrap().table;
    let saved = store.file(of).by_table().unwrap().unwrap().table;
    assert!(saved.rows().eq(scanned.rows()), "{after}");
    assert!(saved.header.highest >= scanned.header.highest, "{after}");
    let header = crate::store::files::data::offsets::Header {
        generation: scanned.header.generation,
        highest: scanned.header.highest,
        ..saved.header.clone()
    };
    assert_eq!(header, scanned.header, "{after}");
}

#[test]
fn the_table_follows_each_change() {
    let entry = |n: usize, gap: &str| {
        format!(
            "{{\"correction_id\": \"CORR-{n:03}\",{gap}\"skill\": \"hr/x\", \"user_correction\": \"{n}\"}}"
        )
    };
    for (separator, end) in [
        (",\n    ", "\n  ]\n}\n"),
        (" ,", "]}"),
        (",", ", ], \"format\": 1}"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let entries: Vec<String> = (1..=9).map(|n| entry(n, &" ".repeat(n))).collect();
        let text = format!("{{\"corrections\": [{}{end}", entries.join(separator));
        named::replace(&dir.path().join("corrections.json"), text.as_bytes()).unwrap();
        let mut writer = store.write(&mut || "key".to_owned()).unwrap();
        let (kind, epoch) = (Kind::Correction, chrono::DateTime::UNIX_EPOCH);
        let file = DataFile::shared(kind);
        for id in ["CORR-004", "CORR-009", "CORR-001"] {
            let longer = [("user_correction", "a longer text than before")];
            writer.update(kind, id, &longer).unwrap();
            assert_table_is_of(&store, file, id);
        }
        for ids in [&["CORR-009"][..], &["CORR-001", "CORR-003", "CORR-004"]] {
            let removals: Vec<_> = ids.iter().map(|id| (*id, "")).collect();
            let mode = RemovalMode::Undoable;
            let removed = writer.remove(kind, &removals, epoch, mode).unwrap();
            assert_table_is_of(&store, file, ids[0]);
            for one in &removed {
                let text = std::str::from_utf8(&one.text).unwrap();
                assert_eq!(put_back(&mut writer, &[(&one.id, text)]), 1);
                assert_table_is_of(&store, file, &one.id);
            }
        }
        writer.append(correction("one more"), epoch).unwrap();
        assert_table_is_of(&store, file, "an append");
    }
}

/// Executions of more than a megabyte, each with its verdict still to come.
fn large(dir: &std::path::Path) -> Vec<u8> {
    let entries: Vec<String> = (0..400).map(|n| {
        let words = "x".repeat(3_000 + n);
        format!("{{\"execution_id\": \"EXEC-{}\", \"skill\": \"hr/x\", \"outcome\": \"pending_review\", \"input_summary\": \"{words}\"}}", 20_260_101_000_000 + n as u64)
    }).collect();
    let text = format!(
        "{{\"entries\": [\n    {}\n  ]\n}}\n",
        entries.join(",\n    ")
    );
    named::replace(&dir.join(Kind::Execution.file()), text.as_bytes()).unwrap();
    text.into_bytes()
}

#[test]
fn a_verdict_takes_the_place_of_the_old_one_and_gives_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let before = large(dir.path());
    let read = || std::fs::read(dir.path().join(Kind::Execution.file())).unwrap();
    let state = || {
        store
            .directory()
            .state(Kind::Execution.file())
            .unwrap()
            .unwrap()
    };
    let mut writer = store.write(&mut || "key".to_owned()).unwrap();
    let kind = Kind::Execution;
    store.count(kind).unwrap();
    let (first, mut in_place) = (state(), 0);
    for n in 0..40 {
        let id = format!("EXEC-{}", 20_260_101_000_000_u64 + n * 7);
        let there = state();
        writer
            .update(kind, &id, &[("outcome", "rejected")])
            .unwrap();
        in_place += u64::from(state().is_same_file(&there));
        assert_eq!(state().size, first.size);
        assert_table_is_of(&store, DataFile::shared(kind), &id);
        let entry = store.find(kind, &id).unwrap().unwrap();
        assert_eq!(
            json::string_field(&entry.text, "outcome").unwrap(),
            "rejected"
        );
        let Some(Step::Edited { fields, .. }) = store.changes().unwrap().pop().map(|l| l.step)
        else {
            panic!("no edit");
        };
        let generations = store.positions(kind).unwrap().generations().next();
        let reverted = writer.revert_fields(kind, &id, &fields, false).unwrap();
        assert_eq!(reverted, Reverted::Done);
        assert_ne!(
            store.positions(kind).unwrap().generations().next(),
            generations
        );
        assert!(read() == before, "{id}");
    }
    // A verdict on the border of two sectors is not written over.
    assert!((30..40).contains(&in_place), "{in_place}");
}
