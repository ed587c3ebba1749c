//! Hooks that are files of their own: a plugin, or a script per event.
//!
//! A file of another program is never changed, and then nothing is installed. Removal deletes files that
//! begin as this program writes them, and the directories that the installation created.

use std::path::PathBuf;

use memctl_files::SharedFile;

use super::super::{Delivery, Form, Host};
use super::edit::command;
use super::settings_file::{Known, Place, read, remove, replace, unreadable};
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
    file: SharedFile,
    text: String,
}

/// Returns the files of a host, with their text.
fn wanted(host: Host, place: &Place, read_only: bool) -> Result<Vec<Wanted>, Error> {
    let settings = &place.settings;
    if host.form() == Form::Plugin {
        let mut words = vec![place.program.as_str(), "hook", host.name()];
        if read_only {
            words.push("--read-only");
        }
        let words = serde_json::to_string(&words).unwrap_or_default();
        let text = PLUGIN.replacen(NO_COMMAND, &format!("const COMMAND = {words}"), 1);
        let file = settings.clone();
        return Ok(vec![Wanted { file, text }]);
    }
    let call = command(host, &place.program, read_only);
    let scripts = host.hooks().iter().map(|hook| {
        let file = settings.join(hook.event);
        Ok(Wanted {
            file: file.map_err(|source| unreadable(settings, source))?,
            text: format!(
                "#!/bin/sh\n{SCRIPT_MARK} to `memctl hook {}`\nexec {call}\n",
                host.name()
            ),
        })
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
    let path = wanted.file.path();
    if read(&wanted.file)?.is_some_and(|text| !is_own(&text)) {
        return Ok(Some(path.to_owned()));
    }
    if host.form() != Form::Scripts {
        return Ok(None);
    }
    let beside = wanted.file.siblings().into_iter();
    let mut beside = beside.map(|name| path.with_file_name(name));
    let is_other =
        |other: &PathBuf| other.extension().is_some() && other.file_stem() == path.file_name();
    Ok(beside.find(is_other))
}

/// Installs the files. A repeated call changes nothing.
pub(super) fn install(host: Host, place: &Place) -> Result<InstallReport, Error> {
    let files = wanted(host, place, place.read_only)?;
    for file in &files {
        if let Some(other) = obstacle(host, file)? {
            let what = "a hook of another program".to_owned();
            return Err(Error::Shape { path: other, what });
        }
    }
    let settings = place.settings.path();
    let mut changed = false;
    for Wanted { file, text } in &files {
        if read(file)?.as_deref() == Some(text) {
            continue;
        }
        changed = true;
        let mut made = file.missing_parents();
        if !made.is_empty() {
            made.extend(
                place
                    .known(settings)
                    .into_iter()
                    .flat_map(|known| known.made),
            );
            place.remember(&Known {
                path: settings.to_owned(),
                made,
                ..Known::default()
            })?;
        }
        replace(file, text)?;
        if host.form() == Form::Scripts {
            let made = file.make_executable();
            made.map_err(|source| unreadable(file, source))?;
        }
    }
    Ok(report(host, place, changed, true))
}

/// Removes the files, and the directories that were created for them.
pub(super) fn uninstall(host: Host, place: &Place) -> Result<InstallReport, Error> {
    let mut changed = false;
    for Wanted { file, .. } in wanted(host, place, false)? {
        if read(&file)?.is_some_and(|text| is_own(&text)) {
            remove(&file)?;
            changed = true;
        }
    }
    let settings = place.settings.path();
    if let Some(known) = place.known(settings) {
        // A directory with other files is kept.
        place.settings.remove_empty(&known.made);
    }
    place.forget(settings);
    Ok(report(host, place, changed, false))
}

/// Returns the installation status of the files.
pub(super) fn status(host: Host, place: &Place) -> Result<StatusReport, Error> {
    let has = |read_only: bool| -> Result<bool, Error> {
        for Wanted { file, text } in wanted(host, place, read_only)? {
            if read(&file)?.as_deref() != Some(&text) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let mut commands = Vec::new();
    for Wanted { file, .. } in wanted(host, place, false)? {
        if let Some(text) = read(&file)?.filter(|text| is_own(text)) {
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
        settings: place.settings.path().to_owned(),
        standing,
        commands,
        last: Delivery::last(place.state_dir.as_deref(), host),
        notes,
        problem: None,
    })
}

fn report(host: Host, place: &Place, changed: bool, installed: bool) -> InstallReport {
    let hooks = host.hooks().iter().filter(|_| installed);
    InstallReport {
        host: host.name(),
        settings: place.settings.path().to_owned(),
        changed,
        events: hooks.map(|hook| hook.event).collect(),
        backup: None,
        notes: Vec::new(),
    }
}
