//! Hooks of this program for an agent host: entries in its JSON settings, or files of their own (a plugin, or a
//! script per event).

use std::path::{Path, PathBuf};

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObjectProp};
use jsonc_parser::json;
use serde::Serialize;

use memctl_files::SharedFile;

use super::file::{Document, member, object_for, object_in, read, read_in, text_in};
use super::{Entry, Error, Fault, Found, InstallationStatus, OF_ANOTHER, Place, Start};
use crate::host::hosts::{Form, Hook};
use crate::host::{Delivery, EventKind, Host};

/// Timeout of the agent host, in seconds. The hook itself ends much earlier.
const SECONDS: u32 = 5;
/// Longest timeout that Codex takes for the end of a session: it warns of a longer one at each start.
const OF_CODEX_END: u32 = 3;
/// Argument of hooks that write nothing.
const READ_ONLY: &str = "--read-only";
const PLUGIN: &str = include_str!("../plugin.js");
/// Line in the plugin that gets the command.
const NO_COMMAND: &str = "const COMMAND = [] // memctl";
/// Line that begins the plugin, and the second line of a script.
const PLUGIN_MARK: &str = "// memctl: gives the events";
const SCRIPT_MARK: &str = "# memctl: gives this event";

/// Events of an agent host with a hook.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Events {
    /// Event names of the agent host with a hook; empty after a removal.
    pub events: Vec<&'static str>,
}

impl Events {
    /// Returns the events that hooks are installed for.
    pub fn of(host: Host) -> Self {
        let events = host.hooks().iter().map(|hook| hook.event);
        Self {
            events: events.collect(),
        }
    }
}

/// Hooks that were found in a settings file.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct FoundHooks {
    /// Commands of the installed hooks.
    pub commands: Vec<String>,
    /// Last event that a hook of this host received; null if none was.
    pub last: Option<Delivery>,
    /// Last events at which an agent was told something, one of each kind, the newest first.
    pub last_told: Vec<Delivery>,
    /// Known reasons why the hooks do not run.
    pub notes: Vec<String>,
}

/// Returns the hooks of a place.
pub fn status(place: &Place) -> Result<Found<FoundHooks>, Error> {
    let mut commands = Vec::new();
    let mut are_off = false;
    for (file, hooks) in entries(place, &place.start)? {
        let text = read(&file)?.unwrap_or_default();
        commands.extend(hooks.commands(&text));
        are_off |= hooks.are_off(&text);
    }
    let reads = commands.iter().any(|command| command.contains(READ_ONLY));
    let start = hook_command(&place.start.command, place.host, reads);
    let mut is_whole = true;
    for (file, hooks) in entries(place, &start)? {
        is_whole &= match read_in(&file, |text| hooks.find(text)) {
            Err(error) if !hooks.is_whole_file() => return Err(error),
            // A file of another program is no installation.
            found => found.is_ok_and(|found| found == InstallationStatus::Installed),
        };
    }
    let standing = match (commands.is_empty(), is_whole) {
        (true, _) => InstallationStatus::Absent,
        (false, true) => InstallationStatus::Installed,
        (false, false) => InstallationStatus::Outdated,
    };
    let is_installed = standing == InstallationStatus::Installed;
    let notes = [
        (is_installed, place.host.profile().limits),
        (
            is_installed && reads,
            "read-only: the hooks recall, and write nothing to the memory",
        ),
        (are_off, "`disableAllHooks` is set: the host runs no hooks"),
    ];
    let notes = notes.iter().filter(|(is_so, _)| *is_so);
    let found = FoundHooks {
        commands,
        last: Delivery::last(place.state_dir.as_deref(), place.host),
        last_told: Delivery::last_told(place.state_dir.as_deref(), place.host),
        notes: notes.map(|(_, note)| (*note).to_owned()).collect(),
    };
    Ok(place.found(Ok((standing, found))))
}

/// Returns the command of the hooks of a host.
pub fn hook_command(program: &str, host: Host, read_only: bool) -> Start {
    let args = ["hook", host.name()]
        .into_iter()
        .chain(read_only.then_some(READ_ONLY));
    Start {
        command: program.to_owned(),
        args: args.map(str::to_owned).collect(),
    }
}

/// Returns reasons in the `config.toml` of Codex why hooks in this file do not run.
pub fn codex_obstacles(config: &str, hooks_file: &Path) -> Vec<String> {
    let config: toml::Table = config.parse().unwrap_or_default();
    let hooks_are_off = config
        .get("features")
        .and_then(|features| features.get("hooks"))
        .and_then(toml::Value::as_bool)
        == Some(false);
    let mut found = Vec::new();
    if hooks_are_off {
        found.push("`config.toml` has `features.hooks = false`: Codex runs no hooks".into());
    }
    // Codex stores reviewed hooks under the path of the file.
    let reviewed = format!("{}:", hooks_file.display());
    let is_reviewed = config
        .get("hooks")
        .and_then(|hooks| hooks.get("state"))
        .and_then(toml::Value::as_table)
        .is_some_and(|state| state.keys().any(|key| key.starts_with(&reviewed)));
    if !is_reviewed {
        found.push(
            "the hooks are not reviewed in Codex yet, and it skips them: trust them at its next start, or by `/hooks`"
                .into(),
        );
    }
    found
}

/// Returns the files of a host, with what belongs in each.
pub(super) fn entries(place: &Place, start: &Start) -> Result<Vec<(SharedFile, Hooks)>, Error> {
    let (host, settings, command) = (place.host, &place.settings, start.line());
    let of_file = |whole| Hooks {
        host,
        command: command.clone(),
        whole,
    };
    match host.profile().form {
        Form::Groups | Form::Handlers => Ok(vec![(settings.clone(), of_file(None))]),
        Form::Plugin => {
            let words: Vec<&String> = std::iter::once(&start.command).chain(&start.args).collect();
            let words = serde_json::to_string(&words).unwrap_or_default();
            let text = PLUGIN.replacen(NO_COMMAND, &format!("const COMMAND = {words}"), 1);
            Ok(vec![(settings.clone(), of_file(Some(text)))])
        }
        Form::Scripts => {
            let scripts = host.hooks().iter().map(|hook| {
                let file = settings.join(hook.event);
                let file = file.map_err(|source| Error::unreadable(settings, source))?;
                let name = host.name();
                let text =
                    format!("#!/bin/sh\n{SCRIPT_MARK} to `memctl hook {name}`\nexec {command}\n");
                Ok((file, of_file(Some(text))))
            });
            scripts.collect()
        }
    }
}

/// Hooks of a host in one file.
pub(super) struct Hooks {
    host: Host,
    /// Command of a shell.
    command: String,
    /// Text of the file, if it has nothing else.
    whole: Option<String>,
}

impl Entry for Hooks {
    fn name(&self) -> &'static str {
        "hooks"
    }

    fn find(&self, text: &str) -> Result<InstallationStatus, Fault> {
        let is_complete = if let Some(whole) = &self.whole {
            text == whole
        } else {
            let lists = event_lists(&Document::read(text)?)?;
            let has = |hook: &Hook| {
                let mut lists = lists.iter().filter(|(event, _)| event == hook.event);
                lists.any(|(_, list)| self.own(list).any(|own| own.command == self.command))
            };
            let is_known = |event: &str| self.host.hooks().iter().any(|hook| hook.event == event);
            let is_left = |(event, list): &(String, CstArray)| {
                !is_known(event) && self.own(list).next().is_some()
            };
            self.host.hooks().iter().all(has) && !lists.iter().any(is_left)
        };
        match (is_complete, self.commands(text).is_empty()) {
            (true, _) => Ok(InstallationStatus::Installed),
            (false, true) if self.whole.is_some() && !text.is_empty() => Err(OF_ANOTHER.to_owned()),
            (false, true) => Ok(InstallationStatus::Absent),
            (false, false) => Ok(InstallationStatus::Outdated),
        }
    }

    fn add(&self, text: &str) -> Result<String, Fault> {
        if let Some(whole) = &self.whole {
            return Ok(whole.clone());
        }
        let document = Document::read(text)?;
        let settings = &document.object;
        if self.host.profile().form == Form::Handlers && member(settings, "version").is_none() {
            settings.append("version", json!(1_u32));
        }
        let hooks = object_for(settings, "hooks")?;
        for hook in self.host.hooks() {
            let list = hooks.array_value_or_create(hook.event);
            let list = list.ok_or_else(|| not_an_array(hook.event))?;
            list.append(self.entry(hook));
        }
        Ok(document.text())
    }

    /// Removes the handlers, together with groups, lists and objects that become empty.
    fn take_out(&self, text: &str) -> Result<String, Fault> {
        if self.whole.is_some() {
            return Ok(String::new());
        }
        let document = Document::read(text)?;
        for (event, list) in event_lists(&document)? {
            let own: Vec<OwnHandler> = self.own(&list).collect();
            for OwnHandler { group, node, .. } in &own {
                node.clone().remove();
                if let Some((group, handlers)) = group
                    && handlers.elements().is_empty()
                {
                    group.clone().remove();
                }
            }
            let hooks = object_in(&document.object, "hooks")?;
            if let Some(hooks) = hooks.filter(|_| !own.is_empty() && list.elements().is_empty())
                && let Some(event) = member(&hooks, &event)
            {
                event.remove();
                document.remove_empty("hooks");
            }
        }
        Ok(document.text())
    }

    fn is_empty(&self, text: &str) -> bool {
        let is_version = |one: &CstObjectProp| one.decoded_name().as_deref() == Some("version");
        let left = Document::read(text).map(|document| document.object.properties());
        self.whole.is_some() || left.is_ok_and(|left| left.iter().all(is_version))
    }

    fn is_whole_file(&self) -> bool {
        self.whole.is_some()
    }

    fn is_script(&self) -> bool {
        self.host.profile().form == Form::Scripts
    }

    /// The host takes a file with an extension for the same event as a script.
    fn obstacle(&self, file: &SharedFile) -> Option<PathBuf> {
        let path = file.path();
        let beside = file.siblings().into_iter();
        let mut beside = beside.map(|name| path.with_file_name(name));
        let is_other =
            |other: &PathBuf| other.extension().is_some() && other.file_stem() == path.file_name();
        beside.find(is_other).filter(|_| self.is_script())
    }

    /// A file of another program stays.
    fn is_ours(&self, text: &str, _is_kept: bool) -> bool {
        self.whole.is_none() || !self.commands(text).is_empty()
    }
}

/// Handler that calls this program.
struct OwnHandler {
    node: CstNode,
    command: String,
    /// Group that it is in, and the group's list of handlers; `None` in a list of handlers.
    group: Option<(CstNode, CstArray)>,
}

impl Hooks {
    /// Handlers of this program in an event's list.
    fn own(&self, list: &CstArray) -> impl Iterator<Item = OwnHandler> {
        let handlers = list.elements().into_iter().flat_map(|item| {
            let handlers = item
                .as_object()
                .and_then(|group| group.array_value("hooks"));
            match handlers {
                Some(handlers) => {
                    let group = Some((item, handlers.clone()));
                    let nodes = handlers.elements().into_iter();
                    nodes.map(|node| (node, group.clone())).collect()
                }
                None => vec![(item, None)],
            }
        });
        handlers.filter_map(|(node, group)| {
            let command = text_in(&node.as_object()?, "command")?;
            self.is_own(&command).then_some(OwnHandler {
                node,
                command,
                group,
            })
        })
    }

    fn is_own(&self, command: &str) -> bool {
        let call = format!(" hook {}", self.host.name());
        let command = command.trim_end();
        let command = command.strip_suffix(READ_ONLY).unwrap_or(command);
        let program = command.trim_end().strip_suffix(&call);
        program.is_some_and(|program| program.contains("memctl"))
    }

    /// Commands of this program in a text.
    fn commands(&self, text: &str) -> Vec<String> {
        if self.whole.is_some() {
            let second = text.lines().nth(1).unwrap_or_default();
            if !text.starts_with(PLUGIN_MARK) && !second.starts_with(SCRIPT_MARK) {
                return Vec::new();
            }
            let is_call =
                |line: &&str| line.starts_with("exec ") || line.starts_with("const COMMAND");
            let call = text.lines().find(is_call).unwrap_or_default();
            return vec![call.trim_start_matches("exec ").to_owned()];
        }
        let lists = Document::read(text).and_then(|document| event_lists(&document));
        let lists = lists.unwrap_or_default();
        let own = lists.iter().flat_map(|(_, list)| self.own(list));
        own.map(|own| own.command).collect()
    }

    /// Entry for an event's list.
    fn entry(&self, hook: &Hook) -> CstInputValue {
        let command = self.command.as_str();
        let handler = match self.host {
            // Gemini CLI takes milliseconds, and requires a name.
            Host::Gemini => json!({"type": "command", "command": command, "name": "memctl",
                "timeout": (SECONDS * 1_000)}),
            Host::Codex if hook.kind == EventKind::SessionEnd => {
                json!({"type": "command", "command": command, "timeout": OF_CODEX_END})
            }
            _ => json!({"type": "command", "command": command, "timeout": SECONDS}),
        };
        let of_tools = matches!(
            hook.kind,
            EventKind::BeforeTool | EventKind::ToolSucceeded | EventKind::ToolFailed
        );
        match self.host.profile().form {
            Form::Groups if of_tools => json!({"matcher": "*", "hooks": [handler]}),
            Form::Groups => json!({"hooks": [handler]}),
            _ => handler,
        }
    }

    /// Returns `true` if the settings of Claude Code say that no hook runs.
    fn are_off(&self, text: &str) -> bool {
        let settings = Document::read(text).map(|document| document.object);
        self.whole.is_none()
            && settings.is_ok_and(|settings| {
                let off = member(&settings, "disableAllHooks").and_then(|off| off.value());
                off.is_some_and(|off| off.to_string() == "true")
            })
    }
}

/// Lists of the events.
fn event_lists(document: &Document) -> Result<Vec<(String, CstArray)>, Fault> {
    let hooks = object_in(&document.object, "hooks")?;
    let events = hooks.map(|hooks| hooks.properties()).unwrap_or_default();
    let lists = events.into_iter().map(|event| {
        let name = event.decoded_name().unwrap_or_default();
        let list = event.array_value().ok_or_else(|| not_an_array(&name))?;
        Ok((name, list))
    });
    lists.collect()
}

fn not_an_array(event: &str) -> Fault {
    format!("has `hooks.{event}` that is not an array")
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
