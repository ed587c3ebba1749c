//! The first minute: `setup` in a project with past sessions, the page of what they repeat, the keys that end
//! a repeat, and what the next session is told. A page of the book is a recording of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::hosts::hook;
use crate::reference::assert_kept;
use crate::terminal::Terminal;
use crate::workspace::{Ran, Workspace};

/// A failing call, what it prints, and what the agent then runs.
const CHECK: [&str; 3] = [
    "make check",
    "check: no target: give TARGET=web or TARGET=api",
    "make check TARGET=web",
];
const SEED: [&str; 3] = [
    "python3 tools/seed.py",
    "ModuleNotFoundError: No module named 'yaml'",
    ".venv/bin/python tools/seed.py",
];
const SAID: &str = "We use pnpm in this project, never npm install.";
/// What the agent of the user answers when it is asked for the lessons of a session.
const WORDED: &str = r#"{"considered": ["1: needs the interpreter of .venv"], "prescribed": [], "lessons": [{"seen": "No module named 'yaml'",
"lesson": "Seed the tables with `.venv/bin/python tools/seed.py`.", "commands": ["python3 tools/seed.py"],
"errors": [], "not": [], "scope": "project"}]}"#;

/// A home with Claude Code, and a project in it.
struct Machine {
    workspace: Workspace,
    project: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let workspace = Workspace::empty().naming_no_model();
        let home = workspace.home();
        let project = home.join("shop");
        fs::create_dir(&project).unwrap();
        fs::create_dir(home.join("bin")).unwrap();
        let claude = home.join("bin/claude");
        fs::write(
            &claude,
            format!("#!/bin/sh\ncat >/dev/null\ncat <<'E'\n{WORDED}\nE\n"),
        )
        .unwrap();
        fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
        Self { workspace, project }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.workspace.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A past session of Claude Code: what the person said, and a failing call with its recovery.
    fn past(&self, day: u32, said: &str, [failing, error, working]: [&str; 3]) {
        let name = format!("session-{day}");
        let entry = |minute: u32, by: &str, content: Value| {
            let at = format!("2026-02-{day}T09:{minute:02}:00.000Z");
            json!({"type": by, "cwd": self.project, "sessionId": name, "timestamp": at,
                "message": {"role": by, "content": content}})
        };
        let mut lines = vec![entry(0, "user", json!(said))];
        let calls = [(failing, error, true), (working, "done", false)];
        for (minute, (command, output, failed)) in (1..).zip(calls) {
            let id = format!("toolu_{day}_{minute:016}");
            let call = json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}]);
            let answer = json!([{"type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed}]);
            lines.push(entry(minute, "assistant", call));
            lines.push(entry(minute, "user", answer));
        }
        let folder = self.project.to_str().unwrap();
        let folder = folder.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        let path = format!(".claude/projects/{folder}/{name}.jsonl");
        self.write(&path, &lines.join("\n"));
    }

    /// The terminal after `memctl setup` at the keys of the page; `None` without `tmux`.
    fn set_up(&self, rows: u16) -> Option<Terminal> {
        let terminal = Terminal::open(&self.workspace, 80, rows)?;
        terminal.type_line("PATH=$HOME/bin:$PATH; cd ~/shop; clear");
        terminal.wait_for_prompt();
        terminal.type_line("memctl setup");
        terminal.wait_for("Do this?");
        terminal.type_line("y");
        terminal.wait_for("q later");
        Some(terminal)
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.workspace.command();
        let output = command.args(args).current_dir(&self.project).output();
        Ran::of(output.unwrap())
    }

    fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).document()
    }

    /// What an agent reads before a call: the recorded event of Claude Code, with another command.
    fn told_before(&self, command: &str) -> String {
        let recorded = include_str!("../../fixtures/hosts/claude-code-2.1.329.events.jsonl");
        let event = recorded.lines().find(|line| line.contains("PreToolUse"));
        let mut event: Value = serde_json::from_str(event.unwrap()).unwrap();
        event["cwd"] = json!(self.project);
        event["tool_input"]["command"] = json!(command);
        let answer = hook(&self.workspace, "claude-code", event.to_string());
        let answer: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        let told = &answer["hookSpecificOutput"]["additionalContext"];
        told.as_str().unwrap_or_default().to_owned()
    }
}

/// One key keeps what would end a repeat, and then it is gone from the page.
#[test]
fn one_key_keeps_a_repeat_of_past_sessions() {
    let machine = Machine::new();
    for day in [17, 18] {
        machine.past(day, SAID, SEED);
    }
    let Some(terminal) = machine.set_up(40) else {
        return;
    };
    let first = terminal.wait_for("w let your agent word it");
    let times = "1  failed 2 times in 2 sessions: 2 calls, about";
    assert!(first.contains(times), "{first}");
    let then = "then: .venv/bin/python tools/seed.py";
    assert!(first.contains(then), "{first}");
    terminal.type_line("y");
    let second = terminal.wait_for("you said it 2 times in 2 sessions");
    assert!(second.contains("kept PROC-"), "{second}");
    terminal.type_line("y");
    let done = terminal.wait_for("kept REFL-");
    assert!(done.contains("never npm install"), "{done}");
    // Its words alone stop no call, and the page says so.
    terminal.wait_for("told at the start of sessions; at calls, too:");
    terminal.wait_for("memctl correct \"…\" --command REGEX --replaces REFL-");
    terminal.wait_for("memctl search");
    let rules = machine.json(&["list", "rules"]);
    assert!(rules.to_string().contains(SAID), "{rules}");
    // What is in force ends it.
    let past = || machine.json(&["stats"])["past"].clone();
    assert_eq!(past()["sessions"], 2, "{}", past());
    assert_eq!(past()["repeats"], json!([]), "{}", past());
    // It is told before the call that begins as the failing one, and not before the one that works.
    let told = machine.told_before("cd tools/.. && python3 tools/seed.py --all 2>&1 | tail -3");
    assert!(told.contains("`.venv/bin/python tools/seed.py`"), "{told}");
    assert_eq!(machine.told_before(".venv/bin/python tools/seed.py"), "");
    assert_eq!(machine.told_before("python3 tools/other.py"), "");
    // Each key is a change of its own, and what is undone comes back.
    let kinds = || {
        let repeats = past()["repeats"].clone();
        let repeats = repeats.as_array().unwrap().iter();
        repeats
            .map(|one| one["kind"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    machine.run(&["undo"]).succeeds();
    assert_eq!(kinds(), ["correction"]);
    machine.run(&["undo"]).succeeds();
    assert_eq!(kinds(), ["failure", "correction"]);
}

/// `e`: one line of the person, which is told at the call from then on.
#[test]
fn a_line_of_the_person_ends_a_repeat() {
    let machine = Machine::new();
    for day in [17, 18] {
        machine.past(day, "Run the checks.", CHECK);
    }
    let Some(terminal) = machine.set_up(40) else {
        return;
    };
    terminal.type_line("e");
    terminal.wait_for("One line for agents:");
    terminal.type_line("Check with make check TARGET=web or TARGET=api, never without a target.");
    terminal.wait_for("kept PROC-");
    let told = machine.told_before("make check");
    let line = "Check with make check TARGET=web or TARGET=api, never without a target.";
    assert!(told.contains(line), "{told}");
    let repeats = || machine.json(&["stats"])["past"]["repeats"].clone();
    assert_eq!(repeats(), json!([]));
    machine.run(&["undo"]).succeeds();
    assert_eq!(repeats()[0]["what"], "make check");
}

/// An empty line and the end of the input decide nothing.
#[test]
fn a_repeat_that_nothing_ends_stays() {
    let machine = Machine::new();
    for day in [17, 18] {
        machine.past(day, "Run the checks.", CHECK);
    }
    let Some(terminal) = machine.set_up(40) else {
        return;
    };
    terminal.type_line("e");
    terminal.wait_for("One line for agents:");
    terminal.keys(&["Enter"]);
    // The keys of the same repeat are asked about again, as they are after a key that is none of them.
    terminal.wait_for("nothing kept");
    terminal.type_line("x");
    terminal.wait_for("`x` is no key here");
    terminal.keys(&["C-d"]);
    terminal.wait_for("memctl search");
    let past = machine.json(&["stats"])["past"].clone();
    assert_eq!(past["repeats"].as_array().unwrap().len(), 1, "{past}");
}

/// `w`: the person's own agent words the lessons of the session, after its price was confirmed.
#[test]
fn the_agent_of_the_person_words_a_repeat() {
    let machine = Machine::new();
    for day in [17, 18] {
        machine.past(day, "Seed the tables.", SEED);
    }
    let Some(terminal) = machine.set_up(60) else {
        return;
    };
    // A first try at which it is not logged in.
    let claude = machine.workspace.home().join("bin/claude");
    let script = fs::read_to_string(&claude).unwrap();
    fs::write(&claude, "#!/bin/sh\necho not logged in >&2\nexit 1\n").unwrap();
    terminal.type_line("w");
    terminal.wait_for("One call of `claude -p`, price unknown: your plan. Go on?");
    terminal.type_line("y");
    let failed = terminal.wait_for("not logged in");
    assert!(failed.ends_with("q later\n>"), "{failed}");
    fs::write(&claude, script).unwrap();
    terminal.type_line("w");
    let price = terminal.wait_for("One call of `claude -p`, price unknown: your plan. Go on?");
    assert!(!price.contains("Seed the tables with"), "{price}");
    terminal.type_line("y");
    let worded = terminal.wait_for("y keep them");
    assert!(worded.contains("Seed the tables with"), "{worded}");
    terminal.type_line("y");
    terminal.wait_for("kept PROC-");
    let told = machine.told_before("python3 tools/seed.py");
    assert!(told.contains("`.venv/bin/python tools/seed.py`"), "{told}");
    assert_eq!(machine.json(&["stats"])["past"]["repeats"], json!([]));
}

/// Gemini CLI and Cline keep the sessions of all projects in one folder: those of this project count.
#[test]
fn past_sessions_of_gemini_and_cline_are_on_the_page() {
    let machine = Machine::new();
    machine.run(&["init", "--quiet"]).succeeds();
    let project = machine.project.to_str().unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let gemini = repository.join("fixtures/transcripts/hosts/gemini.jsonl");
    let gemini = fs::read_to_string(gemini).unwrap();
    let cline = repository.join("fixtures/formats/cline-3.0.65.messages.json");
    let cline = fs::read_to_string(cline).unwrap();
    let manifest = |directory: &str| json!({"version": 1, "cwd": directory}).to_string();
    let sessions = |machine: &Machine| machine.json(&["stats"])["past"]["sessions"].clone();

    // Of other projects.
    machine.write(".gemini/tmp/proj/chats/session-1.jsonl", &gemini);
    machine.write(".cline/data/sessions/17/17.messages.json", &cline);
    machine.write(".cline/data/sessions/17/17.json", &manifest("/home/u/proj"));
    assert_eq!(sessions(&machine), Value::Null);
    // Of this one.
    let here = gemini.replace("/home/u/proj", project);
    machine.write(".gemini/tmp/shop/chats/session-2.jsonl", &here);
    assert_eq!(sessions(&machine), 1);
    machine.write(".cline/data/sessions/18/18.messages.json", &cline);
    machine.write(".cline/data/sessions/18/18.json", &manifest(project));
    assert_eq!(sessions(&machine), 2);
    let learned = machine.json(&["learn"]);
    assert_eq!(
        learned["transcripts"].as_array().unwrap().len(),
        2,
        "{learned}"
    );
}

/// What a shell prints, without the places of the test.
fn printed(command: &mut Command) -> String {
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stdout
}

/// The recording in the book: what is typed and printed from the clone to the note that the agent reads.
#[test]
fn the_book_shows_the_first_minute_as_it_is() {
    let machine = Machine::new();
    for day in 10..20 {
        let said = if day % 3 == 0 {
            SAID
        } else {
            "Run the checks."
        };
        machine.past(day, said, if day % 4 == 0 { CHECK } else { SEED });
    }
    let Some(terminal) = machine.set_up(100) else {
        return;
    };
    terminal.type_line("w");
    terminal.wait_for("One call of `claude -p`, price unknown: your plan. Go on?");
    terminal.type_line("y");
    terminal.wait_for("y keep them");
    for then in ["you said it", "3  failed"] {
        terminal.type_line("y");
        terminal.wait_for(then);
    }
    terminal.type_line("q");
    terminal.wait_for_prompt();
    let setup = terminal.screen();
    let setup = setup.trim_end_matches(['$', ' ', '\n', '#']);
    // The folder of the sessions is named after that of the test, and ids end at random.
    let folder = regex_lite::Regex::new(r"-[\w-]*-home-shop").unwrap();
    let id = regex_lite::Regex::new(r"\b(PROC|REFL)-(\d+)-[0-9a-f]{6}").unwrap();
    let setup = folder.replace_all(setup, "-home-ann-shop");
    let setup = id.replace_all(&setup, "$1-$2-775fad");
    let setup = setup
        .replace("\n# memctl", "\n$ memctl")
        .replacen("# memctl", "$ memctl", 1);
    let told = machine.told_before(SEED[0]);
    let told: Vec<&str> = told.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut demo = Command::new("sh");
    demo.arg(repository.join("tests/demo.sh"));
    let demo = printed(demo.arg(env!("CARGO_BIN_EXE_memctl")));
    let says = include_str!("../../Makefile").lines();
    let says = says.filter_map(|line| line.strip_prefix("\t@echo \"building"));
    let says = says.map(|line| line.trim_end_matches('"')).next().unwrap();
    let page = format!(
        "# The first minute, recorded\n\n\
         What a terminal of 80 columns shows from the clone to the first lesson that an agent is told. A test types \
         it\nagain at each change and compares; only what cargo prints is left out ([how long it takes](../install.md)).\
         \n\n## Clone, build, demonstration\n\n\
         ```console\n$ git clone <repository> memctl && cd memctl\n$ make demo\nbuilding{says}\n…\n{demo}```\n\n\
         ## A project with ten past sessions\n\n\
         The page shows what the sessions on the disk repeat, and what it cost. `w` lets the agent word the lesson,\n\
         here a script in its place; `y` keeps it. This project is in no repository: with git, the plan ends with the\n\
         files that git will see.\n\n\
         ```console\n{setup}\n```\n\n\
         ## The next session of Claude Code\n\n\
         It is about to run `{}`. Its hook passes the call to memctl, and the agent reads:\n\n\
         ```text\n{}\n```\n",
        SEED[0],
        told.join("\n"),
    );
    assert_kept("../tutorials/first-minute.md", &page);
}

/// The page and `why` count a lesson alike.
#[test]
fn a_lesson_has_one_number() {
    let machine = Machine::new();
    for day in [16, 17, 18, 19] {
        machine.past(day, "Seed the tables.", SEED);
    }
    let page = machine.run(&["setup", "--yes"]).stdout;
    let times = "failed 4 times in 4 sessions";
    assert!(page.contains(times), "{page}");
    let lesson = &machine.json(&["list", "lessons"])["records"][0]["id"];
    let why = machine.run(&["why", lesson.as_str().unwrap()]).stdout;
    let (head, _) = why.split_once('\n').unwrap();
    assert!(head.contains("  pattern  "), "{why}");
    assert!(head.contains("  seen 4 times"), "{why}");
}
