//! The README is correct: its commands run, its targets exist, and its exit codes match.

use crate::workspace::{Ran, Workspace, copy};
use std::path::Path;

const README: &str = include_str!("../../README.md");
const MAKEFILE: &str = include_str!("../../Makefile");

/// The lines of every block that is marked as shell.
fn shell_lines() -> Vec<&'static str> {
    let mut lines = Vec::new();
    let mut inside = false;
    for line in README.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside {
            lines.push(line);
        }
    }
    lines
}

#[test]
fn every_command_of_the_readme_runs() {
    let workspace = Workspace::sample();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    copy(
        &repository.join(".agentura"),
        &workspace.root().join(".agentura"),
    );
    let mut count = 0;
    for line in shell_lines()
        .into_iter()
        .filter(|line| line.starts_with("memctl "))
    {
        count += 1;
        let mut shell = std::process::Command::new("sh");
        shell
            .arg("-c")
            .arg(line.replacen("memctl", "\"$MEMCTL\"", 1));
        let program = workspace.command();
        shell.env_clear().envs(
            program
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        shell
            .env("MEMCTL", env!("CARGO_BIN_EXE_memctl"))
            .current_dir(workspace.root());
        let ran = Ran::of(shell.output().unwrap());
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    }
    assert!(count >= 12, "only {count} commands were found");
}

#[test]
fn every_target_of_the_readme_exists() {
    let targets: Vec<&str> = shell_lines()
        .into_iter()
        .filter_map(|line| line.strip_prefix("make ")?.split_whitespace().next())
        .collect();
    assert!(targets.contains(&"demo") && targets.contains(&"test"));
    for target in targets {
        assert!(MAKEFILE.contains(&format!("\n{target}:")), "{target}");
    }
}

#[test]
fn every_setting_can_be_shown_and_every_named_file_exists() {
    let workspace = Workspace::empty();
    let shown = workspace.json(&["config", "show"]).to_string();
    for name in ["prompt.rules_tokens", "model", "local.base_url"] {
        assert!(shown.contains(&format!("\"{name}\"")), "{name}");
    }
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in [
        "docs/decisions.md", "docs/remote.md", "docs/images/demo.svg", "LICENSE", "CHANGELOG.md",
    ] {
        assert!(repository.join(file).is_file(), "{file}");
    }
}
