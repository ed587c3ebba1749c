//! Lessons that an agent words: the question at its stop, the checks of its answer, the tool and the
//! command, and those that a model words from past sessions.

use serde_json::{Value, json};

use crate::fake_model::{Behaviour, FakeModel};
use crate::hosts::hook;
use crate::support::with_input;
use crate::workspace::{Ran, Workspace};

const SESSION: &str = "5f9d1f6c-9d3c-4a50-9f6b-0d5a1a3c2b10";

fn initialised() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace
}

/// An event of Claude Code 2.1.329, with the fields that it sends.
#[expect(clippy::needless_pass_by_value, reason = "each caller makes the value for it")]
fn event(workspace: &Workspace, name: &str, more: Value) -> String {
    let mut event = json!({"session_id": SESSION, "transcript_path": "/nowhere.jsonl",
        "cwd": workspace.root(), "prompt_id": "96ce1c60-8543-44c7-9966-5bf9d2f7f0d9",
        "permission_mode": "default", "hook_event_name": name});
    let fields = event.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    event.to_string()
}

fn worked(workspace: &Workspace, command: &str, output: &str) {
    let response = json!({"stdout": output, "stderr": "", "interrupted": false, "isImage": false});
    let event = event(
        workspace,
        "PostToolUse",
        json!({"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": response}),
    );
    hook(workspace, "claude-code", event).succeeds();
}

fn failed(workspace: &Workspace, command: &str, error: &str) {
    let event = event(
        workspace,
        "PostToolUseFailure",
        json!({"tool_name": "Bash", "tool_input": {"command": command}, "is_interrupt": false,
            "error": format!("Exit code 1\n{error}")}),
    );
    hook(workspace, "claude-code", event).succeeds();
}

fn stop(workspace: &Workspace, is_active: bool, message: &str) -> Ran {
    let event = event(
        workspace,
        "Stop",
        json!({"stop_hook_active": is_active, "last_assistant_message": message,
            "background_tasks": [], "session_crons": []}),
    );
    let ran = hook(workspace, "claude-code", event);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    ran
}

#[test]
fn nobody_is_asked_at_the_stop_of_a_session_whose_result_a_program_reads() {
    for (name, value) in [
        ("CLAUDE_CODE_SESSION_ATTENDED", "0"),
        ("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"),
    ] {
        let mut workspace = initialised();
        building(&workspace);
        workspace.set(name, value);
        assert_eq!(stop(&workspace, false, "Built.").stdout, "", "{name}");
    }
}

#[test]
fn a_wrong_setting_of_hooks_is_refused_with_the_right_ones() {
    let workspace = initialised();
    for (setting, reason) in [
        (
            "learning.ask = \"recover\"",
            "it is `stop`, `recovery` or `off`",
        ),
        ("learning.chat = \"no\"", "`true` or `false`"),
        ("memory.user_store = 1", "`true` or `false`"),
    ] {
        workspace.write(".agentura/config.toml", setting);
        workspace.run(&["list"]).fails(2, reason);
    }
}

#[test]
fn codex_is_asked_at_its_stop_only_if_a_person_reads_its_last_message() {
    for (source, expected) in [("exec", false), ("cli", true)] {
        let workspace = initialised();
        let rollout = workspace.root().join("rollout.jsonl");
        let meta = json!({"type": "session_meta", "payload": {"id": "s", "source": source}});
        workspace.write("rollout.jsonl", format!("{meta}\n"));
        let event = |name: &str, more: Value| {
            let mut event = json!({"hook_event_name": name, "session_id": "s", "transcript_path": rollout,
                "cwd": workspace.root(), "tool_name": "Bash"});
            event
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            hook(&workspace, "codex", event.to_string())
                .succeeds()
                .stdout
                .clone()
        };
        let call = |command: &str, output: &str| {
            let more = json!({"tool_input": {"command": command}, "tool_response": output});
            event("PostToolUse", more)
        };
        call("tools/build web", "error: output would not be reproducible");
        let beside = call("tools/build --epoch 0 web", "web 3f2a");
        assert_eq!(
            beside.contains("tool `lesson` of memctl"),
            !expected,
            "{beside}"
        );
        let stop = event(
            "Stop",
            json!({"stop_hook_active": false, "last_assistant_message": "Built."}),
        );
        assert_eq!(stop.contains("Before you end"), expected, "{stop}");
    }
}

/// As `gemini -p` starts a hook: its arguments tell.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "no other system tells the arguments")]
fn gemini_with_a_prompt_is_asked_at_a_recovery() {
    let workspace = initialised();
    let event = |name: &str, more: Value| {
        let mut event = json!({"hook_event_name": name, "session_id": "s", "cwd": workspace.root(),
            "tool_name": "run_shell_command"});
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let hook = workspace.command();
        let script = format!("'{}' hook gemini; :", hook.get_program().display());
        let mut gemini = std::process::Command::new("/bin/sh");
        let set = hook
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        gemini.env_clear().envs(set).current_dir(workspace.root());
        gemini.args(["-c", &script, "x/gemini", "-p", "Build."]);
        with_input(&mut gemini, event.to_string().as_bytes()).stdout
    };
    let call = |command: &str, output: &str| {
        let response = json!({"llmContent": format!("Output: {output}\nProcess Group PGID: 7")});
        let more = json!({"tool_input": {"command": command}, "tool_response": response});
        event("AfterTool", more)
    };
    call(
        "tools/build web",
        "output would not be reproducible\nExit Code: 1",
    );
    let beside = call("tools/build --epoch 0 web", "web 3f2a");
    assert!(beside.contains("tool `lesson` of memctl"), "{beside}");
    assert_eq!(
        event("AfterAgent", json!({"prompt_response": "Built."})),
        ""
    );
}

/// The question, or what was refused: Claude Code goes on with it.
fn reason(ran: &Ran) -> String {
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let output = &answer["hookSpecificOutput"];
    assert_eq!(output["hookEventName"], "Stop");
    output["additionalContext"].as_str().unwrap().to_owned()
}

/// A session that found out how a bundle is built.
fn building(workspace: &Workspace) {
    failed(
        workspace,
        "tools/build web",
        "build: refusing: output would not be reproducible",
    );
    worked(workspace, "cat tools/build", "export BUILD_EPOCH");
    worked(workspace, "tools/build --epoch 0 web", "web 3f2a");
}

const LESSON: &str = r#"{"lesson": "Build with `tools/build --epoch 0 <bundle>`.", "commands": ["tools/build"], "errors": ["output would not be reproducible"], "scope": "project"}"#;

/// File of the lessons that nobody has approved, which git ignores.
const OBSERVED: &str = "procedural_memory.local.json";

fn procedures(workspace: &Workspace) -> Vec<Value> {
    let files = ["procedural_memory.json", OBSERVED].into_iter();
    let files = files.filter(|name| workspace.memory(name).is_file());
    let all = files.flat_map(|name| {
        let entries = workspace.stored(name)["entries"].clone();
        entries.as_array().unwrap().clone()
    });
    all.filter(|one| one["lesson"].is_string()).collect()
}

#[test]
fn an_agent_is_asked_once_and_its_lines_are_stored() {
    let workspace = initialised();
    building(&workspace);
    let question = reason(&stop(&workspace, false, "Built."));
    for part in [
        "tools/build web (",
        "would not be reproducible",
        "tools/build --epoch 0 web",
        "LESSON {",
    ] {
        assert!(question.contains(part), "{part}: {question}");
    }
    // No dialog: nothing allows the tool here, so it is not asked for.
    assert!(!question.contains("memctl lesson add"), "{question}");
    assert!(question.chars().count() < 2_000, "{question}");
    let wrong = r#"LESSON {"lesson": "Run `tools/build --fast`.", "commands": ["tools/build"]}"#;
    let refused = reason(&stop(
        &workspace,
        true,
        &format!("LESSON {LESSON}\n{wrong}"),
    ));
    assert!(
        refused.contains("`lesson`: `tools/build --fast` did not run like this"),
        "{refused}"
    );
    // It is told once what was refused, and then let go, whatever it says.
    assert_eq!(stop(&workspace, true, wrong).stdout, "");
    assert_eq!(stop(&workspace, false, "Done.").stdout, "");
    let all = procedures(&workspace);
    assert_eq!(all.len(), 1, "{all:?}");
    let one = &all[0];
    assert_eq!(one["worded_by"], "agent:claude-code");
    assert_eq!(one["trust"], "observed");
    assert_eq!(
        one["applies"]["errors"],
        json!(["output would not be reproducible"])
    );
    assert_eq!(one["origins"][0]["session"], SESSION);
    assert_eq!(
        one["data"]["learned_procedure_steps"],
        json!(["Build with `tools/build --epoch 0 <bundle>`."])
    );
    for field in [
        "procedure_name",
        "semantic_description",
        "initial_failure_summary",
        "identified_root_cause",
        "successful_intervention",
        "critical_contextual_cues",
        "example_scenario_abstract",
    ] {
        assert!(!one["data"][field].is_null(), "{field}: {one}");
    }
    let line = with_input(
        workspace.command().arg("statusline"),
        json!({"session_id": SESSION, "cwd": workspace.root()})
            .to_string()
            .as_bytes(),
    );
    assert!(line.stdout.contains("1 lesson recorded"), "{line:?}");
}

#[test]
fn nothing_found_out_is_not_asked_about() {
    let workspace = initialised();
    worked(&workspace, "ls", "src");
    worked(&workspace, "cargo test", "ok");
    assert_eq!(stop(&workspace, false, "Done.").stdout, "");
    // A repair of the project is no knowledge for others.
    failed(&workspace, "cargo test", "error: test failed");
    worked(&workspace, "cargo test", "ok");
    assert_eq!(stop(&workspace, false, "Done.").stdout, "");
    // What a lesson says already is not news.
    building(&workspace);
    reason(&stop(&workspace, false, "Built."));
    assert_eq!(
        stop(&workspace, true, &format!("LESSON {LESSON}")).stdout,
        ""
    );
    let again = |event: String| hook(&workspace, "claude-code", event.replace(SESSION, "another"));
    let call = |name: &str, more: Value| {
        again(event(&workspace, name, more))
            .succeeds()
            .stdout
            .clone()
    };
    let input = json!({"command": "tools/build web"});
    call(
        "PostToolUseFailure",
        json!({"tool_name": "Bash", "tool_input": input, "error": "Exit code 1\nbuild: refusing: output would not be reproducible"}),
    );
    let input = json!({"command": "tools/build --epoch 0 web"});
    call(
        "PostToolUse",
        json!({"tool_name": "Bash", "tool_input": input, "tool_response": {"stdout": "web"}}),
    );
    let message = json!({"stop_hook_active": false, "last_assistant_message": "Built."});
    assert_eq!(call("Stop", message), "");
}

#[test]
fn a_switch_and_read_only_hooks_ask_nothing() {
    for (name, value) in [("off", "off"), ("read-only", "stop")] {
        let mut workspace = initialised();
        workspace.set("MEMCTL_LEARNING_ASK", value);
        building(&workspace);
        let event = event(
            &workspace,
            "Stop",
            json!({"stop_hook_active": false, "last_assistant_message": "Built."}),
        );
        let mut arguments = vec!["hook", "claude-code"];
        if name == "read-only" {
            arguments.push("--read-only");
        }
        let ran = with_input(workspace.command().args(&arguments), event.as_bytes());
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{name}: {ran:?}");
    }
}

#[test]
fn the_words_are_a_file_and_an_allowed_tool_is_named() {
    let workspace = initialised();
    building(&workspace);
    let settings = json!({"permissions": {"allow": ["mcp__memctl__lesson"]}});
    workspace.write(".claude/settings.json", settings.to_string());
    let config = workspace.settings();
    std::fs::create_dir_all(config.join("prompts")).unwrap();
    std::fs::write(
        config.join("prompts/ask_lesson.md"),
        "Own words.\n{calls}\n{how}\n",
    )
    .unwrap();
    let question = reason(&stop(&workspace, false, "Built."));
    assert!(
        question.starts_with("Own words.\n- tools/build web ("),
        "{question}"
    );
    let named = format!("tool `lesson` of memctl, with `session` \"claude-code/{SESSION}\"");
    assert!(question.contains(&named), "{question}");
}

#[test]
fn a_recovery_is_asked_about_where_a_stop_has_no_event() {
    let workspace = initialised();
    let call = |command: &str, output: &str, exit: i64| {
        let event = json!({"hook_event_name": "PostToolUse", "session_id": "s", "cwd": workspace.root(),
            "tool_name": "bash", "tool_input": {"command": command}, "tool_response": output, "exit_code": exit});
        hook(&workspace, "opencode", event.to_string())
            .succeeds()
            .stdout
            .clone()
    };
    assert_eq!(
        call(
            "tools/build web",
            "build: refusing: output would not be reproducible",
            1
        ),
        ""
    );
    let line = call("tools/build --epoch 0 web", "web 3f2a", 0);
    assert!(line.contains("tool `lesson` of memctl"), "{line}");
    assert_eq!(call("tools/build --epoch 0 web", "web 3f2a", 0), "");
}

#[test]
fn the_command_checks_and_says_what_would_pass() {
    let workspace = initialised();
    let add = |json: &str| workspace.run(&["lesson", "add", json]);
    building(&workspace);
    let session = format!("claude-code/{SESSION}");
    let check = |json: Value, said: &str| {
        add(&json.to_string()).fails(2, said);
    };
    check(json!({"lesson": ""}), "`lesson`: it is empty");
    check(
        json!({"lesson": "Use it.", "commands": ["npm ci"]}),
        "no call of this session begins with `npm ci`",
    );
    check(
        json!({"lesson": "Use it.", "commands": ["npm ci"]}),
        "write it as it ran here",
    );
    check(
        json!({"lesson": "Use it.", "errors": ["no such profile here"]}),
        "no output of this session holds",
    );
    check(
        json!({"lesson": "Use it.", "comands": []}),
        "unknown field `comands`",
    );
    check(
        json!({"lesson": "Read /home/mara/notes.", "commands": ["tools/build"]}),
        "/home/mara",
    );
    check(
        json!({"lesson": "Use it.", "commands": ["tools/build"], "files": ["../x"]}),
        "not below the project",
    );
    check(
        json!({"lesson": "Use it.", "commands": ["tools/build"], "same": "PROC-999"}),
        "no lesson `PROC-999`",
    );
    workspace.write("tools/build", "echo");
    let flags = [
        "lesson",
        "add",
        "--json",
        "--session",
        &session,
        "Build with `tools/build --epoch 0 <bundle>`.",
        "--command",
        "tools/build",
        "--error",
        "open .cache/v2/index",
        "--file",
        "tools/build",
    ];
    let stored = workspace.run(&flags).succeeds().document();
    assert_eq!(stored["added"], true);
    assert_eq!(stored["trust"], "observed");
    assert_eq!(
        stored["applies"]["expected"],
        json!(["open .cache/v2/index"])
    );
    let id = stored["id"].as_str().unwrap().to_owned();
    let file = &procedures(&workspace)[0]["files"][0];
    assert_eq!(file["path"], "tools/build");
    assert_eq!(file["hash"].as_str().unwrap().len(), 64);
    // The same words count once a session; other words are near, and may be said to be the same.
    let again = workspace.run(&flags).succeeds().document();
    assert_eq!((&again["id"], &again["added"]), (&json!(id), &json!(false)));
    let other = json!({"lesson": "Give `tools/build` an epoch: `tools/build --epoch 0 web`.", "commands": ["tools/build"]});
    let near = workspace.json(&["lesson", "add", &other.to_string()]);
    assert_eq!(near["near"][0]["id"], json!(id));
    let own = near["id"].as_str().unwrap();
    let same = workspace.json(&["lesson", "add", &other.to_string(), "--same", &id]);
    assert_eq!(same["id"], json!(id));
    let retired: Vec<Value> = procedures(&workspace)
        .into_iter()
        .filter(|one| one["procedure_id"] == own)
        .collect();
    assert_eq!(retired[0]["superseded_by"], json!(id));
    let better = json!({"lesson": "Build with `tools/build --epoch 0 <bundle>`, never without an epoch.", "commands": ["tools/build"]});
    let ran = with_input(
        workspace
            .command()
            .args(["lesson", "add", "-", "--json", "--replaces", &id]),
        better.to_string().as_bytes(),
    );
    assert_eq!(ran.succeeds().document()["replaced"], json!(id));
    let list = workspace.json(&["list", "lessons", "--status", "active"]);
    assert_eq!(list["records"].as_array().unwrap().len(), 1, "{list}");
}

#[test]
fn agent_does_not_replace_an_approved_lesson() {
    let workspace = initialised();
    building(&workspace);
    let stored = workspace.json(&["lesson", "add", LESSON]);
    let id = stored["id"].as_str().unwrap();
    workspace.run(&["memory", "approve", id]).succeeds();
    let other = json!({"lesson": "Never build here.", "commands": ["tools/build"], "replaces": id});
    let report = workspace.json(&["lesson", "add", &other.to_string()]);
    assert_eq!(report["replaced"], Value::Null);
    assert!(
        report["warnings"][0]
            .as_str()
            .unwrap()
            .contains("a person approved"),
        "{report}"
    );
    let list = workspace.json(&["list", "lessons", "--status", "active"]);
    assert_eq!(list["records"].as_array().unwrap().len(), 2, "{list}");
    // What a person removed does not come back.
    let gone = report["id"].as_str().unwrap();
    workspace.run(&["memory", "forget", gone]).succeeds();
    let other = json!({"lesson": "Never build here.", "commands": ["tools/build"]});
    workspace
        .run(&["lesson", "add", &other.to_string()])
        .fails(2, "was removed as");
}

/// A past session in the native format.
fn past(workspace: &Workspace, name: &str) {
    let steps = [
        json!({"session": name, "cwd": "/srv/shop", "user": "build the web bundle"}),
        json!({"tool": "bash", "input": {"command": "tools/build web"}, "ok": false,
            "output": "build: refusing: output would not be reproducible"}),
        json!({"tool": "bash", "input": {"command": "tools/build --epoch 0 web"}, "ok": true, "output": "web 3f2a"}),
    ];
    let lines: Vec<String> = steps.iter().map(Value::to_string).collect();
    workspace.write(&format!("past/{name}.jsonl"), lines.join("\n") + "\n");
}

#[test]
fn a_prompt_of_ones_own_takes_the_place_of_ours_once_it_is_trusted() {
    let mut workspace = Workspace::empty();
    workspace.write(".agentura/prompts/past_session.md", "Say it in French.");
    let reply = json!({"lessons": []}).to_string();
    let model = FakeModel::answering(move |_| Behaviour::text(&reply));
    workspace
        .set("ANTHROPIC_API_KEY", "key")
        .set("ANTHROPIC_BASE_URL", &model.anthropic_url());
    for session in ["s1", "s2"] {
        past(&workspace, session);
        let args = ["learn", "past", "--model", "anthropic/claude-x", "--yes"];
        workspace.run(&args).succeeds();
        workspace.run(&["trust"]).succeeds();
    }
    let requests = model.requests();
    let systems = requests
        .iter()
        .map(|request| request.system().starts_with("Say it in French."));
    assert_eq!(systems.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_model_words_the_lessons_of_past_sessions_once() {
    let workspace = initialised();
    past(&workspace, "s1");
    let lessons = json!({"lessons": [
        {"lesson": "Build with `tools/build --epoch 0 <bundle>`.", "commands": ["tools/build", "make web"],
            "errors": ["would not be reproducible"], "not": [], "scope": "everywhere",
            "seen": "would not be … reproducible"},
        {"seen": "the cache is stale", "lesson": "Build with `tools/build --epoch 0 web` first.",
            "commands": ["tools/build"], "errors": [], "not": [], "scope": "project"},
        {"lesson": "Use `tools/build --fast`.", "commands": ["tools/build"], "errors": [], "not": [], "scope": "project"},
    ]});
    let when =
        json!({"contains": ["1 FAILED bash: tools/build web", "PERSON: build the web bundle"]});
    let line = json!({"when": when, "reply": lessons, "cost_usd": 0.01});
    workspace.write("model.jsonl", format!("{line}\n"));
    let args = ["learn", "past", "--model", "scripted:model.jsonl"];
    let run = || workspace.run(&[&args[..], &["--json"]].concat());
    let dry = workspace.json_of(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(dry["lessons"]["questions"].as_array().unwrap().len(), 1);
    assert_eq!(procedures(&workspace), [Value::Null; 0]);
    let ran = run();
    assert!(
        ran.stderr
            .contains("calling `scripted/model`: 1 call about 1 session"),
        "{ran:?}"
    );
    let report = ran.succeeds().document()["lessons"].clone();
    let session = &report["sessions"][0];
    assert_eq!(session["lessons"].as_array().unwrap().len(), 1, "{report}");
    let left_out = &session["lessons"][0]["warnings"];
    assert_eq!(
        left_out,
        &json!(["left out `make web`: no call begins like it"])
    );
    // What names a program of the project holds there alone.
    assert_eq!(
        session["lessons"][0]["applies"]["scope"], "project",
        "{report}"
    );
    assert_eq!(session["refused"][0]["field"], "seen", "{report}");
    assert_eq!(session["refused"][1]["field"], "lesson", "{report}");
    assert_eq!(report["cost_usd"], 0.01);
    let stored = procedures(&workspace);
    assert_eq!(stored[0]["worded_by"], "model:scripted/model");
    assert_eq!(stored[0]["origins"][0]["workspace"], "shop");
    // A session is asked about once; a failed question is asked again.
    let again = workspace.json_of(&args)["lessons"].clone();
    assert_eq!(
        (&again["asked_before"], &again["sessions"]),
        (&json!(1), &json!([]))
    );
    past(&workspace, "s2");
    workspace.write(
        "model.jsonl",
        "{\"when\": {\"contains\": [\"nobody says this\"]}, \"reply\": {\"lessons\": []}}\n",
    );
    let failed = run();
    assert_eq!(
        failed.document()["lessons"]["failed_calls"],
        1,
        "{failed:?}"
    );
    workspace.write("model.jsonl", format!("{line}\n"));
    let repeated = workspace.json_of(&args)["lessons"].clone();
    assert_eq!(
        repeated["sessions"][0]["lessons"][0]["added"], false,
        "{repeated}"
    );
    assert_eq!(procedures(&workspace)[0]["occurrences"], 2.0);
}

#[test]
fn a_later_session_replaces_what_an_earlier_one_said_and_what_a_model_drops_is_left_out() {
    let workspace = initialised();
    let answer = |when: &str, lessons: Value| {
        let when = json!({"contains": [when]});
        let line = json!({"when": when, "reply": {"lessons": lessons}});
        workspace.write("model.jsonl", format!("{line}\n"));
    };
    let run = || {
        let report = workspace.json_of(&["learn", "past", "--model", "scripted:model.jsonl"]);
        report["lessons"]["sessions"][0].clone()
    };
    let seen = "would not be reproducible";
    let lesson = json!({"seen": seen, "lesson": "Build with `tools/build web`.", "against": "#1 failed",
        "verdict": "reword", "anew": "Build with `tools/build --epoch 0 web`.", "commands": ["tools/build"]});
    past(&workspace, "s1");
    answer("1 FAILED bash: tools/build web", json!([lesson]));
    let first = run()["lessons"][0]["id"].as_str().unwrap().to_owned();
    past(&workspace, "s2");
    let better = json!({"seen": seen, "lesson": "Build any bundle with `tools/build --epoch 0 <bundle>`.",
        "commands": ["tools/build"], "replaces": first});
    let dropped = json!({"seen": seen, "lesson": "Use `tools/build web`.", "commands": ["tools/build"],
        "against": "the person stopped it", "verdict": "drop"});
    // The question names what there is.
    answer(
        ": Build with `tools/build --epoch 0 web`.\n</lessons>",
        json!([better, dropped]),
    );
    let session = run();
    assert_eq!(session["lessons"][0]["replaced"], first, "{session}");
    assert_eq!(session["refused"][0]["field"], "verdict", "{session}");
    let stored = procedures(&workspace);
    assert_eq!(stored[0]["superseded_by"], session["lessons"][0]["id"]);
    // What the question did not name is not replaced.
    past(&workspace, "s3");
    let other = json!({"seen": seen, "lesson": "Build the web last.", "commands": ["tools/build"],
        "replaces": first});
    answer(": Build any bundle", json!([other]));
    assert_eq!(run()["lessons"][0]["replaced"], Value::Null);
}

#[test]
fn a_model_that_cannot_be_reached_is_asked_once() {
    let workspace = initialised();
    past(&workspace, "s1");
    past(&workspace, "s2");
    let ran = workspace.run(&["learn", "past", "--model", "exec:no-such-program", "--json"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    let report = ran.document()["lessons"].clone();
    assert_eq!(report["sessions"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["left_out"], 1);
    let page = workspace.run(&["learn", "past", "--model", "exec:no-such-program"]);
    assert_eq!(page.code, 4, "{page:?}");
    assert!(
        page.stdout.contains("1 session left for another run"),
        "{page:?}"
    );
}

#[test]
fn a_lesson_whose_words_the_shell_took_is_refused() {
    let workspace = initialised();
    for cut in ["Build with ", "Use ", "Run  before a commit", "Baue mit "] {
        let ran = workspace.run(&["lesson", "add", cut, "--command", "make web"]);
        ran.fails(2, "words are missing");
    }
    let whole = [
        "lesson",
        "add",
        "Build the site.  Then log in",
        "--command",
        "make web",
    ];
    workspace.run(&whole).succeeds();
}

#[test]
fn equal_lessons_become_one_and_those_that_stopped_working_retire() {
    let workspace = initialised();
    building(&workspace);
    let one = workspace.json(&["lesson", "add", LESSON]);
    let id = one["id"].as_str().unwrap();
    let other = json!({"lesson": "Never build on Friday.", "commands": ["tools/build"]});
    let failing = workspace.json(&["lesson", "add", &other.to_string()]);
    let failing = failing["id"].as_str().unwrap();
    // Two agents that wrote at once, and evidence of other sessions.
    let mut stored = workspace.stored(OBSERVED);
    let entries = stored["entries"].as_array_mut().unwrap();
    let at = |entries: &Vec<Value>, id: &str| {
        entries
            .iter()
            .position(|one| one["procedure_id"] == id)
            .unwrap()
    };
    let place = at(entries, failing);
    entries[place]["harmed"] = json!(4);
    let mut twin = entries[at(entries, id)].clone();
    twin["procedure_id"] = json!("PROC-900");
    entries.push(twin);
    std::fs::write(workspace.memory(OBSERVED), stored.to_string()).unwrap();
    let dry = workspace.json(&["learn", "--tidy", "--dry-run"]);
    assert_eq!(dry["merged"], json!([{"id": "PROC-900", "into": id}]));
    let report = workspace.json(&["learn", "--tidy"]);
    assert_eq!(report["retired"], json!([failing]));
    assert_eq!(
        workspace.json(&["list", "lessons", "--status", "active"])["records"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(workspace.json(&["learn", "--tidy"])["merged"], json!([]));
}

#[test]
fn lesson_of_a_person_without_a_session_waits_for_approval() {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let args = [
        "lesson", "add", "Build with `make web`", "--command", "make web",
    ];
    let stored = workspace.json(&args);
    assert_eq!(stored["trust"], "observed", "{stored}");
    let list = workspace.json(&["list", "lessons"]);
    assert_eq!(
        list["records"][0]["lesson"]["worded_by"], "person",
        "{list}"
    );
    // An agent needs a session.
    let mut command = workspace.command();
    command.env("CLAUDECODE", "1").args(args);
    Ran::of(command.output().unwrap()).fails(2, "memctl setup");
}

/// What holds everywhere is told here, and each page says what takes it into other projects.
#[test]
fn a_lesson_for_everywhere_says_how_it_reaches_other_projects() {
    let workspace = initialised();
    let line = "Search with `rg`, not with `grep`.";
    let args = ["lesson", "add", line, "--command", "grep", "--everywhere"];
    let added = workspace.run(&args);
    let id = added.stdout.split(' ').next().unwrap().to_owned();
    let way = |id: &str| format!("in your others, too: memctl memory promote {id}");
    assert!(added.stdout.contains(&way(&id)), "{added:?}");
    let approved = workspace.run(&["approve", &id]).stdout;
    // The line stands there once, whatever fields of the record repeat it.
    assert_eq!(
        approved.matches("Search with `rg`").count(),
        1,
        "{approved}"
    );
    assert!(approved.contains(&way("PROC-001")), "{approved}");
    let said = "From now on always search with rg, never with grep.";
    let prompt = event(&workspace, "UserPromptSubmit", json!({ "prompt": said }));
    hook(&workspace, "claude-code", prompt).succeeds();
    let heard = json!({"rule": "Search with rg, not grep.", "quote": said, "scope": "everywhere"});
    let heard = workspace.run(&["correct", "--heard", &heard.to_string()]);
    let way = "in your others, too: memctl memory promote REFL-001";
    assert!(heard.stdout.contains(way), "{heard:?}");
}
