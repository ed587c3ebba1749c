//! Which rules stand in a prompt: those that may, and of them those that there is room for.
//!
//! What a rule is worth is what use has shown of it, how new it is, and what it has in common with the
//! input. Deliberately absent: chance. The same rules, input and time give the same prompt; what an
//! experiment withholds is decided elsewhere, and its room stays empty.

use chrono::{DateTime, Utc};

use crate::model::{Reflexion, UTILITY_FLOOR};
use crate::search::Corpus;

use super::render::item;
use super::{Choice, Omitted, confidence, tokens};

/// How much a rule that was never tried is preferred to one that was tried often.
const CURIOSITY: f64 = 0.3;
/// After so many days half of what newness adds is gone.
const HALF_LIFE_DAYS: f64 = 90.0;

/// The rules that go into the prompt, in the order in which they stand there, and the others.
///
/// Shown are the most useful first, as the reference does. What is cut when room runs out is what
/// matters least for this input; the newest rule is never cut, for it is the one that somebody is
/// waiting to see obeyed.
pub(super) fn choose<'a>(
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
                    "candidate: approve with `memctl memory approve {}`",
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
    let newest = able
        .iter()
        .max_by_key(|(i, rule)| (born(rule), *i))
        .map(|(i, _)| *i);
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
                * newness(rule, choice.now);
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
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    let mut room = choice.budget;
    let mut chosen: Vec<(usize, &Reflexion)> = Vec::new();
    for (_, i, rule) in order {
        let size = tokens(&item(rule));
        if size <= room || Some(i) == newest {
            room = room.saturating_sub(size);
            chosen.push((i, rule));
        } else {
            omit(
                rule,
                format!("the budget of {} tokens is used up", choice.budget),
            );
        }
    }
    chosen.sort_by(|a, b| b.1.utility().total_cmp(&a.1.utility()).then(a.0.cmp(&b.0)));
    (chosen.into_iter().map(|(_, rule)| rule).collect(), omitted)
}

/// Between 0.2, nothing in common with the input, and 1, the rule that has most in common with it.
fn relevance(rules: &[(usize, &Reflexion)], input: Option<&str>) -> Vec<f64> {
    let Some(input) = input else {
        return vec![1.0; rules.len()];
    };
    let mut corpus = Corpus::default();
    for (_, rule) in rules {
        corpus.add(&format!("{} {}", rule.rule, rule.applies_when));
    }
    let hits = corpus.search(input);
    let best = hits.first().map_or(1.0, |hit| hit.score);
    let mut relevance = vec![0.2; rules.len()];
    for hit in hits {
        relevance[hit.document] = 0.2 + 0.8 * hit.score / best;
    }
    relevance
}

/// Between 0.5, long ago, and 1, now.
#[expect(
    clippy::cast_precision_loss,
    reason = "seconds of centuries stay far below 2^52"
)]
fn newness(rule: &Reflexion, now: DateTime<Utc>) -> f64 {
    let Some(born) = born(rule) else {
        return 0.5;
    };
    let days = (now - born).num_seconds().max(0) as f64 / 86_400.0;
    0.5 + 0.5 * (-days / HALF_LIFE_DAYS).exp2()
}

/// How useful a rule may be: what use has shown, and the more the less it was tried (the upper
/// confidence bound UCB1, Auer and others 2002). Where there is no room for all rules, each gets its
/// turn.
fn promise(rule: &Reflexion, all: f64) -> f64 {
    let tried = rule.times_injected.unwrap_or(0.0).max(0.0);
    rule.utility() + CURIOSITY * (all.ln_1p() / (1.0 + tried)).sqrt()
}

fn born(rule: &Reflexion) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(&rule.created_at)
        .ok()
        .map(|at| at.to_utc())
}
