//! What tests of several subjects share: common calls, and programs that are written to and read from.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::workspace::{Ran, Workspace};

/// The skill of the calls below.
const SKILL: &str = "hr/resume-screen";

/// A run on the sample input.
pub(crate) const RUN: [&str; 4] = ["run", SKILL, "--input", "fixtures/sample_input.json"];

/// The same in a workspace that is [`scripted`]: it costs no more than its record.
pub(crate) const RUN_SCRIPTED: [&str; 6] = [
    "run",
    SKILL,
    "--input",
    "fixtures/sample_input.json",
    "--model",
    "scripted:replies.jsonl",
];

/// How long anything is waited for: longer than it takes, however busy the machine is.
pub(crate) const EVER: Duration = Duration::from_mins(1);

/// A project whose skills are answered from a file.
pub(crate) fn scripted() -> Workspace {
    let workspace = Workspace::sample();
    workspace.write(
        "replies.jsonl",
        r#"{"reply": {"overall_score": 72}, "cost_usd": 0.5}"#,
    );
    workspace
}

/// The arguments that correct the newest execution.
pub(crate) fn correction(said: &str) -> [&str; 6] {
    [
        "correct", SKILL, "--execution-id", "latest", "--correction", said,
    ]
}

/// Corrects the newest execution.
pub(crate) fn correct(workspace: &Workspace, said: &str) -> Value {
    workspace.json(&correction(said))
}

/// The ids of these records, in their order.
pub(crate) fn ids(records: &Value) -> Vec<&str> {
    let records = records.as_array().unwrap().iter();
    records.map(|r| r["id"].as_str().unwrap()).collect()
}

/// Every file below a directory, in the order of the paths; none where there is no directory.
pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A port that nobody listens at. It is below those of outgoing connections (32768 on Linux, 49152 elsewhere), so that
/// none of them has it when a server is started again, and a client that tries too early doesn't reach itself.
pub(crate) fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    // Tests of several processes begin at different ports.
    let first = std::process::id().wrapping_mul(37);
    loop {
        let number = first.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
        let port = 20_000 + u16::try_from(number % 12_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Runs a program to its end with this on its standard input, which it need not read.
pub(crate) fn with_input(command: &mut Command, input: &[u8]) -> Ran {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(pipe.write_all(input)));
        Ran::of(child.wait_with_output().unwrap())
    })
}

/// The lines of an output as they come.
pub(crate) fn lines(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Waits until something holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < EVER, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reports a skipped test and the reason prominently.
pub(crate) fn skipped(why: &str) {
    drop(writeln!(std::io::stderr(), "skipped: {why}"));
}

/// Interrupts a program as Ctrl-C does. Windows has no such signal to one process.
#[cfg(unix)]
pub(crate) fn interrupt(child: &Child) {
    use rustix::process::{Pid, Signal};
    rustix::process::kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// A running program whose output is read line by line; killed when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = lines(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(EVER).unwrap()
    }

    /// The next line, which is JSON.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// The exit code, before which nothing more comes.
    pub(crate) fn ends(mut self) -> Option<i32> {
        assert_eq!(
            self.lines.recv_timeout(EVER),
            Err(RecvTimeoutError::Disconnected)
        );
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A procedure with a pattern, from flat fields: those of the pattern move into it, and `status` is the
/// state.
pub(crate) fn with_pattern(mut flat: Value) -> Value {
    let fields = flat.as_object_mut().unwrap();
    let mut pattern = serde_json::Map::new();
    for name in [
        "error_key", "error_line", "failing_code", "working_code", "success_output", "tool",
    ] {
        pattern.extend(fields.remove(name).map(|value| (name.to_owned(), value)));
    }
    fields.insert("pattern".to_owned(), pattern.into());
    if let Some(state) = fields.insert("status".to_owned(), "procedure_learned".into()) {
        fields.insert("state".to_owned(), state);
    }
    fields
        .entry("data")
        .or_insert_with(|| serde_json::json!({}));
    flat
}
