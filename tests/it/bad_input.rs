//! Input that is missing, strange or too large: a clear error, or the useful part of it.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::workspace::{Ran, Workspace};

fn workspace() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace
}

#[test]
fn root_that_does_not_exist_is_an_error() {
    let workspace = workspace();
    let missing = workspace.root().join("missing");
    let missing = missing.to_str().unwrap();
    workspace
        .run(&["--root", missing, "status"])
        .fails(2, "is not a directory");
    assert!(!std::path::Path::new(missing).exists());
    workspace.run(&["--root", missing, "init"]).succeeds();
    workspace.run(&["--root", missing, "status"]).succeeds();
}

#[test]
fn manual_pages_name_a_directory_that_is_missing() {
    let workspace = workspace();
    workspace
        .run(&["man", "--dir", "nowhere"])
        .fails(2, "`nowhere` is not a directory");
}

fn hint(workspace: &Workspace, output: &[u8]) -> Ran {
    let mut command = workspace.command();
    command.args(["hint", "--error", "-", "--json"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(output).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn end_of_a_long_output_and_of_one_that_is_no_text_is_read() {
    let workspace = workspace();
    let error = "ModuleNotFoundError: No module named 'yaml'";
    workspace.json(&[
        "record", "failure", "--code", "python3 load.py", "--error", error,
    ]);
    workspace.json(&[
        "record",
        "success",
        "--code",
        "pip install pyyaml && python3 load.py",
        "--output",
        "ok",
    ]);
    let expected = workspace.json(&["hint", "--error", error])["hints"].clone();
    assert_eq!(expected.as_array().map(Vec::len), Some(1), "{expected}");
    for before in [
        vec![b'x'; 100 << 20],
        vec![0xff; 10_000],
        b"\xc3(\n".repeat(50),
    ] {
        let output = [&before[..], b"\n", error.as_bytes(), b"\n"].concat();
        let ran = hint(&workspace, &output);
        assert_eq!(ran.document()["hints"], expected, "{}", before.len());
    }
}

#[test]
fn learn_without_a_path_reads_the_sessions_of_this_project() {
    let workspace = workspace();
    workspace.run(&["learn"]).fails(2, "no sessions of");
    let session = |id: &str, cwd: &str| {
        let call = |n: u32, command: &str, is_error: bool, output: &str| {
            let id_of = format!("{id}-{n}");
            [
                json!({"type": "assistant", "sessionId": id, "cwd": cwd, "message": {"content": [
                    {"type": "tool_use", "id": id_of, "name": "Bash", "input": {"command": command}}]}}),
                json!({"type": "user", "sessionId": id, "cwd": cwd, "message": {"content": [
                    {"type": "tool_result", "tool_use_id": id_of, "is_error": is_error, "content": output}]}}),
            ]
        };
        let error = "Exit code 2\nerror: unexpected argument '--fast' found";
        let lines: Vec<Value> = [
            call(1, "cargo run --fast", true, error),
            call(2, "cargo run -- --fast", false, "done"),
        ]
        .concat();
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        lines.join("\n") + "\n"
    };
    let project = workspace.root().canonicalize().unwrap();
    let project = project.to_str().unwrap();
    let folder: String = project
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let keep = |folder: &str, id: &str, cwd: &str| {
        let at = workspace.home().join(".claude/projects").join(folder);
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join(format!("{id}.jsonl")), session(id, cwd)).unwrap();
    };
    keep(&folder, "mine", project);
    keep(&folder, "moved", "/somewhere/else");
    keep("-home-other", "theirs", "/home/other");
    let report = workspace.json(&["learn"]);
    assert_eq!(
        report["transcripts"].as_array().unwrap().len(),
        1,
        "{report:#}"
    );
    let path = report["transcripts"][0]["path"].as_str().unwrap();
    assert!(path.ends_with("mine.jsonl"), "{path}");
}
