//! Replay: how a rule would have acted at the calls of past sessions.
//!
//! Before a person approves a rule with patterns, it is tried on the calls of the sessions that `learn` finds,
//! newest first, within a time limit. A call at which the rule speaks counts as corrected if the person's next
//! message corrects the agent. Nothing is written.
//!
//! `after` is followed within each session. A call that a resumed session repeats counts once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use memctl_redact::Clean;
use memctl_sessions::{Session, Speaker, Step};
use serde::Serialize;

use crate::lessons::failure::without_people;
use crate::lessons::past::session_files::{self, is_in, microseconds};
use crate::model::CallPattern;
use crate::rules::hearing::may_be_lasting;
use crate::rules::{Call, breaks, fulfilled_by};
use crate::store::workspace::Error;

/// Maximum age of a session, in days.
const DAYS: i64 = 90;
/// Maximum number of examples.
const EXAMPLES: usize = 3;
/// Maximum length of an example, in bytes.
const LONGEST: usize = 160;

/// Past sessions to try rules on.
#[derive(Debug, Clone, Default)]
pub struct PastSessions {
    /// Session files, and folders to search for them.
    pub paths: Vec<PathBuf>,
    /// Directory of the project; other calls do not count.
    pub project: String,
    /// Present time.
    pub now: DateTime<Utc>,
    /// Maximum time of a replay.
    pub limit: Duration,
}

impl PastSessions {
    /// Reads the sessions with calls in the project, newest files first. Returns `true` if the time was over
    /// before all were read.
    pub(super) fn each(&self, take: &mut dyn FnMut(&Path, Session)) -> Result<bool, Error> {
        let start = Instant::now();
        let mut files = session_files::files(&self.paths)?;
        files.sort_by_key(|file| std::cmp::Reverse(file.mtime));
        for file in files {
            if start.elapsed() > self.limit {
                return Ok(true);
            }
            let session = session_files::read_of(&file.path, None, self.project());
            let session = session.filter(|session| !session.steps.is_empty());
            if let Some(session) =
                session.filter(|session| self.age(session.steps.iter().rev()) <= DAYS)
            {
                take(&file.path, session);
            }
        }
        Ok(false)
    }

    /// Directory of the project; `None` for all.
    pub(super) fn project(&self) -> Option<&str> {
        Some(self.project.trim_end_matches('/')).filter(|project| !project.is_empty())
    }

    /// Age in days of the first of these calls with a time; 0 if none has one.
    pub(super) fn age<'s>(&self, mut steps: impl Iterator<Item = &'s Step>) -> i64 {
        let time = steps.find_map(|step| microseconds(step.time.as_deref()?));
        time.map_or(0, |at| (self.now.timestamp_micros() - at) / 86_400_000_000)
    }
}

/// Replay of a rule: what it would have done at past calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Replay {
    /// Number of sessions with calls in this project.
    pub sessions: usize,
    /// Number of calls in them.
    pub calls: usize,
    /// Number of calls at which the rule would have spoken.
    pub spoken: usize,
    /// Number of these after which the person corrected the agent.
    pub corrected: usize,
    /// Some of these calls, redacted and cut.
    pub examples: Vec<String>,
    /// Number of days that the sessions are from.
    pub days: i64,
    /// `true` if the time was over before all sessions were read.
    pub is_cut: bool,
}

impl Replay {
    /// Returns the replay in words, with its examples one per line.
    pub fn words(&self) -> String {
        if self.calls == 0 {
            return format!("no calls of this project in {DAYS} days");
        }
        let times = |count: usize| match count {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        let mut words = match self.spoken {
            0 => "would not have spoken".to_owned(),
            spoken => format!("would have spoken {}", times(spoken)),
        };
        let (calls, days) = (self.calls.to_string(), self.days.max(1).to_string());
        words.extend([" at ", &calls, " calls in ", &days, " days"]);
        if self.corrected > 0 {
            words.extend([", ", &times(self.corrected), " where you then corrected"]);
        }
        if self.is_cut {
            words.push_str(" (newest sessions only)");
        }
        for example in &self.examples {
            words.extend(["\n", example]);
        }
        words
    }
}

/// Tries several rules, given as words and patterns, on past sessions. Returns a replay for each.
pub fn replay(
    rules: &[(String, Vec<CallPattern>)],
    past: &PastSessions,
) -> Result<Vec<Replay>, Error> {
    let mut all = vec![Replay::default(); rules.len()];
    if rules.is_empty() {
        return Ok(all);
    }
    let root = past.project().unwrap_or_default();
    let mut seen = HashSet::new();
    let is_cut = past.each(&mut |_, session| {
        let by_person = session
            .remarks
            .iter()
            .filter(|remark| remark.by == Speaker::User);
        let mut messages = by_person.peekable();
        let (mut calls, mut days) = (0, 0);
        // `after` expressions that a successful call has matched.
        let mut done: Vec<String> = Vec::new();
        // Rules that spoke since the last message of the person.
        let mut open: Vec<usize> = Vec::new();
        for step in &session.steps {
            while let Some(message) = messages.next_if(|message| message.before <= step.index) {
                correct(&mut all, &mut open, &message.text);
            }
            let is_new = step.native_id.clone().is_none_or(|id| seen.insert(id));
            let age = past.age(std::iter::once(step));
            if !is_new || !is_in(step, Some(root)) || age > DAYS {
                continue;
            }
            calls += 1;
            days = age.max(days - 1) + 1;
            let call = Call::of(step, &[root]);
            for (rule, ((words, patterns), one)) in rules.iter().zip(&mut all).enumerate() {
                if breaks(&call, words, patterns, &|after| {
                    done.iter().any(|done| done == after)
                }) {
                    one.spoken += 1;
                    open.push(rule);
                    if one.examples.len() < EXAMPLES {
                        one.examples.push(shown(&step.call_text(), LONGEST));
                    }
                }
            }
            if step.is_error != Some(true) && step.exit_code.is_none_or(|code| code == 0) {
                done.extend(
                    rules
                        .iter()
                        .flat_map(|(_, patterns)| fulfilled_by(&call, patterns)),
                );
            }
        }
        for message in messages {
            correct(&mut all, &mut open, &message.text);
        }
        for one in all.iter_mut().filter(|_| calls > 0) {
            one.sessions += 1;
            one.calls += calls;
            one.days = one.days.max(days);
        }
    })?;
    for one in &mut all {
        one.is_cut = is_cut;
    }
    Ok(all)
}

/// Counts the rules that spoke before a message of the person, if it corrects the agent.
fn correct(all: &mut [Replay], open: &mut Vec<usize>, message: &str) {
    let corrects = !open.is_empty() && may_be_lasting(message);
    for rule in open.drain(..).filter(|_| corrects) {
        all[rule].corrected += 1;
    }
}

/// A text on one line, redacted and cut.
pub(super) fn shown(text: &str, longest: usize) -> String {
    let text = memctl_redact::strip_fenced(text).into_owned();
    let text = Clean::of_owned(without_people(&text)).cut(longest);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pattern(matches: &str, after: &str) -> (String, Vec<CallPattern>) {
        let pattern = CallPattern {
            matches: matches.to_owned(),
            after: after.to_owned(),
            ..CallPattern::default()
        };
        (String::new(), vec![pattern])
    }

    #[test]
    fn a_rule_is_tried_on_past_calls_and_the_persons_answers() {
        let dir = tempfile::tempdir().unwrap();
        let at = |n: u32| format!("2026-11-{n:02}T10:00:00.000Z");
        let call = |n: u32, command: &str| {
            let id = format!("toolu_{n}");
            let uses = json!({"type": "assistant", "cwd": "/home/u/p", "sessionId": "s", "timestamp": at(n),
                "message": {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash",
                "input": {"command": command}}]}});
            let result = json!({"type": "user", "cwd": "/home/u/p", "sessionId": "s", "timestamp": at(n),
                "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "fine"}]}});
            format!("{uses}\n{result}\n")
        };
        let said = json!({"type": "user", "cwd": "/home/u/p", "sessionId": "s", "timestamp": at(2),
            "message": {"role": "user", "content": "Never use npm in this project, always use pnpm."}});
        let text = call(1, "cd x && npm i")
            + &format!("{said}\n")
            + &call(3, "npm ci")
            + &call(4, "make check")
            + &call(5, "git commit -m x");
        std::fs::write(dir.path().join("s.jsonl"), text).unwrap();
        let past = PastSessions {
            paths: vec![dir.path().to_owned()],
            project: "/home/u/p".to_owned(),
            now: "2026-11-26T00:00:00Z".parse().unwrap(),
            limit: Duration::from_mins(1),
        };
        let rules = [
            pattern(r"^npm\b", ""),
            pattern("^git commit", "^make check"),
            pattern("^git commit", "^make lint"),
        ];
        let found = replay(&rules, &past).unwrap();
        let counts: Vec<_> = found
            .iter()
            .map(|one| (one.spoken, one.corrected))
            .collect();
        assert_eq!(counts, [(2, 1), (0, 0), (1, 0)]);
        assert_eq!(
            found[0].words(),
            "would have spoken 2 times at 4 calls in 25 days, once where you then corrected\n\
             cd x && npm i\nnpm ci"
        );
        let elsewhere = PastSessions {
            project: "/home/u/q".to_owned(),
            ..past
        };
        assert_eq!(replay(&rules, &elsewhere).unwrap()[0].calls, 0);
    }
}
