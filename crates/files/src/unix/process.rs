//! Processes on Unix.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::user::UserDirectories;

/// Editor of POSIX.
pub const USUAL_EDITOR: &str = "vi";

/// Lets a program begin a process group of its own.
pub(crate) fn begin_group(command: &mut Command) {
    command.process_group(0);
}

/// Process group that a program has begun.
#[derive(Debug)]
pub(crate) struct Leader(Pid);

impl Leader {
    pub(crate) fn of(child: &Child) -> Option<Self> {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        id.and_then(Pid::from_raw).map(Self)
    }

    pub(crate) fn kill(self) {
        // An error means that the group has already exited.
        kill_process_group(self.0, Signal::KILL).ok();
    }
}

/// Returns the number of the user, as text.
pub(crate) fn user() -> String {
    format!("uid {}", rustix::process::getuid().as_raw())
}

/// Changes nothing: the variables have been taken already.
pub(crate) fn set_by_variables(
    found: UserDirectories,
    _: &dyn Fn(&str) -> Option<PathBuf>,
) -> UserDirectories {
    found
}
