use std::fs;

use memctl_files::named;

use super::*;
use crate::store::Entry;

fn put(id: &str, rule: &str) -> PulledChange {
    let text = format!(
        "{{\n      \"reflexion_id\": \"{id}\",\n      \"skill\": \"hr/x\",  \"rule\": \"{rule}\"\n    }}"
    );
    PulledChange {
        id: id.to_owned(),
        text: Some(text),
    }
}

fn removal(id: &str) -> PulledChange {
    PulledChange {
        id: id.to_owned(),
        text: None,
    }
}

fn store() -> (tempfile::TempDir, Scoped) {
    let dir = tempfile::tempdir().unwrap();
    let store = Scoped::new(dir.path().join(".agentura"), Scope::All);
    (dir, store)
}

fn texts(store: &Scoped) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for pulled in store.pulled() {
        let all = Selection::default();
        let each = &mut |entry: Entry| {
            let text = String::from_utf8(entry.text).unwrap();
            found.push((format!("{}@{}", entry.id, pulled.origin), text));
        };
        let problems = pulled.store.each_entry(Kind::Reflexion, &all, each);
        assert_eq!(problems.unwrap(), []);
    }
    found
}

#[test]
fn records_of_others_keep_their_ids_and_their_bytes() {
    let (_dir, store) = store();
    assert!(store.pulled().is_empty());
    let puller = store.pull().unwrap();
    let first = [
        put("REFL-001", "a"),
        put("REFL-002", "b"),
        put("REFL-003", "c"),
    ];
    let count = puller.apply("one", Kind::Reflexion, &first).unwrap();
    assert_eq!(count.added, 3);
    let two = [put("REFL-001", "mine")];
    puller.apply("two", Kind::Reflexion, &two).unwrap();
    let text = |change: &PulledChange| change.text.clone().unwrap();
    let named = |id: &str, change| (id.to_owned(), text(change));
    assert_eq!(
        texts(&store),
        [
            named("REFL-001@one", &first[0]),
            named("REFL-002@one", &first[1]),
            named("REFL-003@one", &first[2]),
            named("REFL-001@two", &two[0]),
        ]
    );
    // Applying them again changes nothing; the last of several changes wins.
    assert_eq!(
        puller.apply("one", Kind::Reflexion, &first).unwrap(),
        PulledCount::default()
    );
    let count = puller
        .apply(
            "one",
            Kind::Reflexion,
            &[
                removal("REFL-001"),
                put("REFL-002", "longer than before"),
                put("REFL-004", "x"),
                put("REFL-004", "d"),
                removal("REFL-009"),
                put("REFL-001", "again"),
                removal("REFL-003"),
            ],
        )
        .unwrap();
    let expected = PulledCount {
        added: 1,
        changed: 2,
        removed: 1,
        refused: 0,
    };
    assert_eq!(count, expected);
    let rules: Vec<String> = texts(&store).into_iter().map(|(id, _)| id).collect();
    assert_eq!(
        rules,
        [
            "REFL-001@one", "REFL-002@one", "REFL-004@one", "REFL-001@two"
        ]
    );
    assert_eq!(puller.total().unwrap(), 4);
    let count = puller.count_held("one", Kind::Reflexion, &["REFL-002", "REFL-003"]);
    assert_eq!(count.unwrap(), 1);
}

#[test]
fn invalid_record_and_workspace_are_refused() {
    let (_dir, store) = store();
    let puller = store.pull().unwrap();
    for name in [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        ".index",
        "a\u{0}",
        &"x".repeat(65),
    ] {
        assert!(
            puller.apply(name, Kind::Procedure, &[]).is_err(),
            "{name:?}"
        );
    }
    let texts = [
        "",
        "7",
        "{}",
        "{\"procedure_id\": \"PROC-002\"}",
        "{\"procedure_id\": \"PROC-001\"",
        "[]",
        "{\"procedure_id\": \"PROC-001\"}]}, {",
        "{\"procedure_id\": [\"PROC-001\"]}",
    ];
    for text in texts {
        let change = PulledChange {
            id: "PROC-001".to_owned(),
            text: Some(text.to_owned()),
        };
        let count = puller.apply("one", Kind::Procedure, &[change]).unwrap();
        assert_eq!((count.added, count.refused), (0, 1), "{text}");
    }
    let hr = Scoped::new(store.directory(), Scope::parse("hr"));
    assert!(matches!(hr.pull(), Err(Error::OutOfScope(..))));
}

#[test]
fn an_origin_called_like_a_file_of_ours_is_in_nobodys_way() {
    let (_dir, store) = store();
    let puller = store.pull().unwrap();
    let origins = [
        "state.json", "workspace.json", "Support", "support", "support-eu",
    ];
    for origin in origins {
        puller
            .apply(origin, Kind::Reflexion, &[put("REFL-001", origin)])
            .unwrap();
    }
    puller.keep_state(b"{}").unwrap();
    assert_eq!(puller.state().unwrap(), b"{}");
    let mut found: Vec<String> = store.pulled().into_iter().map(|p| p.origin).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "Support", "state.json", "support", "support-eu", "workspace.json"
        ]
    );
    assert_eq!(texts(&store).len(), 5);
    for (given, expected) in [("support", "support"), ("support-", "support-eu")] {
        assert_eq!(store.pulled_as(given).unwrap().origin, expected);
    }
}

#[test]
fn a_damaged_origin_is_known_and_can_be_thrown_away() {
    let (_dir, store) = store();
    let puller = store.pull().unwrap();
    for origin in ["one", "two"] {
        puller
            .apply(origin, Kind::Reflexion, &[put("REFL-001", "a")])
            .unwrap();
    }
    assert_eq!(puller.damaged(), Vec::<String>::new());
    let path = store
        .directory()
        .join("remote/one")
        .join(Kind::Reflexion.file());
    let whole = fs::read(&path).unwrap();
    for damage in [
        &b""[..],
        b"\0\0\0",
        b"[]",
        b"{\"reflexions\": [nonsense]}",
        &whole[..10],
        &whole[..60],
    ] {
        named::replace(&path, damage).unwrap();
        assert_eq!(puller.damaged(), ["one"], "{}", damage.escape_ascii());
        assert!(puller.total().is_ok());
    }
    puller.discard("one").unwrap();
    puller.discard("never").unwrap();
    assert_eq!(puller.damaged(), Vec::<String>::new());
    assert_eq!(puller.total().unwrap(), 1);
}

#[test]
fn a_scope_holds_for_what_was_pulled() {
    let (_dir, store) = store();
    let puller = store.pull().unwrap();
    puller
        .apply("one", Kind::Reflexion, &[put("REFL-001", "a")])
        .unwrap();
    let seen = |scope| texts(&Scoped::new(store.directory(), Scope::parse(scope))).len();
    assert_eq!((seen("hr"), seen("finance")), (1, 0));
}

/// Each torn end is waited for, in case that another program is about to complete it: side by side.
#[test]
fn torn_end_is_repaired_by_the_next_pull() {
    const THREADS: usize = 8;
    std::thread::scope(|scope| {
        for first in 0..THREADS {
            scope.spawn(move || torn_ends_are_repaired(first, THREADS));
        }
    });
}

/// Tears the end off at every length from `first` on, in steps.
fn torn_ends_are_repaired(first: usize, step: usize) {
    let (_dir, store) = store();
    let puller = store.pull().unwrap();
    let both = [put("REFL-001", "a"), put("REFL-002", "b")];
    puller.apply("one", Kind::Reflexion, &both).unwrap();
    let path = store
        .directory()
        .join("remote/one")
        .join(Kind::Reflexion.file());
    let whole = fs::read(&path).unwrap();
    for length in (first..whole.len()).step_by(step) {
        named::replace(&path, &whole[..length]).unwrap();
        let applied = puller.apply("one", Kind::Reflexion, &both);
        if applied.is_ok() {
            assert_eq!(texts(&store).len(), 2, "{length}");
        }
        // A beginning without its array cannot be repaired here.
        assert!(applied.is_ok() || length < 30, "{length}: {applied:?}");
    }
}
