//! Options and outcome of an export of the rules.

use std::path::PathBuf;

use serde::Serialize;

/// Target of the rules.
#[derive(Debug)]
pub struct AgentsMdOptions {
    /// Directory of the workspace.
    pub root: PathBuf,
    /// File to write, created if missing; `None` for `AGENTS.md` and `CLAUDE.md` if they exist.
    pub output: Option<PathBuf>,
    /// Replaces a block that was edited by hand.
    pub force: bool,
    /// Writes nothing.
    pub dry_run: bool,
}

/// Result of an export of the rules.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct AgentsMdReport {
    /// `agents-md`.
    pub format: &'static str,
    /// The files, in the order of writing.
    pub files: Vec<FileReport>,
    /// Number of rules left out because they are of other projects.
    pub other_projects: usize,
    /// Number of candidates from chats that wait for approval.
    pub candidates: usize,
    /// `true` if nothing was written.
    pub dry_run: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Outcome for one file.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FileReport {
    /// Path relative to the workspace.
    pub path: String,
    /// Change of the file.
    pub change: FileChange,
    /// Number of rules in the block.
    pub rules: usize,
    /// Rules left out because the file says them itself.
    pub said: Vec<SaidRule>,
    /// Changed lines; empty for no change.
    pub diff: String,
    #[serde(skip)]
    pub(super) before: Option<String>,
    #[serde(skip)]
    pub(super) after: String,
}

/// Change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    /// The file is new.
    Created,
    /// The file has a new block.
    Added,
    /// The block has other lines.
    Updated,
    /// Nothing changes.
    Unchanged,
}

/// Rule that a file says itself, with the same words.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SaidRule {
    /// Id of the rule.
    pub id: String,
    /// Statement of the file.
    pub statement: String,
}

/// Number of equal lines shown around a change.
const CONTEXT: usize = 2;

/// Returns the lines from the first change to the last one with `-` and `+`, among the lines around
/// them; empty for equal texts. Only the block changes, so one place holds all changes.
pub(crate) fn diff(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    if old_rest.is_empty() && new_rest.is_empty() {
        return String::new();
    }
    let pairs = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = pairs.take_while(|(a, b)| a == b).count();
    let (gone, below) = old_rest.split_at(old_rest.len() - tail);
    let first = same.saturating_sub(CONTEXT);
    let mut out = format!("@@ line {} @@\n", first + 1);
    let parts = [
        (" ", &old[first..same]),
        ("-", gone),
        ("+", &new_rest[..new_rest.len() - tail]),
        (" ", &below[..tail.min(CONTEXT)]),
    ];
    for (mark, lines) in parts {
        for line in lines {
            out.extend([mark, line, "\n"]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_is_shown_with_its_neighbours() {
        let check = |before: &str, after: &str, expected: &str| {
            assert_eq!(diff(before, after), expected);
        };
        check("a\nb\n", "a\nb\n", "");
        check("", "a\n", "@@ line 1 @@\n+a\n");
        check(
            "1\n2\n3\nx\n4\ny\n5\n6\n7\n",
            "1\n2\n3\nz\n4\n5\n6\n7\n",
            "@@ line 2 @@\n 2\n 3\n-x\n-4\n-y\n+z\n+4\n 5\n 6\n",
        );
        check("a\n", "", "@@ line 1 @@\n-a\n");
    }
}
