//! Learned procedures in use: in prompts, at the start of sessions, in searches and as hints.

use serde_json::{Value, json};

use crate::mcp::Server;
use crate::support::with_input;
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
const FILE: &str = "procedural_memory.json";

/// Procedure of an analyst that has no fix.
fn column() -> Value {
    json!({ "procedure_name": "Add a column to a PostgreSQL table",
        "semantic_description": "How to add a column to a table with ALTER TABLE.",
        "initial_failure_summary": "ALTER TABLE failed: syntax error at end of input",
        "identified_root_cause": "The data type of the column was missing.",
        "successful_intervention": "The data type was given.",
        "learned_procedure_steps": ["Choose the data type.", "ALTER TABLE t ADD COLUMN c TEXT;"],
        "critical_contextual_cues": ["syntax error at end of input", "ADD COLUMN"],
        "example_scenario_abstract": "A table gets a new column." })
}

fn entry(id: &str, data: &Value) -> Value {
    json!({ "procedure_id": id, "created_at": "2026-01-01T00:00:00+00:00",
        "status": "procedure_learned", "data": data, "distilled_by": "elsewhere",
        "occurrences": 1, "last_seen": "2026-01-01T00:00:00+00:00", "trust": "observed" })
}

/// Workspace with these procedures, all of them observed.
fn with(entries: &[Value]) -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let text = serde_json::to_string_pretty(&json!({ "entries": entries })).unwrap();
    workspace.write(&format!(".agentura/{FILE}"), text);
    workspace
}

const REQUEST: &str = r#"{"request": "Add the column age to the table profiles"}"#;

fn prompt(workspace: &Workspace) -> Value {
    workspace.write("request.json", REQUEST);
    workspace.json(&["memory", "prompt", SKILL, "--input", "request.json"])
}

#[test]
fn approved_procedure_stands_in_the_prompt_of_an_input_that_it_fits() {
    let workspace = with(&[entry("PROC-001", &column())]);
    let before = prompt(&workspace)["prompt"].clone();
    assert!(!before.as_str().unwrap().contains("Learned Procedures"));
    workspace.run(&["memory", "approve", "PROC-001"]).succeeds();
    let report = prompt(&workspace);
    let block = "## Learned Procedures\n\n- **PROC-001**: Add a column to a PostgreSQL table\n  \
        _When_: The data type of the column was missing.\n  1. Choose the data type.\n  \
        2. ALTER TABLE t ADD COLUMN c TEXT;\n\n---\n\n";
    let text = report["prompt"].as_str().unwrap();
    assert_eq!(text.replace(block, ""), before);
    assert_ne!(text, before);
    assert_eq!(
        report["injected"],
        json!([{"id": "PROC-001", "kind": "procedure", "trust": "approved"}])
    );
    let layers = report["layers"].as_array().unwrap();
    let layer = layers.iter().find(|layer| layer["layer"] == 2).unwrap();
    assert_eq!(layer["source"], format!(".agentura/{FILE}"));
    assert!(layer["tokens"].as_u64().unwrap() > 20);
    // Without an input nothing is relevant, and a small budget holds nothing.
    let plain = workspace.json(&["memory", "prompt", SKILL]);
    assert_eq!(plain["prompt"], before);
    workspace.write(
        ".agentura/config.toml",
        "[prompt]\nprocedures_tokens = 10\n",
    );
    let report = prompt(&workspace);
    assert_eq!(report["prompt"], before);
    let reason = "the budget of 10 tokens is used up";
    assert_eq!(
        report["omitted"],
        json!([{"id": "PROC-001", "status": "active", "reason": reason}])
    );
}

#[test]
fn no_file_puts_a_procedure_into_a_prompt() {
    let mut claimed = entry("PROC-001", &column());
    claimed["trust"] = json!("approved");
    let workspace = with(&[]);
    // A clone carries the file; the note about its trust stays with the one who made it.
    let clone = Workspace::sample();
    for path in [".agentura/identity.json", ".agentura/config.toml"] {
        if workspace.root().join(path).exists() {
            clone.write(path, workspace.read(path));
        }
    }
    let text = json!({ "entries": [claimed] }).to_string();
    clone.write(&format!(".agentura/{FILE}"), text);
    let report = prompt(&clone);
    assert_eq!(report["injected"], json!([]));
    assert!(!report["prompt"].to_string().contains("Learned Procedures"));
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn execution_names_its_procedures_apart_from_its_rules() {
    let workspace = with(&[entry("PROC-001", &column())]);
    workspace.run(&["memory", "approve", "PROC-001"]).succeeds();
    workspace.write("request.json", REQUEST);
    workspace.write("answer.sh", "cat > prompt.txt; echo '{\"done\": true}'\n");
    let run = |more: &[&str]| {
        let args = [
            "run", SKILL, "--input", "request.json", "--model", "exec:sh answer.sh",
        ];
        workspace.json(&[&args, more].concat())
    };
    let dry = run(&["--dry-run"]);
    assert_eq!(dry["injected"][0]["id"], "PROC-001");
    let bare = run(&["--no-memory"]);
    assert_eq!(bare["injected"], json!([]));
    assert!(!workspace.read("prompt.txt").contains("Learned Procedures"));
    let report = run(&[]);
    assert_eq!(report["injected"][0]["kind"], "procedure");
    assert!(workspace.read("prompt.txt").contains("Learned Procedures"));
    let stored = &workspace.stored("episodic_memory.json")["entries"][0];
    assert_eq!(stored["procedures_injected"], json!(["PROC-001"]));
    assert_eq!(stored["reflexions_injected"], Value::Null);
    let id = stored["execution_id"].as_str().unwrap();
    workspace.run(&["accept", id]).succeeds();
    let links = workspace.json(&["memory", "why", id]);
    assert_eq!(
        (&links["chain"][1]["id"], &links["chain"][1]["relation"]),
        (&json!("PROC-001"), &json!("had_procedure"))
    );
    let links = workspace.json(&["memory", "why", "PROC-001"]);
    assert_eq!(links["chain"][1]["relation"], "injected_into");
    workspace.run(&["memory", "disable"]).succeeds();
    let report = run(&[]);
    assert_eq!(report["injected"], json!([]));
}

#[test]
fn limited_scope_has_no_procedure_in_its_prompt() {
    let workspace = with(&[entry("PROC-001", &column())]);
    workspace.run(&["memory", "approve", "PROC-001"]).succeeds();
    workspace.write("request.json", REQUEST);
    let args = [
        "memory", "prompt", SKILL, "--input", "request.json", "--scope", "hr",
    ];
    assert_eq!(workspace.json(&args)["injected"], json!([]));
}

/// What an agent's host prints for an event.
fn hook(workspace: &Workspace, event: &Value) -> String {
    let mut command = workspace.command();
    command.args(["hook", "claude-code"]);
    let ran = with_input(&mut command, event.to_string().as_bytes());
    ran.succeeds().stdout.clone()
}

#[test]
fn approved_procedure_is_told_when_a_session_starts() {
    let workspace = with(&[entry("PROC-001", &column())]);
    let event = json!({ "hook_event_name": "SessionStart", "session_id": "s", "source": "startup",
        "cwd": workspace.root() });
    assert!(!hook(&workspace, &event).contains("ALTER TABLE"));
    workspace.run(&["memory", "approve", "PROC-001"]).succeeds();
    let told = hook(&workspace, &event);
    assert!(
        told.contains("Lessons that people have approved for this project:"),
        "{told}"
    );
    assert!(
        told.contains("2. ALTER TABLE t ADD COLUMN c TEXT;"),
        "{told}"
    );
    assert!(!told.contains("memctl-data-"), "{told}");
    workspace.run(&["memory", "disable"]).succeeds();
    assert_eq!(hook(&workspace, &event), "");
}

const ERROR: &str = "ERROR:  syntax error at end of input";

#[test]
fn procedure_without_a_fix_is_a_hint_for_its_error() {
    let workspace = with(&[entry("PROC-001", &column())]);
    let report = workspace.json(&["hint", "--error", ERROR]);
    let hint = &report["hints"][0];
    assert_eq!(
        (&hint["id"], &hint["kind"], &hint["trust"]),
        (&json!("PROC-001"), &json!("procedure"), &json!("observed"))
    );
    assert_eq!(
        hint["working_code"],
        "1. Choose the data type.\n2. ALTER TABLE t ADD COLUMN c TEXT;"
    );
    let shown = workspace.run(&["hint", "--error", ERROR]);
    let shown = &shown.succeeds().stdout;
    assert!(
        shown.contains("  WHAT HELPED:\n    1. Choose the data type.\n"),
        "{shown}"
    );
    assert!(!shown.contains("WRONG:"), "{shown}");
    // Other errors stay silent.
    let other = workspace.json(&["hint", "--error", "ERROR: relation users does not exist"]);
    assert_eq!(other["hints"], json!([]));

    let failure = |session: &str| {
        json!({ "hook_event_name": "PostToolUseFailure", "session_id": session,
            "cwd": workspace.root(), "tool_name": "Bash",
            "tool_input": { "command": "psql -c 'ALTER TABLE users ADD COLUMN age'" },
            "error": format!("Exit code 1\n{ERROR}") })
    };
    let told = hook(&workspace, &failure("s"));
    assert!(
        told.contains("WHAT HELPED:") && told.contains("memctl-data-"),
        "{told}"
    );
    // Not twice in a session.
    assert_eq!(hook(&workspace, &failure("s")), "");

    let mut server = Server::greeted(&workspace, &["mcp"]);
    let (data, text) = server.done("hint", &json!({ "error": ERROR }));
    assert_eq!(data["hints"][0]["kind"], "procedure");
    let (before, fenced) = text.split_once("<memctl-data-").unwrap();
    assert!(fenced.contains("1. Choose the data type."), "{text}");
    assert!(!before.contains("Choose"), "{text}");
}

#[test]
fn found_procedure_shows_its_steps() {
    let mut long = column();
    let filler = "The table is large and busy, and the lock is short. ".repeat(60);
    long["example_scenario_abstract"] = json!(filler);
    let workspace = with(&[entry("PROC-001", &long)]);
    let query = ["memory", "search", "add a column to a table", "--keyword"];
    let report = workspace.json(&query);
    assert_eq!(
        report["results"][0]["steps"],
        json!(["Choose the data type.", "ALTER TABLE t ADD COLUMN c TEXT;"])
    );
    let page = workspace.run(&query);
    let page = &page.succeeds().stdout;
    assert!(
        page.contains("steps of PROC-001\n  1. Choose the data type.\n  2. ALTER TABLE"),
        "{page}"
    );
    let mut server = Server::greeted(&workspace, &["mcp"]);
    let arguments = json!({ "query": "add a column to a table", "max_tokens": 300 });
    let (data, text) = server.done("search", &arguments);
    let (_, fenced) = text.split_once("<memctl-data-").unwrap();
    for step in [
        "1. Choose the data type.",
        "2. ALTER TABLE t ADD COLUMN c TEXT;",
    ] {
        assert!(fenced.contains(step), "{text}");
        assert!(data["results"][0]["text"].to_string().contains(step));
    }
}

#[test]
fn procedure_reaches_a_prompt_in_other_words_and_a_distant_one_says_why_not() {
    let steps = |name: &str, step: &str| json!({ "procedure_name": name, "learned_procedure_steps": [step] });
    let workspace = with(&[
        entry(
            "PROC-001",
            &steps(
                "Set the upstream of a new branch",
                "git push -u origin HEAD",
            ),
        ),
        entry(
            "PROC-002",
            &steps("Restore a dump on staging", "pg_dump --no-owner"),
        ),
    ]);
    workspace.write(
        "task.txt",
        "Publish my commits on the remote repository, with git\n",
    );
    let report = workspace.json(&["memory", "prompt", SKILL, "--input", "task.txt"]);
    assert_eq!(
        (&report["injected"], &report["omitted"]),
        (&json!([]), &json!([]))
    );
    for id in ["PROC-001", "PROC-002"] {
        workspace.run(&["approve", id]).succeeds();
    }
    let report = workspace.json(&["memory", "prompt", SKILL, "--input", "task.txt"]);
    assert_eq!(report["injected"][0]["id"], "PROC-001", "{report}");
    assert_eq!(report["injected"].as_array().unwrap().len(), 1);
    assert_eq!(report["omitted"][0]["id"], "PROC-002");
    let reason = report["omitted"][0]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("its score for the input is 0."),
        "{reason}"
    );
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn model_reads_the_files_of_a_skill_that_it_asks_for() {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let skill = "skills/dev/level/SKILL.md";
    let front = "---\nname: level\ndescription: Find the level\nfiles:\n  references/a.md: points\n  \
                 ../../../secret.md: not ours\n---\nFind the level.\n";
    workspace.write(skill, front);
    workspace.write("skills/dev/level/references/a.md", "Three points a year.");
    workspace.write("secret.md", "hidden");
    let script = "cat > \"prompt$(ls prompt* 2>/dev/null | wc -l).txt\"\n\
                  [ -e prompt1.txt ] && echo '{\"level\": 3}' || \
                  echo '{\"read\": [\"references/a.md\", \"../../../secret.md\"]}'\n";
    workspace.write("answer.sh", script);
    workspace.write("task.txt", "Two years of Rust");
    let args = [
        "run", "dev/level", "--input", "task.txt", "--model", "exec:sh answer.sh",
    ];
    let report = workspace.json(&args);
    assert_eq!(report["output"], json!({ "level": 3 }));
    let report = workspace.json(&["memory", "prompt", "dev/level"]);
    let warning = report["warnings"].to_string();
    assert!(warning.contains("../../../secret.md"), "{warning}");
    let [first, second] = ["prompt0.txt", "prompt1.txt"].map(|name| workspace.read(name));
    assert!(first.contains("- `references/a.md`: points"), "{first}");
    assert!(
        first.contains(r#"{"input":"Two years of Rust"}"#),
        "{first}"
    );
    assert!(!first.contains("secret") && !first.contains("Three points"));
    assert!(second.contains("Three points a year."), "{second}");
    assert!(!second.contains("hidden"), "{second}");
    // Broken JSON is no text.
    workspace.write("broken.json", "{\"a\":");
    let args = ["memory", "prompt", "dev/level", "--input", "broken.json"];
    workspace.run(&args).fails(2, "is not JSON");
}
