//! Hook event in one form for all agent hosts, and tolerant reading of its fields.
//!
//! A missing field, or one of an unexpected type, counts as absent: agent hosts change without
//! notice. A tool's output may have megabytes; only its head and its tail are kept, where tools
//! print errors.
//!
//! Each agent host reports the outcome of a call in its own way. Facts that no event has are in the session file of the
//! host, or in its process.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use memctl_files::json::{fields, leaves};
use memctl_files::named;
use memctl_redact::Clean;
use memctl_sessions::{cline, gemini};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Host;
use crate::lessons::recovery::outcome::is_failure;

/// Bytes that are kept at the start and at the end of a long text.
const HEAD: usize = 16 << 10;
const TAIL: usize = 48 << 10;

/// Event of an agent session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Session id of the agent host.
    pub session_id: String,
    /// Working directory of the session; `None` if it is not absolute.
    pub cwd: Option<PathBuf>,
    /// Session file of the agent host; `None` if its path is not absolute.
    pub transcript_path: Option<PathBuf>,
    /// Event name of the agent host, which the answer repeats.
    pub name: String,
    /// Kind of event.
    pub kind: EventKind,
    /// Name of the tool in the agent host.
    pub tool: Option<String>,
    /// Command, or the whole input of another tool as JSON; redacted. Before a call it is empty: see
    /// `clean_input`.
    pub input: String,
    /// Command, or the whole input, as it is before a call; empty for other events. Never stored.
    pub command: String,
    /// Arguments of the tool as they are, before a call; `null` for other events.
    pub arguments: Value,
    /// Output of the tool, the prompt, or the last message of the agent.
    pub output: String,
    /// The agent host runs every call without asking the person.
    pub runs_unasked: bool,
    /// Subagent that the event is about; empty for the main agent.
    pub agent: String,
    /// `true` if the session starts with a new context: after compaction, or cleared.
    pub is_renewed: bool,
}

impl Event {
    /// Returns the input, redacted and clipped, before a call as after it.
    pub(super) fn clean_input(&self) -> String {
        if self.command.is_empty() {
            return self.input.clone();
        }
        let clean = match serde_json::from_str::<HashMap<Cow<'_, str>, &RawValue>>(&self.command) {
            Ok(_) => Clean::of_json(&self.command),
            Err(_) => Clean::of_owned(self.command.clone()),
        };
        clip(&clean)
    }
}

/// Kinds of events that memctl handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A tool call is about to run.
    BeforeTool,
    /// A tool call failed.
    ToolFailed,
    /// A tool call succeeded.
    ToolSucceeded,
    /// A session starts, resumes, or has just been compacted.
    SessionStart,
    /// A subagent starts within a session.
    SubagentStart,
    /// A session ends.
    SessionEnd,
    /// The user entered a prompt.
    Prompt,
    /// The agent is about to stop; its last message is the output.
    Stop,
}

/// Raw fields of an event.
#[derive(Debug)]
pub(super) struct Fields<'a>(HashMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Fields<'a> {
    /// Parses the fields of a JSON object.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        serde_json::from_slice(bytes).ok().map(Self)
    }

    /// Returns the fields of a nested object.
    pub(super) fn inside(&self, name: &str) -> Option<Fields<'a>> {
        serde_json::from_str(self.0.get(name)?.get())
            .ok()
            .map(Fields)
    }

    /// Returns a value; `null` if it is absent.
    pub(super) fn value(&self, name: &str) -> Value {
        let Some(raw) = self.0.get(name) else {
            return Value::Null;
        };
        serde_json::from_str(raw.get()).unwrap_or_else(|_| members(raw.get()))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value.get() != "null")
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value.get() == "true")
    }

    /// Returns a string; `None` for anything else, and for an empty string.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let text: String = serde_json::from_str(self.0.get(name)?.get()).ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// Returns the texts of a value: a string as it is; for lists and objects every string inside,
    /// one per line.
    pub(super) fn texts(&self, name: &str) -> String {
        let value = self.value(name);
        let texts: Vec<&str> = leaves(&value)
            .into_iter()
            .filter_map(Value::as_str)
            .skip_while(|text| text.is_empty())
            .collect();
        texts.join("\n")
    }

    /// Returns the input of a tool, redacted and clipped: its command if it has one, else the whole
    /// input.
    pub(super) fn input(&self) -> String {
        let Some(raw) = self.0.get("tool_input") else {
            return String::new();
        };
        let clean = match self.command() {
            Some(command) => Clean::of_owned(command),
            None => Clean::of_json(raw.get()),
        };
        clip(&clean)
    }

    /// Returns the command of a tool as it is; `None` for other input.
    fn command(&self) -> Option<String> {
        let input = self.inside("tool_input")?;
        let named = ["command", "cmd", "script", "code"].into_iter();
        named
            .map(|name| input.texts(name))
            .find(|text| !text.is_empty())
    }

    /// Returns the path in a field; `None` if it is not absolute.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        let path = self.text(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    }

    /// Returns an event with the fields that all agent hosts report; `None` without a session id.
    fn event(&self, kind: EventKind, input: String, output: String) -> Option<Event> {
        // Cursor lists the folders of its workspace. A call belongs to the one that it runs in.
        let roots = self.texts("workspace_roots");
        let roots = roots.lines().map(PathBuf::from);
        let roots: Vec<PathBuf> = roots.filter(|root| root.is_absolute()).collect();
        let cwd = self.path("cwd");
        let is_around = |root: &&PathBuf| cwd.as_ref().is_some_and(|cwd| cwd.starts_with(root));
        let root = roots.iter().find(is_around).or(roots.first()).cloned();
        Some(Event {
            session_id: self.session_id(kind)?,
            cwd: root.or(cwd),
            transcript_path: self.path("transcript_path"),
            name: self.text("hook_event_name")?,
            kind,
            tool: self.text("tool_name"),
            input,
            command: String::new(),
            arguments: Value::Null,
            output: clip(&Clean::of_owned(output)),
            runs_unasked: self.text("permission_mode").as_deref() == Some("bypassPermissions"),
            agent: self.text("agent_id").unwrap_or_default(),
            is_renewed: self
                .text("source")
                .is_some_and(|of| of == "compact" || of == "clear"),
        })
    }

    /// Returns the id of the session, a text or a number. Rules answer a call of a session without one, too.
    fn session_id(&self, kind: EventKind) -> Option<String> {
        let given = self.value("session_id");
        let number = given.as_i64().map(|number| number.to_string());
        let nameless = (kind == EventKind::BeforeTool).then(|| "nameless".to_owned());
        self.text("session_id").or(number).or(nameless)
    }

    /// Returns the event of a call that is about to run.
    fn before_tool(&self) -> Option<Event> {
        // Redaction costs more than the rest of a call without a match.
        let raw = self.0.get("tool_input").map_or("", |raw| raw.get());
        Some(Event {
            arguments: self.value("tool_input"),
            command: self.command().unwrap_or_else(|| raw.to_owned()),
            ..self.event(EventKind::BeforeTool, String::new(), String::new())?
        })
    }

    /// Returns the event of a finished call.
    fn after_tool(&self, host: Host, kind: EventKind) -> Option<Event> {
        let (output, failed) = outcome(host, kind, self)?;
        let kind = if failed {
            EventKind::ToolFailed
        } else {
            EventKind::ToolSucceeded
        };
        // Where a note is told after the call, it needs the arguments as they are.
        let takes_note = !host.takes_notes_before();
        let arguments = takes_note.then(|| self.value("tool_input"));
        Some(Event {
            arguments: arguments.unwrap_or_default(),
            ..self.event(kind, self.input(), output)?
        })
    }
}

impl Host {
    /// Parses an event from standard input; `None` for events without use, and for unreadable
    /// input.
    pub fn event(self, bytes: &[u8]) -> Option<Event> {
        let bytes = &*without_halves(bytes);
        let fields = Fields::read(bytes)?;
        if self == Self::Cline {
            let event = of_cline(&fields)?;
            return self.event_of(&Fields::read(event.as_bytes())?);
        }
        self.event_of(&fields)
    }

    /// Says that no hook is installed for an event, and for which there is one; `None` for any other input.
    pub fn unknown_event(self, bytes: &[u8]) -> Option<String> {
        let fields = Fields::read(bytes)?;
        let name = fields
            .text("hook_event_name")
            .or_else(|| fields.text("hookName"))?;
        let names: Vec<&str> = self.hooks().iter().map(|hook| hook.sent).collect();
        let (title, all) = (self.title(), names.join("`, `"));
        let name = (!names.contains(&&*name)).then(|| name.escape_debug())?;
        Some(format!(
            "`{name}` is no event of {title} that memctl handles; these are: `{all}`"
        ))
    }

    fn event_of(self, fields: &Fields<'_>) -> Option<Event> {
        // Cursor also runs the hooks in Claude Code's settings, and takes answers of another form.
        if self == Self::ClaudeCode && fields.has("cursor_version") {
            return None;
        }
        let name = fields.text("hook_event_name")?;
        let kind = self.hooks().iter().find(|hook| hook.sent == name)?.kind;
        let saying = |field| fields.event(kind, fields.input(), fields.texts(field));
        match kind {
            EventKind::BeforeTool => fields.before_tool(),
            EventKind::ToolSucceeded | EventKind::ToolFailed => fields.after_tool(self, kind),
            EventKind::Prompt if self == Self::ClaudeCode && !is_typed(fields) => None,
            EventKind::Prompt => saying("prompt"),
            EventKind::Stop if self == Self::Gemini => saying("prompt_response"),
            EventKind::Stop => saying("last_assistant_message"),
            _ => fields.event(kind, fields.input(), String::new()),
        }
    }
}

/// Members of an object of which one cannot be read, such as a number that is too large: that one is its text.
fn members(object: &str) -> Value {
    let members = fields(object.as_bytes()).map(|(name, at)| {
        let text = &object[at];
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        (name.into_owned(), value)
    });
    let members: serde_json::Map<String, Value> = members.collect();
    if members.is_empty() {
        Value::Null
    } else {
        members.into()
    }
}

/// Returns `true` if a person wrote the prompt, and no timer or program of Claude Code.
fn is_typed(fields: &Fields<'_>) -> bool {
    let source = fields.text("source");
    source.is_none_or(|source| ["user", "sdk"].contains(&source.as_str()))
}

/// Replaces halves of characters, which hosts leave where they cut a text: one in a description must not hide the
/// call.
fn without_halves(json: &[u8]) -> Cow<'_, [u8]> {
    let may_have = [&b"\\ud"[..], b"\\uD"]
        .iter()
        .any(|start| memchr::memmem::find(json, start).is_some());
    let text = match std::str::from_utf8(json) {
        Ok(text) if may_have => Cow::Borrowed(text),
        Ok(_) => return Cow::Borrowed(json),
        Err(_) => String::from_utf8_lossy(json),
    };
    let whole = memctl_sessions::whole_characters(&text);
    Cow::Owned(whole.unwrap_or(text.into_owned()).into_bytes())
}

/// Returns the head and the tail of a long redacted text. Redaction comes first, because a cut
/// secret is not recognised.
fn clip(text: &Clean<'_>) -> String {
    text.ends(HEAD, TAIL)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_its_command_or_all_of_it() {
        let check = |json: &str, expected: &str| {
            let fields = Fields::read(json.as_bytes()).unwrap();
            assert_eq!(fields.input(), expected, "{json}");
        };
        check(
            r#"{"tool_input": {"command": "ls -la", "description": "d"}}"#,
            "ls -la",
        );
        check(
            r#"{"tool_input": {"command": ["bash", "-lc", "ls"]}}"#,
            "bash\n-lc\nls",
        );
        check(
            r#"{"tool_input": {"file_path": "/a"}}"#,
            r#"{"file_path": "/a"}"#,
        );
        check(r#"{"tool_input": 7}"#, "7");
        check("{}", "");
    }

    #[test]
    fn secrets_that_lie_across_a_cut_are_gone() {
        let lines: Vec<String> = (2..42)
            .map(|i| format!("{i:6}\tZq9xK7mP2vL5nR8tW4yB6cD1fG3hJ0s{i:02}"))
            .collect();
        let key = format!(
            "     1\t-----BEGIN RSA PRIV{0}\n{1}\n    42\t-----END RSA PRIV{0}",
            "ATE KEY-----",
            lines.join("\n")
        );
        let text = format!("{}{key}{}", "x ".repeat(HEAD / 2 - 300), " y".repeat(TAIL));
        let clipped = clip(&Clean::of(&text));
        assert!(
            clipped.contains("[REDACTED:private-key]") && !clipped.contains("Zq9"),
            "{clipped}"
        );
    }

    #[test]
    fn strange_fields_are_no_fields() {
        assert!(Fields::read(b"[]").is_none());
        assert!(Fields::read(b"\xff\xfe").is_none());
        let deep = format!("{{\"a\": {}}}", "[".repeat(100_000));
        assert!(Fields::read(deep.as_bytes()).is_none());
        let fields = Fields::read(br#"{"session_id": 7, "cwd": "rel", "b": null, "c": true}"#);
        let fields = fields.unwrap();
        assert_eq!(fields.text("session_id"), None);
        assert!(!fields.has("b") && fields.has("c") && fields.is_true("c"));
        let deep = "[".repeat(200) + &"]".repeat(200);
        let input = format!(r#"{{"tool_input": {{"a": {deep}, "n": 1e400, "to": "x"}}}}"#);
        let input = Fields::read(input.as_bytes()).unwrap().value("tool_input");
        assert_eq!(input, json!({"a": deep, "n": "1e400", "to": "x"}));
        assert_eq!(
            fields.event(EventKind::Prompt, String::new(), String::new()),
            None
        );
    }

    #[test]
    fn long_texts_keep_both_ends() {
        let text = format!("first {} last", "é".repeat(1 << 20));
        let clipped = clip(&Clean::of(&text));
        assert!(clipped.len() < HEAD + TAIL + 8);
        assert!(clipped.starts_with("first") && clipped.ends_with("last"));
    }
}
