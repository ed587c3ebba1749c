//! Counts what use shows of the rules: how often a prompt held them, and what people made of it. What
//! tests say is counted by `test`, into the same fields.
//!
//! Only rules that a model was shown are counted; an answer without a model has used none. A verdict
//! that is changed takes back what it said before.
//!
//! What programs say against a rule counts against rules of programs alone. A rule that a person gave is
//! judged by people: no agent can retire it by rejecting what comes of it.

use serde_json::{Value, json};

use crate::learn::credit::{applies, blamed, speaks_against};
use crate::model::{Execution, Kind, Outcome, Reflexion};
use crate::store::Writer;

use super::Error;
use super::error::chain;

/// Counts that the rules of an execution were put into a prompt.
pub(super) fn count_shown(writer: &mut Writer, execution: &Execution) -> Result<(), Error> {
    if execution.outcome == Outcome::Error {
        return Ok(());
    }
    let rules = rules_of(writer, execution)?;
    let changes = rules.into_iter().map(|mut rule| {
        rule.count_shown();
        let counts: Vec<(&str, Value)> =
            vec![("times_injected", number(rule.times_injected.unwrap_or(0.0)))];
        (rule.reflexion_id, counts)
    });
    let changes: Vec<_> = changes.collect();
    Ok(writer.update_all(Kind::Reflexion, &changes)?)
}

/// The `source` of a rule, and the judge of an execution, that is no person.
pub(super) const AGENT: &str = "agent";

/// Who says what came of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Witness {
    /// A person, at the command line or by a front for people.
    Person,
    /// A program that brought the outcome, or an agent that passes on a correction.
    Agent,
}

impl Witness {
    /// The one that a field names; where it is empty, a person.
    pub(super) fn of(name: &str) -> Self {
        if name == AGENT {
            Self::Agent
        } else {
            Self::Person
        }
    }

    /// Whether what it says against a rule counts.
    fn may_blame(self, rule: &Reflexion) -> bool {
        self == Self::Person || rule.source == AGENT
    }
}

/// Counts a verdict on an execution for or against the rules that had a part in it. `before` is the
/// verdict that it had until now.
pub(super) fn count_verdict(
    writer: &mut Writer,
    execution: &Execution,
    (before, before_by): (&Outcome, Witness),
    (now, now_by): (&Outcome, Witness),
) -> Result<(), Error> {
    let (before, now) = (helped(before), helped(now));
    if before == now && before_by == now_by {
        return Ok(());
    }
    let case = format!("{} {}", execution.input_summary, execution.output_summary);
    let rules = rules_of(writer, execution)?;
    let concerned: Vec<Reflexion> = rules
        .into_iter()
        .filter(|rule| applies(rule, &case))
        .collect();
    let utilities: Vec<f64> = concerned.iter().map(Reflexion::utility).collect();
    let mut changes = Vec::new();
    for (mut rule, blamed) in concerned.into_iter().zip(blamed(&utilities)) {
        if let Some(helped) = before.filter(|helped| *helped || before_by.may_blame(&rule)) {
            rule.take_back_outcome(helped);
        }
        let is_counted = |helped: &bool| *helped || (blamed && now_by.may_blame(&rule));
        if let Some(helped) = now.filter(is_counted) {
            rule.count_outcome(helped);
        }
        changes.push((rule.reflexion_id.clone(), counts(&rule)));
    }
    Ok(writer.update_all(Kind::Reflexion, &changes)?)
}

/// Counts a correction of an execution against the rules that it speaks of.
pub(super) fn count_correction(
    writer: &mut Writer,
    execution: &Execution,
    correction: &str,
    by: Witness,
) -> Result<(), Error> {
    let rules = rules_of(writer, execution)?;
    let concerned = rules
        .into_iter()
        .filter(|rule| by.may_blame(rule) && speaks_against(correction, rule));
    let changes: Vec<_> = concerned
        .map(|mut rule| {
            rule.count_outcome(false);
            (rule.reflexion_id.clone(), counts(&rule))
        })
        .collect();
    Ok(writer.update_all(Kind::Reflexion, &changes)?)
}

/// What a verdict says of the rules: that they helped, that they did not, or nothing.
fn helped(outcome: &Outcome) -> Option<bool> {
    match outcome {
        Outcome::Accepted => Some(true),
        Outcome::Rejected => Some(false),
        Outcome::PendingReview | Outcome::Error | Outcome::Other(_) => None,
    }
}

/// Says that a count was not kept.
pub(super) fn uncounted(error: &Error) -> String {
    format!(
        "what this says of the rules was not counted: {}",
        chain(error)
    )
}

/// The fields that use changes, as they are now; those that nothing was counted in are absent.
pub(super) fn counts(rule: &Reflexion) -> Vec<(&'static str, Value)> {
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

/// A count as the reference writes it: without a fraction where there is none.
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

/// The rules that a model was shown for an execution. One that was forgotten since is none any more.
fn rules_of(writer: &Writer, execution: &Execution) -> Result<Vec<Reflexion>, Error> {
    if execution.model_used.starts_with("offline") {
        return Ok(Vec::new());
    }
    let mut rules = Vec::new();
    for id in &execution.reflexions_injected {
        if let Some(entry) = writer.store().find(Kind::Reflexion, id)?
            && let Ok(rule) = entry.parse::<Reflexion>()
            // No prompt shows a candidate, whatever an execution says of it.
            && !rule.is_candidate()
        {
            rules.push(rule);
        }
    }
    Ok(rules)
}
