//! The real hosts and the official inspector, from npm, with the installed `memctl mcp`: they list
//! and call the tools, and the model reads the answers.
//!
//! Slow, and therefore ignored; `make test-clients` installs them and runs this. Missing programs
//! are reported as skipped.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::clients::{host, results, run};
use crate::fake_model::{Behaviour, FakeModel, RecordedRequest, calls};
use crate::serve::{Served, token};
use crate::workspace::{Ran, Workspace};

const NOTE: &str = "The saffron deploy needs the VPN.";

/// Remembers something, looks for it, and is done. `name` is what the host calls a tool.
fn script(request: &RecordedRequest, name: fn(&str) -> &'static str) -> Behaviour {
    let has_tools = request.body["tools"]
        .as_array()
        .is_some_and(|tools| tools.len() > 1);
    if !has_tools {
        return Behaviour::text("a title");
    }
    match results(request) {
        0 => calls(
            request,
            "I keep it.",
            Some(&(name("remember"), json!({"content": NOTE}))),
        ),
        1 => calls(
            request,
            "I look.",
            Some(&(name("search"), json!({"query": "saffron deploy"}))),
        ),
        _ => calls(request, "All done.", None),
    }
}

/// The model must have been offered the tools, and have read the answers of both calls.
fn was_served(workspace: &Workspace, model: &FakeModel) {
    let requests = model.requests();
    let last = requests
        .iter()
        .rfind(|request| results(request) == 2)
        .unwrap();
    let text = last.body.to_string();
    for word in ["MEM-001", "observed", "not reviewed"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let memory = &workspace.stored("memories.json")["entries"][0];
    assert_eq!(
        (&memory["content"], &memory["trust"]),
        (&json!(NOTE), &json!("observed"))
    );
}

#[test]
#[ignore = "needs the real Claude Code: make test-clients"]
fn claude_code_calls_the_tools() {
    let Some(program) = host("claude") else {
        return;
    };
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace.json(&["mcp", "install", "claude-code"]);
    let model = FakeModel::answering(|request| {
        script(request, |tool| match tool {
            "remember" => "mcp__memctl__remember",
            _ => "mcp__memctl__search",
        })
    });
    let ran = run(&workspace, &program, |command| {
        command
            .args([
                "-p",
                "keep it",
                "--allowedTools",
                "mcp__memctl__remember,mcp__memctl__search",
            ])
            .env("ANTHROPIC_BASE_URL", model.anthropic_url())
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1");
    });
    assert!(ran.stdout.contains("All done."), "{ran:?}");
    was_served(&workspace, &model);
    workspace.json(&["mcp", "uninstall", "claude-code"]);
    let settings = std::fs::read_to_string(workspace.home().join(".claude.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    assert!(
        settings.pointer("/mcpServers/memctl").is_none(),
        "{settings}"
    );
}

#[test]
#[ignore = "needs the real Claude Code: make test-clients"]
fn claude_code_calls_the_tools_over_http() {
    let Some(program) = host("claude") else {
        return;
    };
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let served = Served::start(&workspace, &[]);
    let bearer = format!("Bearer {}", token(&workspace, "ann", "*"));
    let entry = json!({"type": "http", "url": format!("{}/mcp", served.url), "headers": {"Authorization": bearer}});
    let settings = json!({"mcpServers": {"memctl": entry}});
    std::fs::write(workspace.home().join(".claude.json"), settings.to_string()).unwrap();
    let model = FakeModel::answering(|request| {
        script(request, |tool| match tool {
            "remember" => "mcp__memctl__remember",
            _ => "mcp__memctl__search",
        })
    });
    let ran = run(&workspace, &program, |command| {
        command
            .args([
                "-p",
                "keep it",
                "--allowedTools",
                "mcp__memctl__remember,mcp__memctl__search",
            ])
            .env("ANTHROPIC_BASE_URL", model.anthropic_url())
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1");
    });
    assert!(ran.stdout.contains("All done."), "{ran:?}");
    was_served(&workspace, &model);
    assert_eq!(
        workspace.stored("memories.json")["entries"][0]["user_id"],
        "ann"
    );
}

#[test]
#[ignore = "needs the real Codex: make test-clients"]
fn codex_calls_the_tools() {
    let Some(program) = host("codex") else {
        return;
    };
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let model = FakeModel::answering(|request| {
        script(request, |tool| match tool {
            "remember" => "mcp__memctl.remember",
            _ => "mcp__memctl.search",
        })
    });
    let config = format!(
        "model = \"gpt-5.2-codex\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\n\
         base_url = \"{}\"\nwire_api = \"responses\"\n",
        model.openai_url()
    );
    let settings = workspace.home().join(".codex/config.toml");
    std::fs::create_dir(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, &config).unwrap();
    workspace.json(&["mcp", "install", "codex"]);
    run(&workspace, &program, |command| {
        command.args([
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "keep it",
        ]);
    })
    .succeeds();
    was_served(&workspace, &model);
    workspace.json(&["mcp", "uninstall", "codex"]);
    assert!(
        !std::fs::read_to_string(&settings)
            .unwrap()
            .contains("mcp_servers")
    );
}

/// The official inspector, ready to be told what to ask the server; `None`, and said so, where it is not
/// installed.
fn inspector(workspace: &Workspace) -> Option<Command> {
    let target = Path::new(env!("CARGO_BIN_EXE_memctl"))
        .ancestors()
        .nth(2)
        .unwrap();
    let modules = target.join("clients/mcp/node_modules");
    let script = modules.join(".bin/mcp-inspector");
    // It wants a newer Node.js than systems have, which lies beside it.
    let node: Option<PathBuf> = ["x64", "arm64"]
        .map(|arch| modules.join(format!("node-linux-{arch}/bin")))
        .into_iter()
        .find(|directory| directory.is_dir());
    let (Some(node), true) = (node, script.exists()) else {
        println!(
            "skipped: `{}` is not there; type `make test-clients`",
            script.display()
        );
        return None;
    };
    let path = format!("{}:{}", node.display(), std::env::var("PATH").unwrap());
    let template = workspace.command();
    let mut command = Command::new(script);
    command.env_clear().current_dir(workspace.root());
    for (name, value) in template.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command
        .env("PATH", path)
        .args(["--cli", env!("CARGO_BIN_EXE_memctl"), "mcp", "--method"])
        .stdin(std::process::Stdio::null());
    Some(command)
}

#[test]
#[ignore = "needs the MCP inspector: make test-clients"]
fn the_inspector_lists_and_calls_the_tools() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let ask = |args: &[&str]| -> Option<Value> {
        let ran = Ran::of(inspector(&workspace)?.args(args).output().unwrap());
        Some(serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}")))
    };
    let Some(listed) = ask(&["tools/list"]) else {
        return;
    };
    assert_eq!(listed["tools"].as_array().unwrap().len(), 6, "{listed}");
    let note = format!("content={NOTE}");
    let kept = ask(&["tools/call", "--tool-name", "remember", "--tool-arg", &note]).unwrap();
    assert_eq!(kept["structuredContent"]["id"], "MEM-001", "{kept}");
    let found = ask(&[
        "tools/call", "--tool-name", "search", "--tool-arg", "query=saffron",
    ])
    .unwrap();
    assert_eq!(
        found["structuredContent"]["results"][0]["text"], NOTE,
        "{found}"
    );
    let refused = ask(&[
        "tools/call", "--tool-name", "forget", "--tool-arg", "id=MEM-404",
    ])
    .unwrap();
    assert_eq!(refused["isError"], true, "{refused}");
}
