//! Programs that this one starts, and the user who started it.

use tokio::process::{Child, Command};

use super::system;

/// A running program and all programs that it has started. Dropping it kills them.
///
/// Promise: on Unix, all processes of the program's group are killed. On Windows, only the program
/// itself is, by `kill_on_drop`: programs that it has started may go on.
#[derive(Debug)]
pub struct Group(Option<system::process::Leader>);

impl Group {
    /// Lets the program of a command begin a group. Call it before the program is started.
    pub fn begin(command: &mut Command) {
        system::process::begin_group(command.kill_on_drop(true));
    }

    /// Returns the group of a program just started.
    pub fn of(child: &Child) -> Self {
        Self(system::process::Leader::of(child))
    }

    /// Kills the group, if it is not known to have exited.
    pub fn kill(&mut self) {
        if let Some(leader) = self.0.take() {
            leader.kill();
        }
    }

    /// Forgets the group: the program has exited, and its id may be reused.
    pub fn release(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Editor that every system of this kind has.
pub use system::process::USUAL_EDITOR;

/// Returns a name for the user of this process where no login names one: `uid 1000`.
pub fn user() -> String {
    system::process::user()
}
