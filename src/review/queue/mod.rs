//! Queue of everything that waits for a decision of a person.
//!
//! - `waiting`: an entry about one rule, procedure, memory or pair, as data for any display.
//!
//! Rules are compared within a skill, with the vectors of the built-in embedder: the threshold was measured
//! with it, and it sends nothing to a server. The index keeps them. Vectors alone cannot tell a duplicate from a related rule, so
//! unjudged pairs are listed only if each is the other's nearest rule. A pair that a person or a model has
//! judged is not listed again.
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

use std::collections::{BTreeMap, HashMap, HashSet};

use memctl_search::embedder::{self, EMBEDDER, Vector, built_in};
use serde::Serialize;

use crate::model::{
    CallPattern, Kind, Memory, Procedure, Record as _, Reflexion, RuleRelation, SkillPath,
};
use crate::notes::indexing::Index;
use crate::review::{PastSessions, replay};
use crate::rules::SimilarRule;
use crate::rules::acting::Tables;
use crate::rules::place::decisions::judged_relation;
use crate::rules::place::neighbours::same_words;
use crate::rules::place::neighbours::{FLOOR, cosine as cosine_of};
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
        let skills = comparable(&rules);
        let kept = if skills.is_empty() {
            HashMap::new()
        } else {
            kept_vectors(workspace, &mut |made| progress(made, rules.len()))
        };
        let mut found = pairs(&skills, kept, progress);
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

/// Beginning of the reason of two rules that nobody has related.
pub const NEAREST: &str = "nearest to each other";
/// Number of rules to embed between two progress reports.
const BATCH: usize = 32;

/// Pairs of rules, and the nearest rule of each candidate.
#[derive(Debug, Default)]
struct Pairs {
    waiting: Vec<Waiting>,
    /// Ids of candidates with their nearest rule.
    near: BTreeMap<String, SimilarRule>,
    warnings: Vec<String>,
}

/// Returns the vectors of rules that the index keeps, by id; none if it is of another embedder or cannot be read.
fn kept_vectors(workspace: &Workspace, progress: &mut dyn FnMut(usize)) -> HashMap<String, Vector> {
    let mut of_index = || -> Result<HashMap<String, Vector>, Error> {
        let embedder = workspace.providers.open_embedder(false)?;
        let embedding = embedder.embedding();
        if embedding.is_none_or(|embedding| embedding.name != EMBEDDER) {
            return Ok(HashMap::new());
        }
        Index::vectors_of(&workspace.store, Kind::Reflexion, &embedder, progress)
    };
    of_index().unwrap_or_default()
}

/// Rules by skill: several, of which one is in use.
fn comparable(rules: &[Reflexion]) -> Vec<Vec<&Reflexion>> {
    let mut by_skill: BTreeMap<&str, Vec<&Reflexion>> = BTreeMap::new();
    for rule in rules {
        by_skill.entry(&rule.skill).or_default().push(rule);
    }
    by_skill.retain(|_, rules| rules.len() > 1 && rules.iter().any(|rule| rule.is_in_use()));
    by_skill.into_values().collect()
}

/// Compares rules in use with each other and with candidates, of one skill each. Those without a vector in `kept`
/// are embedded; `progress` gets their number and the total.
fn pairs(
    skills: &[Vec<&Reflexion>],
    mut kept: HashMap<String, Vector>,
    progress: &mut dyn FnMut(usize, usize),
) -> Pairs {
    let mut found = Pairs::default();
    let rules = skills.iter().flatten().copied();
    let missing = rules.filter(|rule| !kept.contains_key(&rule.reflexion_id));
    let missing: Vec<&Reflexion> = missing.collect();
    match vectors(&missing, progress) {
        Ok(vectors) => {
            let ids = missing.iter().map(|rule| rule.reflexion_id.clone());
            kept.extend(ids.zip(vectors));
        }
        Err(error) => {
            let warning = format!("near rules were not looked up: {error}");
            found.warnings.push(warning);
        }
    }
    for rules in skills {
        of_skill(rules, &kept, &mut found);
    }
    found
}

fn vectors(
    rules: &[&Reflexion],
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Vector>, embedder::Error> {
    let mut vectors = Vec::new();
    if rules.is_empty() {
        return Ok(vectors);
    }
    let model = built_in(true)?;
    let texts: Vec<String> = rules.iter().map(|rule| rule.content()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for batch in texts.chunks(BATCH) {
        vectors.extend(model.embed(batch)?);
        progress(vectors.len(), rules.len());
    }
    Ok(vectors)
}

/// Adds the pairs of one skill.
fn of_skill(rules: &[&Reflexion], vectors: &HashMap<String, Vector>, found: &mut Pairs) {
    let vector = |at: usize| vectors.get(&rules[at].reflexion_id);
    let cosine = |a: usize, b: usize| Some(cosine_of(vector(a)?, vector(b)?));
    let in_use: Vec<usize> = (0..rules.len())
        .filter(|at| rules[*at].is_in_use())
        .collect();
    let pairs = related(rules, &in_use);
    for (older, newer, relation, reason) in &pairs {
        let score = cosine(*older, *newer).unwrap_or_default();
        let kind = match relation {
            RuleRelation::Contradicts => WaitingKind::Contradiction,
            _ => WaitingKind::Similar,
        };
        found
            .waiting
            .push(pair(rules[*older], rules[*newer], kind, reason, score));
    }
    // A rule that says the same as an older one is listed with that one only.
    let repeats = pairs.iter().filter(|pair| pair.2 == RuleRelation::Same);
    let repeats: HashSet<usize> = repeats.map(|pair| pair.1).collect();
    let nearest = |at: usize| -> Option<(usize, f64)> {
        let others = in_use
            .iter()
            .filter(|other| **other != at && !repeats.contains(other));
        let scores = others.filter_map(|other| Some((*other, cosine(at, *other)?)));
        let best = scores.max_by(|a, b| a.1.total_cmp(&b.1));
        best.filter(|(_, score)| *score >= FLOOR)
    };
    let near: Vec<Option<(usize, f64)>> = (0..rules.len()).map(nearest).collect();
    for (at, near_one) in near.iter().enumerate() {
        let Some((other, score)) = *near_one else {
            continue;
        };
        let (rule, of) = (rules[at], rules[other]);
        if rule.is_candidate() {
            let near = SimilarRule::from((score, of.clone()));
            found.near.insert(rule.reflexion_id.clone(), near);
            continue;
        }
        let is_mutual = at < other && near[other].is_some_and(|(back, _)| back == at);
        let is_listed = || pairs.iter().any(|pair| (pair.0, pair.1) == (at, other));
        if rule.is_in_use()
            && is_mutual
            && !repeats.contains(&at)
            && judged_relation(rule, of).is_none()
            && !is_listed()
        {
            let reason = format!("{NEAREST}, similarity {score:.2}");
            // Findings of the program or a model come first.
            let waiting = pair(rule, of, WaitingKind::Similar, &reason, score - 1.0);
            found.waiting.push(waiting);
        }
    }
}

/// Pairs of rules that are the same or contradictory, the older one first: as a person or a model judged, or
/// word for word.
fn related(rules: &[&Reflexion], in_use: &[usize]) -> Vec<(usize, usize, RuleRelation, String)> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for at in in_use.iter().copied() {
        let words = rules[at]
            .rule
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        // Each is paired with the first of these words.
        let older = *first.entry(words.to_lowercase()).or_insert(at);
        if older != at && judged_relation(rules[older], rules[at]).is_none() {
            found.push((older, at, RuleRelation::Same, "the same words".to_owned()));
        }
        for related in &rules[at].relations {
            let mut others = in_use.iter().copied().filter(|other| *other != at);
            let other = others.find(|other| rules[*other].reflexion_id == related.id);
            let relation = related.relation;
            let is_found = matches!(relation, RuleRelation::Same | RuleRelation::Contradicts);
            if let Some(other) = other.filter(|_| is_found)
                && judged_relation(rules[other], rules[at]) == Some(related)
            {
                let reason = format!("{} ({})", related.reason, related.by);
                found.push((other.min(at), other.max(at), relation, reason));
            }
        }
    }
    found
}

/// Entry about two rules, the older one first.
fn pair(a: &Reflexion, b: &Reflexion, kind: WaitingKind, reason: &str, weight: f64) -> Waiting {
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
    waiting.weight = [weight, 0.0, 0.0];
    waiting
}

#[cfg(test)]
mod tests;
