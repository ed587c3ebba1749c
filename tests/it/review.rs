//! `review` from outside: the queue through a pipe, and decisions with the keys of a real terminal.

use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";

/// A project in which two fixes, two candidates and a contradiction wait.
fn waiting() -> Workspace {
    let workspace = Workspace::sample().trusted();
    workspace.run(&["init"]).succeeds();
    let rule = |id: &str, rule: &str, more: Value| {
        let mut record = json!({"reflexion_id": id, "skill": SKILL, "rule": rule,
            "created_at": "2026-02-01T00:00:00+00:00", "confidence": 0.8});
        for (name, value) in more.as_object().unwrap() {
            record[name] = value.clone();
        }
        record
    };
    let said = json!([{"quote": "no, use pnpm here", "session": "s1", "workspace": "shop", "turn": 2,
        "after": "Bash: npm install left-pad"}]);
    let rules = [
        rule("REFL-001", "ALWAYS name the salary range.", json!({})),
        rule(
            "REFL-002",
            "NEVER name the salary range.",
            json!({"relations": [{"id": "REFL-001", "relation": "contradicts", "reason": "r",
                "by": "model"}]}),
        ),
        rule(
            "REFL-003",
            "Use pnpm here",
            json!({"skill": "", "status": "candidate", "source": "chat", "said": said}),
        ),
        rule(
            "REFL-004",
            "Ask before\u{1b}[2J you push.",
            json!({"skill": "", "status": "candidate", "source": "agent"}),
        ),
    ];
    let fix = |id: &str, error: &str, failing: &str, working: &str, sessions: &[&str]| {
        let origins: Vec<Value> = sessions
            .iter()
            .map(|session| json!({"session": session, "workspace": "shop", "step": 3}))
            .collect();
        pattern!({"procedure_id": id, "created_at": "2026-02-03T00:00:00+00:00", "error_key": error,
            "failing_code": failing, "working_code": working, "success_output": "done",
            "tool": "bash", "status": "active", "occurrences": sessions.len(), "origins": origins})
    };
    let fixes = [
        fix(
            "PROC-001",
            "error: externally-managed-environment",
            "pip install flask",
            "pip install --user flask",
            &["a"],
        ),
        fix(
            "PROC-002",
            "unknown flag --watch-all",
            "npm test --watch-all",
            "npm test --watchAll",
            &["a", "b"],
        ),
    ];
    workspace.write(
        ".agentura/reflexion_entries.json",
        json!({"entries": rules}).to_string(),
    );
    workspace.write(
        ".agentura/procedural_memory.json",
        json!({"entries": fixes}).to_string(),
    );
    workspace
}

#[test]
fn a_pipe_gets_each_entry_with_the_command_to_type_and_the_change_of_a_fix() {
    let workspace = waiting();
    let ran = workspace.run(&["review"]);
    let text = &ran.succeeds().stdout;
    let (changes, lines): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with(' '));
    let changes: Vec<&str> = changes.iter().map(|line| line.trim()).collect();
    assert_eq!(
        changes,
        [
            "npm test --watch-all → npm test --watchAll",
            "pip install flask → pip install --user flask",
        ]
    );
    let begins: Vec<Vec<&str>> = lines
        .iter()
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    assert_eq!(
        begins,
        [
            ["contradiction", "REFL-001,REFL-002"],
            ["candidate", "REFL-003"],
            ["candidate", "REFL-004"],
            ["lesson", "PROC-002"],
            ["lesson", "PROC-001"],
        ]
    );
    assert!(lines[0].ends_with("→ memctl memory conflicts --merge REFL-002 REFL-001"));
    assert!(!text.contains('\u{1b}'), "{text}");
    let of_skill = workspace.run(&["review", "--skills", SKILL]);
    assert_eq!(of_skill.succeeds().stdout.lines().count(), 1);
}

#[test]
fn each_command_takes_its_entry_out_of_the_queue() {
    let workspace = waiting();
    let left = || -> Vec<Value> {
        let queue = workspace.json(&["review"]);
        let waiting = queue["waiting"].as_array().unwrap().iter();
        waiting.map(|one| one["id"].clone()).collect()
    };
    let rejected = workspace.json(&["reject", "REFL-004", "--reason", "one task"]);
    assert_eq!(rejected["kind"], "reflexion");
    workspace.json(&["reject", "PROC-001", "--reason", "one machine"]);
    workspace.json(&["memory", "approve", "REFL-003"]);
    workspace.json(&["memory", "conflicts", "--keep-both", "REFL-001", "REFL-002"]);
    assert_eq!(left(), ["PROC-002"]);
    let fixes = workspace.stored("procedural_memory.json");
    let fix = &fixes["entries"][0];
    assert_eq!(
        (
            &fix["state"],
            &fix["judgement"]["by"],
            &fix["judgement"]["reason"]
        ),
        (&json!("retired"), &json!("user"), &json!("one machine"))
    );
    // What counts is not rejected but forgotten.
    let error = workspace.run(&["reject", "REFL-003", "--reason", "no"]);
    assert_eq!(error.code, 2);
    assert!(error.stderr.contains("memctl forget REFL-003"), "{error:?}");
}

#[test]
fn keys_on_a_small_terminal_approve_edit_and_merge() {
    approve_edit_and_merge((80, 24), "");
}

#[test]
fn keys_on_a_large_terminal_without_colours_approve_edit_and_merge() {
    approve_edit_and_merge((200, 50), "NO_COLOR=1 ");
}

fn approve_edit_and_merge((columns, rows): (u16, u16), settings: &str) {
    let workspace = waiting();
    let editor = workspace.root().join("editor.sh");
    std::fs::write(&editor, "sed -i s/pnpm/yarn/ \"$1\"\n").unwrap();
    let Some(terminal) = Terminal::open(&workspace, columns, rows) else {
        return;
    };
    let answer = |key: &str, expected: &str| {
        // An empty screen, so that the answer is found and not an earlier line.
        terminal.keys(&["-R"]);
        terminal.type_line(key);
        terminal.wait_for(expected)
    };
    let screen = answer(
        &format!("{settings}EDITOR='sh editor.sh' memctl review; echo code=$?"),
        "contradiction  REFL-001,REFL-002  5 waiting",
    );
    for part in ["older:        ALWAYS name", "keep both", "skip"] {
        assert!(screen.contains(part), "{screen}");
    }
    let rule = || {
        let rules = workspace.stored("reflexion_entries.json");
        let rules = rules["entries"].as_array().unwrap().clone();
        let rule = rules
            .into_iter()
            .find(|one| one["reflexion_id"] == "REFL-003");
        let rule = rule.unwrap();
        (rule["status"].clone(), rule["rule"].clone())
    };
    let before = rule();
    // What is no key of this entry decides nothing.
    for line in ["a", "merge", "approve"] {
        answer(line, &format!("`{line}` is no key here"));
    }
    answer("s", "candidate  REFL-003  4 waiting");
    answer("x", "reason:");
    answer("", ">");
    assert_eq!(rule(), before);
    answer("e", "Use yarn here");
    assert_eq!(rule().1, "Use yarn here");
    answer("a", "candidate  REFL-004  3 waiting");
    assert_ne!(rule().0, before.0);
    answer("x one task", "lesson  PROC-002  2 waiting");
    answer("x not npm", "rejected PROC-002");
    let rejected = workspace.stored("procedural_memory.json").to_string();
    assert!(rejected.contains("not npm"), "{rejected}");
    answer("q", "code=0");
    terminal.wait_for_prompt();
    answer(
        "memctl review",
        "contradiction  REFL-001,REFL-002  2 waiting",
    );
    answer("2", "merged REFL-001 into REFL-002");
    answer("q", "");
    terminal.wait_for_prompt();
    answer("echo over", "over");
}
