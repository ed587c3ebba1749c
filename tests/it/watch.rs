//! Watching a store while others write to it, and the state of the terminal after an interrupt.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fake_model::{Behaviour, FakeModel};
use crate::hosts::hook;
use crate::schemas::assert_valid;
use crate::support::skipped;
use crate::support::{EVER, RUN_SCRIPTED, Running, correction, interrupt, scripted, until};
use crate::terminal::Terminal;
use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";
fn record(workspace: &Workspace) -> String {
    let report = workspace.json(&RUN_SCRIPTED);
    report["execution_id"].as_str().unwrap().to_owned()
}

/// A running `memctl watch`.
struct Watcher(Running);

impl Watcher {
    fn start(workspace: &Workspace, args: &[&str]) -> Self {
        Self(Running::start(workspace.command().arg("watch").args(args)))
    }

    /// The id in the next line, which is JSON.
    fn id(&self) -> String {
        self.0.document()["execution_id"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn expect(&self, ids: &[String]) {
        for id in ids {
            assert_eq!(&self.id(), id);
        }
    }

    /// Nothing more comes than what has been read.
    fn interrupt(self) {
        interrupt(&self.0.child);
        assert_eq!(self.0.ends(), Some(130));
    }
}

/// Appends executions as the reference does: the whole file is read, and written anew in place.
/// `false`, loudly, where there is no Python.
fn append_with_python(workspace: &Workspace, skill: &str, ids: &[String]) -> bool {
    const PROGRAM: &str = r#"
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
data = json.loads(path.read_text()) if path.exists() else {"entries": []}
for id in sys.argv[3:]:
    data["entries"].append({"execution_id": id, "skill": sys.argv[2],
        "timestamp": "2026-02-20T12:43:41.681444+00:00", "input_summary": {"text": "x" * 500},
        "output_summary": {"score": float("1e16")}, "outcome": "accepted", "cost_usd": 0.0093,
        "latency_ms": 1062.0, "model_used": "anthropic/claude-sonnet-4.5", "triggered_by": ""})
path.write_text(json.dumps(data, indent=2))
"#;
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM]);
    python.arg(workspace.memory("episodic_memory.json"));
    match python.arg(skill).args(ids).status() {
        Ok(status) => {
            assert!(status.success());
            true
        }
        Err(error) => {
            skipped(&format!("a store that Python writes: {error}"));
            false
        }
    }
}

fn numbered(from: u32, to: u32) -> Vec<String> {
    let id = |n| format!("EXEC-20260220130000-{n:06x}");
    (from..to).map(id).collect()
}

#[test]
fn every_execution_is_shown_when_it_was_recorded() {
    let workspace = scripted();
    let first = [record(&workspace), record(&workspace)];
    let watcher = Watcher::start(&workspace, &["--json"]);
    watcher.expect(&first);
    for _ in 0..21 {
        let id = record(&workspace);
        watcher.expect(&[id]);
    }
    watcher.interrupt();
}

#[test]
fn piped_it_prints_a_line_for_each_execution() {
    let workspace = scripted();
    record(&workspace);
    let watcher = Watcher::start(&workspace, &[]);
    let line = watcher.0.line();
    for part in [
        "EXEC-20260220124341", SKILL, "pending_review", "replies", "2026-02-20T12:43:41",
    ] {
        assert!(line.contains(part), "{line}");
    }
    record(&workspace);
    assert!(watcher.0.line().contains("EXEC-20260220124341-2"));
    watcher.interrupt();
}

#[test]
fn writes_of_another_program_are_shown_and_none_is_missed() {
    let workspace = scripted();
    fs::create_dir(workspace.memory("")).unwrap();
    let first = numbered(0, 60);
    if !append_with_python(&workspace, SKILL, &first) {
        return;
    }
    let watcher = Watcher::start(&workspace, &["--json", "-n", "5"]);
    watcher.expect(&first[55..]);
    for n in 60..65 {
        let next = numbered(n, n + 1);
        append_with_python(&workspace, SKILL, &next);
        watcher.expect(&next);
    }
    // More at once than fit on the screen.
    let many = numbered(65, 105);
    append_with_python(&workspace, SKILL, &many);
    watcher.expect(&many);
    // What is removed brings nothing old back.
    workspace.run(&["memory", "forget", &many[39]]).succeeds();
    let ours = record(&workspace);
    watcher.expect(&[ours]);
    watcher.interrupt();
}

#[test]
fn a_crowd_of_writers_is_followed_without_a_gap() {
    let workspace = scripted();
    record(&workspace);
    let watcher = Watcher::start(&workspace, &["--json", "-n", "3"]);
    watcher.id();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..15).for_each(|_| drop(record(&workspace))));
        }
    });
    let mut seen: Vec<String> = (0..60).map(|_| watcher.id()).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 60);
    watcher.interrupt();
}

#[test]
fn only_the_skill_that_was_named_is_shown() {
    let workspace = scripted();
    fs::create_dir(workspace.memory("")).unwrap();
    let watcher = Watcher::start(&workspace, &["--json", "--skill", SKILL]);
    let ids = numbered(0, 5);
    let skills = [
        "dev/resume-screen", "hr/resume-screen-2", "hr/resume", "resume-screen", SKILL,
    ];
    for (id, skill) in ids.iter().zip(skills) {
        if !append_with_python(&workspace, skill, std::slice::from_ref(id)) {
            return;
        }
    }
    watcher.expect(&ids[4..]);
    let ours = record(&workspace);
    watcher.expect(&[ours]);
    watcher.interrupt();
    let ran = workspace.run(&["watch", "--skill", "no skill"]);
    ran.fails(2, "no skill");
}

#[test]
fn a_memory_that_is_made_later_is_seen() {
    for _ in 0..5 {
        let workspace = scripted();
        let watcher = Watcher::start(&workspace, &["--json"]);
        // Whether it is watching by then or not, nothing may be missed.
        let first = record(&workspace);
        watcher.expect(&[first]);
        let second = record(&workspace);
        watcher.expect(&[second]);
        watcher.interrupt();
    }
    for _ in 0..5 {
        let workspace = scripted();
        let watcher = Watcher::start(&workspace, &["--json"]);
        std::thread::sleep(Duration::from_millis(60));
        let first = record(&workspace);
        watcher.expect(&[first]);
        watcher.interrupt();
    }
}

/// Clock ticks that a process has used so far; a hundred are a second.
fn ticks(child: &Child) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

#[test]
fn waiting_costs_nothing() {
    let workspace = scripted();
    let first = record(&workspace);
    let watcher = Watcher::start(&workspace, &["--json"]);
    watcher.expect(&[first]);
    let Some(before) = ticks(&watcher.0.child) else {
        return skipped("the cost of waiting: there is no /proc");
    };
    std::thread::sleep(Duration::from_secs(2));
    let used = ticks(&watcher.0.child).unwrap() - before;
    assert!(used < 10, "{used} of 200 ticks");
    watcher.interrupt();
}

#[test]
fn it_ends_when_nobody_reads_any_more() {
    let workspace = scripted();
    record(&workspace);
    let mut command = workspace.command();
    let mut child = command.arg("watch").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut line).unwrap();
    drop(reader);
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > EVER {
            child.kill().unwrap();
            panic!("it goes on for nobody");
        }
        record(&workspace);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn on_a_terminal_lines_come_until_an_interrupt() {
    let workspace = scripted();
    let first = record(&workspace);
    let Some(terminal) = Terminal::open(&workspace, 80, 24) else {
        return;
    };
    terminal.type_line("NO_COLOR=1 memctl watch; echo code=$?");
    terminal.wait_for(&first);
    recover(&workspace);
    terminal.wait_for("lesson learned");
    meet_a_known_error(&workspace);
    let screen = terminal.wait_for("hint shown");
    assert!(
        screen.contains(&format!("{first}  {SKILL}  pending_review")),
        "{screen}"
    );
    terminal.keys(&["C-c"]);
    terminal.wait_for("code=130");
}

/// An agent that fails at a call whose fix is known gets a hint.
fn meet_a_known_error(workspace: &Workspace) {
    let event = json!({
        "session_id": "s-2", "cwd": workspace.root(), "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash", "tool_input": {"command": "git push"},
        "error": "Exit code 128\nfatal: No configured push destination.",
    });
    let told = hook(workspace, "claude-code", event.to_string()).stdout;
    assert!(told.contains("git push -u origin main"), "{told}");
}

/// Records the recovery of a push, as an agent without hooks does.
fn recover(workspace: &Workspace) {
    let error = "fatal: No configured push destination.";
    let failure = ["record", "failure", "--code", "git push", "--error", error];
    workspace.run(&failure).succeeds();
    let code = "git push -u origin main";
    let success = ["record", "success", "--code", code, "--output", "done"];
    workspace.run(&success).succeeds();
}

#[test]
fn hints_lessons_and_rules_are_shown_beside_executions() {
    let workspace = scripted();
    fs::create_dir(workspace.memory("")).unwrap();
    let all = Watcher::start(&workspace, &["--json"]);
    let some = Watcher::start(&workspace, &["--json", "--kind", "hints,rules"]);
    let text = Watcher::start(&workspace, &["--kind", "hints"]);
    let next = |watcher: &Watcher| {
        let document = watcher.0.document();
        assert_valid(&["watch"], &document);
        document
    };
    let id = record(&workspace);
    assert_eq!(next(&all)["execution_id"], id.as_str());
    workspace
        .run(&correction("Always give the evidence."))
        .succeeds();
    for watcher in [&all, &some] {
        let rule = &next(watcher)["rule"];
        assert_eq!(
            (&rule["id"], &rule["what"], &rule["text"]),
            (
                &json!("REFL-001"),
                &json!("rule made"),
                &json!("Always give the evidence.")
            )
        );
    }
    recover(&workspace);
    let lesson = next(&all)["lesson"].clone();
    assert_eq!(
        lesson["text"], "git push → git push -u origin main",
        "{lesson}"
    );
    let push = lesson["id"].clone();
    meet_a_known_error(&workspace);
    for watcher in [&all, &some] {
        let hint = &next(watcher)["hint"];
        assert_eq!(hint["records"], json!([push]));
        assert_eq!(hint["session"], "claude-code/s-2");
        assert_eq!(hint["tool"], "Bash");
        assert_eq!(hint["text"], "fatal: No configured push destination");
    }
    let line = text.0.line();
    let expected = format!(
        "{}  hint shown  fatal: No configured push destination  ",
        push.as_str().unwrap()
    );
    assert!(line.starts_with(&expected), "{line}");
    for watcher in [all, some, text] {
        watcher.interrupt();
    }

    // The past is shown by time, whatever its kind, and a skill has no lessons and no hints.
    let past = Watcher::start(&workspace, &["--json", "-n", "2"]);
    assert!(next(&past)["lesson"].is_object());
    assert!(next(&past)["hint"].is_object());
    past.interrupt();
    let of_skill = Watcher::start(&workspace, &["--json", "--skill", SKILL]);
    assert_eq!(next(&of_skill)["execution_id"], id.as_str());
    assert_eq!(next(&of_skill)["rule"]["id"], "REFL-001");
    of_skill.interrupt();
    workspace
        .run(&["watch", "--kind", "hints", "--skill", SKILL])
        .fails(2, "belong to no skill");
    workspace
        .run(&["watch", "--kind", "fixes"])
        .fails(2, "lessons");
}

#[test]
fn what_agents_are_told_at_starts_and_calls_is_shown_with_its_sessions() {
    let workspace = scripted();
    workspace.json(&["init"]);
    let rule = ["correct", "Use pnpm, never npm.", "--command", r"^npm\b"];
    workspace.json(&rule);
    workspace.json(&["approve", "REFL-001"]);
    let lesson = ["lesson", "add", "Build with make web", "--command", "make"];
    workspace.json(&lesson);
    workspace.json(&["approve", "PROC-001"]);
    let watcher = Watcher::start(&workspace, &["--json", "--kind", "hints"]);
    let event = |session: &str, more: Value| {
        let mut event = json!({"session_id": session, "cwd": workspace.root()});
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        hook(&workspace, "claude-code", event.to_string())
    };
    let start = json!({"hook_event_name": "SessionStart", "source": "startup"});
    let call = |command: &str| {
        json!({"hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_use_id": "t", "tool_input": {"command": command}})
    };
    event("a", start).succeeds();
    let told = |moment: &str, ids: &[&str]| {
        let document = watcher.0.document();
        assert_valid(&["watch"], &document);
        let told = &document["told"];
        let what = format!("told at a {moment}");
        assert_eq!(
            (&told["what"], &told["records"]),
            (&json!(what), &json!(ids)),
            "{document}"
        );
        told.clone()
    };
    told("start", &["REFL-001", "PROC-001"]);
    event("b", call("npm ci")).succeeds();
    let one = told("call", &["REFL-001"]);
    assert_eq!(one["text"], "Use pnpm, never npm.");
    assert_eq!(
        (&one["session"], &one["tool"]),
        (&json!("claude-code/b"), &json!("Bash"))
    );
    event("b", call("make web")).succeeds();
    told("call", &["PROC-001"]);
    watcher.interrupt();
    let text = Watcher::start(&workspace, &["--kind", "hints", "-n", "1"]);
    let line = text.0.line();
    assert!(
        line.starts_with("PROC-001  told at a call  Build with make web  "),
        "{line}"
    );
    text.interrupt();

    let why = |id: &str| workspace.run(&["why", id]).succeeds().stdout.clone();
    let rule = why("REFL-001");
    for part in [
        "told in b ", "at a call of Bash", "told in a ", "at the start",
    ] {
        assert!(rule.contains(part), "{part}: {rule}");
    }
    let lesson = why("PROC-001");
    assert!(
        lesson.contains("told in b ") && lesson.contains("\n  typed"),
        "{lesson}"
    );
    assert!(
        !lesson.contains("step 0") && !lesson.contains("evidence"),
        "{lesson}"
    );
    // The line of a lesson is in several of its fields, and once in the excerpt.
    let found = workspace.run(&["search", "make", "--keyword"]).stdout;
    let row = found.lines().find(|line| line.starts_with("PROC-001"));
    let times = row.map(|row| row.matches("Build with make web").count());
    assert_eq!(times, Some(1), "{found}");
    let stats = workspace.run(&["stats"]).stdout;
    assert!(!stats.contains("used again"), "{stats}");
}

#[test]
fn an_interrupted_run_leaves_a_sound_store() {
    let server = FakeModel::answering(|_| Behaviour::Hang);
    let workspace = scripted();
    record(&workspace);
    let mut workspace = workspace.naming_no_model();
    workspace
        .set("ANTHROPIC_API_KEY", "sk-test")
        .set("ANTHROPIC_BASE_URL", &server.anthropic_url());
    let start = |args: &[&str]| {
        let asked = server.requests().len();
        let mut command = workspace.command();
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        until("asked", || server.requests().len() > asked);
        interrupt(&child);
        Ran::of(child.wait_with_output().unwrap())
    };
    let ran = start(&["run", SKILL]);
    assert_eq!(ran.code, 130, "{ran:?}");
    let ran = start(&correction("Always give the evidence."));
    assert_eq!(ran.code, 130, "{ran:?}");
    // What the person has said is there.
    let corrections = workspace.stored("corrections.json");
    let said = &corrections["corrections"][0]["user_correction"];
    assert_eq!(said, "Always give the evidence.");
    workspace.run(&["doctor"]).succeeds();
    record(&workspace);
    workspace.run(&["doctor"]).succeeds();
}

#[test]
fn an_interrupt_ends_the_program_that_was_asked() {
    let workspace = scripted();
    workspace.write("model.sh", "echo $$ > started\nsleep 30\ntouch finished\n");
    let mut command = workspace.command();
    command.args(["run", SKILL, "--model", "exec:sh model.sh"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let started = workspace.root().join("started");
    until("started", || {
        fs::read_to_string(&started).is_ok_and(|text| text.ends_with('\n'))
    });
    let number = workspace.read("started").trim().to_owned();
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let process = format!("/proc/{number}/cmdline");
    // A process that has ended and is not yet collected has no command line.
    until("the program has ended", || {
        fs::read(Path::new(&process)).is_ok_and(|line| line.is_empty())
            || !Path::new(&process).exists()
    });
    workspace.run(&["doctor"]).succeeds();
}

/// An editor that writes a correction above what it finds, and keeps what it was given.
const EDITOR: &str = "cp \"$1\" given.md\n{ echo 'When a role is senior, ALWAYS weigh system design \
     separately.'; cat given.md; } > \"$1\"\n";

#[test]
fn a_correction_is_asked_for_on_a_terminal() {
    let mut workspace = scripted();
    for score in [41, 42, 43] {
        workspace.write(
            "replies.jsonl",
            format!("{{\"reply\": {{\"overall_score\": {score}}}}}"),
        );
        record(&workspace);
    }
    let editor = workspace.write("editor.sh", EDITOR);
    workspace.set("EDITOR", &format!("sh {}", editor.display()));
    let Some(terminal) = Terminal::open(&workspace, 100, 30) else {
        return;
    };
    terminal.type_line("memctl correct --model offline; echo code=$?");
    let screen = terminal.wait_for("Which execution was wrong?");
    for n in ["", "-2", "-3"] {
        assert!(
            screen.contains(&format!("EXEC-20260220124341{n} ")),
            "{screen}"
        );
    }
    // The newest comes first; the one below it was meant.
    terminal.type_line("2");
    let screen = terminal.wait_for("code=0");
    assert!(
        screen.contains("CORR-001 (corrects EXEC-20260220124341-2)"),
        "{screen}"
    );
    assert!(workspace.read("given.md").contains("\"overall_score\": 42"));
    let stored = workspace.stored("corrections.json")["corrections"][0].clone();
    assert_eq!(stored["execution_id"], "EXEC-20260220124341-2");
    assert_eq!(
        stored["user_correction"],
        "When a role is senior, ALWAYS weigh system design separately."
    );
    assert_eq!(stored["original_output"]["overall_score"], 42);
    let rules = workspace.stored("reflexion_entries.json");
    assert_eq!(rules["entries"].as_array().unwrap().len(), 1);

    // Whoever gives up leaves nothing but the terminal as it was.
    terminal.type_line("clear; memctl correct; echo code=$?");
    terminal.wait_for("Which execution was wrong?");
    terminal.keys(&["C-c"]);
    terminal.wait_for("code=130");
    assert!(terminal.has_cursor());
    terminal.type_line("clear; EDITOR=true memctl correct --execution-id latest; echo code=$?");
    let screen = terminal.wait_for("code=2");
    assert!(screen.contains("the correction is empty"), "{screen}");
    // A blank name of an editor is none: the usual one opens.
    workspace.write("vi", "#!/bin/sh\necho usual > usual.txt\n");
    terminal.type_line(
        "clear; chmod +x vi; EDITOR= VISUAL=' ' PATH=$PWD:$PATH memctl correct --execution-id latest; echo code=$?",
    );
    let screen = terminal.wait_for("code=2");
    assert!(screen.contains("the correction is empty"), "{screen}");
    assert_eq!(workspace.read("usual.txt"), "usual\n");
    assert_eq!(
        workspace.stored("corrections.json")["corrections"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn words_that_could_not_be_stored_are_shown() {
    let mut workspace = scripted();
    workspace.write(
        "replies.jsonl",
        r#"{"reply": "No evidence\nof Kafka.\tHold."}"#,
    );
    let id = record(&workspace);
    // The store cannot be written from here on; the words hold a secret.
    let secret = format!("ghp_{}", "Zq3".repeat(12));
    let editor = workspace.write(
        "editor.sh",
        format!(
            "mkdir .agentura/corrections.json\n\
             echo 'When a token like {secret} is shown, ALWAYS ask for the source.' > \"$1\"\n"
        ),
    );
    workspace.set("EDITOR", &format!("sh {}", editor.display()));
    let Some(terminal) = Terminal::open(&workspace, 100, 30) else {
        return;
    };
    terminal.type_line("memctl correct --model offline; echo code=$?");
    let screen = terminal.wait_for("Which execution was wrong?");
    let choice = screen.lines().find(|line| line.contains(&id)).unwrap();
    let words: Vec<&str> = choice.split_whitespace().collect();
    let from = words.iter().position(|word| *word == id).unwrap();
    assert_eq!(
        words[from..],
        [
            &id, "·", "0s", "·", SKILL, "·", "pending_review", "·", "No", "evidence", "of",
            "Kafka.", "Hold."
        ]
    );
    terminal.keys(&["Enter"]);
    let screen = terminal.wait_for("code=");
    assert!(!screen.contains("code=0"), "{screen}");
    assert!(screen.contains("ALWAYS ask for the source."), "{screen}");
    assert!(!screen.contains(&secret), "{screen}");
}
