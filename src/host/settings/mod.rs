//! Entries of this program in the settings files of agent hosts.
//!
//! An [`Entry`] is found in a text, added to it, and removed again; the rest of the text keeps every byte. A
//! file and directories that were created for it are removed with it.
//!
//! A file in another format is never changed, nor is an entry of somebody else. A user's link is followed, not
//! replaced; a link in a project is refused. No copy of a file is kept, because hosts store secrets in some.

pub(super) mod claude_code;
mod file;
pub(super) mod hooks;
pub(super) mod servers;

use std::io;
use std::path::PathBuf;

use serde::Serialize;

use claude_code::Permission;
use file::{Settings, read_in};

use crate::host::Host;
use crate::model::error::{Explain, Explanation, Kind, of_io};
use crate::store;
use memctl_files::SharedFile;

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
    /// The permission for a tool of Claude Code: `LESSON_TOOL` or `CORRECT_TOOL`.
    Permission(&'static str),
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

/// File of an item, and what belongs in it.
type FileEntry<'a> = (SharedFile, Box<dyn Entry + 'a>);

impl Place {
    /// Returns the status of the item.
    pub fn status(&self) -> Result<InstallationStatus, Error> {
        match self.item {
            Item::Hooks => Ok(hooks::status(self)?.standing),
            Item::Server => Ok(servers::status(self)?.standing),
            Item::StatusLine => {
                let line = claude_code::Line(self.start.line());
                read_in(&self.settings, |text| line.find(text))
            }
            Item::Permission(tool) => read_in(&self.settings, |text| Permission(tool).find(text)),
        }
    }

    /// Adds the item, or replaces an outdated one. Returns `false` if it is there.
    pub fn install(&self) -> Result<bool, Error> {
        let entries = self.entries()?;
        // An item that cannot be installed whole is not begun.
        for (file, entry) in &entries {
            read_in(file, |text| entry.find(text))?;
            if let Some(path) = entry.obstacle(file) {
                let what = OF_ANOTHER.to_owned();
                return Err(Error::Unsuitable { path, what });
            }
        }
        let mut changed = false;
        for (file, entry) in &entries {
            if self.in_file(file).add(&**entry)? {
                changed = true;
                if entry.is_script() {
                    let made = file.make_executable();
                    made.map_err(|source| Error::unreadable(file, source))?;
                }
            }
        }
        Ok(changed)
    }

    /// Returns `true` if there is something of the item that [`Place::remove`] takes out.
    pub fn is_there(&self) -> Result<bool, Error> {
        let mut is_there = false;
        for (file, entry) in &self.entries()? {
            is_there |= self.in_file(file).has(&**entry)?;
        }
        Ok(is_there)
    }

    /// Takes the item out. Returns `false` if it is not there.
    pub fn remove(&self) -> Result<bool, Error> {
        let mut changed = false;
        // The first file was installed with the directories, which are empty at the end.
        for (file, entry) in self.entries()?.iter().rev() {
            changed |= self.in_file(file).remove(&**entry)?;
        }
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

    /// Returns the files of the item, and what belongs in each.
    fn entries(&self) -> Result<Vec<FileEntry<'_>>, Error> {
        let entry: Box<dyn Entry + '_> = match self.item {
            Item::Hooks => {
                let entries = hooks::entries(self, &self.start)?.into_iter();
                let entries =
                    entries.map(|(file, hooks)| (file, Box::new(hooks) as Box<dyn Entry>));
                return Ok(entries.collect());
            }
            Item::Server => Box::new(servers::Server(self)),
            Item::StatusLine => Box::new(claude_code::Line(self.start.line())),
            Item::Permission(tool) => Box::new(Permission(tool)),
        };
        Ok(vec![(self.settings.clone(), entry)])
    }

    fn in_file<'a>(&'a self, file: &'a SharedFile) -> Settings<'a> {
        let state_dir = self.state_dir.as_deref();
        Settings { file, state_dir }
    }
}

/// Fault of a file that has nothing but another hook.
const OF_ANOTHER: &str = "is a hook of another program";

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
    /// Name in what is kept about the file.
    fn name(&self) -> &'static str;

    /// Finds the entry in a text: as it would be added, in another form of this program, or not at all. An
    /// entry of somebody else in its place is a fault.
    fn find(&self, text: &str) -> Result<InstallationStatus, Fault>;

    /// Returns a text without the entry with it.
    fn add(&self, text: &str) -> Result<String, Fault>;

    /// Returns a text without the entry, at any place.
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

    /// Returns a file that the agent host reads instead of this one, so that this one cannot be added.
    fn obstacle(&self, _file: &SharedFile) -> Option<PathBuf> {
        None
    }

    /// Returns `true` if the entry may be removed from this text. `is_kept` means that this program has added one.
    fn is_ours(&self, _text: &str, _is_kept: bool) -> bool {
        true
    }
}
