//! This program as an MCP server in agent hosts' settings, and its removal.
//!
//! The entry is named `memctl`. The rest of the file keeps every byte: the entry is an inserted
//! piece of text that is stored, so that removal restores the file. A changed entry is removed by
//! its position. A file that the installation created is deleted.
//!
//! An entry of that name that starts another program belongs to the user and is never changed. No
//! copy of the file is kept: agent hosts store secrets in some of them.

mod json;
mod server_host;
mod toml;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::settings_piece;
use crate::store;
use memctl_files::{SharedFile, named};

pub use server_host::ServerHost;

use super::install::{
    Error, InstallationStatus, LONGEST, digest, read, remove, replace, store_state,
};

/// Name of the entry.
const NAME: &str = "memctl";

/// Command that starts a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Start {
    /// Program.
    pub command: String,
    /// Arguments.
    pub args: Vec<String>,
}

impl Start {
    /// Returns `true` if it starts this program as a server.
    fn is_own(&self) -> bool {
        let program = Path::new(&self.command).file_stem();
        let is_memctl = program.is_some_and(|name| name.to_string_lossy().contains(NAME));
        is_memctl && self.args.iter().any(|arg| arg == "mcp")
    }
}

/// Result of an installation or removal.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RegisterReport {
    /// Name of the agent host.
    pub host: &'static str,
    /// Path of the settings file.
    pub settings: PathBuf,
    /// `true` if the file was changed.
    pub changed: bool,
    /// Command of the server; `None` after a removal.
    pub start: Option<Start>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Server entry in a settings file.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ServerReport {
    /// Name of the agent host.
    pub host: &'static str,
    /// Path of the settings file.
    pub settings: PathBuf,
    /// Installation status.
    pub standing: InstallationStatus,
    /// Command of the server; `None` if it is not installed.
    pub start: Option<Start>,
    /// Reason why the settings cannot be read; `None` if they can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl ServerReport {
    /// Returns the status of an agent host whose settings cannot be read.
    pub fn broken(host: ServerHost, settings: &SharedFile, problem: String) -> Self {
        Self {
            host: host.name(),
            settings: settings.path().to_owned(),
            standing: InstallationStatus::Broken,
            start: None,
            problem: Some(problem),
        }
    }
}

/// Stored state of an installation.
#[derive(Debug, Serialize, Deserialize)]
struct Added {
    path: PathBuf,
    piece: String,
    /// `true` if the installation created the file.
    made_file: bool,
    /// Directories created for the file, innermost first.
    made: Vec<PathBuf>,
}

/// Adds the server, or replaces an outdated entry. A repeated call changes nothing.
pub fn register(
    host: ServerHost,
    settings: &SharedFile,
    state_dir: Option<&Path>,
    start: &Start,
) -> Result<RegisterReport, Error> {
    let path = settings.path().to_owned();
    let now = read(settings)?;
    let format = host.format();
    let known = known(state_dir, &path);
    let mut text = now.clone().unwrap_or_default();
    let mut changed = false;
    if format.find(&path, &text)?.as_ref() != Some(start) {
        let (without, was_there) = without(host, &path, &text, known.as_ref())?;
        let (with, piece) = format.add(&path, &without, start)?;
        text = with;
        changed = true;
        let made_before = known.filter(|_| was_there);
        let mut made = settings.missing_parents();
        made.extend(made_before.iter().flat_map(|known| known.made.clone()));
        let added = Added {
            path: path.clone(),
            piece,
            made_file: now.is_none() || made_before.is_some_and(|known| known.made_file),
            made,
        };
        if let Some(state) = state_of(state_dir, &path) {
            let json = serde_json::to_string_pretty(&added).map_err(store::Error::from)?;
            store_state(&state, &json)?;
        }
        replace(settings, &text)?;
    }
    Ok(RegisterReport {
        host: host.name(),
        settings: path,
        changed,
        start: Some(start.clone()),
        notes: Vec::new(),
    })
}

/// Removes the server.
pub fn unregister(
    host: ServerHost,
    settings: &SharedFile,
    state_dir: Option<&Path>,
) -> Result<RegisterReport, Error> {
    let path = settings.path().to_owned();
    let known = known(state_dir, &path);
    let mut changed = false;
    if let Some(now) = read(settings)? {
        let (text, was_there) = without(host, &path, &now, known.as_ref())?;
        changed = was_there;
        let made_file = known.as_ref().is_some_and(|known| known.made_file);
        if was_there && made_file && host.format().is_empty(&path, &text) {
            remove(settings)?;
            // A directory with other files is kept.
            settings.remove_empty(&known.map_or_else(Vec::new, |known| known.made));
        } else if was_there {
            replace(settings, &text)?;
        }
    }
    if let Some(state) = state_of(state_dir, &path) {
        drop(named::remove(&state));
    }
    Ok(RegisterReport {
        host: host.name(),
        settings: path,
        changed,
        start: None,
        notes: Vec::new(),
    })
}

/// Returns the installation status of the server. It is outdated if an absolute path leads to no
/// program; other arguments are the user's choice.
pub fn registered(host: ServerHost, settings: &SharedFile) -> Result<ServerReport, Error> {
    let path = settings.path().to_owned();
    let text = read(settings)?.unwrap_or_default();
    let own = host.format().find(&path, &text)?.filter(Start::is_own);
    let is_gone = |start: &Start| {
        let program = Path::new(&start.command);
        program.is_absolute() && !named::is_file(program)
    };
    Ok(ServerReport {
        host: host.name(),
        settings: path,
        standing: match &own {
            None => InstallationStatus::Absent,
            Some(start) if is_gone(start) => InstallationStatus::Outdated,
            Some(_) => InstallationStatus::Installed,
        },
        start: own,
        problem: None,
    })
}

/// Returns the text without our entry, and `true` if the entry was there.
fn without(
    host: ServerHost,
    path: &Path,
    now: &str,
    known: Option<&Added>,
) -> Result<(String, bool), Error> {
    let format = host.format();
    match format.find(path, now)? {
        None => return Ok((now.to_owned(), false)),
        Some(found) if !found.is_own() => {
            let what = format!(
                "another server named `{NAME}`, which starts `{}`",
                found.command
            );
            return Err(shape(path, what));
        }
        Some(_) => {}
    }
    let by_piece = known.and_then(|known| {
        let text = settings_piece::without(now, &known.piece)?;
        let is_gone = matches!(format.find(path, &text), Ok(None));
        is_gone.then_some(text)
    });
    let text = match by_piece {
        Some(text) => text,
        None => format.remove(path, now)?,
    };
    Ok((text, true))
}

fn state_of(state_dir: Option<&Path>, path: &Path) -> Option<PathBuf> {
    let name = digest(&path.to_string_lossy());
    Some(state_dir?.join("mcp").join(format!("{}.json", &name[..24])))
}

fn known(state_dir: Option<&Path>, path: &Path) -> Option<Added> {
    let text = named::read(&state_of(state_dir, path)?, LONGEST).ok()?;
    let added: Added = serde_json::from_slice(&text).ok()?;
    (added.path == path).then_some(added)
}

fn shape(path: &Path, what: impl Into<String>) -> Error {
    Error::Shape {
        path: path.to_owned(),
        what: what.into(),
    }
}

#[cfg(test)]
mod tests;
