//! Counts the evidence on rules from use: how often a prompt held them, and how people judged the
//! output. `test` counts its results into the same fields.
//!
//! Only rules that a model was shown are counted; an answer without a model uses none. A changed
//! verdict reverts the count of the verdict before.
//!
//! Evidence from programs against a rule counts only for rules from programs. People judge the
//! rules of people: no agent can retire such a rule by rejecting its outputs.

use serde_json::{Value, json};

use crate::model::{Execution, Kind, Outcome, Reflexion, SkillPath};
use crate::rules::credit::{applies, corrected};
use crate::rules::place::similar::cosines;
use crate::store::{Scoped, Selection, Writer};

use crate::store::workspace::error::chain;
use crate::store::workspace::{Error, Workspace};

/// Counts that a prompt held the rules of an execution.
pub(crate) fn count_shown(writer: &mut Writer, execution: &Execution) -> Result<(), Error> {
    if execution.outcome == Outcome::Error {
        return Ok(());
    }
    let rules = rules_of(writer.store(), execution)?;
    let changes = rules.into_iter().map(|mut rule| {
        rule.count_shown();
        let counts: Vec<(&str, Value)> =
            vec![("times_injected", number(rule.times_injected.unwrap_or(0.0)))];
        (rule.reflexion_id, counts)
    });
    let changes: Vec<_> = changes.collect();
    Ok(writer.update_all(Kind::Reflexion, &changes)?)
}

/// Value of `source` and of the judge for anything but a person.
pub(crate) const AGENT: &str = "agent";

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

/// Counts a verdict on an execution for the rules that apply to it, or against those in `blamed`.
/// `before` is the verdict that it replaces.
pub(crate) fn count_verdict(
    writer: &mut Writer,
    execution: &Execution,
    (before, before_by): (&Outcome, VerdictSource),
    (now, now_by): (&Outcome, VerdictSource),
    blamed: &[String],
) -> Result<(), Error> {
    let (before, now) = (helped(before), helped(now));
    let was_blamed = |id: &String| {
        // Older versions did not store it.
        let known = execution.rules_blamed.as_ref();
        known.is_none_or(|blamed| blamed.contains(id))
    };
    let is_as_before = now != Some(false) || execution.rules_blamed.as_deref() == Some(blamed);
    if before == now && before_by == now_by && is_as_before {
        return Ok(());
    }
    let mut changes = Vec::new();
    for mut rule in concerned(writer.store(), execution)? {
        let id = &rule.reflexion_id;
        let counted = |helped: &bool| *helped || (before_by.may_blame(&rule) && was_blamed(id));
        let is_counted =
            |helped: &bool| *helped || (now_by.may_blame(&rule) && blamed.contains(id));
        let (before, now) = (before.filter(counted), now.filter(is_counted));
        if let Some(helped) = before {
            rule.revert_outcome(helped);
        }
        if let Some(helped) = now {
            rule.count_outcome(helped);
        }
        changes.push((rule.reflexion_id.clone(), counts(&rule)));
    }
    Ok(writer.update_all(Kind::Reflexion, &changes)?)
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
            let mut rule: Reflexion = writer.store().get(&rules[at].reflexion_id)?;
            rule.count_outcome(false);
            changes.push((rule.reflexion_id.clone(), counts(&rule)));
        }
        Ok::<_, Error>(writer.update_all(Kind::Reflexion, &changes)?)
    })();
    counted.err().map(|error| uncounted(&error))
}

/// Returns a rule without the counts of the runs that another rule of its skill was part of as well:
/// they count once if the two become one.
pub(crate) fn without_shared_runs(
    writer: &Writer,
    rule: &Reflexion,
    other: &Reflexion,
) -> Result<Reflexion, Error> {
    let mut own = rule.clone();
    let skill: Option<SkillPath> = rule.skill.parse().ok();
    let of_skill = Selection::of(skill.as_ref());
    let mut runs: Vec<Execution> = Vec::new();
    writer
        .store()
        .each_entry(Kind::Execution, &of_skill, &mut |entry| {
            if let Ok(run) = entry.parse::<Execution>() {
                let held = |id: &String| run.reflexions_injected.contains(id);
                if is_counted(&run) && held(&rule.reflexion_id) && held(&other.reflexion_id) {
                    runs.push(run);
                }
            }
        })?;
    for run in &runs {
        let shown = own.times_injected.unwrap_or(0.0);
        own.times_injected = own.times_injected.map(|_| (shown - 1.0).max(0.0));
        let case = format!("{} {}", run.input_summary, run.output_summary);
        let both = [rule, other];
        let was_blamed = |id: &String| {
            let known = run.rules_blamed.as_ref();
            known.is_none_or(|blamed| blamed.contains(id))
        };
        if !both.iter().all(|rule| applies(rule, &case)) {
            continue;
        }
        match helped(&run.outcome) {
            Some(true) => own.revert_outcome(true),
            Some(false) if both.iter().all(|rule| was_blamed(&rule.reflexion_id)) => {
                own.revert_outcome(false);
            }
            _ => {}
        }
    }
    Ok(own)
}

/// Returns true if a model answered, so that the rules of the prompt were counted.
fn is_counted(run: &Execution) -> bool {
    run.outcome != Outcome::Error && !run.model_used.starts_with("offline")
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

/// Evidence fields of a rule with their values; fields without a value are left out.
pub(crate) fn counts(rule: &Reflexion) -> Vec<(&'static str, Value)> {
    let share = |value: f64| json!(value);
    let fields: [(_, _, &dyn Fn(f64) -> Value); 5] = [
        ("times_injected", rule.times_injected, &number),
        ("times_helped", rule.times_helped, &number),
        ("times_harmed", rule.times_harmed, &number),
        ("utility_score", rule.utility_score, &share),
        ("confidence", rule.confidence, &share),
    ];
    fields
        .into_iter()
        .filter_map(|(name, value, json)| Some((name, json(value?))))
        .collect()
}

/// Number as the reference implementation writes it: an integer without a fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count below 2^52 that is not negative"
)]
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && (0.0..1e15).contains(&value) {
        json!(value as u64)
    } else {
        json!(value)
    }
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
