//! Hooks of Copilot, `OpenCode`, Cline and Cursor: events as they send them, answers in their form, and the
//! installation in their settings.
//!
//! The events of the first three are of a real session each; those of Cursor are written after its
//! documents.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::hosts::{hook, is_silent};
use crate::workspace::Workspace;

const HOSTS: [(&str, &str); 4] = [
    ("copilot", "copilot-cli-1.0.102.events.jsonl"),
    ("opencode", "opencode-1.18.33.events.jsonl"),
    ("cline", "cline-3.0.65.events.jsonl"),
    ("cursor", "cursor-documents.events.jsonl"),
];

const FAILING: &str = "python3 -c \"print({}['x'])\"";
const WORKING: &str = "python3 -c \"print({}.get('x'))\"";

fn events(workspace: &Workspace, file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/hosts")
        .join(file);
    let root = workspace.root_in_json();
    let text = fs::read_to_string(path).unwrap();
    let text = text.replace("/home/dev/project", &root);
    text.lines().map(str::to_owned).collect()
}

/// A workspace whose memory knows the fix of the sessions, and a rule.
fn taught() -> Workspace {
    let workspace = Workspace::empty();
    let error = "Traceback (most recent call last):\nKeyError: 'x'";
    let failure = ["record", "failure", "--code", FAILING, "--error", error];
    workspace.run(&failure).succeeds();
    let success = ["record", "success", "--code", WORKING, "--output", "None"];
    workspace.run(&success).succeeds();
    let rule = json!({"reflexion_id": "REFL-001", "rule": "Keep answers short."});
    workspace.write(
        ".agentura/reflexion_entries.json",
        json!({ "entries": [rule] }).to_string(),
    );
    workspace
}

/// The context of an answer, which must have no other field than the host takes.
fn context(host: &str, answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let text = |fields: &[&str]| {
        let known: Vec<&String> = answer.as_object().unwrap().keys().collect();
        assert_eq!(known, fields, "{host}");
        answer[*fields.last().unwrap()].as_str().unwrap().to_owned()
    };
    match host {
        "copilot" => text(&["additionalContext"]),
        "cline" => {
            assert_eq!(answer["cancel"], false);
            text(&["cancel", "contextModification"])
        }
        "cursor" => text(&["additional_context"]),
        _ => {
            let output = answer["hookSpecificOutput"]["additionalContext"].as_str();
            output.unwrap().to_owned()
        }
    }
}

#[test]
fn session_of_each_host_gets_its_hint_and_credits_it() {
    for (host, file) in HOSTS {
        let workspace = taught();
        let mut told = Vec::new();
        for event in events(&workspace, file) {
            let ran = hook(&workspace, host, &event);
            if ran.stdout.is_empty() {
                assert!(is_silent(&ran), "{host}: {ran:?}");
            } else {
                assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{host}: {ran:?}");
                told.push(context(host, &ran.stdout));
            }
        }
        let hints: Vec<&String> = told.iter().filter(|text| text.contains("WRONG:")).collect();
        assert_eq!(hints.len(), 1, "{host}: {told:?}");
        for part in ["KeyError", FAILING, "CORRECT:", WORKING] {
            assert!(hints[0].contains(part), "{host}: {part}: {}", hints[0]);
        }
        // Cline has no event at its start whose answer the model reads.
        let rules = told
            .iter()
            .filter(|text| text.contains("Keep answers short."));
        assert_eq!(rules.count(), usize::from(host != "cline"), "{host}");
        let fix = &workspace.stored("procedural_memory.json")["entries"][0];
        let counts = [&fix["shown"], &fix["helped"]];
        assert_eq!(counts, [&json!(1), &json!(1)], "{host}: {fix}");
    }
}

#[test]
fn rule_before_a_call_has_the_form_of_the_host() {
    for (host, file) in HOSTS {
        let asked = |action: &str| {
            // A session is told a note once.
            let workspace = taught();
            let call = events(&workspace, file)
                .into_iter()
                .find(|event| event.contains("PreToolUse") || event.contains("preToolUse"))
                .unwrap();
            let call = call.replace("python3 -c \\\"print({}['x'])\\\"", "npm install");
            assert!(call.contains("npm install"), "{call}");
            let path = workspace.memory("reflexion_entries.json");
            let mut file: Value =
                serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            file["entries"][0]["seen_by"] = json!([{"on": "command", "match": r"^npm\b"}]);
            fs::write(&path, file.to_string()).unwrap();
            workspace.json(&["memory", "approve", "REFL-001", "--action", action]);
            let ran = hook(&workspace, host, &call);
            serde_json::from_str::<Value>(&ran.stdout).unwrap_or_default()
        };
        let denied = asked("deny");
        let reason = "A rule of the user refuses this call: Keep answers short. (REFL-001)";
        let expected = match host {
            "copilot" => {
                json!({"permissionDecision": "deny", "permissionDecisionReason": reason})
            }
            "cline" => json!({"cancel": true, "errorMessage": reason}),
            "cursor" => {
                json!({"permission": "deny", "user_message": reason, "agent_message": reason})
            }
            _ => json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
                "permissionDecision": "deny", "permissionDecisionReason": reason}}),
        };
        assert_eq!(denied, expected, "{host}");
        let asks = asked("ask");
        match host {
            "copilot" => assert_eq!(asks["permissionDecision"], "ask"),
            "cursor" => assert_eq!(asks["permission"], "ask"),
            _ => assert!(context(host, &asks.to_string()).contains("wants to be asked")),
        }
        let note = asked("note");
        // Cursor takes it only with the output.
        if host == "cursor" {
            assert_eq!(note, Value::Null);
        } else {
            let text = context(host, &note.to_string());
            assert!(text.contains("has a rule about this call"), "{text}");
        }
    }
}

#[test]
#[cfg_attr(windows, ignore = "it expects a program without `.exe`")]
fn hooks_come_and_go_without_a_trace() {
    let workspace = taught();
    let listing = || {
        let mut found = Vec::new();
        for directory in [".copilot", ".config/opencode", ".cline", ".cursor"] {
            let directory = workspace.home().join(directory);
            found.extend(directory.exists().then_some(directory));
        }
        found
    };
    assert_eq!(listing(), Vec::<std::path::PathBuf>::new());
    for (host, _) in HOSTS {
        let installed = workspace.json(&["hooks", "install", host]);
        assert_eq!(installed["changed"], true, "{host}");
        let again = workspace.json(&["hooks", "install", host]);
        assert_eq!(again["changed"], false, "{host}");
        let status = workspace.json(&["hooks", "status", host]);
        assert_eq!(status["hosts"][0]["standing"], "installed", "{status}");
    }
    let home = workspace.home();
    let cursor = fs::read_to_string(home.join(".cursor/hooks.json")).unwrap();
    // Cursor strips `//` to the end of the line, and refuses a file without a version.
    assert!(!cursor.contains("//"), "{cursor}");
    let cursor: Value = serde_json::from_str(&cursor).unwrap();
    assert_eq!(cursor["version"], 1);
    let handler = &cursor["hooks"]["postToolUseFailure"][0];
    assert!(
        handler["command"]
            .as_str()
            .unwrap()
            .ends_with("memctl hook cursor")
    );
    assert_eq!(handler["timeout"], 5);
    for (host, _) in HOSTS {
        workspace.json(&["hooks", "install", host, "--read-only"]);
        let status = workspace.json(&["hooks", "status", host]);
        assert!(status.to_string().contains("read-only"), "{status}");
        assert_eq!(
            workspace.json(&["hooks", "uninstall", host])["changed"],
            true
        );
        assert_eq!(
            workspace.json(&["hooks", "uninstall", host])["changed"],
            false
        );
    }
    assert_eq!(listing(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn hooks_of_the_user_stay() {
    let workspace = taught();
    let home = workspace.home();
    let write = |path: &str, text: &str| {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    let own = "{\n  \"version\": 1,\n  \"hooks\": {\"stop\": [{\"command\": \"say done\"}],\n    \
        \"postToolUse\": [{\"command\": \"fmt\"}]}\n}\n";
    let cursor = write(".cursor/hooks.json", own);
    workspace.json(&["hooks", "install", "cursor"]);
    let both: Value = serde_json::from_str(&fs::read_to_string(&cursor).unwrap()).unwrap();
    assert_eq!(both["hooks"]["postToolUse"][0]["command"], "fmt");
    assert_eq!(both["hooks"]["postToolUse"].as_array().unwrap().len(), 2);
    workspace.json(&["hooks", "uninstall", "cursor"]);
    assert_eq!(fs::read_to_string(&cursor).unwrap(), own);
    // A hook of the user for the same event cannot stand beside ours.
    for other in [".cline/hooks/PostToolUse", ".cline/hooks/PreToolUse.sh"] {
        let path = write(other, "#!/bin/sh\n");
        workspace
            .run(&["hooks", "install", "cline"])
            .fails(2, "a hook of another program");
        fs::remove_file(path).unwrap();
        assert_eq!(fs::read_dir(home.join(".cline/hooks")).unwrap().count(), 0);
    }
    let plugin = write(".config/opencode/plugins/memctl.js", "export const M = 1\n");
    workspace
        .run(&["hooks", "install", "opencode"])
        .fails(2, "a hook of another program");
    workspace.json(&["hooks", "uninstall", "opencode"]);
    assert!(plugin.exists());
}

#[test]
fn setup_installs_and_removes_the_hooks() {
    let workspace = taught();
    let home = workspace.home();
    for directory in [".copilot", ".config/opencode", ".cline"] {
        fs::create_dir_all(home.join(directory)).unwrap();
    }
    let plan = workspace.json(&["setup", "--dry-run"]);
    for host in ["copilot", "opencode", "cline"] {
        let steps = plan["steps"].as_array().unwrap();
        let planned = steps
            .iter()
            .any(|step| step["host"] == host && step["state"] == "planned");
        assert!(planned, "{host}: {plan}");
    }
    workspace.json(&["setup", "copilot", "opencode", "cline", "--yes"]);
    assert!(home.join(".copilot/hooks/memctl.json").exists());
    assert!(home.join(".config/opencode/plugins/memctl.js").exists());
    assert!(home.join(".cline/hooks/PostToolUse").exists());
    workspace.json(&["setup", "--undo"]);
    for directory in [".copilot/hooks", ".config/opencode/plugins", ".cline/hooks"] {
        assert!(!home.join(directory).exists(), "{directory}");
    }
    assert!(home.join(".copilot").exists());
}
