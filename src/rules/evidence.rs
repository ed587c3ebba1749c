//! Counts the evidence on rules from use: how often a prompt held them, and how people judged the
//! output. `test` counts its results into the same fields.
//!
//! Only rules that a model was shown are counted; an answer without a model uses none. A changed
//! verdict reverts the count of the verdict before.
//!
//! A verdict on an output counts only for rules whose condition held: a rule about senior roles does not
//! affect a junior one. A correction names the mistake. It counts against the rules that it repeats, because
//! the model did not follow them. Otherwise it counts against the one rule that it contradicts or calls
//! insufficient.
//!
//! Evidence from programs counts only against rules from programs. People judge the rules of people: no
//! agent can retire such a rule by rejecting its outputs.

use std::collections::BTreeSet;

use memctl_search::words;
use serde::Serialize;
use serde_json::{Value, json};

use crate::model::error::message as chain;
use crate::model::{AGENT, Execution, Kind, Outcome, Reflexion, SkillPath};
use crate::rules::place::{cosines, update_rules};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings};
use crate::store::{Scoped, Selection, Writer};

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
    let was_blamed = |id: &String| {
        // Older versions did not store it.
        let stored = execution.rules_blamed.as_ref();
        stored.is_none_or(|blamed| blamed.contains(id))
    };
    let is_as_before = now != Some(false) || execution.rules_blamed.as_deref() == Some(blamed);
    if before == now && before_by == now_by && is_as_before {
        return Ok(());
    }
    let mut changes = Vec::new();
    for rule in concerned(writer.store(), execution)? {
        let id = &rule.reflexion_id;
        let counted = |helped: &bool| *helped || (before_by.may_blame(&rule) && was_blamed(id));
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
    for id in &execution.reflexions_injected {
        if let Some(entry) = store.find(Kind::Reflexion, id)?
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

/// Outcome of [`give_verdict()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ReviewReport {
    /// Execution id.
    pub execution_id: String,
    /// Skill of the execution.
    pub skill: String,
    /// Outcome before the verdict.
    pub before: Outcome,
    /// Outcome after the verdict.
    pub outcome: Outcome,
    /// Reason for the verdict; `None` if none was given.
    pub reason: Option<String>,
    /// Rules that the rejection counts against.
    pub blamed: Vec<BlamedRule>,
    /// Guardrail files that could not be written before, and now hold the rules of the skill.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<String>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Number of executions that are searched for one that can be accepted.
const NEWEST: usize = 50;

/// Records a verdict. `id` is an execution id, an id prefix, or `latest`. A rejection counts against the `named`
/// rules, or the one that the reason is about.
///
/// # Errors
///
/// [`Error::Refused`] if a named rule was not in the prompt or does not apply.
pub fn give_verdict(
    workspace: &Workspace,
    id: &str,
    outcome: Outcome,
    reason: Option<String>,
    named: &[String],
) -> Result<ReviewReport, Error> {
    let id = workspace.store.resolve(Kind::Execution, id, None)?;
    let (mut rules, mut blamed, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    if outcome == Outcome::Rejected {
        rules = concerned(&workspace.store, &workspace.store.get(&id)?)?;
        let reason = reason.as_deref().unwrap_or_default();
        blamed = blame(workspace, &id, &rules, reason, named, &mut warnings)?;
    }
    let mut left_out = Vec::new();
    // The report shows the reason as it is stored.
    let reason = reason.map(|reason| {
        let redacted = memctl_redact::redact(&reason);
        left_out = redacted.found;
        redacted.text.into_owned()
    });
    let mut writer = workspace.writer()?;
    let execution: Execution = writer.store().get(&id)?;
    if outcome == Outcome::Accepted && execution.outcome == Outcome::Error {
        let message = format!("`{id}` failed, so it has no output to accept");
        let skill = &execution.skill;
        let path: Option<SkillPath> = skill.parse().ok();
        let newest = Selection {
            skill: path.as_ref(),
            newest: Some(NEWEST),
        };
        let runs = writer.store().list::<Execution>(&newest)?.records;
        let may = |run: &&Execution| run.outcome != Outcome::Error;
        let other = runs.iter().rev().find(may).map(|run| &run.execution_id);
        let other = other.map_or(String::new(), |other| {
            format!("the newest that did not fail: memctl accept {other}; ")
        });
        let hint =
            format!("{other}memctl show {id} has the error; then run it again: memctl run {skill}");
        return Err(Error::input(message, hint));
    }
    let mut changes: Vec<(&str, Value)> = Vec::new();
    if execution.outcome != outcome {
        changes.push(("outcome", json!(outcome)));
    }
    let before_by = VerdictSource::of(&execution.judged_by);
    if !execution.judged_by.is_empty() {
        changes.push(("judged_by", json!("")));
    }
    let notes = reason.clone().unwrap_or_default();
    if execution.reviewer_notes != notes {
        changes.push(("reviewer_notes", json!(notes)));
    }
    let blamed_ids: Vec<String> = blamed.iter().map(|rule| rule.id.clone()).collect();
    // Without the field, every rule that applied was blamed.
    let is_stored = match &execution.rules_blamed {
        Some(stored) => *stored == blamed_ids,
        None => rules.iter().map(|rule| &rule.reflexion_id).eq(&blamed_ids),
    };
    if outcome == Outcome::Rejected && !is_stored {
        changes.push(("rules_blamed", json!(blamed_ids)));
    }
    if !changes.is_empty() {
        writer.update(Kind::Execution, &id, &changes)?;
    }
    count_verdict(
        &mut writer,
        &execution,
        Verdict {
            outcome: &execution.outcome,
            by: before_by,
        },
        Verdict {
            outcome: &outcome,
            by: VerdictSource::Person,
        },
        &blamed_ids,
    )?;
    warnings.extend(repair_warnings(writer.take_repairs()));
    warnings.extend(redaction_warning(left_out));
    drop(writer);
    let skill = execution.skill.parse();
    let finish = |skill| workspace.write_guardrails(&skill, None, &mut warnings);
    let guardrails = skill.map(finish).unwrap_or_default();
    Ok(ReviewReport {
        execution_id: id,
        skill: execution.skill,
        before: execution.outcome,
        outcome,
        reason,
        blamed,
        guardrails,
        warnings,
    })
}

/// Rule that a rejection counts against.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct BlamedRule {
    /// Id of the rule.
    pub id: String,
    /// Ground for the blame.
    pub reason: &'static str,
}

/// Finds the rules that a rejection of an execution counts against, among those that apply to it.
fn blame(
    workspace: &Workspace,
    id: &str,
    rules: &[Reflexion],
    reason: &str,
    named: &[String],
    warnings: &mut Vec<String>,
) -> Result<Vec<BlamedRule>, Error> {
    let mut blamed: Vec<BlamedRule> = Vec::new();
    for name in named {
        let name = workspace.store.resolve(Kind::Reflexion, name, None)?;
        if !rules.iter().any(|rule| rule.reflexion_id == name) {
            let applied: Vec<&str> = rules.iter().map(|r| r.reflexion_id.as_str()).collect();
            let hint = match applied.first() {
                Some(first) => {
                    let all = applied.join(", ");
                    format!("memctl reject {id} --rule {first}; rules that applied: {all}")
                }
                None => format!("memctl reject {id}; no rule applied"),
            };
            let why = format!("`{name}` was not in the prompt of `{id}`, or does not apply to it");
            return Err(Error::input(why, hint));
        }
        if blamed.iter().all(|one| one.id != name) {
            let reason = "you named it";
            blamed.push(BlamedRule { id: name, reason });
        }
    }
    if named.is_empty() && !rules.is_empty() {
        let texts: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
        let near = match reason.trim() {
            "" => Ok(Vec::new()),
            _ => cosines(reason, &texts),
        };
        // A verdict is worth more than its blame: without vectors, the words decide.
        let cosines = near.as_deref().unwrap_or_default();
        if let Some((at, reason)) = at_fault(reason, rules, cosines) {
            let id = rules[at].reflexion_id.clone();
            blamed.push(BlamedRule { id, reason });
        }
        let warn = |error| format!("no rule was compared by meaning: {}", chain(&error));
        warnings.extend(near.err().map(warn));
    }
    Ok(blamed)
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
