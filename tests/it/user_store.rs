//! The user store: rules and fixes for all projects of a user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{RUN, correction};
use crate::workspace::{Ran, Workspace, copy, stored_in};

/// Two projects of one user, the first with a memory of a rule and a fix.
struct Projects {
    workspace: Workspace,
}

impl Projects {
    fn new() -> Self {
        let workspace = Workspace::empty();
        workspace.run(&["init"]).succeeds();
        let rule = |n: u32, text: &str, status: &str| {
            json!({"reflexion_id": format!("REFL-{n:03}"), "skill": "", "rule": text,
                "source": "chat", "status": status, "created_at": "2026-02-01T00:00:00+00:00",
                "confidence": 0.9, "correction_id": "CORR-009",
                "said": [{"quote": text, "session": "s", "workspace": "project", "turn": 1}]})
        };
        let rules = [
            rule(1, "Answer in German.", "active"),
            rule(2, "Only heard.", "candidate"),
            rule(3, "Deploy on Mondays.", "active"),
        ];
        let fix = pattern!({"procedure_id": "PROC-001", "error_key": "error: externally-managed-environment",
            "error_line": "error: externally-managed-environment",
            "failing_code": "pip install pandas", "working_code": "pip install --user pandas",
            "success_output": "ok", "tool": "Bash", "occurrences": 2, "status": "active",
            "trust": "approved", "scope": "project", "created_at": "2026-02-01T00:00:00+00:00",
            "origins": [{"session": "s", "workspace": "project", "step": 1}]});
        for (file, entries) in [
            ("reflexion_entries.json", json!(rules)),
            ("procedural_memory.json", json!([fix])),
        ] {
            let text = json!({ "entries": entries }).to_string();
            workspace.write(&format!(".agentura/{file}"), text);
        }
        let projects = Self { workspace };
        projects.run_in("other", &["init"]).succeeds();
        projects
    }

    fn other(&self, name: &str) -> PathBuf {
        self.workspace.home().join("work").join(name)
    }

    fn command_in(&self, name: &str) -> Command {
        let at = self.other(name);
        fs::create_dir_all(&at).unwrap();
        let mut command = self.workspace.command();
        command.current_dir(at);
        command
    }

    fn run_in(&self, name: &str, args: &[&str]) -> Ran {
        Ran::of(self.command_in(name).args(args).output().unwrap())
    }

    fn json_in(&self, name: &str, args: &[&str]) -> Value {
        let ran = self.run_in(name, &[args, &["--json"]].concat());
        ran.succeeds();
        ran.document()
    }

    fn hook_in(&self, name: &str, event: &Value) -> String {
        let path = self.workspace.home().join("event.json");
        fs::write(&path, event.to_string()).unwrap();
        let mut command = self.command_in(name);
        command.args(["hook", "claude-code"]);
        command.stdin(fs::File::open(path).unwrap());
        Ran::of(command.output().unwrap()).stdout
    }

    fn start_in(&self, name: &str) -> String {
        self.hook_in(
            name,
            &json!({"hook_event_name": "SessionStart", "session_id": "new", "source": "startup",
                "cwd": self.other(name)}),
        )
    }

    fn fail_in(&self, name: &str, session: &str) -> String {
        self.hook_in(
            name,
            &json!({"hook_event_name": "PostToolUseFailure", "session_id": session,
                "cwd": self.other(name), "tool_name": "Bash",
                "tool_input": {"command": "pip install pandas"}, "is_interrupt": false,
                "error": "Exit code 1\nerror: externally-managed-environment"}),
        )
    }

    fn store(&self) -> PathBuf {
        self.workspace.state().join("user/.agentura")
    }
}

fn entries(memory: &Path, file: &str) -> Vec<Value> {
    stored_in(memory, file)["entries"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn nothing_crosses_projects_before_it_is_promoted() {
    let projects = Projects::new();
    assert_eq!(projects.start_in("other"), "");
    assert_eq!(projects.fail_in("other", "a"), "");
    assert!(!projects.store().exists());
    assert_eq!(projects.json_in("other", &["memory", "list"])["total"], 0);
}

#[test]
fn promoted_rule_and_fix_reach_agents_in_every_project() {
    let projects = Projects::new();
    let promoted = projects.workspace.json(&["memory", "promote", "REFL-001"]);
    assert_eq!(
        promoted,
        json!({"id": "REFL-001", "user_id": "REFL-001@user", "kind": "reflexion",
            "summary": "Answer in German.", "created": true, "warnings": []})
    );
    projects.workspace.json(&["memory", "promote", "PROC-001"]);
    let told = projects.start_in("other");
    assert!(
        told.contains("- Answer in German.") && !told.contains("Mondays"),
        "{told}"
    );
    let hint = projects.fail_in("other", "a");
    assert!(hint.contains("pip install --user pandas"), "{hint}");
    let hints = projects.json_in(
        "other",
        &[
            "hint",
            "--error",
            "error: externally-managed-environment",
            "--command",
            "pip install pandas",
        ],
    );
    assert_eq!(hints["hints"][0]["id"], "PROC-001@user");
    assert_eq!(hints["hints"][0]["trust"], "approved");

    // The copy is of no project, and names the original; the original stays in use.
    let copy = &entries(&projects.store(), "reflexion_entries.json")[0];
    assert_eq!(
        (&copy["said"], &copy["correction_id"]),
        (&Value::Null, &json!(""))
    );
    assert_eq!(copy["promoted_from"]["id"], "REFL-001");
    assert_eq!(copy["promoted_from"]["project"], "project");
    let fix = &entries(&projects.store(), "procedural_memory.json")[0];
    assert_eq!(
        (&fix["origins"], &fix["scope"]),
        (&Value::Null, &Value::Null)
    );
    let original = &projects.workspace.stored("reflexion_entries.json")["entries"][0];
    assert_eq!(original["promoted_to"], "REFL-001@user");
    let at_home = projects.workspace.json(&["memory", "list"]);
    assert_eq!(at_home["total"], 4, "{at_home}");

    // Once is enough.
    let again = projects.workspace.json(&["memory", "promote", "REFL-001"]);
    assert_eq!(
        (&again["created"], &again["user_id"]),
        (&json!(false), &json!("REFL-001@user"))
    );
}

#[test]
fn own_rule_comes_before_the_one_of_the_user_store() {
    let projects = Projects::new();
    projects
        .workspace
        .run(&["memory", "promote", "REFL-001"])
        .succeeds();
    let event = json!({"hook_event_name": "SessionStart", "session_id": "new", "source": "startup",
        "cwd": projects.workspace.root()});
    let told = crate::hosts::hook(&projects.workspace, "claude-code", event.to_string()).stdout;
    assert_eq!(told.matches("Answer in German").count(), 1, "{told}");
    projects
        .workspace
        .run(&["memory", "promote", "PROC-001"])
        .succeeds();
    let hints = projects.workspace.json(&[
        "hint",
        "--error",
        "error: externally-managed-environment",
        "--command",
        "pip install pandas",
    ]);
    let ids: Vec<&Value> = hints["hints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| &h["id"])
        .collect();
    assert_eq!(ids, [&json!("PROC-001")], "{hints}");
}

#[test]
fn records_of_the_user_store_are_shown_with_its_name() {
    let projects = Projects::new();
    projects
        .workspace
        .run(&["memory", "promote", "REFL-001"])
        .succeeds();
    let listed = projects.json_in("other", &["memory", "list"]);
    assert_eq!(listed["records"][0]["id"], "REFL-001@user");
    let listed = projects.json_in("other", &["memory", "list", "--user-store"]);
    assert_eq!(
        (&listed["total"], &listed["records"][0]["id"]),
        (&json!(1), &json!("REFL-001@user"))
    );
    let found = projects.json_in("other", &["memory", "search", "german", "--keyword"]);
    assert_eq!(found["results"][0]["id"], "REFL-001", "{found}");
    assert_eq!(found["results"][0]["origin"], "user", "{found}");
    let shown = projects.json_in("other", &["memory", "show", "REFL-001@user"]);
    assert_eq!(shown["record"]["rule"], "Answer in German.");
    let edit = [
        "memory", "edit", "REFL-001@user", "--set", "rule=Answer in French.",
    ];
    let edited = projects.run_in("other", &edit);
    let says = (&*edited.stdout, &*edited.stderr);
    assert!(
        says.0.contains("REFL-001@user") && says.1.contains("undo --user-store"),
        "{says:?}"
    );
    assert!(projects.start_in("other").contains("French"));

    // A rule that left its store reaches nobody, until it returns.
    let gone = projects.json_in("other", &["memory", "forget", "REFL-001@user"]);
    assert_eq!(gone["id"], "REFL-001@user");
    assert_eq!(projects.start_in("other"), "");
    assert_eq!(projects.workspace.json(&["memory", "list"])["total"], 3);
    let undone = projects.run_in("other", &["memory", "undo", "--user-store"]);
    assert!(
        undone.succeeds().stdout.contains(" --user-store"),
        "{undone:?}"
    );
    assert!(projects.start_in("other").contains("French"));
}

#[test]
fn undo_of_a_promotion_reverts_both_stores() {
    let projects = Projects::new();
    projects
        .workspace
        .run(&["memory", "promote", "PROC-001"])
        .succeeds();
    projects
        .workspace
        .run(&["memory", "promote", "REFL-001"])
        .succeeds();
    let dry = projects.workspace.json(&["memory", "undo", "--dry-run"]);
    assert_eq!(dry["steps"].as_array().unwrap().len(), 2, "{dry}");
    assert!(projects.start_in("other").contains("German"));
    let undone = projects.workspace.json(&["memory", "undo"]);
    let targets: Vec<&Value> = undone["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["target"])
        .collect();
    assert_eq!(
        targets,
        [&json!("REFL-001"), &json!("REFL-001@user")],
        "{undone}"
    );
    assert_eq!(projects.start_in("other"), "");
    let original = &projects.workspace.stored("reflexion_entries.json")["entries"][0];
    assert_eq!(original["promoted_to"], Value::Null);
    assert!(projects.fail_in("other", "a").contains("--user pandas"));
    let redo = undone["undo"].as_str().unwrap();
    projects.workspace.run(&["memory", "undo", redo]).succeeds();
    assert!(projects.start_in("other").contains("German"));
}

#[test]
fn a_project_without_memory_is_told_the_rules_of_the_user_and_gets_no_memory() {
    let mut projects = Projects::new();
    for id in ["REFL-001", "PROC-001"] {
        projects
            .workspace
            .run(&["memory", "promote", id])
            .succeeds();
    }
    // A disabled memory.
    projects.run_in("other", &["memory", "disable"]).succeeds();
    assert_eq!(projects.start_in("other"), "");
    assert_eq!(projects.fail_in("other", "a"), "");
    projects.run_in("other", &["memory", "enable"]).succeeds();
    assert!(projects.start_in("other").contains("German"));
    // No memory at all.
    assert!(projects.start_in("third").contains("German"));
    assert!(!projects.other("third").join(".agentura").exists());
    // The setting of a project.
    let config = projects.other("other").join(".agentura/config.toml");
    fs::write(&config, "[memory]\nuser_store = false\n").unwrap();
    assert_eq!(projects.start_in("other"), "");
    assert_eq!(projects.fail_in("other", "b"), "");
    fs::remove_file(config).unwrap();
    // The user store itself, disabled.
    let root = projects.store().parent().unwrap().to_owned();
    let root = root.to_str().unwrap();
    projects
        .run_in("other", &["memory", "disable", "--root", root])
        .succeeds();
    assert_eq!(projects.start_in("other"), "");
    projects
        .run_in("other", &["memory", "enable", "--root", root])
        .succeeds();
    projects.workspace.set("MEMCTL_MEMORY", "off");
    assert_eq!(projects.start_in("other"), "");
}

#[test]
fn only_records_that_this_user_stands_behind_are_promoted() {
    let projects = Projects::new();
    let workspace = &projects.workspace;
    workspace
        .run(&["memory", "promote", "REFL-002"])
        .fails(2, "it is not in use");
    workspace
        .run(&["memory", "promote", "REFL-009"])
        .fails(2, "not found");
    assert!(!projects.store().join("reflexion_entries.json").exists());

    // A clone calls its records approved.
    let clone = projects.other("clone/.agentura");
    fs::create_dir_all(&clone).unwrap();
    for file in ["reflexion_entries.json", "procedural_memory.json"] {
        fs::copy(workspace.memory(file), clone.join(file)).unwrap();
    }
    let ran = projects.run_in("clone", &["memory", "promote", "REFL-001"]);
    ran.fails(2, "nobody has approved it here");
    projects
        .run_in("clone", &["memory", "promote", "PROC-001"])
        .succeeds();
    let fix = &entries(&projects.store(), "procedural_memory.json")[0];
    assert_eq!(fix["trust"], Value::Null, "{fix}");
    let hint = projects.fail_in("other", "a");
    assert!(
        hint.contains("memctl-data-") && hint.contains("--user pandas"),
        "{hint}"
    );
    let approved = projects.json_in("other", &["memory", "approve", "PROC-001@user"]);
    assert_eq!(
        (&approved["id"], &approved["trust"]),
        (&json!("PROC-001@user"), &json!("approved"))
    );
    let hint = projects.fail_in("other", "b");
    assert!(
        !hint.contains("memctl-data-") && hint.contains("--user pandas"),
        "{hint}"
    );
}

#[test]
fn clone_cannot_pass_its_records_off_as_the_users() {
    let projects = Projects::new();
    let remote = projects.other("other").join(".agentura/remote/user");
    fs::create_dir_all(&remote).unwrap();
    fs::copy(
        projects.workspace.memory("procedural_memory.json"),
        remote.join("procedural_memory.json"),
    )
    .unwrap();
    assert_eq!(projects.fail_in("other", "a"), "");
}

#[test]
fn promoted_rule_of_a_skill_stands_in_prompts_of_other_projects() {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.json(&RUN);
    let said = "When a summary is written, NEVER name competitors.";
    workspace.run(&correction(said)).succeeds();
    workspace.run(&["memory", "promote", "REFL-001"]).succeeds();
    let other = Projects { workspace };
    for name in ["skills", "fixtures"] {
        let from = other.workspace.root().join(name);
        copy(&from, &other.other("other").join(name));
    }
    other.run_in("other", &["init"]).succeeds();
    let run = other.json_in("other", &RUN);
    assert_eq!(run["injected"][0]["id"], "REFL-001@user", "{run}");
    let prompt = other.run_in("other", &["memory", "prompt", "hr/resume-screen"]);
    assert!(
        prompt.succeeds().stdout.contains("NEVER name competitors"),
        "{prompt:?}"
    );
    // A correction of that run counts nothing in the user store, and fails at nothing.
    let before = fs::read(other.store().join("reflexion_entries.json")).unwrap();
    let correct = correction("When a candidate is rejected, ALWAYS give two reasons.");
    other.run_in("other", &correct).succeeds();
    assert_eq!(
        fs::read(other.store().join("reflexion_entries.json")).unwrap(),
        before
    );
    let why = other.json_in("other", &["memory", "why", "latest"]);
    assert!(why["chain"].as_array().unwrap().len() > 1, "{why}");
}
