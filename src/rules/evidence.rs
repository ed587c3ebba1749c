//! Counts the evidence on rules from use: how often a prompt held them, and how people judged the
//! output. `test` counts its results into the same fields.
//!
//! Only rules that a model was shown are counted; an answer without a model uses none. A changed
//! verdict reverts the count of the verdict before.
//!
//! A verdict on an output counts only for rules whose condition held: a rule about senior roles does not
//! affect a junior one. `verdict` records what a person says of an output.
//!
//! Evidence from programs counts only against rules from programs. People judge the rules of people: no
//! agent can retire such a rule by rejecting its outputs.
//!
//! A correction names the mistake. It counts against the rules that it repeats, because the model did not follow
//! them. Otherwise it counts against the one rule that it is clearly about, by its words and its meaning. Where two
//! rules are as near, none is blamed: nothing is guessed.

use std::collections::BTreeSet;

use memctl_search::words;

use crate::model::error::message as chain;
use crate::model::{AGENT, Execution, Kind, Outcome, Reflexion};
use crate::rules::place::changes::update_rules;
use crate::rules::place::neighbours::cosines;
use crate::store::workspace::{Error, Workspace};
use crate::store::{Scoped, Writer};

/// Counts that a prompt held the rules of an execution.
pub(crate) fn count_shown(writer: &mut Writer, execution: &Execution) -> Result<(), Error> {
    if execution.outcome == Outcome::Error {
        return Ok(());
    }
    let rules = rules_of(writer.store(), execution)?;
    let counted = rules.into_iter().map(|before| {
        let mut rule = before.clone();
        rule.count_shown();
        (before, rule)
    });
    update_rules(writer, &counted.collect::<Vec<_>>())
}

/// Source of a verdict on an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerdictSource {
    /// Person, at the command line or in a user interface.
    Person,
    /// Program that reported the outcome, or agent that passed on a correction.
    Agent,
}

impl VerdictSource {
    /// Returns the witness that a field names; an empty field means a person.
    pub(crate) fn of(name: &str) -> Self {
        if name == AGENT {
            Self::Agent
        } else {
            Self::Person
        }
    }

    /// Returns true if its evidence against this rule counts.
    fn may_blame(self, rule: &Reflexion) -> bool {
        self == Self::Person || rule.source == AGENT
    }
}

/// Rules of an execution's prompt that apply to it: those that its rejection may count against.
pub(crate) fn concerned(store: &Scoped, execution: &Execution) -> Result<Vec<Reflexion>, Error> {
    let case = format!("{} {}", execution.input_summary, execution.output_summary);
    let mut rules = rules_of(store, execution)?;
    rules.retain(|rule| applies(rule, &case));
    Ok(rules)
}

/// Verdict on an execution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict<'a> {
    pub(crate) outcome: &'a Outcome,
    pub(crate) by: VerdictSource,
}

/// Counts a verdict on an execution for the rules that apply to it, or against those in `blamed`.
/// `before` is the verdict that it replaces.
pub(crate) fn count_verdict(
    writer: &mut Writer,
    execution: &Execution,
    before: Verdict<'_>,
    now: Verdict<'_>,
    blamed: &[String],
) -> Result<(), Error> {
    let (before_by, now_by) = (before.by, now.by);
    let (before, now) = (helped(before.outcome), helped(now.outcome));
    let stored = execution.rules_blamed.as_deref().unwrap_or_default();
    let was_blamed = |rule: &Reflexion| {
        let mut ids = std::iter::once(&rule.reflexion_id).chain(&rule.merged_from);
        ids.any(|id| stored.contains(id))
    };
    let is_as_before = now != Some(false) || stored == blamed;
    if before == now && before_by == now_by && is_as_before {
        return Ok(());
    }
    let mut changes = Vec::new();
    for rule in concerned(writer.store(), execution)? {
        let id = &rule.reflexion_id;
        let counted = |helped: &bool| *helped || (before_by.may_blame(&rule) && was_blamed(&rule));
        let is_counted =
            |helped: &bool| *helped || (now_by.may_blame(&rule) && blamed.contains(id));
        let mut after = rule.clone();
        if let Some(helped) = before.filter(counted) {
            after.revert_outcome(helped);
        }
        if let Some(helped) = now.filter(is_counted) {
            after.count_outcome(helped);
        }
        changes.push((rule, after));
    }
    update_rules(writer, &changes)
}

/// Counts a correction of an execution against the rules of its prompt that it repeats, or says the
/// opposite of. Returns a warning if it was not counted. The embedder may be loaded, so the caller
/// holds no lock.
pub(crate) fn count_correction(
    workspace: &Workspace,
    execution: &Execution,
    correction: &str,
) -> Option<String> {
    let counted = (|| {
        let rules = rules_of(&workspace.store, execution)?;
        if rules.is_empty() {
            return Ok(());
        }
        let texts: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
        // Without vectors, the words alone decide.
        let near = cosines(correction, &texts).unwrap_or_default();
        let concerned = corrected(correction, &rules, &near);
        let mut writer = workspace.writer()?;
        let mut changes = Vec::new();
        for at in concerned {
            let rule: Reflexion = writer.store().get(&rules[at].reflexion_id)?;
            let mut after = rule.clone();
            after.count_outcome(false);
            changes.push((rule, after));
        }
        update_rules(&mut writer, &changes)
    })();
    counted.err().map(|error| uncounted(&error))
}

/// Evidence of a verdict: helped, harmed, or none.
fn helped(outcome: &Outcome) -> Option<bool> {
    match outcome {
        Outcome::Accepted => Some(true),
        Outcome::Rejected => Some(false),
        Outcome::PendingReview | Outcome::Error | Outcome::Other(_) => None,
    }
}

/// Warning about a count that could not be stored.
pub(crate) fn uncounted(error: &Error) -> String {
    format!(
        "what this says of the rules was not counted: {}",
        chain(error)
    )
}

/// Rules that a model was shown for an execution, without deleted ones.
fn rules_of(store: &Scoped, execution: &Execution) -> Result<Vec<Reflexion>, Error> {
    if execution.model_used.starts_with("offline") {
        return Ok(Vec::new());
    }
    let mut rules = Vec::new();
    for (id, created) in execution.injected() {
        if Kind::of_id(id) == Some(Kind::Reflexion)
            && let Some(entry) = store.find_created(Kind::Reflexion, id, created)?
            && let Ok(rule) = entry.parse::<Reflexion>()
            // No prompt holds a candidate, even if the execution names one.
            && !rule.is_candidate()
        {
            rules.push(rule);
        }
    }
    Ok(rules)
}

/// Words in conditions that fit every case.
const EVERY: &[&str] = &["execut", "input", "output", "skill", "task", "case"];

/// Returns true if the condition of a rule holds for a case, given as text. A rule without a
/// condition always applies.
pub fn applies(rule: &Reflexion, case: &str) -> bool {
    let mut condition = words(&rule.applies_when);
    condition.retain(|word| !EVERY.contains(&word.as_str()));
    let case: BTreeSet<String> = words(case).into_iter().collect();
    condition.is_empty() || condition.iter().any(|word| case.contains(word))
}

/// Minimum cosine of a reason and the rule that it is about. Of 100 pairs of texts about different
/// things one is above it.
const ABOUT: f64 = 0.41;
/// Minimum lead over the second nearest rule.
const LEAD: f64 = 0.1;
/// Minimum cosine of a correction and the rule that it says the opposite of. A correction of something
/// beside a rule is below it.
const OPPOSITE: f64 = 0.7;
/// Number of words from which a reason says what it is about.
const SPECIFIC: usize = 3;

/// Returns the rule that a rejection counts against, by index, and the ground; `None` if it is not clear.
/// `cosines` are those of the rules to the reason; empty without vectors.
pub fn at_fault(
    reason: &str,
    rules: &[Reflexion],
    cosines: &[f64],
) -> Option<(usize, &'static str)> {
    if words(reason).len() < SPECIFIC {
        return (rules.len() == 1).then_some((0, "no other rule applied"));
    }
    let repeated = |at: &usize| speaks_against(reason, &rules[*at]);
    if let [only] = (0..rules.len()).filter(repeated).collect::<Vec<_>>()[..] {
        return Some((only, "the reason repeats it"));
    }
    let mut order: Vec<usize> = (0..cosines.len()).collect();
    order.sort_by(|a, b| cosines[*b].total_cmp(&cosines[*a]));
    let best = *order.first()?;
    let second = order.get(1).map_or(f64::NEG_INFINITY, |at| cosines[*at]);
    let is_clear = cosines[best] >= ABOUT && cosines[best] - second >= LEAD;
    is_clear.then_some((best, "the reason is about it"))
}

/// Returns the rules that a correction counts against, by index: those that it repeats, or else the
/// one that it is clearly about. `cosines` are those of the rules to the correction.
pub fn corrected(correction: &str, rules: &[Reflexion], cosines: &[f64]) -> Vec<usize> {
    let repeats = |at: &usize| speaks_against(correction, &rules[*at]);
    let repeated: Vec<usize> = (0..rules.len()).filter(repeats).collect();
    if !repeated.is_empty() {
        return repeated;
    }
    let about = at_fault(correction, rules, cosines).map(|(at, _)| at);
    let is_near = |at: &usize| cosines.get(*at).is_some_and(|near| *near >= OPPOSITE);
    about.filter(is_near).into_iter().collect()
}

/// Returns true if a correction repeats a rule, which then was not followed.
fn speaks_against(correction: &str, rule: &Reflexion) -> bool {
    let own_words: BTreeSet<String> = words(correction).into_iter().collect();
    !own_words.is_empty() && own_words == words(&rule.rule).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Reflexion {
        serde_json::from_value(serde_json::json!({ "rule": text })).unwrap()
    }

    #[test]
    fn a_rule_has_a_part_in_the_cases_of_its_condition() {
        let senior = Reflexion {
            applies_when: "When screening for senior roles.".to_owned(),
            ..rule("ALWAYS weigh design.")
        };
        assert!(applies(&senior, r#"{"role": "Senior Engineer"}"#));
        assert!(!applies(&senior, r#"{"title": "Accountant"}"#));
        assert!(applies(&rule("ALWAYS be brief."), "anything"));
    }

    #[test]
    fn a_rejection_blames_one_rule_or_none() {
        let rules = [
            rule("NEVER name rivals."),
            rule("ALWAYS weigh design."),
            rule("ALWAYS state the salary range."),
        ];
        let check = |reason: &str, cosines: &[f64], expected| {
            assert_eq!(at_fault(reason, &rules, cosines), expected, "{reason}");
        };
        check("it named rivals in the summary", &[], None);
        check(
            "never name rivals!",
            &[],
            Some((0, "the reason repeats it")),
        );
        let reason = "the pay band of the role is missing";
        check(
            reason,
            &[0.1, 0.2, 0.55],
            Some((2, "the reason is about it")),
        );
        check(reason, &[0.1, 0.5, 0.55], None);
        check(reason, &[0.1, 0.2, 0.35], None);
        check("this is bad", &[0.1, 0.2, 0.9], None);
        check("", &[], None);
        let check = |correction: &str, cosines: &[f64], expected: &[usize]| {
            assert_eq!(
                corrected(correction, &rules, cosines),
                expected,
                "{correction}"
            );
        };
        check("never name rivals!", &[], &[0]);
        check("ALWAYS name the rivals.", &[0.9, 0.2, 0.1], &[0]);
        check("Say which office it is in.", &[0.1, 0.2, 0.55], &[]);
        check("ALWAYS name the rivals.", &[0.9, 0.85, 0.1], &[]);
        let alone = &rules[..1];
        assert_eq!(
            at_fault("no", alone, &[0.0]),
            Some((0, "no other rule applied"))
        );
        assert_eq!(at_fault(reason, alone, &[0.1]), None);
    }

    #[test]
    fn a_correction_speaks_against_what_it_repeats() {
        let rule = rule("NEVER name rivals.");
        assert!(speaks_against("Never name rivals!", &rule));
        assert!(!speaks_against("Name rivals in the summary", &rule));
        assert!(!speaks_against("", &rule));
    }
}
