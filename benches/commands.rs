//! Every command that reads or writes a store, as cold processes, at several sizes.
//!
//! `make bench-commands` prints a table with the ratio to the smallest store and to the start of a
//! process. With `MEMCTL_BASE` it compares this build with that program instead, each on a store of its
//! own, in turn, and fails if a command takes 1.3 times as long. `SIZES` and `ONLY` (a part of a
//! command) restrict what is run.
//!
//! Deliberately absent: commands whose time is that of a model, of the network or of files that are no
//! store, and searches by meaning, which have a benchmark of their own.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on has failed"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "the benchmark makes the files that it measures"
)]

#[expect(dead_code, reason = "other benchmarks use the rest")]
mod measure;
mod stores;

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use measure::{Used, median, memctl, ms, program, run};
use serde_json::{Value, json};
use stores::{execution, generate, skill, write};

const SIZES: &str = "10 10000 100000";
const ROUNDS: usize = 15;
/// Ratio from which a command counts as slower.
const SLOWER: f64 = 1.3;
/// Other rounds for a command that seems slower, before it counts as such.
const AGAIN: usize = 45;

/// Records that a command names: another one in each round, so that each has work to do.
struct Records {
    size: usize,
}

impl Records {
    /// Executions from the newest on: the corrections are about the oldest.
    fn execution(&self, round: usize) -> String {
        format!("EXEC-{}", 20_260_101_000_000 + self.execution_number(round))
    }

    fn execution_number(&self, round: usize) -> usize {
        self.size - 1 - round % (self.size / 2)
    }

    /// Execution that no correction and no other command is about, and a case of its skill.
    fn known(&self) -> usize {
        self.size / 2 - 1
    }

    fn run(&self, rest: &str) -> String {
        format!("run|{}|--input|{rest}", skill(self.known()))
    }

    fn others(&self) -> usize {
        (self.size / 20).max(ROUNDS + AGAIN + 2)
    }

    fn rule(&self, round: usize) -> String {
        format!("REFL-{:03}", 1 + round % (self.size / 20).max(3))
    }

    /// Procedures, each for one command that changes it.
    fn procedure(&self, part: usize, round: usize) -> String {
        format!("PROC-{:03}", 1 + part * self.others() + round)
    }
}

/// Command with the arguments of a round, divided by `|`.
struct Case {
    name: &'static str,
    args: fn(&Records, usize) -> String,
    /// Standard input of a round.
    input: Option<fn(&Path, usize) -> Value>,
}

const fn case(name: &'static str, args: fn(&Records, usize) -> String) -> Case {
    Case {
        name,
        args,
        input: None,
    }
}

/// In the order of the help. What a command needs of an earlier one is made by it.
const CASES: &[Case] = &[
    case("status", |_, _| "status".into()),
    case("list", |_, _| "list".into()),
    case("show", |r, n| format!("show|{}", r.execution(n))),
    case("search --keyword", |_, n| {
        format!("search|--keyword|payment candidate {n}")
    }),
    case("why", |r, n| format!("why|{}", r.rule(n))),
    case("memory prompt", |_, _| "memory|prompt|d0/s0".into()),
    case("list memory", |_, _| "list|memory".into()),
    case("memory audit", |_, _| "memory|audit".into()),
    case("memory export", |_, _| "memory|export|-o|-".into()),
    case("memory undo --list", |_, _| "undo|--list".into()),
    case("session list", |_, _| "session|list".into()),
    case("hint", |_, n| format!("hint|--error|{}", error(n))),
    case("stats", |_, _| "stats".into()),
    case("doctor", |_, _| "doctor".into()),
    case("config show", |_, _| "config|show".into()),
    case("run --dry-run", |r, _| r.run("known.json|--dry-run")),
    case("run, a known input", |r, _| {
        r.run("known.json|--model|offline|--no-record")
    }),
    case("run, a similar input", |r, _| {
        r.run("similar.json|--model|offline|--no-record")
    }),
    case("run, recorded", |r, _| r.run("known.json|--model|offline")),
    case("accept", |r, n| format!("accept|{}", r.execution(n))),
    case("reject", |r, n| format!("reject|{}", r.execution(n))),
    case("correct", |r, n| {
        let skill = skill(r.execution_number(n));
        let text = format!("When case {n} comes up, always mention figure {n} first.");
        format!(
            "correct|{skill}|--execution-id|{}|--correction|{text}",
            r.execution(n)
        )
    }),
    case("correct SKILL TEXT", |_, n| {
        format!("correct|d0/s0|Never mention the number {n}.")
    }),
    case("memory approve", |r, n| {
        format!("memory|approve|{}", r.procedure(0, n))
    }),
    case("memory edit", |r, n| {
        format!("edit|{}|--set|applies_when=when screening {n}", r.rule(n))
    }),
    case("memory forget", |r, n| {
        format!("forget|{}", r.procedure(1, n))
    }),
    case("memory undo", |_, _| "undo".into()),
    case("memory add", |_, n| {
        format!("memory|add|--type|task_memory|--content|The budget of part {n} was raised.")
    }),
    case("memory prune", |_, _| "memory|prune".into()),
    case("session start", |_, _| "session|start|--step|plan".into()),
    case("session log", |_, _| {
        "session|log|latest|--step|plan|--action|decision|--status|success".into()
    }),
    case("session end", |r, n| {
        format!("session|end|SESS-{}", 20_250_101_000_000 + n % r.others())
    }),
    case("record failure", |_, n| {
        format!("record|failure|--code|migrate part{n}|--error|{}", error(n))
    }),
    case("record success", |_, n| {
        format!("record|success|--code|migrate part{n} --force|--output|done")
    }),
    Case {
        name: "hook, a call that failed",
        args: |_, _| "hook|claude-code".into(),
        input: Some(failed),
    },
];

fn main() -> ExitCode {
    let sizes = env::var("SIZES").unwrap_or_else(|_| SIZES.to_owned());
    let sizes: Vec<usize> = sizes.split(' ').map(|size| size.parse().unwrap()).collect();
    let only = env::var("ONLY").unwrap_or_default();
    let cases: Vec<&Case> = CASES
        .iter()
        .filter(|case| case.name.contains(&only))
        .collect();
    let own = PathBuf::from(env!("CARGO_BIN_EXE_memctl"));
    let dir = tempfile::tempdir().unwrap();
    let store = |name: &str, size: usize, program: &Path| {
        let root = dir.path().join(name).join(size.to_string());
        make(&root, size, program);
        root
    };
    match env::var_os("MEMCTL_BASE") {
        None => {
            let roots: Vec<PathBuf> = sizes.iter().map(|size| store("own", *size, &own)).collect();
            table(&cases, &sizes, &roots, &own);
            ExitCode::SUCCESS
        }
        Some(base) => {
            let base = PathBuf::from(base);
            let mut slower = Vec::new();
            for size in sizes {
                let roots = [store("own", size, &own), store("base", size, &base)];
                slower.extend(compare(&cases, size, &roots, [&own, &base]));
            }
            if slower.is_empty() {
                return ExitCode::SUCCESS;
            }
            println!(
                "\nslower than {SLOWER} times the base:\n{}",
                slower.join("\n")
            );
            ExitCode::FAILURE
        }
    }
}

/// Prints the medians of every command, each size in turn.
fn table(cases: &[&Case], sizes: &[usize], roots: &[PathBuf], own: &Path) {
    let start = median(&mut times(ROUNDS, |_| {
        memctl(Path::new("/"), &["--version"])
    }));
    println!("Start of a process (`memctl --version`): {}\n", ms(start));
    let heads: Vec<String> = sizes.iter().map(|size| format!(" {size} |")).collect();
    println!(
        "| command |{} last to first | first to start |",
        heads.concat()
    );
    println!("|---|{}---|---|", "---|".repeat(sizes.len()));
    for case in cases {
        let mut of_sizes: Vec<Vec<Duration>> = vec![Vec::new(); sizes.len()];
        for round in 0..=ROUNDS {
            for ((size, root), times) in sizes.iter().zip(roots).zip(&mut of_sizes) {
                let used = run(command(own, root, case, *size, round));
                // The first one is for the caches.
                if round > 0 {
                    times.push(used.time);
                }
            }
        }
        let medians: Vec<Duration> = of_sizes.iter_mut().map(|times| median(times)).collect();
        let cells: Vec<String> = medians
            .iter()
            .map(|time| format!(" {} |", ms(*time)))
            .collect();
        let (first, last) = (medians[0], medians[medians.len() - 1]);
        println!(
            "| `{}` |{} {:.2} | {:.2} |",
            case.name,
            cells.concat(),
            ratio(last, first),
            ratio(first, start)
        );
    }
}

/// Prints the medians of both programs, and returns the commands that are slower now.
fn compare(
    cases: &[&Case],
    size: usize,
    roots: &[PathBuf; 2],
    programs: [&Path; 2],
) -> Vec<String> {
    println!("\n| command, {size} executions | this build | base | ratio |\n|---|---|---|---|");
    let mut slower = Vec::new();
    for case in cases {
        let mut first = 0;
        let mut pairs = |rounds: usize| {
            let mut both = [Vec::new(), Vec::new()];
            for round in first..=first + rounds {
                for i in [round % 2, 1 - round % 2] {
                    let used = attempt(command(programs[i], &roots[i], case, size, round))?;
                    if round > first {
                        both[i].push(used.time);
                    }
                }
            }
            first += rounds + 1;
            Some(both.map(|mut times| median(&mut times)))
        };
        let is_slower = |[own, base]: &[Duration; 2]| ratio(*own, *base) > SLOWER;
        let mut medians = pairs(ROUNDS);
        if medians.as_ref().is_some_and(is_slower) {
            medians = pairs(AGAIN);
        }
        let Some([own, base]) = medians else {
            println!("| `{}` | | | fails in one of them |", case.name);
            continue;
        };
        let line = format!(
            "| `{}` | {} | {} | {:.2} |",
            case.name,
            ms(own),
            ms(base),
            ratio(own, base)
        );
        println!("{line}");
        if is_slower(&[own, base]) {
            slower.push(line);
        }
    }
    slower
}

fn times(rounds: usize, command: impl Fn(usize) -> Command) -> Vec<Duration> {
    run(command(0));
    (1..=rounds).map(|round| run(command(round)).time).collect()
}

/// Runs a command that an older program may not know.
fn attempt(mut command: Command) -> Option<Used> {
    command.stderr(std::process::Stdio::null());
    measure::ended(&mut command).ok()
}

fn command(own: &Path, root: &Path, case: &Case, size: usize, round: usize) -> Command {
    let args = (case.args)(&Records { size }, round);
    let args: Vec<&str> = args.split('|').collect();
    let mut command = program(own, root, &args);
    if let Some(input) = case.input {
        let path = root.join("input.json");
        fs::write(&path, input(root, round).to_string()).unwrap();
        command.stdin(File::open(path).unwrap());
    }
    command.stderr(std::process::Stdio::null());
    command
}

/// Makes a store, and lets the program derive what it keeps beside the records.
fn make(root: &Path, size: usize, own: &Path) {
    generate(root, size);
    let memory = root.join(".agentura");
    let records = Records { size };
    let others = records.others();
    write(
        &memory.join("procedural_memory.json"),
        "entries",
        2 * others,
        |n| {
            json!({"procedure_id": format!("PROC-{:03}", n + 1), "created_at": "2026-01-01T00:00:00+00:00",
            "status": "procedure_learned", "data": {}, "trust": "observed", "pattern": {"error_key": error(n),
            "failing_code": format!("migrate --type {n}"), "working_code": format!("migrate --type text --table {n}"),
            "success_output": "migrated 1 table"}})
        },
    );
    write(&memory.join("memories.json"), "entries", others, |n| {
        json!({ "id": format!("MEM-{:03}", n + 1), "memory_type": "brand_memory", "content": format!("Brand {n} speaks plainly."),
            "metadata": {}, "created_at": "2026-01-01T00:00:00+00:00", "updated_at": "2026-01-01T00:00:00+00:00", "expires_at": null })
    });
    write(&memory.join("sessions.json"), "entries", others, |n| {
        json!({ "session_id": format!("SESS-{}", 20_250_101_000_000 + n), "status": "executing", "current_step": "plan",
            "progress_percentage": 0, "total_steps": 8, "completed_steps": [], "error_message": null, "session_data": {},
            "started_at": "2025-01-01T00:00:00+00:00", "completed_at": null, "created_at": "2025-01-01T00:00:00+00:00",
            "updated_at": "2025-01-01T00:00:00+00:00" })
    });
    fs::write(
        root.join("known.json"),
        execution(records.known()).input_summary.get(),
    )
    .unwrap();
    let text = execution(records.known())
        .input_summary
        .get()
        .replace("Candidate", "Candidate Noor");
    fs::write(root.join("similar.json"), text).unwrap();
    for args in [
        &["status"][..],
        &["search", "--keyword", "payment"],
        &["hint", "--error", "Error: none"],
        &["session", "start"],
    ] {
        let mut command = program(own, root, args);
        command.stderr(std::process::Stdio::null());
        run(command);
    }
    let known = records.run("known.json|--model|offline|--no-record");
    let known: Vec<&str> = known.split('|').collect();
    let mut command = program(own, root, &known);
    command.stderr(std::process::Stdio::null());
    run(command);
}

fn error(n: usize) -> String {
    format!("Error: unknown column type part{n} in migration")
}

fn failed(root: &Path, n: usize) -> Value {
    json!({ "session_id": format!("bench-{n}"), "transcript_path": "/nowhere.jsonl", "cwd": root,
        "hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": { "command": format!("migrate --type {n}") },
        "tool_use_id": "toolu_1", "duration_ms": 12, "error": format!("Exit code 1\n{}", error(n)), "is_interrupt": false })
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}
