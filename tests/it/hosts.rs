//! Hooks of coding agents: events as the hosts send them, answers in the form that they accept, and
//! no obstruction of the host by any error.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{EVER, with_input};
use crate::workspace::{Ran, Workspace, without_words};

/// Start of the process included; a machine that builds other things is slow, not wrong.
///
/// A build without optimisation takes several times as long.
const PATIENCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 3_000 } else { 500 });

/// Gives an event to the hook.
pub(crate) fn hook(workspace: &Workspace, host: &str, event: impl AsRef<[u8]>) -> Ran {
    hook_with(workspace, &["hook", host], event.as_ref())
}

fn hook_with(workspace: &Workspace, arguments: &[&str], event: &[u8]) -> Ran {
    with_input(workspace.command().args(arguments), event)
}

/// The host hears nothing. An event that no hook is installed for is named on standard error.
pub(crate) fn is_silent(ran: &Ran) -> bool {
    let has_no_error = ran.stderr.is_empty() || ran.stderr.contains("is no event of");
    (ran.code, ran.stdout.as_str()) == (0, "") && has_no_error
}

/// The events of a real session, as if it were one in this workspace.
fn events(workspace: &Workspace, file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/hosts")
        .join(file);
    let root = workspace.root_in_json();
    let text = fs::read_to_string(path)
        .unwrap()
        .replace("/home/dev/project", &root);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Hosts, their recorded events, and the event of the failing call: before a call, only lessons that
/// somebody has worded are told.
const HOSTS: &[(&str, &str, &str)] = &[
    (
        "claude-code",
        "claude-code-2.1.329.events.jsonl",
        "PostToolUseFailure",
    ),
    ("codex", "codex-0.169.0.events.jsonl", "PostToolUse"),
    ("gemini", "gemini-cli-0.61.0.events.jsonl", "AfterTool"),
];

/// A memory in which the failure of the real sessions has been overcome before, by what those
/// sessions do next.
fn taught() -> Workspace {
    let workspace = Workspace::empty();
    let failing = "python3 -c \"print({}['x'])\"";
    let error = "Traceback (most recent call last):\nKeyError: 'x'";
    for _ in 0..2 {
        let failure = ["record", "failure", "--code", failing, "--error", error];
        workspace.run(&failure).succeeds();
        let success = [
            "record", "success", "--code", "echo fixed", "--output", "fixed",
        ];
        workspace.run(&success).succeeds();
    }
    workspace
}

fn evidence(workspace: &Workspace) -> (u64, u64, u64) {
    let fix = &workspace.stored("procedural_memory.json")["entries"][0];
    let count = |name: &str| fix[name].as_u64().unwrap_or_default();
    (count("shown"), count("helped"), count("harmed"))
}

/// The text of an answer, which must be exactly of the form that hosts take.
fn told(ran: &Ran, event: &str) -> String {
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(&answer), ["hookSpecificOutput"]);
    let output = &answer["hookSpecificOutput"];
    assert_eq!(keys(output), ["hookEventName", "additionalContext"]);
    assert_eq!(output["hookEventName"], event);
    let text = output["additionalContext"].as_str().unwrap();
    assert!(!text.is_empty() && text.chars().count() <= 10_000);
    text.to_owned()
}

#[test]
fn a_real_session_gets_its_hint_once_and_credits_it() {
    for (host, file, failing) in HOSTS {
        let workspace = taught();
        let before = evidence(&workspace);
        let mut hints = Vec::new();
        let mut sessions = Vec::new();
        for event in events(&workspace, file) {
            let ran = hook(&workspace, host, event.to_string());
            let name = event["hook_event_name"].as_str().unwrap();
            if name == "SessionStart" {
                sessions.push(event["session_id"].clone());
            } else if ran.stdout.is_empty() {
                assert!(is_silent(&ran), "{ran:?}");
            } else {
                hints.push((
                    name.to_owned(),
                    event["session_id"].clone(),
                    told(&ran, name),
                ));
            }
        }
        let failures = hints.len() as u64;
        assert!(failures >= 1, "{host}");
        for (name, session, text) in &hints {
            assert_eq!(name, failing);
            assert!(sessions.contains(session));
            for part in ["WRONG:", "{}['x']", "CORRECT:", "echo fixed", "KeyError"] {
                assert!(text.contains(part), "{host}: {part}: {text}");
            }
        }
        let (shown, helped, harmed) = evidence(&workspace);
        assert_eq!(
            (shown - before.0, helped - before.1, harmed - before.2),
            (failures, failures, 0),
            "{host}"
        );
    }
}

fn failure(workspace: &Workspace, session: &str, command: &str, error: &str) -> String {
    json!({"hook_event_name": "PostToolUseFailure", "session_id": session,
        "cwd": workspace.root(), "transcript_path": "/nowhere.jsonl", "tool_name": "Bash",
        "tool_input": {"command": command}, "error": format!("Exit code 1\n{error}"),
        "is_interrupt": false, "from_the_future": {"a": [1]}})
    .to_string()
}

const COMMAND: &str = "python3 -c \"print({}['y'])\"";
const RIGHT: &str = "echo fixed";
const ERROR: &str = "Traceback (most recent call last):\nKeyError: 'y'";

#[test]
fn the_same_error_again_speaks_against_the_hint_until_it_retires() {
    let workspace = taught();
    // It has helped once, when it was learned; so it takes some failures to sink.
    for session in ["a", "b", "c", "d", "e", "f"] {
        let event = failure(&workspace, session, COMMAND, ERROR);
        told(
            &hook(&workspace, "claude-code", &event),
            "PostToolUseFailure",
        );
        assert!(is_silent(&hook(&workspace, "claude-code", &event)));
        // Ignoring the hint says nothing; following it in vain does.
        let follows = failure(&workspace, session, RIGHT, ERROR);
        assert!(is_silent(&hook(&workspace, "claude-code", &follows)));
    }
    assert_eq!(evidence(&workspace), (7, 1, 6));
    let event = failure(&workspace, "g", COMMAND, ERROR);
    assert!(is_silent(&hook(&workspace, "claude-code", event)));
    assert_eq!(
        workspace.stored("procedural_memory.json")["entries"][0]["state"],
        "retired"
    );
}

#[test]
fn new_lesson_is_a_hint_at_the_first_failure() {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let session = "fixtures/transcripts/steps.jsonl";
    workspace.run(&["learn", session]).succeeds();
    // Nothing is derived yet, and the hook has less than half a second.
    let error = "jq: error (at report.json:1): module not found: sums";
    let event = failure(&workspace, "a", "jq -f total.jq report.json", error);
    let text = told(
        &hook(&workspace, "claude-code", &event),
        "PostToolUseFailure",
    );
    assert!(text.contains("jq -L lib -f total.jq report.json"), "{text}");
}

#[test]
fn call_without_a_failure_of_the_agent_gets_no_hint() {
    let workspace = taught();
    let event: Value = serde_json::from_str(&failure(&workspace, "a", COMMAND, ERROR)).unwrap();
    let with = |name: &str, value: Value| {
        let mut event = event.clone();
        event[name] = value;
        event.to_string()
    };
    for event in [
        with("is_interrupt", json!(true)),
        with("cursor_version", json!("3.1")),
        with("error", json!("Exit code 1")),
        with("error", json!(7)),
        with("hook_event_name", json!("SomethingNew")),
        with("session_id", json!(null)),
        with("tool_input", json!({"command": "cargo test"})),
    ] {
        let ran = hook(&workspace, "claude-code", &event);
        assert!(is_silent(&ran), "{event}: {ran:?}");
    }
    let mut workspace = workspace;
    workspace.set("CURSOR_VERSION", "3.1");
    assert!(is_silent(&hook(
        &workspace,
        "claude-code",
        event.to_string()
    )));
}

/// Gives an event of a session to the hook, which must be in time, and say something or nothing. Each
/// attempt is a session of its own: what was told once, or failed often, changes no answer.
fn check_said(what: &str, workspace: &Workspace, event: &dyn Fn(&str) -> Vec<u8>, is_told: bool) {
    // A machine under load may be late; being late is only wrong when it stays so.
    let late = ["a", "b", "c", "d", "e"].into_iter().all(|session| {
        let event = event(session);
        let start = Instant::now();
        let ran = hook(workspace, "claude-code", event);
        let took = start.elapsed();
        let is_late = took > PATIENCE;
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{what}: {ran:?}");
        // A hook that is late may leave its answer out.
        let is_silent = ran.stdout.is_empty();
        assert!(
            is_silent != is_told || is_silent && is_late,
            "{what}: {ran:?}"
        );
        is_late
    });
    assert!(!late, "{what} took longer than {PATIENCE:?}");
}

#[test]
#[cfg_attr(windows, ignore = "programs start too slowly under Wine for its time limit")]
fn nothing_that_is_wrong_with_us_gets_in_the_way() {
    let check = |what: &str, workspace: &Workspace, event: &[u8]| {
        check_said(what, workspace, &|_| event.to_vec(), false);
    };
    let workspace = taught();
    let event = |workspace: &Workspace, session: &str| {
        failure(workspace, session, COMMAND, ERROR).into_bytes()
    };
    for garbage in [
        &b""[..],
        b"{",
        b"null",
        b"\xff\xfe\x00",
        b"[[[[",
        b"{\"session_id\": {}}",
    ] {
        check("garbage", &workspace, garbage);
    }
    check("deep", &workspace, "[".repeat(1_000_000).as_bytes());
    let none = Workspace::empty();
    check("no memory", &none, &event(&none, "a"));
    assert!(!none.memory("").exists());
    // Without the lock nothing is written, and hints are still shown.
    for (file, is_told) in [("procedural_memory.local.json", false), (".lock", true)] {
        let workspace = taught();
        fs::remove_file(workspace.memory(file)).unwrap();
        fs::create_dir(workspace.memory(file)).unwrap();
        check_said(
            file,
            &workspace,
            &|session| event(&workspace, session),
            is_told,
        );
    }
    let corrupt = taught();
    fs::write(
        corrupt.memory("procedural_memory.local.json"),
        "{\"entries\": [{\"procedure_id\"\0\0\0",
    )
    .unwrap();
    check_said(
        "corrupt",
        &corrupt,
        &|session| event(&corrupt, session),
        false,
    );
    let locked = taught();
    let lock = fs::File::open(locked.memory(".lock")).unwrap();
    lock.lock().unwrap();
    check_said("locked", &locked, &|session| event(&locked, session), true);
    drop(lock);
    let output = "all sorts of things\n".repeat(250_000);
    let huge = |session: &str| failure(&workspace, session, "cat x", &output).into_bytes();
    check_said("huge", &workspace, &huge, false);
}

#[test]
fn a_memory_that_cannot_be_written_stays_silent() {
    let workspace = taught();
    let memory = workspace.memory("");
    // A file takes the place of the session directory; read-only does not stop root.
    fs::remove_dir_all(memory.join(".index/sessions")).unwrap();
    fs::write(memory.join(".index/sessions"), "").unwrap();
    let ran = hook(
        &workspace,
        "claude-code",
        failure(&workspace, "a", COMMAND, ERROR),
    );
    assert!(is_silent(&ran), "{ran:?}");
}

#[test]
fn a_session_that_has_ended_is_learnt_from_once() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sessions");
    let session = workspace.root().join("session.jsonl");
    fs::copy(fixture.join("claude-code-stock.jsonl"), &session).unwrap();
    let event = json!({"hook_event_name": "SessionEnd", "session_id": "s", "reason": "other",
        "cwd": workspace.root(), "transcript_path": session});
    for _ in 0..2 {
        assert!(is_silent(&hook(
            &workspace,
            "claude-code",
            event.to_string()
        )));
        let fixes = workspace.stored("procedural_memory.json");
        let fixes = fixes["entries"].as_array().unwrap();
        assert!(!fixes.is_empty(), "{fixes:?}");
        assert!(
            fixes
                .iter()
                .all(|fix| fix["occurrences"].as_f64().unwrap_or(1.0) <= 1.0)
        );
    }
}

#[test]
fn no_way_of_calling_it_is_an_error_to_a_host() {
    let workspace = taught();
    let event = failure(&workspace, "a", COMMAND, ERROR);
    for arguments in [
        &["hook"][..],
        &["hook", "claude-code", "--from-the-future"],
        &["hook", "claude-code", "codex"],
    ] {
        let ran = hook_with(&workspace, arguments, event.as_bytes());
        assert!(is_silent(&ran), "{arguments:?}: {ran:?}");
    }
    // A person who looks into the log of the host reads what is wrong there.
    let other = json!({"hook_event_name": "Notification", "session_id": "a"}).to_string();
    for (host, event, said) in [
        ("emacs", &event, "`emacs` is no agent host with hooks"),
        (
            "gemini-cli",
            &other,
            "is no event of Gemini CLI that memctl handles",
        ),
        ("claude-code", &other, "`PreToolUse`"),
    ] {
        let ran = hook(&workspace, host, event);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
    let root = workspace.root();
    let arguments = ["hook", "claude-code", "--root", root.to_str().unwrap()];
    let ran = hook_with(&workspace, &arguments, event.as_bytes());
    told(&ran, "PostToolUseFailure");
}

#[test]
fn a_hook_reads_to_its_end_or_gives_up() {
    let workspace = taught();
    let mut command = workspace.command();
    command
        .args(["hook", "claude-code"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Nothing is written, and standard input stays open.
    let start = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(start.elapsed() < EVER);
}

#[test]
#[cfg_attr(windows, ignore = "it expects paths as Unix quotes them")]
fn hooks_come_and_go_through_the_commands() {
    let mut workspace = Workspace::empty();
    let settings = workspace.home().join(".claude/settings.json");
    fs::create_dir(settings.parent().unwrap()).unwrap();
    let original = "{\n    // mine\n    \"model\": \"opus\",\n}\n";
    fs::write(&settings, original).unwrap();
    let installed = workspace.json(&["hooks", "install", "claude-code"]);
    assert_eq!(installed["changed"], true);
    let command = format!("{} hook claude-code", env!("CARGO_BIN_EXE_memctl"));
    assert!(fs::read_to_string(&settings).unwrap().contains(&command));
    assert_eq!(
        workspace.json(&["hooks", "install", "claude-code"])["changed"],
        false
    );
    let status = workspace.json(&["hooks", "status"]);
    let standings: Vec<&Value> = status["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| &h["standing"])
        .collect();
    assert_eq!(standings[0], "installed");
    assert!(
        standings[1..].iter().all(|standing| *standing == "absent"),
        "{status}"
    );
    assert_eq!(
        workspace.json(&["hooks", "uninstall", "claude-code"])["changed"],
        true
    );
    assert_eq!(fs::read_to_string(&settings).unwrap(), original);
    // In a project, and no path of this machine in it.
    let codex = workspace.json(&["hooks", "install", "codex", "--project"]);
    assert!(codex["notes"].to_string().contains("/hooks"), "{codex}");
    assert!(
        workspace
            .read(".codex/hooks.json")
            .contains("\"memctl hook codex\"")
    );
    workspace.json(&["hooks", "uninstall", "codex", "--project"]);
    assert!(!workspace.root().join(".codex").exists());
    // Settings in another directory, and broken settings.
    let elsewhere = workspace.root().join("elsewhere");
    workspace.set("CODEX_HOME", elsewhere.to_str().unwrap());
    workspace.json(&["hooks", "install", "codex"]);
    workspace.write("elsewhere/config.toml", "[features]\nhooks = false\n");
    let status = workspace.json(&["hooks", "status", "codex"]);
    assert!(
        status["hosts"][0]["notes"]
            .to_string()
            .contains("features.hooks"),
        "{status}"
    );
    workspace.write("elsewhere/hooks.json", "{\"hooks\": 1}");
    let refused = workspace.run(&["hooks", "install", "codex"]);
    refused.fails(2, "`hooks` that is not an object");
    assert_eq!(workspace.read("elsewhere/hooks.json"), "{\"hooks\": 1}");
}

#[test]
fn status_lists_all_hosts_and_marks_the_one_with_broken_settings() {
    let workspace = Workspace::empty();
    workspace.json(&["hooks", "install", "gemini"]);
    workspace.json(&["mcp", "install", "gemini"]);
    let claude = workspace.home().join(".claude");
    fs::create_dir_all(&claude).unwrap();
    fs::write(claude.join("settings.json"), "{\"hooks\": ").unwrap();
    fs::write(workspace.home().join(".claude.json"), "{\"mcpServers\": ").unwrap();
    for command in ["hooks", "mcp"] {
        let ran = workspace.run(&[command, "status", "--json"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        let status: Value = serde_json::from_str(&ran.stdout).unwrap();
        let hosts = status["hosts"].as_array().unwrap();
        let of = |name: &str| hosts.iter().find(|host| host["host"] == name).unwrap();
        assert!(hosts.len() >= 3, "{status}");
        assert_eq!(of("claude-code")["standing"], "broken", "{status}");
        let problem = of("claude-code")["problem"].as_str().unwrap();
        assert!(problem.contains("is not JSON"), "{problem}");
        assert_eq!(of("gemini")["standing"], "installed", "{status}");
        assert_eq!(of("gemini")["problem"], Value::Null);
        assert_eq!(of("codex")["standing"], "absent", "{status}");
        let page = workspace.run(&[command, "status"]);
        assert!(page.stdout.contains("settings cannot be read"), "{page:?}");
        assert!(page.stdout.contains("is not JSON"), "{page:?}");
        // A host that is named is the whole question.
        workspace
            .run(&[command, "status", "claude-code"])
            .fails(2, "is not JSON");
    }
}

#[test]
fn the_loop_without_hooks_works_across_processes() {
    let workspace = Workspace::empty();
    let wrong = "print(drugs[\"mechanism\"])";
    let right = "for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])";
    let error = "TypeError: string indices must be integers";
    let failure = |session: &str| {
        let arguments = [
            "record", "failure", "--code", wrong, "--error", error, "--session", session,
        ];
        workspace.json(&arguments)
    };
    assert_eq!(failure("one")["hints"], json!([]));
    let success = [
        "record", "success", "--code", right, "--output", "ALK inhibitor", "--session", "one",
    ];
    assert_eq!(workspace.json(&success)["learned"], json!(["PROC-001"]));
    let procedure = workspace.json(&["show", "PROC-001"]);
    let told = &procedure["record"]["data"]["semantic_description"];
    assert_eq!(told, &json!(format!("code failed: {error}")));
    let hint = &failure("two")["hints"][0];
    assert_eq!(
        (&hint["working_code"], &hint["kind"]),
        (&json!(right), &json!("procedure"))
    );
    // Without a session there is none that has seen it: each failure is told.
    let unnamed = ["record", "failure", "--code", wrong, "--error", error];
    for _ in 0..2 {
        let hints = workspace.json(&unnamed)["hints"].clone();
        assert_eq!(hints[0]["working_code"], right, "{hints}");
    }
    let text = workspace
        .run(&["hint", "--error", error])
        .succeeds()
        .stdout
        .clone();
    let form = format!(
        "CODE HINTS (learned from prior errors -- use these patterns):\n\n  ERROR: {error}\n  \
         WRONG:\n    {wrong}\n  CORRECT:\n    {right}\n"
    );
    assert!(text.starts_with(&form), "{text}");
    // Another Python words the error otherwise. What has no word in common is found by a search.
    let similar = format!("{error}, not 'str'");
    let hint = workspace.json(&["hint", "--error", &similar]);
    assert_eq!(hint["hints"][0]["id"], "PROC-001", "{hint}");
    let found = workspace.json(&["search", "indexing text by a key", "--kind", "lesson"]);
    assert_eq!(found["results"][0]["id"], "PROC-001", "{found}");
    let keys = ["error_key", "hints", "pitfalls", "took_ms"];
    let document = workspace.json(&["hint", "--error", "NameError: name 'x' is not defined"]);
    assert!(
        keys.iter().all(|key| document.get(key).is_some()),
        "{document}"
    );
    assert_eq!(
        document["pitfalls"][0],
        "Variables do NOT persist between execute_code calls. Always re-query data you need."
    );
}

#[test]
fn asking_for_a_hint_changes_no_data_file() {
    let workspace = taught();
    let before = fs::read(workspace.memory("procedural_memory.local.json")).unwrap();
    for _ in 0..2 {
        let hint = workspace.json(&["hint", "--error", ERROR, "--command", COMMAND]);
        assert_eq!(hint["hints"][0]["working_code"], "echo fixed");
    }
    assert_eq!(
        fs::read(workspace.memory("procedural_memory.local.json")).unwrap(),
        before
    );
    // And one from a pipe, and none where nothing is known.
    let none = Workspace::empty();
    assert_eq!(none.json(&["hint", "--error", ERROR])["hints"], json!([]));
    assert!(!none.memory("").exists());
}

#[test]
fn a_session_that_has_ended_is_a_record_with_its_hints_and_pitfalls() {
    let workspace = taught();
    for _ in 0..2 {
        let tried = failure(&workspace, "s", COMMAND, ERROR);
        drop(hook(&workspace, "claude-code", tried));
    }
    let log = fs::read_to_string(workspace.memory("execution_logs.jsonl")).unwrap();
    let log = without_words(&log);
    let lines: Vec<Value> = log
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let lines: Vec<&Value> = lines
        .iter()
        .filter(|l| l["session_id"] == "claude-code/s")
        .collect();
    assert_eq!(
        (lines.len(), &lines[0]["action_type"]),
        (1, &json!("memory_read")),
        "{log}"
    );
    assert_eq!(lines[0]["output_data"]["hints"], json!(["PROC-001"]));
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sessions");
    let text = fs::read_to_string(session.join("claude-code-stock.jsonl")).unwrap();
    let transcript = workspace.write("session.jsonl", &text);
    let end = json!({"hook_event_name": "SessionEnd", "session_id": "s", "reason": "other",
        "cwd": workspace.root(), "transcript_path": transcript});
    // A session that a host takes up and ends again stays one record.
    for more in ["", "\n"] {
        fs::write(&transcript, format!("{text}{more}")).unwrap();
        assert!(is_silent(&hook(&workspace, "claude-code", end.to_string())));
        let sessions = workspace.stored("sessions.json")["entries"].clone();
        assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
        let session = &sessions[0];
        assert_eq!(session["status"], "completed");
        assert!(
            session["started_at"].as_str() < session["completed_at"].as_str(),
            "{session}"
        );
        let data = &session["session_data"];
        assert_eq!(data["native_id"], "claude-code/s");
        assert!(data["steps"].as_u64() > data["failures"].as_u64(), "{data}");
        assert_eq!(data["hints_shown"], 1);
        assert_eq!(
            (&data["rules_at_calls"], &data["rules_heeded"]),
            (&json!(0), &json!(0))
        );
        assert!(!data["learned"].as_array().unwrap().is_empty(), "{data}");
        assert_eq!(data["pitfalls"][0]["error"], "KeyError");
    }
    // Actions logged during the session belong to it.
    let shown = workspace.json(&["session", "show", "latest"]);
    let steps: Vec<&str> = shown["logs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["step_name"].as_str().unwrap())
        .collect();
    assert_eq!(&steps[..3], ["hint", "learn", "session_end"]);
    let page = workspace.run(&["session", "show", "latest"]);
    assert!(page.stdout.contains("pitfalls error"), "{page:?}");
}

/// A successful call, as Claude Code reports it.
fn success(workspace: &Workspace, session: &str, command: &str) -> String {
    json!({"hook_event_name": "PostToolUse", "session_id": session,
        "cwd": workspace.root(), "transcript_path": "/nowhere.jsonl", "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_response": {"stdout": "done", "stderr": "", "interrupted": false}})
    .to_string()
}

#[test]
fn a_recovery_is_a_hint_at_once_for_its_session_and_for_others() {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let error = "rtk: bun is no known command";
    let denied = |session: &str| {
        let event = failure(&workspace, session, "rtk bun run test", error);
        hook(&workspace, "claude-code", event)
    };
    let works = |command: &str| {
        let event = success(&workspace, "first", command);
        assert!(is_silent(&hook(&workspace, "claude-code", event)));
    };
    assert!(is_silent(&denied("first")));
    works("ls -l");
    assert!(!workspace.memory("procedural_memory.json").exists());
    works("bun run test");
    // The same session, and one that began before the first has ended.
    for session in ["first", "second"] {
        let text = told(&denied(session), "PostToolUseFailure");
        assert!(
            text.contains("CORRECT:\n    bun run test"),
            "{session}: {text}"
        );
    }
    // The end of the session finds nothing new, and counts nothing twice.
    let line = |id: usize, command: &str, output: &str, ok: bool| {
        json!({"tool": "Bash", "id": id.to_string(), "input": command, "output": output, "ok": ok})
            .to_string()
    };
    let text = [
        json!({"session": "first", "cwd": workspace.root()}).to_string(),
        line(1, "rtk bun run test", error, false),
        line(2, "ls -l", "run.sh", true),
        line(3, "bun run test", "done", true),
    ]
    .join("\n");
    workspace.write("first.jsonl", text);
    let report = workspace.json(&["learn", "first.jsonl"]);
    assert_eq!(
        (&report["learned"], &report["merged"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(
        workspace.stored("procedural_memory.json")["entries"][0]["occurrences"],
        1.0
    );
    assert_eq!(
        workspace.stored("procedural_memory.json")["entries"][0]["procedure_id"],
        "PROC-001"
    );
}

#[test]
fn a_retry_and_a_dangerous_way_are_never_hints() {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    for (failing, error, working) in [
        (
            "git push",
            "error: failed to push some refs to 'x'",
            "git push --force",
        ),
        ("npm ci", "npm ERR! code ECONNRESET", "sleep 5; npm ci"),
        (
            "make",
            "a.c:1:1: error: unknown type name 'x'",
            "make || true",
        ),
        (
            "touch logs/a",
            "touch: cannot touch 'logs/a': Permission denied",
            "sudo touch logs/a",
        ),
    ] {
        drop(hook(
            &workspace,
            "claude-code",
            failure(&workspace, "s", failing, error),
        ));
        drop(hook(
            &workspace,
            "claude-code",
            success(&workspace, "s", working),
        ));
        let again = failure(&workspace, "t", failing, error);
        assert!(
            is_silent(&hook(&workspace, "claude-code", again)),
            "{working}"
        );
    }
    assert!(!workspace.memory("procedural_memory.json").exists());
}

#[test]
fn the_last_event_and_its_answer_are_shown() {
    let workspace = Workspace::empty();
    let last = || {
        let all = workspace.json(&["hooks", "status", "claude-code"]);
        all["hosts"][0]["last"].clone()
    };
    assert_eq!(last(), Value::Null);
    let call = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": workspace.root(),
        "tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "npm ci"}});
    let silent = hook(&workspace, "claude-code", call.to_string());
    assert!(is_silent(&silent));
    assert_eq!(
        (&last()["event"], &last()["silent"]),
        (
            &json!("PreToolUse"),
            &json!("no memory in this folder: memctl init")
        )
    );
    workspace.json(&["init"]);
    let rule = workspace.json(&["correct", "Use pnpm here, never npm.", "--command", "^npm"]);
    workspace.json(&["approve", rule["id"].as_str().unwrap()]);
    let spoken = hook(&workspace, "claude-code", call.to_string());
    assert!(!is_silent(&spoken));
    let told = last()["told"].to_string();
    assert!(told.contains("Use pnpm here, never npm."), "{told}");
    workspace.json(&["hooks", "install", "claude-code"]);
    let page = workspace.run(&["hooks", "status", "claude-code"]).stdout;
    let settings = "installed (~/.claude/settings.json)";
    assert!(page.contains(settings), "{page}");
    assert!(page.contains("last event:   PreToolUse ("), "{page}");
    assert!(!page.contains("last told:"), "{page}");
    // The end of a session, which says nothing, does not hide what was told before it.
    let end = json!({"hook_event_name": "SessionEnd", "session_id": "s", "cwd": workspace.root()});
    assert!(is_silent(&hook(&workspace, "claude-code", end.to_string())));
    assert_eq!(last()["told"], Value::Null);
    let page = workspace.run(&["hooks", "status", "claude-code"]).stdout;
    for part in [
        "last event:   SessionEnd (",
        "last told:    PreToolUse (",
        "Use pnpm here, never npm.",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_damaged_file_of_rules_is_said_to_the_person_and_a_repair_names_what_it_lost() {
    let workspace = Workspace::empty();
    workspace.json(&["init"]);
    for rule in ["Use pnpm here.", "Sign every commit."] {
        let said = workspace.json(&["correct", rule]);
        workspace.json(&["approve", said["id"].as_str().unwrap()]);
    }
    let start = |session: &str| {
        let event = json!({"hook_event_name": "SessionStart", "session_id": session,
            "source": "startup", "cwd": workspace.root()});
        let answer = hook(&workspace, "claude-code", event.to_string()).stdout;
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    assert_eq!(start("a").get("systemMessage"), None);
    workspace.json(&["hooks", "install", "claude-code"]);
    let path = workspace.memory("reflexion_entries.json");
    let file = fs::read_to_string(&path).unwrap();
    fs::write(&path, file.replacen("\"rule\":", "\"rule\"", 1)).unwrap();
    let answer = start("b");
    let message = answer["systemMessage"].as_str().unwrap();
    assert!(message.contains("memctl doctor"), "{answer}");
    let told = answer["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap();
    assert!(told.contains("Sign every commit."), "{told}");
    let page = workspace.run(&["hooks", "status", "claude-code"]).stdout;
    assert!(page.contains("cannot read all rules"), "{page}");
    let list = workspace.run(&["list", "rules"]).stderr;
    assert!(
        list.contains("`REFL-001`") && list.contains("memctl doctor"),
        "{list}"
    );
    let found = workspace.run(&["doctor"]).stdout;
    assert!(
        found.contains("`REFL-001`") && found.contains("mend the line"),
        "{found}"
    );
    let repaired = workspace.json(&["doctor", "--repair"]);
    assert_eq!(repaired["repaired"][0]["lost"], json!(["REFL-001"]));
    assert_eq!(start("c").get("systemMessage"), None);
    // A file that is none keeps every rule back.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(start("d")["systemMessage"].is_string());
}
