//! Repeats: what past sessions of a project met again and again, and what would end it.
//!
//! - `demands`: what a person demanded in more than one session. `calls`: failures and detours of one session.
//!
//! A page has at most [`MOST`] of them. Each was met in two sessions at least, so what happens once is not on
//! it, and neither is what a rule or a lesson in force ends. Nothing is worded here: a repeat names the call,
//! the error, the call that worked, or the person's own words. Nothing is written.
//!
//! Deliberately absent: failures that an edit repaired. They are the work itself.

mod calls;
mod demands;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

use crate::lessons::failure::Failure;
use crate::lessons::past::session_files::{self, microseconds};
use crate::lessons::telling::hint::Hint;
use crate::lessons::telling::matching::{at_failure, before_call};
use crate::model::Trust;
use crate::review::replay::{DAYS, PastSessions};
use crate::store::workspace::Error;
use crate::store::{Here, Scoped};

/// Maximum number of repeats on a page.
const MOST: usize = 5;
/// Minimum number of sessions.
const SESSIONS: usize = 2;
/// Bytes of a session per token.
const BYTES_PER_TOKEN: u64 = 4;

/// Kind of a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepeatKind {
    /// Said by the person more than once.
    Correction,
    /// Call that fails in the same way.
    Failure,
    /// Call that agents find out again, by several others.
    Detour,
}

/// Something that past sessions repeat.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Repeat {
    /// Kind.
    pub kind: RepeatKind,
    /// Number of times.
    pub times: usize,
    /// Number of sessions.
    pub sessions: usize,
    /// Number of calls that it cost; 0 for a correction.
    pub calls: usize,
    /// Tokens of these calls and their outputs, estimated from their length.
    pub tokens: u64,
    /// Newest failing call, the call that was found out, or the person's words; redacted.
    pub what: String,
    /// Deciding line of the error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Call after which it worked, in the newest session that has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub worked: String,
    /// Rule or lesson that would end it, and that nobody has approved yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// Newest session file with it.
    #[serde(skip)]
    pub path: PathBuf,
}

/// Record that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Waits {
    /// Id of the record.
    pub id: String,
    /// Words of the record; those of the calls if nobody has worded it.
    pub text: String,
}

/// Repetitions in the past sessions of a project, most sessions first.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Repeats {
    /// Number of sessions with calls in this project.
    pub sessions: usize,
    /// Number of calls in them.
    pub calls: usize,
    /// Number of calls that failed.
    pub failures: usize,
    /// Number of days that the sessions are from.
    pub days: i64,
    /// `true` if the time was over before all sessions were read.
    pub is_cut: bool,
    /// The repeats, at most five.
    pub repeats: Vec<Repeat>,
}

/// One time that something was met.
#[derive(Debug, Default)]
struct Met {
    /// Equal for what is the same.
    key: String,
    calls: usize,
    bytes: u64,
    what: String,
    error: String,
    worked: String,
}

/// Everything that has one key.
#[derive(Debug, Default)]
struct Group {
    kind: Option<RepeatKind>,
    newest: Met,
    path: PathBuf,
    times: usize,
    sessions: HashSet<usize>,
    calls: usize,
    bytes: u64,
}

impl Group {
    /// Adds a time. Sessions come newest first.
    fn add(&mut self, kind: RepeatKind, met: Met, (session, path): (usize, &PathBuf)) {
        self.times += 1;
        self.sessions.insert(session);
        self.calls += met.calls;
        self.bytes += met.bytes;
        if self.kind.replace(kind).is_none() {
            self.newest = met;
            self.path.clone_from(path);
        } else if self.newest.worked.is_empty() {
            self.newest.worked = met.worked;
        }
    }

    fn repeat(self) -> Option<Repeat> {
        Some(Repeat {
            kind: self.kind?,
            times: self.times,
            sessions: self.sessions.len(),
            calls: self.calls,
            tokens: self.bytes / BYTES_PER_TOKEN,
            what: self.newest.what,
            error: self.newest.error,
            worked: self.newest.worked,
            waits: None,
            path: self.path,
        })
    }
}

/// Finds what past sessions repeat, newest sessions first, within a bound of time.
pub fn repeats(store: &Scoped, here: &Here<'_>, past: &PastSessions) -> Result<Repeats, Error> {
    let start = Instant::now();
    let mut report = Repeats::default();
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut demanded = Vec::new();
    let mut seen = HashSet::new();
    let mut files = session_files::files(&past.paths)?;
    files.sort_by_key(|file| std::cmp::Reverse(file.mtime));
    let project = Some(past.project.trim_end_matches('/')).filter(|project| !project.is_empty());
    for file in files {
        if start.elapsed() > past.limit {
            report.is_cut = true;
            break;
        }
        let Some(session) = session_files::read_of(&file.path, None, project) else {
            continue;
        };
        let age = age(&session, past);
        if session.steps.is_empty() || age > DAYS {
            continue;
        }
        let found = calls::found(&session, project, &mut seen);
        let at = (report.sessions, &file.path);
        demanded.extend(demands::said(&session, &found.copies, report.sessions));
        report.sessions += 1;
        report.calls += found.calls;
        report.failures += found.failed;
        report.days = report.days.max(age + 1).max(1);
        let failures = found.failures.into_iter();
        let failures = failures.map(|met| (RepeatKind::Failure, met));
        let detours = found.detours.into_iter();
        for (kind, met) in failures.chain(detours.map(|met| (RepeatKind::Detour, met))) {
            let group = groups.entry(format!("{kind:?}\n{}", met.key));
            group.or_default().add(kind, met, at);
        }
    }
    let mut all: Vec<Repeat> = groups.into_values().filter_map(Group::repeat).collect();
    all.retain(|one| one.sessions >= SESSIONS);
    let corrections = demands::repeated(store, here, demanded)?;
    all.extend(corrections);
    all.sort_by_key(|one| {
        let often = (one.sessions, one.times, one.calls);
        (std::cmp::Reverse(often), one.kind)
    });
    for mut repeat in all {
        if report.repeats.len() == MOST {
            break;
        }
        if repeat.kind != RepeatKind::Correction {
            match known(store, here, &repeat) {
                Some(hint) if hint.trust > Trust::Observed => continue,
                hint => repeat.waits = hint.map(|hint| waits(&hint)),
            }
        }
        report.repeats.push(repeat);
    }
    Ok(report)
}

/// Age of a session in days, by its last call with a time.
fn age(session: &memctl_sessions::Session, past: &PastSessions) -> i64 {
    let mut times = session.steps.iter().rev();
    let last = times.find_map(|step| microseconds(step.time.as_deref()?));
    last.map_or(0, |at| (past.now.timestamp_micros() - at) / 86_400_000_000)
}

/// Returns the hint that an agent would get there.
fn known(store: &Scoped, here: &Here<'_>, repeat: &Repeat) -> Option<Hint> {
    let hints = if repeat.kind == RepeatKind::Failure {
        let failure = Failure::of_redacted(&repeat.error, None, Some(&repeat.what))?;
        at_failure(store, &failure, here, &[], 1)
    } else {
        before_call(store, &repeat.what, here, &[])
    };
    hints.ok()?.into_iter().next()
}

fn waits(hint: &Hint) -> Waits {
    let text = if hint.lesson.is_empty() {
        &hint.working_code
    } else {
        &hint.lesson
    };
    Waits {
        id: hint.id.clone(),
        text: text.clone(),
    }
}

#[cfg(test)]
mod tests;
