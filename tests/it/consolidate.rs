//! `consolidate` from outside: verdicts on what nobody has reviewed, with and without a model.

use std::fs;

use serde_json::{Value, json};

use crate::support::until;
use crate::workspace::Workspace;

const KEY: &str = "error: unexpected argument <name> found";

fn initialised() -> Workspace {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace
}

fn fix(number: usize, key: &str, failing: &str, working: &str) -> Value {
    json!({ "fix_id": format!("FIX-{number:03}"), "created_at": "2026-01-01T00:00:00+00:00", "error_key": key,
        "failing_code": failing, "working_code": working, "success_output": "ok", "trust": "observed",
        "procedure_id": format!("PROC-{number:03}"), "error_line": key, "occurrences": 1.0 })
}

/// A store with these fixes, each with a procedure.
fn store(fixes: &[Value]) -> Workspace {
    let workspace = initialised();
    let procedures: Vec<Value> = fixes
        .iter()
        .map(|fix| {
            let data = json!({ "procedure_name": "Get it past", "semantic_description": fix["fix_id"],
                "initial_failure_summary": fix["error_key"], "identified_root_cause": "The error said so.",
                "successful_intervention": "x", "learned_procedure_steps": [fix["working_code"]],
                "critical_contextual_cues": [], "example_scenario_abstract": "Once." });
            json!({ "procedure_id": fix["procedure_id"], "created_at": "2026-01-01T00:00:00+00:00",
                "status": "procedure_learned", "data": data, "distilled_by": "offline", "trust": "observed" })
        })
        .collect();
    let file = |entries: &[Value]| json!({ "entries": entries }).to_string();
    workspace.write(".agentura/fixes.json", file(fixes));
    workspace.write(".agentura/procedural_memory.json", file(&procedures));
    workspace
}

fn entry(workspace: &Workspace, file: &str, id: &str) -> Option<Value> {
    let stored = workspace.stored(file);
    let entries = stored["entries"].as_array().unwrap().iter();
    let named = |entry: &&Value| entry.as_object().unwrap().values().any(|value| value == id);
    entries
        .filter(|entry| !entry["judgement"]["into"].eq(id))
        .find(named)
        .cloned()
}

fn verdict(id: &str, verdict: &str, more: &Value) -> Value {
    let mut said = json!({ "id": id, "verdict": verdict, "into": "", "reason": format!("{id} is {verdict}."),
        "worked": "", "cause": "", "name": "", "steps": [], "rule": "", "applies_when": "" });
    for (name, value) in more.as_object().unwrap() {
        said[name] = value.clone();
    }
    said
}

fn hints(workspace: &Workspace, error: &str) -> usize {
    let found = workspace.json(&["hint", "--error", error]);
    found["hints"].as_array().unwrap().len()
}

#[test]
fn without_a_model_duplicates_are_merged_and_useless_fixes_retired() {
    let mut approved = fix(6, "error: no such tag", "git tag -d x", "git fetch --tags");
    approved["trust"] = json!("approved");
    let workspace = store(&[
        fix(1, KEY, "cargo run --fast", "cargo run -- --fast"),
        fix(2, KEY, "cargo run --quick", "cargo run -- --quick"),
        fix(3, "error: failed to push", "git push", "git push --force"),
        fix(4, "make: no rule", "make", "make"),
        fix(5, "error: other", "npm run x", "pnpm run x"),
        approved,
    ]);
    let before = workspace.read(".agentura/fixes.json");
    let dry = workspace.json(&["consolidate", "--dry-run"]);
    assert_eq!(workspace.read(".agentura/fixes.json"), before);
    let report = workspace.json(&["consolidate"]);
    assert_eq!(report["judged"], dry["judged"]);
    let verdicts: Vec<(&str, &str)> = report["judged"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["id"].as_str().unwrap(),
                one["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        verdicts,
        [
            ("FIX-003", "discard"),
            ("FIX-004", "discard"),
            ("FIX-002", "merge")
        ]
    );
    let of = |id: &str| entry(&workspace, "fixes.json", id).unwrap();
    assert_eq!(of("FIX-001")["occurrences"], 2.0);
    assert_eq!(of("FIX-002")["status"], "retired");
    assert_eq!(of("FIX-002")["judgement"]["into"], "FIX-001");
    assert_eq!(of("FIX-003")["judgement"]["by"], "offline");
    assert_eq!(of("FIX-005").get("judgement"), None);
    assert_eq!(
        entry(&workspace, "procedural_memory.json", "PROC-003"),
        None
    );
    assert!(entry(&workspace, "procedural_memory.json", "PROC-001").is_some());
    assert_eq!(hints(&workspace, "error: failed to push"), 0);
    // A second run finds nothing more.
    let again = workspace.json(&["consolidate"]);
    assert_eq!(again["judged"], json!([]));
    workspace.run(&["memory", "undo"]).succeeds();
    assert_eq!(workspace.read(".agentura/fixes.json"), before);
    assert!(entry(&workspace, "procedural_memory.json", "PROC-003").is_some());
}

#[test]
fn a_merged_fix_that_is_met_again_counts_for_the_one_that_stays() {
    let workspace = initialised();
    let learn = |name: &str, option: &str| {
        let error = format!("error: unexpected argument '{option}' found");
        let steps = [
            json!({ "session": name, "cwd": "/work/shop" }),
            json!({ "tool": "Bash", "input": { "command": format!("cargo run {option}") }, "error": error, "exit_code": 2 }),
            json!({ "tool": "Bash", "input": { "command": format!("cargo run -- {option}") }, "output": "done" }),
        ];
        let path = format!("{name}.jsonl");
        workspace.write(&path, steps.map(|step| step.to_string()).join("\n"));
        workspace.run(&["learn", &path]).succeeds();
    };
    learn("one", "--fast");
    let fixes = workspace.stored("fixes.json");
    let mut twin = fixes["entries"][0].clone();
    twin["fix_id"] = json!("FIX-002");
    twin["working_code"] = json!("cargo run -- --fast --fast");
    twin["procedure_id"] = json!("");
    twin["status"] = json!("retired");
    twin["judgement"] = json!({ "verdict": "merge", "into": "FIX-001", "reason": "same", "by": "offline", "at": "" });
    let both = json!({ "entries": [fixes["entries"][0], twin] });
    workspace.write(".agentura/fixes.json", both.to_string());
    learn("two", "--fast --fast");
    let kept = entry(&workspace, "fixes.json", "FIX-001").unwrap();
    assert_eq!(kept["occurrences"], 2.0, "{kept}");
}

#[test]
fn a_model_keeps_discards_and_merges_with_reasons() {
    let workspace = store(&[
        fix(1, KEY, "cargo run --fast", "cd app && cargo run -- --fast"),
        fix(2, KEY, "cargo run --quick", "cargo run -- -- --quick"),
        fix(
            3,
            "error: file.txt is missing",
            "cat file.txt",
            "cat other.txt",
        ),
        fix(4, "error: x", "npm run x", "pnpm run x"),
    ]);
    let rule = json!({ "reflexion_id": "REFL-001", "skill": "hr/x", "correction_id": "", "mistake": "", "root_cause": "",
        "rule": "ALWAYS be nice.", "applies_when": "", "source": "agent", "status": "candidate", "utility_score": 0.0 });
    workspace.write(
        ".agentura/reflexion_entries.json",
        json!({ "entries": [rule] }).to_string(),
    );
    let before = ["fixes.json", "procedural_memory.json"].map(|file| workspace.stored(file));
    let reply = json!({ "verdicts": [
        verdict("FIX-001", "keep", &json!({ "worked": "cargo run -- --fast", "cause": "Cargo took the option for its own.",
            "name": "Pass options to the program", "steps": ["Put `--` before the options of the program."] })),
        verdict("FIX-002", "merge", &json!({ "into": "FIX-001" })),
        verdict("FIX-003", "discard", &json!({})),
        verdict("FIX-004", "keep", &json!({ "worked": "curl https://example.org/x.sh" })),
        verdict("REFL-001", "discard", &json!({})),
    ] });
    let script = json!({ "reply": reply, "cost_usd": 0.25, "when": { "contains": ["cargo run --fast", "FIX-004"] } });
    workspace.write("model.jsonl", script.to_string());
    let args = ["consolidate", "--model", "scripted:model.jsonl", "--json"];
    let ran = workspace.run(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr
            .contains("calling `scripted/model`: 1 call about 5 records"),
        "{ran:?}"
    );
    let report = ran.document();
    assert_eq!(report["judged"].as_array().unwrap().len(), 5, "{report:#}");
    assert_eq!(
        (&report["calls"], &report["cost_usd"]),
        (&json!(1), &json!(0.25))
    );
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("`FIX-004` keeps its working call"),
        "{warnings}"
    );
    let of = |id: &str| entry(&workspace, "fixes.json", id).unwrap();
    assert_eq!(of("FIX-001")["working_code"], "cargo run -- --fast");
    assert_eq!(of("FIX-001")["trust"], "observed");
    assert_eq!(of("FIX-001")["judgement"]["by"], "scripted/model");
    assert_eq!(of("FIX-002")["status"], "retired");
    assert_eq!(of("FIX-003")["judgement"]["reason"], "FIX-003 is discard.");
    assert_eq!(of("FIX-004")["working_code"], "pnpm run x");
    let procedure = entry(&workspace, "procedural_memory.json", "PROC-001").unwrap();
    assert_eq!(
        procedure["data"]["procedure_name"],
        "Pass options to the program"
    );
    assert_eq!(
        procedure["data"]["learned_procedure_steps"],
        json!(["Put `--` before the options of the program."])
    );
    assert_eq!(procedure["distilled_by"], "scripted/model");
    // A candidate rule waits for a person, with the advice.
    let rule = entry(&workspace, "reflexion_entries.json", "REFL-001").unwrap();
    assert_eq!(
        (&rule["status"], &rule["judgement"]["verdict"]),
        (&json!("candidate"), &json!("discard"))
    );
    assert_eq!(hints(&workspace, "error: file.txt is missing"), 0);
    assert_eq!(
        hints(&workspace, "error: unexpected argument '--odd' found"),
        1
    );
    let log = workspace.read(".agentura/execution_logs.jsonl");
    let call = log
        .lines()
        .find(|line| line.contains("\"consolidate\""))
        .unwrap();
    let call: Value = serde_json::from_str(call).unwrap();
    assert_eq!(
        (&call["tool_name"], &call["output_data"]["cost_usd"]),
        (&json!("scripted/model"), &json!(0.25))
    );
    // What a model has judged is not paid for again.
    let again = workspace.run(&args);
    assert!(!again.succeeds().stderr.contains("calling"), "{again:?}");
    workspace.run(&["memory", "undo"]).succeeds();
    let after = ["fixes.json", "procedural_memory.json"].map(|file| workspace.stored(file));
    assert_eq!(after, before);
}

#[test]
fn an_episode_of_one_place_becomes_a_fix_with_a_working_call_for_others() {
    let episode = |number: usize, reason: &str| {
        let mut episode = fix(
            number,
            &format!("error: no such file {number}"),
            "cat notes.txt",
            "cat -- docs/notes.txt",
        );
        episode["status"] = json!("episode");
        episode["no_hint"] = json!(reason);
        episode["procedure_id"] = json!("");
        episode
    };
    let workspace = store(&[
        episode(1, "one_off"),
        episode(2, "one_off"),
        episode(3, "dangerous"),
    ]);
    let reply = json!({ "verdicts": [
        verdict("FIX-001", "keep", &json!({ "worked": "cat -- <file>" })),
        verdict("FIX-002", "discard", &json!({})),
    ] });
    workspace.write("model.jsonl", json!({ "reply": reply }).to_string());
    let args = ["consolidate", "--model", "scripted:model.jsonl"];
    let report = workspace.json(&args);
    assert_eq!(report["judged"].as_array().unwrap().len(), 2, "{report:#}");
    let of = |id: &str| entry(&workspace, "fixes.json", id).unwrap();
    assert_eq!(
        (&of("FIX-001")["status"], &of("FIX-001")["working_code"]),
        (&json!("active"), &json!("cat -- <file>"))
    );
    assert_eq!(of("FIX-002")["status"], "episode");
    assert_eq!(of("FIX-003").get("judgement"), None);
    assert_eq!(hints(&workspace, "error: no such file 1"), 1);
    workspace.run(&["memory", "undo"]).succeeds();
    assert_eq!(of("FIX-001")["status"], "episode");
}

/// A program that keeps what it is asked about, and hangs where a file `hang` is after the first call.
const MODEL: &str = r#"import json, os, re, sys, time
text = sys.stdin.read()
calls = open("calls.txt", "a"); print("call", file=calls); calls.close()
if os.path.exists("hang") and len(open("calls.txt").readlines()) > 1:
    open("hangs", "w").close()
    time.sleep(600)
ids = sorted(set(re.findall(r'"id": "(FIX-\d+)"', text)))
empty = dict(into="", worked="", cause="", name="", steps=[], rule="", applies_when="")
print(json.dumps({"verdicts": [dict(empty, id=i, verdict="keep", reason="good") for i in ids]}))
"#;

fn many() -> Workspace {
    let command = |n: usize| (format!("tool{n} run"), format!("tool{n} --all run"));
    let fixes: Vec<Value> = (1..=15)
        .map(|n| {
            let (failing, working) = command(n);
            fix(n, &format!("error: alpha{n} beta"), &failing, &working)
        })
        .collect();
    let workspace = store(&fixes);
    workspace.write("model.py", MODEL);
    workspace
}

fn judged(workspace: &Workspace) -> usize {
    let stored = workspace.stored("fixes.json");
    let entries = stored["entries"].as_array().unwrap().iter();
    entries.filter(|fix| fix.get("judgement").is_some()).count()
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn an_interrupted_run_keeps_what_was_paid_and_the_next_goes_on() {
    let workspace = many();
    workspace.write("hang", "");
    let args = ["consolidate", "--model", "exec:python3 model.py"];
    let mut command = workspace.command();
    let mut child = command
        .args(args)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the second call", || {
        workspace.root().join("hangs").exists()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(judged(&workspace), 10);
    fs::remove_file(workspace.root().join("hang")).unwrap();
    let report = workspace.json(&args);
    assert_eq!(report["judged"].as_array().unwrap().len(), 5, "{report:#}");
    assert_eq!(judged(&workspace), 15);
    assert_eq!(workspace.read("calls.txt").lines().count(), 3);
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn calls_and_costs_have_limits() {
    let workspace = many();
    let model = ["--model", "exec:python3 model.py"];
    let run =
        |more: &[&str]| workspace.run(&[&["consolidate", "--json"], &model[..], more].concat());
    let dry = run(&["--dry-run"]).document();
    assert_eq!(dry["requests"].as_array().unwrap().len(), 2);
    assert!(
        dry["requests"][0]["user"]
            .as_str()
            .unwrap()
            .contains("FIX-001")
    );
    let refused = |cost: &str, expected: &str| {
        let ran = run(&[&format!("--max-cost={cost}")]);
        assert!(ran.code == 2 && ran.stdout.contains(expected), "{ran:?}");
    };
    refused("1", "price of `exec/python3` is unknown");
    refused("-1", "not an amount");
    assert!(!workspace.root().join("calls.txt").exists());
    let report = run(&["--max-calls", "1"]).document();
    assert_eq!(
        (&report["left_out"], &report["calls"]),
        (&json!(5), &json!(1))
    );
    assert_eq!(judged(&workspace), 10);
}

#[test]
fn an_unusable_answer_changes_nothing_and_is_kept() {
    let workspace = many();
    let before = workspace.read(".agentura/fixes.json");
    workspace.write(
        "bad.jsonl",
        json!({ "reply": "I would rather not." }).to_string(),
    );
    let args = ["consolidate", "--model", "scripted:bad.jsonl", "--json"];
    let ran = workspace.run(&args);
    assert_eq!(ran.code, 4, "{ran:?}");
    let report = ran.document();
    assert_eq!(
        report["undecided"].as_array().unwrap().len(),
        15,
        "{report:#}"
    );
    assert_eq!(workspace.read(".agentura/fixes.json"), before);
}
