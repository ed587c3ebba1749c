//! Quality of search: the sets of public benchmarks, and the table that measures it on them.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::workspace::Workspace;

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

    let table = Command::new("python3")
        .arg(repository.join("tests/eval.py"))
        .args([env!("CARGO_BIN_EXE_memctl"), "--public"])
        .args([
            "sets/locomo-sessions", "sets/locomo-turns", "sets/longmemeval",
        ])
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
