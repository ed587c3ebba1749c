//! `HeedBench` (`benches/heed`): the cases are what its page says, and the scale has both ends.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn bench() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/heed")
}

fn lines(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(bench().join(name)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_cases_are_what_the_page_says() {
    let cases = lines("cases.jsonl");
    let of = |lasting: bool| cases.iter().filter(move |case| case["lasting"] == lasting);
    assert_eq!((cases.len(), of(false).count()), (120, 24));
    let foreign = cases.iter().filter(|case| case["lang"] != "en").count();
    assert!(foreign * 3 >= cases.len(), "{foreign}");
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for case in of(true) {
        *kinds.entry(case["kind"].as_str().unwrap()).or_default() += 1;
    }
    assert_eq!(kinds.len(), 15, "{kinds:?}");
    assert!(kinds.values().all(|number| *number >= 6), "{kinds:?}");
    let mut verdicts: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &cases {
        let later = case["later"].as_array().unwrap();
        for call in later {
            *verdicts
                .entry(call["verdict"].as_str().unwrap())
                .or_default() += 1;
        }
        let is_rule = case["lasting"] == true && case["withdrawn"] != true;
        // One half alone is never whole.
        let halves = case["must"].as_array().unwrap().len();
        assert_eq!(halves, if is_rule { 2 } else { 0 }, "{case}");
        assert!(!later.is_empty(), "{case}");
    }
    let expected = BTreeMap::from([("obeys", 168), ("unrelated", 272), ("violates", 232)]);
    assert_eq!(verdicts, expected);
    // Each correction has its recorded answer, and no control has one.
    let answers = lines("answers.jsonl");
    let answered: BTreeSet<&str> = answers.iter().filter_map(|a| a["id"].as_str()).collect();
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        assert_eq!(answered.contains(id), case["lasting"] == true, "{id}");
        let earlier = answered.contains(format!("{id}/earlier").as_str());
        assert_eq!(earlier, case.get("earlier").is_some(), "{id}");
    }
}

#[test]
fn the_scale_has_both_ends() {
    let score = |memory: &str, with_answers: bool| -> Option<Value> {
        let mut command = Command::new("python3");
        command
            .args(["-B", "heed.py", "--json", "--memory"])
            .arg(format!("adapters/claude_md.py:{memory}"))
            .current_dir(bench());
        if with_answers {
            command.args(["--answers", "answers.jsonl"]);
        }
        let Ok(output) = command.output() else {
            println!("skipped: there is no python3");
            return None;
        };
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        Some(report["total"].clone())
    };
    let check = |memory: &str, with_answers: bool, expected: [Value; 6]| {
        let Some(total) = score(memory, with_answers) else {
            return;
        };
        let names = [
            "heard_recall", "complete", "told_whole", "spoken_at_violations", "spoken_elsewhere",
            "stale",
        ];
        for (name, expected) in names.into_iter().zip(expected) {
            assert_eq!(total[name]["share"], expected, "{memory}: {name}: {total}");
        }
    };
    check("Silent", false, [0.0; 6].map(Value::from));
    // Two rules are withdrawn, which it cannot understand.
    let echo = [1.0, 0.979, 0.979, 1.0, 1.0, 1.0];
    check("Echo", false, echo.map(Value::from));
    let file = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0];
    check("ClaudeMd", true, file.map(Value::from));
}
