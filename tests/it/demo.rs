//! The demonstration shows what it says, and its pictures show what it prints.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::workspace::{Ran, without_words};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn printed(scenes: &[&str]) -> String {
    let script = repository().join("tests/demo.sh");
    let mut shell = Command::new("sh");
    shell.arg(script).arg(env!("CARGO_BIN_EXE_memctl"));
    let ran = Ran::of(shell.args(scenes).output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stdout
}

#[test]
fn demonstration_shows_what_it_says() {
    let printed = printed(&[]);
    let heading = |line: &&str| line.starts_with("# ") || line.starts_with("$ ");
    let after = |command: &str| -> Vec<String> {
        let answers = printed.split(command).skip(1);
        answers
            .map(|rest| rest.lines().skip(1).take_while(|line| !heading(line)))
            .map(|lines| lines.collect::<Vec<_>>().join("\n"))
            .collect()
    };
    let noted = after("about to run:  cd app && npm ci\n# The hook");
    assert!(noted[0].contains("never with npm. (REFL-001)"), "{printed}");
    let receipt = after("memctl stats");
    let receipt: Vec<&str> = receipt[0].lines().last().unwrap().split(' ').collect();
    let counts: Vec<&&str> = receipt.iter().filter(|word| !word.is_empty()).collect();
    assert_eq!(counts[..4], [&"REFL-001", &"1", &"1", &"0"], "{printed}");
    let told = after("about to run:  ./check\n# The hook");
    assert!(told[0].contains("`./check --target web`"), "{printed}");
    let marco = after("--input fixtures/demo/candidate.json");
    assert_eq!(marco.len(), 2, "{printed}");
    assert!(marco[0].contains("\"overall_score\": 77"), "{printed}");
    assert!(marco[0].contains("rules:        none"), "{printed}");
    assert!(marco[1].contains("\"overall_score\": 51"), "{printed}");
    assert!(marco[1].contains("rules:        REFL-004"), "{printed}");
    let wide: Vec<&str> = printed
        .lines()
        .filter(|line| line.chars().count() > 100)
        .collect();
    assert_eq!(wide, Vec::<&str>::new());
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
fn pictures_are_what_the_script_draws_of_the_output() {
    for scene in ["correction", "lesson"] {
        let stored = repository().join(format!("docs/images/{scene}.svg"));
        let stored = std::fs::read_to_string(stored).unwrap();
        let Some(drawn) = drawn(&printed(&[scene])) else {
            println!("skipped: no python3");
            return;
        };
        assert_eq!(
            without_words(&stored),
            drawn,
            "renew it: tests/demo.sh memctl {scene} | python3 docs/images/record.py"
        );
    }
}
