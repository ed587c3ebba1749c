//! The system calls of Linux and macOS. Here: processes, signals and sockets.

pub(super) mod files;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::process::{Pid, kill_process_group};
use signal_hook::consts::SIGXFSZ;
use socket2::SockRef;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

pub use tokio::net::UnixStream as LocalStream;

/// Editor of POSIX.
pub const USUAL_EDITOR: &str = "vi";
/// Maximum size of the list of users, in bytes.
const LONGEST_LIST: u64 = 1 << 20;

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
        kill_process_group(self.0, rustix::process::Signal::KILL).ok();
    }
}

/// Returns a name for the user of this process where no login names one: `uid 1000`.
pub fn user() -> String {
    format!("uid {}", rustix::process::getuid().as_raw())
}

/// Returns the home directory that the system notes for the user of this process, whatever variables say; `None` if
/// its list of users does not name them (macOS keeps another).
pub fn noted_home() -> Option<PathBuf> {
    let users = crate::named::read_text(Path::new("/etc/passwd"), LONGEST_LIST).ok()?;
    let number = rustix::process::getuid().as_raw().to_string();
    let home = users.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        let is_own = fields.next()? == number;
        fields.nth(2).filter(|_| is_own)
    })?;
    (!home.is_empty()).then(|| home.into())
}

/// Lets a write beyond the file size limit of the process fail, instead of ending the process.
pub fn keep_file_size_limit_an_error() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(true))).map(drop)
}

/// The interrupts from now on; within an async runtime.
pub(crate) fn interrupts() -> io::Result<Signal> {
    signal(SignalKind::interrupt())
}

/// Wait for an interrupt, a request to end or the end of the terminal, within an async runtime.
#[derive(Debug)]
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
    /// `None` away from a terminal: `nohup` ignores this signal there, and a handler would not.
    hangup: Option<Signal>,
}

impl Stop {
    /// Sets the handlers. From here on, an interrupt does not end the process.
    pub fn new() -> io::Result<Self> {
        let is_at_terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: is_at_terminal
                .then(|| signal(SignalKind::hangup()))
                .transpose()?,
        })
    }

    /// Returns at the first of these signals.
    pub async fn wait(mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hangup => {}
        }
    }
}

/// Connects to the socket at a path.
pub async fn connect(path: &Path) -> io::Result<LocalStream> {
    LocalStream::connect(path).await
}

/// Closes a connection whose data the other side has not acknowledged for this time.
#[cfg(target_os = "linux")]
pub fn limit_unreceived(socket: &SockRef<'_>, limit: Option<Duration>) -> io::Result<()> {
    socket.set_tcp_user_timeout(limit)
}

/// Does nothing: the system has no such limit.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub const fn limit_unreceived(_: &SockRef<'_>, _: Option<Duration>) -> io::Result<()> {
    Ok(())
}
