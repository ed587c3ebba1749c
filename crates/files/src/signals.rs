//! Interrupts (Ctrl-C), and requests to end.
//!
//! Promise: handlers run on a thread of their own, where they may do anything. On Windows a request
//! to end is that of the console: its window is closed, or the user logs off.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::system;

/// Ends the process at an interrupt, while `is_on`.
pub fn exit_at_interrupt(code: u8, is_on: Arc<AtomicBool>) -> io::Result<()> {
    let number = signal_hook::consts::SIGINT;
    signal_hook::flag::register_conditional_shutdown(number, i32::from(code), is_on).map(drop)
}

/// Lets a write beyond the file size limit of the process fail, instead of ending the process.
pub fn keep_file_size_limit_an_error() -> io::Result<()> {
    system::signals::keep_file_size_limit_an_error()
}

/// Calls a function at the first interrupt. The process goes on.
pub fn at_interrupt(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    system::signals::at_interrupt(act)
}

/// Calls a function when the process is asked to end. It should end it.
pub fn at_termination(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    system::signals::at_termination(act)
}

/// Exit code of a process that was asked to end, as shells expect it.
pub const TERMINATED: i32 = 128 + 15;

/// Wait for an interrupt or a request to end, within an async runtime.
#[derive(Debug)]
pub struct Stop(system::signals::Stop);

impl Stop {
    /// Sets the handlers. From here on, an interrupt does not end the process.
    pub fn new() -> io::Result<Self> {
        system::signals::Stop::new().map(Self)
    }

    /// Returns at the first interrupt or request to end.
    pub async fn wait(self) {
        self.0.wait().await;
    }
}
