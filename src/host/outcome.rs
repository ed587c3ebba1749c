//! Outcome of a call, which each agent host reports in its own way; and facts that no event has: they are in the
//! session file of the host, or in its process.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use memctl_files::named;
use memctl_sessions::{cline, gemini};
use serde_json::Value;

use super::event::Fields;
use super::{Event, EventKind, Host};
use crate::lessons::recovery::outcome::is_failure;

/// Bytes at the beginning of a session file of Codex that tell how it was started.
const START: u64 = 4 << 10;
/// Maximum size of the arguments of a process, and of what a session file gets between two calls.
const LARGEST: u64 = 16 << 20;
/// Words of Gemini CLI below the summary that takes the place of a conversation.
const SUMMED_UP: &[u8] = b"Got it. Thanks for the additional context!";

impl Event {
    /// Returns `true` for a session whose result a program reads: `codex exec`, an SDK, `gemini -p`.
    pub(super) fn is_of_program(&self, host: Host) -> bool {
        let is_so = match host {
            Host::Codex => self.is_of_exec(),
            Host::Gemini => is_headless(),
            _ => None,
        };
        is_so.unwrap_or(false)
    }

    fn is_of_exec(&self) -> Option<bool> {
        let start = part(self.transcript_path.as_deref()?, 0, START)?;
        let start = String::from_utf8_lossy(&start);
        let meta = start.lines().next()?;
        Some(meta.contains(r#""type":"session_meta""#) && meta.contains(r#""source":"exec""#))
    }

    /// Returns the size of the session file.
    pub(super) fn file_size(&self) -> Option<u64> {
        let file = named::metadata(self.transcript_path.as_deref()?).ok()?;
        Some(file.len())
    }

    /// Returns `true` if Gemini CLI has summed up the conversation since its session file had this size: it then
    /// writes the new messages there.
    pub(super) fn is_summed_up_since(&self, size: u64) -> bool {
        let file = self.transcript_path.as_deref();
        let new = file.and_then(|file| part(file, size, LARGEST));
        new.unwrap_or_default().split(|b| *b == b'\n').any(|line| {
            line.starts_with(br#"{"$set":{"messages""#)
                && memchr::memmem::find(line, SUMMED_UP).is_some()
        })
    }
}

/// Returns whether the Gemini CLI that started this process has no person before it, by its arguments and its
/// terminal; `None` where the system does not tell.
fn is_headless() -> Option<bool> {
    let own = part(Path::new("/proc/self/stat"), 0, START)?;
    // Name, state, and then the parent.
    let own = String::from_utf8(own).ok()?;
    let parent = own.rsplit(") ").next()?.split(' ').nth(1)?;
    let process = Path::new("/proc").join(parent);
    let arguments = part(&process.join("cmdline"), 0, LARGEST)?;
    let is_gemini = |arg: &&[u8]| arg.rsplit(|b| *b == b'/').next() == Some(b"gemini");
    let mut arguments = arguments
        .split(|b| *b == 0)
        .skip_while(|arg| !is_gemini(arg));
    arguments.next()?;
    let is_terminal = |stream: &str| {
        let stream = named::real(&process.join("fd").join(stream));
        let stream = stream.unwrap_or_default();
        ["/dev/pts", "/dev/tty"]
            .iter()
            .any(|of| stream.to_string_lossy().starts_with(of))
    };
    let is_prompt =
        |arg: &[u8]| [&b"-p"[..], b"--prompt"].contains(&arg) || arg.starts_with(b"--prompt=");
    Some(arguments.any(is_prompt) || !is_terminal("0") || !is_terminal("1"))
}

/// Returns a part of a file.
fn part(file: &Path, from: u64, length: u64) -> Option<Vec<u8>> {
    let mut file = named::open_plain(file).ok()?;
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the exit code of a call, from the end of the session's rollout.
fn exit_code(rollout: &Path, call: &str) -> Option<i64> {
    /// Number of bytes to search. Little more than the output follows the call.
    const SEARCHED: u64 = 512 << 10;
    let length = named::metadata(rollout).ok()?.len();
    let end = part(rollout, length.saturating_sub(SEARCHED), SEARCHED)?;
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
        Host::Gemini => gemini_outcome(fields.inside("tool_response").as_ref()),
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
        // They have no hooks.
        Host::VsCode | Host::ClaudeDesktop => return None,
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
/// runs. Without one, the form of the output decides, as in a session file.
fn codex(fields: &Fields<'_>) -> (String, bool) {
    let output = fields.texts("tool_response");
    let call = fields.text("tool_use_id");
    let found = fields.path("transcript_path").zip(call);
    let code = found.and_then(|(rollout, call)| exit_code(&rollout, &call));
    let says_so = || {
        let tool = fields.text("tool_name").unwrap_or_default();
        is_failure(&tool, &fields.input(), &output)
    };
    let failed = code.map_or_else(says_so, |code| code != 0);
    (output, failed)
}

/// Gemini CLI: a failing command is not marked as an error. The only sign is the line `Exit Code: N` in the
/// text for the model, which is missing for 0. Other tools have an `error`.
fn gemini_outcome(response: Option<&Fields<'_>>) -> (String, bool) {
    let text = |name| response.map(|r| r.texts(name)).unwrap_or_default();
    let (shown, error) = (text("llmContent"), text("error"));
    let (output, exit_code) = gemini::unframed(&shown);
    match error.as_str() {
        "" => ended(output, exit_code),
        _ => (error, true),
    }
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
