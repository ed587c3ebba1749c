//! Repeats: demands and failures that recur in past sessions of a project, with a way to end each.
//!
//! A page has at most [`MOST`] of them, each from two sessions or more. A repeat that a rule or a lesson in
//! force ends is not listed, and comes back when that is no longer in force. Nothing is worded here: a repeat names the
//! call, the error, the call that worked, or the person's own words. Nothing is written.
//!
//! A failure repeats if a call stops with the same deciding line, numbers aside. If another form of the call
//! soon worked, the same program with the same error is enough, names aside.
//!
//! Not counted: a failure that an edit follows, which is work on the project; a failed search or a failed file
//! tool, which is an answer; and a script for one call, which belongs to one session.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use memctl_redact::Clean;
use memctl_search::embedder::built_in;
use memctl_sessions::{Session, Speaker, Step};
use serde::Serialize;

use crate::lessons::failure::error_line::error_line;
use crate::lessons::failure::{Failure, normalised};
use crate::lessons::past::session_files::is_in;
use crate::lessons::recovery::episodes::{Episode, analyse};
use crate::lessons::recovery::goal::{self, Goal};
use crate::lessons::recovery::pattern::of_files;
use crate::lessons::telling::matching::{at_failure, before_call};
use crate::model::{Reflexion, Trust};
use crate::review::{PastSessions, replay};
use crate::rules::hearing::{self, Message};
use crate::store::workspace::Error;
use crate::store::{Here, Scoped, Selection};

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
    /// Newest failing call, or the person's words; redacted.
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

impl Repeat {
    /// Something that was met once. The tokens are estimated from the length of these calls.
    fn once(kind: RepeatKind, what: String, steps: &[Step]) -> Self {
        let lengths = steps
            .iter()
            .map(|step| step.call_text().len() + step.output.len());
        Self {
            kind,
            times: 1,
            sessions: 1,
            calls: steps.len(),
            tokens: lengths.sum::<usize>() as u64 / BYTES_PER_TOKEN,
            what,
            error: String::new(),
            worked: String::new(),
            waits: None,
            path: PathBuf::new(),
        }
    }
}

/// Finds what past sessions repeat, newest sessions first, within a bound of time.
pub fn repeats(store: &Scoped, here: &Here<'_>, past: &PastSessions) -> Result<Repeats, Error> {
    let mut report = Repeats::default();
    let mut groups: BTreeMap<String, (Repeat, HashSet<usize>)> = BTreeMap::new();
    let mut demanded = Vec::new();
    let mut seen = HashSet::new();
    report.is_cut = past.each(&mut |path, session| {
        let found = found(&session, past.project(), &mut seen);
        let number = report.sessions;
        demanded.extend(lasting(&session, &found.copies, number));
        report.sessions += 1;
        report.calls += found.calls;
        report.failures += found.failed;
        let age = past.age(session.steps.iter().rev());
        report.days = report.days.max(age + 1).max(1);
        for (key, once) in found.met {
            let key = format!("{:?}\n{key}", once.kind);
            let Some((repeat, sessions)) = groups.get_mut(&key) else {
                let path = path.to_owned();
                let once = Repeat { path, ..once };
                groups.insert(key, (once, [number].into()));
                continue;
            };
            sessions.insert(number);
            repeat.times += 1;
            repeat.sessions = sessions.len();
            repeat.calls += once.calls;
            repeat.tokens += once.tokens;
            if repeat.worked.is_empty() {
                repeat.worked = once.worked;
            }
        }
    })?;
    let mut all: Vec<Repeat> = groups.into_values().map(|(repeat, _)| repeat).collect();
    all.retain(|one| one.sessions >= SESSIONS);
    all.extend(repeated(store, here, demanded)?);
    all.sort_by_key(|one| {
        let often = (one.sessions, one.times, one.calls);
        (std::cmp::Reverse(often), one.kind)
    });
    for mut repeat in all {
        if report.repeats.len() == MOST {
            break;
        }
        if repeat.kind != RepeatKind::Correction {
            // What an agent would be told there.
            let failure = Failure::of_redacted(&repeat.error, None, &repeat.what);
            let hints = failure.map(|failure| at_failure(store, &failure, here, &[], 1));
            let mut hints = hints.transpose()?.unwrap_or_default();
            hints.extend(before_call(store, &repeat.what, here)?);
            if hints.iter().any(|hint| hint.trust > Trust::Observed) {
                continue;
            }
            repeat.waits = hints.into_iter().next().map(|hint| Waits {
                id: hint.id,
                text: match hint.lesson.as_str() {
                    "" => hint.working_code,
                    _ => hint.lesson,
                },
            });
        }
        report.repeats.push(repeat);
    }
    Ok(report)
}

/// Maximum number of messages that are compared, the newest ones.
const COMPARED: usize = 80;
/// Minimum cosine of two messages about the same, and of a rule that says what a message says.
const SAME: f32 = 0.65;
/// Minimum cosine where there are only two of them. In real sessions, pairs below it were tasks about one thing,
/// and no demands.
const SAME_TWICE: f32 = 0.8;
/// Maximum length of what is shown, in characters: that of a rule.
const LONGEST: usize = 240;

/// Message that may be lasting.
#[derive(Debug)]
struct LastingMessage {
    session: usize,
    text: String,
}

/// Lasting messages of a session, but for those that another session file has too.
fn lasting(session: &Session, copies: &HashSet<usize>, number: usize) -> Vec<LastingMessage> {
    let by_person = session.remarks.iter().rev().filter(|remark| {
        let is_copy =
            copies.contains(&remark.before) && copies.contains(&remark.before.saturating_sub(1));
        remark.by == Speaker::User && !is_copy
    });
    let lasting = by_person.filter_map(|remark| {
        let text = hearing::demands(&Message::read(&remark.text, "", "")?.text)?;
        if text.chars().count() > LONGEST {
            return None;
        }
        Some(LastingMessage {
            session: number,
            text: Clean::of_owned(text).into_string(),
        })
    });
    lasting.collect()
}

/// Groups messages about the same, without those that a rule in force says. They come newest first.
fn repeated(
    store: &Scoped,
    here: &Here<'_>,
    mut lasting: Vec<LastingMessage>,
) -> Result<Vec<Repeat>, Error> {
    lasting.truncate(COMPARED);
    let sessions: HashSet<usize> = lasting.iter().map(|one| one.session).collect();
    if sessions.len() < SESSIONS {
        return Ok(Vec::new());
    }
    let mut rules = store.list::<Reflexion>(&Selection::default())?.records;
    rules.retain(|rule| {
        let is_open = rule.is_in_use() || rule.is_candidate();
        rule.skill.is_empty() && is_open && here.covers(rule)
    });
    let texts = lasting.iter().map(|one| one.text.as_str());
    let texts: Vec<&str> = texts.chain(rules.iter().map(|rule| &*rule.rule)).collect();
    let vectors = built_in(true)?.embed(&texts)?;
    let (own, of_rules) = vectors.split_at(lasting.len());
    let cosine = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(x, y)| x * y).sum() };
    let mut taken = vec![false; lasting.len()];
    let mut all = Vec::new();
    for at in 0..lasting.len() {
        let alike: Vec<usize> = (at..lasting.len())
            .filter(|other| !taken[*other] && cosine(&own[at], &own[*other]) >= SAME)
            .collect();
        let sessions: HashSet<usize> = alike.iter().map(|at| lasting[*at].session).collect();
        let is_close = |other: &usize| *other == at || cosine(&own[at], &own[*other]) >= SAME_TWICE;
        let is_enough = sessions.len() > SESSIONS || alike.iter().all(is_close);
        if taken[at] || sessions.len() < SESSIONS || !is_enough {
            continue;
        }
        for other in &alike {
            taken[*other] = true;
        }
        let mut hint_for = rules.iter().zip(of_rules);
        let rule = hint_for.find(|(_, vector)| cosine(&own[at], vector) >= SAME);
        let waits = match rule {
            Some((rule, _)) if rule.is_in_use() => continue,
            rule => rule.map(|(rule, _)| Waits {
                id: rule.reflexion_id.clone(),
                text: rule.rule.clone(),
            }),
        };
        all.push(Repeat {
            times: alike.len(),
            sessions: sessions.len(),
            waits,
            ..Repeat::once(RepeatKind::Correction, lasting[at].text.clone(), &[])
        });
    }
    Ok(all)
}

/// Maximum number of steps of a session that are looked at, the last ones.
const STEPS: usize = 2_000;
/// Number of calls after a failure in which an edit makes it work on the project, and that it can cost.
const SOON: usize = 8;
/// Maximum length of a text, in bytes.
const LONGEST_SHOWN: usize = 400;

/// Failures of one session, with its counts.
#[derive(Debug, Default)]
struct Found {
    calls: usize,
    failed: usize,
    /// Failures, each with a text that is equal for equal ones.
    met: Vec<(String, Repeat)>,
    /// Calls that another session file has too: positions in the session.
    copies: HashSet<usize>,
}

/// Finds failures of a session. `seen` holds the ids of calls of other sessions: a session that
/// was resumed repeats those of the one before.
fn found(session: &Session, project: Option<&str>, seen: &mut HashSet<String>) -> Found {
    let steps = &session.steps[session.steps.len().saturating_sub(STEPS)..];
    let mut found = Found::default();
    let mut counts = vec![false; steps.len()];
    for (step, counts) in steps.iter().zip(&mut counts) {
        let id = step.native_id.clone();
        let is_new = id.is_none_or(|id| seen.insert(id));
        *counts = is_new && is_in(step, project);
        if !is_new {
            found.copies.insert(step.index);
        }
    }
    let goals: Vec<Goal> = steps.iter().map(Goal::of).collect();
    let analysis = analyse(steps, &session.remarks);
    found.calls = counts.iter().filter(|counts| **counts).count();
    let mut tried_again: HashSet<usize> = HashSet::new();
    for index in &analysis.failures {
        let Some(at) = steps.iter().position(|step| step.index == *index) else {
            continue;
        };
        if !counts[at] {
            continue;
        }
        found.failed += 1;
        let episode = analysis.episodes.iter().find(|one| one.fail_step == *index);
        tried_again.extend(episode.iter().flat_map(|one| &one.also_fail_steps));
        if !tried_again.contains(index) {
            found.met.extend(failure(steps, &goals, at, episode));
        }
    }
    found
}

/// A failure of the call at a position; `None` if it is nothing that another session would meet.
fn failure(
    steps: &[Step],
    goals: &[Goal],
    at: usize,
    episode: Option<&Episode>,
) -> Option<(String, Repeat)> {
    let (step, goal) = (&steps[at], &goals[at]);
    let is_edit = |goal: &Goal| matches!(goal.kind, goal::GoalKind::Edit(..));
    let is_of_files =
        of_files(&step.tool) || matches!(goal.kind, goal::GoalKind::Read(_)) || is_edit(goal);
    if is_of_files || goal.is_search() || !step.has_input() || is_script(step) {
        return None;
    }
    let line = error_line(&step.output)?;
    let place = |index: usize| steps.iter().position(|step| step.index == index);
    let worked = episode.and_then(|episode| place(episode.success_step));
    let end = worked.unwrap_or(at + SOON).min(steps.len() - 1);
    if goals[at..=end.min(at + SOON)].iter().any(is_edit) || goals[at..=end].iter().any(is_edit) {
        return None;
    }
    let line = shown(&line);
    let call = shown(&step.call_text());
    let then = worked
        .map(|at| shown(&steps[at].call_text()))
        .filter(|then| *then != call);
    let is_near = worked.is_some_and(|worked| worked - at <= SOON);
    let key = match &then {
        Some(_) if is_near => format!("{}\n{}", goal.name(), normalised(&line)),
        _ => without_numbers(&line),
    };
    let cost = if is_near { at..end } else { at..at + 1 };
    let once = Repeat {
        error: line,
        worked: then.unwrap_or_default(),
        ..Repeat::once(RepeatKind::Failure, call, &steps[cost])
    };
    Some((key, once))
}

/// Returns `true` for a script that was written for this call.
fn is_script(step: &Step) -> bool {
    let command = step.command().unwrap_or_default();
    let given = [" -c ", " -e ", " -p ", "<<"];
    command.trim().contains('\n') || given.iter().any(|mark| command.contains(mark))
}

fn shown(text: &str) -> String {
    replay::shown(text, LONGEST_SHOWN)
}

fn without_numbers(line: &str) -> String {
    let mut plain = String::new();
    for c in line.chars() {
        if !c.is_ascii_digit() {
            plain.push(c);
        } else if !plain.ends_with('#') {
            plain.push('#');
        }
    }
    plain
}

#[cfg(test)]
mod tests;
