//! `memory export`, `import` and `purge` from outside: an exported memory is restored, and imports from
//! other programs lose nothing silently.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{RUN, correction};
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";

/// Everything that a person or another program may have written into a file of memory.
const ODD: &str = "{\n  \"entries\": [\n    {\n      \"id\": \"MEM-001\",\n      \
    \"memory_type\": \"task_memory\",\n      \"content\": \"caf\\u00e9 日本 \\ud83d\\ude00\",\n      \
    \"n\": 1062.0,   \"big\": 12345678901234567890123,\n      \"e\": 1e+16\n    },\n    \
    {\"id\": \"MEM-002\", \"memory_type\": \"task_memory\", \"content\": \"nan\", \"x\": NaN, \"y\": [-Infinity]},\n    \
    {\"id\":\"MEM-003\",\"lone\":\"\\udcff\"},\n    {\"content\": \"no id\"}\n  ]\n}";

/// A file without the white space that its layout has.
fn dense(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn data_files(workspace: &Workspace) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(workspace.memory("")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let is_data = Path::new(&name)
            .extension()
            .is_some_and(|e| e == "json" || e == "jsonl");
        // The audit and the undo journal stay in this workspace.
        let is_account = ["audit.jsonl", "changes.jsonl", "workspace.json"].contains(&&*name);
        if is_data && !is_account {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    files
}

/// A workspace with records of most kinds, a tombstone and a file that hands have written.
fn remembering() -> Workspace {
    let mut workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    for (i, said) in [
        "When a summary is written, NEVER name competitors.",
        "When screening for senior roles, a candidate without distributed systems should score below 60.",
    ]
    .iter()
    .enumerate()
    {
        workspace.set("MEMCTL_NOW", &format!("2026-02-2{i}T12:43:41.68144{i}+00:00"));
        workspace.json(&RUN);
        let correct = correction(said);
        workspace.run(&correct).succeeds();
    }
    workspace.json(&RUN);
    workspace.json(&["learn", "fixtures/transcripts/steps.jsonl"]);
    workspace.run(&["memory", "forget", "REFL-001"]).succeeds();
    workspace.write(".agentura/memories.json", ODD);
    workspace
}

fn counts_add_up(report: &Value) {
    let number = |value: &Value| value.as_u64().unwrap();
    let skipped: u64 = report["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| number(&s["count"]))
        .sum();
    let known = number(&report["imported"]) + number(&report["duplicates"]);
    assert_eq!(number(&report["read"]), known + skipped, "{report}");
    let kinds: u64 = report["by_kind"]
        .as_object()
        .unwrap()
        .values()
        .map(number)
        .sum();
    assert_eq!(number(&report["imported"]), kinds, "{report}");
}

fn import(workspace: &Workspace, args: &[&str]) -> Value {
    let mut all = vec!["memory", "import"];
    all.extend(args);
    let report = workspace.json(&all);
    counts_add_up(&report);
    report
}

#[test]
fn exported_memory_is_restored_after_a_purge() {
    let workspace = remembering();
    let before = data_files(&workspace);
    let report = workspace.json(&["memory", "export", "--output", "memory.jsonl"]);
    assert_eq!(report["counts"]["tombstones.jsonl"], 1);
    assert_eq!(report["counts"]["memories"], 4);
    let text = workspace.read("memory.jsonl");
    for line in text.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    let purged = workspace.json(&["memory", "purge", "--yes"]);
    assert_eq!(purged["complete"], true);
    assert_eq!(data_files(&workspace), BTreeMap::new());
    let dry = import(&workspace, &["memory.jsonl", "--dry-run"]);
    assert_eq!(data_files(&workspace), BTreeMap::new());
    let report = import(&workspace, &["memory.jsonl"]);
    assert_eq!(dry["by_kind"], report["by_kind"]);
    assert_eq!(report["skipped"], json!([]));
    assert_eq!(report["renamed"], json!([]));
    let after = data_files(&workspace);
    for (name, text) in &before {
        let (after, text) = (dense(&after[name]), dense(text));
        // The log of actions has one line more: that of the import.
        let is_log = name == "execution_logs.jsonl";
        assert!(
            after == text || is_log && after.ends_with(&text),
            "{name}: {after}"
        );
    }
    // A forgotten record keeps its tombstone, and its id is not reused.
    workspace
        .run(&["memory", "show", "REFL-001"])
        .fails(2, "was removed");
    // A second import adds nothing, and the next export differs only in its time.
    let again = import(&workspace, &["memory.jsonl"]);
    assert_eq!(
        (&again["imported"], &again["skipped"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(data_files(&workspace), after);
    workspace.json(&["memory", "export", "--output", "again.jsonl"]);
    let body = |name: &str| {
        let text = workspace.read(name);
        // Both logs have one line more: that of the import.
        let lines = text.lines().skip(1).filter(|line| {
            !line.contains("\"log\":\"audit.jsonl\"") && !line.contains("\"memory import\"")
        });
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(body("again.jsonl"), body("memory.jsonl"));
    workspace.run(&["doctor"]).succeeds();
}

#[test]
fn an_export_takes_the_place_of_an_export_and_of_nothing_else() {
    let workspace = remembering();
    let export = ["memory", "export", "--output", "memory.jsonl"];
    workspace.run(&export).succeeds();
    workspace.run(&export).succeeds();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = std::fs::metadata(workspace.root().join("memory.jsonl")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    workspace.write("mine.txt", "mine\n");
    let mine = ["memory", "export", "--output", "mine.txt"];
    workspace
        .run(&mine)
        .fails(2, "is not an export of this program");
    assert_eq!(workspace.read("mine.txt"), "mine\n");
    workspace
        .run(&[&mine[..], &["--force"]].concat())
        .succeeds();
    workspace
        .run(&["memory", "export", "--output", "-", "--json"])
        .fails(2, "");
    let out = workspace.run(&["memory", "export", "--output", "-", "--kind", "rule"]);
    let lines: Vec<Value> = out
        .succeeds()
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["format"], &lines[1]["id"]),
        (&json!("memctl-export"), &json!("REFL-002"))
    );
    // A scope exports only its own records.
    let dev = workspace.run(&["memory", "export", "--output", "-", "--scope", "dev"]);
    assert_eq!(dev.succeeds().stdout.lines().count(), 1);
    // Secrets that another program has written do not go out.
    let secret = format!("gh{}_{}", "p", "a1B2c3D4e5".repeat(4));
    let memories = workspace
        .read(".agentura/memories.json")
        .replace("nan", &secret);
    workspace.write(".agentura/memories.json", memories);
    let out = workspace.run(&["memory", "export", "--output", "-"]);
    assert!(
        !out.succeeds().stdout.contains(&secret) && out.stderr.contains("secrets were redacted")
    );
}

#[test]
fn ids_that_clash_get_new_ones_and_every_reference_follows() {
    let mut here = Workspace::sample();
    here.set("MEMCTL_NOW", "2026-03-01T09:00:00.000001+00:00");
    here.run(&["init"]).succeeds();
    here.json(&RUN);
    let said = "Always answer in whole sentences.";
    here.run(&correction(said)).succeeds();
    let there = remembering();
    there.json(&["memory", "export", "--output", "memory.jsonl"]);
    here.write("memory.jsonl", there.read("memory.jsonl"));
    let before = here.read(".agentura/reflexion_entries.json");
    let report = import(&here, &["memory.jsonl"]);
    let new = |old: &str| -> Value {
        let renamed = report["renamed"].as_array().unwrap();
        renamed.iter().find(|r| r["from"] == old).unwrap()["to"].clone()
    };
    assert_eq!(new("CORR-001"), "CORR-003");
    assert!(
        report["skipped"]
            .to_string()
            .contains("key of another workspace"),
        "{report}"
    );
    let after = here.read(".agentura/reflexion_entries.json");
    assert!(
        after.starts_with(before.trim_end_matches("\n  ]\n}\n")),
        "{after}"
    );
    let corrections = here.stored("corrections.json");
    let renumbered = corrections["corrections"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["correction_id"] == "CORR-003")
        .unwrap();
    assert_eq!(renumbered["imported_from"]["id"], "CORR-001");
    // Its rule was forgotten there; CORR-002 had a free id, and its rule still names it.
    let rule = here.stored("reflexion_entries.json")["entries"][1].clone();
    assert_eq!(
        (&rule["reflexion_id"], &rule["correction_id"]),
        (&json!("REFL-002"), &json!("CORR-002"))
    );
    let again = import(&here, &["memory.jsonl"]);
    assert_eq!(
        (&again["imported"], &again["renamed"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(here.read(".agentura/reflexion_entries.json"), after);
    let dangling = here.json_of(&["doctor"])["dangling"].clone();
    assert_eq!(dangling, json!([]));
}

#[test]
fn forgotten_record_is_imported_only_on_request() {
    let workspace = remembering();
    workspace.json(&["memory", "export", "--output", "memory.jsonl"]);
    workspace.run(&["memory", "forget", "PROC-001"]).succeeds();
    let edit = [
        "memory",
        "edit",
        "REFL-002",
        "--set",
        "root_cause=Nobody said.",
    ];
    workspace.run(&edit).succeeds();
    let report = import(&workspace, &["memory.jsonl"]);
    let skipped = report["skipped"].to_string();
    assert!(
        skipped.contains("procedure PROC-001") && skipped.contains("forgotten here on purpose"),
        "{report}"
    );
    assert!(
        skipped.contains("reflexion REFL-002") && skipped.contains("has changed since"),
        "{report}"
    );
    assert_eq!(report["imported"], 0);
    let report = import(&workspace, &["memory.jsonl", "--restore"]);
    assert_eq!(report["by_kind"], json!({"procedures": 1}));
    workspace.run(&["memory", "show", "PROC-001"]).succeeds();
}

#[test]
fn a_directory_of_the_reference_comes_in_as_it_is() {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let entry = |id: &str, rule: &str| {
        format!(
            "{{\"correction_id\": \"CORR-001\", \"skill\": \"{SKILL}\", \"created_at\": \"2026-01-01T00:00:00.1+00:00\", \"rule\": \"{rule}\", \"utility_score\": 0.50, \"x\": NaN, \"reflexion_id\": \"{id}\"}}"
        )
    };
    // Two with one id, as the reference makes them after a deletion.
    let (a, b) = (
        entry("REFL-001", "Always a."),
        entry("REFL-001", "Always b."),
    );
    workspace.write(
        "other/.agentura/reflexion_entries.json",
        format!("{{\"entries\": [{a},{b}]}}"),
    );
    workspace.write(
        "other/.agentura/failure_cases.json",
        "{\"cases\": [{\"failure_case_id\": \"FAIL-001\"}]}",
    );
    let report = import(&workspace, &["other"]);
    assert_eq!(
        (&report["source"], &report["imported"]),
        (&json!("agentura"), &json!(2))
    );
    assert_eq!(report["skipped"][0]["what"], "failure cases");
    let text = workspace.read(".agentura/reflexion_entries.json");
    assert!(text.contains(&a), "{text}");
    assert!(
        text.contains("\"utility_score\": 0.50, \"x\": NaN, \"reflexion_id\": \"REFL-002\""),
        "{text}"
    );
    let names: Vec<_> = std::fs::read_dir(workspace.root().join("other/.agentura"))
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(import(&workspace, &["other"])["imported"], 0);
}

#[test]
fn notes_of_others_wait_until_a_person_approves_them() {
    let workspace = Workspace::sample();
    let token = format!("gh{}_{}", "p", "a1B2c3D4e5".repeat(4));
    let note = |id: &str, content: &str| {
        json!({"kind": "memory", "id": id, "entry": {"id": id, "memory_type": "user_preferences",
            "content": content, "metadata": {"heading": "Style"}, "trust": "user",
            "created_at": "2026-01-01T00:00:00.000001+00:00"}})
    };
    let header = json!({"format": "memctl-export", "version": 1, "exported_at": "", "counts": {}});
    let lines = [
        header,
        note("MEM-001", "Write short functions."),
        note("MEM-002", &format!("The token is {token}")),
    ];
    let lines = lines.map(|line| line.to_string() + "\n").concat();
    workspace.write("notes.jsonl", lines);
    // Markdown for agents is read by them.
    workspace.write("CLAUDE.md", "- Write short functions.\n");
    workspace
        .run(&["memory", "import", "CLAUDE.md"])
        .fails(2, "agents read such a file themselves");
    workspace.write("none.json", "{\"a\": 1}");
    workspace
        .run(&["memory", "import", "none.json"])
        .fails(2, "it is no export of memctl");
    import(&workspace, &["notes.jsonl", "--dry-run"]);
    assert!(!workspace.memory("").exists());
    let report = import(&workspace, &["notes.jsonl"]);
    assert_eq!(
        (&report["imported"], &report["observed"]),
        (&json!(2), &json!(2))
    );
    let found = workspace.json(&["memory", "search", "short functions", "--keyword"]);
    let note = &found["results"][0];
    assert_eq!(note["trust"], "observed");
    let id = note["id"].as_str().unwrap();
    let shown = workspace.run(&["show", id]).succeeds().stdout.clone();
    assert!(shown.contains("\"heading\": \"Style\""), "{shown}");
    let all = workspace.json(&["list", "notes"]).to_string();
    assert!(!all.contains(&token), "{all}");
    let approved = workspace.json(&["memory", "approve", id]);
    assert_eq!(
        (&approved["before"], &approved["trust"]),
        (&json!("observed"), &json!("approved"))
    );
    assert_eq!(import(&workspace, &["notes.jsonl"])["imported"], 0);
    let id = approved["id"].as_str().unwrap();
    workspace.run(&["memory", "forget", id]).succeeds();
    let again = import(&workspace, &["notes.jsonl"]);
    assert!(
        again["skipped"]
            .to_string()
            .contains("forgotten here on purpose"),
        "{again}"
    );
}

#[test]
fn an_export_that_was_cut_off_or_edited_says_so() {
    let workspace = remembering();
    workspace.json(&["memory", "export", "--output", "memory.jsonl"]);
    let text = workspace.read("memory.jsonl");
    let lines: Vec<&str> = text.lines().collect();
    workspace.write(
        "cut.jsonl",
        format!("{}\n{{broken\n", lines[..4].join("\n")),
    );
    let empty = Workspace::sample();
    empty.write("cut.jsonl", workspace.read("cut.jsonl"));
    let report = import(&empty, &["cut.jsonl"]);
    assert_eq!(report["imported"], 3);
    assert_eq!(report["skipped"][0]["what"], "line 5");
    assert!(
        report["warnings"]
            .to_string()
            .contains("it was cut off, or edited"),
        "{report}"
    );
    workspace.write(
        "newer.jsonl",
        text.replacen("\"version\":1", "\"version\":2", 1),
    );
    workspace
        .run(&["memory", "import", "newer.jsonl"])
        .fails(2, "it has version 2");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
    #[test]
    fn any_entry_survives_the_round_trip(
        values in prop::collection::vec(
            prop_oneof![
                Just("NaN".to_owned()), Just("1062.0".to_owned()), Just("-0".to_owned()), Just("1e+400".to_owned()),
                Just("123456789012345678901234567890".to_owned()), Just("\"\\ud83d\"".to_owned()), Just("[ ]".to_owned()),
                Just("{\"a\":{}}".to_owned()), "\"[a-zé日 ]{0,8}\"".prop_map(String::from),
            ],
            1..6,
        ),
        gaps in prop::collection::vec(prop_oneof![Just(""), Just(" "), Just("\n\t"), Just("\r\n  ")], 6),
    ) {
        let workspace = Workspace::empty();
        let entries: Vec<String> = values.iter().enumerate().map(|(i, value)| {
            let gap = gaps[i % gaps.len()];
            format!("{{{gap}\"id\":{gap}\"MEM-{:03}\",{gap}\"odd key é\": {value}{gap}}}", i + 1)
        }).collect();
        let text = format!("{{\"entries\": [\n    {}\n  ]\n}}\n", entries.join(",\n    "));
        workspace.write(".agentura/memories.json", &text);
        workspace.json(&["memory", "export", "--output", "m.jsonl"]);
        workspace.json(&["memory", "purge", "--yes"]);
        import(&workspace, &["m.jsonl"]);
        let after = workspace.read(".agentura/memories.json");
        prop_assert_eq!(dense(after.as_bytes()), dense(text.as_bytes()));
    }
}

/// `--trust` at the second import approves what the first one left waiting.
#[test]
fn a_second_import_with_trust_approves() {
    let source = Workspace::sample();
    let note = [
        "memory", "add", "--type", "brand_memory", "--content", "Voice: calm", "--metadata",
    ];
    let note = [&note[..], &[r#"{"tone": ["calm"]}"#]].concat();
    source.run(&note).succeeds();
    source
        .run(&["correct", "hr/resume-screen", "Name the currency."])
        .succeeds();
    source
        .run(&["memory", "export", "--output", "all.jsonl"])
        .succeeds();
    let workspace = Workspace::sample();
    workspace.write("all.jsonl", source.read("all.jsonl"));
    let waiting = || {
        let queue = workspace.json(&["review"]);
        queue["waiting"].as_array().unwrap().len()
    };
    let page = workspace.run(&["memory", "import", "all.jsonl"]);
    assert!(page.stdout.contains("or import with --trust"), "{page:?}");
    assert_eq!(waiting(), 2);
    let report = workspace.json(&["memory", "import", "all.jsonl", "--trust"]);
    assert_eq!(report["approved"].as_array().unwrap().len(), 2, "{report}");
    let again = workspace.json(&["memory", "import", "all.jsonl", "--trust"]);
    assert_eq!(again["approved"], json!([]), "{again}");
    assert_eq!(waiting(), 0);
}

/// As in a memory whose corrections were lost before their numbers were kept.
#[test]
fn a_rule_that_is_older_than_the_correction_with_its_number_is_another() {
    let correct = |workspace: &Workspace, said: &str| workspace.json(&["correct", SKILL, said]);
    let workspace = Workspace::sample();
    correct(&workspace, "Always name the years of experience.");
    let other = json!({ "corrections": [{ "correction_id": "CORR-001", "skill": SKILL,
        "timestamp": "2199-01-01T00:00:00.5+00:00", "user_correction": "Never promise an interview." }] });
    workspace.write(".agentura/corrections.json", other.to_string());
    let said = correct(&workspace, "Never promise an interview.");
    assert_eq!(
        (&said["correction_id"], &said["reflexion_id"]),
        (&json!("CORR-001"), &json!("REFL-002")),
        "{said}"
    );
}
