//! Standard output that scripts can rely on: the answer alone, and an error if it cannot be written.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::correct;
use crate::workspace::Workspace;

const RUN: [&str; 4] = [
    "run",
    "hr/resume-screen",
    "--input",
    "fixtures/sample_input.json",
];

fn workspace() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace
}

#[test]
fn run_prints_the_answer_on_stdout_and_the_report_on_stderr() {
    let workspace = workspace();
    let ran = workspace.run(&RUN);
    let answer: Value = serde_json::from_str(&ran.succeeds().stdout).unwrap();
    assert_eq!(answer["overall_score"], 72);
    for part in ["execution:", "layers:", "Wrong?"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    let quiet = workspace.run(&[&RUN[..], &["--quiet"]].concat());
    assert_eq!(quiet.succeeds().stdout, ran.stdout);
    assert!(!quiet.stderr.contains("execution:"), "{}", quiet.stderr);
    // A dry run has no answer: its report is the result.
    let dry = workspace.run(&[&RUN[..], &["--dry-run"]].concat());
    assert!(dry.succeeds().stdout.contains("layers:"));
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn answer_of_plain_text_has_no_terminal_sequences() {
    let workspace = workspace();
    workspace.write(
        "model.sh",
        "cat >/dev/null; printf '\\033[2Jplain \\033[31mred\\n'\n",
    );
    let ran = workspace.run(&[&RUN[..], &["--model", "exec:sh model.sh"]].concat());
    assert_eq!(ran.succeeds().stdout, "plain red\n\n");
}

#[cfg(target_os = "linux")]
#[test]
fn full_stdout_is_an_error_of_every_command() {
    let workspace = workspace();
    workspace.run(&RUN).succeeds();
    correct(&workspace, "Never score by years of experience alone.");
    let commands: [&[&str]; 10] = [
        &RUN,
        &["memory", "status"],
        &["memory", "list", "rules", "--json"],
        &["memory", "search", "years"],
        &["memory", "prompt", "hr/resume-screen"],
        &["stats"],
        &["doctor"],
        &["memory", "audit"],
        &["--help"],
        &["completions", "bash"],
    ];
    for command in commands {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = workspace
            .command()
            .args(command)
            .stdout(full)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(74), "{command:?}: {said}");
        assert!(
            said.contains("cannot write to standard output: No space left on device"),
            "{command:?}: {said}"
        );
    }
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn reader_that_leaves_early_and_closed_stdout_are_no_errors() {
    let workspace = workspace();
    let mut child = workspace
        .command()
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = child.wait_with_output().unwrap();
    assert_eq!(
        (ran.status.code(), ran.stderr.as_slice()),
        (Some(0), &b""[..])
    );
    // A shell closes standard output with `>&-`.
    let mut shell = Command::new("sh");
    let program = workspace.command();
    shell.args(["-c", "exec \"$0\" memory status >&-"]);
    shell.arg(program.get_program());
    for (name, value) in program.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell.current_dir(workspace.root());
    let ran = shell.output().unwrap();
    assert_eq!(
        (ran.status.code(), ran.stderr.as_slice()),
        (Some(0), &b""[..])
    );
}

#[test]
fn version_is_one_line() {
    let text = Workspace::empty().run(&["--version"]).stdout;
    assert_eq!(text, format!("memctl {}\n", env!("CARGO_PKG_VERSION")));
}
