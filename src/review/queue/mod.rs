//! Queue of everything that waits for a decision of a person.
//!
//! - `records`: entries about one rule, procedure or memory. `pairs`: pairs of rules, compared by meaning.
//! - `waiting`: an entry, as data for any display.
//!
//! Texts are as stored, and callers sanitize and redact them. Nothing is written.
//!
//! Deliberately absent:
//! - decisions, which the other modules of `review` make;
//! - outputs of skills, which `accept` and `reject` judge;
//! - merge conflicts, which `doctor` lists and `memory resolve` settles;
//! - results of tests that no record holds: a run of `memctl test` stores only which rules it
//!   validated and which rules break a test.

mod pairs;
mod records;
mod waiting;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{CallPattern, Kind, Memory, Procedure, Record as _, Reflexion, SkillPath};
use crate::review::{PastSessions, replay};
use crate::rules::acting::Tables;
use crate::store::workspace::{Error, Workspace};
use crate::store::{Scoped, Selection};

pub use crate::review::queue::pairs::NEAREST;
pub use crate::review::queue::waiting::{Backing, Part, Provenance, Waiting, WaitingKind};

/// Everything that waits, in order.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Queue {
    /// Entries, by kind and surest first.
    pub waiting: Vec<Waiting>,
    /// Number of entries of each kind.
    pub counts: BTreeMap<&'static str, usize>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

impl Queue {
    /// Reads what waits, of one skill if given, and tries the rules among it on past sessions. Records
    /// without a skill wait only in the whole queue. `progress` gets the number of rules compared with
    /// each other and the total.
    pub fn read(
        workspace: &Workspace,
        skill: Option<&SkillPath>,
        past: &PastSessions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, Error> {
        let (mut queue, rules) = Self::of_records(&workspace.store, skill)?;
        // Rules that cannot be read forbid nothing here; at the call they are read again.
        if let Ok(tables) = Tables::open(&workspace.store) {
            queue.name_forbidden(&tables);
        }
        let mut found = pairs::pairs(&rules, progress);
        for waiting in queue.candidates() {
            waiting.near = found.near.remove(&waiting.id);
        }
        queue.waiting.append(&mut found.waiting);
        queue.warnings.append(&mut found.warnings);
        queue.replay(past)?;
        queue.waiting.sort_by(Waiting::place);
        for waiting in &queue.waiting {
            *queue.counts.entry(waiting.kind.name()).or_default() += 1;
        }
        Ok(queue)
    }

    /// Reads what single records tell. Returns the rules in use and the candidates, too.
    fn of_records(
        store: &Scoped,
        skill: Option<&SkillPath>,
    ) -> Result<(Self, Vec<Reflexion>), Error> {
        let trust_snapshot = store.trust_snapshot();
        let (mut queue, mut rules) = (Self::default(), Vec::new());
        for kind in [Kind::Procedure, Kind::Reflexion, Kind::Memory] {
            if skill.is_some() && kind == Kind::Memory {
                continue;
            }
            let waiting = &mut queue.waiting;
            let problems =
                store.each_entry(kind, &Selection::of(skill), &mut |entry| match kind {
                    Kind::Procedure => {
                        let procedure = entry.parse::<Procedure>().ok();
                        let of = |one: &Procedure| records::of_procedure(one, &trust_snapshot);
                        waiting.extend(procedure.as_ref().and_then(of));
                    }
                    Kind::Memory => {
                        let memory = entry.parse::<Memory>().ok();
                        let of = |one: &Memory| records::of_memory(one, &trust_snapshot);
                        waiting.extend(memory.as_ref().and_then(of));
                    }
                    _ => {
                        if let Ok(rule) = entry.parse::<Reflexion>() {
                            waiting.extend(records::of_rule(&rule, &trust_snapshot));
                            rules.push(rule);
                        }
                    }
                })?;
            queue
                .warnings
                .extend(problems.iter().map(ToString::to_string));
        }
        rules.retain(|rule| rule.is_in_use() || rule.is_candidate());
        Ok((queue, rules))
    }

    /// Names the rule in force that forbids what a procedure advises: it is never told.
    fn name_forbidden(&mut self, tables: &Tables) {
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

    /// Tries the rules that wait on past sessions.
    fn replay(&mut self, past: &PastSessions) -> Result<(), Error> {
        let mut waiting: Vec<&mut Waiting> = self
            .candidates()
            .filter(|one| !one.patterns.is_empty())
            .collect();
        let patterns: Vec<Vec<CallPattern>> =
            waiting.iter().map(|one| one.patterns.clone()).collect();
        for (one, found) in waiting.iter_mut().zip(replay(&patterns, past)?) {
            one.part("past calls", &found.words());
            one.replay = Some(found);
        }
        Ok(())
    }

    fn candidates(&mut self) -> impl Iterator<Item = &mut Waiting> {
        let all = self.waiting.iter_mut();
        all.filter(|waiting| waiting.kind == WaitingKind::Candidate)
    }
}

#[cfg(test)]
mod tests;
