//! Git queries about the repository of a workspace.
//!
//! Uses the installed `git`, so that its configuration and environment apply. Without git or a
//! repository, queries return nothing.
//!
//! Deliberately absent: commits. Only users make them.

mod sides;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use memctl_files::named;

use crate::model::error::{Explain, Explanation, Kind};

#[cfg(not(fuzzing))]
pub(crate) use sides::DriverInput;

/// Error of a git command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The program cannot be started.
    #[error("cannot start `git`")]
    Start(#[source] std::io::Error),
    /// The command failed.
    #[error("`git {command}` failed: {said}")]
    Failed {
        /// Arguments of the command.
        command: String,
        /// First line of its error output.
        said: String,
    },
    /// No commit matches the given version of a side of the merge.
    #[error("cannot find the commit of {0}")]
    UnknownSide(&'static str),
}

/// Repository with a working tree.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// Top-level directory, where git is started.
    top: PathBuf,
    /// `true` to keep the environment variables that git sets for hooks (`GIT_DIR` and others).
    by_variables: bool,
}

impl Repository {
    /// Finds the repository of a directory; `None` without one, or without git.
    pub(crate) fn of(directory: &Path) -> Option<Self> {
        // Git sets these variables relative to the top-level directory, so they can be wrong
        // elsewhere.
        [true, false].into_iter().find_map(|by_variables| {
            let top = directory.to_owned();
            let here = Self { top, by_variables };
            let top = PathBuf::from(here.ask(&["rev-parse", "--show-toplevel"]).ok()?);
            named::is_dir(&top).then_some(Self { top, by_variables })
        })
    }

    /// Top-level directory.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// Value of a setting; `None` if it is not set.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        self.ask(&["config", "--get", name]).ok()
    }

    /// Sets a setting of this repository only.
    ///
    /// # Errors
    ///
    /// Fails if git fails.
    pub(crate) fn set(&self, name: &str, value: &str) -> Result<(), Error> {
        self.ask(&["config", "--local", name, value]).map(drop)
    }

    /// Value of an attribute of a path.
    pub(crate) fn attribute(&self, name: &str, path: &Path) -> Option<String> {
        let path = path.to_str()?;
        let said = self.ask(&["check-attr", name, "--", path]).ok()?;
        said.rsplit(": ").next().map(str::to_owned)
    }

    /// Returns `true` if git ignores a path.
    pub(crate) fn ignores(&self, path: &Path) -> bool {
        let path = path.to_str();
        path.is_some_and(|path| self.ask(&["check-ignore", "-q", "--", path]).is_ok())
    }

    /// Merges three files line by line into the first, with conflict markers where both sides
    /// changed the same lines. Returns `true` if there are conflicts.
    ///
    /// # Errors
    ///
    /// That git refused.
    pub(crate) fn merge_file(
        &self,
        ours: &Path,
        base: &Path,
        theirs: &Path,
    ) -> Result<bool, Error> {
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

    /// Runs git and returns its output without trailing whitespace.
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

    /// Runs git with `input` on standard input and returns its output.
    fn bytes_of(&self, args: &[&str], input: Vec<u8>) -> Result<Vec<u8>, Error> {
        let mut command = self.command();
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(Error::Start)?;
        let stdin = child.stdin.take();
        // A separate thread writes, since writing and reading in turn deadlocks once both pipes are
        // full.
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
        // These queries write nothing, so they need no optional locks.
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

impl Explain for Error {
    fn explain(&self) -> Explanation {
        let hint = match self {
            Self::Start(_) => "install git, and check that it is in PATH",
            Self::Failed { .. } | Self::UnknownSide(_) => "git status",
        };
        (Kind::Io, Some(hint.to_owned()))
    }
}
