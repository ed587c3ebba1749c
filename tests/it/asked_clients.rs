//! The real Claude Code and Codex, from npm: the agent is asked at its stop what it found out, its answer is a
//! lesson, and the next session has it, also in a work tree and in a subagent.
//!
//! Slow, and therefore ignored, as the other tests of clients.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::clients::{configure_codex, host, results, run};
use crate::fake_model::{Behaviour, FakeModel, RecordedRequest, calls};
use crate::workspace::Workspace;

const ANSWER: &str = "LESSON {\"lesson\": \"Build with `./build --epoch 0 <bundle>`.\", \"commands\": [\"./build web\"], \
                      \"errors\": [\"output would not be reproducible\"]}";
const QUESTION: &str = "Before you end: did this session find out";
const NOTE: &str = "Build with `./build --epoch 0 <bundle>`.";
/// Task of a subagent.
const TASK: &str = "subtask seven: build the web bundle";

/// A repository whose bundle is built with an option that nobody guesses.
fn repository() -> Workspace {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let build = "#!/bin/sh\n[ \"$1\" = --epoch ] && echo \"web 3f2a\" && exit 0\n\
                 echo \"build: refusing: output would not be reproducible\"\nexit 1\n";
    workspace.write("build", build);
    make_executable(&workspace.root().join("build"));
    for arguments in [
        &["init", "-q"][..],
        &["add", "build"],
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "commit",
            "-qm",
            "Begin",
        ],
    ] {
        git(&workspace.root(), arguments);
    }
    workspace
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn git(directory: &Path, arguments: &[&str]) {
    let done = Command::new("git")
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// Builds wrongly, then rightly, ends, and answers the question; `call` is what calls the shell.
fn builds(request: &RecordedRequest, call: &dyn Fn(&str) -> (&'static str, Value)) -> Behaviour {
    let text = request.body.to_string();
    match results(request) {
        _ if !has_tools(request) => Behaviour::text("a title"),
        0 => calls(request, "I build.", Some(&call("./build web"))),
        1 => calls(
            request,
            "With an epoch.",
            Some(&call("./build --epoch 0 web")),
        ),
        _ if text.contains(QUESTION) && !text.contains("LESSON {\\\"lesson\\\": \\\"Build") => {
            calls(request, ANSWER, None)
        }
        _ => calls(request, "Built.", None),
    }
}

fn has_tools(request: &RecordedRequest) -> bool {
    let tools = request.body["tools"].as_array();
    tools.is_some_and(|tools| tools.len() > 1)
}

/// The session was asked once, and its one lesson is stored.
fn was_asked_once(workspace: &Workspace, requests: &[RecordedRequest], by: &str) {
    // The request that answers the question is the last one.
    let mut asked = requests.iter().filter(|request| has_tools(request));
    let asked = asked.position(|request| request.body.to_string().contains(QUESTION));
    let all = requests.iter().filter(|request| has_tools(request)).count();
    assert_eq!(asked, Some(all - 1), "{by}");
    let stored = workspace.stored("procedural_memory.local.json")["entries"].clone();
    let lessons: Vec<&Value> = stored
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["worded_by"] == by)
        .collect();
    assert_eq!(lessons.len(), 1, "{stored}");
    assert_eq!(lessons[0]["lesson"], NOTE);
}

#[test]
#[ignore = "needs the real Claude Code: make test-clients"]
fn claude_code_of_clients_is_asked_and_tells_the_next_session() {
    let Some(program) = host("claude") else {
        return;
    };
    let workspace = repository();
    workspace.json(&["hooks", "install", "claude-code"]);
    // Nobody is asked at the stop of `claude -p`; these hooks are those of a person's session.
    let settings = workspace.home().join(".claude/settings.json");
    let text = fs::read_to_string(&settings).unwrap();
    let of_person = "\"command\": \"env CLAUDE_CODE_ENTRYPOINT=cli CLAUDE_CODE_SESSION_ATTENDED=1 ";
    fs::write(&settings, text.replace("\"command\": \"", of_person)).unwrap();
    let bash = |command: &str| ("Bash", json!({"command": command, "description": "build"}));
    let model = FakeModel::answering(move |request| {
        let messages = request.body["messages"].as_array();
        let first = messages.and_then(|all| all.first()).map(Value::to_string);
        let is_sub = first.is_some_and(|first| first.contains(TASK));
        let asks_for_one = request.body.to_string().contains("let a subagent build");
        if has_tools(request) && asks_for_one && !is_sub && results(request) == 0 {
            let call =
                json!({"description": "build", "prompt": TASK, "subagent_type": "general-purpose"});
            return calls(request, "I delegate.", Some(&("Agent", call)));
        }
        if asks_for_one && !is_sub {
            return calls(request, "Done.", None);
        }
        builds(request, &bash)
    });
    let session = |directory: &Path, task: &str| -> Vec<RecordedRequest> {
        let before = model.requests().len();
        run(&workspace, &program, |command| {
            command
                .current_dir(directory)
                .args(["-p", task, "--allowedTools", "Bash,Agent,Task"])
                .env("ANTHROPIC_BASE_URL", model.anthropic_url())
                .env("ANTHROPIC_API_KEY", "none")
                .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                .env("DISABLE_AUTOUPDATER", "1");
        })
        .succeeds();
        model.requests().split_off(before)
    };
    let requests = session(&workspace.root(), "build the web bundle");
    was_asked_once(&workspace, &requests, "agent:claude-code");
    // Told at the start and before the call, in another work tree; what is known is not asked about.
    let tree = workspace.home().join("tree");
    git(
        &workspace.root(),
        &["worktree", "add", "-q", tree.to_str().unwrap()],
    );
    let requests = session(&tree, "build it once more");
    let text = |results_so_far: usize| {
        let mut found = requests.iter().filter(|request| has_tools(request));
        let found = found.find(|request| results(request) == results_so_far);
        found.unwrap().body.to_string()
    };
    let told = |text: &str| text.matches(NOTE).count();
    assert_eq!(told(&text(0)), 1, "{}", text(0));
    assert_eq!(told(&text(1)), 2, "{}", text(1));
    assert!(
        !requests
            .iter()
            .any(|request| request.body.to_string().contains(QUESTION))
    );
    let requests = session(&workspace.root(), "let a subagent build");
    let of_sub = requests.iter().find(|request| {
        let first = request.body["messages"][0].to_string();
        has_tools(request) && first.contains(TASK) && results(request) == 0
    });
    let text = of_sub.unwrap().body.to_string();
    assert_eq!(told(&text), 1, "{text}");
}

/// Runs a hook of Codex with the session file that a person's session has.
const AS_PERSON: &str = r#"event=$(cat)
path=$(printf '%s' "$event" | sed 's/.*"transcript_path":"\([^"]*\)".*/\1/')
sed 's/"source":"exec"/"source":"cli"/' "$path" >"$path.cli"
printf '%s' "$event" | sed "s|$path|$path.cli|" | "$@"
"#;

#[test]
#[ignore = "needs the real Codex: make test-clients"]
fn codex_of_clients_is_asked_and_tells_the_next_session() {
    let Some(program) = host("codex") else {
        return;
    };
    let workspace = repository();
    let printed = std::cell::Cell::new(String::new());
    workspace.json(&["hooks", "install", "codex"]);
    let shell = |command: &str| ("exec_command", json!({"cmd": command}));
    let model = FakeModel::answering(move |request| builds(request, &shell));
    configure_codex(&workspace, &model);
    let session = |task: &str| -> Vec<RecordedRequest> {
        let before = model.requests().len();
        let ran = run(&workspace, &program, |command| {
            command.args([
                "exec",
                "--skip-git-repo-check",
                "--dangerously-bypass-approvals-and-sandbox",
                "--dangerously-bypass-hook-trust",
                task,
            ]);
        });
        ran.succeeds();
        printed.set(ran.stdout.clone());
        model.requests().split_off(before)
    };
    // Nobody is asked at the stop of `codex exec`: its last message is the result.
    let requests = session("build the web bundle");
    let is_asked = |requests: &[RecordedRequest]| {
        let mut texts = requests.iter().map(|request| request.body.to_string());
        texts.any(|text| text.contains(QUESTION))
    };
    assert!(!is_asked(&requests));
    assert_eq!(printed.take(), "Built.\n");
    // These hooks are those of a person's session.
    let as_person = workspace.home().join("as_person");
    fs::write(&as_person, AS_PERSON).unwrap();
    let hooks = workspace.home().join(".codex/hooks.json");
    let text = fs::read_to_string(&hooks).unwrap();
    let of_person = format!("\"command\": \"sh {} ", as_person.display());
    fs::write(&hooks, text.replace("\"command\": \"", &of_person)).unwrap();
    let requests = session("build the web bundle");
    was_asked_once(&workspace, &requests, "agent:codex");
    let requests = session("build it once more");
    let first = requests.iter().find(|request| has_tools(request)).unwrap();
    assert!(first.body.to_string().contains(NOTE), "{}", first.body);
    assert!(!is_asked(&requests));
}
