//! Processes on Windows.

use std::path::PathBuf;

use tokio::process::{Child, Command};

use crate::user::UserDirectories;

/// Editor of Windows.
pub const USUAL_EDITOR: &str = "notepad.exe";

/// Does nothing: `kill_on_drop` ends the program itself.
pub(crate) const fn begin_group(_: &mut Command) {}

/// A group of processes, of which there is none.
#[derive(Debug)]
pub(crate) enum Leader {}

impl Leader {
    pub(crate) const fn of(_: &Child) -> Option<Self> {
        None
    }

    pub(crate) const fn kill(self) {
        match self {}
    }
}

/// Returns a name for a user without one; Windows sets `USERNAME` in every session.
pub(crate) fn user() -> String {
    "unknown user".to_owned()
}

/// Takes the directories that variables name, as the agent hosts do, which run on Node. They are
/// those of the system, unless the user has set them.
pub(crate) fn set_by_variables(
    found: UserDirectories,
    var: &dyn Fn(&str) -> Option<PathBuf>,
) -> UserDirectories {
    let named = |name: &str, below: &str| var(name).map(|directory| directory.join(below));
    UserDirectories {
        home: var("USERPROFILE").or(found.home),
        settings: named("APPDATA", r"memctl\config").or(found.settings),
        data: named("LOCALAPPDATA", r"memctl\data").or(found.data),
        all_settings: var("APPDATA").or(found.all_settings),
    }
}
