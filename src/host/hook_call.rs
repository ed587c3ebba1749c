//! Call of a hook: from an event to its answer, and to what the memory keeps of it.
//!
//! A message of the person is heard. At a stop, the agent is asked once to word the findings of its session, and the
//! lessons in its last message are stored. Any other event is answered with what rules and lessons have to say.
//! The end of a session teaches: `memctl learn` catches up on what there is no time for.
//!
//! An error is no answer, because an agent waits for it.

use std::path::PathBuf;
use std::str::FromStr;

use memctl_redact::Person;

use super::settings::claude_code::permitted_answer;
use super::{Event, EventKind, Host};
use crate::lessons::{
    self, AnswerBy, Asking, HintService, LearnOptions, Marks, PROMPT, carries_lessons,
};
use crate::rules::hearing::Message;
use crate::rules::session_receipts;
use crate::store::Scoped;
use crate::store::workspace::Records;

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
