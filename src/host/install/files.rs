//! Hooks that are files of their own: a plugin, or a script per event.
//!
//! A file of another program is never changed, and then nothing is installed. Removal deletes files that
//! begin as this program writes them, and the directories that the installation created.

use std::path::{Path, PathBuf};

use crate::platform::named;

use super::super::{Form, Host};
use super::edit::command;
use super::settings_file::{create_dir, read, replace};
use super::state::{Known, Place};
use super::{Error, InstallReport, InstallationStatus, StatusReport};

const PLUGIN: &str = include_str!("../plugin.js");
/// Line in the plugin that gets the command.
const NO_COMMAND: &str = "const COMMAND = [] // memctl";
/// Line that begins the plugin, and the second line of a script.
const PLUGIN_MARK: &str = "// memctl: gives the events";
const SCRIPT_MARK: &str = "# memctl: gives this event";

/// File to install.
#[derive(Debug)]
struct Wanted {
    path: PathBuf,
    text: String,
}

/// Returns the files of a host, with their text.
fn wanted(host: Host, place: &Place, read_only: bool) -> Vec<Wanted> {
    let path = &place.settings;
    if host.form() == Form::Plugin {
        let mut words = vec![place.program.as_str(), "hook", host.name()];
        if read_only {
            words.push("--read-only");
        }
        let words = serde_json::to_string(&words).unwrap_or_default();
        let text = PLUGIN.replacen(NO_COMMAND, &format!("const COMMAND = {words}"), 1);
        let path = path.clone();
        return vec![Wanted { path, text }];
    }
    let call = command(host, &place.program, read_only);
    let scripts = host.hooks().iter().map(|hook| Wanted {
        path: path.join(hook.event),
        text: format!(
            "#!/bin/sh\n{SCRIPT_MARK} to `memctl hook {}`\nexec {call}\n",
            host.name()
        ),
    });
    scripts.collect()
}

fn is_own(text: &str) -> bool {
    let second = text.lines().nth(1).unwrap_or_default();
    text.starts_with(PLUGIN_MARK) || second.starts_with(SCRIPT_MARK)
}

/// Returns a file of another program that is in the way: the file itself, or for a script one that the
/// host takes for the same event.
fn obstacle(host: Host, wanted: &Wanted) -> Result<Option<PathBuf>, Error> {
    if read(&wanted.path)?.is_some_and(|text| !is_own(&text)) {
        return Ok(Some(wanted.path.clone()));
    }
    if host.form() != Form::Scripts {
        return Ok(None);
    }
    let (directory, event) = (wanted.path.parent(), wanted.path.file_name());
    let Some((directory, event)) = directory.zip(event) else {
        return Ok(None);
    };
    let beside = named::list(directory).unwrap_or_default().into_iter();
    let mut beside = beside.map(|entry| entry.path());
    Ok(beside.find(|path| path.extension().is_some() && path.file_stem() == Some(event)))
}

/// Installs the files. A repeated call changes nothing.
pub(super) fn install(host: Host, place: &Place) -> Result<InstallReport, Error> {
    let files = wanted(host, place, place.read_only);
    for file in &files {
        if let Some(other) = obstacle(host, file)? {
            let what = "a hook of another program".to_owned();
            return Err(Error::Shape { path: other, what });
        }
    }
    let mut changed = false;
    for file in &files {
        if read(&file.path)?.as_deref() == Some(&file.text) {
            continue;
        }
        changed = true;
        let parents = file.path.ancestors().skip(1);
        let mut made: Vec<PathBuf> = parents
            .take_while(|parent| !named::exists(parent))
            .map(Path::to_owned)
            .collect();
        if !made.is_empty() {
            made.extend(
                place
                    .known(&place.settings)
                    .into_iter()
                    .flat_map(|known| known.made),
            );
            place.remember(&Known {
                path: place.settings.clone(),
                made,
                ..Known::default()
            })?;
        }
        if let Some(parent) = file.path.parent() {
            create_dir(parent)?;
        }
        replace(&file.path, &file.text)?;
        if host.form() == Form::Scripts {
            named::make_executable(&file.path).map_err(|source| Error::Unreadable {
                path: file.path.clone(),
                source,
            })?;
        }
    }
    Ok(report(host, place, changed, true))
}

/// Removes the files, and the directories that were created for them.
pub(super) fn uninstall(host: Host, place: &Place) -> Result<InstallReport, Error> {
    let mut changed = false;
    for file in wanted(host, place, false) {
        if read(&file.path)?.is_some_and(|text| is_own(&text)) {
            named::remove(&file.path).map_err(|source| Error::Unreadable {
                path: file.path.clone(),
                source,
            })?;
            changed = true;
        }
    }
    for directory in place
        .known(&place.settings)
        .iter()
        .flat_map(|known| &known.made)
    {
        // A directory with other files is kept.
        drop(named::remove_empty_dir(directory));
    }
    place.forget(&place.settings);
    Ok(report(host, place, changed, false))
}

/// Returns the installation status of the files.
pub(super) fn status(host: Host, place: &Place) -> Result<StatusReport, Error> {
    let has = |read_only: bool| -> Result<bool, Error> {
        for file in wanted(host, place, read_only) {
            if read(&file.path)?.as_deref() != Some(&file.text) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let mut commands = Vec::new();
    for file in wanted(host, place, false) {
        if let Some(text) = read(&file.path)?.filter(|text| is_own(text)) {
            let mut lines = text.lines();
            let call =
                lines.find(|line| line.starts_with("exec ") || line.starts_with("const COMMAND"));
            let call = call.unwrap_or_default();
            commands.push(call.trim_start_matches("exec ").to_owned());
        }
    }
    let reads = has(true)?;
    let standing = match (commands.is_empty(), reads || has(false)?) {
        (true, _) => InstallationStatus::Absent,
        (false, true) => InstallationStatus::Installed,
        (false, false) => InstallationStatus::Outdated,
    };
    let mut notes = Vec::new();
    if standing == InstallationStatus::Installed {
        notes.push(host.limits().to_owned());
    }
    if reads {
        notes.push("read-only: the hooks recall, and write nothing to the memory".to_owned());
    }
    Ok(StatusReport {
        host: host.name(),
        settings: place.settings.clone(),
        standing,
        commands,
        notes,
        problem: None,
    })
}

fn report(host: Host, place: &Place, changed: bool, installed: bool) -> InstallReport {
    let hooks = host.hooks().iter().filter(|_| installed);
    InstallReport {
        host: host.name(),
        settings: place.settings.clone(),
        changed,
        events: hooks.map(|hook| hook.event).collect(),
        backup: None,
        notes: Vec::new(),
    }
}
