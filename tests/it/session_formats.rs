//! Session files of `OpenCode`, Cline and `SpecStory`: detected, read, and learned from.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::workspace::Workspace;

/// With the drive of the tests on Windows: the program runs on that of its workspace.
fn formats() -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/formats");
    std::path::absolute(directory).unwrap()
}

fn learn(workspace: &Workspace, file: &str) -> Value {
    let path = formats().join(file);
    workspace.json(&["learn", path.to_str().unwrap()])
}

#[test]
fn each_format_is_detected_and_its_recovery_learnt() {
    for (file, format, steps) in [
        ("opencode-1.18.33.export.json", "opencode", 2),
        ("cline-3.0.65.messages.json", "cline", 2),
        ("specstory-2.1.0.md", "specstory", 3),
    ] {
        let workspace = Workspace::empty();
        workspace.run(&["init"]).succeeds();
        let report = learn(&workspace, file);
        let read = &report["transcripts"][0];
        assert_eq!(read["format"], format, "{report}");
        assert_eq!(read["steps"], steps, "{report}");
        assert_eq!(read["failures"], 1, "{report}");
        assert_eq!(report["warnings"], json!([]), "{report}");
        let episode = &report["episodes"][0];
        let text = episode.to_string();
        assert_eq!(episode["root_cause"], "KeyError: 'x'", "{text}");
        // Text that hosts and this program added is not part of the error.
        for foreign in [
            "CONTEXT", "memctl-data", "An agent met this", "[stderr]", "Exit code",
        ] {
            assert!(!text.contains(foreign), "{format}: {text}");
        }
    }
}

#[test]
fn messages_of_markdown_files_make_no_rule_and_reach_the_model() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    learn(&workspace, "specstory-2.1.0.md");
    // Nothing but an agent that is asked, or a person, makes a rule of what a person said.
    let waiting = workspace.json(&["list", "rules", "--status", "candidate"]);
    assert_eq!(waiting["total"], 0, "{waiting}");
    let again = learn(&workspace, "specstory-2.1.0.md");
    assert_eq!(again["unchanged"], 1, "{again}");
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let file = formats().join("specstory-2.1.0.md");
    let file = file.to_str().unwrap();
    let report = workspace.json(&["learn", file, "--dry-run", "--model", "exec:cat"]);
    let question = report["lessons"]["questions"][0]["user"].as_str().unwrap();
    let said = "PERSON: no, always use pnpm here, never npm\n";
    assert!(question.contains(said), "{question}");
}

#[test]
fn unknown_versions_say_so() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let export = fs::read_to_string(formats().join("specstory-2.1.0.md")).unwrap();
    workspace.write("new.md", export.replace("v2.1.0", "v3.0.0"));
    let messages = json!({"version": 9, "sessionId": "a", "origin": {}, "messages": [{"turn": 1}]});
    workspace.write("cline.json", messages.to_string());
    let exported = json!({"info": {"version": "9.0.0"}, "messages": [{"turn": 1}]});
    workspace.write("opencode.json", exported.to_string());
    for (file, said) in [
        ("new.md", "Markdown v3.0.0 of SpecStory is not known"),
        ("cline.json", "not a message of Cline as version 1 has it"),
        ("opencode.json", "not a message of OpenCode"),
    ] {
        let report = workspace.json(&["learn", "--dry-run", file]);
        assert!(report.to_string().contains(said), "{file}: {report}");
    }
}

#[test]
fn folders_have_sessions_in_markdown_and_other_markdown() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let export = fs::read_to_string(formats().join("specstory-2.1.0.md")).unwrap();
    workspace.write("p/.specstory/history/a.md", &export);
    workspace.write("p/kept/a.md", export.replace("019", "020"));
    let shown = "# Notes\n\n{\"role\": \"user\", \"content\": \"never\"}\n";
    workspace.write("p/notes.md", shown);
    workspace.write("p/kept/README.md", "# Kept\n");
    let report = workspace.json(&["learn", "--dry-run", "p"]);
    let mut read: Vec<&str> = report["transcripts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["format"].as_str().unwrap())
        .collect();
    read.sort_unstable();
    assert_eq!(read, ["specstory", "specstory"]);
    assert_eq!(report["skipped"], 2, "{report}");
    let page = workspace.run(&["learn", "--dry-run", "p"]);
    page.succeeds();
    let counted = "2 files skipped";
    assert!(page.stdout.contains(counted), "{page:?}");
}

/// A session of Claude Code with a failing call and one that works.
fn claude_session(id: &str, time: &str) -> String {
    let line = |kind: &str, at: u32, content: Value| {
        let line = json!({
            "type": kind, "sessionId": id, "cwd": "/home/me/shop", "uuid": format!("u{at}"),
            "timestamp": format!("{time}:0{at}.000Z"), "message": {"role": kind, "content": content},
        });
        format!("{line}\n")
    };
    let call = |at: u32, command: &str| json!([{"type": "tool_use", "id": format!("toolu_{at}"), "name": "Bash", "input": {"command": command}}]);
    let answer = |at: u32, text: &str, failed: bool| json!([{"type": "tool_result", "tool_use_id": format!("toolu_{at}"), "content": text, "is_error": failed}]);
    [
        line("user", 1, json!("install what the report needs")),
        line("assistant", 2, call(2, "pip install pandas")),
        line(
            "user",
            3,
            answer(2, "Exit code 127\nbash: pip: command not found", true),
        ),
        line("assistant", 4, call(4, "uv pip install pandas")),
        line("user", 5, answer(4, "Successfully installed pandas", false)),
    ]
    .concat()
}

#[test]
fn a_fork_with_a_copied_history_is_no_second_observation() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let morning = "2026-03-01T10:00";
    workspace.write("s/1.jsonl", claude_session("first", morning));
    workspace.write("s/2.jsonl", claude_session("fork", morning));
    // Some hosts write new times when a session is resumed: the ids of its calls stay.
    let long = |text: String| text.replace("toolu_", "toolu_0123456789abcdef");
    let resumed = claude_session("resumed", "2026-03-04T10:00");
    workspace.write(
        "s/4.jsonl",
        long(claude_session("fourth", "2026-03-03T10:00")),
    );
    workspace.write("s/5.jsonl", long(resumed));
    workspace.write("s/3.jsonl", claude_session("later", "2026-03-02T10:00"));
    let report = workspace.json(&["learn", "s"]);
    assert_eq!(
        report["transcripts"].as_array().unwrap().len(),
        5,
        "{report}"
    );
    let entries = workspace.stored("procedural_memory.json")["entries"].clone();
    let seen: Vec<_> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["occurrences"])
        .collect();
    assert_eq!(seen, [&json!(3.0)], "{entries}");
}

#[test]
fn file_without_a_session_is_an_error() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace.write("notes.txt", "We met on Monday.\n");
    workspace.write("s.jsonl", claude_session("first", "2026-03-01T10:00"));
    for (args, said) in [
        (
            &["learn", "notes.txt"][..],
            "no session file of a known format",
        ),
        (
            &["learn", "--format", "specstory", "notes.txt", "s.jsonl"],
            "holds no call and no message in the format specstory",
        ),
    ] {
        let run = workspace.run(args);
        assert_eq!(run.code, 2, "{args:?}: {run:?}");
        assert!(run.stderr.contains(said), "{args:?}: {run:?}");
    }
    // What can be read is read all the same.
    let run = workspace.run(&["learn", "notes.txt", "s.jsonl"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stdout.contains("1 session"), "{run:?}");
}
