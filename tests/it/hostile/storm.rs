//! Many processes of every verb that writes, killed at random moments; then the books are balanced.
//!
//! Every command makes something with a mark of its own, or changes or removes what its writer has made
//! before. What was acknowledged is there exactly once, what was acknowledged as removed is not, and what
//! was not acknowledged is there at most once.
//!
//! `undo` is not among the verbs: it takes back the last change of whoever made it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{RUN_SCRIPTED, scripted};
use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";
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

/// Most procedures of one writer: of those that nobody has approved, only the newest 200 are kept.
const PROCEDURES: usize = 24;

/// What one writer was told.
#[derive(Default)]
struct Book {
    /// The ids that must be there, with the text that their records must hold.
    present: BTreeMap<String, String>,
    /// The ids that must not be there.
    gone: BTreeSet<String>,
    /// Texts of records, with how many of them must be there, or at most where that was not acknowledged.
    marks: BTreeMap<String, (usize, bool)>,
    kills: usize,
    acknowledged: BTreeMap<&'static str, usize>,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

struct Writer<'a> {
    workspace: &'a Workspace,
    number: usize,
    random: Random,
    book: Book,
    /// How long a command takes, in microseconds.
    span: u64,
    /// How many procedures it has made, or begun to make.
    procedures: usize,
}

impl Writer<'_> {
    /// Runs a command, and kills one in two of them. Answers its document where it has acknowledged all that
    /// it was to do.
    fn ask(&mut self, verb: &'static str, args: &[&str]) -> Option<Value> {
        let mut command = self.workspace.command();
        command.args(args).arg("--json");
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let is_killed = self.random.below(2) == 0;
        if is_killed {
            let moment = self.random.below(self.span * 3 / 2);
            std::thread::sleep(Duration::from_micros(moment));
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let was_killed = output.status.code().is_none();
        self.book.kills += usize::from(was_killed);
        let ran = Ran::whole(output);
        if !was_killed {
            assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        }
        // What it has said it has done, also where it was killed after that.
        let said = serde_json::from_str(&ran.stdout).ok()?;
        *self.book.acknowledged.entry(verb).or_default() += 1;
        Some(said)
    }

    fn present(&mut self, id: &Value, mark: &str) {
        let id = id.as_str().unwrap().to_owned();
        self.book.present.insert(id, mark.to_owned());
    }

    fn mark(&mut self, mark: &str, count: usize, is_sure: bool) {
        self.book.marks.insert(mark.to_owned(), (count, is_sure));
    }

    fn turn(&mut self, turn: usize) {
        let mark = format!("mark-{}-{turn}.", self.number);
        let mut kind = turn % 8;
        if matches!(kind, 3 | 5) {
            if self.procedures == PROCEDURES {
                kind = 2;
            } else {
                self.procedures += 1;
            }
        }
        match kind {
            0 | 4 => {
                let input = json!({"mark": mark}).to_string();
                let name = format!("input-{}.json", self.number);
                self.workspace.write(&name, input);
                let args = [
                    "run", SKILL, "--input", &name, "--model", "scripted:replies.jsonl",
                ];
                let said = self.ask("run", &args);
                self.mark(&mark, 1, said.is_some());
                if let Some(said) = said {
                    self.present(&said["execution_id"], &mark);
                    let id = said["execution_id"].as_str().unwrap().to_owned();
                    drop(self.ask("accept", &["accept", &id]));
                }
            }
            1 => {
                let rule =
                    format!("When case {mark} names no employer, ALWAYS ask for number {mark}");
                let args = [
                    "correct", SKILL, "--execution-id", "latest", "--model", "offline",
                    "--correction", &rule,
                ];
                if let Some(said) = self.ask("correct", &args) {
                    self.present(&said["correction_id"], &mark);
                    self.present(&said["reflexion_id"], &mark);
                    self.mark(&mark, 2, true);
                } else {
                    self.mark(&mark, 2, false);
                }
            }
            2 | 6 => self.note(&mark),
            3 => {
                let (failing, working) = (format!("tool {mark} a"), format!("tool {mark} b"));
                let session = format!("s-{mark}");
                let error = "error: no such thing";
                let args = [
                    "record", "failure", "--code", &failing, "--error", error, "--session",
                    &session,
                ];
                if self.ask("record", &args).is_none() {
                    return;
                }
                let args = [
                    "record", "success", "--code", &working, "--output", "ok", "--session",
                    &session,
                ];
                let said = self.ask("record", &args);
                self.mark(&mark, 1, said.is_some());
                if let Some(said) = said {
                    self.present(&said["learned"][0], &mark);
                }
            }
            5 => self.session(&mark),
            _ => {
                let data = json!({"mark": mark}).to_string();
                let said = self.ask("session", &["session", "start", "--data", &data]);
                self.mark(&mark, 1, said.is_some());
                if let Some(said) = said {
                    self.present(&said["session_id"], &mark);
                }
            }
        }
    }

    /// A note that is added, and then edited, forgotten or left.
    fn note(&mut self, mark: &str) {
        let content = format!("Note {mark}");
        let args = [
            "memory", "add", "--type", "brand_memory", "--content", &content,
        ];
        let Some(said) = self.ask("add", &args) else {
            self.mark(mark, 1, false);
            return;
        };
        let id = said["id"].as_str().unwrap().to_owned();
        self.present(&said["id"], mark);
        self.mark(mark, 1, true);
        match self.random.below(3) {
            0 => {
                let set = format!("content=Edited note {mark}");
                if self
                    .ask("edit", &["memory", "edit", &id, "--set", &set])
                    .is_some()
                {
                    self.book.present.insert(id, format!("Edited note {mark}"));
                }
            }
            1 => {
                let done = self.ask("forget", &["memory", "forget", &id]).is_some();
                self.book.present.remove(&id);
                if done {
                    self.book.gone.insert(id);
                    self.mark(mark, 0, true);
                } else {
                    self.mark(mark, 1, false);
                }
            }
            _ => {}
        }
    }

    /// A session file that is learned from until that is acknowledged: one procedure, once.
    fn session(&mut self, mark: &str) {
        let name = format!("session-{mark}jsonl");
        let text = format!(
            "{}\n{}\n{}\n",
            json!({"session": mark, "cwd": "/home/u/shop"}),
            json!({"tool": "bash", "id": "1", "input": format!("jq -f {mark}.jq report.json"), "exit_code": 5,
                "error": format!("jq: error (at report.json:1): module not found: {mark}")}),
            json!({"tool": "bash", "id": "2", "input": format!("jq -L lib -f {mark}.jq report.json"),
                "output": "412", "exit_code": 0}),
        );
        self.workspace.write(&name, text);
        for _ in 0..4 {
            if self.ask("learn", &["learn", &name]).is_some() {
                self.mark(mark, 1, true);
                return;
            }
        }
        self.mark(mark, 1, false);
    }
}

/// The records of all files by their ids. The files must be JSON for everybody, and every id unique.
fn records(workspace: &Workspace) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (file, field) in FILES {
        let value: Value = match fs::read(workspace.memory(file)) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap(),
            Err(_) => continue,
        };
        let arrays = value.as_object().unwrap().values();
        for entry in arrays.filter_map(Value::as_array).flatten() {
            let id = entry[field].as_str().unwrap().to_owned();
            let before = all.insert(id.clone(), entry.to_string());
            assert!(before.is_none(), "{id} is there twice");
        }
    }
    all
}

fn storm(seconds: u64, writers: usize) {
    let workspace = scripted();
    let start = Instant::now();
    workspace.json(&RUN_SCRIPTED);
    let span = u64::try_from(start.elapsed().as_micros()).unwrap();
    let until = Instant::now() + Duration::from_secs(seconds);
    let books: Vec<Book> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|number| {
                let mut writer = Writer {
                    workspace: &workspace,
                    number,
                    random: Random(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1)),
                    book: Book::default(),
                    span,
                    procedures: 0,
                };
                scope.spawn(move || {
                    let mut turn = number;
                    while Instant::now() < until {
                        writer.turn(turn);
                        turn += 1;
                    }
                    writer.book
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    // What the last kills have left is repaired by the next writers.
    for kind in ["run", "add"] {
        let args: &[&str] = match kind {
            "run" => &RUN_SCRIPTED,
            _ => &[
                "memory", "add", "--type", "brand_memory", "--content", "The last note.",
            ],
        };
        workspace.json(args);
    }
    if workspace.run(&["doctor"]).code != 0 {
        let repaired = workspace.run(&["doctor", "--repair", "--json"]);
        let problems = workspace.json_of(&["doctor"])["problems"].clone();
        assert_eq!(problems, json!([]), "{repaired:?}");
    }
    let all = records(&workspace);
    let (mut kills, mut acknowledged) = (0, BTreeMap::<&str, usize>::new());
    for book in &books {
        kills += book.kills;
        for (verb, count) in &book.acknowledged {
            *acknowledged.entry(verb).or_default() += count;
        }
        for (id, text) in &book.present {
            let record = all
                .get(id)
                .unwrap_or_else(|| panic!("{id} ({text}) is gone"));
            assert!(
                record.contains(text.as_str()),
                "{id} does not say {text}: {record}"
            );
        }
        for id in &book.gone {
            assert!(!all.contains_key(id), "{id} was forgotten");
        }
        for (mark, (count, is_sure)) in &book.marks {
            let found = all
                .values()
                .filter(|record| record.contains(mark.as_str()))
                .count();
            let is_right = if *is_sure {
                found == *count
            } else {
                found <= *count
            };
            assert!(
                is_right,
                "{mark}: {found} records, {count} expected, acknowledged: {is_sure}"
            );
        }
    }
    let of = |prefix: &str| all.keys().filter(|id| id.starts_with(prefix)).count();
    let verified = workspace.run(&["memory", "audit", "verify", "--json"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    let changes = workspace.json(&["memory", "undo", "--list"]);
    assert!(!changes["changes"].as_array().unwrap().is_empty());
    // What is derived from the files tells of the same records.
    let status = workspace.json(&["memory", "status"]);
    for (name, prefix) in [
        ("executions", "EXEC-"),
        ("corrections", "CORR-"),
        ("reflexions", "REFL-"),
        ("procedures", "PROC-"),
        ("memories", "MEM-"),
    ] {
        assert_eq!(status[name], json!(of(prefix)), "{name}");
    }
    let notes = books.iter().flat_map(|book| &book.present);
    for (id, text) in notes.filter(|(id, _)| id.starts_with("MEM-")).take(20) {
        let found = workspace.json(&["memory", "search", text, "--kind", "memory", "-n", "10"]);
        let found = found["results"].as_array().unwrap();
        assert!(
            found.iter().any(|one| one["id"] == id.as_str()),
            "{id}: {text}"
        );
    }
    let verbs = [
        "run", "accept", "correct", "add", "edit", "forget", "record", "learn", "session",
    ];
    let enough = verbs
        .iter()
        .filter(|verb| acknowledged.contains_key(*verb))
        .count();
    assert!(enough >= verbs.len() - 1, "{acknowledged:?}");
    let told = format!("storm: {kills} processes were killed, acknowledged were {acknowledged:?}");
    drop(writeln!(std::io::stderr(), "{told}"));
    assert!(kills > 10, "{kills} kills");
}

#[test]
fn a_short_storm_loses_nothing_that_was_acknowledged_and_doubles_nothing() {
    storm(10, 4);
}

#[test]
#[ignore = "a minute: make test-storm"]
fn a_minute_of_storm_loses_nothing_that_was_acknowledged_and_doubles_nothing() {
    storm(60, 8);
}
