//! The README and the tutorials are correct: their commands run, show what they say, and name what
//! exists. The README stays short.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::workspace::{Ran, Workspace, copy};

const README: &str = include_str!("../../README.md");
const MAKEFILE: &str = include_str!("../../Makefile");
const SUITE: &str = include_str!("../../tools/suite");
const MEASURE: &str = include_str!("../../tools/measure");

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

/// Shell with the environment of the workspace, in which `memctl` is this program.
fn shell(workspace: &Workspace) -> Command {
    let programs = workspace.home().join("bin");
    fs::create_dir_all(&programs).unwrap();
    let memctl = programs.join("memctl");
    if !memctl.exists() {
        symlink(env!("CARGO_BIN_EXE_memctl"), memctl).unwrap();
    }
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
    let program = workspace.command();
    let mut shell = Command::new("sh");
    shell.env_clear().envs(
        program
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    shell.env("PATH", path).current_dir(workspace.root());
    shell
}

#[test]
fn every_command_of_the_readme_runs() {
    let workspace = Workspace::sample();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    copy(
        &repository.join(".agentura"),
        &workspace.root().join(".agentura"),
    );
    fs::create_dir(workspace.home().join(".claude")).unwrap();
    git_repository(&workspace);
    git(
        &workspace,
        "add -A && git -c user.name=a -c user.email=a@example.com commit -qm a",
    );
    let mut count = 0;
    for line in shell_lines() {
        let is_ours = line.starts_with("memctl ");
        // The setup is typed in a terminal, see `first_minute`.
        let others = [
            "make ",
            "cargo install ",
            "cd your-project && memctl setup ",
        ];
        let is_known = is_ours || others.iter().any(|other| line.starts_with(other));
        assert!(is_known, "a command that no test runs: {line}");
        if !is_ours {
            continue;
        }
        count += 1;
        let ran = Ran::of(shell(&workspace).arg("-c").arg(line).output().unwrap());
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        if line == "memctl undo" {
            assert_eq!(git(&workspace, "status --porcelain"), "", "after {line}");
        }
    }
    assert!(count >= 12, "only {count} commands were found");
}

fn git_repository(workspace: &Workspace) {
    git(workspace, "init -q");
}

/// What a command of git prints.
fn git(workspace: &Workspace, command: &str) -> String {
    let line = format!("git {command}");
    let ran = Ran::of(shell(workspace).args(["-c", &line]).output().unwrap());
    ran.succeeds().stdout.clone()
}

#[test]
fn every_target_of_the_readme_and_the_guide_for_contributors_exists() {
    let contributing = include_str!("../../CONTRIBUTING.md");
    let mut targets: Vec<&str> = Vec::new();
    for text in [README, contributing] {
        for (at, _) in text.match_indices("make ") {
            let is_code = text[..at].ends_with('`') || text[..at].ends_with('\n');
            let rest = &text[at + 5..];
            // `make dist test-dist` names two.
            let is_target =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "- ".contains(c);
            let end = rest.find(|c: char| !is_target(c));
            if is_code {
                let line = &rest[..end.unwrap_or(rest.len())];
                targets.extend(line.split_whitespace());
            }
        }
    }
    for target in ["demo", "test", "docs", "reference"] {
        assert!(targets.contains(&target), "{target}: {targets:?}");
    }
    for target in targets {
        let is_case = |script: &str, name: &str| script.contains(&format!("\n    {name}) # "));
        let is_known = match (target.strip_prefix("test-"), target.strip_prefix("bench-")) {
            (Some(name), _) => MAKEFILE.contains("\ntest-%:") && is_case(SUITE, name),
            (_, Some(name)) => MAKEFILE.contains("\nbench-%:") && is_case(MEASURE, name),
            _ => MAKEFILE.contains(&format!("\n{target}:")),
        };
        assert!(is_known, "{target}");
    }
}

#[test]
fn readme_stays_short() {
    assert!(README.lines().count() <= 130);
    assert!(README.split_whitespace().count() <= 1200);
}

/// One command of a tutorial, and the lines that a reader sees.
struct Step {
    command: String,
    shown: Vec<String>,
}

/// Files and commands of a tutorial in their order.
enum Part {
    File { name: String, content: String },
    Step(Step),
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if let Some((_, name)) = info.split_once(",file=") {
            parts.push(Part::File {
                name: name.to_owned(),
                content: block.join("\n") + "\n",
            });
            continue;
        }
        assert_eq!(info, "console", "a block that no test runs");
        for line in block {
            if let Some(command) = line.strip_prefix("$ ") {
                parts.push(Part::Step(Step {
                    command: command.to_owned(),
                    shown: Vec::new(),
                }));
            } else if let Some(Part::Step(step)) = parts.last_mut() {
                step.shown.push(line.to_owned());
            }
        }
    }
    parts
}

/// Runs of white space as one space, since the width of a column is no part of what is shown.
fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// True if the line is the shown one; `…` stands for any text.
fn is_shown(shown: &str, line: &str) -> bool {
    let (shown, line) = (squeezed(shown), squeezed(line));
    let mut rest = line.as_str();
    for (i, piece) in shown.split('…').enumerate() {
        match rest.find(piece) {
            Some(0) => rest = &rest[piece.len()..],
            Some(at) if i > 0 => rest = &rest[at + piece.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || shown.ends_with('…')
}

/// Runs a tutorial in one shell, and compares the lines that it shows, in their order.
fn follow(tutorial: &str) {
    const MARK: &str = "--- step of the tutorial ---";
    let workspace = Workspace::empty().naming_no_model();
    fs::create_dir(workspace.home().join(".claude")).unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorials");
    let text = fs::read_to_string(page.join(tutorial)).unwrap();
    let parts = parts(&text);
    let mut script = String::from("set -e\nexec 2>&1\n");
    let mut steps = Vec::new();
    for part in &parts {
        match part {
            Part::File { name, content } => {
                script.push_str(&format!(
                    "cat > '{name}' <<'END OF FILE'\n{content}END OF FILE\n"
                ));
            }
            Part::Step(step) => {
                script.push_str(&format!("echo '{MARK}'\n{}\n", step.command));
                steps.push(step);
            }
        }
    }
    // Records of two people need times of their own.
    let mut shell = shell(&workspace);
    shell.env_remove("MEMCTL_NOW").arg("-c").arg(&script);
    let ran = Ran::of(shell.output().unwrap());
    assert_eq!(ran.code, 0, "{tutorial}: {}", ran.stdout);
    let outputs: Vec<&str> = ran.stdout.split(MARK).skip(1).collect();
    assert_eq!(outputs.len(), steps.len());
    let mut ours = 0;
    for (step, output) in steps.iter().zip(outputs) {
        ours += usize::from(step.command.contains("memctl"));
        let mut lines = output.lines();
        for shown in &step.shown {
            let found = lines.any(|line| is_shown(shown, line));
            assert!(
                found,
                "{tutorial}: {}\nshows\n{shown}\nof\n{output}",
                step.command
            );
        }
    }
    assert!(ours >= 8, "{tutorial}: {ours} commands");
}

#[test]
fn tutorial_of_a_coding_agent_shows_what_happens() {
    follow("coding-agent.md");
}

#[test]
fn tutorial_of_a_first_skill_shows_what_happens() {
    follow("first-skill.md");
}

#[test]
fn tutorial_of_a_team_shows_what_happens() {
    follow("team.md");
}

#[test]
fn shown_line_has_the_shown_text_around_dots() {
    assert!(is_shown("found … (x)", "found  claude-code (x)"));
    assert!(is_shown("EXEC-… accepted", "EXEC-2026 accepted"));
    assert!(is_shown("…/shop", "/tmp/a/shop"));
    assert!(is_shown("reply…", "reply with more"));
    assert!(!is_shown("reply", "reply with more"));
    assert!(!is_shown("EXEC-… accepted", "EXEC-2026 rejected"));
    assert!(!is_shown("b", "a b"));
}
