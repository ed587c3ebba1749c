//! Stores of released versions: `fixtures/stores/<version>` is what that version has written.
//!
//! This program reads each of them whole, and goes on writing to it. The other way round, a program
//! that is older than a store writes nothing to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::workspace::Workspace;

/// Names of the versions with a store.
fn versions() -> Vec<String> {
    let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stores");
    let names = fs::read_dir(stores).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    names.sort();
    names
}

/// Files of the memory that hold what is remembered, with their bytes.
fn memory(workspace: &Workspace) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(workspace.memory("")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.is_file() && path.file_name().unwrap() != ".lock")
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect()
}

#[test]
fn the_store_of_this_version_is_kept() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        versions().iter().any(|name| name == version),
        "add fixtures/stores/{version}, written by this version"
    );
}

#[test]
fn the_store_of_every_released_version_is_read_and_written_to() {
    for version in versions() {
        let mut workspace = Workspace::over(&version);
        // The memories of a store expire.
        workspace.set("MEMCTL_NOW", "2026-11-25T09:00:00Z");
        let status = workspace.json_of(&["memory", "status"]);
        for (kind, count) in [("executions", 1), ("corrections", 1), ("reflexions", 1)] {
            assert_eq!(status[kind], count, "{version}: {status:#}");
        }
        let found = workspace.json_of(&["memory", "search", "staging database"]);
        assert!(found.to_string().contains("PostgreSQL 15"), "{version}");
        let prompt = workspace.run(&["memory", "prompt", "hr/resume-screen"]);
        assert!(prompt.stdout.contains("system design"), "{version}");
        let doctor = workspace.run(&["doctor"]);
        assert_eq!(doctor.code, 0, "{version}");
        assert!(
            doctor.stdout.contains("No problems"),
            "{version}: {doctor:?}"
        );

        let before = memory(&workspace);
        let correction = "Always name the years of experience as a number.";
        let said = [
            "correct", "hr/resume-screen", "--execution-id", "latest", "--correction", correction,
        ];
        workspace.run(&said).succeeds();
        let after = memory(&workspace);
        let list = workspace.json_of(&["memory", "list", "corrections"]);
        assert_eq!(list["total"], 2, "{version}: {list:#}");
        // What was there keeps every byte: the file goes on behind it.
        let (old, new) = (&before["corrections.json"], &after["corrections.json"]);
        let entries = old.iter().rposition(|b| *b == b'}').unwrap();
        let entries = old[..entries].iter().rposition(|b| *b == b'}').unwrap();
        assert!(new.starts_with(&old[..=entries]), "{version}");
    }
}

#[test]
fn an_older_program_writes_nothing_to_a_newer_store() {
    let workspace = Workspace::over(env!("CARGO_PKG_VERSION"));
    for (name, bytes) in memory(&workspace) {
        let is_json = Path::new(&name)
            .extension()
            .is_some_and(|ending| ending == "json");
        if is_json && name != "workspace.json" {
            let text = String::from_utf8(bytes).unwrap();
            let newer = text.replacen('{', "{\"format\": 2, ", 1);
            fs::write(workspace.memory(&name), newer).unwrap();
        }
    }
    let before = memory(&workspace);
    let is_newer = |bytes: &Vec<u8>| bytes.windows(11).any(|part| part == b"\"format\": 2");
    assert!(before.values().filter(|bytes| is_newer(bytes)).count() >= 5);
    let correction = "Always name the years of experience as a number.";
    for write in [
        &[
            "correct", "hr/resume-screen", "--execution-id", "latest", "--correction", correction,
        ][..],
        &["reject", "latest", "--reason", "too high"],
        &["memory", "approve", "PROC-002"],
        &["memory", "forget", "CORR-001"],
        &["doctor", "--repair"],
        &["learn", "fixtures/sessions"],
    ] {
        let ran = workspace.run(write);
        let after = memory(&workspace);
        for (name, bytes) in before.iter().filter(|(_, bytes)| is_newer(bytes)) {
            assert!(after[name] == *bytes, "{write:?} changed {name}");
        }
        if !matches!(write[0], "doctor" | "learn") {
            assert_eq!(ran.code, 3, "{write:?}: {ran:?}");
            assert!(ran.stderr.contains("newer"), "{write:?}: {ran:?}");
        }
    }
    let doctor = workspace.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    let said = "`corrections.json` has format 2, of a newer memctl: install that again; this one (";
    assert!(doctor.stdout.contains(said), "{doctor:?}");
    assert!(doctor.stdout.contains("only reads it"));
    let report = &workspace.json_of(&["doctor"])["newer"];
    let newer = report.as_array().unwrap().len();
    assert!(newer >= 5 && newer < before.len(), "{report}");
    // It is still read.
    let status = workspace.json_of(&["memory", "status"]);
    assert_eq!(status["corrections"], 1, "{status:#}");
}
