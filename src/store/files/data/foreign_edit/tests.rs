//! Another program saves the file at every point of a write, in every way that editors use.

use std::cell::Cell;
use std::io::Write as _;
use std::path::PathBuf;
use std::rc::Rc;

use memctl_files::Directory;
use serde_json::{Value, json};

use super::*;
use crate::model::{Execution, Kind, Scope};
use crate::store::files::data::MEANWHILE;
use crate::store::writer::Writer;
use crate::store::{Approvals, AuditContext, RemovalMode, Scoped};

const NOW: chrono::DateTime<chrono::Utc> = chrono::DateTime::UNIX_EPOCH;

/// A way to save a text over the file.
type Save = fn(&Path, &[u8]);

fn above(path: &Path) -> Directory {
    Directory::at(path.parent().unwrap())
}

fn rename_over(path: &Path, text: &[u8]) {
    atomic::replace(&above(path), path, text).unwrap();
}

fn write_in_place(path: &Path, text: &[u8]) {
    let mut file = atomic::open_for_update(&above(path), path)
        .unwrap()
        .unwrap();
    file.set_len(0).unwrap();
    file.write_all(text).unwrap();
}

/// Like vim: the old file becomes a backup for a moment, and the name is free.
fn move_away_and_make_anew(path: &Path, text: &[u8]) {
    let backup = path.with_extension("json~");
    above(path).rename(path, &backup).unwrap();
    let mut file = atomic::open_or_create(&above(path), path).unwrap();
    file.write_all(text).unwrap();
    atomic::remove(&above(path), &backup).unwrap();
}

const SAVES: [Save; 3] = [rename_over, write_in_place, move_away_and_make_anew];

fn table_path(directory: &Path) -> PathBuf {
    directory.join(".index/executions.offsets")
}

/// Installs an interference that runs once, the first time a write to the executions reaches a
/// point.
fn meanwhile(at: Point, mut other: impl FnMut(&Path) + 'static) -> Rc<Cell<bool>> {
    let came = Rc::new(Cell::new(false));
    let seen = Rc::clone(&came);
    MEANWHILE.set(Some(Box::new(move |point, path| {
        let is_file = path.ends_with(Kind::Execution.file());
        if is_file && point == at && !seen.replace(true) {
            other(path);
        }
    })));
    came
}

fn writer(dir: &Path) -> Writer {
    let audit_context = AuditContext {
        change: "c".to_owned(),
        ..AuditContext::default()
    };
    let store = Scoped::new(dir, Scope::All)
        .trusting(Approvals::of(Some(&dir.join("state")), dir, false))
        .acting(audit_context);
    store.write(&mut || "key".to_owned()).unwrap()
}

fn execution(note: &str) -> Execution {
    let value = json!({"skill": "hr/x", "output_summary": {"note": note}});
    serde_json::from_value(value).unwrap()
}

fn path(dir: &Path) -> PathBuf {
    dir.join(Kind::Execution.file())
}

/// Returns the ids in the file, which must be valid JSON.
fn ids(dir: &Path) -> Vec<String> {
    let file: Value = serde_json::from_slice(&std::fs::read(path(dir)).unwrap()).unwrap();
    let id = |entry: &Value| entry["execution_id"].as_str().unwrap().to_owned();
    file["entries"].as_array().unwrap().iter().map(id).collect()
}

/// Adds an entry to the file, in Python's layout.
fn with_one_more(text: &[u8], id: &str) -> Vec<u8> {
    let mut file: Value = serde_json::from_slice(text).unwrap();
    let entry = json!({"execution_id": id, "skill": "hr/x", "output_summary": {"note": id}});
    file["entries"].as_array_mut().unwrap().push(entry);
    serde_json::to_vec_pretty(&file).unwrap()
}

/// Keeps only the first entry of the file.
fn with_one(text: &[u8]) -> Vec<u8> {
    let mut file: Value = serde_json::from_slice(text).unwrap();
    file["entries"].as_array_mut().unwrap().truncate(1);
    serde_json::to_vec(&file).unwrap()
}

/// Creates a store with this number of executions.
fn store_of(count: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..count {
        writer(dir.path())
            .append(execution(&n.to_string()), NOW)
            .unwrap();
    }
    dir
}

#[test]
fn an_append_and_an_edit_before_it_are_both_there() {
    for at in [Point::Read, Point::EndRead] {
        for save in SAVES {
            for edit in [|text: &[u8]| with_one_more(text, "EXEC-1"), with_one] {
                let dir = store_of(4);
                let came = meanwhile(at, move |path| {
                    save(path, &edit(&std::fs::read(path).unwrap()));
                });
                let expected = ids_after(dir.path(), edit);
                let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
                assert!(came.get());
                MEANWHILE.set(None);
                let stored = ids(dir.path());
                assert_eq!(stored, [expected, vec![own.execution_id]].concat());
                // Derived data matches this version of the file.
                let found = writer(dir.path()).store().find(Kind::Execution, &stored[0]);
                assert_eq!(found.unwrap().unwrap().id, stored[0]);
            }
        }
    }
}

/// Otherwise a program that saves again and again would find each attempt to be the first one.
#[cfg(unix)]
#[test]
fn an_append_to_a_file_that_others_may_read_takes_one_attempt() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = store_of(2);
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(path(dir.path()), open).unwrap();
    let attempts = Rc::new(Cell::new(0));
    let counted = Rc::clone(&attempts);
    MEANWHILE.set(Some(Box::new(move |point, path| {
        if path.ends_with(Kind::Execution.file()) && point == Point::Read {
            counted.set(counted.get() + 1);
        }
    })));
    writer(dir.path()).append(execution("own"), NOW).unwrap();
    MEANWHILE.set(None);
    assert_eq!((attempts.get(), ids(dir.path()).len()), (1, 3));
    let mode = std::fs::metadata(path(dir.path())).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
}

fn ids_after(dir: &Path, edit: impl Fn(&[u8]) -> Vec<u8>) -> Vec<String> {
    let file: Value = serde_json::from_slice(&edit(&std::fs::read(path(dir)).unwrap())).unwrap();
    let id = |entry: &Value| entry["execution_id"].as_str().unwrap().to_owned();
    file["entries"].as_array().unwrap().iter().map(id).collect()
}

/// Another program reads before the append and renames after it. Without a second append, the
/// record would be lost.
#[test]
fn an_append_to_a_file_that_was_just_replaced_is_done_again() {
    for at in [Point::Compared, Point::Written] {
        for save in [rename_over, move_away_and_make_anew] as [Save; 2] {
            let dir = store_of(3);
            let before = std::fs::read(path(dir.path())).unwrap();
            let edited = with_one_more(&before, "EXEC-1");
            let came = meanwhile(at, move |path| save(path, &edited));
            let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
            assert!(came.get());
            MEANWHILE.set(None);
            let stored = ids(dir.path());
            assert_eq!(stored.len(), 5, "{at:?}: {stored:?}");
            assert_eq!(stored[3..], ["EXEC-1".to_owned(), own.execution_id.clone()]);
            // The failed attempt is not in the journal.
            let lines = writer(dir.path()).store().changes().unwrap();
            let of_own = lines
                .iter()
                .filter(|line| line.step.target() == Some(&own.execution_id));
            assert_eq!(of_own.count(), 1);
        }
    }
}

/// Another program reads what was just written, and saves it before the verification.
#[test]
fn an_append_that_another_program_has_saved_is_not_done_twice() {
    for save in SAVES {
        let dir = store_of(3);
        let came = meanwhile(Point::Written, move |path| {
            save(
                path,
                &with_one_more(&std::fs::read(path).unwrap(), "EXEC-1"),
            );
        });
        let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
        assert!(came.get());
        MEANWHILE.set(None);
        let stored = ids(dir.path());
        assert_eq!(stored[3..], [own.execution_id, "EXEC-1".to_owned()]);
        assert_eq!(stored.len(), 5);
    }
}

/// Another program truncates the file before the append, and fills it afterwards.
#[test]
fn an_append_into_a_file_that_was_just_emptied_leaves_no_rest_in_it() {
    let more = |text: &[u8]| with_one_more(text, "EXEC-1");
    for edit in [more, with_one, |text: &[u8]| {
        with_one_more(&more_space(text), "EXEC-1")
    }] {
        let dir = store_of(3);
        let edited = edit(&std::fs::read(path(dir.path())).unwrap());
        let expected = ids_after(dir.path(), edit);
        let (emptied, filled) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        let (was_emptied, was_filled) = (Rc::clone(&emptied), Rc::clone(&filled));
        MEANWHILE.set(Some(Box::new(move |point, path| {
            if point == Point::Compared && !emptied.replace(true) {
                let file = atomic::open_for_update(&above(path), path)
                    .unwrap()
                    .unwrap();
                file.set_len(0).unwrap();
            }
            if point == Point::Written && !filled.replace(true) {
                let mut file = atomic::open_for_update(&above(path), path)
                    .unwrap()
                    .unwrap();
                file.write_all(&edited).unwrap();
            }
        })));
        let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
        assert!(was_emptied.get() && was_filled.get());
        MEANWHILE.set(None);
        assert_eq!(ids(dir.path()), [expected, vec![own.execution_id]].concat());
    }
}

/// Pads the text so that it ends behind every append to the other one.
fn more_space(text: &[u8]) -> Vec<u8> {
    let file: Value = serde_json::from_slice(text).unwrap();
    let mut file = file;
    file["note"] = json!("x".repeat(4000));
    serde_json::to_vec_pretty(&file).unwrap()
}

/// The program that truncated the file is slow.
#[test]
fn an_emptied_file_is_waited_for() {
    for at in [Point::Read, Point::Compared, Point::Written] {
        let dir = store_of(3);
        let edited = with_one_more(&std::fs::read(path(dir.path())).unwrap(), "EXEC-1");
        let slow = Rc::new(Cell::new(None));
        let thread = Rc::clone(&slow);
        let came = meanwhile(at, move |path| {
            let mut file = atomic::open_for_update(&above(path), path)
                .unwrap()
                .unwrap();
            file.set_len(0).unwrap();
            let edited = edited.clone();
            thread.set(Some(std::thread::spawn(move || {
                for part in edited.chunks(200) {
                    sleep(Duration::from_millis(60));
                    file.write_all(part).unwrap();
                }
            })));
        });
        let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
        assert!(came.get());
        MEANWHILE.set(None);
        slow.take().unwrap().join().unwrap();
        let stored = ids(dir.path());
        assert_eq!(
            stored[3..],
            ["EXEC-1".to_owned(), own.execution_id],
            "{at:?}"
        );
    }
}

#[test]
fn a_change_and_an_edit_before_it_are_both_there() {
    for at in [Point::Read, Point::Compared] {
        for save in SAVES {
            let dir = store_of(3);
            let id = ids(dir.path())[1].clone();
            let came = meanwhile(at, move |path| {
                save(
                    path,
                    &with_one_more(&std::fs::read(path).unwrap(), "EXEC-1"),
                );
            });
            let mut own = writer(dir.path());
            own.update(Kind::Execution, &id, &[("outcome", json!("rejected"))])
                .unwrap();
            assert!(came.get());
            let changed = own.store().get::<Execution>(&id).unwrap();
            assert_eq!(changed.outcome.as_str(), "rejected");
            assert_eq!(ids(dir.path()).len(), 4, "{at:?}");

            let came = meanwhile(at, move |path| {
                save(
                    path,
                    &with_one_more(&std::fs::read(path).unwrap(), "EXEC-2"),
                );
            });
            let removed = own.remove(Kind::Execution, &[(&id, "x")], NOW, RemovalMode::Undoable);
            assert!(came.get());
            MEANWHILE.set(None);
            assert_eq!(removed.unwrap()[0].id, id);
            let stored = ids(dir.path());
            assert_eq!(stored[2..], ["EXEC-1", "EXEC-2"], "{at:?}");
            assert!(!stored.contains(&id));
        }
    }
}

/// A change applies to the value of the other program, and undo restores that value.
#[test]
fn a_change_starts_from_the_edit_before_it() {
    let dir = store_of(2);
    let id = ids(dir.path())[1].clone();
    let came = meanwhile(Point::Read, move |path| {
        let text = std::fs::read_to_string(path).unwrap();
        rename_over(
            path,
            text.replace("\"note\": \"1\"", "\"note\": \"edited\"")
                .as_bytes(),
        );
    });
    let mut own = writer(dir.path());
    own.update(
        Kind::Execution,
        &id,
        &[("output_summary", json!({"note": "own"}))],
    )
    .unwrap();
    assert!(came.get());
    MEANWHILE.set(None);
    let lines = own.store().changes().unwrap();
    let edits = lines.iter().filter(|line| line.step.target() == Some(&id));
    let edits: Vec<String> = edits.map(|line| format!("{:?}", line.step)).collect();
    assert_eq!(edits.len(), 2, "{edits:?}");
    assert!(edits[1].contains("edited"), "{edits:?}");
}

#[test]
fn a_file_that_never_rests_is_an_error_and_stays_as_the_other_program_has_it() {
    let dir = store_of(2);
    let mut n = 0;
    MEANWHILE.set(Some(Box::new(move |point, path| {
        if point == Point::Read {
            n += 1;
            rename_over(
                path,
                &with_one_more(&std::fs::read(path).unwrap(), &format!("EXEC-{n}")),
            );
        }
    })));
    let failed = writer(dir.path()).append(execution("own"), NOW);
    MEANWHILE.set(None);
    assert!(matches!(failed, Err(Error::Changing(..))), "{failed:?}");
    let stored = ids(dir.path());
    assert!(
        stored.len() > 10 && stored[2..].iter().all(|id| id.len() < 8),
        "{stored:?}"
    );
    assert_eq!(writer(dir.path()).store().changes().unwrap().len(), 2);
}

/// Another program saves between the look at the file's size and the scan of its content, which
/// then ends behind that size.
#[test]
fn a_file_that_grows_during_the_scan_is_read_again() {
    for save in SAVES {
        let dir = store_of(3);
        let edited = with_one_more(&std::fs::read(path(dir.path())).unwrap(), "EXEC-1");
        // Without a table, the next writer scans.
        let table = table_path(dir.path());
        atomic::remove(&above(&table), &table).unwrap();
        let came = meanwhile(Point::Sized, move |path| save(path, &edited));
        let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
        assert!(came.get());
        MEANWHILE.set(None);
        let stored = ids(dir.path());
        assert_eq!(stored[3..], ["EXEC-1".to_owned(), own.execution_id]);
    }
}

/// A file of equal length, written within one tick of a coarse clock, looks unchanged.
#[test]
fn a_table_of_other_bytes_is_not_written_by() {
    let dir = store_of(3);
    let id = ids(dir.path())[2].clone();
    let path = path(dir.path());
    let text = std::fs::read_to_string(&path).unwrap();
    // One byte moves from the first entry to the end, so all later offsets are wrong.
    let moved = text.replacen("\"note\": \"0\"", "\"note\":\"0\"", 1) + " ";
    assert_eq!(moved.len(), text.len());
    write_in_place(&path, moved.as_bytes());
    let table = table_path(dir.path());
    let old = Offsets::open(&above(&table), &table).unwrap();
    let file = atomic::open_for_update(&above(&path), &path)
        .unwrap()
        .unwrap();
    let header = Header {
        stamp: FileState::of(&file).unwrap(),
        ..old.header.clone()
    };
    Offsets::write(&above(&table), &table, &header, header.count, &[]).unwrap();
    let mut own = writer(dir.path());
    own.update(Kind::Execution, &id, &[("outcome", json!("rejected"))])
        .unwrap();
    let new = own.append(execution("own"), NOW).unwrap();
    let stored = ids(dir.path());
    assert_eq!((stored.len(), &stored[3]), (4, &new.execution_id));
}
