//! Call of a hook: from an event to its answer, and to what the memory keeps of it.
//!
//! A message of the person is heard. At a stop, the agent is asked once to word the findings of its session, and the
//! lessons in its last message are stored. Any other event is answered with what rules and lessons have to say.
//! The end of a session teaches: `memctl learn` catches up on what there is no time for.
//!
//! An error is no answer, because an agent waits for it.
//!
//! The last event of each agent host is noted with its answer, as proof that hooks are delivered; and of each kind of
//! event the last one at which something was told. A note is one small file of this user outside of every memory, so
//! that an event in a folder without a memory is recorded too. It is not synced to the disk: a lost note does no harm.
//! It holds the first words of the answer, and of the event only its name and its folder.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use chrono::{DateTime, Utc};
use memctl_files::json::leaves;
use memctl_files::named;
use memctl_redact::{Clean, Person, beginning};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::settings::claude_code::permitted_answer;
use super::{Event, EventKind, Host};
use crate::lessons::{
    self, AnswerBy, Asking, HintService, LearnOptions, Marks, PROMPT, carries_lessons,
};
use crate::rules::hearing::Message;
use crate::rules::session_receipts;
use crate::store::Scoped;
use crate::store::workspace::{Records, stamp};

/// Event of an agent, with what its answer depends on.
pub struct HookCall<'a> {
    /// Agent host of the event.
    pub host: Host,
    /// Event.
    pub event: &'a Event,
    /// Lessons and rules here.
    pub hints: HintService<'a>,
    /// `true` if nothing may be written.
    pub is_read_only: bool,
    /// Reads the settings; `None` if they are unreadable: then nobody has agreed to be heard or asked.
    pub settings: &'a dyn Fn() -> Option<HookSettings>,
    /// Opens the store whose new records go to the primary; `None` if that fails.
    pub primary: &'a dyn Fn() -> Option<Scoped>,
}

/// Settings of hooks.
#[derive(Debug)]
pub struct HookSettings {
    /// Setting `learning.chat`: messages of the person are heard.
    pub hears_chat: bool,
    /// Setting `learning.ask`.
    pub asks: Asks,
    /// `false` if a program reads the last message of the agent, and no person.
    pub is_attended: bool,
    /// Words of the question that replace the built-in ones.
    pub words: Option<String>,
    /// The person at this machine.
    pub person: Person,
    /// Home directory of the person; `None` if unknown.
    pub home: Option<PathBuf>,
}

/// Moment at which an agent is asked what its session found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// At a stop, or at a recovery on agent hosts without such an event.
    Stop,
    /// At a recovery.
    Recovery,
    /// Never.
    Never,
}

impl FromStr for Asks {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "stop" => Ok(Self::Stop),
            "recovery" => Ok(Self::Recovery),
            "off" => Ok(Self::Never),
            _ => Err("it is `stop`, `recovery` or `off`"),
        }
    }
}

impl HookCall<'_> {
    /// Returns the text for the agent host to print; `None` for nothing.
    pub fn answer(&self) -> Option<String> {
        match self.event.kind {
            EventKind::Prompt => self.at_prompt(),
            EventKind::Stop => self.at_stop(),
            _ => self.at_call_or_session(),
        }
    }

    fn at_prompt(&self) -> Option<String> {
        let hears = self.may_write() && (self.settings)()?.hears_chat;
        let project = self.hints.here.project_name().unwrap_or_default();
        let message = Message::read(&self.event.output, &self.event.session_id, &project)?;
        hears.then(|| self.host.hear(self.event, self.hints.store, message))?
    }

    fn at_stop(&self) -> Option<String> {
        let settings = self.asked_at(Asks::Stop)?;
        let (session, message) = (self.host.session(self.event), &self.event.output);
        let by = self.answer_by(&settings);
        let ask = |store: &Scoped| {
            self.asking(store, &settings, |asking| {
                asking.at_stop(&session, message, by)
            })
        };
        let text = if carries_lessons(message) {
            ask(&(self.primary)()?)
        } else {
            ask(self.hints.store)
        };
        Some(self.host.answer_stop(self.event, &text?))
    }

    fn at_call_or_session(&self) -> Option<String> {
        let session = self.host.session(self.event);
        let is_end = self.event.kind == EventKind::SessionEnd;
        // The answer to an end removes the notes of the session.
        let receipts = is_end.then(|| session_receipts(self.hints.store, &session));
        let answer = self.respond().ok()?;
        if !self.may_write() {
            return answer;
        }
        match self.event.kind {
            EventKind::ToolSucceeded => return answer.or_else(|| self.at_recovery()),
            EventKind::SessionEnd => self.learn(session, receipts.unwrap_or_default()),
            _ => {}
        }
        answer
    }

    /// Returns the question to an agent whose call has just worked.
    fn at_recovery(&self) -> Option<String> {
        let session = self.host.session(self.event);
        let store = self.hints.store;
        // Settings are read only after a failure: calls that work are the most frequent event.
        let marks = Marks::of(store, &session);
        if !marks.has_failed || marks.was_asked {
            return None;
        }
        let settings = self.asked_at(Asks::Recovery)?;
        let project = self.hints.here.project_name().unwrap_or_default();
        let text = self.asking(store, &settings, |asking| {
            asking.at_recovery(&session, &project)
        })?;
        Some(self.host.answer(self.event, &text))
    }

    /// Learns from the session that has ended, told `receipts.0` rules at calls, of which it heeded `receipts.1`.
    fn learn(&self, session: String, receipts: (usize, usize)) {
        let (Some(transcript), Some(store)) =
            (self.event.transcript_path.clone(), (self.primary)())
        else {
            return;
        };
        let options = LearnOptions {
            paths: vec![transcript],
            host_session: Some(session),
            rules_at_calls: receipts.0,
            rules_heeded: receipts.1,
            project_name: self.hints.here.project_name(),
            ..LearnOptions::default()
        };
        // A session that cannot be read or stored is not reported here.
        drop(lessons::learn(
            &self.records(&store),
            &options,
            &mut |_, _| {},
        ));
    }

    /// Returns `true` if this event may write to the memory here. In a directory without one, an agent's work creates
    /// none.
    fn may_write(&self) -> bool {
        !self.is_read_only && !self.hints.here.is_of_user
    }

    /// Returns the settings if the agent may be asked at this moment.
    fn asked_at(&self, moment: Asks) -> Option<HookSettings> {
        let settings = self.may_write().then(self.settings)??;
        let asks = match settings.asks {
            // The answer to a question at the stop would take the place of the result.
            Asks::Stop if !settings.is_attended && self.answer_by(&settings) == AnswerBy::Lines => {
                Asks::Never
            }
            Asks::Stop if !settings.is_attended || self.event.is_of_program(self.host) => {
                Asks::Recovery
            }
            Asks::Stop if !self.host.asks_at_stop() => Asks::Recovery,
            asks => asks,
        };
        (asks == moment).then_some(settings)
    }

    fn asking<E>(
        &self,
        store: &Scoped,
        settings: &HookSettings,
        ask: impl FnOnce(&Asking<'_>) -> Result<Option<String>, E>,
    ) -> Option<String> {
        let asking = Asking {
            records: self.records(store),
            words: settings.words.as_deref().unwrap_or(PROMPT),
            person: &settings.person,
            root: self.event.cwd.as_deref(),
        };
        ask(&asking).ok().flatten()
    }

    fn records<'s>(&self, store: &'s Scoped) -> Records<'s> {
        let HintService { now, random, .. } = self.hints;
        Records { store, now, random }
    }

    /// Returns the way for the agent to answer that opens no dialog.
    fn answer_by(&self, settings: &HookSettings) -> AnswerBy {
        if self.host != Host::ClaudeCode {
            return AnswerBy::Lines;
        }
        if self.event.runs_unasked {
            return AnswerBy::Command;
        }
        permitted_answer(settings.home.as_deref(), self.event.cwd.as_deref())
    }
}

/// Name of the directory with the notes.
const DIRECTORY: &str = "delivered";
/// Maximum size of a note, in bytes.
const LARGEST: u64 = 64 << 10;
/// Maximum number of events in a note.
const EVENTS: usize = 9;
/// Maximum length of the first words of an answer, in characters.
const FIRST_WORDS: usize = 90;

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
        noted(state_dir, host).into_iter().next()
    }

    /// Returns the last events of an agent host at which something was told, one of each kind, the newest first.
    pub fn last_told(state_dir: Option<&Path>, host: Host) -> Vec<Self> {
        let mut all = noted(state_dir, host);
        all.retain(|one| one.told.is_some());
        all
    }

    /// Notes the event. A failure is not reported: an agent waits.
    pub(crate) fn note(&self, state_dir: Option<&Path>, host: Host) {
        let Some(file) = file(state_dir, host) else {
            return;
        };
        let mut all = Self::last_told(state_dir, host);
        all.retain(|one| self.told.is_none() || one.event != self.event);
        all.insert(0, self.clone());
        all.truncate(EVENTS);
        write(&file, &serde_json::to_vec(&all).unwrap_or_default());
    }
}

/// Returns the file with the last event of an agent host, and those before it at which something was told.
fn file(state_dir: Option<&Path>, host: Host) -> Option<PathBuf> {
    let directory = state_dir?.join(DIRECTORY);
    Some(directory.join(format!("{}.json", host.name())))
}

fn noted(state_dir: Option<&Path>, host: Host) -> Vec<Delivery> {
    let text = file(state_dir, host).and_then(|file| named::read(&file, LARGEST).ok());
    serde_json::from_slice(&text.unwrap_or_default()).unwrap_or_default()
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
    beginning(&text, FIRST_WORDS).into_owned()
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
