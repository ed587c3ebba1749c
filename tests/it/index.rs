//! The search index: results follow the files, after any damage to the files or the index.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, thread};

use chrono::Utc;
use memctl::model::{Correction, Scope};
use memctl::notes::{self, FindOptions};
use memctl::store::Scoped;
use memctl::store::workspace::{Providers, Settings, Workspace as Opened};
use memctl_search::Fusion;
use serde_json::{Value, json};

use crate::workspace::Workspace;

/// Words of which each text gets some, so that no two are alike.
const WORDS: [&str; 16] = [
    "invoice", "deploy", "candidate", "timeout", "ledger", "branch", "refund", "schema", "tenant",
    "voucher", "socket", "payroll", "release", "contract", "cache", "ticket",
];

/// Distinct text per number; only this one contains the word `unique{n}`.
fn text(n: usize) -> String {
    let word = |i: usize| WORDS[(n / 16_usize.pow(u32::try_from(i).unwrap()) + i) % 16];
    format!("When {} meets {}, check unique{n} first", word(0), word(1))
}

fn store(directory: &Path) -> Scoped {
    Scoped::new(directory, Scope::All)
}

fn append(store: &Scoped, skill: &str, text: &str) -> String {
    let record: Correction =
        serde_json::from_value(json!({ "skill": skill, "user_correction": text })).unwrap();
    let mut n = 0;
    let mut random = || {
        n += 1;
        format!("random-{n}")
    };
    let mut writer = store.write(&mut random).unwrap();
    writer.append(record, Utc::now()).unwrap().correction_id
}

pub(crate) fn engine(store: Scoped) -> Opened {
    Opened {
        store,
        skills_dir: PathBuf::from("/nonexistent"),
        settings: Settings {
            rules_tokens: 1_000,
            procedures_tokens: 0,
            max_output_tokens: 1_000,
            min_similarity: 0.35,
            reflect_prompt: None,
            past_session_prompt: None,
            person: memctl_redact::Person::default(),
            judge_prompt: None,
            export_tests: false,
            task_days: 0,
        },
        providers: Providers::default(),
        spare_dir: PathBuf::from("/nonexistent"),
        group_commit: Arc::default(),
        seen_notes: Arc::default(),
        now: Utc::now(),
        random: || "random".to_owned(),
    }
}

/// The ids that are found by words, and how many records had to be analysed for it.
fn find(engine: &Opened, query: &str) -> (Vec<String>, usize) {
    let options = FindOptions {
        weak: false,
        fusion: Fusion::Keyword,
        ..FindOptions::new(query.to_owned(), 5)
    };
    let mut analysed = 0;
    let report = notes::find(engine, &options, &mut |_, of| analysed = of).unwrap();
    let ids = report.results.into_iter().map(|found| found.id);
    (ids.collect(), analysed)
}

/// The files of the index.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join(".index/search")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn appended_record_is_found_at_once_a_thousand_times() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for n in 0..500 {
        append(&store, "hr/screening", &text(n));
    }
    let engine = engine(store.clone());
    assert_eq!(find(&engine, "unique7").1, 500);
    for n in 500..1_500 {
        let id = append(&store, "hr/screening", &text(n));
        let (found, analysed) = find(&engine, &format!("unique{n}"));
        assert_eq!(found, [id]);
        assert!(analysed <= 65, "{analysed} records were analysed at {n}");
    }
    for n in [0, 499, 500, 777, 1_499] {
        assert_eq!(find(&engine, &format!("unique{n}")).0.len(), 1, "{n}");
    }
}

#[test]
fn damage_to_the_index_changes_nothing_that_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for n in 0..200 {
        append(&store, "hr/screening", &text(n));
    }
    let engine = engine(store);
    let queries = ["unique42", "invoice timeout", "voucher contract cache"];
    let answers = || queries.map(|query| find(&engine, query).0);
    let right = answers();
    assert!(right.iter().all(|found| !found.is_empty()));
    let whole: Vec<(PathBuf, Vec<u8>)> = files(dir.path())
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    assert!(whole.len() >= 4, "{whole:?}");
    let index = dir.path().join(".index/search");
    // As a crash or a careless hand leaves it: a new file of the old name, never a change in place.
    let put = |path: &Path, bytes: &[u8]| {
        fs::remove_dir_all(&index).unwrap();
        fs::create_dir(&index).unwrap();
        for (path, bytes) in &whole {
            fs::write(path, bytes).unwrap();
        }
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    };
    for (path, bytes) in &whole {
        for share in [0, 1, 2, 3] {
            put(path, &bytes[..bytes.len() * share / 4]);
            assert_eq!(answers(), right, "{} cut to {share}/4", path.display());
        }
        for at in (0..bytes.len()).step_by(bytes.len().div_ceil(61).max(1)) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x41;
            put(path, &damaged);
            assert_eq!(answers(), right, "{} damaged at {at}", path.display());
        }
        put(path, b"something else altogether");
        assert_eq!(answers(), right, "{} replaced", path.display());
        // It may have been replaced by one of another name.
        drop(fs::remove_file(path));
        assert_eq!(answers(), right, "{} removed", path.display());
    }
    fs::remove_dir_all(&index).unwrap();
    assert_eq!(answers(), right);
    let list = fs::read_to_string(index.join("list.json")).unwrap();
    fs::write(
        index.join("list.json"),
        list.replace("\"format\":1", "\"format\":2"),
    )
    .unwrap();
    assert_eq!(answers(), right);
}

#[test]
fn a_hand_edit_is_found_and_what_it_replaced_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for n in 0..300 {
        append(&store, "hr/screening", &text(n));
    }
    let engine = engine(store);
    assert_eq!(find(&engine, "unique299").0.len(), 1);
    let path = dir.path().join("corrections.json");
    let edit = |from: &str, to: &str| {
        let content = fs::read_to_string(&path).unwrap();
        assert!(content.contains(from));
        // In place: the same file, of the same length where the words are.
        fs::write(&path, content.replace(from, to)).unwrap();
    };
    edit("unique150 ", "edited150 ");
    assert_eq!(find(&engine, "edited150").0.len(), 1);
    assert_eq!(find(&engine, "unique150").0.len(), 0);
    // Only edited records are analysed.
    edit("unique151 ", "a much longer edited151 ");
    assert_eq!(find(&engine, "edited151").1, 1);
    assert_eq!(find(&engine, "unique299").0, ["CORR-300"]);
    // An entry goes, another comes.
    let mut content: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let entries = content["corrections"].as_array_mut().unwrap();
    let removed = entries.remove(10);
    entries.insert(
        5,
        json!({"correction_id": "CORR-900", "skill": "hr/screening", "user_correction": "by hand"}),
    );
    fs::write(&path, serde_json::to_string_pretty(&content).unwrap()).unwrap();
    assert_eq!(find(&engine, "hand").0, ["CORR-900"]);
    assert_eq!(removed["correction_id"], "CORR-011");
    assert_eq!(find(&engine, "unique10").0.len(), 0);
    assert_eq!(find(&engine, "unique299").0, ["CORR-300"]);
    fs::remove_file(&path).unwrap();
    assert_eq!(find(&engine, "unique299").0.len(), 0);
}

#[test]
fn a_file_that_was_written_again_word_for_word_is_recognised_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for n in 0..300 {
        append(&store, "hr/screening", &text(n));
    }
    let engine = engine(store);
    let list = dir.path().join(".index/search/list.json");
    let after = || {
        assert_eq!(find(&engine, "unique299"), (vec!["CORR-300".to_owned()], 0));
        fs::read(&list).unwrap()
    };
    assert_eq!(find(&engine, "unique299").1, 300);
    let before = after();
    let path = dir.path().join("corrections.json");
    fs::write(&path, fs::read(&path).unwrap()).unwrap();
    let again = after();
    assert_ne!(again, before, "the list is still that of the older file");
    assert_eq!(after(), again);
}

#[test]
fn a_crowd_searches_and_writes_and_each_finds_its_own() {
    let workspace = Workspace::empty();
    let directory = workspace.root().join(".agentura");
    for n in 0..100 {
        append(&store(&directory), "hr/screening", &text(n));
    }
    thread::scope(|scope| {
        for writer in 0..6 {
            let (workspace, directory) = (&workspace, &directory);
            scope.spawn(move || {
                for n in 0..8 {
                    let n = 1_000 + writer * 100 + n;
                    let id = append(&store(directory), "hr/screening", &text(n));
                    let query = format!("unique{n}");
                    let found = workspace.json(&["memory", "search", &query, "--keyword"]);
                    assert_eq!(found["results"][0]["id"], id.as_str(), "{found}");
                }
            });
        }
    });
    let engine = engine(store(&directory));
    for n in (0..100).chain((0..6).flat_map(|w| (0..8).map(move |n| 1_000 + w * 100 + n))) {
        assert_eq!(find(&engine, &format!("unique{n}")).0.len(), 1, "{n}");
    }
}

#[test]
fn forgotten_record_leaves_no_word() {
    let workspace = Workspace::empty();
    let directory = workspace.root().join(".agentura");
    append(
        &store(&directory),
        "hr/screening",
        "Keep the ledger xylophone",
    );
    let id = append(
        &store(&directory),
        "hr/screening",
        "Refund the quetzalcoatl",
    );
    let search = |query: &str| workspace.json(&["memory", "search", query]);
    assert_eq!(search("quetzalcoatl")["results"][0]["id"], id.as_str());
    let holds = |word: &str| {
        files(&directory).iter().any(|path| {
            let bytes = fs::read(path).unwrap();
            bytes
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        })
    };
    assert!(holds("quetzalcoatl") && holds("xylophon"));
    let vectors = || {
        let is_vectors = |path: &PathBuf| path.extension().is_some_and(|e| e == "vectors");
        let sizes = files(&directory).into_iter().filter(is_vectors);
        sizes
            .map(|path| fs::metadata(path).unwrap().len())
            .sum::<u64>()
    };
    let before = vectors();
    workspace.json(&["memory", "forget", &id]);
    assert!(!holds("quetzalcoatl") && holds("xylophon"));
    assert!(vectors() < before);
    assert_eq!(search("xylophone")["results"].as_array().unwrap().len(), 1);
}

// Directories without write permission are a matter of Unix.
#[cfg(unix)]
#[test]
fn a_read_only_memory_is_searched_all_the_same() {
    use std::os::unix::fs::PermissionsExt as _;
    let workspace = Workspace::empty();
    let directory = workspace.root().join(".agentura");
    for n in 0..100 {
        append(&store(&directory), "hr/screening", &text(n));
    }
    drop(fs::remove_dir_all(directory.join(".index")));
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(directory.join("probe"), "").is_ok() {
        // For root, a file takes the place of the directory.
        fs::remove_file(directory.join("probe")).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(directory.join(".index"), "no directory").unwrap();
    }
    for more in [&["--keyword"][..], &[]] {
        let args = [&["memory", "search", "unique42"], more].concat();
        let report = workspace.json(&args);
        assert_eq!(report["results"][0]["id"], "CORR-043", "{report}");
    }
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_scope_is_as_if_nothing_else_were_there() {
    let (whole, alone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for n in 0..80 {
        let skill = if n % 2 == 0 {
            "hr/screening"
        } else {
            "dev/review"
        };
        append(&store(whole.path()), skill, &text(n));
        if n % 2 == 0 {
            append(&store(alone.path()), skill, &text(n));
        }
    }
    let scores = |directory: &Path, scope: &str| {
        let engine = engine(Scoped::new(directory, Scope::parse(scope)));
        let options = FindOptions {
            weak: false,
            fusion: Fusion::Keyword,
            ..FindOptions::new("invoice timeout release unique41 unique42".to_owned(), 20)
        };
        let report = notes::find(&engine, &options, &mut |_, _| {}).unwrap();
        let found = report.results.into_iter();
        found
            .map(|f| (f.snippet, f.score.to_string()))
            .collect::<BTreeSet<_>>()
    };
    // Indexed by a caller with full access.
    scores(whole.path(), "*");
    assert_eq!(scores(whole.path(), "hr"), scores(alone.path(), "hr"));
    assert!(!scores(whole.path(), "hr").is_empty());
    assert!(scores(whole.path(), "finance").is_empty());
}

#[test]
fn filters_leave_only_what_they_name() {
    let workspace = Workspace::empty().trusted();
    let note = |id: &str, kind: &str, created: &str, expires: Value| {
        json!({"id": id, "memory_type": kind, "content": "the colour of the logo is green",
            "created_at": created, "updated_at": created, "expires_at": expires})
    };
    let (old, new) = ("2025-03-01T10:00:00Z", "2026-01-05T10:00:00Z");
    let memories = json!({"entries": [
        note("MEM-001", "brand_memory", old, Value::Null),
        note("MEM-002", "task_memory", new, Value::Null),
        note("MEM-003", "brand_memory", new, json!("2026-02-01T00:00:00Z")),
        note("MEM-004", "brand_memory", new, json!("2027-02-01T00:00:00Z")),
    ]});
    workspace.write(".agentura/memories.json", memories.to_string());
    workspace.write(
        ".agentura/procedural_memory.json",
        json!({"entries": [pattern!({"procedure_id": "PROC-001", "created_at": new, "error_key": "logo colour green",
            "failing_code": "a", "working_code": "b"})]})
        .to_string(),
    );
    let check = |args: &[&str], expected: &[&str]| {
        let args = [
            &["memory", "search", "logo colour green", "--keyword"],
            args,
        ]
        .concat();
        let report = workspace.json(&args);
        let results = report["results"].as_array().unwrap();
        let ids: BTreeSet<&str> = results.iter().map(|r| r["id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected.iter().copied().collect(), "{args:?}");
    };
    check(&[], &["MEM-001", "MEM-002", "MEM-004", "PROC-001"]);
    check(&["--kind", "procedure"], &["PROC-001"]);
    check(&["--type", "brand_memory"], &["MEM-001", "MEM-004"]);
    check(&["--trust", "user"], &["MEM-001", "MEM-002", "MEM-004"]);
    check(
        &["--since", "2026-01-01"],
        &["MEM-002", "MEM-004", "PROC-001"],
    );
    check(&["--until", "2026-01-01"], &["MEM-001"]);
    check(&["--since", "2026-01-05T10:00:01+00:00"], &[]);
    for wrong in [["--since", "yesterday"], ["--type", "note"]] {
        let args = [&["memory", "search", "x"], &wrong[..]].concat();
        assert_eq!(workspace.run(&args).code, 2);
    }
}

#[test]
fn an_explanation_says_how_a_result_came_about() {
    let workspace = Workspace::empty();
    let directory = workspace.root().join(".agentura");
    for n in 0..20 {
        append(&store(&directory), "hr/screening", &text(n));
    }
    let report = workspace.json(&["memory", "search", "unique3 elsewhere", "--explain"]);
    let terms = report["asked"]["terms"].as_array().unwrap();
    let held = |word: &str| terms.iter().find(|t| t["word"] == word).unwrap()["documents"].clone();
    assert_eq!((held("unique3"), held("elsewher")), (json!(1), json!(0)));
    let first = &report["results"][0];
    assert_eq!(first["explain"]["matched"], json!(["unique3"]));
    assert!(first["explain"]["keyword"].as_f64().unwrap() > 1.0);
    assert!(first["explain"]["semantic"].as_f64().is_some());
    assert_eq!(report["asked"]["fusion"], "default");
    let plain = workspace.run(&["memory", "search", "unique3", "--explain"]);
    assert!(plain.stdout.contains("words "), "{plain:?}");
}
