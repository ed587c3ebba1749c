//! The demonstration shows what it says, and its picture shows what it prints.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::workspace::Ran;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn printed() -> String {
    let script = repository().join("tests/demo.sh");
    let mut shell = Command::new("sh");
    shell.arg(script).arg(env!("CARGO_BIN_EXE_memctl"));
    let ran = Ran::of(shell.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stdout
}

#[test]
fn the_lesson_of_one_input_decides_about_another() {
    let printed = printed();
    let heading = |line: &&str| line.starts_with("# ") || line.starts_with("$ ");
    let after = |command: &str| -> Vec<String> {
        let answers = printed.split(command).skip(1);
        answers
            .map(|rest| rest.lines().skip(1).take_while(|line| !heading(line)))
            .map(|lines| lines.collect::<Vec<_>>().join("\n"))
            .collect()
    };
    let marco = after("--input fixtures/demo/candidate.json");
    assert_eq!(marco.len(), 2, "{printed}");
    assert!(marco[0].contains("\"overall_score\": 77"), "{printed}");
    assert!(marco[0].contains("rules:        none"), "{printed}");
    assert!(marco[1].contains("\"overall_score\": 51"), "{printed}");
    assert!(marco[1].contains("rules:        REFL-004"), "{printed}");
    let hint = after("memctl hook claude-code");
    assert!(
        hint[0].contains("CORRECT:\n      git -c user.name=dev"),
        "{printed}"
    );
    let wide: Vec<&str> = printed
        .lines()
        .filter(|line| line.chars().count() > 100)
        .collect();
    assert_eq!(wide, Vec::<&str>::new());
}

/// Leaves out what differs between two runs: times, marks and durations.
fn masked(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let is_mark = word.contains("memctl-data-");
        let is_changing = word.contains("EXEC-") || word.parse::<u64>().is_ok();
        if is_mark || is_changing { "…" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Picture that the script makes of this text; `None` without Python.
fn drawn(text: &str) -> Option<String> {
    let script = repository().join("docs/images/record.py");
    let mut python = Command::new("python3");
    python.arg(script).env("PYTHONIOENCODING", "utf-8");
    python.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "record.py fails");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn picture_is_what_the_script_draws_of_the_output() {
    let kept = std::fs::read_to_string(repository().join("docs/images/demo.svg")).unwrap();
    let Some(drawn) = drawn(&printed()) else {
        println!("skipped: no python3");
        return;
    };
    let lines = |picture: &str| picture.lines().map(masked).collect::<Vec<_>>();
    assert_eq!(
        lines(&kept),
        lines(&drawn),
        "renew it: make -s demo | python3 docs/images/record.py > docs/images/demo.svg"
    );
}
