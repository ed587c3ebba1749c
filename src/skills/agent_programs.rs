//! Coding agents whose command-line program can answer for a model.
//!
//! They need no key here, because their user has signed in to them. A program is named to the
//! user and never chosen, because its answers may count against a subscription.

use std::path::PathBuf;

use memctl_files::named;

/// Program name, and the command that reads a prompt from standard input.
const AGENTS: [(&str, &str); 3] = [
    ("claude", "claude -p"),
    ("codex", "codex exec --skip-git-repo-check -"),
    ("gemini", "gemini"),
];

/// Returns the commands of the agents that are installed in these directories, as `--model` takes
/// them: `exec:claude -p`.
pub(crate) fn installed_agents(search_path: &[PathBuf]) -> Vec<String> {
    AGENTS
        .iter()
        .filter(|(program, _)| {
            search_path
                .iter()
                .any(|dir| named::is_file(&dir.join(program)))
        })
        .map(|(_, command)| format!("exec:{command}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_on_the_path_are_named_with_their_command() {
        let dir = tempfile::tempdir().unwrap();
        let path = [dir.path().join("missing"), dir.path().to_owned()];
        assert_eq!(installed_agents(&path), [""; 0]);
        std::fs::write(dir.path().join("gemini"), "").unwrap();
        std::fs::write(dir.path().join("claude"), "").unwrap();
        std::fs::create_dir(dir.path().join("codex")).unwrap();
        assert_eq!(installed_agents(&path), ["exec:claude -p", "exec:gemini"]);
    }
}
