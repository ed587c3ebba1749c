//! Replay: what a rule would have done at the calls of past sessions.
//!
//! Before a person approves a rule with patterns, it is tried on the calls of the sessions that
//! `learn` finds, newest first, within a bound of time. A spoken call counts as corrected if the next
//! message of the person corrects the agent. Nothing is written.
//!
//! `after` is followed within each session. A call that a resumed session repeats counts once.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::lessons::failure::without_people;
use crate::lessons::past::session_files::{self, is_below, microseconds};
use crate::model::CallPattern;
use crate::rules::hearing::may_be_lasting;
use crate::rules::{Call, breaks, fulfilled_by};
use crate::store::workspace::Error;
use memctl_files::named;
use memctl_redact::Clean;
use memctl_sessions::Speaker;

/// Maximum age of a session, in days.
pub(super) const DAYS: i64 = 90;
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

/// Tries the patterns of several rules on past sessions, and returns a replay for each.
pub fn replay(rules: &[Vec<CallPattern>], past: &PastSessions) -> Result<Vec<Replay>, Error> {
    let start = Instant::now();
    let mut all = vec![Replay::default(); rules.len()];
    if rules.is_empty() {
        return Ok(all);
    }
    let mut files = session_files::files(&past.paths)?;
    files.sort_by_key(|file| std::cmp::Reverse(file.mtime));
    let mut seen = HashSet::new();
    for file in files {
        if start.elapsed() > past.limit {
            for one in &mut all {
                one.is_cut = true;
            }
            break;
        }
        let read = named::open(&file.path);
        let Ok(read) = read.and_then(|mut file| memctl_sessions::read(None, &mut file)) else {
            continue;
        };
        let mut session = Session::new(rules, past);
        let messages = read.remarks.iter();
        let mut messages = messages
            .filter(|remark| remark.by == Speaker::User)
            .peekable();
        for (at, step) in read.steps.iter().enumerate() {
            while let Some(message) = messages.next_if(|message| message.before <= at) {
                session.message(&message.text, &mut all);
            }
            let is_new = step.native_id.clone().is_none_or(|id| seen.insert(id));
            if is_new {
                session.step(step, &mut all);
            }
        }
        for message in messages {
            session.message(&message.text, &mut all);
        }
        if session.calls > 0 {
            for one in &mut all {
                one.sessions += 1;
                one.calls += session.calls;
                one.days = one.days.max(session.days);
            }
        }
    }
    Ok(all)
}

/// Session that is read.
struct Session<'r> {
    rules: &'r [Vec<CallPattern>],
    past: &'r PastSessions,
    calls: usize,
    days: i64,
    /// `after` expressions that a successful call has matched.
    done: Vec<String>,
    /// Rules that spoke since the last message of the person, with their number.
    open: Vec<usize>,
}

impl<'r> Session<'r> {
    const fn new(rules: &'r [Vec<CallPattern>], past: &'r PastSessions) -> Self {
        Self {
            rules,
            past,
            calls: 0,
            days: 0,
            done: Vec::new(),
            open: Vec::new(),
        }
    }

    fn step(&mut self, step: &memctl_sessions::Step, all: &mut [Replay]) {
        let root = self.past.project.trim_end_matches('/');
        if !step.cwd.as_deref().is_some_and(|cwd| is_below(cwd, root)) {
            return;
        }
        let age = step.time.as_deref().and_then(microseconds);
        let age = age.map(|at| (self.past.now.timestamp_micros() - at) / 86_400_000_000);
        if age.is_some_and(|days| days > DAYS) {
            return;
        }
        self.calls += 1;
        self.days = self.days.max(age.unwrap_or(0) + 1);
        let call = Call::of(step, &[root]);
        for (rule, (patterns, one)) in self.rules.iter().zip(&mut *all).enumerate() {
            let is_done = |after: &str| self.done.iter().any(|done| done == after);
            if breaks(&call, patterns, &is_done) {
                one.spoken += 1;
                self.open.push(rule);
                if one.examples.len() < EXAMPLES {
                    one.examples.push(shown(&step.call_text()));
                }
            }
        }
        let failed = step.is_error == Some(true) || step.exit_code.is_some_and(|code| code != 0);
        if !failed {
            for patterns in self.rules {
                self.done.extend(fulfilled_by(&call, patterns));
            }
        }
    }

    fn message(&mut self, text: &str, all: &mut [Replay]) {
        let open = std::mem::take(&mut self.open);
        if !open.is_empty() && may_be_lasting(text) {
            for rule in open {
                all[rule].corrected += 1;
            }
        }
    }
}

/// A call on one line, redacted and cut.
fn shown(call: &str) -> String {
    let call = memctl_redact::strip_fenced(call).into_owned();
    let call = Clean::of_owned(without_people(&call)).cut(LONGEST);
    call.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pattern(matches: &str, after: &str) -> Vec<CallPattern> {
        vec![CallPattern {
            matches: matches.to_owned(),
            after: after.to_owned(),
            ..CallPattern::default()
        }]
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
