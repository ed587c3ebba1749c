//! Completion scripts of shells: bash itself, and that each shell has one.

use std::process::Command;

use crate::workspace::{Ran, Workspace};

/// Script that `memctl completions` prints for a shell.
pub(crate) fn script(workspace: &Workspace, shell: &str) -> String {
    let ran = workspace.run(&["completions", shell]);
    ran.succeeds().stdout.clone()
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn bash_completes_with_the_installed_script() {
    let workspace = Workspace::empty();
    workspace.write("complete.bash", script(&workspace, "bash"));
    let complete = |words: &[&str], expected: &str| {
        let line = format!(
            "source complete.bash; COMP_WORDS=(memctl {}); COMP_CWORD={}; \
             _memctl memctl '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len(),
            words[words.len() - 1],
            words.iter().rev().nth(1).unwrap_or(&"memctl"),
        );
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &line]);
        let ran = Ran::of(bash.current_dir(workspace.root()).output().unwrap());
        assert_eq!(ran.stdout.trim(), expected, "{words:?}: {ran:?}");
    };
    complete(&["revi"], "review");
    complete(&["memory", "conf"], "conflicts");
    complete(&["memory", "export", "--form"], "--format");
    complete(&["memory", "export", "--format", "js"], "jsonl");
}

#[test]
fn each_shell_has_a_script() {
    let workspace = Workspace::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = script(&workspace, shell);
        assert!(
            script.contains("promote") && script.contains("dry-run"),
            "{shell}: {script}"
        );
    }
}
