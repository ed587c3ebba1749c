//! The hooks in a host's settings file: there, and gone again.
//!
//! What stands in the file is kept byte for byte; the hooks are pieces of text that are added to it.
//! The file as it was lies beside what this program knows of the user's workspaces, together with
//! the pieces. Taking the hooks out restores the file exactly as long as nobody else has changed it;
//! where somebody has, the pieces are taken out and their changes stay. A file that was not there
//! before is gone again.
//!
//! A file that is no JSON is never touched, and a link is followed, not replaced.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::store::{self, atomic};

use super::jsonc::{self, Node};
use super::{Hook, Host};

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

/// What is known of a file that was changed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    path: PathBuf,
    /// The text before; `None` where there was no file.
    original: Option<String>,
    /// The digest of the text after.
    after: String,
    /// The pieces that were added, in their order.
    pieces: Vec<String>,
    /// The directories that were made for the file, the innermost first.
    made: Vec<PathBuf>,
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
            .take_while(|parent| !parent.exists())
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
            atomic::create_dir(parent)?;
        }
        atomic::replace(&path, text.as_bytes())?;
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
            Some(text) if changed => atomic::replace(&path, text.as_bytes())?,
            Some(_) => {}
            None => {
                std::fs::remove_file(&path).map_err(|source| Error::Unreadable {
                    path: path.clone(),
                    source,
                })?;
                for directory in known.iter().flat_map(|known| &known.made) {
                    // Whatever else has come to lie there keeps it.
                    drop(std::fs::remove_dir(directory));
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

impl Place {
    fn state(&self, path: &Path) -> Option<PathBuf> {
        let name = digest(&path.to_string_lossy());
        let directory = self.state_dir.as_ref()?.join("hooks");
        Some(directory.join(format!("{}.json", &name[..24])))
    }

    fn known(&self, path: &Path) -> Option<Known> {
        let text = std::fs::read(self.state(path)?).ok()?;
        let known: Known = serde_json::from_slice(&text).ok()?;
        (known.path == path).then_some(known)
    }

    /// Keeps the file as it was; answers where, if there was one.
    fn remember(&self, known: &Known) -> Result<Option<PathBuf>, Error> {
        let Some(state) = self.state(&known.path) else {
            return Ok(None);
        };
        if let Some(directory) = state.parent() {
            atomic::create_dir(directory)?;
        }
        let text = serde_json::to_string_pretty(known).map_err(store::Error::from)?;
        atomic::replace(&state, text.as_bytes())?;
        Ok(known.original.is_some().then_some(state))
    }

    fn forget(&self, path: &Path) {
        if let Some(state) = self.state(path) {
            drop(std::fs::remove_file(state));
        }
    }
}

/// The file behind a link; the path itself where there is no file yet.
fn real_path(path: &Path) -> Result<PathBuf, Error> {
    let is_link = path.symlink_metadata().is_ok_and(|m| m.is_symlink());
    if !is_link && !path.exists() {
        return Ok(path.to_owned());
    }
    path.canonicalize().map_err(|source| Error::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<Option<String>, Error> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Unreadable {
            path: path.to_owned(),
            source,
        }),
    }
}

fn parse(path: &Path, text: &str) -> Result<Node, Error> {
    let root = jsonc::parse(text).map_err(|fault| Error::Invalid {
        path: path.to_owned(),
        line: fault.line,
        reason: fault.reason,
    })?;
    let shape = |what: &str| Error::Shape {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    if root.members().is_none() {
        return Err(shape("something else than an object in it"));
    }
    if let Some(hooks) = root.get("hooks") {
        let Some(events) = hooks.members() else {
            return Err(shape("`hooks` that are no object"));
        };
        if let Some(event) = events.iter().find(|event| event.value.items().is_none()) {
            return Err(shape(&format!("`hooks.{}` that is no list", event.key)));
        }
    }
    Ok(root)
}

/// The command of a hook, fit for a shell.
fn command(host: Host, program: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    let program = if program.chars().all(plain) {
        program.to_owned()
    } else {
        format!("'{}'", program.replace('\'', r"'\''"))
    };
    format!("{program} hook {}", host.name())
}

fn is_own(host: Host, command: &str) -> bool {
    let call = format!(" hook {}", host.name());
    command
        .trim_end()
        .strip_suffix(&call)
        .is_some_and(|program| program.contains("memctl"))
}

/// One entry of an event's list, laid out with two spaces a level.
fn group(host: Host, hook: &Hook, program: &str) -> String {
    let timeout = match host {
        // This host counts in milliseconds, and wants a name.
        Host::Gemini => hook.seconds * 1_000,
        Host::ClaudeCode | Host::Codex => hook.seconds,
    };
    let mut handler = json!({"type": "command", "command": command(host, program)});
    if host == Host::Gemini {
        handler["name"] = json!("memctl");
    }
    handler["timeout"] = json!(timeout);
    let mut group = json!({});
    if hook.of_tools {
        group["matcher"] = json!("*");
    }
    group["hooks"] = json!([handler]);
    serde_json::to_string_pretty(&group).unwrap_or_default()
}

/// The text with the hooks, and the pieces that were added.
fn with_hooks(
    host: Host,
    path: &Path,
    original: Option<&str>,
    program: &str,
) -> Result<(String, Vec<String>), Error> {
    let empty = original.is_none_or(|text| {
        text.trim_matches(['\u{feff}', ' ', '\n', '\r', '\t'])
            .is_empty()
    });
    let mut text = match original {
        Some(text) if !empty => text.to_owned(),
        _ => "{}\n".to_owned(),
    };
    let mut pieces = Vec::new();
    let mut add = |text: &mut String, insertion: jsonc::Insertion| {
        text.insert_str(insertion.at, &insertion.text);
        pieces.push(insertion.text);
    };
    for hook in host.hooks() {
        let root = parse(path, &text)?;
        let entry = group(host, hook, program);
        let list = format!("\"{}\": [\n{}\n]", hook.event, indented(&entry));
        let insertion = match root.get("hooks") {
            None => {
                let part = format!("\"hooks\": {{\n{}\n}}", indented(&list));
                jsonc::append(&text, &root, &part)
            }
            Some(hooks) => match hooks.get(hook.event) {
                None => jsonc::append(&text, hooks, &list),
                Some(groups) => jsonc::append(&text, groups, &entry),
            },
        };
        add(&mut text, insertion);
    }
    parse(path, &text)?;
    Ok((text, pieces))
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| format!("  {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The text as it was without the hooks; `None` where there was no file.
fn without_hooks(
    host: Host,
    path: &Path,
    now: &str,
    known: Option<&Known>,
) -> Result<Option<String>, Error> {
    if let Some(known) = known.filter(|known| known.after == digest(now)) {
        return Ok(known.original.clone());
    }
    if now
        .trim_matches(['\u{feff}', ' ', '\n', '\r', '\t'])
        .is_empty()
    {
        return Ok(Some(now.to_owned()));
    }
    let root = parse(path, now)?;
    if own_commands(host, &root).is_empty() {
        return Ok(Some(now.to_owned()));
    }
    let by_pieces = known.and_then(|known| {
        let mut text = now.to_owned();
        for piece in known.pieces.iter().rev() {
            let mut places = text.match_indices(piece.as_str());
            let (at, _) = places.next().filter(|_| places.next().is_none())?;
            text.replace_range(at..at + piece.len(), "");
        }
        let root = parse(path, &text).ok()?;
        own_commands(host, &root).is_empty().then_some(text)
    });
    let text = match by_pieces {
        Some(text) => text,
        None => by_structure(host, path, now)?,
    };
    let was_none = known.is_some_and(|known| known.original.is_none());
    let is_empty = parse(path, &text)?.members().is_some_and(<[_]>::is_empty);
    Ok((!(was_none && is_empty)).then_some(text))
}

/// Takes out one handler after the other, and what becomes empty by it.
fn by_structure(host: Host, path: &Path, now: &str) -> Result<String, Error> {
    let mut text = now.to_owned();
    loop {
        let root = parse(path, &text)?;
        let Some(span) = first_own(host, &text, &root) else {
            return Ok(text);
        };
        text.replace_range(span, "");
    }
}

/// The span of the first handler of ours, or of what holds nothing else.
fn first_own(host: Host, text: &str, root: &Node) -> Option<std::ops::Range<usize>> {
    let members = root.members()?;
    let at = members.iter().position(|member| member.key == "hooks")?;
    let hooks = &members[at].value;
    let events = hooks.members()?;
    for (e, event) in events.iter().enumerate() {
        let Some((g, h, _)) = own_of_event(host, &event.value).next() else {
            continue;
        };
        let groups = event.value.items()?;
        let handlers = groups[g].get("hooks")?;
        return Some(if handlers.items()?.len() > 1 {
            jsonc::removal(text, handlers, h)
        } else if groups.len() > 1 {
            jsonc::removal(text, &event.value, g)
        } else if events.len() > 1 {
            jsonc::removal(text, hooks, e)
        } else {
            jsonc::removal(text, root, at)
        });
    }
    None
}

/// Our handlers in an event's list: the number of the group, of the handler, and its command.
fn own_of_event(host: Host, groups: &Node) -> impl Iterator<Item = (usize, usize, &str)> {
    let groups = groups.items().unwrap_or_default().iter().enumerate();
    groups.flat_map(move |(g, group)| {
        let handlers = group.get("hooks").and_then(Node::items).unwrap_or_default();
        let commands = handlers.iter().enumerate();
        commands.filter_map(move |(h, handler)| {
            let command = handler.get("command")?.text()?;
            is_own(host, command).then_some((g, h, command))
        })
    })
}

fn own_commands(host: Host, root: &Node) -> Vec<String> {
    let events = root
        .get("hooks")
        .and_then(Node::members)
        .unwrap_or_default();
    let own = events
        .iter()
        .flat_map(|event| own_of_event(host, &event.value));
    own.map(|(_, _, command)| command.to_owned()).collect()
}

fn digest(text: &str) -> String {
    format!("{:x}", Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests;
