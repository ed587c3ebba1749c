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
//! Deliberately absent: reading rules back from the block (`memory import` skips it).

pub(crate) mod block;
mod report;
mod said;
mod targets;

use std::path::Path;

use crate::model::{CHAT, Reflexion};
use crate::store::workspace::{Error, Workspace, redacting_writer};
use crate::store::{Here, Selection};
use memctl_files::ProjectPath;

use block::{Block, Misplaced, with_lines};
pub use report::{AgentsMdOptions, AgentsMdReport, FileChange, FileReport, SaidRule};
use said::{same, statements};
use targets::{journaled, real, root_of, targets};
pub(crate) use targets::{of_journal, read};

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
    if !options.dry_run {
        write(workspace, &root, &mut report)?;
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
    file: &ProjectPath,
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
    let statements = match old {
        Some(old) => statements(&[old.before, "\n\n", old.after].concat()),
        None => statements(text),
    };
    let mut said = Vec::new();
    let mut items: Vec<String> = Vec::new();
    for rule in rules {
        if let Some(statement) = same(&statements, &rule.rule) {
            let id = rule.reflexion_id.clone();
            said.push(SaidRule { id, statement });
        } else if let Some(item) = block::item(&rule.skill, &rule.rule)
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
        said,
        diff: report::diff(text, &after),
        before,
        after,
    })
}

/// Writes the changed files, each after its line in the undo journal.
fn write(workspace: &Workspace, root: &Path, report: &mut AgentsMdReport) -> Result<(), Error> {
    let files = report.files.iter();
    let changed: Vec<&FileReport> = files
        .filter(|f| f.change != FileChange::Unchanged)
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let is_own = root_of(workspace).is_some_and(|own| own == root);
    let mut writer = workspace.writer()?;
    for file in changed {
        let before = file.before.as_deref();
        if is_own {
            writer.note_file(&journaled(&file.path), before, Some(&file.after));
        }
        let target = ProjectPath::new(root, &file.path);
        redacting_writer::replace_in_project(&target, &file.after)?;
    }
    if !is_own {
        let notice = "the memory is outside of this workspace: `memctl undo` does not revert files";
        report.warnings.push(notice.to_owned());
    }
    Ok(())
}
