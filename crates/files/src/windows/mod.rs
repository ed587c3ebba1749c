//! The system calls of Windows. Here: processes, events of the console and sockets.

pub(super) mod files;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::SockRef;
use tokio::process::{Child, Command};
use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close};

pub use tokio::io::DuplexStream as LocalStream;

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
pub fn user() -> String {
    "unknown user".to_owned()
}

/// The variables of a session on Windows alone name the home directory.
pub const fn noted_home() -> Option<PathBuf> {
    None
}

/// Does nothing: there is no such limit.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub const fn keep_file_size_limit_an_error() -> io::Result<()> {
    Ok(())
}

/// The interrupts from now on; within an async runtime.
pub(crate) fn interrupts() -> io::Result<CtrlC> {
    ctrl_c()
}

/// Handlers of Ctrl-C, Ctrl-Break, and the end of the console.
#[derive(Debug)]
pub struct Stop {
    interrupt: CtrlC,
    terminate: CtrlBreak,
    close: CtrlClose,
}

impl Stop {
    /// Sets the handlers. From here on, an interrupt does not end the process.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            terminate: ctrl_break()?,
            close: ctrl_close()?,
        })
    }

    /// Returns at the first interrupt or request to end.
    pub async fn wait(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.close.recv() => {}
        }
    }
}

/// Fails: no socket has a path.
#[expect(clippy::unused_async, reason = "connecting waits on other systems")]
pub async fn connect(_: &Path) -> io::Result<LocalStream> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Does nothing: the system has no such limit.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub const fn limit_unreceived(_: &SockRef<'_>, _: Option<Duration>) -> io::Result<()> {
    Ok(())
}
