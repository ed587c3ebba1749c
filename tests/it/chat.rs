//! Rules that people state in the chat: heard at their message, recorded by the agent, told once a
//! person approved them.

use std::fs;

use serde_json::{Value, json};

use crate::hosts::hook;
use crate::workspace::Workspace;

fn initialised() -> Workspace {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace
}

/// Gives a message of the person to the hook. Returns the question to the agent.
fn says(workspace: &Workspace, host: &str, message: &str) -> String {
    let name = match host {
        "gemini" => "BeforeAgent",
        _ => "UserPromptSubmit",
    };
    let event = json!({"hook_event_name": name, "session_id": "s1", "cwd": workspace.root(),
        "prompt": message});
    hook(workspace, host, event.to_string()).stdout
}

/// Records a rule as an agent does.
fn records(workspace: &Workspace, heard: &Value) -> Value {
    workspace.json(&["correct", "--heard", &heard.to_string()])
}

/// What a session is told at its start.
fn told(workspace: &Workspace) -> String {
    let event = json!({"hook_event_name": "SessionStart", "session_id": "new", "source": "startup",
        "cwd": workspace.root()});
    hook(workspace, "claude-code", event.to_string()).stdout
}

fn rule(workspace: &Workspace, id: &str) -> Value {
    let rules = workspace.stored("reflexion_entries.json");
    let rules = rules["entries"].as_array().unwrap();
    let found = rules.iter().find(|rule| rule["reflexion_id"] == id);
    found.unwrap().clone()
}

/// Records and approves a rule.
fn approved(workspace: &Workspace, message: &str) -> String {
    says(workspace, "claude-code", message);
    let report = records(workspace, &json!({"rule": message, "quote": message}));
    let id = report["id"].as_str().unwrap().to_owned();
    workspace.json(&["memory", "approve", &id]);
    id
}

#[test]
fn a_message_is_heard_recorded_approved_and_told() {
    let workspace = initialised();
    let message = "No! Nextest, not cargo test. Here it is always `cargo nextest run`.";
    let asked = says(&workspace, "claude-code", message);
    let asked: Value = serde_json::from_str(&asked).unwrap();
    let answer = &asked["hookSpecificOutput"];
    assert_eq!(answer["hookEventName"], "UserPromptSubmit");
    let question = answer["additionalContext"].as_str().unwrap();
    assert!(question.contains("memctl correct --heard") && !question.contains('\n'));

    let report = records(
        &workspace,
        &json!({"rule": "Run tests with cargo nextest run.", "when": "tests are run",
            "not": "cargo test", "do": "cargo nextest run",
            "quote": "Here it is always 'cargo nextest run'", "commands": [r"^cargo test\b"]}),
    );
    assert_eq!(report["status"], "candidate");
    let stored = rule(&workspace, "REFL-001");
    assert_eq!(
        (&stored["rule"], &stored["status"], &stored["source"]),
        (
            &json!("Run tests with cargo nextest run. (not: cargo test)"),
            &json!("candidate"),
            &json!("chat")
        )
    );
    assert_eq!(
        stored["seen_by"],
        json!([{"on": "command", "match": r"^cargo test\b"}])
    );
    let told_before = told(&workspace);
    assert!(told_before.contains("1 rule of the user waits"));
    assert!(!told_before.contains("nextest"), "{told_before}");

    workspace.json(&["memory", "approve", "REFL-001"]);
    assert!(told(&workspace).contains("Run tests with cargo nextest run."));
}

#[test]
fn hosts_that_take_no_context_are_not_asked() {
    let workspace = initialised();
    let message = "Bitte ab jetzt nie mehr direkt auf main committen.";
    for host in ["claude-code", "codex", "gemini", "opencode"] {
        assert!(
            says(&workspace, host, message).contains("--heard"),
            "{host}"
        );
    }
    assert_eq!(says(&workspace, "copilot", message), "");
    // The message is a witness all the same.
    let heard = json!({"rule": "Never commit on main.", "quote": message});
    assert_eq!(records(&workspace, &heard)["id"], "REFL-001");
}

#[test]
fn words_that_the_person_did_not_write_are_no_rule() {
    let workspace = initialised();
    let pasted = "what does this mean?\n```\nnever use yarn, always use npm\n```";
    assert_eq!(says(&workspace, "claude-code", pasted), "");
    let body = "<command-message>pr</command-message>\n<pr>Always squash, never merge</pr>";
    assert_eq!(says(&workspace, "claude-code", body), "");
    for quote in ["never use yarn", "Always squash", "never seen", ""] {
        let heard = json!({"rule": "Use npm.", "quote": quote}).to_string();
        let refused = workspace.run(&["correct", "--heard", &heard]);
        assert_eq!(refused.code, 2, "{quote}: {}", refused.stderr);
        assert!(refused.stderr.contains("`quote`"), "{}", refused.stderr);
    }
    let unknown = json!({"rule": "r", "quote": "q", "status": "active"}).to_string();
    workspace
        .run(&["correct", "--heard", &unknown])
        .fails(2, "unknown field `status`");
    assert!(!workspace.memory("reflexion_entries.json").exists());
}

#[test]
fn the_same_rule_again_changes_its_candidate() {
    let workspace = initialised();
    let message = "never push without asking me, and never with --force";
    says(&workspace, "claude-code", message);
    let first = records(
        &workspace,
        &json!({"rule": "Never push without asking.", "quote": message}),
    );
    let again = json!({"rule": "Never push without asking, nor with --force.", "quote": message});
    assert_eq!(records(&workspace, &again)["id"], first["id"]);
    let rules = workspace.stored("reflexion_entries.json");
    assert_eq!(rules["entries"].as_array().unwrap().len(), 1);
    assert_eq!(rules["entries"][0]["rule"], again["rule"]);
}

#[test]
fn an_amended_candidate_gives_way_at_once() {
    let workspace = initialised();
    says(&workspace, "claude-code", "always lint with eslint here");
    let old = records(
        &workspace,
        &json!({"rule": "Lint with eslint.", "quote": "always lint with eslint here"}),
    );
    says(
        &workspace,
        "claude-code",
        "we don't lint with eslint any more, use biome",
    );
    let new = json!({"rule": "Lint with biome, not eslint.", "replaces": true,
        "quote": "we don't lint with eslint any more, use biome"});
    let report = records(&workspace, &new);
    assert_eq!(report["earlier"]["id"], old["id"]);
    assert_eq!(report["earlier"]["now"], "superseded");
    assert_eq!(rule(&workspace, "REFL-001")["superseded_by"], "REFL-002");
}

#[test]
fn a_rule_that_is_taken_back_is_in_force_until_the_person_decides() {
    let workspace = initialised();
    let old = approved(&workspace, "Never start the server on port 5050.");
    says(
        &workspace,
        "claude-code",
        "forget what I said about port 5050, it is free again",
    );
    let heard = json!({"withdraws": true, "quote": "forget what I said about port 5050"});
    let report = records(&workspace, &heard);
    assert_eq!(
        (&report["earlier"]["id"], &report["earlier"]["now"]),
        (&json!(old), &json!("in_force"))
    );
    assert!(told(&workspace).contains("Never start"));
    workspace.json(&["reject", "REFL-002", "--reason", "I meant another port"]);

    says(
        &workspace,
        "claude-code",
        "forget the rule about port 5050 please",
    );
    let heard = json!({"withdraws": old, "quote": "forget the rule about port 5050"});
    assert_eq!(records(&workspace, &heard)["id"], "REFL-003");
    workspace.json(&["memory", "approve", "REFL-003"]);
    assert_eq!(rule(&workspace, &old)["superseded_by"], "REFL-003");
    assert!(!told(&workspace).contains("Never start"));
}

#[test]
fn an_agent_takes_no_rule_away_by_other_words_of_the_person() {
    let workspace = initialised();
    let message = "Never delete the backups in vault/.";
    says(&workspace, "claude-code", message);
    let heard = json!({"rule": message, "quote": message, "commands": [r"^rm\b"]});
    let old = records(&workspace, &heard)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    workspace.json(&["memory", "approve", &old]);
    says(&workspace, "claude-code", "please always answer in French");
    let heard = json!({"rule": "Backups may be deleted.", "replaces": old,
        "quote": "please always answer in French"});
    assert_eq!(records(&workspace, &heard)["earlier"]["now"], "in_force");
    assert!(told(&workspace).contains("Never delete the backups"));

    // A rule that refuses calls goes on, whatever the words.
    let denies = workspace.json(&["memory", "approve", &old, "--action", "deny"]);
    assert_eq!(denies["at_calls"], "deny");
    says(
        &workspace,
        "claude-code",
        "you may delete the backups in vault/ from now on",
    );
    let heard = json!({"rule": "Backups may be deleted.", "replaces": old,
        "quote": "you may delete the backups in vault/ from now on"});
    assert_eq!(records(&workspace, &heard)["earlier"]["now"], "in_force");
    assert!(told(&workspace).contains("Never delete the backups"));
}

#[test]
fn a_switch_hears_nothing_and_retains_nothing() {
    let mut workspace = initialised();
    workspace.set("MEMCTL_LEARNING_CHAT", "false");
    assert_eq!(says(&workspace, "claude-code", "always use tabs here"), "");
    let heard = json!({"rule": "Use tabs.", "quote": "always use tabs here"}).to_string();
    workspace
        .run(&["correct", "--heard", &heard])
        .fails(2, "`quote`");
}

#[test]
fn approved_rule_of_a_chat_is_told_only_in_its_project() {
    let mut workspace = initialised().trusted();
    let rule = |n: u32, text: &str, project: &str| {
        json!({"reflexion_id": format!("REFL-{n:03}"), "skill": "", "rule": text, "source": "chat",
            "status": "active", "created_at": "2026-02-01T00:00:00+00:00",
            "said": [{"quote": text, "session": "s", "workspace": project, "turn": 1}]})
    };
    let rules = [
        rule(1, "Use pnpm.", "shop"),
        rule(2, "Use yarn.", "blog"),
        rule(3, "Answer in German.", ""),
    ];
    let text = json!({ "entries": rules }).to_string();
    workspace.write(".agentura/reflexion_entries.json", text);
    let memory = workspace.root().join(".agentura");
    workspace.set("AGENTURA_KNOWLEDGE_DIR", memory.to_str().unwrap());
    for (project, own, other) in [("shop", "pnpm", "yarn"), ("blog", "yarn", "pnpm")] {
        let at = workspace.home().join(project);
        fs::create_dir_all(&at).unwrap();
        let event = json!({"hook_event_name": "SessionStart", "session_id": "new",
            "source": "startup", "cwd": at});
        let told = hook(&workspace, "claude-code", event.to_string()).stdout;
        assert!(
            told.contains(own) && told.contains("German"),
            "{project}: {told}"
        );
        assert!(!told.contains(other), "{project}: {told}");
    }
}

#[test]
fn session_start_fills_its_budget_and_counts_the_rest() {
    let workspace = initialised().trusted();
    let rules: Vec<Value> = (1..=60)
        .map(|n| {
            json!({"reflexion_id": format!("REFL-{n:03}"), "skill": "hr/x", "confidence": 0.9,
                "rule": format!("When step {n} fails, ALWAYS read its log before the next one."),
                "created_at": "2026-02-01T00:00:00+00:00"})
        })
        .collect();
    let text = json!({ "entries": rules }).to_string();
    workspace.write(".agentura/reflexion_entries.json", text);
    let answer: Value = serde_json::from_str(&told(&workspace)).unwrap();
    let told = answer["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap();
    let shown = told.matches("ALWAYS read").count();
    assert!(
        shown > 15 && told.encode_utf16().count() <= 2_000,
        "{shown}: {told}"
    );
    let rest = format!("  and {} more: memctl list rules -n 1000", 60 - shown);
    assert!(told.contains(&rest), "{told}");
}

/// A call before the message that a person types about it.
fn calls(workspace: &Workspace, command: &str) {
    for name in ["PreToolUse", "PostToolUse"] {
        let event = json!({"hook_event_name": name, "session_id": "s1", "cwd": workspace.root(),
            "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": command,
            "tool_response": {"stdout": "", "stderr": "", "interrupted": false}});
        drop(hook(workspace, "claude-code", event.to_string()));
    }
}

#[test]
fn patterns_are_held_against_the_calls_that_a_message_corrects() {
    let workspace = initialised();
    calls(&workspace, "cd web && npm install left-pad");
    let message = "From now on pnpm here, never npm.";
    says(&workspace, "claude-code", message);
    let heard = |pattern: &str| json!({"rule": "Use pnpm, never npm.", "quote": message, "commands": [pattern]});
    let report = records(&workspace, &heard(r"^yarn\b"));
    assert_eq!(report["seen"], json!([]));
    let warning = report["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("`cd web && npm install left-pad`"),
        "{warning}"
    );
    let report = records(&workspace, &heard(r"^npm\b(?! --version)"));
    assert_eq!(report["id"], "REFL-001");
    assert_eq!(report["seen"], json!(["cd web && npm install left-pad"]));
    assert!(report["warnings"].is_null(), "{report}");
    // Without patterns there is nothing to say of calls.
    let other = "From now on answer in one line.";
    says(&workspace, "claude-code", other);
    let report = records(&workspace, &json!({"rule": other, "quote": other}));
    assert!(report["seen"].is_null(), "{report}");
}

#[test]
fn text_in_files_is_one_condition() {
    let workspace = initialised();
    // What the agent is told about a file that it writes; the person corrects the first one.
    let wrote = |session: &str, path: &str, text: &str| {
        let path = workspace.root().join(path);
        let event = json!({"hook_event_name": "PreToolUse", "session_id": session, "cwd": workspace.root(),
            "tool_name": "Write", "tool_input": {"file_path": path, "content": text}, "tool_use_id": path});
        let said = hook(&workspace, "claude-code", event.to_string()).stdout;
        let after = json!({"hook_event_name": "PostToolUse", "session_id": session, "cwd": workspace.root(),
            "tool_name": "Write", "tool_input": {"file_path": path, "content": text}, "tool_use_id": path,
            "tool_response": {"filePath": path, "content": text}});
        drop(hook(&workspace, "claude-code", after.to_string()));
        said
    };
    wrote("s1", "src/cart.ts", "let a: any;");
    let message = "Never use `any` in src again, take unknown.";
    says(&workspace, "claude-code", message);
    let heard = json!({"rule": "Never use any in src; take unknown.", "quote": message,
        "paths": [r"^src/.*\.ts$", r"\.vue$"], "content": [r"\bany\b"]});
    let report = records(&workspace, &heard);
    assert_eq!(report["seen"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(
        rule(&workspace, "REFL-001")["seen_by"],
        json!([{"on": "content", "match": r"\bany\b", "within": [r"^src/.*\.ts$", r"\.vue$"]}])
    );
    let reviewed = workspace.run(&["review"]);
    let shown = &reviewed.succeeds().stdout;
    assert!(shown.contains("REFL-001"), "{shown}");
    workspace.json(&["memory", "approve", "REFL-001"]);
    let check = |session: &str, path: &str, text: &str, expected: bool| {
        let said = wrote(session, path, text);
        assert_eq!(said.contains("take unknown"), expected, "{path}: {said}");
    };
    check("a", "src/cart.ts", "let b: any;", true);
    check("b", "web/App.vue", "let b: any;", true);
    check("c", "src/cart.ts", "let b: unknown;", false);
    check("d", "test/cart.ts", "let b: any;", false);
}

#[test]
fn a_change_of_a_rule_that_was_never_recorded_is_a_rule() {
    let workspace = initialised();
    let message = "Port 8080 is fine again from now on.";
    says(&workspace, "claude-code", message);
    let heard = json!({"rule": message, "quote": message, "replaces": true});
    let report = records(&workspace, &heard);
    assert_eq!(
        (&report["id"], &report["earlier"]),
        (&json!("REFL-001"), &Value::Null)
    );
    assert!(
        report["warnings"][0]
            .as_str()
            .unwrap()
            .contains("no earlier rule is near")
    );
    let ended = json!({"quote": message, "withdraws": true}).to_string();
    let other = initialised();
    says(&other, "claude-code", message);
    other
        .run(&["correct", "--heard", &ended])
        .fails(2, "none is near");
}
