//! Insertion of hooks into the text of a settings file, and their removal.
//!
//! Everything else keeps every byte. If the inserted pieces have changed since, the handlers that
//! call this program are removed by their position in the JSON.

use std::path::Path;

use serde_json::json;

use super::super::jsonc::{self, Node};
use super::super::settings_piece::{self, is_blank};
use super::super::{Form, Hook, Host};
use super::error::Error;
use super::settings_file::{Known, digest};

/// Parses settings, and checks that they can contain hooks.
pub(super) fn parse(path: &Path, text: &str) -> Result<Node, Error> {
    let root = settings_piece::parse(path, text)?;
    let shape = |what: &str| Error::Shape {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    if let Some(hooks) = root.get("hooks") {
        let Some(events) = hooks.members() else {
            return Err(shape("`hooks` that is not an object"));
        };
        if let Some(event) = events.iter().find(|event| event.value.items().is_none()) {
            return Err(shape(&format!(
                "`hooks.{}` that is not an array",
                event.key
            )));
        }
    }
    Ok(root)
}

/// Argument of hooks that write nothing.
const READ_ONLY: &str = " --read-only";

/// Returns the shell command of a hook.
pub(super) fn command(host: Host, program: &str, read_only: bool) -> String {
    let program = quoted(program);
    let mode = if read_only { READ_ONLY } else { "" };
    format!("{program} hook {}{mode}", host.name())
}

/// Returns a program as a word of a shell.
pub(crate) fn quoted(program: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if program.chars().all(plain) {
        program.to_owned()
    } else {
        format!("'{}'", program.replace('\'', r"'\''"))
    }
}

fn is_own(host: Host, command: &str) -> bool {
    let call = format!(" hook {}", host.name());
    let command = command.trim_end();
    command
        .strip_suffix(READ_ONLY)
        .unwrap_or(command)
        .strip_suffix(&call)
        .is_some_and(|program| program.contains("memctl"))
}

/// Returns an entry for an event's list, indented by two spaces per level.
fn group(host: Host, hook: &Hook, command: &str) -> String {
    let timeout = match host {
        // Gemini CLI takes milliseconds, and requires a name.
        Host::Gemini => hook.seconds * 1_000,
        _ => hook.seconds,
    };
    let mut handler = json!({"type": "command", "command": command});
    if host == Host::Gemini {
        handler["name"] = json!("memctl");
    }
    handler["timeout"] = json!(timeout);
    if host.form() == Form::Handlers {
        return serde_json::to_string_pretty(&handler).unwrap_or_default();
    }
    let mut group = json!({});
    if hook.of_tools {
        group["matcher"] = json!("*");
    }
    group["hooks"] = json!([handler]);
    serde_json::to_string_pretty(&group).unwrap_or_default()
}

/// Returns the text with the hooks, and the inserted pieces.
pub(super) fn with_hooks(
    host: Host,
    path: &Path,
    original: Option<&str>,
    command: &str,
) -> Result<(String, Vec<String>), Error> {
    let original = original.filter(|text| !is_blank(text));
    let mut text = original.unwrap_or("{}\n").to_owned();
    let mut pieces = Vec::new();
    let mut add = |text: &mut String, insertion: jsonc::Insertion| {
        text.insert_str(insertion.at, &insertion.text);
        pieces.push(insertion.text);
    };
    if host.form() == Form::Handlers {
        let root = parse(path, &text)?;
        if root.get("version").is_none() {
            let insertion = jsonc::append(&text, &root, "\"version\": 1");
            add(&mut text, insertion);
        }
    }
    for hook in host.hooks() {
        let root = parse(path, &text)?;
        let entry = group(host, hook, command);
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

/// Returns the text without the hooks; `None` if there was no file before.
pub(super) fn without_hooks(
    host: Host,
    path: &Path,
    now: &str,
    known: Option<&Known>,
) -> Result<Option<String>, Error> {
    if let Some(known) = known.filter(|known| known.after == digest(now)) {
        return Ok(known.original.clone());
    }
    if is_blank(now) {
        return Ok(Some(now.to_owned()));
    }
    let root = parse(path, now)?;
    if own_commands(host, &root).is_empty() {
        return Ok(Some(now.to_owned()));
    }
    let by_pieces = known.and_then(|known| {
        let mut text = now.to_owned();
        for piece in known.pieces.iter().rev() {
            text = settings_piece::without(&text, piece)?;
        }
        let root = parse(path, &text).ok()?;
        own_commands(host, &root).is_empty().then_some(text)
    });
    let text = match by_pieces {
        Some(text) => text,
        None => by_structure(host, path, now)?,
    };
    let was_none = known.is_some_and(|known| known.original.is_none());
    let is_ours = |key: &str| host.form() == Form::Handlers && key == "version";
    let root = parse(path, &text)?;
    let members = root.members().unwrap_or_default();
    let is_empty = members.iter().all(|member| is_ours(&member.key));
    Ok((!(was_none && is_empty)).then_some(text))
}

/// Removes the handlers one by one, together with lists and objects that become empty.
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

/// Returns the span of our first handler, or of its parent if that contains nothing else.
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
        let handlers = groups[g].get("hooks").filter(|_| h.is_some());
        let others = handlers.and_then(Node::items).map_or(0, <[_]>::len);
        return Some(
            if let (Some(handlers), Some(h), 2..) = (handlers, h, others) {
                jsonc::removal(text, handlers, h)
            } else if groups.len() > 1 {
                jsonc::removal(text, &event.value, g)
            } else if events.len() > 1 {
                jsonc::removal(text, hooks, e)
            } else {
                jsonc::removal(text, root, at)
            },
        );
    }
    None
}

/// Returns our handlers in an event's list: index of the group, index of the handler in it (`None` if the
/// list has handlers instead of groups), and command.
pub(super) fn own_of_event(
    host: Host,
    groups: &Node,
) -> impl Iterator<Item = (usize, Option<usize>, &str)> {
    let own = move |handler: &'_ Node| {
        let command = handler.get("command").and_then(Node::text);
        command.is_some_and(|command| is_own(host, command))
    };
    let groups = groups.items().unwrap_or_default().iter().enumerate();
    groups.flat_map(move |(g, group)| {
        let handlers = group.get("hooks").and_then(Node::items).unwrap_or_default();
        let of_group = handlers.iter().enumerate().map(|(h, one)| (Some(h), one));
        let alone = (host.form() == Form::Handlers).then_some((None, group));
        of_group
            .chain(alone)
            .filter(move |(_, handler)| own(handler))
            .filter_map(move |(h, handler)| Some((g, h, handler.get("command")?.text()?)))
    })
}

pub(super) fn own_commands(host: Host, root: &Node) -> Vec<String> {
    let events = root
        .get("hooks")
        .and_then(Node::members)
        .unwrap_or_default();
    let own = events
        .iter()
        .flat_map(|event| own_of_event(host, &event.value));
    own.map(|(_, _, command)| command.to_owned()).collect()
}
