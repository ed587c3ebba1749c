//! What a person waits for in `memctl review`: the first record, and the answer to a key.
//!
//! `make bench` runs it. The program runs in a pseudo-terminal of 80×24, over a memory in which 10,000
//! records wait for a decision. An answer ends with the last byte before a pause in the output.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on has failed"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "the benchmark makes the files that it measures"
)]

mod measure;

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use measure::{cold, median, memctl, ms, run};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

/// Records of each of two kinds.
const EACH: usize = 5_000;
const STARTS: usize = 15;
/// Rounds through the keys below.
const ROUNDS: usize = 15;
/// Keys that go on, and one that is no answer: nothing is decided.
const KEYS: [&str; 3] = ["s\n", "s\n", "?\n"];
/// Pause after which the output is complete.
const PAUSE: Duration = Duration::from_millis(60);
/// Wait for the first byte of an output.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("w");
    fs::create_dir_all(&root).unwrap();
    run(memctl(&root, &["init"]));
    generate(&root);
    // The first command after another program wrote the files finds their records.
    run(memctl(&root, &["status"]));
    let mut starts = Vec::new();
    let mut keys = Vec::new();
    for round in 0..=STARTS {
        let (mut screen, first) = Screen::open(&root);
        // The first start is not counted.
        if round > 0 {
            starts.push(first);
        }
        if round == STARTS {
            for key in KEYS.iter().cycle().take(KEYS.len() * ROUNDS) {
                keys.push(screen.answer(key));
            }
        }
    }
    println!(
        "| `memctl review`, {} records that wait | median | slowest | goal |",
        2 * EACH
    );
    println!("|---|---|---|---|");
    for (name, goal, times) in [
        ("first record", "100 ms", &mut starts),
        ("a key", "16 ms", &mut keys),
    ] {
        let slowest = ms(times.iter().copied().max().unwrap());
        println!("| {name} | {} | {slowest} | {goal} |", ms(median(times)));
    }
    let list = || memctl(&root, &["review", "--json"]);
    let (time, memory) = cold(STARTS, &mut || list());
    println!(
        "\n`memctl review --json`: {}, {} of them on the processor, {memory:.0} MB.",
        ms(time),
        ms(run(list()).cpu)
    );
}

/// Writes candidate rules and observed procedures.
fn generate(root: &Path) {
    let rules: Vec<Value> = (1..=EACH)
        .map(|number| {
            json!({"reflexion_id": format!("REFL-{number:04}"), "skill": format!("team/skill{}", number % 40),
                "created_at": "2026-01-01T00:00:00Z", "source": "chat", "status": "candidate",
                "rule": format!("Write module{number} with tool{} and never with tool{}.", number % 97, number % 89),
                "applies_when": "", "utility_score": 0.0})
        })
        .collect();
    let procedures: Vec<Value> = (1..=EACH)
        .map(|number| {
            json!({"procedure_id": format!("PROC-{number:04}"), "created_at": "2026-01-01T00:00:00Z",
                "status": "procedure_learned", "data": {}, "state": "episode", "pattern": {
                "error_key": format!("error: module{number} has no member part{}", number % 83),
                "failing_code": format!("build --target module{number}"),
                "working_code": format!("build --target module{number} --legacy"),
                "success_output": ""}})
        })
        .collect();
    let memory = root.join(".agentura");
    for (name, entries) in [
        ("reflexion_entries.local.json", rules),
        ("procedural_memory.local.json", procedures),
    ] {
        fs::write(memory.join(name), json!({ "entries": entries }).to_string()).unwrap();
    }
}

/// The program in a pseudo-terminal.
struct Screen {
    child: Child,
    keys: File,
    /// Times at which output was read.
    output: Receiver<Instant>,
}

impl Screen {
    /// Starts the program. Returns it with the time until its first record was complete.
    fn open(root: &Path) -> (Self, Duration) {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&main, size).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let terminal = || {
            let opened = OpenOptions::new()
                .read(true)
                .write(true)
                .open(name.to_str().unwrap());
            Stdio::from(opened.unwrap())
        };
        let main = File::from(main);
        let mut reader = main.try_clone().unwrap();
        let (sender, output) = mpsc::channel();
        let mut command = memctl(root, &["review"]);
        command
            .env("TERM", "xterm-256color")
            .stdin(terminal())
            .stdout(terminal())
            .stderr(terminal());
        let start = Instant::now();
        let child = command.spawn().unwrap();
        drop(command);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The terminal ends with its last writer.
            while reader.read(&mut bytes).is_ok_and(|read| read > 0) {
                if sender.send(Instant::now()).is_err() {
                    return;
                }
            }
        });
        let screen = Self {
            child,
            keys: main,
            output,
        };
        let first = screen.complete() - start;
        (screen, first)
    }

    /// Types a key and Enter. Returns the time until the screen showed the answer.
    fn answer(&mut self, key: &str) -> Duration {
        let start = Instant::now();
        self.keys.write_all(key.as_bytes()).unwrap();
        self.complete() - start
    }

    /// Returns the time of the last byte before a pause.
    fn complete(&self) -> Instant {
        let mut last = self.output.recv_timeout(PATIENCE).unwrap();
        while let Ok(next) = self.output.recv_timeout(PAUSE) {
            last = next;
        }
        last
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
