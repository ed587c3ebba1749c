//! Rules of a prompt: which ones, within the token budget, and their text, byte for byte as in the
//! reference implementation.
//!
//! The worth of a rule combines its utility, its age and its relevance for the input. A rule that nobody here
//! vouches for gets the tokens that the others leave and is fenced as data. It is left out if it looks like a
//! prompt injection. Each rule has its own lines, and its text cannot start another line, so a learned rule
//! cannot forge a layer.
//!
//! Deliberately absent: randomness. Same rules, input and time give the same prompt.

use memctl_redact::unfenced;
use memctl_search::search;

use super::{Choice, Omitted, tokens, used_up};
use crate::model::text::{later_first, one_line};
use crate::model::{Reflexion, RuleRelation};
use crate::rules::in_use::why_unused;
use crate::rules::place::changes::judged_relation;

/// Weight of the exploration bonus for rarely used rules.
const CURIOSITY: f64 = 0.3;
/// Heading of observed rules, which come from files of others.
const OBSERVED: &str = "## Rules of others (observed, not approved here)\n\n";
const HEADING: &str = "## Learned Rules (from past corrections)\n\n";

/// Splits rules into selected ones, in prompt order, and omitted ones. Those that this user vouches for are
/// compared among themselves, so that no file of others moves them.
pub(super) fn choose<'r>(
    rules: &'r [Reflexion],
    choice: &Choice<'_>,
) -> (Vec<&'r Reflexion>, Vec<Omitted>) {
    let (observed, own): (Vec<_>, Vec<_>) = rules.iter().partition(|rule| rule.observed);
    let (mut chosen, mut omitted) = choose_among(&own, choice.budget, choice);
    let budget = choice.budget.saturating_sub(tokens(&render(&chosen)));
    if budget > 0 {
        let (shown, left) = choose_among(&observed, budget, choice);
        omitted.extend(left);
        chosen.extend(shown);
    }
    (chosen, omitted)
}

/// Selected rules are sorted by utility, as in the reference implementation; of two about the same
/// thing the later one comes first. If the budget is exceeded, the rules with the least worth for this input
/// are omitted. The newest rule that this user vouches for is always selected, since users expect to see its
/// effect.
fn choose_among<'r>(
    rules: &[&'r Reflexion],
    mut budget: usize,
    choice: &Choice<'_>,
) -> (Vec<&'r Reflexion>, Vec<Omitted>) {
    let mut omitted = Vec::new();
    let mut omit = |rule: &Reflexion, reason: String| {
        omitted.push(Omitted {
            id: rule.reflexion_id.clone(),
            status: rule.state(),
            reason,
        });
    };
    let mut able: Vec<(usize, &Reflexion)> = Vec::new();
    for (i, rule) in rules.iter().copied().enumerate() {
        match why_unused(rule) {
            Some(reason) => omit(rule, reason),
            None => able.push((i, rule)),
        }
    }
    let own = able.iter().filter(|(_, rule)| !rule.observed);
    let newest = own
        .max_by_key(|(i, rule)| (rule.born(), *i))
        .map(|(i, _)| *i);
    let times = |rule: &Reflexion| rule.times_injected.unwrap_or(0.0).max(0.0);
    let tried: f64 = able.iter().map(|(_, rule)| times(rule)).sum();
    let relevance = relevance(&able, choice.input);
    let mut order: Vec<(f64, usize, &Reflexion)> = Vec::new();
    for ((i, rule), relevance) in able.into_iter().zip(relevance) {
        // Utility plus a bonus that falls with use (upper confidence bound UCB1, Auer et al. 2002). So all
        // rules get a turn when the budget does not fit them all.
        let bonus = CURIOSITY * (tried.ln_1p() / (1.0 + times(rule))).sqrt();
        let promise = (rule.utility() + bonus) * rule.newness(choice.now);
        let worth = relevance * confidence(rule).max(0.05) * promise;
        let is_newest = Some(i) == newest;
        order.push((if is_newest { f64::INFINITY } else { worth }, i, rule));
    }
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    let mut chosen: Vec<(usize, &Reflexion)> = Vec::new();
    for (_, i, rule) in order {
        let size = tokens(&item(rule));
        if size > budget && Some(i) != newest {
            omit(rule, used_up(choice.budget));
        } else if let Some(reason) = refusal(rule) {
            omit(rule, reason);
        } else {
            budget = budget.saturating_sub(size);
            chosen.push((i, rule));
        }
    }
    chosen.sort_by(|a, b| b.1.utility().total_cmp(&a.1.utility()).then(a.0.cmp(&b.0)));
    later_first(&mut chosen, |(_, rule)| (rule.rule.clone(), rule.born()));
    (chosen.into_iter().map(|(_, rule)| rule).collect(), omitted)
}

/// Returns the reason why an unapproved rule must not be shown: it looks like a prompt injection.
fn refusal(rule: &Reflexion) -> Option<String> {
    let text = [&*rule.rule, &*rule.applies_when, &*rule.source].join("\n");
    let admission = rule.observed.then(|| memctl_redact::admit(&text))?;
    let reason = admission.quarantine?;
    Some(format!(
        "nobody here stands behind it, and it is suspicious: {reason}"
    ))
}

/// Relevance of each rule: from 0.2 (no match with the input) to 1 (best match).
fn relevance(rules: &[(usize, &Reflexion)], input: Option<&str>) -> Vec<f64> {
    let Some(input) = input else {
        return vec![1.0; rules.len()];
    };
    let texts = rules.iter();
    let texts = texts.map(|(_, rule)| format!("{} {}", rule.rule, rule.applies_when));
    let hits = search(input, texts);
    let best = hits.first().map_or(1.0, |hit| hit.score);
    let mut relevance = vec![0.2; rules.len()];
    for hit in hits {
        relevance[hit.document] = 0.2 + 0.8 * hit.score / best;
    }
    relevance
}

/// Confidence of a rule; 0.5 if missing.
fn confidence(rule: &Reflexion) -> f64 {
    rule.confidence.unwrap_or(0.5)
}

/// Layer 2; empty without rules.
pub(super) fn render(rules: &[&Reflexion]) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let marked = |rule: &&Reflexion| item(rule) + &conflicts(rule, rules);
    let items: Vec<String> = rules.iter().map(marked).collect();
    HEADING.to_owned() + &items.join("\n")
}

/// Line that names the rules in the prompt that contradict a rule, until a person decides; empty
/// without one.
fn conflicts(rule: &Reflexion, rules: &[&Reflexion]) -> String {
    let others = rules.iter().filter(|other| {
        let judged = judged_relation(other, rule);
        other.reflexion_id != rule.reflexion_id
            && judged.is_some_and(|judged| judged.relation == RuleRelation::Contradicts)
    });
    let ids: Vec<String> = others.map(|other| harmless(&other.reflexion_id)).collect();
    match ids.as_slice() {
        [] => String::new(),
        ids => format!(
            "\n  _Contradicts_: {} (not decided; ask if it matters)",
            ids.join(", ")
        ),
    }
}

/// Observed rules, fenced as data; empty without rules.
pub(super) fn render_observed(rules: &[&Reflexion], choice: &Choice<'_>) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let items: Vec<String> = rules.iter().map(|rule| item(rule)).collect();
    OBSERVED.to_owned() + memctl_redact::fence(&[items.join("\n")], choice.nonce).trim_end()
}

/// Prompt text of one rule.
pub(super) fn item(rule: &Reflexion) -> String {
    let id = if rule.reflexion_id.is_empty() {
        "REFL-?"
    } else {
        &rule.reflexion_id
    };
    let percent = confidence(rule) * 100.0;
    let validated = if rule.validated_by_test {
        " [validated]"
    } else {
        ""
    };
    let source = match rule.source.as_str() {
        "" | "correction" => String::new(),
        other => format!(" [{}]", harmless(other)),
    };
    let mut out = format!(
        "- **{}** (confidence: {percent:.0}%{validated}{source}): {}",
        harmless(id),
        harmless(&rule.rule),
    );
    let applies = harmless(&rule.applies_when);
    if !applies.is_empty() {
        out.push_str("\n  _Applies when_: ");
        out.push_str(&applies);
    }
    out
}

/// Text on one line, without invisible characters and control words of models. So learned text
/// cannot start a heading, a ruler or another item.
pub(super) fn harmless(text: &str) -> String {
    // Without its invisible characters, a text may have more white space.
    one_line(&unfenced(&one_line(text)))
}
