//! Names and rows of others that would break what lies here: they stop no pull, and lead to no path.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::postgres::{ANN, Store};
use crate::workspace::Workspace;

fn rule(id: &str, origin: &str) -> String {
    format!(
        "insert into reflexions (origin, entry_id, skill, entry) values ({origin}, '{id}', 'hr/resume-screen',
           '{{\"reflexion_id\": \"{id}\", \"skill\": \"hr/resume-screen\", \"rule\": \"Name the licence.\"}}')"
    )
}

/// Every file and directory below one, but for what is below `.agentura/remote` and what is derived.
fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![directory.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let is_remote =
                path.ends_with(".agentura/remote") || path.ends_with(".agentura/.index");
            if path.is_dir() && !is_remote {
                open.push(path.clone());
            }
            found.insert(path);
        }
    }
    found
}

fn pulled(laptop: &Workspace) -> u64 {
    laptop.json(&["memory", "status"])["pulled"]["records"]
        .as_u64()
        .unwrap()
}

#[test]
fn an_origin_called_like_a_file_stops_nothing() {
    let Some(store) = Store::new() else { return };
    let laptop = store.laptop(ANN);
    laptop.json(&["sync"]);
    let before = files(laptop.root().parent().unwrap());
    let names = [
        "state.json",
        "workspace.json",
        "Support",
        "support",
        "CON",
        &"x".repeat(64),
    ];
    for name in names {
        store.ann.run(&rule("REFL-001", &format!("'{name}'")));
    }
    let came = laptop.json(&["sync"]);
    assert_eq!(
        (&came["pulled"], &came["warnings"]),
        (&6.into(), &serde_json::json!([])),
        "{came}"
    );
    assert_eq!(pulled(&laptop), 6);
    assert_eq!(laptop.json(&["sync"])["pulled"], 0);
    for name in names {
        let shown = laptop.json(&["memory", "show", &format!("REFL-001@{name}")]);
        assert!(
            shown.to_string().contains("Name the licence."),
            "{name}: {shown}"
        );
    }

    // Names that the tables would not take, as another program might let them in.
    let admin = store.database.admin();
    admin.run("alter table reflexions drop constraint reflexions_origin_check");
    let odd = [
        "'..'", "'.'", "''", "'../../evil'", "'/tmp/evil'", "'.index'", "E'a\\nb'", "E'\\x1b[2J'",
        "'état'", "repeat('x', 300)", "'a/b'",
    ];
    for name in odd {
        store.ann.run(&rule("REFL-001", name));
    }
    store.ann.run(&rule("REFL-002", "'support'"));
    let came = laptop.json(&["sync"]);
    assert_eq!(came["pulled"], 1, "{came}");
    let warning = came["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("11 rows of others were left there"),
        "{warning}"
    );
    assert!(
        !warning.contains('\u{1b}') && !warning.contains('\n'),
        "{warning:?}"
    );
    assert_eq!(pulled(&laptop), 7);
    laptop.run(&["sync"]).succeeds();
    let new: Vec<PathBuf> = files(laptop.root().parent().unwrap())
        .difference(&before)
        .cloned()
        .collect();
    assert!(
        new.iter()
            .all(|path| path.starts_with(laptop.root().join(".agentura"))),
        "{new:?}"
    );
    assert!(
        !new.iter()
            .any(|path| path.to_string_lossy().contains("evil")),
        "{new:?}"
    );
}

#[test]
fn a_damaged_copy_is_pulled_again_as_a_whole() {
    let Some(store) = Store::new() else { return };
    let laptop = store.laptop(ANN);
    for (id, origin) in [
        ("REFL-001", "'one'"),
        ("REFL-002", "'one'"),
        ("REFL-001", "'two'"),
    ] {
        store.ann.run(&rule(id, origin));
    }
    store.ann.run("insert into context_eng_memories (origin, entry_id, entry) values ('one', 'PROC-001', '{\"procedure_id\": \"PROC-001\"}')");
    laptop.json(&["sync"]);
    let path = laptop.memory("remote/one/reflexion_entries.json");
    let whole = std::fs::read(&path).unwrap();
    let text = std::str::from_utf8(&whole).unwrap();
    let between = text.replacen("},", "}, {{{ nonsense", 1);
    let damages: [&[u8]; 5] = [b"\0\0\0\0", b"[]", b"", &whole[..20], between.as_bytes()];
    for damage in damages {
        std::fs::write(&path, damage).unwrap();
        // A plan changes nothing.
        let plan = laptop.json(&["sync", "--dry-run"]);
        assert_eq!(
            plan["warnings"].as_array().unwrap().len(),
            1,
            "{damage:?} {plan}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), damage);
        let came = laptop.json(&["sync"]);
        let warning = came["warnings"][0].as_str().unwrap();
        assert!(
            warning.contains("the workspace `one` was damaged here"),
            "{warning}"
        );
        assert_eq!(
            std::fs::read(&path).unwrap(),
            whole,
            "{}",
            damage.escape_ascii()
        );
        assert!(laptop.memory("remote/one/procedural_memory.json").is_file());
        assert_eq!(pulled(&laptop), 4);
        assert_eq!(laptop.json(&["sync"])["warnings"], serde_json::json!([]));
    }

    // Whoever is cut off after it was thrown away fetches it with the next sync.
    let state = laptop.memory("remote/state.json");
    let mut kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&state).unwrap()).unwrap();
    kept["pulled"] = serde_json::json!({});
    std::fs::write(&state, kept.to_string()).unwrap();
    std::fs::remove_dir_all(laptop.memory("remote/one")).unwrap();
    laptop.json(&["sync"]);
    assert_eq!(std::fs::read(&path).unwrap(), whole);
    assert_eq!(pulled(&laptop), 4);

    // What this database knows nothing of is left alone.
    store
        .database
        .admin()
        .run("delete from reflexions where origin = 'two'");
    let other = laptop.memory("remote/two/reflexion_entries.json");
    std::fs::write(&other, b"\0\0").unwrap();
    let came = laptop.json(&["sync"]);
    assert!(
        came["warnings"][0]
            .as_str()
            .unwrap()
            .contains("has nothing of it"),
        "{came}"
    );
    assert_eq!(std::fs::read(&other).unwrap(), b"\0\0");
}
