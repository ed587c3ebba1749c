//! `memory audit` from outside: it contains every write, and every read of a user's records.

use serde_json::{Value, json};

use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";

fn workspace() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let memory = json!({"entries": [{"id": "MEM-001", "memory_type": "brand_memory",
        "content": "Brand: TechFlow, plain words", "metadata": {}}]});
    workspace.write(".agentura/memories.json", memory.to_string());
    workspace
}

/// Audit events as who, action, records and reason, oldest first.
fn lines(workspace: &Workspace, args: &[&str]) -> Vec<(String, String, String)> {
    let report = workspace.json(&[&["memory", "audit", "-n", "100"], args].concat());
    let mut lines: Vec<_> = report["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            let records: Vec<&str> = line["records"]
                .as_array()
                .unwrap()
                .iter()
                .map(|r| r.as_str().unwrap())
                .collect();
            (text("did"), records.join(" "), text("why"))
        })
        .collect();
    lines.reverse();
    lines
}

fn line(did: &str, records: &str, why: &str) -> (String, String, String) {
    (did.to_owned(), records.to_owned(), why.to_owned())
}

#[test]
fn every_write_and_every_read_of_memories_is_noted() {
    let workspace = workspace();
    let run = workspace.json(&["run", SKILL]);
    let execution = run["execution_id"].as_str().unwrap();
    workspace.json(&[
        "correct",
        SKILL,
        "--execution-id",
        execution,
        "--correction",
        "When a career gap exceeds two years, ALWAYS score below 60.",
    ]);
    workspace.json(&["memory", "search", "TechFlow", "--keyword"]);
    workspace.json(&["memory", "list", "memories"]);
    workspace.json(&["memory", "show", "MEM-001"]);
    workspace.json(&["memory", "why", "MEM-001"]);
    workspace.json(&[
        "memory",
        "edit",
        "MEM-001",
        "--set",
        "content=Brand: TechFlow",
    ]);
    workspace.json(&["memory", "forget", "MEM-001"]);
    workspace.json(&["memory", "undo"]);
    let correct = format!("correct {SKILL}");
    let expected = [
        line("added", execution, &format!("run {SKILL}")),
        line("added", "CORR-001", &correct),
        line("added", "REFL-001", &correct),
        line("read", "MEM-001", "search"),
        line("read", "MEM-001", "list"),
        line("read", "MEM-001", "show"),
        line("read", "MEM-001", "why"),
        line("edited", "MEM-001", "edit"),
        line("removed", "MEM-001", "forget"),
        line("added", "MEM-001", "undo"),
    ];
    assert_eq!(lines(&workspace, &[]), expected);
    assert_eq!(lines(&workspace, &["--who", "nobody"]), []);
    let verified = workspace.json(&["memory", "audit", "verify"]);
    assert_eq!(
        (&verified["sound"], &verified["lines"]),
        (&json!(true), &json!(10))
    );
    // The log of agents has those of memories, as the source document says. The texts stand nowhere.
    let log = workspace.read(".agentura/execution_logs.jsonl");
    let log: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_memories = log
        .iter()
        .filter(|line| line["output_data"]["memories"] == json!(["MEM-001"]));
    let of_memories: Vec<_> = of_memories
        .map(|line| (&line["action_type"], &line["step_name"]))
        .collect();
    let did = |did: &str, why: &str| {
        let action = if did == "read" {
            "memory_read"
        } else {
            "memory_write"
        };
        (json!(action), json!(why))
    };
    let logged: Vec<_> = expected[3..]
        .iter()
        .map(|(what, _, why)| did(what, why))
        .collect();
    assert_eq!(
        of_memories,
        logged.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>()
    );
    for file in ["audit.jsonl", "execution_logs.jsonl"] {
        assert!(
            !workspace
                .read(&format!(".agentura/{file}"))
                .contains("TechFlow")
        );
    }
}

/// Rules are read all the time, and reading them changes no file.
#[test]
fn reads_of_rules_are_not_noted() {
    let workspace = workspace();
    workspace.json(&["run", SKILL]);
    workspace.json(&[
        "correct",
        SKILL,
        "--execution-id",
        "latest",
        "--correction",
        "When a career gap exceeds two years, ALWAYS score below 60.",
    ]);
    let before = lines(&workspace, &[]).len();
    workspace.json(&["memory", "search", "career gap", "--kind", "reflexion"]);
    workspace.json(&["memory", "list", "reflexions"]);
    workspace.json(&["memory", "show", "REFL-001"]);
    workspace.json(&["memory", "why", "REFL-001"]);
    workspace.json(&["memory", "prompt", SKILL]);
    workspace.json(&["stats"]);
    assert_eq!(lines(&workspace, &[]).len(), before);
}

/// Problems found by the verification; fails if there are none.
fn broken_now(workspace: &Workspace) -> Value {
    let ran = workspace.run(&["--json", "memory", "audit", "verify"]);
    ran.fails(1, "");
    ran.document()
}

#[test]
fn a_forged_log_fails_the_check() {
    let workspace = workspace();
    for _ in 0..4 {
        workspace.json(&["memory", "show", "MEM-001"]);
    }
    let head = workspace.json(&["memory", "audit", "verify"])["head"].clone();
    let head = head.as_str().unwrap();
    let log = ".agentura/audit.jsonl";
    let text = workspace.read(log);
    let broken = |text: String, args: &[&str]| -> Value {
        workspace.write(log, text);
        let ran = workspace.run(&[&["--json", "memory", "audit", "verify"], args].concat());
        ran.fails(1, "");
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let changed = broken(text.replacen("show", "list", 1), &[]);
    assert_eq!(changed["flaws"][0]["line"], 1);
    // The lines of a log that was cut off are consistent.
    let shorter: String = text.split_inclusive('\n').take(2).collect();
    let cut = broken(shorter.clone(), &[]);
    assert_eq!(cut["flaws"][0]["message"], "the end of the log is gone");
    let cut = broken(shorter, &["--head", head]);
    let message = cut["flaws"][1]["message"].as_str().unwrap();
    assert!(message.contains("not in the log"), "{message}");
    std::fs::remove_file(workspace.root().join(log)).unwrap();
    let gone = broken_now(&workspace);
    assert!(
        gone["flaws"][0]["message"]
            .as_str()
            .unwrap()
            .contains("it is gone"),
        "{gone}"
    );
    workspace.json(&["memory", "show", "MEM-001"]);
    let again = broken_now(&workspace);
    assert_eq!(again["flaws"][0]["line"], 1, "{again}");
    workspace
        .run(&["memory", "audit", "verify", "--head", head])
        .fails(1, "");
}
