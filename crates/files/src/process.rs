//! Programs that this one starts, signals, local sockets, and the user who started it.
//!
//! Promises: handlers of an interrupt (Ctrl-C) and of a request to end run on a thread of their own,
//! where they may do anything. On Windows a request to end is that of the console: its window is closed,
//! or the user logs off.
//!
//! A socket with a path is connected on Unix; on Windows every such connection fails. A limit of
//! unreceived data holds on Linux alone; elsewhere keepalive messages detect a vanished server.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::process::{Child, Command};

use super::system::{Leader, begin_group};
pub use super::system::{
    LocalStream, Stop, USUAL_EDITOR, at_interrupt, connect, keep_file_size_limit_an_error,
    limit_unreceived, noted_home, user,
};

/// A running program and all programs that it has started. Dropping it kills them.
///
/// Promise: on Unix, all processes of the program's group are killed. On Windows, only the program
/// itself is, by `kill_on_drop`: programs that it has started may go on.
#[derive(Debug)]
pub struct Group(Option<Leader>);

impl Group {
    /// Lets the program of a command begin a group. Call it before the program is started.
    pub fn begin(command: &mut Command) {
        begin_group(command.kill_on_drop(true));
    }

    /// Returns the group of a program just started.
    pub fn of(child: &Child) -> Self {
        Self(Leader::of(child))
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

/// Ends the process at an interrupt, while `is_on`.
pub fn exit_at_interrupt(code: u8, is_on: Arc<AtomicBool>) -> io::Result<()> {
    let number = signal_hook::consts::SIGINT;
    signal_hook::flag::register_conditional_shutdown(number, i32::from(code), is_on).map(drop)
}

/// Directories that belong to a user; `None` where the system names none.
///
/// | | home | settings | data | settings of all programs |
/// |---|---|---|---|---|
/// | Linux | `$HOME` | `$XDG_CONFIG_HOME/memctl` | `$XDG_DATA_HOME/memctl` | `$XDG_CONFIG_HOME` |
/// | macOS | `$HOME` | `~/Library/Application Support/memctl` | the same | its parent |
/// | Windows | `%USERPROFILE%` | `%APPDATA%\memctl\config` | `%LOCALAPPDATA%\memctl\data` | `%APPDATA%` |
///
/// Without the variable of the home directory, the system is asked. On Windows, the agent hosts take these
/// variables too: they run on Node. On Linux, a path that is not absolute counts as none.
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
    let home = var(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
    let home = home.or_else(noted_home).or_else(std::env::home_dir);
    let below = |path: &str| home.as_ref().map(|home| home.join(path));
    let named = |name: &str, usual: &str| {
        let absolute = var(name).filter(|path| path.is_absolute());
        absolute.or_else(|| below(usual))
    };
    let (settings, data) = if cfg!(windows) {
        (
            named("APPDATA", r"AppData\Roaming"),
            named("LOCALAPPDATA", r"AppData\Local"),
        )
    } else if cfg!(target_os = "macos") {
        let all = below("Library/Application Support");
        (all.clone(), all)
    } else {
        (
            named("XDG_CONFIG_HOME", ".config"),
            named("XDG_DATA_HOME", ".local/share"),
        )
    };
    let own = |all: &Option<PathBuf>, part: &str| {
        let own = all.as_ref().map(|all| all.join("memctl"));
        own.map(|own| if cfg!(windows) { own.join(part) } else { own })
    };
    UserDirectories {
        settings: own(&settings, "config"),
        data: own(&data, "data"),
        all_settings: settings,
        home,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn directories_are_those_of_the_variables_or_below_the_home() {
        let of = |given: &[(&str, &str)]| {
            let found = user_directories(&|name| {
                let value = given.iter().find(|(key, _)| *key == name);
                value.map(|(_, value)| PathBuf::from(value))
            });
            let all = [found.home, found.settings, found.data, found.all_settings];
            all.map(|path| path.unwrap().display().to_string())
        };
        let usual = [
            "/home/ann",
            "/home/ann/.config/memctl",
            "/home/ann/.local/share/memctl",
            "/home/ann/.config",
        ];
        assert_eq!(of(&[("HOME", "/home/ann")]), usual);
        assert_eq!(
            of(&[("HOME", "/home/ann"), ("XDG_CONFIG_HOME", "relative")]),
            usual
        );
        let named = of(&[
            ("HOME", "/home/ann"),
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_DATA_HOME", "/d"),
        ]);
        assert_eq!(named, ["/home/ann", "/c/memctl", "/d/memctl", "/c"]);
        // The system knows a home that no variable names.
        assert!(user_directories(&|_| None).home.is_some());
    }
}
