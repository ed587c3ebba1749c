//! What a coding agent's host waits for at every event, and how fast sessions are learned from.
//!
//! `make bench` runs it and prints the tables of `docs/benchmarks.md`. A memory of 10,000 lessons is made
//! here, and the events have the shape in which Claude Code sends them. The sessions that are learned
//! from are the recorded ones of `fixtures/`, over and over, each time under another name.
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

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use measure::{cold, ms, run};
use serde_json::{Value, json};

const LESSONS: usize = 10_000;
const RULES: usize = 500;
const PROCESSES: usize = 51;
/// Bytes of session files.
const SHORT: usize = 20_000_000;
const LONG: usize = 500_000_000;
/// Files that are read behind each recorded session.
const READS: usize = 50;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("w");
    fs::create_dir_all(&root).unwrap();
    run(memctl(&root, &["init"]));
    generate(&root);
    // The first question after another program wrote the file makes the table.
    run(memctl(&root, &["hint", "--error", &error(1)]));
    confirm(&root);
    println!(
        "| cold process, {LESSONS} lessons, {RULES} rules with patterns | median | peak memory | goal |"
    );
    println!("|---|---|---|---|");
    let row = |name: &str, goal: &str, command: &mut dyn FnMut() -> Command| {
        let (time, memory) = cold(PROCESSES, command);
        println!("| {name} | {} | {memory:.1} MB | {goal} |", ms(time));
    };
    let mut round = 0;
    row("`true`", "", &mut || Command::new("true"));
    row("`memctl hook`, a call that worked", "5 ms", &mut || {
        hook(&root, &worked(&root))
    });
    row(
        "`memctl hook`, before a call without a match",
        "3 ms",
        &mut || {
            hook(
                &root,
                &event(&root, 0, "PreToolUse", "cd web && cargo build"),
            )
        },
    );
    row(
        "`memctl hook`, before a call with a rule",
        "10 ms",
        &mut || {
            round += 1;
            hook(
                &root,
                &event(&root, round, "PreToolUse", "cd web && npm7 ci"),
            )
        },
    );
    row(
        "`memctl hook`, before a call that failed",
        "10 ms",
        &mut || {
            round += 1;
            hook(&root, &event(&root, round, "PreToolUse", &failing(round)))
        },
    );
    row("`memctl hook`, a hint", "10 ms", &mut || {
        round += 1;
        hook(&root, &failed(&root, round))
    });
    user_store(&root.with_file_name("home"));
    let name = "`memctl hook`, a hint beside a user store of 500 lessons";
    row(name, "10 ms", &mut || {
        round += 1;
        hook(&root, &failed(&root, round))
    });
    row(
        "`memctl hook`, a session start with 500 rules",
        "10 ms",
        &mut || {
            round += 1;
            hook(&root, &started(&root, round))
        },
    );
    row("`memctl hint`", "10 ms", &mut || {
        round += 1;
        memctl(&root, &["hint", "--error", &error(round), "--json"])
    });
    println!("\n| `memctl learn --dry-run` | MB a second and core | peak memory |");
    println!("|---|---|---|");
    for size in [SHORT, LONG] {
        let path = sessions(dir.path(), size);
        let used = run(memctl(
            &root,
            &["learn", "--dry-run", path.to_str().unwrap()],
        ));
        let bytes = fs::metadata(&path).unwrap().len();
        #[expect(clippy::cast_precision_loss, reason = "megabytes for people")]
        let megabytes = bytes as f64 / 1e6;
        println!(
            "| {megabytes:.0} MB | {:.0} | {:.1} MB |",
            megabytes / used.cpu.as_secs_f64(),
            used.memory
        );
        fs::remove_file(path).unwrap();
    }
}

/// The program, with a home in which it keeps what was approved.
fn memctl(root: &Path, args: &[&str]) -> Command {
    let mut command = measure::memctl(root, args);
    command.env("HOME", root.with_file_name("home"));
    command
}

/// Approves every rule, as a person does.
fn confirm(root: &Path) {
    for n in 1..=RULES {
        let id = format!("REFL-{n:03}");
        run(memctl(root, &["memory", "approve", &id]));
    }
}

/// The event of a call, to the hook's standard input.
fn hook(root: &Path, event: &Value) -> Command {
    let path = root.join("event.json");
    fs::write(&path, event.to_string()).unwrap();
    let mut command = memctl(root, &["hook", "claude-code"]);
    command.stdin(File::open(path).unwrap());
    command
}

fn event(root: &Path, session: usize, name: &str, command: &str) -> Value {
    json!({"session_id": format!("bench-{session}"), "transcript_path": "/nowhere.jsonl", "cwd": root,
        "hook_event_name": name, "tool_name": "Bash", "tool_input": {"command": command},
        "tool_use_id": "toolu_1", "duration_ms": 12})
}

fn worked(root: &Path) -> Value {
    let mut event = event(root, 0, "PostToolUse", "cargo build");
    event["tool_response"] = json!({"stdout": "fine", "stderr": "", "interrupted": false});
    event
}

fn failed(root: &Path, n: usize) -> Value {
    let mut event = event(root, n, "PostToolUseFailure", &failing(n));
    event["error"] = format!("Exit code 1\n{}", error(n)).into();
    event["is_interrupt"] = false.into();
    event
}

fn started(root: &Path, session: usize) -> Value {
    let mut event = event(root, session, "SessionStart", "");
    event["source"] = "startup".into();
    event
}

/// Spreads the numbers of the rounds over the lessons.
fn word(n: usize) -> String {
    let mut left = n * 7_919 % LESSONS + 31;
    let mut word = String::new();
    while left > 0 {
        word.push_str(["ba", "de", "fi", "go", "hu", "ka", "le", "mi"][left % 8]);
        left /= 8;
    }
    word
}

fn error(n: usize) -> String {
    format!("Error: unknown column type {} in migration", word(n))
}

fn failing(n: usize) -> String {
    format!("migrate --type {} --table users", word(n))
}

fn lesson(n: usize, error: &str) -> Value {
    json!({"procedure_id": format!("PROC-{:03}", n + 1), "created_at": "2026-01-01T00:00:00+00:00",
        "status": "procedure_learned", "data": {}, "occurrences": 2, "helped": 2, "trust": "observed",
        "lesson": format!("Use `migrate --type text --table {}`.", word(n)),
        "applies": {"errors": [error], "commands": [failing(n)], "scope": "everywhere"},
        "pattern": {"error_key": error, "failing_code": failing(n), "success_output": "migrated 1 table",
            "working_code": format!("migrate --type text --table {}", word(n))}})
}

/// A user store with other lessons, and with its table.
fn user_store(home: &Path) {
    let root = home.join(".local/share/memctl/user");
    fs::create_dir_all(root.join(".agentura")).unwrap();
    let lessons: Vec<Value> = (0..RULES)
        .map(|n| lesson(n, &format!("Error: no such flag {} for the user", word(n))))
        .collect();
    let path = root.join(".agentura/procedural_memory.json");
    fs::write(path, json!({ "entries": lessons }).to_string()).unwrap();
    run(memctl(&root, &["hint", "--error", &error(1)]));
}

fn generate(root: &Path) {
    let memory = root.join(".agentura");
    fs::create_dir_all(&memory).unwrap();
    let mut out = BufWriter::new(File::create(memory.join("procedural_memory.json")).unwrap());
    write!(out, "{{\n  \"entries\": [").unwrap();
    for n in 0..LESSONS {
        let lesson = lesson(n, &error(n));
        write!(out, "{}\n    {lesson}", if n == 0 { "" } else { "," }).unwrap();
    }
    write!(out, "\n  ]\n}}").unwrap();
    out.flush().unwrap();
    let rules: Vec<Value> = (1..=RULES)
        .map(|n| {
            // Every tenth rule is about files, and concerns each call that changes one.
            let pattern = if n % 10 == 0 {
                json!({"on": "path", "match": format!("^db/{n}/")})
            } else {
                json!({"on": "command", "match": format!(r"^npm{n}\b")})
            };
            json!({"reflexion_id": format!("REFL-{n:03}"), "skill": format!("dev/part{}", n % 20),
                "created_at": "2026-01-01T00:00:00+00:00", "correction_id": "CORR-001", "mistake": failing(n),
                "root_cause": "", "applies_when": "", "confidence": 0.8, "utility_score": 0.5,
                "rule": format!("Use pnpm{n}, not npm{n}, in this project."), "seen_by": [pattern]})
        })
        .collect();
    let runs: Vec<Value> = (0..RULES)
        .map(|n| json!({"execution_id": format!("EXEC-{n}"), "skill": format!("dev/part{}", n % 10),
            "created_at": "2026-01-01T00:00:00+00:00", "input_summary": {"text": error(n)}, "output_summary": {"text": error(n)}}))
        .collect();
    for (name, entries) in [
        ("reflexion_entries.json", rules),
        ("episodic_memory.json", runs),
    ] {
        fs::write(memory.join(name), json!({ "entries": entries }).to_string()).unwrap();
    }
}

/// A session file of Claude Code of at least so many bytes: the recorded session, and behind it as much
/// reading of files as makes one failure overcome in 200 kB, which is what real sessions have.
fn sessions(dir: &Path, bytes: usize) -> PathBuf {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sessions/claude-code-stock.jsonl");
    let recorded = fs::read_to_string(recorded).unwrap();
    let path = dir.join("session.jsonl");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    let mut written = 0;
    let mut round = 0;
    while written < bytes {
        // Another name for each call, as in a session that goes on.
        let mut part = recorded.replace("toolu_", &format!("toolu_{round}x"));
        for n in 0..READS {
            part += &read_of_a_file(round * READS + n);
        }
        out.write_all(part.as_bytes()).unwrap();
        written += part.len();
        round += 1;
    }
    out.flush().unwrap();
    path
}

/// A call that reads a file of 20 kB, and its answer.
fn read_of_a_file(n: usize) -> String {
    let id = format!("toolu_read{n}");
    let line = format!(
        "{n}\tlet total = items.iter().map(|item| item.price * item.count).sum::<u64>();\n"
    );
    let call = json!({"type": "assistant", "sessionId": "bench", "uuid": format!("a{n}"), "message": {"role": "assistant",
        "content": [{"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": format!("/home/dev/project/src/part{n}.rs")}}]}});
    let answer = json!({"type": "user", "sessionId": "bench", "uuid": format!("u{n}"), "message": {"role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": line.repeat(20_000 / line.len())}]}});
    format!("{call}\n{answer}\n")
}
