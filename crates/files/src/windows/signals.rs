//! Events of the console on Windows.

use std::io;
use std::thread;

use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close};

/// Does nothing: there is no such limit.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) const fn keep_file_size_limit_an_error() -> io::Result<()> {
    Ok(())
}

pub(crate) fn at_interrupt(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = runtime()?;
    let mut events = {
        let _entered = runtime.enter();
        ctrl_c()?
    };
    thread::spawn(move || {
        if runtime.block_on(events.recv()).is_some() {
            act();
        }
    });
    Ok(())
}

pub(crate) fn at_termination(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = runtime()?;
    let mut events = {
        let _entered = runtime.enter();
        ctrl_close()?
    };
    thread::spawn(move || {
        if runtime.block_on(events.recv()).is_some() {
            act();
        }
    });
    Ok(())
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Handlers of Ctrl-C, Ctrl-Break, and the end of the console.
#[derive(Debug)]
pub(crate) struct Stop {
    interrupt: CtrlC,
    terminate: CtrlBreak,
    close: CtrlClose,
}

impl Stop {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            terminate: ctrl_break()?,
            close: ctrl_close()?,
        })
    }

    pub(crate) async fn wait(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.close.recv() => {}
        }
    }
}
