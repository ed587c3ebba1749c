//! Completion of commands, skills and records in shells: bash itself, and the protocol of the others.

use std::process::Command;

use serde_json::json;

use crate::support::correction;
use crate::workspace::{Ran, Workspace};

/// A project with one skill, one rule and two executions.
fn workspace() -> Workspace {
    let workspace = Workspace::sample();
    workspace.json(&["run", "hr/resume-screen"]);
    workspace.json(&correction("Never name competitors in the summary."));
    workspace
}

/// Candidates for the last word, as the protocol of a shell gives them.
pub(crate) fn asked(workspace: &Workspace, shell: &str, words: &[&str]) -> String {
    let ran = Ran::of(asking(workspace, shell, words).output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words:?}");
    ran.stdout
}

fn asking(workspace: &Workspace, shell: &str, words: &[&str]) -> Command {
    let mut command = workspace.command();
    command.env("MEMCTL_COMPLETE", shell);
    command.env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", (words.len()).to_string());
    command.args(["--", "memctl"]).args(words);
    command
}

#[test]
fn shells_are_told_skills_ids_kinds_and_hosts() {
    let workspace = workspace();
    let expected: [(&[&str], &str); 9] = [
        (&["ru"], "run"),
        (&["run", "hr/"], "hr/resume-screen"),
        (&["memory", "prompt", ""], "hr/resume-screen"),
        (&["show", "RE"], "REFL-001"),
        (&["memory", "edit", ""], "CORR-001"),
        (&["accept", ""], "EXEC-20260220124341"),
        (&["reject", "latest", "--rule", ""], "REFL-001"),
        (&["memory", "list", "le"], "lesson"),
        (&["hooks", "install", "cl"], "claude-code"),
    ];
    for shell in ["bash", "zsh", "fish"] {
        for (words, candidate) in expected {
            let told = asked(&workspace, shell, words);
            let names: Vec<&str> = told
                .lines()
                .map(|line| line.split(['\t', ':']).next().unwrap().trim())
                .collect();
            assert!(names.contains(&candidate), "{shell} {words:?}: {told}");
        }
    }
    let executions = asked(&workspace, "bash", &["accept", ""]);
    assert!(!executions.contains("REFL-"), "{executions}");
    let told = asked(&workspace, "fish", &["show", "REFL"]);
    assert!(told.contains("REFL-001\t"), "{told}");
    assert!(told.contains("competitors"), "{told}");
}

#[test]
fn another_root_has_its_own_candidates() {
    let workspace = workspace();
    workspace.write("other/skills/dev/review/SKILL.md", "Review.");
    let told = asked(&workspace, "bash", &["run", "--root", "other", "d"]);
    assert_eq!(told.trim(), "dev/review");
}

#[test]
fn what_others_wrote_cannot_reach_the_shell() {
    let workspace = workspace();
    let mut file = workspace.stored("reflexion_entries.json");
    let rule = "x\u{1b}]0;title\u{7}\ty\u{b}z\nREFL-999\t$(touch marker)";
    file["entries"][0]["rule"] = json!(rule);
    let mut other = file["entries"][0].clone();
    other["reflexion_id"] = json!("REFL-002;$(touch marker)\n\u{1b}[2J");
    file["entries"].as_array_mut().unwrap().push(other);
    workspace.write(".agentura/reflexion_entries.json", file.to_string());
    for shell in ["bash", "zsh", "fish"] {
        let told = asked(&workspace, shell, &["show", "REFL"]);
        assert!(told.contains("REFL-001"), "{shell}: {told:?}");
        assert_eq!(told.lines().count(), 1, "{shell}: {told:?}");
        let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        assert!(!told.contains(obeyed), "{shell}: {told:?}");
        assert!(!told.contains("REFL-002"), "{shell}: {told:?}");
    }
}

#[test]
fn completion_writes_nothing_and_says_nothing_of_trouble() {
    let workspace = workspace();
    let before = workspace.json(&["memory", "audit"])["total"].clone();
    asked(&workspace, "bash", &["show", ""]);
    asked(&workspace, "bash", &["memory", "nonsense", "--what", ""]);
    asked(&workspace, "tcsh", &["show", ""]);
    assert_eq!(workspace.json(&["memory", "audit"])["total"], before);
    workspace.write(".agentura/reflexion_entries.json", "no json");
    let told = asked(&workspace, "bash", &["show", ""]);
    assert!(told.contains("EXEC-"), "{told}");
}

#[test]
fn variable_alone_does_not_change_a_command() {
    let workspace = workspace();
    let mut command = workspace.command();
    command.env("MEMCTL_COMPLETE", "bash");
    let ran = Ran::of(
        command
            .args(["memory", "status", "--json"])
            .output()
            .unwrap(),
    );
    assert_eq!(ran.document()["reflexions"], 1);
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn bash_completes_with_the_installed_script() {
    let workspace = workspace();
    let script = workspace
        .run(&["completions", "bash"])
        .succeeds()
        .stdout
        .clone();
    workspace.write("complete.bash", script);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_memctl"));
    let complete = |words: [&str; 2]| {
        let last = words[1];
        let line = format!(
            "source complete.bash; COMP_WORDS=(memctl {}); COMP_CWORD=2; COMP_TYPE=9; \
             _clap_complete_memctl memctl '{last}' x; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.map(|word| format!("'{word}'")).join(" "),
        );
        let command = workspace.command();
        let settings: Vec<_> = command
            .get_envs()
            .map(|(n, v)| (n.to_owned(), v.map(ToOwned::to_owned)))
            .collect();
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &line])
            .current_dir(workspace.root());
        for (name, value) in settings {
            match value {
                Some(value) => bash.env(name, value),
                None => bash.env_remove(name),
            };
        }
        let path = std::env::var("PATH").unwrap();
        bash.env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        );
        let ran = Ran::of(bash.output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout.trim().to_owned()
    };
    assert_eq!(complete(["run", "hr/re"]), "hr/resume-screen");
    assert_eq!(complete(["show", "REFL"]), "REFL-001");
    assert_eq!(complete(["memory", "conf"]), "conflicts");
}

#[test]
fn each_shell_has_a_script() {
    let workspace = Workspace::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = workspace
            .run(&["completions", shell])
            .succeeds()
            .stdout
            .clone();
        assert!(script.contains("MEMCTL_COMPLETE"), "{shell}: {script}");
    }
}
