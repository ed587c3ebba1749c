//! Entries of this program in the settings files of agent hosts.
//!
//! An [`Entry`] is found in a text, added to it, and taken out again; the rest of the text keeps every byte.
//! What a change replaced, and what stands there since, is kept outside the file: where that stands still, the
//! removal restores the text. Else the entry is taken out by its place, and what is kept about entries that
//! were added later then leads to the text before both. A file and directories that were
//! created for it are removed with it.
//!
//! A file in another format is never changed, nor is an entry of somebody else. A link of the user is
//! followed, not replaced; one of a project is refused. No copy of a file is kept: hosts store secrets in some.
//!
//! Most settings are JSON with comments and trailing commas. Reading, layout and removal are those of
//! `jsonc-parser`; a text that it would not write as it read it is refused.

pub(super) mod claude_code;
pub(super) mod codex;
pub(super) mod hooks;
pub(super) mod servers;

use std::io;
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::host::Host;
use crate::model::error::{Explain, Explanation, Kind, of_io};
use crate::store;
use memctl_files::{SharedFile, hex, named};

/// Maximum size of a settings file: 64 MiB.
const LONGEST: u64 = 64 << 20;

/// Reason why settings were not read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// Path of the settings file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The settings have another format or another shape, and so are left unchanged.
    #[error("`{}` {what}; nothing was changed", path.display())]
    Unsuitable {
        /// Path of the settings file.
        path: PathBuf,
        /// Description of the obstacle, to follow the path.
        what: String,
    },
    /// The settings cannot be written.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    fn unreadable(file: &SharedFile, source: io::Error) -> Self {
        Self::Unreadable {
            path: file.path().to_owned(),
            source,
        }
    }
}

impl Explain for Error {
    fn explain(&self) -> Explanation {
        let (kind, path) = match self {
            Self::Store(error) => return error.explain(),
            Self::Unreadable { path, source } => (of_io(source), path),
            Self::Unsuitable { path, .. } => (Kind::Input, path),
        };
        let hint = format!("repair `{}` and try again", path.display());
        (kind, Some(hint))
    }
}

/// Items that this program enters in the settings of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// Hooks, for the events of sessions.
    Hooks,
    /// The MCP server.
    Server,
    /// The status line of Claude Code.
    StatusLine,
    /// The permission for the one tool by which Claude Code records lessons.
    Permission,
}

/// Command of a hook, a server or a status line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Start {
    /// Program.
    pub command: String,
    /// Arguments.
    pub args: Vec<String>,
}

impl Start {
    /// Returns the command as a line of a shell.
    fn line(&self) -> String {
        let mut words = vec![quoted(&self.command)];
        words.extend_from_slice(&self.args);
        words.join(" ")
    }
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

/// Item in a settings file of a host.
#[derive(Debug, Clone)]
pub struct Place {
    /// Item.
    pub item: Item,
    /// Agent host.
    pub host: Host,
    /// Settings file; it may not exist. For scripts, their directory.
    pub settings: SharedFile,
    /// Directory for what is kept about the changes; `None` keeps nothing.
    pub state_dir: Option<PathBuf>,
    /// Command that is entered.
    pub start: Start,
}

/// Result of an installation or removal.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Installed<T> {
    /// Name of the agent host.
    pub host: &'static str,
    /// Path of the settings file.
    pub settings: PathBuf,
    /// `true` if the file was changed.
    pub changed: bool,
    /// Outcome of an installation.
    #[serde(flatten)]
    pub of: T,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Item in a settings file, as it was found.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Found<T> {
    /// Name of the agent host.
    pub host: &'static str,
    /// Path of the settings file.
    pub settings: PathBuf,
    /// Installation status.
    pub standing: InstallationStatus,
    /// State of an installation.
    #[serde(flatten)]
    pub of: T,
    /// Reason why the settings cannot be read; `None` if they can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A file of an item, and what belongs in it.
type Belongs<'a> = (&'a SharedFile, &'a dyn Entry);

impl Place {
    /// Returns the status of the item.
    pub fn status(&self) -> Result<InstallationStatus, Error> {
        match self.item {
            Item::Hooks => Ok(hooks::status(self)?.standing),
            Item::Server => Ok(servers::status(self)?.standing),
            Item::StatusLine => read_in(&self.settings, |text| claude_code::Line("").find(text)),
            Item::Permission => read_in(&self.settings, |text| claude_code::Permission.find(text)),
        }
    }

    /// Adds the item, or replaces an outdated one. Returns `false` if it is there.
    pub fn install(&self) -> Result<bool, Error> {
        let mut changed = false;
        self.with_entries(&mut |entries| {
            // An item that cannot be installed whole is not begun.
            for (file, entry) in entries {
                read_in(file, |text| entry.find(text))?;
                if let Some(path) = entry.obstacle(file) {
                    let what = OF_ANOTHER.to_owned();
                    return Err(Error::Unsuitable { path, what });
                }
            }
            for (file, entry) in entries {
                if self.in_file(file).add(*entry)? {
                    changed = true;
                    if entry.is_script() {
                        let made = file.make_executable();
                        made.map_err(|source| Error::unreadable(file, source))?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(changed)
    }

    /// Takes the item out. Returns `false` if it is not there.
    pub fn remove(&self) -> Result<bool, Error> {
        let mut changed = false;
        self.with_entries(&mut |entries| {
            // The first file was installed with the directories, which are empty at the end.
            for (file, entry) in entries.iter().rev() {
                changed |= self.in_file(file).remove(*entry)?;
            }
            Ok(())
        })?;
        Ok(changed)
    }

    /// Describes an installation or removal.
    pub fn done<T>(&self, changed: bool, of: T, notes: Vec<String>) -> Installed<T> {
        Installed {
            host: self.host.name(),
            settings: self.settings.path().to_owned(),
            changed,
            of,
            notes,
        }
    }

    /// Describes what was found; without it, why the settings cannot be read.
    pub fn found<T: Default>(&self, found: Result<(InstallationStatus, T), String>) -> Found<T> {
        let (found, problem) = match found {
            Ok(found) => (found, None),
            Err(problem) => ((InstallationStatus::Broken, T::default()), Some(problem)),
        };
        Found {
            host: self.host.name(),
            settings: self.settings.path().to_owned(),
            standing: found.0,
            of: found.1,
            problem,
        }
    }

    /// Calls a function with the files of the item, and what belongs in each.
    fn with_entries(
        &self,
        with: &mut dyn FnMut(&[Belongs<'_>]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let file = &self.settings;
        match self.item {
            Item::Hooks => {
                let entries = hooks::entries(self, &self.start)?;
                let entries = entries
                    .iter()
                    .map(|(file, hooks)| (file, hooks as &dyn Entry));
                with(&entries.collect::<Vec<_>>())
            }
            Item::Server => with(&[(file, &servers::Server(self))]),
            Item::StatusLine => with(&[(file, &claude_code::Line(&self.start.line()))]),
            Item::Permission => with(&[(file, &claude_code::Permission)]),
        }
    }

    fn in_file<'a>(&'a self, file: &'a SharedFile) -> Settings<'a> {
        let state_dir = self.state_dir.as_deref();
        Settings { file, state_dir }
    }
}

/// Fault of a file that has nothing but another hook.
const OF_ANOTHER: &str = "is a hook of another program";

/// Names of the entries: of the directories with what is kept about them.
const NAMES: [&str; 4] = ["hooks", "mcp", "statusline", "permission"];

/// Problem of a text, to follow its path: `has …`, `is not …`.
type Fault = String;

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

/// Entry of this program in a settings file. An absent file has an empty text.
trait Entry {
    /// Name of the directory with what is kept about its changes.
    fn name(&self) -> &'static str;

    /// Finds the entry in a text: as it would be added, in another form of this program, or not at all. An
    /// entry of somebody else in its place is a fault.
    fn find(&self, text: &str) -> Result<InstallationStatus, Fault>;

    /// Returns a text without the entry with it.
    fn add(&self, text: &str) -> Result<String, Fault>;

    /// Returns a text without the entry, wherever it stands.
    fn take_out(&self, text: &str) -> Result<String, Fault>;

    /// Returns `true` if nothing is left in a text that this program has created.
    fn is_empty(&self, text: &str) -> bool {
        text.trim().is_empty()
    }

    /// Returns `true` if the file has nothing but the entry, ever.
    fn is_whole_file(&self) -> bool {
        false
    }

    /// Returns `true` if the file is a script, which the agent host executes.
    fn is_script(&self) -> bool {
        false
    }

    /// Returns a file that stands for another in the agent host, so that this one cannot be added.
    fn obstacle(&self, _file: &SharedFile) -> Option<PathBuf> {
        None
    }

    /// Returns `true` if the entry may be taken out of this text. `is_kept` says that this program has added one.
    fn is_ours(&self, _text: &str, _is_kept: bool) -> bool {
        true
    }
}

/// Facts kept about a changed file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    path: PathBuf,
    /// Text that was replaced; mostly empty.
    was: String,
    /// Text that is there since.
    is: String,
    /// `true` if the file was created.
    made_file: bool,
    /// Directories created for the file, innermost first.
    made: Vec<PathBuf>,
}

impl Kept {
    /// Sets the text that differs between two.
    fn set_change(&mut self, before: &str, after: &str) {
        let same = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
            let same = pairs.take_while(|(a, b)| a == b);
            same.map(|(a, _)| a.len_utf8()).sum()
        };
        let start = same(&mut before.chars().zip(after.chars()));
        let (before, after) = (&before[start..], &after[start..]);
        let end = same(&mut before.chars().rev().zip(after.chars().rev()));
        before[..before.len() - end].clone_into(&mut self.was);
        after[..after.len() - end].clone_into(&mut self.is);
    }

    /// Returns a text as it was before the change; `None` unless the new text stands there once.
    fn undone(&self, text: &str) -> Option<String> {
        let mut places = text.match_indices(&self.is);
        let (at, _) = places.next().filter(|_| places.next().is_none())?;
        let mut text = text.to_owned();
        text.replace_range(at..at + self.is.len(), &self.was);
        Some(text)
    }
}

/// A settings file, and the directory with what is kept about it; `None` keeps nothing.
#[derive(Debug, Clone, Copy)]
struct Settings<'a> {
    file: &'a SharedFile,
    state_dir: Option<&'a Path>,
}

impl Settings<'_> {
    /// Adds an entry, or replaces an outdated one. Returns `false` if it is there.
    fn add(self, entry: &dyn Entry) -> Result<bool, Error> {
        let now = read(self.file)?;
        let mut text = now.clone().unwrap_or_default();
        let found = entry.find(&text).map_err(|fault| self.fault(fault))?;
        if found == InstallationStatus::Installed {
            return Ok(false);
        }
        let mut kept = Kept::default();
        if found != InstallationStatus::Absent {
            kept = self.kept(entry.name()).unwrap_or_default();
            text = self.without(entry, &text, Some(&kept))?;
        }
        let with = entry.add(&text).map_err(|fault| self.fault(fault))?;
        if entry.find(&with) != Ok(InstallationStatus::Installed) {
            return Err(self.fault("has a form that cannot be extended".to_owned()));
        }
        self.file.path().clone_into(&mut kept.path);
        kept.set_change(&text, &with);
        kept.made_file |= now.is_none();
        let made = self.file.missing_parents();
        kept.made.splice(0..0, made);
        if let Some(state) = self.state(entry.name()) {
            keep(&state, &kept)?;
        }
        self.replace(&with)?;
        Ok(true)
    }

    /// Takes an entry out. Returns `false` if it is not there.
    fn remove(self, entry: &dyn Entry) -> Result<bool, Error> {
        let kept = self.kept(entry.name());
        let now = read(self.file)?.unwrap_or_default();
        let mut is_there = entry.is_ours(&now, kept.is_some());
        if is_there {
            let found = entry.find(&now).map_err(|fault| self.fault(fault))?;
            is_there = found != InstallationStatus::Absent;
        }
        if is_there {
            let text = self.without(entry, &now, kept.as_ref())?;
            let kept = kept.unwrap_or_default();
            self.keep_later(entry, &now, &kept)?;
            let is_ours = kept.made_file || entry.is_whole_file();
            if is_ours && entry.is_empty(&text) {
                let removed = self.file.remove();
                removed.map_err(|source| Error::unreadable(self.file, source))?;
                // A directory with other files stays.
                self.file.remove_empty(&kept.made);
            } else {
                self.replace(&text)?;
            }
        }
        if let Some(state) = self.state(entry.name()) {
            drop(named::remove(&state));
        }
        Ok(is_there)
    }

    /// Makes what is kept about entries that were added after this one lead to the text before all of
    /// them. Does nothing if this one is the last, or if the text before it cannot be restored.
    fn keep_later(self, entry: &dyn Entry, now: &str, kept: &Kept) -> Result<(), Error> {
        let is_gone = |text: &String| entry.find(text) == Ok(InstallationStatus::Absent);
        let mut others: Vec<(&str, Kept)> = NAMES
            .into_iter()
            .filter(|name| *name != entry.name())
            .filter_map(|name| Some((name, self.kept(name)?)))
            .collect();
        // The later entries with the text that has them, the newest first.
        let mut later: Vec<(&str, Kept, String)> = Vec::new();
        let mut text = now.to_owned();
        let mut before = loop {
            if let Some(before) = kept.undone(&text).filter(is_gone) {
                break before;
            }
            let undone = others.iter().enumerate();
            let mut undone = undone.filter_map(|(at, (_, other))| Some((at, other.undone(&text)?)));
            let Some((at, without)) = undone.find(|(_, text)| !is_gone(text)) else {
                return Ok(());
            };
            let (name, other) = others.remove(at);
            later.push((name, other, std::mem::replace(&mut text, without)));
        };
        let last = later.len().saturating_sub(1);
        for (at, (name, mut other, with)) in later.into_iter().enumerate().rev() {
            let after = entry.take_out(&with).map_err(|fault| self.fault(fault))?;
            other.set_change(&before, &after);
            if at == last {
                other.made_file |= kept.made_file;
                other.made.extend(kept.made.iter().cloned());
            }
            if let Some(state) = self.state(name) {
                keep(&state, &other)?;
            }
            before = after;
        }
        Ok(())
    }

    fn without(self, entry: &dyn Entry, now: &str, kept: Option<&Kept>) -> Result<String, Error> {
        let is_gone = |text: &String| entry.find(text) == Ok(InstallationStatus::Absent);
        match kept.and_then(|kept| kept.undone(now)).filter(is_gone) {
            Some(text) => Ok(text),
            None => entry.take_out(now).map_err(|fault| self.fault(fault)),
        }
    }

    fn replace(self, text: &str) -> Result<(), store::Error> {
        let replaced = self.file.replace(text.as_bytes());
        replaced.map_err(store::Error::io("write", self.file.path()))
    }

    fn fault(self, what: Fault) -> Error {
        let path = self.file.path().to_owned();
        Error::Unsuitable { path, what }
    }

    /// Path of what is kept about the file.
    fn state(self, of: &str) -> Option<PathBuf> {
        let path = self.file.path().to_string_lossy();
        let name = hex(&Sha256::digest(path.as_bytes()));
        let directory = self.state_dir?.join(of);
        Some(directory.join(format!("{}.json", &name[..24])))
    }

    fn kept(self, of: &str) -> Option<Kept> {
        let text = named::read(&self.state(of)?, LONGEST).ok()?;
        let kept: Kept = serde_json::from_slice(&text).ok()?;
        (kept.path == self.file.path()).then_some(kept)
    }
}

/// Writes what is kept about a file.
fn keep(state: &Path, kept: &Kept) -> Result<(), store::Error> {
    let json = serde_json::to_vec_pretty(kept)?;
    if let Some(above) = state.parent() {
        named::create_dir(above).map_err(store::Error::io("create", above))?;
    }
    named::replace(state, &json).map_err(store::Error::io("write", state))
}

/// Reads a settings file; `None` if it does not exist.
fn read(file: &SharedFile) -> Result<Option<String>, Error> {
    let text = file.read_text(LONGEST);
    text.map_err(|source| Error::unreadable(file, source))
}

/// Reads from a settings file what `find` finds in its text.
fn read_in<T>(file: &SharedFile, find: impl FnOnce(&str) -> Result<T, Fault>) -> Result<T, Error> {
    let text = read(file)?.unwrap_or_default();
    find(&text).map_err(|what| Error::Unsuitable {
        path: file.path().to_owned(),
        what,
    })
}

/// JSON with comments and trailing commas, without the other extensions of JSON5.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Settings: a text with one object.
pub(super) struct Document {
    /// Byte order mark, if the text has one.
    mark: &'static str,
    root: CstRootNode,
    /// The object.
    pub(super) object: CstObject,
}

impl Document {
    /// Reads a text. One without a value is an empty object.
    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        let (mark, body) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(body) => ("\u{feff}", body),
            None => ("", text),
        };
        let body = if body.trim().is_empty() { "{}\n" } else { body };
        let root = CstRootNode::parse(body, &OPTIONS).map_err(|error| {
            let (line, kind) = (error.line_display(), error.kind());
            format!("is not JSON: line {line}: {kind}")
        })?;
        if root.to_string() != body {
            return Err("has a form that cannot be extended".to_owned());
        }
        match root.object_value() {
            Some(object) => Ok(Self { mark, root, object }),
            None => Err("has a value that is not an object".to_owned()),
        }
    }

    /// The text, as it was apart from the changes.
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.mark, self.root)
    }
}

/// Member of this name; the last of duplicates, as JSON parsers take it.
pub(super) fn member(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let named = |one: &CstObjectProp| one.decoded_name().as_deref() == Some(name);
    object.properties().into_iter().rev().find(named)
}

/// Member that has to be an object; `None` if there is none.
pub(super) fn object_in(object: &CstObject, name: &str) -> Result<Option<CstObject>, Fault> {
    match member(object, name) {
        None => Ok(None),
        Some(found) => match found.object_value() {
            Some(object) => Ok(Some(object)),
            None => Err(format!("has `{name}` that is not an object")),
        },
    }
}

/// Member that has to be an object, which is added if there is none.
pub(super) fn object_for(object: &CstObject, name: &str) -> Result<CstObject, Fault> {
    if let Some(found) = object_in(object, name)? {
        return Ok(found);
    }
    let added = object.append(name, CstInputValue::Object(Vec::new()));
    let added = added.object_value();
    added.ok_or_else(|| "has a form that cannot be extended".to_owned())
}

/// String of a member.
pub(super) fn text_in(object: &CstObject, name: &str) -> Option<String> {
    let text = member(object, name)?.value()?.as_string_lit()?;
    text.decoded_value().ok()
}

/// Strings in the list of a member.
pub(super) fn texts_in(object: &CstObject, name: &str) -> Vec<String> {
    let list = member(object, name).and_then(|member| member.array_value());
    let items = list.map(|list| list.elements()).unwrap_or_default();
    let text = items.iter().filter_map(CstNode::as_string_lit);
    text.filter_map(|text| text.decoded_value().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_their_line() {
        let check = |text: &str, line: usize, reason: &str| {
            let fault = Document::read(text).err().unwrap();
            let expected = format!("line {line}: ");
            assert!(
                fault.contains(&expected) && fault.contains(reason),
                "{text}: {fault}"
            );
        };
        check("{", 1, "Unterminated object");
        check("{\n \"a\": nope}", 2, "Unexpected token");
        check("{} x", 1, "more than one JSON value");
        check("{ /* x", 1, "comment");
        check("{\"a\" 1}", 1, "colon");
        check("{\"a\\", 1, "Unterminated");
        check(&"[".repeat(1_000), 1, "nesting");
        check("{\n \"a\": 1\n \"b\": 2}", 2, "comma");
    }
}
