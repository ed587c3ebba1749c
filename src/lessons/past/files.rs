//! Finds the files that may hold sessions of agents.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::workspace::Error;
use memctl_files::named;
use memctl_sessions::Format;

/// Maximum depth of folders to walk.
const MAX_DEPTH: usize = 32;

/// A session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionFile {
    pub(crate) path: PathBuf,
    /// `true` if the caller named the file itself, not only a folder above it.
    pub(crate) named: bool,
    pub(crate) size: u64,
    /// Modification time in nanoseconds since 1970.
    pub(crate) mtime: i64,
}

/// Returns the sorted files that may hold sessions: the named files, and below named folders the
/// files with a session extension. Links below folders are not followed.
pub(crate) fn files(paths: &[PathBuf]) -> Result<Vec<SessionFile>, Error> {
    let mut found = Vec::new();
    for path in paths {
        let unreadable = |source| Error::Unreadable {
            path: path.clone(),
            source,
        };
        if named::metadata(path).map_err(unreadable)?.is_dir() {
            walk(path, MAX_DEPTH, &mut found).map_err(unreadable)?;
        } else {
            found.push(SessionFile::of(path, true).map_err(unreadable)?);
        }
    }
    found.sort_by(|a, b| (&a.path, !a.named).cmp(&(&b.path, !b.named)));
    found.dedup_by(|a, b| a.path == b.path);
    Ok(found)
}

fn walk(directory: &Path, depth: usize, found: &mut Vec<SessionFile>) -> io::Result<()> {
    for entry in named::list(directory)? {
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() {
            // A folder that cannot be read holds nothing to learn from.
            if depth > 0 && entry.file_name() != ".git" && entry.file_name() != "node_modules" {
                drop(walk(&path, depth - 1, found));
            }
            continue;
        }
        let ending = path.extension().and_then(|ending| ending.to_str());
        let is_session = match ending {
            Some("jsonl" | "json" | "traj") => true,
            // Other Markdown is text of people.
            Some("md") => by_name(&path).is_some(),
            _ => false,
        };
        if is_session {
            found.extend(
                SessionFile::of(&path, false)
                    .ok()
                    .filter(|_| !kind.is_symlink()),
            );
        }
    }
    Ok(())
}

/// Returns the format of a file whose name and place are those of a tool's own history.
pub(crate) fn by_name(path: &Path) -> Option<Format> {
    let is_of = |end: &str| path.parent().is_some_and(|parent| parent.ends_with(end));
    let is_markdown = path.extension().is_some_and(|ending| ending == "md");
    if path
        .file_name()
        .is_some_and(|name| name == ".aider.chat.history.md")
    {
        return Some(Format::Aider);
    }
    (is_markdown && is_of(".specstory/history")).then_some(Format::SpecStory)
}

impl SessionFile {
    fn of(path: &Path, named: bool) -> io::Result<Self> {
        let state = named::state(path)?;
        let [seconds, nanoseconds] = state.modified;
        Ok(Self {
            path: path.to_owned(),
            named,
            size: state.size,
            mtime: seconds
                .saturating_mul(1_000_000_000)
                .saturating_add(nanoseconds),
        })
    }
}

/// Returns true if a working directory is a project's or below it.
pub(crate) fn is_below(cwd: &str, project: &str) -> bool {
    let rest = cwd.strip_prefix(project.trim_end_matches(['/', '\\']));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
}
