//! Readers for session files of agent hosts, one per format. The format is detected from the
//! content.
//!
//! Pure: the caller provides bytes. Memory depends on the number of calls, whose outputs are cut, and on the
//! longest line, or on the size of a single document. Unreadable input is reported with its line and skipped.
//! Text that hosts and memories inject is removed, so that nothing is learned from it.
//!
//! Deliberately absent: the classification of failures, and learning.

pub mod cline;
mod codex;
mod detect;
mod document;
pub mod gemini;
mod messages;
mod otlp;
mod specstory;
mod steps;
mod text;
mod trace;

use std::io::{self, BufRead};

use serde::Serialize;
use serde_json::Value;

use memctl_files::text::stream;

pub use text::{own_words, whole_characters};
use trace::Calls;
pub use trace::{BrokenLine, Remark, Session, Speaker, Step};

/// Maximum length of a line in bytes.
const MAX_LINE: u64 = 256 << 20;

/// Size of the buffer in bytes; the format is detected from its first content.
const BUFFER: usize = 1 << 18;

/// Format of session files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Claude Code: `~/.claude/projects/…/<session>.jsonl`, and its `stream-json` output.
    ClaudeCode,
    /// Codex: `~/.codex/sessions/…/rollout-….jsonl`.
    Codex,
    /// Gemini CLI: `~/.gemini/tmp/…/chats/session-….jsonl`, and the older single document.
    Gemini,
    /// SWE-agent: a `.traj` document.
    SweAgent,
    /// Messages with `tool_calls` and the role `tool`.
    OpenaiMessages,
    /// Messages with `tool_use` and `tool_result` blocks.
    AnthropicMessages,
    /// `OpenCode`: the document of `opencode export`.
    #[serde(rename = "opencode")]
    OpenCode,
    /// Cline: `~/.cline/data/sessions/…/<session>.messages.json`.
    Cline,
    /// `SpecStory`: `.specstory/history/….md`.
    #[serde(rename = "specstory")]
    SpecStory,
    /// OpenTelemetry: traces in OTLP/JSON, with the conventions for generative AI.
    Otlp,
    /// Native format: JSON Lines of steps, which any agent can write.
    Steps,
}

impl Format {
    /// All formats, each with its name for `--format` and in JSON output.
    pub const ALL: [(Self, &str); 11] = [
        (Self::ClaudeCode, "claude-code"),
        (Self::Codex, "codex"),
        (Self::Gemini, "gemini"),
        (Self::SweAgent, "swe-agent"),
        (Self::OpenaiMessages, "openai-messages"),
        (Self::AnthropicMessages, "anthropic-messages"),
        (Self::OpenCode, "opencode"),
        (Self::Cline, "cline"),
        (Self::SpecStory, "specstory"),
        (Self::Otlp, "otlp"),
        (Self::Steps, "steps"),
    ];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Format with this name; `None` if unknown.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        Some(all.find(|(_, own)| *own == name)?.0)
    }
}

/// Returns the format of a file that begins so; `None` if it is no session.
pub fn detect(start: &[u8]) -> Option<Format> {
    detect::detect(None, start).map(|(format, _)| format)
}

/// Reads a session file. A byte order mark and UTF-16 are decoded.
pub fn read(named: Option<Format>, input: &mut dyn io::Read) -> io::Result<Session> {
    let input = &mut io::BufReader::with_capacity(BUFFER, stream(input)?);
    let start = input.fill_buf()?;
    let Some((format, shape)) = detect::detect(named, start) else {
        return Ok(Session::default());
    };
    let mut calls = Calls::default();
    let mut messages = document::Reader::new(format);
    match (shape, format) {
        (detect::Shape::Markdown | detect::Shape::Document, _) => {
            let mut text = Vec::new();
            io::Read::read_to_end(&mut io::Read::take(input, MAX_LINE), &mut text)?;
            let text = String::from_utf8_lossy(&text);
            match (shape, format) {
                (detect::Shape::Markdown, _) => specstory::export(&text, &mut calls),
                (_, Format::Otlp) => otlp::document(&text, &mut calls),
                _ => messages.document(&text, &mut calls),
            }
        }
        (_, Format::ClaudeCode) => lines(input, &mut messages::ClaudeCode::default(), &mut calls)?,
        (_, Format::Codex) => lines(input, &mut codex::Reader::default(), &mut calls)?,
        (_, Format::Gemini) => lines(input, &mut gemini::Reader::default(), &mut calls)?,
        (_, Format::Otlp) => lines(input, &mut otlp::Reader::default(), &mut calls)?,
        (_, Format::Steps) => lines(input, &mut steps::Reader::default(), &mut calls)?,
        _ => lines(input, &mut messages, &mut calls)?,
    }
    Ok(Session {
        format: Some(messages.format),
        ..calls.session
    })
}

/// Reader for a format with one value per line.
trait LineFormat {
    /// Reads the object of a line. The error is the reason as text.
    fn line(&mut self, line: &Value, calls: &mut Calls) -> Result<(), String>;

    /// Called after the last line.
    fn end(&mut self, _: &mut Calls) {}
}

fn lines(
    input: &mut dyn BufRead,
    reader: &mut dyn LineFormat,
    calls: &mut Calls,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut number = 0;
    loop {
        buffer.clear();
        let read = io::Read::take(&mut *input, MAX_LINE).read_until(b'\n', &mut buffer)?;
        number += 1;
        let is_cut = read as u64 == MAX_LINE && buffer.last() != Some(&b'\n');
        if is_cut {
            let message = format!("it is longer than {} MiB; reading stopped", MAX_LINE >> 20);
            calls.broken(number, message);
        }
        if read == 0 || is_cut {
            reader.end(calls);
            return Ok(());
        }
        let broken = match String::from_utf8_lossy(&buffer).trim() {
            "" => Ok(()),
            line => text::parse(line).and_then(|line| match line {
                Value::Object(_) => reader.line(&line, calls),
                _ => Err("it is no object".to_owned()),
            }),
        };
        if let Err(message) = broken {
            calls.broken(number, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    pub(super) fn read_all(named: Option<Format>, text: impl AsRef<[u8]>) -> Session {
        let mut input = BufReader::with_capacity(1 << 16, text.as_ref());
        read(named, &mut input).unwrap()
    }

    #[test]
    fn codex_rollouts() {
        let text = concat!(
            r#"{"timestamp":"t","type":"session_meta","payload":{"id":"s","cwd":"/w"}}"#,
            "\n",
            r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"x\"}","call_id":"a"}}"#,
            "\n",
            r#"{"type":"event_msg","payload":{"type":"exec_command_end","call_id":"a","exit_code":1}}"#,
            "\n",
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"a","output":"Chunk ID: 1\nWall time: 1\nProcess exited with code 1\nOutput:\nno\n"}}"#,
            "\n",
            r#"{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"b"}}"#,
            "\n",
            r#"{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"b","output":"{\"output\":\"Success\",\"metadata\":{\"exit_code\":0}}"}}"#,
            "\n",
            r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","id":"m","content":[]}}}"#,
            "\n",
        );
        let read = read_all(None, text);
        let steps: Vec<_> = read
            .steps
            .iter()
            .map(|s| (s.output.as_str(), s.is_error, s.exit_code, s.cwd.as_deref()))
            .collect();
        assert_eq!(
            steps,
            [
                ("no\n", Some(true), Some(1), Some("/w")),
                ("Success", Some(false), Some(0), Some("/w")),
            ]
        );
        assert_eq!(read.steps[0].command().as_deref(), Some("x"));
        assert_eq!(read.broken, []);
    }

    #[test]
    fn gemini_sessions_write_a_call_twice() {
        let call = |result: &str| {
            format!(
                r#"{{"id":"m","type":"gemini","content":"","toolCalls":[{{"id":"c","name":"run_shell_command","args":{{"command":"x"}},"status":"success"{result}}}]}}"#
            )
        };
        let answer = r#","result":[{"functionResponse":{"response":{"output":"<untrusted_context>\nOutput: no\nExit Code: 3\n</untrusted_context>\n<hook_context>h</hook_context>"}}}]"#;
        let lines = [
            r#"{"sessionId":"s","projectHash":"p"}"#.to_owned(),
            r#"{"id":"u","type":"user","content":[{"text":"<hook_context>h</hook_context>fix"}]}"#
                .to_owned(),
            call(""),
            call(answer),
            call(answer),
        ];
        let read = read_all(None, lines.join("\n"));
        assert_eq!(read.steps.len(), 1);
        assert_eq!(
            (read.steps[0].is_error, read.steps[0].exit_code),
            (Some(true), Some(3))
        );
        assert_eq!(read.remarks[0].text, "fix");
        let document = format!(
            r#"{{"sessionId":"s","projectHash":"p","messages":[{}]}}"#,
            call(answer)
        );
        let read = read_all(None, document);
        assert_eq!((read.format, read.steps.len()), (Some(Format::Gemini), 1));
    }

    #[test]
    fn message_lists_of_both_kinds() {
        let openai = r#"[{"role":"user","content":"u"},{"role":"assistant","content":null,"tool_calls":[
            {"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"g","arguments":"{"}}]},
            {"role":"tool","tool_call_id":"b","content":"2"},
            {"role":"tool","tool_call_id":"a","content":"Error: 1"}, {"role": 5}, 7]"#;
        let read = read_all(None, openai);
        assert_eq!(read.format, Some(Format::OpenaiMessages));
        let outputs: Vec<_> = read
            .steps
            .iter()
            .map(|s| (s.tool.as_str(), s.output.as_str()))
            .collect();
        assert_eq!(outputs, [("f", "Error: 1"), ("g", "2")]);
        let lines: Vec<u64> = read.broken.iter().map(|b| b.line).collect();
        assert_eq!(lines, [4, 4]);
        let anthropic = r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"x":1}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"no"}]}"#;
        let read = read_all(None, anthropic);
        assert_eq!(read.format, Some(Format::AnthropicMessages));
        assert_eq!(read.steps[0].is_error, Some(true));
        assert_eq!(read.broken.len(), 1, "the document breaks off");
    }

    #[test]
    fn trajectories() {
        let text = r#"{"environment":"e","history":[{"role":"user","content":"x"}],"trajectory":[
            {"action":"ls -a\n","observation":"a\n","thought":"t","state":"{\"working_dir\":\"/w\"}"},
            {"action":"","observation":""},
            {"action":"python x.py","observation":"ok","messages":[{"role":"user","content":[]}]}],"info":{}}"#;
        let read = read_all(None, text);
        assert_eq!(read.format, Some(Format::SweAgent));
        let tools: Vec<_> = read
            .steps
            .iter()
            .map(|s| (s.tool.as_str(), s.cwd.as_deref()))
            .collect();
        assert_eq!(tools, [("ls", Some("/w")), ("python", None)]);
    }

    #[test]
    fn a_trajectory_may_have_only_its_history() {
        let text = r#"{"history":[{"role":"system","content":"be good"},
            {"role":"user","content":"a demonstration","is_demo":true},
            {"role":"assistant","content":"x","action":"demo","is_demo":true},
            {"role":"user","content":"solve it"},
            {"role":"assistant","content":"I look","thought":"I look","action":"ls src\n",
             "tool_calls":[{"function":{"name":"bash","arguments":"{}"},"id":"c"}]},
            {"role":"tool","content":"main.py","tool_call_ids":["c"]},
            {"role":"assistant","content":"","action":"python main.py"},
            {"role":"user","content":"Traceback","message_type":"observation"}]}"#;
        let read = read_all(None, text);
        assert_eq!(read.format, Some(Format::SweAgent));
        let steps: Vec<_> = read
            .steps
            .iter()
            .map(|s| (s.tool.as_str(), s.command(), s.output.as_str()))
            .collect();
        assert_eq!(
            steps,
            [
                ("ls", Some("ls src\n".to_owned()), "main.py"),
                ("python", Some("python main.py".to_owned()), "Traceback"),
            ]
        );
        assert!(
            read.remarks
                .iter()
                .all(|remark| remark.by == Speaker::Agent)
        );
        // With a trajectory, the history repeats it.
        let both = text.replacen('{', r#"{"trajectory":[{"action":"pwd"}],"#, 1);
        assert_eq!(read_all(None, both).steps.len(), 1);
    }

    #[test]
    fn every_format_is_read_in_every_encoding() {
        let text = "{\"type\":\"session_meta\",\"payload\":{\"id\":\"ä1\",\"cwd\":\"/w\"}}\n\
            {\"type\":\"response_item\",\"payload\":{\"type\":\"function_call\",\"name\":\"sh\",\
            \"arguments\":\"{}\",\"call_id\":\"a\"}}\n";
        let document = r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"ü"}}]}]}"#;
        let utf16 = |text: &str| -> Vec<u8> {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        };
        for text in [text, document] {
            let plain = read_all(None, text);
            for bytes in [format!("\u{feff}{text}").into_bytes(), utf16(text)] {
                let read = read_all(None, bytes);
                assert_eq!((&read.steps, &read.id), (&plain.steps, &plain.id));
                assert_eq!((read.format, read.broken), (plain.format, Vec::new()));
            }
        }
    }

    #[test]
    fn untyped_text_gets_another_speaker() {
        let line = |text: &str| format!("{}\n", serde_json::json!({ "user": text }));
        let text = format!(
            "{{\"session\":\"s\"}}\n{}{}",
            line("## Issue\nNever log in.\n## Steps\n1. x"),
            line("cafe\u{301} first"),
        );
        let remarks = read_all(Some(Format::Steps), text).remarks;
        let remarks: Vec<_> = remarks.iter().map(|r| (r.by, r.text.as_str())).collect();
        assert_eq!(remarks.len(), 2);
        assert_eq!(remarks[0].0, Speaker::Other);
        assert_eq!(remarks[1], (Speaker::User, "caf\u{e9} first"));
    }

    #[test]
    fn our_own_steps() {
        let text = "{\"session\":\"s\",\"cwd\":\"/w\"}\n{\"user\":\"u\"}\n\
            {\"tool\":\"sh\",\"input\":\"ls x\",\"error\":\"no such\",\"id\":\"1\"}\n[1]\n\
            {\"tool\":\"sh\",\"input\":{\"command\":\"ls\"},\"output\":\"a\",\"exit_code\":0}\n";
        let read = read_all(None, text);
        assert_eq!(read.format, Some(Format::Steps));
        let steps: Vec<_> = read
            .steps
            .iter()
            .map(|s| (s.command(), s.is_error))
            .collect();
        assert_eq!(
            steps,
            [
                (Some("ls x".into()), Some(true)),
                (Some("ls".into()), Some(false))
            ]
        );
        assert_eq!(read.broken[0].line, 4);
    }

    #[test]
    fn a_call_without_an_answer_is_handed_out_at_the_end() {
        let text = r#"[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}]"#;
        let read = read_all(None, text);
        assert!(!read.steps[0].answered);
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            pieces in proptest::collection::vec(0..PIECES.len(), 0..40),
        ) {
            let pieces: Vec<&str> = pieces.into_iter().map(|at| PIECES[at]).collect();
            for format in Format::ALL.map(|(format, _)| Some(format)).into_iter().chain([None]) {
                drop(read_all(format, &bytes));
                drop(read_all(format, pieces.concat()));
            }
        }
    }

    /// Fragments of session files for random combinations.
    const PIECES: &[&str] = &[
        "{", "}", "[", "]", ",", ":", "\n", "null", "7", "\"", "\"\\ud800\"", "\"type\":",
        "\"user\"", "\"assistant\"", "\"message\":", "\"content\":", "\"role\":", "\"tool\"",
        "\"tool_calls\":", "\"id\":", "\"trajectory\":", "\"action\":", "\"observation\":",
        "\"payload\":", "\"response_item\"", "\"toolCalls\":", "\"gemini\"", "\"tool_use\"",
        "\"tool_result\"",
    ];
}
