//! Signals on Unix.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) fn keep_file_size_limit_an_error() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(true))).map(drop)
}

pub(crate) fn at_interrupt(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    at_signal(SIGINT, act)
}

pub(crate) fn at_termination(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    at_signal(SIGTERM, act)
}

fn at_signal(number: i32, act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([number])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            act();
        }
    });
    Ok(())
}

/// Handlers of an interrupt and of a request to end.
#[derive(Debug)]
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn wait(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
