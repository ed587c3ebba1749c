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
//!
//! Differences that wait in files: guardrails that left their rule, and fields that a merge left open.
//!
//! Pairs of rules that wait: contradictions, and rules that may say the same.
//!
//! Rules are compared within a skill, with the vectors of the built-in embedder. Without a model
//! nothing tells a duplicate from a related rule, so of the others only those are listed that are
//! nearest to each other. A pair that a person or a model has judged is not listed again.

mod rules;
mod waiting;

use std::collections::{BTreeMap, HashSet};

use memctl_search::embedder::Vector;
use serde::Serialize;

use crate::model::{
    CallPattern, Kind, Memory, Procedure, Record, Reflexion, RuleRelation, SkillPath, utc,
};
use crate::review::queue::rules::about;
use crate::review::{PastSessions, replay};
use crate::rules::acting::Tables;
use crate::rules::place::conflicts::{
    ALIKE, cosine as cosine_of, judged_relation, relations, vectors,
};
use crate::store::skill::guardrails::rule_in;
use crate::store::workspace::error::chain;
use crate::store::workspace::records::document;
use crate::store::workspace::{Error, Workspace};
use crate::store::{Entry, Scoped, Selection, TrustSnapshot, raw_field};
use crate::upkeep::merge::{CONFLICT, open_fields};

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
            let waiting = merge_conflict(entry, &title());
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
        let (differing, warnings) = guardrails(workspace, rules);
        rest.waiting.extend(differing);
        rest.warnings.extend(warnings);
        let selection = Selection::of(skill);
        for kind in OTHERS {
            let problems = workspace.store.each_entry(kind, &selection, &mut |entry| {
                if memchr::memmem::find(&entry.text, CONFLICT.as_bytes()).is_some() {
                    rest.waiting.extend(merge_conflict(&entry, &title(&entry)));
                }
            })?;
            let problems = problems.iter().map(ToString::to_string);
            rest.warnings.extend(problems);
        }
        let found = pairs(rules, progress);
        rest.waiting.extend(found.waiting);
        rest.warnings.extend(found.warnings);
        rest.near = found.near;
        Ok(rest)
    }
}

impl Rest {
    /// Leaves out entries that name one of these records.
    pub fn leave_out(&mut self, ids: &HashSet<String>) {
        self.waiting
            .retain(|waiting| !ids.iter().any(|id| waiting.names(id)));
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

/// Returns the guardrail sections whose rule line differs from the rule in use, and problems.
fn guardrails(workspace: &Workspace, rules: &[Reflexion]) -> (Vec<Waiting>, Vec<String>) {
    let (mut found, mut warnings) = (Vec::new(), Vec::new());
    let mut by_skill: BTreeMap<&str, Vec<&Reflexion>> = BTreeMap::new();
    let with_section = rules
        .iter()
        .filter(|rule| rule.is_in_use() && !rule.correction_id.is_empty());
    for rule in with_section {
        by_skill.entry(&rule.skill).or_default().push(rule);
    }
    let Ok(skills) = workspace.skills() else {
        return (found, warnings);
    };
    for (skill, rules) in by_skill {
        let Ok(skill) = skill.parse::<SkillPath>() else {
            continue;
        };
        let files = skills.guardrail_files(&skill).unwrap_or_default();
        for path in files {
            let text = match skills.generated(&path) {
                Ok(text) => text.unwrap_or_default(),
                Err(error) => {
                    warnings.push(chain(&error));
                    continue;
                }
            };
            let shown = skills.shown(&path);
            let differing = rules.iter().filter_map(|rule| {
                let line = rule_in(&text, &rule.correction_id)?;
                let is_same = line.split_whitespace().eq(rule.rule.split_whitespace());
                (!is_same).then(|| differs(rule, line, &shown))
            });
            found.extend(differing);
        }
    }
    (found, warnings)
}

fn differs(rule: &Reflexion, line: &str, file: &str) -> Waiting {
    let command = format!("memctl edit {}", rule.reflexion_id);
    let mut waiting = about(rule, WaitingKind::Guardrail, command);
    waiting.reason = format!("`{file}` says something else: prompts hold both");
    waiting.part("in the file", line);
    waiting.weight = [0.0; 3];
    waiting
}

/// Returns the entry about the fields of a record that a merge left open.
fn merge_conflict(entry: &Entry, title: &str) -> Option<Waiting> {
    let text = String::from_utf8_lossy(&entry.text);
    let open = open_fields(&text);
    if open.is_empty() {
        return None;
    }
    let command = format!("memctl memory resolve {} --ours", entry.id);
    let mut waiting = Waiting::about(WaitingKind::Merge, entry.kind, &entry.id, command);
    title.clone_into(&mut waiting.title);
    let names: Vec<&str> = open
        .keys()
        .map(|name| name.trim_start_matches('/'))
        .collect();
    waiting.reason = format!("two branches differ in: {}", names.join(", "));
    for (name, theirs) in &open {
        let name = name.trim_start_matches('/');
        let ours = raw_field(&text, name).unwrap_or_default();
        waiting.part("here", &format!("{name}: {ours}"));
        waiting.part("merged branch", &format!("{name}: {theirs}"));
    }
    Some(waiting)
}

/// Kinds whose entries can have open fields and nothing else that waits.
const OTHERS: [Kind; 3] = [Kind::Execution, Kind::Correction, Kind::Session];

/// Pairs of rules, and the nearest rule of each candidate.
#[derive(Debug, Default)]
struct Pairs {
    waiting: Vec<Waiting>,
    /// Ids of candidates with their nearest rule.
    near: Vec<(String, NearRule)>,
    warnings: Vec<String>,
}

/// Compares rules in use with each other and with candidates. `progress` gets the number embedded
/// and the total.
fn pairs(rules: &[Reflexion], progress: &mut dyn FnMut(usize, usize)) -> Pairs {
    let mut by_skill: BTreeMap<&str, Vec<&Reflexion>> = BTreeMap::new();
    for rule in rules {
        by_skill.entry(&rule.skill).or_default().push(rule);
    }
    by_skill.retain(|_, rules| rules.len() > 1 && rules.iter().any(|rule| rule.is_in_use()));
    let all = by_skill.values().map(Vec::len).sum();
    let mut done = 0;
    let mut found = Pairs::default();
    for rules in by_skill.values() {
        let texts: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
        let vectors = vectors(&texts, &mut |made| progress(done + made, all));
        done += texts.len();
        let vectors = vectors.unwrap_or_else(|error| {
            let warning = format!("near rules were not looked up: {error}");
            found.warnings.push(warning);
            Vec::new()
        });
        of_skill(rules, &vectors, &mut found);
    }
    found
}

/// Adds the pairs of one skill.
fn of_skill(rules: &[&Reflexion], vectors: &[Vector], found: &mut Pairs) {
    let cosine =
        |a: usize, b: usize| -> Option<f64> { Some(cosine_of(vectors.get(a)?, vectors.get(b)?)) };
    let in_use: Vec<usize> = (0..rules.len())
        .filter(|at| rules[*at].is_in_use())
        .collect();
    let used: Vec<&Reflexion> = in_use.iter().map(|at| rules[*at]).collect();
    let known = relations(&used);
    for one in &known {
        let score = cosine(in_use[one.older], in_use[one.newer]).unwrap_or_default();
        let kind = match one.relation {
            RuleRelation::Contradicts => WaitingKind::Contradiction,
            _ => WaitingKind::Similar,
        };
        let waiting = pair(used[one.older], used[one.newer], kind, &one.reason, score);
        found.waiting.push(waiting);
    }
    let nearest = |at: usize| -> Option<(usize, f64)> {
        let others = in_use.iter().filter(|other| **other != at);
        let scores = others.filter_map(|other| Some((*other, cosine(at, *other)?)));
        scores.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let near: Vec<Option<(usize, f64)>> = (0..rules.len()).map(nearest).collect();
    for (at, near_one) in near.iter().enumerate() {
        let Some((other, score)) = near_one.filter(|(_, score)| *score >= ALIKE) else {
            continue;
        };
        let (rule, of) = (rules[at], rules[other]);
        if rule.is_candidate() {
            let near = NearRule {
                id: of.reflexion_id.clone(),
                rule: of.rule.clone(),
                score: rounded(score),
            };
            found.near.push((rule.reflexion_id.clone(), near));
            continue;
        }
        let is_mutual = at < other && near[other].is_some_and(|(back, _)| back == at);
        let is_listed = || {
            let mut known = known.iter();
            known.any(|pair| in_use[pair.older] == at && in_use[pair.newer] == other)
        };
        if rule.is_in_use() && is_mutual && judged_relation(rule, of).is_none() && !is_listed() {
            let reason = format!("nearest to each other, similarity {score:.2}");
            // Findings of the program or a model come first.
            let waiting = pair(rule, of, WaitingKind::Similar, &reason, score - 1.0);
            found.waiting.push(waiting);
        }
    }
}

/// Entry about two rules, the older one first.
fn pair(a: &Reflexion, b: &Reflexion, kind: WaitingKind, reason: &str, weight: f64) -> Waiting {
    let (one, two) = (&a.reflexion_id, &b.reflexion_id);
    let command = format!("memctl memory conflicts --merge {one} {two}");
    let mut waiting = about(b, kind, command);
    waiting.id.clone_from(one);
    waiting.record = Kind::Reflexion;
    waiting.other = Some(two.clone());
    reason.clone_into(&mut waiting.reason);
    waiting.parts.clear();
    waiting.part("older", &a.rule);
    waiting.part("newer", &b.rule);
    waiting.weight = [weight, 0.0, 0.0];
    waiting
}

fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests;
