//! The real Copilot CLI, `OpenCode` and Cline, from npm, against a local model server: a failing command
//! gets the learned hint, the model reads it after the output, and its outcome is credited. The tools of
//! the MCP server are offered to the model.
//!
//! Slow, and therefore ignored; `make test-clients` installs them and runs this.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::clients::{host, run, script, taught, was_credited, was_told};
use crate::fake_model::FakeModel;

#[test]
#[ignore = "needs the real Copilot CLI: make test-clients"]
fn copilot_of_clients_is_told_what_worked() {
    let Some(program) = host("copilot") else {
        return;
    };
    let workspace = taught();
    workspace.json(&["hooks", "install", "copilot"]);
    workspace.json(&["mcp", "install", "copilot"]);
    let model = FakeModel::answering(|request| {
        script(request, &|command| {
            ("bash", json!({"command": command, "description": "try"}))
        })
    });
    let ran = run(&workspace, &program, |command| {
        command
            .args(["-p", "fix the script", "--allow-all-tools"])
            .env("COPILOT_OFFLINE", "true")
            .env("COPILOT_PROVIDER_BASE_URL", model.openai_url())
            .env("COPILOT_PROVIDER_API_KEY", "none")
            .env("COPILOT_MODEL", "gpt-5")
            .env("COPILOT_AUTO_UPDATE", "false");
    });
    assert!(ran.stdout.contains("All done."), "{ran:?}");
    was_told(&model, "\"role\":\"tool\"");
    was_credited(&workspace);
    was_offered_tools(&model);
    workspace.json(&["mcp", "uninstall", "copilot"]);
    assert!(!workspace.home().join(".copilot/mcp-config.json").exists());
    workspace.json(&["hooks", "uninstall", "copilot"]);
    assert!(!workspace.home().join(".copilot/hooks").exists());
}

#[test]
#[ignore = "needs the real OpenCode: make test-clients"]
fn opencode_of_clients_is_told_what_worked() {
    let Some(program) = host("opencode") else {
        return;
    };
    let workspace = taught();
    workspace.json(&["hooks", "install", "opencode"]);
    let model = FakeModel::answering(|request| {
        script(request, &|command| {
            ("bash", json!({"command": command, "description": "try"}))
        })
    });
    let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "fake",
        "options": {"baseURL": model.openai_url(), "apiKey": "none"},
        "models": {"m": {"name": "m", "tool_call": true}}});
    let config = json!({"model": "fake/m", "small_model": "fake/m", "autoupdate": false,
        "share": "disabled", "permission": {"*": "allow"}, "provider": {"fake": provider}});
    let directory = workspace.home().join(".config/opencode");
    let settings = directory.join("opencode.json");
    fs::write(&settings, config.to_string()).unwrap();
    workspace.json(&["mcp", "install", "opencode"]);
    let ran = run(&workspace, &program, |command| {
        command
            .args(["run", "fix the script"])
            .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
            .env("OPENCODE_DISABLE_MODELS_FETCH", "1");
    });
    assert!(ran.stdout.contains("All done."), "{ran:?}");
    was_told(&model, "\"role\":\"tool\"");
    was_credited(&workspace);
    was_offered_tools(&model);
    workspace.json(&["mcp", "uninstall", "opencode"]);
    // It adds the address of its schema there itself.
    let text = fs::read_to_string(&settings).unwrap();
    assert!(
        text.contains("\"fake\"") && !text.contains("memctl"),
        "{text}"
    );
    workspace.json(&["hooks", "uninstall", "opencode"]);
    assert!(!directory.join("plugins").exists());
}

#[test]
#[ignore = "needs the real Cline: make test-clients"]
fn cline_of_clients_is_told_what_worked() {
    let Some(program) = host("cline") else {
        return;
    };
    let workspace = taught();
    workspace.json(&["hooks", "install", "cline"]);
    workspace.json(&["mcp", "install", "cline"]);
    let model = FakeModel::answering(|request| {
        script(request, &|command| {
            ("run_commands", json!({"commands": [command]}))
        })
    });
    let url = model.openai_url();
    let provider = [
        "-p", "openai-compatible", "-k", "none", "-m", "m", "-b", &url,
    ];
    run(&workspace, &program, |command| {
        command.arg("auth").args(provider);
    })
    .succeeds();
    let ran = run(&workspace, &program, |command| {
        command
            .args(["-P", "openai-compatible", "-m", "m", "-k", "none"])
            .args(["--auto-approve", "true", "fix the script"]);
    });
    end_hub_of(&workspace.root());
    assert!(ran.stdout.contains("All done."), "{ran:?}");
    was_told(&model, "\"role\":\"tool\"");
    was_credited(&workspace);
    was_offered_tools(&model);
    workspace.json(&["mcp", "uninstall", "cline"]);
    let settings = workspace
        .home()
        .join(".cline/data/settings/cline_mcp_settings.json");
    assert!(!settings.exists());
    workspace.json(&["hooks", "uninstall", "cline"]);
    assert!(!workspace.home().join(".cline/hooks").exists());
}

/// The model could call the tools of the MCP server.
fn was_offered_tools(model: &FakeModel) {
    let tools = model
        .requests()
        .iter()
        .map(|request| request.body["tools"].to_string())
        .max_by_key(String::len);
    let tools = tools.unwrap_or_default();
    let is_offered = ["hint", "search"].iter().all(|tool| {
        ["memctl_", "memctl__", "memctl-"]
            .iter()
            .any(|name| tools.contains(&format!("\"{name}{tool}\"")))
    });
    assert!(is_offered, "{tools}");
}

/// Ends the server that Cline leaves behind for this directory.
fn end_hub_of(directory: &Path) {
    let directory = directory.to_str().unwrap();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        if line.contains("--cline-hub-daemon") && line.contains(directory) {
            let pid = entry.file_name();
            drop(Command::new("kill").arg(pid).status());
        }
    }
}
