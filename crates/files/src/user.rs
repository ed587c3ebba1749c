//! Directories of the user who runs the program.

use std::path::PathBuf;

use super::system;

/// Directories that belong to a user; `None` where the system names none.
///
/// | | home | settings | data | settings of all programs |
/// |---|---|---|---|---|
/// | Linux | `$HOME` | `$XDG_CONFIG_HOME/memctl` | `$XDG_DATA_HOME/memctl` | `$XDG_CONFIG_HOME` |
/// | macOS | `$HOME` | `~/Library/Application Support/memctl` | the same | its parent |
/// | Windows | `%USERPROFILE%` | `%APPDATA%\memctl\config` | `%LOCALAPPDATA%\memctl\data` | `%APPDATA%` |
///
/// Without a variable, the system is asked.
#[derive(Debug, Default)]
pub struct UserDirectories {
    /// The home directory.
    pub home: Option<PathBuf>,
    /// Settings of this program.
    pub settings: Option<PathBuf>,
    /// Data of this program.
    pub data: Option<PathBuf>,
    /// Settings of all programs.
    pub all_settings: Option<PathBuf>,
}

/// Returns the directories of the user; `var` gives the value of a variable that is not empty.
pub fn user_directories(var: &dyn Fn(&str) -> Option<PathBuf>) -> UserDirectories {
    let base = directories::BaseDirs::new();
    let project = directories::ProjectDirs::from("", "", "memctl");
    let found = UserDirectories {
        home: base.as_ref().map(|base| base.home_dir().to_owned()),
        settings: project
            .as_ref()
            .map(|project| project.config_dir().to_owned()),
        data: project
            .as_ref()
            .map(|project| project.data_local_dir().to_owned()),
        all_settings: base.map(|base| base.config_dir().to_owned()),
    };
    system::process::set_by_variables(found, var)
}
