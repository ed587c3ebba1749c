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
    // Hosts do not write the prefix that Windows gives resolved paths.
    let project = project.to_str().unwrap().trim_start_matches(r"\\?\");
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

#[test]
fn missing_directory_of_an_output_is_named() {
    let workspace = workspace();
    let error = &workspace.json_of(&["memory", "export", "--output", "none/x"])["error"];
    assert_eq!(error["kind"], "input", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.ends_with("none/x`: its directory does not exist"),
        "{message}"
    );
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.starts_with("mkdir -p "), "{error}");
}

#[test]
fn number_of_results_has_a_largest_value() {
    let workspace = workspace();
    let commands: [&[&str]; 7] = [
        &["memory", "list"],
        &["memory", "search", "x"],
        &["memory", "audit"],
        &["memory", "undo", "--list"],
        &["session", "list"],
        &["session", "show", "latest"],
        &["watch"],
    ];
    for command in commands {
        let called = |limit| workspace.run(&[command, &["-n", limit]].concat());
        called("100001").fails(2, "100001 is not in 1..=100000");
        called("0").fails(2, "0 is not in 1..=100000");
    }
    workspace
        .run(&["memory", "list", "-n", "100000"])
        .succeeds();
}

#[test]
fn skill_without_metadata_says_what_to_write() {
    let workspace = workspace();
    for text in ["Answer in one word.\n", ""] {
        workspace.write("skills/hr/plain/SKILL.md", text);
        workspace
            .run(&["memory", "prompt", "hr/plain"])
            .fails(2, "it needs a `description` between `---` lines")
            .fails(
                2,
                r"begin the file with: ---\ndescription: what the skill does\n---",
            );
        let page = workspace.run(&["doctor"]).succeeds().stdout.clone();
        assert!(page.contains("plain/SKILL.md` has no metadata"), "{page}");
        assert!(!page.contains("No problems"), "{page}");
    }
    let text = "---\ndescription: what the skill does\n---\nAnswer in one word.\n";
    workspace.write("skills/hr/plain/SKILL.md", text);
    let shown = workspace.json(&["memory", "prompt", "hr/plain"]);
    assert_eq!(shown["skill"], "hr/plain");
}

#[test]
fn an_undone_change_is_undone() {
    let workspace = workspace();
    workspace.json(&[
        "correct",
        "hr/resume-screen",
        "Never name competitors in the summary.",
    ]);
    assert_eq!(workspace.json(&["list", "rules"])["total"], 1);
    assert_eq!(
        workspace.json(&["memory", "undo", "--dry-run"])["undone"],
        false
    );
    assert_eq!(workspace.json(&["memory", "undo"])["undone"], true);
    assert_eq!(workspace.json(&["list", "rules"])["total"], 0);
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn long_numbers_stay_and_what_no_reader_takes_is_refused() {
    let workspace = workspace();
    let run = |input: &str| {
        workspace.write("input.json", input);
        workspace.run(&[
            "run", "hr/resume-screen", "--input", "input.json", "--model", "exec:cat input.json",
        ])
    };
    let ran = run(r#"{"account": 12345678901234567890123}"#);
    assert!(
        ran.succeeds()
            .stdout
            .contains("\n  \"account\": 12345678901234567890123\n"),
        "{ran:?}"
    );
    run(r#"{"x": 1e400}"#).fails(2, "no JSON reader takes `1e400`");
    for metadata in [r#"{"x": 1e400}"#, r#"{"x": "\ud800"}"#] {
        workspace
            .run(&[
                "memory", "add", "--type", "brand_memory", "--content", "x", "--metadata", metadata,
            ])
            .fails(2, "no JSON reader takes");
    }
    // An answer of a model is not lost for it.
    workspace.write("answer.json", r#"{"x": 1e400}"#);
    let kept = workspace.run(&["run", "hr/resume-screen", "--model", "exec:cat answer.json"]);
    assert!(kept.succeeds().stdout.contains("1e400"), "{kept:?}");
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn a_request_to_end_ends_the_program_of_a_run() {
    let workspace = workspace();
    workspace.write("slow.sh", "cat > /dev/null; echo $$ > began; exec sleep 60");
    let mut child = workspace
        .command()
        .args(["run", "hr/resume-screen", "--model", "exec:sh slow.sh"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let number = loop {
        let began = std::fs::read_to_string(workspace.root().join("began")).unwrap_or_default();
        if began.ends_with('\n') {
            break began;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let ended = std::process::Command::new("kill")
        .arg(child.id().to_string())
        .status();
    assert!(ended.unwrap().success());
    assert!(!child.wait().unwrap().success());
    let is_there = || {
        let state = std::process::Command::new("ps")
            .args(["-o", "stat=", "-p", number.trim()])
            .output();
        let state = String::from_utf8(state.unwrap().stdout).unwrap();
        !state.trim().is_empty() && !state.starts_with('Z')
    };
    for _ in 0..100 {
        if !is_there() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the program goes on");
}
