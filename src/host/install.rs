//! Installation of hooks in an agent host's settings file, and their removal.
//!
//! The existing content keeps every byte; the hooks are inserted as pieces of text. The state
//! directory keeps the original file and the pieces. Removal restores an otherwise unchanged file
//! exactly. In a file with other changes, only the pieces are removed. A file that the installation
//! created is deleted.
//!
//! A file that is not JSON is never changed. A link of the user is followed, not replaced; one of a
//! project is refused.

mod edit;
mod error;
mod files;
mod settings_file;

use std::path::PathBuf;

use serde::Serialize;

use super::jsonc::Node;
use super::{Delivery, Form, Host};
use edit::{command, own_commands, own_of_event, parse, with_hooks, without_hooks};
use settings_file::Known;

pub(crate) use edit::quoted;
pub use error::Error;
pub use settings_file::Place;
pub(super) use settings_file::{LONGEST, digest, read, remove, replace, store_state};

/// Result of an installation or removal.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct InstallReport {
    /// Name of the agent host.
    pub host: &'static str,
    /// Path of the settings file.
    pub settings: PathBuf,
    /// `true` if the file was changed.
    pub changed: bool,
    /// Event names of the agent host with a hook; empty after a removal.
    pub events: Vec<&'static str>,
    /// Copy of the original file; `None` if there was no file or it was not changed.
    pub backup: Option<PathBuf>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Hooks in a settings file.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct StatusReport {
    /// Name of the agent host.
    pub host: &'static str,
    /// Path of the settings file.
    pub settings: PathBuf,
    /// Installation status.
    pub standing: InstallationStatus,
    /// Commands of the installed hooks.
    pub commands: Vec<String>,
    /// Last event that a hook of this host received; null if none was.
    pub last: Option<Delivery>,
    /// Known reasons why the hooks do not run.
    pub notes: Vec<String>,
    /// Reason why the settings cannot be read; `None` if they can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl StatusReport {
    /// Returns the status of an agent host whose settings cannot be read.
    pub fn broken(host: Host, place: &Place, problem: String) -> Self {
        Self {
            host: host.name(),
            settings: place.settings.path().to_owned(),
            standing: InstallationStatus::Broken,
            commands: Vec::new(),
            last: None,
            notes: Vec::new(),
            problem: Some(problem),
        }
    }
}

/// Installation status of hooks or of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstallationStatus {
    /// Completely installed.
    Installed,
    /// Partly installed, or in an outdated form: install them again.
    Outdated,
    /// Not installed.
    Absent,
    /// Unknown: the settings file cannot be read or has another form.
    Broken,
}

/// Adds the hooks. A repeated call changes nothing.
pub fn install(host: Host, place: &Place) -> Result<InstallReport, Error> {
    if matches!(host.form(), Form::Plugin | Form::Scripts) {
        return files::install(host, place);
    }
    let path = place.settings.path().to_owned();
    let now = read(&place.settings)?;
    let events = host.hooks().iter().map(|hook| hook.event).collect();
    let command = command(host, &place.program, place.read_only);
    let root = now.as_deref().filter(|text| !text.trim().is_empty());
    let root = root.map(|text| parse(&path, text)).transpose()?;
    if root.is_some_and(|root| has_all(host, &root, &command)) {
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
    // Current hooks replace outdated ones.
    let original = match &now {
        None => None,
        Some(text) => without_hooks(host, &path, text, known.as_ref())?,
    };
    let (text, pieces) = with_hooks(host, &path, original.as_deref(), &command)?;
    let changed = now.as_deref() != Some(&text);
    let mut backup = None;
    if changed {
        let mut made = place.settings.missing_parents();
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
        replace(&place.settings, &text)?;
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

/// Removes the hooks.
pub fn uninstall(host: Host, place: &Place) -> Result<InstallReport, Error> {
    if matches!(host.form(), Form::Plugin | Form::Scripts) {
        return files::uninstall(host, place);
    }
    let path = place.settings.path().to_owned();
    let known = place.known(&path);
    let now = read(&place.settings)?;
    let mut changed = false;
    if let Some(now) = now {
        let text = without_hooks(host, &path, &now, known.as_ref())?;
        changed = text.as_deref() != Some(&now);
        match text {
            Some(text) if changed => replace(&place.settings, &text)?,
            Some(_) => {}
            None => {
                remove(&place.settings)?;
                // A directory with other files is kept.
                place
                    .settings
                    .remove_empty(&known.map_or_else(Vec::new, |known| known.made));
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

/// Returns the installation status of the hooks.
pub fn status(host: Host, place: &Place) -> Result<StatusReport, Error> {
    if matches!(host.form(), Form::Plugin | Form::Scripts) {
        return files::status(host, place);
    }
    let path = place.settings.path().to_owned();
    let mut commands = Vec::new();
    let mut notes = Vec::new();
    let mut standing = InstallationStatus::Absent;
    if let Some(text) = read(&place.settings)?.filter(|text| !text.trim().is_empty()) {
        let root = parse(&path, &text)?;
        commands = own_commands(host, &root);
        let has = |read_only| {
            let wanted = command(host, &place.program, read_only);
            has_all(host, &root, &wanted)
        };
        let reads = has(true);
        let complete = reads || has(false);
        standing = match (commands.is_empty(), complete) {
            (true, _) => InstallationStatus::Absent,
            (false, true) => InstallationStatus::Installed,
            (false, false) => InstallationStatus::Outdated,
        };
        if standing == InstallationStatus::Installed {
            notes.push(host.limits().to_owned());
        }
        if reads {
            let note = "read-only: the hooks recall, and write nothing to the memory";
            notes.push(note.to_owned());
        }
        let off = root
            .get("disableAllHooks")
            .map(|node| &text[node.span.clone()]);
        if off == Some("true") {
            notes.push("`disableAllHooks` is set: the host runs no hooks".to_owned());
        }
    }
    Ok(StatusReport {
        host: host.name(),
        settings: path,
        standing,
        commands,
        last: Delivery::last(place.state_dir.as_deref(), host),
        notes,
        problem: None,
    })
}

/// Returns `true` if every event has this command.
fn has_all(host: Host, root: &Node, wanted: &str) -> bool {
    host.hooks().iter().all(|hook| {
        let groups = root.get("hooks").and_then(|hooks| hooks.get(hook.event));
        let mut own = groups.iter().flat_map(|groups| own_of_event(host, groups));
        own.any(|(_, _, command)| command == wanted)
    })
}

#[cfg(test)]
mod tests;
