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
    // What stands below a heading that has these words.
    let below = |words: &str| -> Vec<&str> {
        let mut lines = printed.lines().skip_while(|line| !line.contains(words));
        lines.next();
        let lines = lines.take_while(|line| line.starts_with("  "));
        lines.map(str::trim).collect()
    };
    let told = below("about to run `cd app && npm ci`");
    assert!(told[0].contains("never with npm. (REFL-001)"), "{printed}");
    assert_eq!(
        below("runs `pnpm install`"),
        ["told in 1, heeded in 1"],
        "{printed}"
    );
    let told = below("about to run `./check`");
    assert_eq!(
        told,
        ["- Run the checks with `./check --target web`."],
        "{printed}"
    );
    let receipt = below("runs `./check --target web`");
    assert!(receipt[0].contains("followed 1, helped 1"), "{printed}");
    assert_eq!(below("too high"), ["Marco: 77", "Jane: 72"], "{printed}");
    assert_eq!(
        below("Marco again"),
        ["Marco: 51", "by rule REFL-004"],
        "{printed}"
    );
    assert!(printed.lines().count() <= 24, "{printed}");
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
