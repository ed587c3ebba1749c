//! Programs that this one starts, signals, local sockets, and the user who started it.
//!
//! Promises: handlers of an interrupt (Ctrl-C) and of a request to end run on a thread of their own,
//! where they may do anything. On Windows a request to end is that of the console: its window is closed,
//! or the user logs off.
//!
//! A socket with a path is connected on Unix; on Windows every such connection fails. A limit of
//! unreceived data holds on Linux alone; elsewhere keepalive messages detect a vanished server.
//!
//! A repository may come from others. No call of [`git`] in it starts a program that the repository names, or fetches
//! anything. None waits for a pipe in it, or takes a lock that others wait for. A directory that came with a clone and looks
//! like a bare repository is none. This is the only place that starts git: no caller can forget what one of them needs.

use std::ffi::OsStr;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::process::Child;

use super::system::{Leader, begin_group, interrupts};
pub use super::system::{
    LocalStream, Stop, USUAL_EDITOR, connect, keep_file_size_limit_an_error, limit_unreceived,
    noted_home, user,
};

/// A running program and all programs that it has started. Dropping it kills them.
///
/// Promise: on Unix, all processes of the program's group are killed. On Windows, only the program
/// itself is, by `kill_on_drop`: programs that it has started may go on.
#[derive(Debug)]
pub struct Group(Option<Leader>);

impl Group {
    /// Lets the program of a command begin a group. Call it before the program is started.
    pub fn begin(command: &mut tokio::process::Command) {
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

/// Calls a function at the first interrupt. The process goes on.
pub fn at_interrupt(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build()?;
    // An interrupt before the thread runs is not lost.
    let mut interrupts = {
        let _entered = runtime.enter();
        interrupts()?
    };
    thread::spawn(move || {
        if runtime.block_on(interrupts.recv()).is_some() {
            act();
        }
    });
    Ok(())
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

/// Settings that hold against those of the repository, each of which can name a program or a server.
const SETTINGS: [&str; 5] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "log.showSignature=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
];

/// Variables that git sets for its hooks and drivers.
const OF_HOOKS: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"];

/// Runs git in a directory and returns what it printed. After `limit` it is killed, and the error is
/// [`io::ErrorKind::TimedOut`].
///
/// `for_hooks` keeps the variables that git sets for its hooks and drivers.
pub fn git<A: AsRef<OsStr>>(
    directory: &Path,
    args: impl IntoIterator<Item = A>,
    input: Vec<u8>,
    for_hooks: bool,
    limit: Duration,
) -> io::Result<Output> {
    let mut command = Command::new("git");
    command.current_dir(directory).arg("--no-pager");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command
        .args(args)
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env_remove("GIT_EXTERNAL_DIFF")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if !for_hooks {
        for name in OF_HOOKS {
            command.env_remove(name);
        }
    }
    let end = Instant::now() + limit;
    let mut child = command.spawn()?;
    // Threads read and write, because taking turns deadlocks once a pipe is full. What git leaves running may
    // keep its output open: nobody waits for that.
    let (mut stdin, printed) = (child.stdin.take(), child.stdout.take().map(read));
    let complaint = child.stderr.take().map(read);
    thread::spawn(move || stdin.as_mut().map(|stdin| stdin.write_all(&input)));
    let rest = || end.saturating_duration_since(Instant::now());
    let took = |pipe: Option<Receiver<Vec<u8>>>| pipe?.recv_timeout(rest()).ok();
    let (stdout, stderr) = (took(printed), took(complaint));
    if stdout.is_none() {
        drop(child.kill());
    }
    let status = child.wait()?;
    Ok(Output {
        status,
        stdout: stdout.ok_or(io::ErrorKind::TimedOut)?,
        stderr: stderr.unwrap_or_default(),
    })
}

/// Reads a pipe to its end on a thread.
fn read(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(pipe.read_to_end(&mut bytes));
        drop(sender.send(bytes));
    });
    receiver
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
