//! Version control: what git knows of the directory that a workspace lies in.
//!
//! Asked through the `git` that is installed, so that whatever git is told by its settings and its
//! environment counts here, too. Where there is no git, or no repository, there is nothing to know.
//!
//! Deliberately absent: commits. Only a person makes them.

mod sides;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::platform::named;

pub use sides::{Asked, Sides};

/// Why git did not say what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be started.
    #[error("cannot start `git`")]
    Start(#[source] std::io::Error),
    /// It refused.
    #[error("`git {command}` failed: {said}")]
    Failed {
        /// What was asked.
        command: String,
        /// What it said.
        said: String,
    },
    /// The version of a side that is being merged cannot be found.
    #[error("git does not tell which commit {0} is")]
    UnknownSide(&'static str),
}

/// A repository with files to work on.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The directory in which git is started.
    top: PathBuf,
    /// Whether the variables count by which git tells its hooks where the repository is.
    by_variables: bool,
}

impl Repository {
    /// The repository that a directory lies in; `None` where there is none, or no git.
    pub fn of(directory: &Path) -> Option<Self> {
        // What git tells a hook is seen from the top, and need not be right from elsewhere.
        [true, false].into_iter().find_map(|by_variables| {
            let top = directory.to_owned();
            let here = Self { top, by_variables };
            let top = PathBuf::from(here.ask(&["rev-parse", "--show-toplevel"]).ok()?);
            named::is_dir(&top).then_some(Self { top, by_variables })
        })
    }

    /// Its uppermost directory.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// A setting; `None` where it is not set.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.ask(&["config", "--get", name]).ok()
    }

    /// Sets a setting of this repository alone.
    ///
    /// # Errors
    ///
    /// That git refused.
    pub fn set(&self, name: &str, value: &str) -> Result<(), Error> {
        self.ask(&["config", "--local", name, value]).map(drop)
    }

    /// Where a file of the repository itself lies, such as `hooks`.
    pub fn inside(&self, name: &str) -> Option<PathBuf> {
        let path = self.ask(&["rev-parse", "--git-path", name]).ok()?;
        Some(self.top.join(path))
    }

    /// The value of an attribute of a path.
    pub fn attribute(&self, name: &str, path: &Path) -> Option<String> {
        let path = path.to_str()?;
        let said = self.ask(&["check-attr", name, "--", path]).ok()?;
        said.rsplit(": ").next().map(str::to_owned)
    }

    /// Whether something goes on that consists of several steps, such as a rebase.
    pub fn is_busy(&self) -> bool {
        ["rebase-merge", "rebase-apply", "sequencer"]
            .into_iter()
            .any(|name| self.inside(name).is_some_and(|path| named::exists(&path)))
    }

    /// Joins three files line by line into the first of them, with the usual marks where both sides have
    /// changed the same. Answers whether there are any.
    ///
    /// # Errors
    ///
    /// That git refused.
    pub fn merge_file(&self, ours: &Path, base: &Path, theirs: &Path) -> Result<bool, Error> {
        let mut command = self.command();
        command.args(["merge-file", "-L", "ours", "-L", "base", "-L", "theirs"]);
        let output = command
            .args([ours, base, theirs])
            .output()
            .map_err(Error::Start)?;
        match output.status.code() {
            Some(0) => Ok(false),
            Some(1..128) => Ok(true),
            _ => Err(failed("merge-file", &output)),
        }
    }

    /// The one line that git answers with.
    fn ask(&self, args: &[&str]) -> Result<String, Error> {
        let bytes = self.bytes(args)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    fn bytes(&self, args: &[&str]) -> Result<Vec<u8>, Error> {
        let output = self.command().args(args).output().map_err(Error::Start)?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(failed(&args.join(" "), &output))
        }
    }

    /// The same with something to read.
    fn bytes_of(&self, args: &[&str], input: Vec<u8>) -> Result<Vec<u8>, Error> {
        let mut command = self.command();
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(Error::Start)?;
        let stdin = child.stdin.take();
        // Whoever writes and reads in turn waits for ever once both pipes are full.
        let writer = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
        let output = child.wait_with_output().map_err(Error::Start)?;
        drop(writer.join());
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(failed(&args.join(" "), &output))
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command
            .current_dir(&self.top)
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        if !self.by_variables {
            for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
                command.env_remove(name);
            }
        }
        // What is asked here writes nothing that another process could be in the way of.
        command.env("GIT_OPTIONAL_LOCKS", "0");
        command
    }
}

fn failed(command: &str, output: &Output) -> Error {
    let said = String::from_utf8_lossy(&output.stderr);
    Error::Failed {
        command: command.to_owned(),
        said: said.lines().next().unwrap_or("it said nothing").to_owned(),
    }
}
