//! Data that is longer than a host takes: what is cut stays inside its fence.

use serde_json::{Value, json};

use crate::hosts::hook;
use crate::workspace::Workspace;

/// Where Claude Code, Codex and Gemini CLI cut, in units of UTF-16.
const HOST: usize = 10_000;
const KEY: &str = "error: externally-managed-environment";

/// A memory of these fixes for one error.
fn knowing(fixes: &[Value]) -> Workspace {
    let workspace = Workspace::empty();
    let text = json!({ "entries": fixes }).to_string();
    workspace.write(".agentura/procedural_memory.json", text);
    workspace
}

fn fix(id: usize, wrong: &str, right: &str) -> Value {
    pattern!({"procedure_id": format!("PROC-{id:03}"), "created_at": "", "error_key": KEY, "failing_code": wrong,
        "working_code": right, "success_output": "", "occurrences": 5})
}

/// What an agent is told at an event, after all that a host keeps of it. A hook that is too late on a busy
/// machine is silent; then another session asks.
fn kept(workspace: &Workspace, mut event: Value) -> String {
    for turn in 0..50 {
        event["session_id"] = json!(turn.to_string());
        let ran = hook(workspace, "claude-code", event.to_string());
        if ran.stdout.is_empty() {
            continue;
        }
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let text = &answer["hookSpecificOutput"]["additionalContext"];
        let units: Vec<u16> = text.as_str().unwrap().encode_utf16().take(HOST).collect();
        return String::from_utf16(&units).unwrap();
    }
    panic!("the hook says nothing");
}

fn failing(workspace: &Workspace) -> String {
    let event = json!({"hook_event_name": "PostToolUseFailure", "session_id": "s", "cwd": workspace.root(),
        "tool_name": "Bash", "tool_input": {"command": "pip install x"}, "error": format!("Exit code 1\n{KEY}")});
    kept(workspace, event)
}

/// One fence, with nothing behind it, and its name nowhere else.
#[track_caller]
fn is_closed(text: &str) {
    let opens: Vec<&str> = text
        .lines()
        .filter(|l| l.starts_with("<memctl-data-"))
        .collect();
    let [open] = opens[..] else {
        panic!("{} fences in {text}", opens.len());
    };
    let close = open.replace('<', "</");
    assert_eq!(text.lines().last(), Some(close.as_str()), "{text}");
    assert_eq!(
        text.to_lowercase().matches("memctl-data-").count(),
        2,
        "{text}"
    );
}

#[test]
fn hint_cut_at_the_limit_of_a_host_closes_its_fence() {
    let check = |name: &str, wrong: String, right: String| {
        let fixes: Vec<Value> = (1..=3)
            .map(|id| {
                fix(
                    id,
                    &format!("pip install x{id}\n{wrong}"),
                    &format!("{id}\n{right}"),
                )
            })
            .collect();
        let text = failing(&knowing(&fixes));
        assert!(text.contains("  CORRECT:\n"), "{name}: {text}");
        is_closed(&text);
    };
    // Every line costs four spaces more, and a picture counts twice.
    check("lines", "x\n".repeat(580), "y\n".repeat(600));
    check("pictures", "😀".repeat(1_100), "🚀".repeat(1_150));
    // Each of these gets longer when it is made harmless.
    check("brackets", "<|".repeat(590), "|>".repeat(590));
}

#[test]
fn briefing_closes_its_fence() {
    let long = "😀<|".repeat(400);
    let fixes: Vec<Value> = (1..=9)
        .map(|id| {
            let mut fix = fix(id, &format!("{id} {long}"), &format!("{long} {id}"));
            fix["lesson"] = json!(format!("Lesson {id} {long}"));
            fix
        })
        .collect();
    let workspace = knowing(&fixes);
    let event = json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": workspace.root(), "source": "startup"});
    let text = kept(&workspace, event);
    is_closed(&text);
    assert!(text.encode_utf16().count() <= 2_000, "{text}");
}
