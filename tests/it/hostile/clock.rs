//! Clocks that nobody has set: before 1970, at the end of the calendar, going backwards.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::support::skipped;
use crate::support::with_input;
use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";
const RULE: &str = "When screening for senior roles, ALWAYS weigh system design separately.";

/// The commands that a workspace sees in its life, with every kind of record in it.
fn life() -> Vec<Vec<&'static str>> {
    let lines = [
        "init",
        "run hr/resume-screen --input fixtures/sample_input.json",
        "correct hr/resume-screen --execution-id latest --correction RULE",
        "accept latest",
        "reject latest --reason vague",
        "test hr/resume-screen --allow-skipped",
        "run hr/resume-screen --input fixtures/sample_input.json",
        "record failure --code x --error KeyError:'x'",
        "record success --code y --output fixed",
        "hint --error KeyError:'x'",
        "memory status",
        "memory add --type task_memory --content short",
        "memory add --type task_memory --content long --expires-at 90d",
        "memory add --type brand_memory --content calm",
        "memory list",
        "memory list memories",
        "memory list executions",
        "memory show REFL-001",
        "memory why REFL-001",
        "memory search design",
        "memory search design --since 2020-01-01",
        "memory prompt hr/resume-screen",
        "memory approve MEM-001",
        "memory edit REFL-001 --set confidence=0.5",
        "review",
        "memory prune",
        "memory audit",
        "memory undo --list",
        "memory undo",
        "memory export --output out.jsonl",
        "memory import out.jsonl",
        "memory forget REFL-001",
        "session start work",
        "session list",
        "session end work",
        "learn fixtures",
        "stats",
        "stats --html stats.html",
        "token --sub ann --scope hr",
        "trust",
        "config show",
        "index",
        "doctor",
        "doctor --repair",
        "memory purge --yes",
    ];
    lines
        .into_iter()
        .map(|line| {
            let words = line.split(' ');
            words
                .map(|word| if word == "RULE" { RULE } else { word })
                .collect()
        })
        .collect()
}

#[track_caller]
fn is_orderly(ran: &Ran, what: &str) {
    assert!(
        !ran.stderr.contains("panicked") && [0, 1, 2, 3, 4, 5, 6].contains(&ran.code),
        "{what}: {ran:?}"
    );
}

/// A hook at a failure and one at the end of a session: silent at worst.
fn hooks(workspace: &Workspace, change: &dyn Fn(&mut Command), what: &str) {
    let root = workspace.root();
    for event in [
        json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": root, "source": "startup"}),
        json!({"hook_event_name": "PostToolUseFailure", "session_id": "s", "cwd": root,
            "tool_name": "Bash", "tool_input": {"command": "x"}, "error": "KeyError: 'x'"}),
        json!({"hook_event_name": "SessionEnd", "session_id": "s", "cwd": root, "reason": "exit"}),
    ] {
        let mut command = workspace.command();
        command.args(["hook", "claude-code"]);
        change(&mut command);
        let ran = with_input(&mut command, event.to_string().as_bytes());
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (0, ""),
            "{what} {event}: {ran:?}"
        );
    }
}

/// Commands after which nothing may have gone wrong, for clocks that stand still.
const MUST_SUCCEED: [&str; 9] = [
    "init", "run", "correct", "accept", "hint", "token", "index", "stats", "learn",
];

fn lives(workspace: &Workspace, change: &dyn Fn(&mut Command), what: &str) {
    for line in life() {
        let mut command = workspace.command();
        command.args(&line);
        change(&mut command);
        let ran = Ran::of(command.output().unwrap());
        let what = format!("{what} {line:?}");
        is_orderly(&ran, &what);
        if MUST_SUCCEED.contains(&line[0]) {
            assert_eq!(ran.code, 0, "{what}: {ran:?}");
        }
        if line[0] == "record" {
            hooks(workspace, change, &what);
        }
    }
}

#[test]
fn every_command_does_its_work_at_both_ends_of_the_calendar() {
    for now in [
        "0000-01-01T00:00:00Z",
        "1960-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59.999999Z",
    ] {
        let mut workspace = Workspace::sample();
        workspace.set("MEMCTL_NOW", now);
        lives(&workspace, &|_| {}, now);
    }
}

#[test]
fn a_time_that_goes_backwards_loses_nothing() {
    let workspace = Workspace::sample();
    let at = |now: &str, line: &[&str]| {
        let mut command = workspace.command();
        let ran = Ran::of(command.args(line).env("MEMCTL_NOW", now).output().unwrap());
        assert_eq!(ran.code, 0, "{now} {line:?}: {ran:?}");
    };
    for now in [
        "9999-12-31T23:59:59Z", "1960-01-01T00:00:00Z", "2026-02-20T12:00:00Z",
    ] {
        at(
            now,
            &["run", SKILL, "--input", "fixtures/sample_input.json"],
        );
        at(
            now,
            &["memory", "add", "--type", "brand_memory", "--content", now],
        );
    }
    let status = workspace.json(&["memory", "status"]);
    assert_eq!(
        (&status["executions"], &status["memories"]),
        (&json!(3), &json!(3))
    );
    workspace.run(&["doctor"]).succeeds();
    workspace.run(&["memory", "undo"]).succeeds();
}

/// A library that tells every process another time of day; `None`, loudly, where none can be made.
fn false_clock(workspace: &Workspace) -> Option<PathBuf> {
    const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *time) {
    int done = (int)syscall(SYS_clock_gettime, id, time);
    const char *told = getenv("FALSE_SECONDS");
    if (done == 0 && id == CLOCK_REALTIME && told) time->tv_sec = (time_t)atoll(told);
    return done;
}
"#;
    let source = workspace.write("clock.c", SOURCE);
    let library = source.with_extension("so");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    fs::remove_file(&source).unwrap();
    let is_made = cfg!(target_os = "linux") && made.is_ok_and(|made| made.success());
    if !is_made {
        skipped("a false clock: no `cc` makes a library that could be one");
    }
    is_made.then_some(library)
}

#[test]
fn the_clock_of_the_machine_may_stand_anywhere() {
    let workspace = Workspace::sample();
    let Some(library) = false_clock(&workspace) else {
        return;
    };
    let library = library.as_path();
    // 1960, the second before 1970, 2038, 9999, and years that no calendar here has.
    for seconds in [
        "-315619200", "-1", "2147483648", "253402300799", "253402300800", "9223372036854775",
        "-9223372036854775",
    ] {
        let change = |command: &mut Command| {
            command
                .env_remove("MEMCTL_NOW")
                .env("LD_PRELOAD", library)
                .env("FALSE_SECONDS", seconds);
        };
        let mut told = workspace.command();
        change(told.args([
            "memory", "add", "--type", "brand_memory", "--content", seconds,
        ]));
        is_orderly(&Ran::of(told.output().unwrap()), seconds);
        hooks(&workspace, &change, seconds);
        let mut served = workspace.command();
        change(served.args(["serve", "--addr", "127.0.0.1:0"]));
        if !(0..253_370_764_800).contains(&seconds.parse::<i64>().unwrap()) {
            let ran = Ran::of(served.output().unwrap());
            ran.fails(2, "the system clock");
        }
    }
    let memories = workspace.stored("memories.json");
    let entries = memories["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 7, "{entries:?}");
    assert!(
        entries[0]["created_at"]
            .as_str()
            .unwrap()
            .starts_with("1960-"),
        "the false clock was not asked: {}",
        entries[0]
    );
    let mut whole = Workspace::sample();
    whole.set("LD_PRELOAD", library.to_str().unwrap());
    whole.set("FALSE_SECONDS", "-315619200");
    lives(
        &whole,
        &|command| {
            command.env_remove("MEMCTL_NOW");
        },
        "a clock in 1960",
    );
}
