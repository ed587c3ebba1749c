//! `eval retrieval` on small test files.

use crate::workspace::{Ran, Workspace};

const DOCS: &str = r#"{"id": "a", "text": "verify regulatory requirements before release", "title": "rules"}
{"id": 2, "text": "bake the bread for forty minutes", "title": "bread"}

{"id": "c", "text": "the lock file is out of date: run the installer again", "title": "installer"}
"#;
const QUERIES: &str = r#"{"qid": "q1", "text": "compliance check", "relevant": ["a"]}
{"qid": "q2", "text": "lock file outdated", "relevant": ["c"], "short": "installer"}
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
        "recall@1", "recall@5", "recall@10", "hit@5", "mrr@10", "ndcg@10",
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
fn what_cannot_be_used_is_named_with_its_line() {
    let workspace = workspace();
    let run = |arguments: &[&str]| Ran::of(workspace.command().args(arguments).output().unwrap());
    run(&[&FILES[..], &["--doc-field", "body"]].concat())
        .fails(2, "docs.jsonl`, line 1: `body` is missing");
    run(&[&FILES[..], &["--query-field", "short"]].concat()).fails(2, "`short` is missing");
    workspace.write("set/queries.jsonl", "{\"qid\": 1, \"text\": \"x\"}\n");
    run(&FILES).fails(2, "`relevant` is missing or is not an array");
    workspace.write("set/queries.jsonl", "[]\n");
    run(&FILES).fails(2, "line 1: not a JSON object");
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
