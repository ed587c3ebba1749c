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
    /// Rules in the block that the file may say in other words.
    pub near: Vec<NearRule>,
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

/// Rule that a file may say in other words.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct NearRule {
    /// Id of the rule.
    pub id: String,
    /// Text of the rule.
    pub rule: String,
    /// Statement of the file.
    pub statement: String,
    /// Cosine of both, from 0 to 1.
    pub score: f64,
}

/// Number of equal lines shown around a change.
const CONTEXT: usize = 2;
/// Maximum number of lines to compare one by one: longer changes are shown as a whole.
const LONGEST: usize = 2_000;

/// Returns the changed lines with `-` and `+`, after the lines around them; empty for equal texts.
pub(crate) fn diff(before: &str, after: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let begin = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let rest = a.len().min(b.len()) - begin;
    let tails = a.iter().rev().zip(b.iter().rev()).take(rest);
    let tail = tails.take_while(|(a, b)| a == b).count();
    let (old, new) = (&a[begin..a.len() - tail], &b[begin..b.len() - tail]);
    if old.is_empty() && new.is_empty() {
        return String::new();
    }
    let first = begin.saturating_sub(CONTEXT);
    let mut out = format!("@@ line {} @@\n", first + 1);
    let mut push = |mark: &str, lines: &[&str]| {
        for line in lines {
            out.extend([mark, line, "\n"]);
        }
    };
    push(" ", &a[first..begin]);
    for (mark, line) in edits(old, new) {
        push(mark, &[line]);
    }
    push(
        " ",
        &a[a.len() - tail..(a.len() - tail + CONTEXT).min(a.len())],
    );
    out
}

/// Shortest edit of the lines between: longest common subsequence.
fn edits<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(&'static str, &'t str)> {
    if old.len().max(new.len()) > LONGEST {
        let gone = old.iter().map(|line| ("-", *line));
        return gone.chain(new.iter().map(|line| ("+", *line))).collect();
    }
    let width = new.len() + 1;
    let mut length = vec![0_u16; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            length[i * width + j] = if old[i] == new[j] {
                length[(i + 1) * width + j + 1] + 1
            } else {
                length[(i + 1) * width + j].max(length[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut edits = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            edits.push((" ", old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && length[(i + 1) * width + j] >= length[i * width + j + 1])
        {
            edits.push(("-", old[i]));
            i += 1;
        } else {
            edits.push(("+", new[j]));
            j += 1;
        }
    }
    edits
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
            "@@ line 2 @@\n 2\n 3\n-x\n+z\n 4\n-y\n 5\n 6\n",
        );
        check("a\n", "", "@@ line 1 @@\n-a\n");
    }
}
