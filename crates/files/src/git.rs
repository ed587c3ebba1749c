//! Calls of `git` in a repository that may come from others.
//!
//! Promise: no call starts a program that the repository names, fetches anything, waits for a pipe in
//! it, or takes a lock that others wait for. A directory that came with a clone and looks like a bare repository
//! is none. This is the only place that starts git: no caller can forget what one of them needs.

use std::ffi::OsStr;
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

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
