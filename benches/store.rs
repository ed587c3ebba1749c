//! The store at every size, as whole processes and as single appends.
//!
//! `make bench` runs it and prints the table of `docs/benchmarks.md`. Every figure is a median; what
//! is compared is measured in the same run, in turn. The store is made here, in the shape of the
//! reference implementation's own benchmark: 1.4 kB an execution, 26 skills, and a twentieth as
//! many corrections and rules.
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
mod stores;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use chrono::Utc;
use measure::{cold, median, memctl, ms, run};
use memctl::model::Scope;
use memctl::store::{AuditAction, AuditContext, Scoped};
use stores::{execution, generate, skill};

const SIZES: [usize; 4] = [10, 1_000, 10_000, 100_000];
const APPENDS: usize = 100;
const PROCESSES: usize = 25;
const AUDITED: u32 = 1_000_000;
/// Seconds that the reference needs at 100,000 executions, on the same class of machine.
const REFERENCE: [(&str, f64); 3] = [
    ("memory status", 2.64),
    ("memory prompt", 1.00),
    ("correct", 2.31),
];

fn main() {
    let dir = tempfile::tempdir().unwrap();
    for size in SIZES {
        let root = dir.path().join(size.to_string());
        generate(&root, size);
        first_look(&root, size);
    }
    processes(dir.path());
    appends(dir.path());
    audit(&dir.path().join("audit"));
}

/// The check of a long audit, as a whole process, beside reading as many bytes.
fn audit(dir: &Path) {
    let memory = dir.join(".agentura");
    let store = Scoped::new(&memory, Scope::All).acting(AuditContext {
        who: "ann".to_owned(),
        why: "memory search".to_owned(),
        at: "2026-01-01T00:00:00.000000Z".to_owned(),
        change: String::new(),
    });
    drop(store.write(&mut || "random".to_owned()).unwrap());
    let start = Instant::now();
    for n in 0..AUDITED {
        let id = format!("MEM-{n:03}");
        store.audit(AuditAction::Read, &[(&id, None)]).unwrap();
    }
    let each = start.elapsed() / AUDITED;
    let log = memory.join("audit.jsonl");
    let bytes = fs::metadata(&log).unwrap().len();
    let (time, memory) = cold(3, &mut || memctl(dir, &["memory", "audit", "verify"]));
    let start = Instant::now();
    fs::read(&log).unwrap();
    println!(
        "\nAn audit of {AUDITED} lines ({} MB), {} us a line written, is checked in {} with {memory:.0} MB; reading it takes {}.",
        bytes >> 20,
        each.as_micros(),
        ms(time),
        ms(start.elapsed())
    );
}

/// One append through the library at every size, in turn with a bare write and sync of as many
/// bytes.
fn appends(dir: &Path) {
    let entry = execution(0);
    let bytes = vec![b'x'; serde_json::to_vec_pretty(&entry).unwrap().len() + 200];
    let mut bare = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("bare"))
        .unwrap();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); SIZES.len()];
    let mut limit = Vec::new();
    for _ in 0..APPENDS {
        for (i, size) in SIZES.iter().enumerate() {
            let store = Scoped::new(dir.join(size.to_string()).join(".agentura"), Scope::All);
            let start = Instant::now();
            let mut writer = store.write(&mut || "random".to_owned()).unwrap();
            drop(writer.append(entry.clone(), Utc::now()).unwrap());
            drop(writer);
            times[i].push(start.elapsed());
        }
        let start = Instant::now();
        bare.write_all(&bytes).unwrap();
        bare.sync_data().unwrap();
        limit.push(start.elapsed());
    }
    let limit = median(&mut limit);
    println!(
        "\n| one append, executions in the store | median | against write + sync of the same bytes |"
    );
    println!("|---|---|---|");
    println!("| write + sync | {} | 1.00 |", ms(limit));
    let mut first = None;
    for (size, times) in SIZES.iter().zip(&mut times) {
        let time = median(times);
        first.get_or_insert(time);
        println!("| {size} | {} | {:.2} |", ms(time), ratio(time, limit));
        if *size == 100_000 {
            let flat = ratio(time, first.unwrap());
            println!("\nAppend at 100,000 against 10: {flat:.2} (goal: at most 1.5).");
            println!(
                "Reference at 100,000: 4.51 s an append, {:.0} times as long.",
                4510.0 / (time.as_secs_f64() * 1000.0)
            );
        }
    }
}

/// Cold processes of the real program.
fn processes(dir: &Path) {
    let nothing = cold(PROCESSES, &mut || Command::new("true"));
    let version = cold(PROCESSES, &mut || memctl(dir, &["--version"]));
    println!("| cold process | median | peak memory | reference |");
    println!("|---|---|---|---|");
    println!("| `true` | {} | {:.1} MB | |", ms(nothing.0), nothing.1);
    println!(
        "| `memctl --version` | {} | {:.1} MB | 0.53 s |",
        ms(version.0),
        version.1
    );
    for size in [10, 100_000] {
        let root = dir.join(size.to_string());
        let mut n = 0;
        for (name, reference) in REFERENCE {
            let reference = if size == 100_000 {
                format!("{reference:.2} s")
            } else {
                String::new()
            };
            let (time, memory) = cold(PROCESSES, &mut || {
                n += 1;
                let correction =
                    format!("When case {n} comes up, always mention figure {n} first.");
                let id = format!(
                    "EXEC-{}",
                    20_260_101_000_000 + u64::try_from(size / 2).unwrap()
                );
                let skill = skill(size / 2);
                match name {
                    "correct" => memctl(
                        &root,
                        &[
                            "correct", &skill, "--execution-id", &id, "--correction", &correction,
                        ],
                    ),
                    "memory prompt" => {
                        let mut prompt = memctl(&root, &["memory", "prompt", "d0/s0"]);
                        // No `init` made this memory.
                        prompt.env("MEMCTL_TRUST", "1");
                        prompt
                    }
                    _ => memctl(&root, &["memory", "status"]),
                }
            });
            println!(
                "| `{name}` at {size} executions | {} | {memory:.1} MB | {reference} |",
                ms(time)
            );
        }
    }
}

/// The first command after somebody else wrote the files reads them whole; that is not cold start, and is
/// measured apart.
fn first_look(root: &Path, size: usize) {
    let first = run(memctl(root, &["memory", "status"]));
    if size == 100_000 {
        let bytes = fs::metadata(root.join(".agentura").join("episodic_memory.json"))
            .unwrap()
            .len();
        println!(
            "First look at {} MB that another program wrote: {}, {} of it on a core\n",
            bytes / 1_000_000,
            ms(first.time),
            ms(first.cpu)
        );
    }
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}
