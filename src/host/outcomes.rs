//! End of a tool call, as each agent host tells it.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::{Value, json};

use memctl_files::named;
use memctl_sessions::cline;

use super::event::Fields;
use super::{EventKind, Host};

/// Returns the output of a call, and `true` if it failed; `None` if a person interrupted it, which teaches nothing.
pub(super) fn outcome(host: Host, kind: EventKind, fields: &Fields<'_>) -> Option<(String, bool)> {
    let failed = kind == EventKind::ToolFailed;
    if failed && fields.is_true("is_interrupt") {
        return None;
    }
    Some(match host {
        Host::ClaudeCode if failed => (claude_code_failure(fields.texts("error")), true),
        Host::ClaudeCode => (fields.texts("tool_response"), false),
        Host::Copilot if failed => (fields.texts("error"), true),
        Host::Cursor if failed => (fields.texts("error_message"), true),
        Host::Codex => codex(fields),
        Host::Gemini => gemini(fields.inside("tool_response").as_ref()),
        Host::Copilot => copilot(fields.inside("tool_result").as_ref()),
        Host::OpenCode => {
            let exit_code = fields.value("exit_code").as_i64();
            ended(fields.texts("tool_response"), exit_code)
        }
        Host::Cline => {
            let outcome = cline::outcome(&fields.value("tool_response"));
            (outcome.output, outcome.failed)
        }
        Host::Cursor => (cursor(fields.texts("tool_output")), false),
    })
}

fn ended(output: String, exit_code: Option<i64>) -> (String, bool) {
    (output, exit_code.is_some_and(|code| code != 0))
}

/// Claude Code: for a shell, the error begins with the line `Exit code N`. The event does not fire for
/// unknown tools, refused permissions and invalid input.
fn claude_code_failure(error: String) -> String {
    let (first, rest) = error.split_once('\n').unwrap_or((&error, ""));
    let code = first.strip_prefix("Exit code ");
    if code.is_some_and(|code| code.trim().parse::<i64>().is_ok()) {
        return rest.to_owned();
    }
    error
}

/// Codex: an event has no exit code. It is in the rollout of the session, which is written before the hook
/// runs. Without one, only an unmistakable failure counts: a hint after a success would be noise.
fn codex(fields: &Fields<'_>) -> (String, bool) {
    let output = fields.texts("tool_response");
    let call = fields.text("tool_use_id");
    let found = fields.path("transcript_path").zip(call);
    let code = found.and_then(|(rollout, call)| exit_code(&rollout, &call));
    let failed = code.map_or_else(|| looks_failed(&output), |code| code != 0);
    (output, failed)
}

fn looks_failed(output: &str) -> bool {
    /// Line prefixes that only failures print.
    const FAILURES: &[&str] = &[
        "Traceback (most recent", "error: ", "error[", "Error: ", "fatal: ", "bash: ",
        "/bin/bash: ", "zsh: ", "sh: ", "npm error", "npm ERR!", "thread 'main' panicked",
    ];
    let mut lines = output.lines();
    lines.any(|line| FAILURES.iter().any(|begin| line.starts_with(begin)))
}

/// Returns the exit code of a call, from the end of the session's rollout.
fn exit_code(rollout: &Path, call: &str) -> Option<i64> {
    /// Number of bytes to search. Little more than the output follows the call.
    const SEARCHED: u64 = 512 << 10;
    let mut file = named::open_plain(rollout).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SEARCHED)))
        .ok()?;
    let mut end = Vec::new();
    file.take(SEARCHED).read_to_end(&mut end).ok()?;
    let lines = end.rsplit(|b| *b == b'\n');
    lines
        .filter(|line| memchr::memmem::find(line, call.as_bytes()).is_some())
        .filter(|line| memchr::memmem::find(line, b"exit_code").is_some())
        .find_map(|line| {
            let line: Value = serde_json::from_slice(line).ok()?;
            let item = &line["payload"]["item"];
            (item["id"] == call).then(|| item["exit_code"].as_i64())?
        })
}

/// Gemini CLI: a failing command is not marked as an error. The only sign is the line `Exit Code: N` in the
/// text for the model, which is missing for 0. Other tools have an `error`.
fn gemini(response: Option<&Fields<'_>>) -> (String, bool) {
    let text = |name| response.map(|r| r.texts(name)).unwrap_or_default();
    let (shown, error) = (text("llmContent"), text("error"));
    let mut lines = shown.lines().rev();
    let exit_code = lines.find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok());
    match error.as_str() {
        "" => ended(unframed(&shown), exit_code),
        _ => (error, true),
    }
}

/// Returns the output of the command, without the lines that Gemini CLI adds.
fn unframed(shown: &str) -> String {
    let is_frame = |line: &&str| {
        let tags = ["<untrusted_context>", "</untrusted_context>"];
        let labels = ["Exit Code: ", "Process Group PGID: ", "Background PIDs: "];
        tags.contains(line) || labels.iter().any(|label| line.starts_with(label))
    };
    let lines = shown.lines().filter(|line| !is_frame(line));
    let lines = lines.map(|line| line.strip_prefix("Output: ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Copilot CLI: a command that fails has the event of a success. Its exit code is in the last line, which
/// the host adds: `<shellId: 0 completed with exit code 1>`.
fn copilot(result: Option<&Fields<'_>>) -> (String, bool) {
    let code = |line: &str| {
        let (_, code) = line
            .trim()
            .strip_prefix("<shellId: ")?
            .split_once(" completed with exit code ")?;
        code.strip_suffix('>')?.parse().ok()
    };
    let shown = result.map(|result| result.texts("text_result_for_llm"));
    let shown = shown.unwrap_or_default();
    let (output, last) = shown.trim_end().rsplit_once('\n').unwrap_or(("", &shown));
    match code(last) {
        Some(exit_code) => ended(output.to_owned(), Some(exit_code)),
        None => ended(shown, None),
    }
}

/// Cursor: a success means exit code 0, with the output in a JSON text.
fn cursor(raw: String) -> String {
    let inner = Fields::read(raw.as_bytes()).filter(|inner| inner.has("output"));
    let output = inner.map(|inner| inner.texts("output"));
    output.unwrap_or(raw)
}

/// Returns an event of Cline with the fields that the others have. Those of a call are in `tool_call` or
/// `tool_result`. A shell call has a list of commands and a list of results.
pub(super) fn of_cline(fields: &Fields<'_>) -> Option<String> {
    let name = fields.text("hookName")?;
    let call = fields.inside(&name);
    let value = |field| call.as_ref().map(|call| call.value(field));
    let context = fields.inside("sessionContext");
    let session = context.and_then(|context| context.text("rootSessionId"));
    let event = json!({
        "session_id": session.or_else(|| fields.text("taskId")),
        "cwd": fields.texts("workspaceRoots").lines().next(),
        "hook_event_name": name,
        "tool_name": call.as_ref().and_then(|call| call.text("name")),
        "tool_input": value("input").map(|input| cline::input(&input)),
        "tool_response": value("output"),
    });
    Some(event.to_string())
}
