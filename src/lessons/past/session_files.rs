//! Session files of agents: finds them, and reads one with all its calls and messages.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use chrono::DateTime;
use serde_json::Value;

use crate::store::workspace::Error;
use memctl_files::named;
use memctl_sessions::{Format, Session, Step};

/// Bytes at the beginning of Markdown that tell whether it is a session.
const START: u64 = 4 << 10;
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
        if matches!(ending, Some("jsonl" | "json" | "traj" | "md")) {
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
fn by_name(path: &Path) -> Option<Format> {
    let is_of = |end: &str| path.parent().is_some_and(|parent| parent.ends_with(end));
    (is_markdown(path) && is_of(".specstory/history")).then_some(Format::SpecStory)
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "md")
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

/// Maximum size of a manifest beside a session, in bytes.
const LARGEST_MANIFEST: u64 = 1 << 20;

/// Returns the working directory of a session whose file names none: that in the manifest of Cline beside it.
fn directory_beside(path: &Path) -> Option<String> {
    let session = path.file_name()?.to_str()?.strip_suffix(".messages.json")?;
    let manifest = path.with_file_name(format!("{session}.json"));
    let manifest = named::read(&manifest, LARGEST_MANIFEST).ok()?;
    let manifest: Value = serde_json::from_slice(&manifest).ok()?;
    manifest["cwd"].as_str().map(str::to_owned)
}

/// Reads a session. Without a `format`, the place and the content of the file tell it.
pub(crate) fn read(path: &Path, format: Option<Format>) -> io::Result<Session> {
    let format = format.or_else(|| by_name(path));
    let mut file = named::open(path)?;
    // Most Markdown is text of people, which may show lines of a session.
    if format.is_none() && is_markdown(path) {
        let mut start = Vec::new();
        file.by_ref().take(START).read_to_end(&mut start)?;
        if memctl_sessions::detect(&start) != Some(Format::SpecStory) {
            return Ok(Session::default());
        }
        file = named::open(path)?;
    }
    let mut session = memctl_sessions::read(format, &mut file)?;
    if let Some(beside) = directory_beside(path) {
        for step in &mut session.steps {
            step.cwd.get_or_insert_with(|| beside.clone());
        }
    }
    if session.id.is_empty() {
        let name = path.file_name().unwrap_or_default();
        session.id = name.to_string_lossy().into_owned();
    }
    Ok(session)
}

/// Reads a session of a project; `None` if the file holds none, or none of its calls ran in the project.
pub(crate) fn read_of(
    path: &Path,
    format: Option<Format>,
    project: Option<&str>,
) -> Option<Session> {
    let session = read(path, format).ok()?;
    session.format?;
    of_project(session, path, project)
}

/// Returns a session if a call of it ran in a project; `None` takes all.
pub(crate) fn of_project(
    mut session: Session,
    path: &Path,
    project: Option<&str>,
) -> Option<Session> {
    let steps = &mut session.steps;
    // A history inside the project names no directory.
    if let Some(project) = project
        && steps.iter().all(|step| step.cwd.is_none())
        && is_below(&path.to_string_lossy(), project)
    {
        for step in &mut *steps {
            step.cwd = Some(project.to_owned());
        }
    }
    let is_here = project.is_none() || steps.iter().any(|step| is_in(step, project));
    is_here.then_some(session)
}

/// Returns `true` if a call ran in a project; `None` takes all.
pub(crate) fn is_in(step: &Step, project: Option<&str>) -> bool {
    let cwd = step.cwd.as_deref();
    project.is_none_or(|project| cwd.is_some_and(|cwd| is_below(cwd, project)))
}

/// Parses a time of an agent host: RFC 3339, or seconds or milliseconds since 1970. Returns
/// microseconds.
pub(crate) fn microseconds(text: &str) -> Option<i64> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_micros());
    }
    let number: f64 = text.parse().ok().filter(|n: &f64| n.is_finite())?;
    let scale = if number.abs() > 1e11 { 1e3 } else { 1e6 };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float cast to an integer saturates, and then the time is only far away"
    )]
    let micros = (number * scale) as i64;
    Some(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_hosts_write_them() {
        let check = |text: &str, expected| assert_eq!(microseconds(text), expected, "{text}");
        check("1970-01-01T00:00:01.5Z", Some(1_500_000));
        check("1970-01-01T01:00:01+01:00", Some(1_000_000));
        check("1700000000", Some(1_700_000_000_000_000));
        check("1700000000000", Some(1_700_000_000_000_000));
        check("yesterday", None);
        check("NaN", None);
    }

    #[test]
    fn folders_are_walked_in_order_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "b/2.jsonl", "a.traj", "b/1.json", "b/c.txt", "node_modules/x.json",
        ] {
            let path = dir.path().join(name);
            named::create_dir(path.parent().unwrap()).unwrap();
            named::replace(&path, b"").unwrap();
        }
        memctl_files::make_link(dir.path(), dir.path().join("b/loop")).unwrap();
        let root = dir.path().to_owned();
        let found = files(&[root.clone(), root.join("b/c.txt"), root.join("a.traj")]).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|f| {
                (
                    named::relative(&f.path, &root).display().to_string(),
                    f.named,
                )
            })
            .collect();
        assert_eq!(
            names,
            [
                ("a.traj", true),
                ("b/1.json", false),
                ("b/2.jsonl", false),
                ("b/c.txt", true)
            ]
            .map(|(name, named)| (name.to_owned(), named))
        );
        assert!(files(&[root.join("none")]).is_err());
    }
}
