//! Queue of everything that waits for a decision of a person.
//!
//! - `waiting`: an entry about one rule, procedure, memory or pair, as data for any display.
//!
//! Rules are compared within a skill, by their words and by what a person or a model has found. Whoever makes a rule
//! is shown those that are near to it in meaning.
//!
//! Texts are as stored; callers sanitize and redact them. Nothing is written.
//!
//! Deliberately absent:
//! - decisions, which the other modules of `review` make;
//! - outputs of skills, which `accept` and `reject` judge;
//! - merge conflicts, which `doctor` lists and `memory resolve` settles;
//! - test results outside of records: a run of `memctl test` stores only which rules it validated and which
//!   rules break a test.

mod waiting;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::model::{
    CallPattern, Kind, Memory, Procedure, Record as _, Reflexion, RuleRelation, SkillPath,
};
use crate::review::{PastSessions, replay};
use crate::rules::acting::Tables;
use crate::rules::place::changes::judged_relation;
use crate::rules::place::neighbours::same_words;
use crate::store::workspace::{Error, Workspace};
use crate::store::{Scoped, Selection};

use waiting::about;
pub use waiting::{Backing, Part, Provenance, Waiting, WaitingKind};

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
    /// without a skill wait only in the whole queue.
    pub fn read(
        workspace: &Workspace,
        skill: Option<&SkillPath>,
        past: &PastSessions,
    ) -> Result<Self, Error> {
        let (mut queue, rules) = Self::of_records(&workspace.store, skill)?;
        // Rules that cannot be read forbid nothing here; at the call they are read again.
        if let Ok(tables) = Tables::open(&workspace.store) {
            queue.name_forbidden(&tables);
        }
        queue.waiting.append(&mut pairs(&rules));
        queue.replay(past)?;
        queue.waiting.sort_by(Waiting::place);
        for waiting in &queue.waiting {
            *queue.counts.entry(waiting.kind.name()).or_default() += 1;
        }
        Ok(queue)
    }

    /// Names the rules that go once a candidate is approved.
    fn name_replaced(&mut self, rules: &[Reflexion]) {
        let of_id = |id: &str| rules.iter().find(|rule| rule.reflexion_id == id);
        for waiting in self.candidates() {
            let Some(rule) = of_id(&waiting.id) else {
                continue;
            };
            let name = if rule.withdraws {
                "takes back"
            } else {
                "replaces"
            };
            for old in rule.replaces.iter().filter_map(|id| of_id(id)) {
                let text = format!("{}: {}", old.reflexion_id, old.summary());
                if rule.withdraws {
                    waiting.title = format!("{name} {text}");
                }
                waiting.part(name, &text);
            }
        }
    }

    /// Reads what single records tell. Returns the rules in use and the candidates, too.
    fn of_records(
        store: &Scoped,
        skill: Option<&SkillPath>,
    ) -> Result<(Self, Vec<Reflexion>), Error> {
        let trust_snapshot = store.trust_snapshot();
        let own_words = store.approvals().own_words();
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
                        let of = |one: &Procedure| waiting::of_procedure(one, &trust_snapshot);
                        waiting.extend(procedure.as_ref().and_then(of));
                    }
                    Kind::Memory => {
                        let memory = entry.parse::<Memory>().ok();
                        let of = |one: &Memory| waiting::of_memory(one, &trust_snapshot);
                        waiting.extend(memory.as_ref().and_then(of));
                    }
                    _ => {
                        if let Ok(rule) = entry.parse::<Reflexion>() {
                            waiting.extend(waiting::of_rule(&rule, &trust_snapshot, &own_words));
                            rules.push(rule);
                        }
                    }
                })?;
            queue
                .warnings
                .extend(problems.iter().map(ToString::to_string));
        }
        queue.name_replaced(&rules);
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
        let rules = waiting.iter().map(|one| {
            let words = one.text("rule").unwrap_or_default();
            (words.to_owned(), one.patterns.clone())
        });
        let rules: Vec<(String, Vec<CallPattern>)> = rules.collect();
        for (one, found) in waiting.iter_mut().zip(replay(&rules, past)?) {
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

/// Entries about two rules in use of one skill.
fn pairs(rules: &[Reflexion]) -> Vec<Waiting> {
    let mut by_skill: BTreeMap<&str, Vec<&Reflexion>> = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.is_in_use()) {
        by_skill.entry(&rule.skill).or_default().push(rule);
    }
    let mut found = Vec::new();
    for rules in by_skill.values() {
        for (older, newer, relation, reason) in related(rules) {
            let kind = match relation {
                RuleRelation::Contradicts => WaitingKind::Contradiction,
                _ => WaitingKind::Similar,
            };
            found.push(pair(rules[older], rules[newer], kind, &reason));
        }
    }
    found
}

/// Pairs of rules that are the same or contradictory, the older one first: as a person or a model judged, or
/// word for word.
fn related(rules: &[&Reflexion]) -> Vec<(usize, usize, RuleRelation, String)> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let words: Vec<&str> = rule.rule.split_whitespace().collect();
        // Each is paired with the first of these words.
        let older = *first.entry(words.join(" ").to_lowercase()).or_insert(at);
        if older != at && judged_relation(rules[older], rule).is_none() {
            found.push((older, at, RuleRelation::Same, "the same words".to_owned()));
        }
        for related in &rule.relations {
            let is_other = |other: &&Reflexion| other.reflexion_id == related.id;
            let other = rules.iter().position(is_other).filter(|other| *other != at);
            let relation = related.relation;
            let is_found = matches!(relation, RuleRelation::Same | RuleRelation::Contradicts);
            if let Some(other) = other.filter(|_| is_found)
                && judged_relation(rules[other], rule) == Some(related)
            {
                let reason = format!("{} ({})", related.reason, related.by);
                found.push((other.min(at), other.max(at), relation, reason));
            }
        }
    }
    found
}

/// Entry about two rules, the older one first.
fn pair(a: &Reflexion, b: &Reflexion, kind: WaitingKind, reason: &str) -> Waiting {
    let (one, two) = (&a.reflexion_id, &b.reflexion_id);
    // Of two that may say different things the newer correction wins.
    let is_same = judged_relation(a, b).is_some_and(|judged| judged.relation == RuleRelation::Same);
    let (keep, other) = if is_same || same_words(&a.rule, &b.rule) {
        (one, two)
    } else {
        (two, one)
    };
    let command = format!("memctl memory conflicts --merge {keep} {other}");
    let mut waiting = about(b, kind, command, reason);
    waiting.id.clone_from(one);
    waiting.other = Some(two.clone());
    waiting.parts.clear();
    waiting.part("older", &a.rule);
    waiting.part("newer", &b.rule);
    waiting
}

#[cfg(test)]
mod tests;
