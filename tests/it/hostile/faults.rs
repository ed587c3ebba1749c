//! Every call by which the program writes fails once, or is the last one of the process: the real program
//! under `strace`, which puts the fault in.
//!
//! After each fault: what was acknowledged before is there, the command said that it failed (or was
//! killed), the store is sound or repairs itself, and the same command works.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::skipped;
use crate::support::{RUN_SCRIPTED, scripted};
use crate::workspace::{Workspace, copy};

const SKILL: &str = "hr/resume-screen";
/// The calls that change files.
const CALLS: &str = "write,pwrite64,fsync,fdatasync,ftruncate,rename,renameat,renameat2,linkat,unlink,unlinkat,mkdir,mkdirat";
/// What a call comes to.
const FAULTS: [&str; 3] = ["signal=KILL", "error=EIO", "error=ENOSPC"];
/// The data files, and the fields that hold their ids.
const FILES: [(&str, &str); 8] = [
    ("episodic_memory.json", "execution_id"),
    ("corrections.json", "correction_id"),
    ("reflexion_entries.json", "reflexion_id"),
    ("reflexion_entries.local.json", "reflexion_id"),
    ("procedural_memory.json", "procedure_id"),
    ("procedural_memory.local.json", "procedure_id"),
    ("memories.json", "id"),
    ("sessions.json", "session_id"),
];

/// A command that writes.
struct Verb {
    name: &'static str,
    args: Vec<String>,
    stdin: Option<String>,
    /// Records that it may change or remove.
    touches: &'static [&'static str],
}

/// What came of a command under a fault.
#[derive(Debug)]
struct Outcome {
    /// `None` where it was killed.
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Whether the machine lets a process be traced.
fn can_trace() -> bool {
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=write", "true"])
        .output();
    let can = traced.is_ok_and(|ran| ran.status.success());
    if !can {
        skipped("no `strace` here, or it may not trace: faults at each write are not tested");
    }
    can
}

fn traced(workspace: &Workspace, options: &[&str], verb: &Verb) -> Outcome {
    let program = workspace.command();
    let mut command = Command::new("strace");
    let stdin = match &verb.stdin {
        Some(text) => Stdio::from(File::open(workspace.write("stdin.json", text)).unwrap()),
        None => Stdio::null(),
    };
    let ran = command
        .args(["-f", "-qq"])
        .args(options)
        .arg(program.get_program())
        .args(&verb.args)
        .current_dir(program.get_current_dir().unwrap())
        .env_clear()
        .envs(program.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .stdin(stdin)
        .output()
        .unwrap();
    let code = ran.status.code().filter(|code| *code != 137);
    Outcome {
        code: code.filter(|_| ran.status.signal().is_none()),
        stdout: String::from_utf8_lossy(&ran.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&ran.stderr).into_owned(),
    }
}

/// How often each call is made by a command that nothing happens to.
fn calls(workspace: &Workspace, verb: &Verb) -> BTreeMap<String, usize> {
    let log = workspace.root().join("calls.log");
    let trace = format!("trace={CALLS}");
    let options = ["-o", log.to_str().unwrap(), "-e", &trace];
    let ran = traced(workspace, &options, verb);
    assert_eq!(ran.code, Some(0), "{}: {ran:?}", verb.name);
    let mut text = String::new();
    File::open(&log).unwrap().read_to_string(&mut text).unwrap();
    fs::remove_file(&log).unwrap();
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        // `PID call(…) = …`
        let Some((_, call)) = line.split_once(' ') else {
            continue;
        };
        if let Some((call, _)) = call.trim_start().split_once('(')
            && CALLS.split(',').any(|known| known == call)
        {
            *counts.entry(call.to_owned()).or_insert(0) += 1;
        }
    }
    counts
}

fn with_fault(workspace: &Workspace, verb: &Verb, call: &str, fault: &str, at: usize) -> Outcome {
    let trace = format!("trace={call}");
    let inject = format!("inject={call}:{fault}:when={at}");
    let options = ["-o", "/dev/null", "-e", &trace, "-e", &inject];
    traced(workspace, &options, verb)
}

/// The records by their ids. The files must be JSON for everybody, and no id stands there twice.
fn records(workspace: &Workspace, what: &str) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for (file, field) in FILES {
        let Ok(bytes) = fs::read(workspace.memory(file)) else {
            continue;
        };
        let value: Value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|error| panic!("{what}: {file}: {error}"));
        let arrays = value.as_object().unwrap().values();
        for entry in arrays.filter_map(Value::as_array).flatten() {
            let id = entry[field].as_str().unwrap().to_owned();
            let before = all.insert(id.clone(), entry.clone());
            assert!(before.is_none(), "{what}: {id} is there twice");
        }
    }
    all
}

/// A memory that every verb has something to do in.
fn remembered() -> Workspace {
    let workspace = scripted();
    for _ in 0..2 {
        workspace.json(&verb_args("run"));
        workspace.json(&verb_args("correct"));
    }
    workspace.json(&verb_args("add"));
    workspace.json(&["learn", "fixtures/transcripts/swe-agent.traj"]);
    let other = Workspace::sample();
    other.json(&verb_args("add another"));
    other.json(&[
        "memory", "add", "--type", "brand_memory", "--content", "The claim is short.",
    ]);
    other.json(&["memory", "export", "--output", "all.jsonl"]);
    workspace.write("all.jsonl", other.read("all.jsonl"));
    // Hooks are asked about a failure that there is a procedure for.
    let failing =
        |code: &str| ["record", "failure", "--code", code, "--error", ERROR].map(str::to_owned);
    workspace.run(&failing("pip install x")).succeeds();
    let success = [
        "record", "success", "--code", "pip install --user x", "--output", "Successfully installed",
    ];
    workspace.run(&success).succeeds();
    workspace
}

const ERROR: &str = "error: externally-managed-environment";

fn verb_args(name: &str) -> Vec<String> {
    let args: &[&str] = match name {
        "run" => &RUN_SCRIPTED,
        "correct" => &[
            "correct",
            SKILL,
            "--execution-id",
            "latest",
            "--model",
            "offline",
            "--correction",
            "When an application names no employer, ALWAYS ask for one.",
        ],
        "add" => &[
            "memory", "add", "--type", "brand_memory", "--content", "The voice is calm.",
        ],
        "add another" => &[
            "memory", "add", "--type", "brand_memory", "--content", "The logo is blue.",
        ],
        "accept" => &["accept", "latest"],
        "edit" => &[
            "memory",
            "edit",
            "REFL-001",
            "--set",
            "rule=When no employer is named, ALWAYS ask.",
        ],
        "forget" => &["memory", "forget", "CORR-001"],
        "undo" => &["memory", "undo"],
        "learn" => &["learn", "fixtures/transcripts/steps.jsonl"],
        "import" => &["memory", "import", "all.jsonl"],
        other => panic!("{other}"),
    };
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

fn verbs(workspace: &Workspace) -> Vec<Verb> {
    let verb = |name, touches| Verb {
        name,
        args: [verb_args(name), vec!["--json".to_owned()]].concat(),
        stdin: None,
        touches,
    };
    let hook = |name, event: Value, touches| Verb {
        name,
        args: vec!["hook".to_owned(), "claude-code".to_owned()],
        stdin: Some(event.to_string()),
        touches,
    };
    let transcript = workspace.root().join("fixtures/transcripts/steps.jsonl");
    vec![
        verb("run", &["REFL-"]),
        verb("correct", &["REFL-001", "EXEC-"]),
        verb("accept", &["EXEC-", "REFL-"]),
        verb("edit", &["REFL-001"]),
        verb("forget", &["CORR-001"]),
        verb("undo", &["PROC-"]),
        verb("learn", &["PROC-"]),
        verb("import", &[]),
        verb("add another", &[]),
        hook(
            "hook at a failure",
            json!({"hook_event_name": "PostToolUseFailure", "session_id": "s", "tool_name": "Bash",
                "cwd": workspace.root(), "tool_input": {"command": "pip install y"}, "error": ERROR}),
            &["PROC-"],
        ),
        hook(
            "hook at the end",
            json!({"hook_event_name": "SessionEnd", "session_id": "s", "cwd": workspace.root(),
                "transcript_path": transcript}),
            &["PROC-", "SESS-"],
        ),
    ]
}

/// Puts a directory back to what it was.
fn restore(from: &Path, to: &Path) {
    fs::remove_dir_all(to).unwrap();
    copy(from, to);
}

/// Brings a memory in order after a fault: what `doctor` finds, it repairs.
fn in_order(workspace: &Workspace, what: &str) {
    let found = workspace.run(&["doctor", "--json"]);
    if found.code != 0 {
        let repaired = workspace.run(&["doctor", "--repair", "--json"]);
        let again = workspace.run(&["doctor", "--json"]);
        let problems = &again.document()["problems"];
        assert_eq!(problems, &json!([]), "{what}: {found:?} {repaired:?}");
    }
}

/// One fault, and everything that must hold after it.
fn check(
    workspace: &Workspace,
    before: &BTreeMap<String, Value>,
    verb: &Verb,
    call: &str,
    fault: &str,
    at: usize,
) {
    let what = format!("{}: {fault} at {call} {at}", verb.name);
    let outcome = with_fault(workspace, verb, call, fault, at);
    let is_hook = verb.args[0] == "hook";
    match outcome.code {
        None => assert_eq!(fault, "signal=KILL", "{what}: {outcome:?}"),
        Some(0) if is_hook => assert_eq!(outcome.stderr, "", "{what}: {outcome:?}"),
        Some(0) => {}
        // Where the output itself takes nothing, nothing can be said there.
        Some(_) => assert!(
            outcome.stdout.starts_with("{\"error\":")
                || outcome.stderr.contains("error: ")
                || call == "write",
            "{what}: {outcome:?}"
        ),
    }
    assert!(!outcome.stderr.contains("panicked"), "{what}: {outcome:?}");
    in_order(workspace, &what);
    let after = records(workspace, &what);
    for (id, record) in before {
        if !verb.touches.iter().any(|touched| id.starts_with(touched)) {
            assert_eq!(
                after.get(id),
                Some(record),
                "{what}: {id} is not what it was"
            );
        }
    }
    // What it said that it has done, it has done.
    if outcome.code == Some(0) && !is_hook {
        let said: Value = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
        for field in ["execution_id", "correction_id", "reflexion_id", "id"] {
            if let Some(id) = said[field].as_str() {
                let is_there = verb.name != "forget";
                assert_eq!(after.contains_key(id), is_there, "{what}: {id}");
            }
        }
        for id in said["learned"].as_array().into_iter().flatten() {
            assert!(after.contains_key(id.as_str().unwrap()), "{what}: {id}");
        }
    }
    // The next command works, and the one after it.
    workspace.json(&verb_args("run"));
    workspace.json(&verb_args("add"));
    let verified = workspace.run(&["memory", "audit", "verify", "--json"]);
    assert_eq!(verified.code, 0, "{what}: {verified:?}");
    let last = records(workspace, &what);
    let kept: BTreeSet<&String> = after.keys().collect();
    assert!(kept.iter().all(|id| last.contains_key(*id)), "{what}");
}

#[test]
#[ignore = "counts system calls, which other tests beside it disturb: make test-faults"]
fn every_write_of_every_verb_may_fail_or_be_the_last_one() {
    /// All of it takes minutes. What is left out in one run of the tests is the same in every run.
    const LONGEST: Duration = Duration::from_secs(75);
    if !can_trace() {
        return;
    }
    let start = Instant::now();
    let base = remembered();
    let saved = base.root().join("saved");
    copy(&base.memory(""), &saved.join("memory"));
    copy(&base.root().join("skills"), &saved.join("skills"));
    let before = records(&base, "before");
    let put_back = || {
        restore(&saved.join("memory"), &base.memory(""));
        restore(&saved.join("skills"), &base.root().join("skills"));
    };
    // Each point of each verb once, with another fault each time.
    let mut points = Vec::new();
    let mut turn = 0;
    for (number, verb) in verbs(&base).into_iter().enumerate() {
        put_back();
        for (call, count) in calls(&base, &verb) {
            for at in 1..=count {
                points.push((number, call.clone(), FAULTS[turn % FAULTS.len()], at));
                turn += 1;
            }
        }
    }
    assert!(points.len() > 100, "{} points", points.len());
    // Those of all verbs are mixed, so that the time that there is goes to all of them.
    let count = points.len();
    let step = (count * 5 / 8..=count)
        .find(|step| gcd(*step, count) == 1)
        .unwrap();
    let verbs = verbs(&base);
    let mut done = BTreeSet::new();
    for n in 0..count {
        let (number, call, fault, at) = &points[n * step % count];
        put_back();
        check(&base, &before, &verbs[*number], call, fault, *at);
        done.insert(*number);
        if start.elapsed() > LONGEST && done.len() == verbs.len() {
            skipped(&format!(
                "{} of {count} faults, for the time",
                count - n - 1
            ));
            break;
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How many procedures there are.
fn procedures(workspace: &Workspace, what: &str) -> usize {
    let all = records(workspace, what);
    all.keys().filter(|id| id.starts_with("PROC-")).count()
}

#[test]
fn learning_again_after_an_end_at_any_write_makes_no_second_procedure() {
    if !can_trace() {
        return;
    }
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let saved = workspace.root().join("saved");
    copy(&workspace.memory(""), &saved);
    let learn = Verb {
        name: "learn",
        args: [
            "learn",
            "fixtures/transcripts/anthropic.json",
            "fixtures/transcripts/steps.jsonl",
            "fixtures/transcripts/swe-agent.traj",
        ]
        .map(str::to_owned)
        .to_vec(),
        stdin: None,
        touches: &[],
    };
    let counts = calls(&workspace, &learn);
    let expected = procedures(&workspace, "without a fault");
    assert!(expected >= 3, "{expected}");
    for (call, count) in counts {
        // The calls that put bytes into the files, each; of the others the effect is the same.
        if !matches!(
            call.as_str(),
            "pwrite64" | "renameat2" | "rename" | "fdatasync"
        ) {
            continue;
        }
        for at in 1..=count {
            let what = format!("killed at {call} {at}");
            restore(&saved, &workspace.memory(""));
            let outcome = with_fault(&workspace, &learn, &call, "signal=KILL", at);
            assert_eq!(outcome.code, None, "{what}: {outcome:?}");
            workspace.run(&learn.args).succeeds();
            assert_eq!(procedures(&workspace, &what), expected, "{what}");
            // And nothing is counted twice.
            for (id, record) in records(&workspace, &what) {
                assert_eq!(record["occurrences"], json!(1.0), "{what}: {id}");
            }
        }
    }
}
