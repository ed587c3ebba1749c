//! `eval retrieval` on small test files.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::workspace::{Ran, Workspace};

const DOCS: &str = r#"{"id": "a", "text": "verify regulatory requirements before release"}
{"id": 2, "text": "bake the bread for forty minutes"}

{"id": "c", "text": "the lock file is out of date: run the installer again"}
"#;
const QUERIES: &str = r#"{"qid": "q1", "text": "compliance check", "relevant": ["a"]}
{"qid": "q2", "text": "lock file outdated", "relevant": ["c"]}
"#;

fn workspace() -> Workspace {
    let workspace = Workspace::empty();
    workspace.write("set/docs.jsonl", DOCS);
    workspace.write("set/queries.jsonl", QUERIES);
    workspace
}

const FILES: [&str; 6] = [
    "eval", "retrieval", "--docs", "set/docs.jsonl", "--queries", "set/queries.jsonl",
];

#[test]
fn measures_come_as_one_document() {
    let workspace = workspace();
    let report = workspace.json(&FILES);
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    let expected = [
        "dataset", "documents", "queries", "metrics", "latency_ms", "fusion", "embedder",
    ];
    assert_eq!(keys, expected);
    let measures: Vec<&String> = report["metrics"].as_object().unwrap().keys().collect();
    let expected = [
        "recall@1", "recall@5", "recall@10", "precision@5", "hit@1", "hit@5", "hit@10", "all@5",
        "mrr@10", "ndcg@10",
    ];
    assert_eq!(measures, expected);
    assert_eq!(report["dataset"], "set");
    assert_eq!(report["documents"], 3);
    assert_eq!(report["metrics"]["recall@1"], 1.0);
    assert_eq!(report["embedder"], "all-minilm-l6-v2-int8/384");
    // Nothing is remembered, not even a directory.
    assert!(!workspace.root().join(".agentura").exists());
}

#[test]
fn words_alone_do_not_find_what_is_said_otherwise() {
    let workspace = workspace();
    let report = workspace.json(&[&FILES[..], &["--fusion", "keyword"]].concat());
    assert_eq!(report["metrics"]["recall@10"], 0.5);
    assert!(report["embedder"].is_null());
    for fusion in ["rrf", "semantic"] {
        let report = workspace.json(&[&FILES[..], &["--fusion", fusion]].concat());
        assert_eq!(report["metrics"]["recall@1"], 1.0, "{fusion}");
        assert_eq!(report["fusion"], fusion);
    }
}

#[test]
fn unusable_line_is_named() {
    let workspace = workspace();
    let run = |arguments: &[&str]| Ran::of(workspace.command().args(arguments).output().unwrap());
    workspace.write("set/none.jsonl", "{\"id\": 1}\n");
    let docs = ["--docs", "set/none.jsonl", "--queries", "set/queries.jsonl"];
    run(&[&FILES[..2], &docs].concat()).fails(2, "none.jsonl`, line 1: missing field `text`");
    workspace.write("set/queries.jsonl", "{\"qid\": 1, \"text\": \"x\"}\n");
    run(&FILES).fails(2, "missing field `relevant`");
    workspace.write("set/queries.jsonl", "[]\n");
    run(&FILES).fails(2, "queries.jsonl`, line 1: invalid length 0");
    run(&[&FILES[..4], &["--queries", "missing.jsonl"]].concat()).fails(2, "missing.jsonl");
    workspace.write(
        "set/queries.jsonl",
        "{\"qid\": 1, \"text\": \"x\", \"relevant\": [\"z\"]}\n",
    );
    let ran = run(&FILES);
    assert!(ran.succeeds().stdout.contains("recall@5"), "{ran:?}");
    assert!(
        ran.stderr.contains("1 relevant ids name no document"),
        "{ran:?}"
    );
}

/// One conversation in the form of `locomo10.json`: a question with evidence in two sessions, one whose
/// evidence stands in one text, and one without evidence.
const LOCOMO: &str = r#"[{"sample_id": "conv-1", "conversation": {
  "speaker_a": "Ann", "speaker_b": "Bo", "session_1_date_time": "8 May 2023",
  "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a greyhound."},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a red bicycle"}],
  "session_2_date_time": "9 May 2023",
  "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "The greyhound likes carrots."}],
  "session_3_date_time": "10 May 2023", "session_3": []},
 "qa": [{"question": "What does the greyhound of Ann eat?", "evidence": ["D1:1; D2:1"], "category": 1},
        {"question": "Who has a red bicycle?", "evidence": ["D1:2"], "category": 4},
        {"question": "What is unknown?", "evidence": [], "category": 5}]}]"#;
const LONGMEMEVAL: &str = r#"[
 {"question_id": "q1", "question": "Which degree did I get?", "haystack_session_ids": ["a", "b"],
  "haystack_dates": ["2023/05/20", "2023/05/21"], "answer_session_ids": ["b"],
  "haystack_sessions": [[{"role": "user", "content": "How do I bake bread?"}],
                        [{"role": "user", "content": "I got a degree in geology."}]]},
 {"question_id": "q2_abs", "question": "Which boat?", "haystack_session_ids": ["a"], "haystack_dates": ["x"],
  "answer_session_ids": [], "haystack_sessions": [[]]}]"#;

#[test]
fn public_benchmarks_become_sets_with_their_own_metrics() {
    let workspace = Workspace::empty();
    workspace.write("locomo10.json", LOCOMO);
    workspace.write("longmemeval_s.json", LONGMEMEVAL);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = Command::new("python3")
        .arg(repository.join("tools/public_sets.py"))
        .args(["--locomo", "locomo10.json"])
        .args(["--longmemeval", "longmemeval_s.json", "sets"])
        .current_dir(workspace.root())
        .output();
    let Ok(output) = python else {
        println!("skipped: there is no `python3`");
        return;
    };
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let expected = "sets/locomo-sessions: 2 documents, 2 queries\n\
        sets/locomo-turns: 3 documents, 2 queries\nsets/longmemeval: 2 documents, 1 queries\n";
    assert_eq!(said, expected);
    let relevant = |set: &str| -> Vec<Value> {
        let queries = workspace.read(&format!("sets/{set}/queries.jsonl"));
        let row = |line: &str| serde_json::from_str::<Value>(line).unwrap()["relevant"].clone();
        queries.lines().map(row).collect()
    };
    assert_eq!(
        relevant("locomo-sessions"),
        [json!(["conv-1/D1", "conv-1/D2"]), json!(["conv-1/D1"])]
    );
    assert_eq!(
        relevant("locomo-turns"),
        [
            json!(["conv-1/D1:1", "conv-1/D2:1"]),
            json!(["conv-1/D1:2"])
        ]
    );

    let table = Command::new("sh")
        .arg(repository.join("tests/eval-public.sh"))
        .args([env!("CARGO_BIN_EXE_memctl"), "sets"])
        .current_dir(workspace.root())
        .output()
        .unwrap();
    let table = String::from_utf8(table.stdout).unwrap();
    // Both sessions and all three turns fit into the first five.
    for set in ["locomo-sessions", "locomo-turns", "longmemeval"] {
        let row = table.lines().find(|line| line.contains(set)).unwrap();
        let default = row.rsplit('|').nth(1).unwrap().trim();
        assert_eq!(default, "1.000 / 1.000 / 1.000 / 1.000", "{table}");
    }
}
