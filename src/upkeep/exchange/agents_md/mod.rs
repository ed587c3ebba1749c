//! Rules of the memory in `AGENTS.md` and `CLAUDE.md`, for agents without hooks.
//!
//! Each file holds one marked block that is replaced as a whole; the rest of the file is the
//! user's. Only rules that count as the word of this user go in: candidates, observed rules and
//! rules of other workspaces or projects stay out.
//!
//! Invariants:
//! - All files are checked before the first write. A block that was edited by hand is replaced only
//!   by force.
//! - The target, after all links, is inside the workspace.
//!
//! Deliberately absent: reading rules back from the block, which `memory import` skips; an undo, since another
//! export writes the current rules; and a comparison with rules in the user's own text.

pub(super) mod block;

use std::path::{Component, Path, PathBuf};

use memctl_files::{SharedFile, named};
use serde::Serialize;

use crate::model::{CHAT, Reflexion};
use crate::store::workspace::{Error, Workspace, redacting_writer};
use crate::store::{Here, Selection};
use crate::upkeep::exchange::{foreign, unreadable};
use block::{Block, Misplaced, with_lines};

/// Lines above the rules.
const HEADING: [&str; 4] = [
    "## Rules from memctl",
    "",
    "People said or approved these rules. Change them with `memctl edit`, not here.",
    "",
];

/// Brings the blocks in step with the rules.
pub fn export(workspace: &Workspace, options: &AgentsMdOptions) -> Result<AgentsMdReport, Error> {
    let mut report = AgentsMdReport {
        format: "agents-md",
        files: Vec::new(),
        other_projects: 0,
        candidates: 0,
        dry_run: options.dry_run,
        warnings: Vec::new(),
    };
    let rules = rules(workspace, &options.root, &mut report)?;
    let root = real(&options.root)?;
    for path in targets(options, &root, &mut report)? {
        let file = file_report(&root, &path, &rules, options, &mut report.warnings)?;
        if !report.files.iter().any(|other| other.path == file.path) {
            report.files.push(file);
        }
    }
    let changed = report.files.iter();
    let changed = changed.filter(|file| file.change != FileChange::Unchanged);
    for file in changed.filter(|_| !options.dry_run) {
        let target = SharedFile::of_project(&root, &file.path);
        redacting_writer::replace_in_project(&target, &file.after)?;
    }
    Ok(report)
}

/// Returns the rules that count, without those of other projects: first those for every skill, then
/// by skill, oldest first.
fn rules(
    workspace: &Workspace,
    root: &Path,
    report: &mut AgentsMdReport,
) -> Result<Vec<Reflexion>, Error> {
    let found = workspace.store.list::<Reflexion>(&Selection::default())?;
    let problems = found.problems.iter();
    report.warnings.extend(problems.map(ToString::to_string));
    let mut rules = found.records;
    let waits = |rule: &&Reflexion| rule.is_candidate() && rule.source == CHAT;
    report.candidates = rules.iter().filter(waits).count();
    crate::rules::in_use::mark_observed(&workspace.store, &mut rules);
    rules.retain(|rule| rule.is_in_use() && !rule.observed);
    let here = Here {
        directory: Some(root),
        root: Some(root),
        skills: None,
        ..Here::default()
    };
    let total = rules.len();
    rules.retain(|rule| here.covers(rule));
    report.other_projects = total - rules.len();
    rules.sort_by(|a, b| a.skill.cmp(&b.skill));
    Ok(rules)
}

fn file_report(
    root: &Path,
    file: &SharedFile,
    rules: &[Reflexion],
    options: &AgentsMdOptions,
    warnings: &mut Vec<String>,
) -> Result<FileReport, Error> {
    let path = file.path();
    let shown = path.strip_prefix(root).unwrap_or(path);
    let misplaced = |Misplaced { line, reason }| {
        let path = shown.display();
        Error::input(
            format!("`{path}` cannot hold the rules: line {line} has {reason}"),
            "leave one `<!-- memctl:begin … -->` and one `<!-- memctl:end -->` behind it, or none",
        )
    };
    let before = read(file)?;
    let text = before.as_deref().unwrap_or_default();
    let old = Block::find(text).map_err(misplaced)?;
    if let Some(edited) = old.filter(Block::is_edited) {
        let error = format!(
            "the rules in `{}` were edited by hand (block at line {})",
            shown.display(),
            edited.line
        );
        match (options.force, options.dry_run) {
            (true, _) => {}
            (false, true) => warnings.push(format!("{error}; only `--force` replaces them")),
            (false, false) => {
                let hint = "see the difference with `--dry-run`, take it over with `memctl edit`, then \
                            replace the block with `--force`";
                return Err(Error::input(error, hint));
            }
        }
    }
    let mut items: Vec<String> = Vec::new();
    for rule in rules {
        if let Some(item) = block::item(&rule.skill, &rule.rule)
            && !items.contains(&item)
        {
            items.push(item);
        }
    }
    // A file without rules gets no block.
    let after = if items.is_empty() && old.is_none() {
        text.to_owned()
    } else {
        let heading = HEADING.map(str::to_owned).into_iter();
        let heading = heading.filter(|_| !items.is_empty());
        let lines: Vec<String> = heading.chain(items.iter().cloned()).collect();
        with_lines(text, &lines).map_err(misplaced)?
    };
    let change = match (&before, old) {
        _ if after == text => FileChange::Unchanged,
        (None, _) => FileChange::Created,
        (_, None) => FileChange::Added,
        (_, Some(_)) => FileChange::Updated,
    };
    Ok(FileReport {
        path: shown.display().to_string(),
        change,
        rules: items.len(),
        diff: diff(text, &after),
        after,
    })
}

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
    /// Changed lines; empty for no change.
    pub diff: String,
    #[serde(skip)]
    after: String,
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

/// Number of equal lines shown around a change.
const CONTEXT: usize = 2;

/// Returns the lines from the first change to the last one with `-` and `+`, among the lines around
/// them; empty for equal texts. Only the block changes, so one place holds all changes.
fn diff(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    if old_rest.is_empty() && new_rest.is_empty() {
        return String::new();
    }
    let pairs = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = pairs.take_while(|(a, b)| a == b).count();
    let (removed, below) = old_rest.split_at(old_rest.len() - tail);
    let first = same.saturating_sub(CONTEXT);
    let mut out = format!("@@ line {} @@\n", first + 1);
    let parts = [
        (" ", &old[first..same]),
        ("-", removed),
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

/// Files that are kept in step if they exist.
const FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Maximum size of a file: 4 MiB.
const LARGEST: u64 = 4 << 20;

/// Returns the files to write, with all links resolved.
fn targets(
    options: &AgentsMdOptions,
    root: &Path,
    report: &mut AgentsMdReport,
) -> Result<Vec<SharedFile>, Error> {
    if let Some(path) = &options.output {
        return Ok(vec![inside(root, path)?]);
    }
    let mut found: Vec<SharedFile> = Vec::new();
    for name in FILES {
        let path = root.join(name);
        if named::link_metadata(&path).is_err() {
            continue;
        }
        let path = inside(root, &path)?;
        // Agents that read both files would read the rules twice.
        if !found.is_empty() && read(&path)?.is_some_and(|text| imports_rules(&text)) {
            report.warnings.push(format!(
                "`{name}` imports `{}`, and gets no rules of its own",
                FILES[0]
            ));
            continue;
        }
        found.push(path);
    }
    if found.is_empty() {
        let message = "the workspace has neither `AGENTS.md` nor `CLAUDE.md`";
        return Err(Error::usage(message, NAME_IT));
    }
    Ok(found)
}

/// Returns true if a text imports the first of the files, and has no block of its own.
fn imports_rules(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    let imports = lines.filter(|line| foreign::is_import(line));
    let mut paths = imports.map(|line| line.trim_start_matches(['-', '*', '+', ' ', '@']));
    let is_first = |path: &str| path.trim_start_matches("./") == FILES[0];
    paths.any(is_first) && !text.lines().any(block::begins)
}

/// Hint for a file that cannot hold the rules.
const NAME_IT: &str = "memctl memory export --format agents-md --output AGENTS.md";

/// Resolves a path, which must lead to a file inside the workspace. No link is followed after that.
fn inside(root: &Path, path: &Path) -> Result<SharedFile, Error> {
    let refused = |reason: &str| {
        let message = format!("`{}` cannot hold the rules: {reason}", path.display());
        Error::input(message, NAME_IT)
    };
    let target = if named::link_metadata(path).is_ok() {
        real(path)?
    } else {
        let name = path.file_name().ok_or_else(|| refused("it is no file"))?;
        real(path.parent().unwrap_or(root))?.join(name)
    };
    let Ok(below) = target.strip_prefix(root) else {
        return Err(refused("it is outside of the workspace"));
    };
    let first = below.components().next();
    let closed = [".git", crate::store::DIRECTORY];
    if closed
        .iter()
        .any(|name| first == Some(Component::Normal(name.as_ref())))
    {
        return Err(refused("the directory belongs to another program"));
    }
    let is_link = named::link_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    if is_link && below.extension().is_none_or(|ending| ending != "md") {
        return Err(refused("the link leads to a file of another kind"));
    }
    named::refuse_special(&target).map_err(Error::io("write", &target))?;
    Ok(SharedFile::of_project(root, below))
}

/// Reads a file; `None` if it does not exist.
fn read(file: &SharedFile) -> Result<Option<String>, Error> {
    let text = file.read_text(LARGEST);
    text.map_err(unreadable(file.path()))
}

fn real(path: &Path) -> Result<PathBuf, Error> {
    named::real(path).map_err(unreadable(path))
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
