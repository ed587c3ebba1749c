//! Files that the rules go to. A target, after all links, is inside the workspace; a link leads to
//! another Markdown file.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::block;
use super::report::{AgentsMdOptions, AgentsMdReport};
use crate::store::workspace::{Error, Workspace};
use crate::upkeep::exchange::notes;
use memctl_files::{ProjectPath, named};

/// Files that are kept in step if they exist.
const FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Maximum size of a file: 4 MiB.
const LARGEST: u64 = 4 << 20;
const OUTSIDE: &str = "it is outside of the workspace";

/// Returns the files to write, with all links resolved.
pub(super) fn targets(
    options: &AgentsMdOptions,
    root: &Path,
    report: &mut AgentsMdReport,
) -> Result<Vec<ProjectPath>, Error> {
    if let Some(path) = &options.output {
        return Ok(vec![inside(root, path)?]);
    }
    let mut found: Vec<ProjectPath> = Vec::new();
    for name in FILES {
        let path = root.join(name);
        if named::link_metadata(&path).is_err() {
            continue;
        }
        let path = inside(root, &path)?;
        let has_block = |text: &str| text.lines().any(block::begins);
        let imports = |text: &str| {
            let lines = text.lines().map(str::trim);
            let names = lines.filter(|line| notes::is_import(line));
            let path = |line: &str| {
                line.trim_start_matches(['-', '*', '+', ' ', '@'])
                    .to_owned()
            };
            names
                .map(path)
                .any(|line| line.trim_start_matches("./") == FILES[0])
        };
        // Agents that read both files would read the rules twice.
        if !found.is_empty() && read(&path)?.is_some_and(|text| imports(&text) && !has_block(&text))
        {
            let notice = format!(
                "`{name}` imports `{}`, and gets no rules of its own",
                FILES[0]
            );
            report.warnings.push(notice);
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

/// Hint for a file that cannot hold the rules.
const NAME_IT: &str = "memctl memory export --format agents-md --output AGENTS.md";

fn not_of_workspace(path: &Path, reason: &str) -> Error {
    let message = format!("`{}` cannot hold the rules: {reason}", path.display());
    Error::input(message, NAME_IT)
}

/// Resolves a path, which must lead to a file inside the workspace. No link is followed after that.
fn inside(root: &Path, path: &Path) -> Result<ProjectPath, Error> {
    let refused = |reason| not_of_workspace(path, reason);
    let target = if named::link_metadata(path).is_ok() {
        real(path)?
    } else {
        let name = path.file_name().ok_or_else(|| refused("it is no file"))?;
        real(path.parent().unwrap_or(root))?.join(name)
    };
    let Ok(below) = target.strip_prefix(root) else {
        return Err(refused(OUTSIDE));
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
    named::refuse_special(&target).map_err(crate::store::Error::io("write", &target))?;
    Ok(ProjectPath::new(root, below))
}

/// Returns the directory that holds the memory, with all links resolved.
pub(super) fn root_of(workspace: &Workspace) -> Option<PathBuf> {
    named::real(workspace.store.directory().parent()?).ok()
}

/// Path of a file of the workspace in the undo journal. Files of skills have no `./`.
pub(super) fn journaled(path: &str) -> String {
    format!("./{path}")
}

/// Resolves a path of the undo journal; `None` if it is a file of a skill. The journal may be
/// forged, so the path is checked as one that a user names.
pub(crate) fn of_journal(workspace: &Workspace, path: &str) -> Option<Result<ProjectPath, Error>> {
    let path = path.strip_prefix("./")?;
    let parts = Path::new(path).components();
    let parts = parts.filter(|part| !matches!(part, Component::Normal(_)));
    let found = match (parts.count(), root_of(workspace)) {
        (0, Some(root)) => inside(&root, &root.join(path)),
        _ => Err(not_of_workspace(Path::new(path), OUTSIDE)),
    };
    Some(found)
}

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(file: &ProjectPath) -> Result<Option<String>, Error> {
    let text = file.read_text(LARGEST);
    text.map_err(|source| unreadable(file.path(), source))
}

pub(super) fn real(path: &Path) -> Result<PathBuf, Error> {
    named::real(path).map_err(|source| unreadable(path, source))
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::Unreadable {
        path: path.to_owned(),
        source,
    }
}
