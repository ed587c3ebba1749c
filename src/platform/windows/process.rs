//! Processes on Windows.

use tokio::process::{Child, Command};

pub(crate) const USUAL_EDITOR: &str = "notepad.exe";

/// Does nothing: `kill_on_drop` ends the program itself.
pub(in crate::platform) const fn begin_group(_: &mut Command) {}

/// A group of processes, of which there is none.
#[derive(Debug)]
pub(in crate::platform) enum Leader {}

impl Leader {
    pub(in crate::platform) const fn of(_: &Child) -> Option<Self> {
        None
    }

    pub(in crate::platform) const fn kill(self) {
        match self {}
    }
}

/// Returns a name for a user without one; Windows sets `USERNAME` in every session.
pub(in crate::platform) fn user() -> String {
    "unknown user".to_owned()
}
