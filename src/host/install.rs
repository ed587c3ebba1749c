//! The hooks in a host's settings file: there, and gone again.
//!
//! What stands in the file is kept byte for byte; the hooks are pieces of text that are added to it.
//! The file as it was lies beside what this program knows of the user's workspaces, together with
//! the pieces. Taking the hooks out restores the file exactly as long as nobody else has changed it;
//! where somebody has, the pieces are taken out and their changes stay. A file that was not there
//! before is gone again.
//!
//! A file that is no JSON is never touched, and a link is followed, not replaced.

mod edit;
mod state;

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::platform::named;
use crate::store;

use super::Host;
use edit::{command, own_commands, own_of_event, parse, with_hooks, without_hooks};
use state::Known;

pub(super) use state::digest;

/// Where a host's hooks are written down, and what is known about it.
#[derive(Debug, Clone)]
pub struct Place {
    /// The settings file; it need not exist.
    pub settings: PathBuf,
    /// Where this program keeps the file as it was; `None` keeps nothing.
    pub state_dir: Option<PathBuf>,
    /// The program that the hooks start.
    pub program: String,
}

/// Why the hooks were not installed or taken out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The settings file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The settings are no JSON, and so not ours to change.
    #[error("`{}` is no JSON: line {line}: {reason}", path.display())]
    Invalid {
        /// The settings file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong there.
        reason: &'static str,
    },
    /// The settings are JSON, but hold something else where hooks belong.
    #[error("`{}` has {what}, and nothing was changed", path.display())]
    Shape {
        /// The settings file.
        path: PathBuf,
        /// What is in the way.
        what: String,
    },
    /// The settings cannot be written.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// What was done.
#[derive(Debug, Serialize)]
pub struct InstallReport {
    /// The host.
    pub host: &'static str,
    /// The settings file.
    pub settings: PathBuf,
    /// Whether the file is another one now.
    pub changed: bool,
    /// The host's names of the events that are hooked; empty after taking them out.
    pub events: Vec<&'static str>,
    /// The file as it was, where there was one and it was changed.
    pub backup: Option<PathBuf>,
    /// What the user has to do or to know.
    pub notes: Vec<String>,
}

/// What stands in a settings file.
#[derive(Debug, Serialize)]
pub struct StatusReport {
    /// The host.
    pub host: &'static str,
    /// The settings file.
    pub settings: PathBuf,
    /// Whether our hooks stand in it.
    pub standing: Standing,
    /// The commands that stand there.
    pub commands: Vec<String>,
    /// What keeps them from working, as far as that can be seen from here.
    pub notes: Vec<String>,
}

/// Whether hooks are installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// All of them.
    Installed,
    /// Some of them, or of an older form: install them again.
    Outdated,
    /// None.
    Absent,
}

/// Adds the hooks. Doing so again changes nothing.
pub fn install(host: Host, place: &Place) -> Result<InstallReport, Error> {
    let path = real_path(&place.settings)?;
    let now = read(&path)?;
    let events = host.hooks().iter().map(|hook| hook.event).collect();
    if status(host, place)?.standing == Standing::Installed {
        return Ok(InstallReport {
            host: host.name(),
            settings: path,
            changed: false,
            events,
            backup: None,
            notes: Vec::new(),
        });
    }
    let known = place.known(&path);
    // Hooks of an older form give way to those of today.
    let original = match &now {
        None => None,
        Some(text) => without_hooks(host, &path, text, known.as_ref())?,
    };
    let (text, pieces) = with_hooks(host, &path, original.as_deref(), &place.program)?;
    let changed = now.as_deref() != Some(&text);
    let mut backup = None;
    if changed {
        let parents = path.ancestors().skip(1);
        let mut made: Vec<PathBuf> = parents
            .take_while(|parent| !named::exists(parent))
            .map(Path::to_owned)
            .collect();
        if let Some(known) = known {
            made.extend(known.made);
        }
        backup = place.remember(&Known {
            path: path.clone(),
            original,
            after: digest(&text),
            pieces,
            made,
        })?;
        if let Some(parent) = path.parent() {
            create_dir(parent)?;
        }
        replace(&path, &text)?;
    }
    Ok(InstallReport {
        host: host.name(),
        settings: path,
        changed,
        events,
        backup,
        notes: Vec::new(),
    })
}

/// Takes the hooks out.
pub fn uninstall(host: Host, place: &Place) -> Result<InstallReport, Error> {
    let path = real_path(&place.settings)?;
    let known = place.known(&path);
    let now = read(&path)?;
    let mut changed = false;
    if let Some(now) = now {
        let text = without_hooks(host, &path, &now, known.as_ref())?;
        changed = text.as_deref() != Some(&now);
        match text {
            Some(text) if changed => replace(&path, &text)?,
            Some(_) => {}
            None => {
                named::remove(&path)
                    .map(drop)
                    .map_err(|source| Error::Unreadable {
                        path: path.clone(),
                        source,
                    })?;
                for directory in known.iter().flat_map(|known| &known.made) {
                    // Whatever else has come to lie there keeps it.
                    drop(named::remove_empty_dir(directory));
                }
            }
        }
    }
    place.forget(&path);
    Ok(InstallReport {
        host: host.name(),
        settings: path,
        changed,
        events: Vec::new(),
        backup: None,
        notes: Vec::new(),
    })
}

/// Looks whether the hooks are there.
pub fn status(host: Host, place: &Place) -> Result<StatusReport, Error> {
    let path = real_path(&place.settings)?;
    let mut commands = Vec::new();
    let mut notes = Vec::new();
    let mut standing = Standing::Absent;
    if let Some(text) = read(&path)?.filter(|text| !text.trim().is_empty()) {
        let root = parse(&path, &text)?;
        commands = own_commands(host, &root);
        let wanted = command(host, &place.program);
        let complete = host.hooks().iter().all(|hook| {
            let groups = root.get("hooks").and_then(|hooks| hooks.get(hook.event));
            let mut own = groups.iter().flat_map(|groups| own_of_event(host, groups));
            own.any(|(_, _, command)| command == wanted)
        });
        standing = match (commands.is_empty(), complete) {
            (true, _) => Standing::Absent,
            (false, true) => Standing::Installed,
            (false, false) => Standing::Outdated,
        };
        let off = root
            .get("disableAllHooks")
            .map(|node| &text[node.span.clone()]);
        if off == Some("true") {
            notes.push("`disableAllHooks` is set: the host runs no hooks at all".to_owned());
        }
    }
    Ok(StatusReport {
        host: host.name(),
        settings: path,
        standing,
        commands,
        notes,
    })
}

/// The file behind a link; the path itself where there is no file yet.
pub(super) fn real_path(path: &Path) -> Result<PathBuf, Error> {
    let is_link = named::link_metadata(path).is_ok_and(|m| m.is_symlink());
    if !is_link && !named::exists(path) {
        return Ok(path.to_owned());
    }
    named::real(path).map_err(|source| Error::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// The most bytes of a settings file.
pub(super) const LONGEST: u64 = 64 << 20;

/// Replaces a settings file, or what is known of one.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), store::Error> {
    named::replace(path, text.as_bytes()).map_err(store::Error::io("write", path))
}

pub(super) fn create_dir(path: &Path) -> Result<(), store::Error> {
    named::create_dir(path).map_err(store::Error::io("create", path))
}

pub(super) fn read(path: &Path) -> Result<Option<String>, Error> {
    match named::read_text(path, LONGEST) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Unreadable {
            path: path.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests;
