//! Selection of rules for a prompt: eligible rules within the token budget.
//!
//! The worth of a rule combines its utility, its age and its relevance for the input. A rule that
//! nobody here vouches for gets the tokens that the others leave. Deliberately
//! absent: randomness. Same rules, input and time give the same prompt.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::render::item;
use crate::model::text::later_first;
use crate::model::{Reflexion, UTILITY_FLOOR};
use memctl_search::Corpus;

/// Weight of the exploration bonus for rarely used rules.
const CURIOSITY: f64 = 0.3;

/// Splits rules into selected ones, in prompt order, and omitted ones.
///
/// Selected rules are sorted by utility, as in the reference implementation; of two about the same
/// thing the later one comes first. If the budget is
/// exceeded, the rules with the least worth for this input are omitted. The newest rule that this
/// user vouches for is always selected, since users expect to see its effect.
pub(crate) fn choose<'a>(
    rules: &[&'a Reflexion],
    choice: &Choice<'_>,
) -> (Vec<&'a Reflexion>, Vec<Omitted>) {
    let mut omitted = Vec::new();
    let mut omit = |rule: &Reflexion, reason: String| {
        omitted.push(Omitted {
            id: rule.reflexion_id.clone(),
            status: rule.state(),
            reason,
        });
    };
    let mut able: Vec<(usize, &'a Reflexion)> = Vec::new();
    for (i, rule) in rules.iter().copied().enumerate() {
        if rule.rule.trim().is_empty() {
            omit(rule, "it has no rule text".to_owned());
        } else if !rule.superseded_by.is_empty() {
            omit(
                rule,
                format!("`{}` was put in its place", rule.superseded_by),
            );
        } else if rule.is_candidate() {
            omit(
                rule,
                format!(
                    "candidate: approve with `memctl approve {}`",
                    rule.reflexion_id
                ),
            );
        } else if rule.is_retired() {
            omit(
                rule,
                format!("its utility {:.2} is below {UTILITY_FLOOR}", rule.utility()),
            );
        } else {
            able.push((i, rule));
        }
    }
    let newest = loop {
        let ages = able.iter().enumerate();
        let newest = ages.max_by_key(|(_, (i, rule))| (!rule.observed, rule.born(), *i));
        let Some((at, (i, rule))) = newest else {
            break None;
        };
        let Some(reason) = (choice.refuses)(rule) else {
            break Some(*i);
        };
        omit(rule, reason);
        able.remove(at);
    };
    let relevance = relevance(&able, choice.input);
    let tried = able
        .iter()
        .map(|(_, rule)| rule.times_injected.unwrap_or(0.0).max(0.0));
    let tried = tried.sum::<f64>();
    let mut order: Vec<(f64, usize, &Reflexion)> = able
        .iter()
        .zip(relevance)
        .map(|((i, rule), relevance)| {
            let worth = relevance
                * confidence(rule).max(0.05)
                * promise(rule, tried)
                * rule.newness(choice.now);
            (
                if Some(*i) == newest {
                    f64::INFINITY
                } else {
                    worth
                },
                *i,
                *rule,
            )
        })
        .collect();
    order.sort_by(|a, b| {
        let by_trust = a.2.observed.cmp(&b.2.observed);
        by_trust.then(b.0.total_cmp(&a.0)).then(b.1.cmp(&a.1))
    });
    let mut room = choice.budget;
    let mut chosen: Vec<(usize, &Reflexion)> = Vec::new();
    for (_, i, rule) in order {
        let size = tokens(&item(rule));
        let is_newest = Some(i) == newest;
        if size > room && !is_newest {
            omit(
                rule,
                format!("the budget of {} tokens is used up", choice.budget),
            );
            continue;
        }
        if !is_newest && let Some(reason) = (choice.refuses)(rule) {
            omit(rule, reason);
        } else {
            room = room.saturating_sub(size);
            chosen.push((i, rule));
        }
    }
    chosen.sort_by(|a, b| b.1.utility().total_cmp(&a.1.utility()).then(a.0.cmp(&b.0)));
    later_first(&mut chosen, |(_, rule)| (rule.rule.clone(), rule.born()));
    (chosen.into_iter().map(|(_, rule)| rule).collect(), omitted)
}

/// Relevance of each rule: from 0.2 (no match with the input) to 1 (best match).
fn relevance(rules: &[(usize, &Reflexion)], input: Option<&str>) -> Vec<f64> {
    let Some(input) = input else {
        return vec![1.0; rules.len()];
    };
    let mut corpus = Corpus::new(input);
    for (_, rule) in rules {
        corpus.add(&format!("{} {}", rule.rule, rule.applies_when));
    }
    let hits = corpus.search();
    let best = hits.first().map_or(1.0, |hit| hit.score);
    let mut relevance = vec![0.2; rules.len()];
    for hit in hits {
        relevance[hit.document] = 0.2 + 0.8 * hit.score / best;
    }
    relevance
}

/// Expected usefulness: utility plus a bonus that falls with use (upper confidence bound UCB1, Auer
/// et al. 2002). So all rules get a turn when the budget does not fit them all.
fn promise(rule: &Reflexion, all: f64) -> f64 {
    let tried = rule.times_injected.unwrap_or(0.0).max(0.0);
    rule.utility() + CURIOSITY * (all.ln_1p() / (1.0 + tried)).sqrt()
}

/// Record that was left out of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Omitted {
    /// Record id.
    pub id: String,
    /// Status: `active`, `candidate`, `superseded` or `retired`.
    pub status: &'static str,
    /// Reason for the omission.
    pub reason: String,
}

/// Parameters of the selection of rules and procedures.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// Input of the skill; `None` if unknown.
    pub input: Option<&'a str>,
    /// Scores of approved procedures for the input, by id; those that are not listed do not fit.
    pub near: &'a [(String, f64)],
    /// Skill, as `domain/skill`.
    pub skill: &'a str,
    /// Token budget for rules.
    pub budget: usize,
    /// Token budget for procedures.
    pub procedures_budget: usize,
    /// Current time, for the age of rules.
    pub now: DateTime<Utc>,
    /// Fences observed rules as data, with a nonce.
    pub fence: fn(&str, &str) -> String,
    /// Random word for the fence.
    pub nonce: &'a str,
    /// Returns the reason why a rule must not be shown. It is asked only about rules that would be.
    pub refuses: fn(&Reflexion) -> Option<String>,
}

impl Choice<'_> {
    /// Returns the parameters without an input, a skill and a budget, and with an open fence.
    #[cfg(test)]
    pub(crate) fn of(now: DateTime<Utc>) -> Self {
        Self {
            input: None,
            near: &[],
            skill: "",
            budget: 0,
            procedures_budget: 0,
            now,
            fence: |text, _| text.to_owned(),
            nonce: "n0nce",
            refuses: |_| None,
        }
    }
}

/// Confidence of a rule; 0.5 if missing.
pub(crate) fn confidence(rule: &Reflexion) -> f64 {
    rule.confidence.unwrap_or(0.5)
}

/// Approximate number of tokens: a quarter of the ASCII characters, plus one per other character.
/// Within a fifth of real tokenizers for English prose and JSON, which is sufficient for budgets.
pub fn tokens(text: &str) -> usize {
    let (ascii, other) = text.chars().fold((0, 0), |(ascii, other), c| {
        if c.is_ascii() {
            (ascii + 1, other)
        } else {
            (ascii, other + 1)
        }
    });
    usize::div_ceil(ascii, 4) + other
}
