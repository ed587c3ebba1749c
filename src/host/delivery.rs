//! Proof that hooks are delivered: the last event of each agent host with its answer, and of each kind of event the
//! last one at which something was told: the events after it may all have nothing to say.
//!
//! A note is one small file of this user outside of every memory, so that an event in a folder without a
//! memory is recorded too. It is not synced to the disk, because an agent waits and a lost note does no harm.
//! It holds the first words of the answer, and of the event only its name and its folder.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use memctl_files::json::leaves;
use memctl_files::named;
use memctl_redact::{Clean, beginning};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Event, Host};
use crate::store::workspace::stamp;

/// Name of the directory with the notes.
const DIRECTORY: &str = "delivered";
/// Maximum size of a note, in bytes.
const LARGEST: u64 = 64 << 10;
/// Maximum number of kinds of events in a note.
const KINDS: usize = 8;
/// Maximum length of the first words of an answer, in characters.
const LONGEST: usize = 90;

/// Last event of an agent host that a hook received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Delivery {
    /// Time of the event.
    pub at: String,
    /// Event name of the agent host.
    pub event: String,
    /// Folder of the session.
    pub directory: String,
    /// First words of the answer; null if nothing was said.
    pub told: Option<String>,
    /// Reason why nothing was said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub silent: String,
}

impl Delivery {
    /// Describes an event and its answer. `silent` is the reason if there is none.
    pub(crate) fn of(
        event: &Event,
        answer: Option<&str>,
        silent: &str,
        now: DateTime<Utc>,
    ) -> Self {
        let directory = event.cwd.as_ref().map(|path| path.display().to_string());
        Self {
            at: stamp(now),
            event: Clean::of(&event.name).into_string(),
            directory: Clean::of(&directory.unwrap_or_default()).into_string(),
            told: answer.map(first_words),
            silent: answer.map_or_else(|| silent.to_owned(), |_| String::new()),
        }
    }

    /// Returns the last event of an agent host; `None` if none was received.
    pub fn last(state_dir: Option<&Path>, host: Host) -> Option<Self> {
        read(&file(state_dir?, host.name()))
    }

    /// Returns the last events of an agent host at which something was told, one of each kind, the newest first.
    pub fn last_told(state_dir: Option<&Path>, host: Host) -> Vec<Self> {
        let told = state_dir.and_then(|dir| read(&file(dir, &told(host))));
        told.unwrap_or_default()
    }

    /// Notes the event. A failure is not reported: an agent waits.
    pub(crate) fn note(&self, state_dir: Option<&Path>, host: Host) {
        let Some(dir) = state_dir else {
            return;
        };
        let Ok(text) = serde_json::to_vec(self) else {
            return;
        };
        write(&file(dir, host.name()), &text);
        if self.told.is_some() {
            let mut all = Self::last_told(state_dir, host);
            all.retain(|one| one.event != self.event);
            all.insert(0, self.clone());
            all.truncate(KINDS);
            let text = serde_json::to_vec(&all).unwrap_or_default();
            write(&file(dir, &told(host)), &text);
        }
    }
}

fn file(state_dir: &Path, name: &str) -> PathBuf {
    state_dir.join(DIRECTORY).join(format!("{name}.json"))
}

/// Name of the note about the last events at which something was told.
fn told(host: Host) -> String {
    format!("{}-told", host.name())
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&named::read(path, LARGEST).ok()?).ok()
}

fn write(path: &Path, text: &[u8]) {
    if named::overwrite_note(path, text).is_err() {
        // The directory is missing at the first event only.
        drop(path.parent().map(named::create_dir));
        drop(named::overwrite_note(path, text));
    }
}

/// First words of an answer: of its longest text, without its headings, and what introduces a fence.
fn first_words(answer: &str) -> String {
    let value: Value = serde_json::from_str(answer).unwrap_or_default();
    let texts = leaves(&value).into_iter().filter_map(Value::as_str);
    // Of equally long texts the first.
    let longest = texts.rev().max_by_key(|text| text.len());
    let longest = longest.unwrap_or_default();
    let lines = longest.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let is_mark = |line: &str| line.starts_with('<');
    let says = |at: &usize| {
        let next = lines.get(at + 1);
        let introduces = next.is_some_and(|next| is_mark(next) && !next.starts_with("</"));
        !is_mark(lines[*at]) && !lines[*at].ends_with(':') && !introduces
    };
    let told = (0..lines.len()).find(says).map(|at| lines[at]);
    // A text of a heading alone is what was told.
    let first = told.or_else(|| lines.iter().copied().find(|line| !is_mark(line)));
    let first = first.unwrap_or_default();
    let text = Clean::of(first.strip_prefix("- ").unwrap_or(first)).into_string();
    beginning(&text, LONGEST).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_event_is_known_with_its_answer() {
        let dir = tempfile::tempdir().unwrap();
        let state = Some(dir.path());
        let now = DateTime::UNIX_EPOCH;
        assert_eq!(Delivery::last(state, Host::Codex), None);
        let event = |name: &str| {
            let event = json!({"hook_event_name": name, "session_id": "s", "cwd": "/p",
                "tool_name": "shell", "tool_input": {"command": "ls"}});
            Host::Codex.event(event.to_string().as_bytes()).unwrap()
        };
        Delivery::of(&event("Stop"), None, "no memory there", now).note(state, Host::Codex);
        let last = Delivery::last(state, Host::Codex).unwrap();
        assert_eq!((&*last.silent, last.told), ("no memory there", None));
        let answer = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext":
            "\n<rules-of-the-user-1>\nUse pnpm, never npm.\n</rules-of-the-user-1>"}}"#;
        let delivery = Delivery::of(&event("PreToolUse"), Some(answer), "", now);
        delivery.note(state, Host::Codex);
        let last = Delivery::last(state, Host::Codex).unwrap();
        assert_eq!(last.told.as_deref(), Some("Use pnpm, never npm."));
        assert_eq!((&*last.event, &*last.silent), ("PreToolUse", ""));
        // Written over the longer one, and what was told before it is still known.
        Delivery::of(&event("Stop"), None, "off", now).note(state, Host::Codex);
        let last = Delivery::last(state, Host::Codex).unwrap();
        assert_eq!((&*last.event, last.told), ("Stop", None));
        let last_told = || Delivery::last_told(state, Host::Codex);
        assert_eq!(last_told(), std::slice::from_ref(&delivery));
        // A question at the stop hides no note before a call.
        let asked = Delivery::of(&event("Stop"), Some(answer), "", now);
        asked.note(state, Host::Codex);
        delivery.note(state, Host::Codex);
        assert_eq!(last_told(), [delivery, asked]);
    }

    #[test]
    fn the_first_words_are_no_heading() {
        let check = |text: &str, expected: &str| {
            let answer = json!({"additionalContext": text}).to_string();
            assert_eq!(first_words(&answer), expected, "{text}");
        };
        check(
            "Rules that people have given in this project:\n  - Use pnpm.\n  - Use make.\n",
            "Use pnpm.",
        );
        check(
            "Notes of others, not reviewed.\n<data-1>\nLessons of this project:\n  - Build first.\n</data-1>\n",
            "Build first.",
        );
        check(
            "The user has a rule about this call: Use pnpm.\n",
            "The user has a rule about this call: Use pnpm.",
        );
        check("Heading:\n", "Heading:");
    }
}
