//! Part of `hook` that lets the agent word what its session found out.
//!
//! Each call of a session is appended to its log. At a stop the agent is asked once, and the lessons in
//! its last message are stored. Nothing here can fail an agent: what does not work is left out.

use std::path::Path;

use memctl_files::{Directory, named};
use serde_json::Value;

use crate::cli::arguments::person;
use crate::cli::config::{Config, Environment, Places};
use crate::cli::context::random;
use crate::host::{Event, EventKind, Host};
use crate::lessons::{AnswerBy, Asking, Marks, PROMPT, keep_call};
use crate::store::workspace::Records;
use crate::store::{Here, Scoped};

/// Name of the file with the words of the question.
const WORDS: &str = "ask_lesson.md";
/// Maximum size of that file, and of a settings file.
const LONGEST: u64 = 1 << 20;

/// When an agent is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// When it is about to stop; at a recovery on agent hosts without such an event.
    Stop,
    /// At a recovery.
    Recovery,
    /// Never.
    Off,
}

impl std::str::FromStr for Ask {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "stop" => Ok(Self::Stop),
            "recovery" => Ok(Self::Recovery),
            "off" => Ok(Self::Off),
            _ => Err("none of `stop`, `recovery`, `off`".to_owned()),
        }
    }
}

/// An event and the memory that it concerns.
pub(crate) struct LessonEvent<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) places: &'a Places,
    pub(crate) host: Host,
    pub(crate) store: &'a Scoped,
    pub(crate) event: &'a Event,
    pub(crate) here: &'a Here<'a>,
}

impl LessonEvent<'_> {
    /// Appends a call to the log of its session.
    pub(crate) fn keep(&self) {
        let event = self.event;
        let project = self.here.project_name();
        let kept = keep_call(
            self.store,
            (&self.host.session(event), &project.unwrap_or_default()),
            (event.tool.as_deref(), &event.input, &event.output),
            event.kind == EventKind::ToolFailed,
        );
        // A call that is not kept cannot bear out a lesson; nothing else depends on it.
        drop(kept);
    }

    /// Returns `true` if a failure of this session waits for its recovery, and the agent was not asked.
    pub(crate) fn may_ask(&self) -> bool {
        let marks = Marks::of(self.store, &self.host.session(self.event));
        marks.has_failed && !marks.asked
    }

    /// Returns the answer to an agent that is about to stop; `None` lets it stop.
    pub(crate) fn at_stop(&self, config: &Config) -> Option<String> {
        if !self.host.asks_at_stop() || !matches!(config.parsed("learning.ask"), Ok(Ask::Stop)) {
            return None;
        }
        let session = self.host.session(self.event);
        let by = self.answer_by();
        let text = self.asking(|asking| asking.at_stop(&session, &self.event.output, by));
        Some(self.host.answer_stop(&text?))
    }

    /// Returns the answer to a call that has worked, if the agent is asked there.
    pub(crate) fn at_recovery(&self, config: &Config) -> Option<String> {
        let is_asked = match config.parsed("learning.ask") {
            Ok(Ask::Recovery) => true,
            Ok(Ask::Stop) => !self.host.asks_at_stop(),
            _ => false,
        };
        if !is_asked {
            return None;
        }
        let session = self.host.session(self.event);
        let text = self.asking(|asking| asking.at_recovery(&session))?;
        Some(self.host.answer(self.event, &text))
    }

    fn asking<E>(
        &self,
        ask: impl FnOnce(&Asking<'_>) -> Result<Option<String>, E>,
    ) -> Option<String> {
        let words = self.words();
        let asking = Asking {
            records: Records {
                store: self.store,
                now: self.environment.now,
                random,
            },
            words: words.as_deref().unwrap_or(PROMPT),
            person: &person(self.environment),
            root: self.event.cwd.as_deref(),
        };
        ask(&asking).ok().flatten()
    }

    /// Words of the question where a person has replaced ours. Those of a workspace need its trust.
    fn words(&self) -> Option<String> {
        let of_workspace = Directory::at(&self.places.memory).below("prompts");
        let of_workspace = of_workspace.read_text(WORDS, LONGEST).ok().flatten();
        let of_workspace =
            of_workspace.filter(|_| self.environment.trusts_settings(&self.places.memory));
        of_workspace.or_else(|| {
            let of_user = self.environment.config_dir.as_deref()?;
            named::read_text(&of_user.join("prompts").join(WORDS), LONGEST).ok()
        })
    }

    /// Returns the way to answer that opens no dialog.
    fn answer_by(&self) -> AnswerBy {
        if self.host != Host::ClaudeCode {
            return AnswerBy::Lines;
        }
        if self.event.runs_unasked {
            return AnswerBy::Command;
        }
        let home = self
            .environment
            .home
            .as_deref()
            .map(|home| home.join(".claude"));
        let project = self.event.cwd.as_deref().map(|cwd| cwd.join(".claude"));
        let files = [
            home.map(|dir| dir.join("settings.json")),
            project.as_ref().map(|dir| dir.join("settings.json")),
            project.as_ref().map(|dir| dir.join("settings.local.json")),
        ];
        let found = files
            .into_iter()
            .flatten()
            .filter_map(|file| allowed(&file));
        found
            .min_by_key(|by| *by != AnswerBy::Tool)
            .unwrap_or(AnswerBy::Lines)
    }
}

/// Returns the way to answer that a settings file of Claude Code allows.
fn allowed(settings: &Path) -> Option<AnswerBy> {
    let text = named::read_text(settings, LONGEST).ok()?;
    let settings: Value = serde_json::from_str(&text).ok()?;
    let allow = settings["permissions"]["allow"].as_array()?;
    let has = |names: &[&str]| allow.iter().any(|one| names.iter().any(|name| one == name));
    if has(&["mcp__memctl__lesson", "mcp__memctl", "mcp__memctl__*"]) {
        Some(AnswerBy::Tool)
    } else if has(&[
        "Bash(memctl lesson add:*)",
        "Bash(memctl lesson:*)",
        "Bash(memctl:*)",
    ]) {
        Some(AnswerBy::Command)
    } else {
        None
    }
}
