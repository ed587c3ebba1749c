//! Facts that no event has: they are in the session file of the agent host, or in its process.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use memctl_files::named;
use serde_json::Value;

use super::{Event, Host};

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
    // Its name, its state, and then its parent.
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
pub(super) fn exit_code(rollout: &Path, call: &str) -> Option<i64> {
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
