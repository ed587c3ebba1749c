//! The real hosts, from npm, against a local model server: a failing command gets the learned hint,
//! the model reads it after the tool's result, and its outcome is credited.
//!
//! Slow, and therefore ignored; `make test-clients` installs the hosts and runs this. The test
//! reports a missing host as skipped.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::fake_model::{Behaviour, FakeModel, RecordedRequest, calls};
use crate::workspace::{Ran, Workspace};

const FAILING: &str = "python3 -c \"print({}['x'])\"";
const WORKING: &str = "python3 -c \"print({}.get('x'))\"";

/// The program of a host; `None`, and said so, where it is not installed.
pub(crate) fn host(name: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_BIN_EXE_memctl"))
        .ancestors()
        .nth(2)
        .unwrap();
    let program = target.join("clients/node_modules/.bin").join(name);
    let works = Command::new(&program).arg("--version").output();
    match works {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => {
            println!("skipped: `{}` does not run: {output:?}", program.display());
            None
        }
        Err(error) => {
            println!(
                "skipped: `{}`: {error}; type `make test-clients`",
                program.display()
            );
            None
        }
    }
}

/// A workspace whose memory knows one fix.
pub(crate) fn taught() -> Workspace {
    let workspace = Workspace::empty();
    let error = "Traceback (most recent call last):\nKeyError: 'x'";
    let failure = ["record", "failure", "--code", FAILING, "--error", error];
    workspace.run(&failure).succeeds();
    let success = ["record", "success", "--code", WORKING, "--output", "None"];
    workspace.run(&success).succeeds();
    workspace
}

/// Tool results that the model has received so far, in any protocol.
pub(crate) fn results(request: &RecordedRequest) -> usize {
    let text = request.body.to_string();
    text.matches("\"type\":\"tool_result\"").count()
        + text.matches("\"type\":\"function_call_output\"").count()
        + text.matches("\"role\":\"tool\"").count()
}

/// Does the failing thing, then the working thing, then is done. `call` is what calls the shell.
pub(crate) fn script(
    request: &RecordedRequest,
    call: &dyn Fn(&str) -> (&'static str, Value),
) -> Behaviour {
    let has_tools = request.body["tools"]
        .as_array()
        .is_some_and(|tools| tools.len() > 1);
    if !has_tools {
        return Behaviour::text("a title");
    }
    match results(request) {
        0 => calls(request, "I try.", Some(&call(FAILING))),
        1 => calls(request, "I try again.", Some(&call(WORKING))),
        _ => calls(request, "All done.", None),
    }
}

/// The model must have read the hint at the failure, behind `mark`, and before it tried again.
pub(crate) fn was_told(model: &FakeModel, mark: &str) {
    let requests = model.requests();
    let second = requests.iter().find(|request| results(request) == 1);
    let text = second.unwrap().body.to_string();
    assert!(text.contains("KeyError: 'x'"), "{text}");
    let failed = text.find(mark).unwrap();
    let told = text.rfind("CORRECT:").unwrap();
    assert!(
        failed < told,
        "{}",
        &text[failed.min(told).saturating_sub(500)..]
    );
    assert!(text[told..].contains("{}.get('x')"), "{text}");
}

pub(crate) fn was_credited(workspace: &Workspace) {
    let fix = &workspace.stored("procedural_memory.json")["entries"][0];
    assert_eq!(
        (&fix["shown"], &fix["helped"]),
        (&json!(1), &json!(1)),
        "{fix}"
    );
}

pub(crate) fn run(
    workspace: &Workspace,
    program: &Path,
    configure: impl FnOnce(&mut Command),
) -> Ran {
    // Everything that `memctl` would get, and the hook below gets through the host.
    let template = workspace.command();
    let mut command = Command::new(program);
    command.env_clear().current_dir(workspace.root());
    for (name, value) in template.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command
        .env_remove("MEMCTL_NOW")
        .stdin(std::process::Stdio::null());
    configure(&mut command);
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

#[test]
#[ignore = "needs the real Claude Code: make test-clients"]
fn claude_code_is_told_what_worked() {
    let Some(program) = host("claude") else {
        return;
    };
    let workspace = taught();
    let settings = workspace.home().join(".claude/settings.json");
    workspace.json(&["hooks", "install", "claude-code"]);
    let model = FakeModel::answering(|request| {
        script(request, &|command| {
            ("Bash", json!({"command": command, "description": "try"}))
        })
    });
    let ran = run(&workspace, &program, |command| {
        command
            .args(["-p", "fix the script", "--allowedTools", "Bash"])
            .env("ANTHROPIC_BASE_URL", model.anthropic_url())
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1");
    });
    assert!(ran.stdout.contains("All done."), "{ran:?}");
    was_told(&model, "\"type\":\"tool_result\"");
    was_credited(&workspace);
    workspace.json(&["hooks", "uninstall", "claude-code"]);
    assert!(!settings.exists());
}

const CORRECTION: &str = "No! From now on take pnpm in this project, never npm.";

/// Records the correction, delegates, or calls `npm install` once or twice: as the first message says.
fn obeys_the_prompt(request: &RecordedRequest) -> Behaviour {
    let tools = request.body["tools"].as_array().cloned();
    let names: Vec<String> = tools
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
        .collect();
    if names.len() < 2 {
        return Behaviour::text("a title");
    }
    let bash = |command: &str| ("Bash", json!({"command": command, "description": "work"}));
    let npm = bash("cd . && npm install left-pad");
    let prompt = request.body["messages"][0].to_string();
    let call = match results(request) {
        0 if prompt.contains("From now on take pnpm") => {
            let heard = json!({"rule": "Use pnpm here, never npm.", "quote": "take pnpm in this project, never npm",
                "commands": [r"^npm\b"]});
            Some(bash(&format!("memctl correct --heard '{heard}'")))
        }
        0 if prompt.contains("delegate it") => {
            let tool = if names.iter().any(|name| name == "Agent") {
                "Agent"
            } else {
                "Task"
            };
            let input = json!({"description": "install", "prompt": "install it, subagent",
                "subagent_type": "general-purpose"});
            Some((tool, input))
        }
        0 => Some(npm),
        1 if prompt.contains("twice") => Some(npm),
        1 if !prompt.contains("From now on take pnpm") => Some(bash("ls")),
        _ => None,
    };
    calls(request, "I do it.", call.as_ref())
}

#[test]
#[ignore = "needs the real Claude Code: make test-clients"]
fn claude_code_hears_a_correction_and_is_told_the_rule_before_the_call() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(program) = host("claude") else {
        return;
    };
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace.json(&["hooks", "install", "claude-code"]);
    let npm = workspace.write("bin/npm", "#!/bin/sh\necho added 1 package\n");
    std::fs::set_permissions(&npm, std::fs::Permissions::from_mode(0o755)).unwrap();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"];
        let mut command = Command::new("git");
        let command = command.current_dir(workspace.root()).args(identity);
        assert!(command.args(arguments).status().unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    let tree = workspace.home().join("tree");
    git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    let path = format!(
        "{}:{}:{}",
        npm.parent().unwrap().display(),
        Path::new(env!("CARGO_BIN_EXE_memctl"))
            .parent()
            .unwrap()
            .display(),
        std::env::var("PATH").unwrap()
    );
    let model = FakeModel::answering(obeys_the_prompt);
    // The requests of a session, with tools, in order.
    let session = |directory: &Path, prompt: &str| -> Vec<RecordedRequest> {
        let before = model.requests().len();
        run(&workspace, &program, |command| {
            command
                .current_dir(directory)
                .args(["-p", prompt, "--allowedTools", "Bash,Task,Agent"])
                .env("PATH", &path)
                .env("ANTHROPIC_BASE_URL", model.anthropic_url())
                .env("ANTHROPIC_API_KEY", "none")
                .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                .env("DISABLE_AUTOUPDATER", "1");
        })
        .succeeds();
        let mut requests = model.requests().split_off(before);
        requests.retain(|request| {
            request.body["tools"]
                .as_array()
                .is_some_and(|all| all.len() > 1)
        });
        requests
    };
    let counts = || {
        let stats = workspace.json(&["stats"]);
        let rule = &stats["at_calls"][0];
        ["told", "heeded", "recurred"].map(|name| rule[name].as_u64().unwrap_or(99))
    };
    let note = "The user has a rule about this call: Use pnpm here, never npm.";
    // What the model has read after its first call.
    let after_the_call = |requests: &[RecordedRequest], prompt: &str| -> String {
        let is_it = |request: &&RecordedRequest| {
            results(request) == 1 && request.body["messages"][0].to_string().contains(prompt)
        };
        requests.iter().find(is_it).unwrap().body.to_string()
    };
    let root = workspace.root();

    // The message is heard, and the agent records it as a candidate.
    let requests = session(&root, CORRECTION);
    assert!(
        requests[0]
            .body
            .to_string()
            .contains("memctl correct --heard")
    );
    let rule = &workspace.stored("reflexion_entries.json")["entries"][0];
    assert_eq!(
        (&rule["status"], &rule["source"]),
        (&json!("candidate"), &json!("chat"))
    );
    let approved = workspace.json(&["memory", "approve", "REFL-001"]);
    assert_eq!(approved["at_calls"], "note", "{approved}");

    // The next session is told it at its start and at the call, and heeds it.
    let requests = session(&root, "install left-pad");
    let start = requests[0].body.to_string();
    assert!(
        start.contains("Use pnpm here") && !start.contains(note),
        "{start}"
    );
    let text = after_the_call(&requests, "install left-pad");
    assert!(
        text.contains(note) && text.contains("added 1 package"),
        "{text}"
    );
    assert_eq!(counts(), [1, 1, 0]);
    session(&root, "install left-pad twice");
    assert_eq!(counts(), [2, 1, 1]);

    // So are a subagent and a session in a linked work tree.
    let requests = session(&root, "delegate it");
    let text = after_the_call(&requests, "install it, subagent");
    assert!(text.contains(note), "{text}");
    let requests = session(&tree, "install left-pad");
    let text = after_the_call(&requests, "install left-pad");
    assert!(text.contains(note), "{text}");
    assert_eq!(counts()[0], 4);

    // A rule that refuses keeps the call from running.
    workspace.json(&["memory", "approve", "REFL-001", "--action", "deny"]);
    let requests = session(&root, "install left-pad");
    let text = after_the_call(&requests, "install left-pad");
    let refusal = "A rule of the user refuses this call";
    assert!(
        text.contains(refusal) && !text.contains("added 1 package"),
        "{text}"
    );
}

#[test]
#[ignore = "needs the real Claude Code: make test-clients"]
fn claude_code_takes_the_plugin() {
    let Some(program) = host("claude") else {
        return;
    };
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin");
    let workspace = taught();
    let ran = run(&workspace, &program, |command| {
        command.args(["plugin", "validate"]).arg(&plugin);
    });
    println!("{}", ran.stdout);
    // The repository is a marketplace too.
    let market = Workspace::empty();
    for arguments in [
        &["plugin", "marketplace", "add", env!("CARGO_MANIFEST_DIR")][..],
        &["plugin", "install", "memctl@memctl"],
    ] {
        run(&market, &program, |command| {
            command.args(arguments);
        })
        .succeeds();
    }
    let listed = run(&market, &program, |command| {
        command.args(["plugin", "list"]);
    });
    assert!(listed.stdout.contains("memctl@memctl"), "{}", listed.stdout);
    let model = FakeModel::answering(|request| {
        script(request, &|command| {
            ("Bash", json!({"command": command, "description": "try"}))
        })
    });
    let path = format!(
        "{}:{}",
        Path::new(env!("CARGO_BIN_EXE_memctl"))
            .parent()
            .unwrap()
            .display(),
        std::env::var("PATH").unwrap()
    );
    run(&workspace, &program, |command| {
        command
            .args([
                "-p", "fix the script", "--allowedTools", "Bash", "--plugin-dir",
            ])
            .arg(&plugin)
            .env("PATH", &path)
            .env("ANTHROPIC_BASE_URL", model.anthropic_url())
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    })
    .succeeds();
    was_told(&model, "\"type\":\"tool_result\"");
    was_credited(&workspace);
}

#[test]
#[ignore = "needs the real Codex: make test-clients"]
fn codex_is_told_what_worked() {
    let Some(program) = host("codex") else {
        return;
    };
    let workspace = taught();
    workspace.json(&["hooks", "install", "codex"]);
    let model = FakeModel::answering(|request| {
        script(request, &|command| {
            ("exec_command", json!({"cmd": command}))
        })
    });
    configure_codex(&workspace, &model);
    run(&workspace, &program, |command| {
        command.args([
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "--dangerously-bypass-hook-trust",
            "fix the script",
        ]);
    })
    .succeeds();
    // This host inserts hook output between the call and its output.
    was_told(&model, "\"type\":\"function_call\"");
    was_credited(&workspace);
    workspace.json(&["hooks", "uninstall", "codex"]);
    assert!(!workspace.home().join(".codex/hooks.json").exists());
}

#[test]
#[ignore = "needs the real Codex: make test-clients"]
fn codex_is_told_a_rule_before_the_call() {
    let Some(program) = host("codex") else {
        return;
    };
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let rule = json!({"reflexion_id": "REFL-001", "rule": "Use pnpm, not npm.",
        "seen_by": [{"on": "command", "match": r"^npm\b"}]});
    workspace.write(
        ".agentura/reflexion_entries.json",
        json!({ "entries": [rule] }).to_string(),
    );
    workspace.json(&["hooks", "install", "codex"]);
    let model = FakeModel::answering(|request| {
        let has_tools = request.body["tools"]
            .as_array()
            .is_some_and(|tools| tools.len() > 1);
        match results(request) {
            _ if !has_tools => Behaviour::text("a title"),
            0 => calls(
                request,
                "I look.",
                Some(&(
                    "exec_command",
                    json!({"cmd": "cd . && npm prefix && echo it ran"}),
                )),
            ),
            _ => calls(request, "All done.", None),
        }
    });
    configure_codex(&workspace, &model);
    let told = |action: &str| {
        workspace.json(&["memory", "approve", "REFL-001", "--action", action]);
        let before = model.requests().len();
        run(&workspace, &program, |command| {
            command.args([
                "exec",
                "--skip-git-repo-check",
                "--dangerously-bypass-approvals-and-sandbox",
                "--dangerously-bypass-hook-trust",
                "which npm?",
            ]);
        })
        .succeeds();
        let requests = model.requests();
        let second = requests[before..]
            .iter()
            .find(|request| results(request) == 1);
        second.unwrap().body.to_string()
    };
    let note = told("note");
    assert!(
        note.contains("The user has a rule about this call: Use pnpm, not npm."),
        "{note}"
    );
    let asked = told("ask");
    assert!(
        asked.contains("The user wants to be asked about this call"),
        "{asked}"
    );
    let denied = told("deny");
    assert!(
        denied.contains("A rule of the user refuses this call"),
        "{denied}"
    );
    assert!(!denied.contains("\\nit ran"), "{denied}");
}

/// Points the host at the local model.
pub(crate) fn configure_codex(workspace: &Workspace, model: &FakeModel) {
    let config = format!(
        "model = \"gpt-5.2-codex\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\n\
         base_url = \"{}\"\nwire_api = \"responses\"\n",
        model.openai_url()
    );
    std::fs::write(workspace.home().join(".codex/config.toml"), config).unwrap();
}
