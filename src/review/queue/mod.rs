//! Queue of everything that waits for a decision of a person.
//!
//! [`Queue::read`] reads rules, procedures and memories, each file once. [`Rest::read`] adds
//! what takes longer: pairs of rules, which are compared by meaning, guardrail files, and open merge
//! conflicts of other records. A screen shows the first part at once.
//!
//! Pure data: texts are as stored, and callers sanitize and redact them. Nothing is written.
//!
//! Deliberately absent:
//! - decisions, which the other modules of `review` make;
//! - outputs of skills, which `accept` and `reject` judge;
//! - results of tests that no record holds: a run of `memctl test` stores only which rules it
//!   validated and which rules break a test.

mod files;
mod pairs;
mod rules;
mod waiting;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{CallPattern, Kind, Memory, Procedure, Record, Reflexion, SkillPath, utc};
use crate::review::{PastSessions, replay};
use crate::rules::acting::Tables;
use crate::store::workspace::records::document;
use crate::store::workspace::{Error, Workspace};
use crate::store::{Entry, Scoped, Selection, TrustSnapshot};
use crate::upkeep::merge::CONFLICT;

pub use crate::review::queue::waiting::{
    Backing, NearRule, Part, Provenance, Waiting, WaitingKind,
};

/// Everything that waits, in order.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Queue {
    /// Entries, by kind and surest first.
    pub waiting: Vec<Waiting>,
    /// Number of entries of each kind.
    pub counts: BTreeMap<&'static str, usize>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
    /// Rules in use and candidates, for [`Rest::read`].
    #[serde(skip)]
    pub rules: Vec<Reflexion>,
}

/// Entries that take longer to find.
#[derive(Debug, Default)]
pub struct Rest {
    waiting: Vec<Waiting>,
    near: Vec<(String, NearRule)>,
    warnings: Vec<String>,
}

impl Queue {
    /// Reads what single records tell, of one skill if given. Records without a skill wait only in
    /// the whole queue.
    pub fn read(workspace: &Workspace, skill: Option<&SkillPath>) -> Result<Self, Error> {
        Self::of_store(&workspace.store, skill)
    }

    fn of_store(store: &Scoped, skill: Option<&SkillPath>) -> Result<Self, Error> {
        let trust_snapshot = store.trust_snapshot();
        let selection = Selection::of(skill);
        let mut queue = Self::default();
        for kind in [Kind::Procedure, Kind::Reflexion, Kind::Memory] {
            if skill.is_some() && kind == Kind::Memory {
                continue;
            }
            let problems = store.each_entry(kind, &selection, &mut |entry| {
                if kind != Kind::Reflexion {
                    queue.waiting.extend(of_entry(&entry, &trust_snapshot));
                    queue.conflict(&entry, || title(&entry));
                } else if let Ok(rule) = entry.parse::<Reflexion>() {
                    queue.waiting.extend(rules::of_rule(&rule, &trust_snapshot));
                    queue.conflict(&entry, || rule.summary());
                    if rule.is_in_use() || rule.is_candidate() {
                        queue.rules.push(rule);
                    }
                }
            })?;
            queue
                .warnings
                .extend(problems.iter().map(ToString::to_string));
        }
        queue.name_forbidden(store);
        queue.sort();
        Ok(queue)
    }

    /// Tries the rules that wait on past sessions.
    pub fn replay(&mut self, past: &PastSessions) -> Result<(), Error> {
        let waits =
            |one: &&mut Waiting| !one.patterns.is_empty() && one.kind == WaitingKind::Candidate;
        let mut waiting: Vec<&mut Waiting> = self.waiting.iter_mut().filter(waits).collect();
        let patterns: Vec<Vec<CallPattern>> =
            waiting.iter().map(|one| one.patterns.clone()).collect();
        for (one, found) in waiting.iter_mut().zip(replay(&patterns, past)?) {
            one.part("past calls", &found.words());
            one.replay = Some(found);
        }
        Ok(())
    }

    /// Names the rule in force that forbids what a procedure advises: it is never told.
    fn name_forbidden(&mut self, store: &Scoped) {
        // Rules that cannot be read forbid nothing here; at the call they are read again.
        let Ok(tables) = Tables::open(store) else {
            return;
        };
        let procedures = self.waiting.iter_mut();
        for waiting in procedures.filter(|waiting| waiting.record == Kind::Procedure) {
            let part = |name: &str| waiting.text(name).unwrap_or_default();
            let working = [part("worked"), part("steps")].concat();
            if let Some(rule) = tables.against(&working, part("lesson")) {
                let id = &rule.reflexion_id;
                waiting.reason = format!("`{id}` forbids what it advises: {}", rule.summary());
            }
        }
    }

    /// Adds what takes longer to find.
    pub fn add(&mut self, rest: Rest) {
        self.waiting.extend(rest.waiting);
        self.warnings.extend(rest.warnings);
        let mut near: BTreeMap<String, NearRule> = rest.near.into_iter().collect();
        for waiting in &mut self.waiting {
            if waiting.kind == WaitingKind::Candidate {
                waiting.near = near.remove(&waiting.id);
            }
        }
        self.sort();
    }

    /// Writes times as documents have them: in UTC, with `Z`.
    pub fn in_utc(&mut self) {
        for waiting in &mut self.waiting {
            waiting.origin.at = utc(&waiting.origin.at);
        }
    }

    /// Looks for prompt injection in all entries.
    pub fn screen(&mut self) {
        self.waiting.iter_mut().for_each(Waiting::screen);
    }

    fn conflict(&mut self, entry: &Entry, title: impl FnOnce() -> String) {
        if memchr::memmem::find(&entry.text, CONFLICT.as_bytes()).is_some() {
            let waiting = files::merge_conflict(entry, &title());
            self.waiting.extend(waiting);
        }
    }

    fn sort(&mut self) {
        self.waiting.sort_by(Waiting::place);
        self.counts.clear();
        for waiting in &self.waiting {
            *self.counts.entry(waiting.kind.name()).or_default() += 1;
        }
    }
}

impl Rest {
    /// Reads what takes longer to find. `rules` are those of [`Queue::rules`]. `progress` gets the
    /// number of rules compared and the total.
    pub fn read(
        workspace: &Workspace,
        skill: Option<&SkillPath>,
        rules: &[Reflexion],
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, Error> {
        let mut rest = Self::default();
        let (differing, warnings) = files::guardrails(workspace, rules);
        rest.waiting.extend(differing);
        rest.warnings.extend(warnings);
        let selection = Selection::of(skill);
        for kind in files::OTHERS {
            let problems = workspace.store.each_entry(kind, &selection, &mut |entry| {
                if memchr::memmem::find(&entry.text, CONFLICT.as_bytes()).is_some() {
                    rest.waiting
                        .extend(files::merge_conflict(&entry, &title(&entry)));
                }
            })?;
            let problems = problems.iter().map(ToString::to_string);
            rest.warnings.extend(problems);
        }
        let found = pairs::pairs(rules, progress);
        rest.waiting.extend(found.waiting);
        rest.warnings.extend(found.warnings);
        rest.near = found.near;
        Ok(rest)
    }
}

/// Entries about one record, but for open merge conflicts.
fn of_entry(entry: &Entry, trust_snapshot: &TrustSnapshot) -> Vec<Waiting> {
    fn one<R: Record>(entry: &Entry, of: impl FnOnce(&R) -> Option<Waiting>) -> Vec<Waiting> {
        let record = entry.parse::<R>().ok();
        record.and_then(|record| of(&record)).into_iter().collect()
    }
    match entry.kind {
        Kind::Procedure => one(entry, |procedure: &Procedure| {
            rules::of_procedure(procedure, trust_snapshot)
        }),
        Kind::Memory => one(entry, |memory: &Memory| {
            rules::of_memory(memory, trust_snapshot)
        }),
        Kind::Reflexion => match entry.parse::<Reflexion>() {
            Ok(rule) => rules::of_rule(&rule, trust_snapshot),
            Err(_) => Vec::new(),
        },
        Kind::Execution | Kind::Correction | Kind::Session => Vec::new(),
    }
}

fn title(entry: &Entry) -> String {
    document(entry).map(|d| d.summary).unwrap_or_default()
}

#[cfg(test)]
mod tests;
