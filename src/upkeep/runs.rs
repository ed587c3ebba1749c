//! Table of the executions: the records in their prompts, and what statistics count.
//!
//! An execution has a kilobyte or more of input and output, which neither `why` nor `stats` needs. The table has some
//! terms for each, of which the lowest bits say what the others are: a hash, or a number without its lowest bits.

use chrono::{Datelike as _, NaiveDate};
use xxhash_rust::xxh3::xxh3_64;

use super::stats::day;
use crate::model::{Execution, Kind, Outcome};
use crate::store::workspace::Error;
use crate::store::{Scoped, Terms};

/// Version of the terms. A change invalidates saved tables.
const VERSION: u64 = 3;

/// Bits of a term that say what it is: one of the following.
pub(super) const TAG: u64 = 0b111;
/// Hash of a record in the prompt.
pub(super) const IN_PROMPT: u64 = 0;
/// Hash of the id.
const ID: u64 = 1;
pub(super) const COST: u64 = 2;
pub(super) const LATENCY: u64 = 3;
/// Input and output tokens, of a prompt without rules and with.
pub(super) const TOKENS: [u64; 2] = [4, 5];
/// Day and outcome, without rules and with.
pub(super) const JUDGED: [u64; 2] = [6, 7];

/// Outcomes by their number in a term. Every other is one without a verdict.
const OUTCOMES: [Outcome; 4] = [
    Outcome::PendingReview,
    Outcome::Accepted,
    Outcome::Rejected,
    Outcome::Error,
];

/// Opens the table.
pub(super) fn table(store: &Scoped) -> Result<Terms, Error> {
    store.terms(Kind::Execution, VERSION, &|text| {
        let run = serde_json::from_slice::<Execution>(text);
        run.map_or_else(|_| Vec::new(), |run| terms(&run))
    })
}

#[expect(clippy::cast_precision_loss, reason = "tokens of a question stay far below 2^52")]
fn terms(run: &Execution) -> Vec<u64> {
    let side = usize::from(!run.reflexions_injected.is_empty());
    let number = |tag: u64, value: Option<f64>| {
        let value = value.filter(|value| value.is_finite());
        value.map(|value| tagged(tag, value.to_bits()))
    };
    let usage = run.usage.as_ref();
    let tokens = usage.map(|usage| usage.input_tokens.saturating_add(usage.output_tokens) as f64);
    let outcome = OUTCOMES.iter().position(|one| *one == run.outcome);
    let day = day(&run.timestamp).map_or(0, |day| day.num_days_from_ce());
    let judged = u64::from(day.unsigned_abs()) << 8 | (outcome.unwrap_or(0) as u64) << 3;
    let records = run.injected().map(|(id, created)| in_prompt(id, created));
    let mut terms: Vec<u64> = records.collect();
    terms.extend([of_id(&run.execution_id), tagged(JUDGED[side], judged)]);
    terms.extend(number(COST, run.cost_usd));
    terms.extend(number(LATENCY, run.latency_ms));
    terms.extend(number(TOKENS[side], tokens));
    terms
}

fn tagged(tag: u64, value: u64) -> u64 {
    value & !TAG | tag
}

/// Term of the runs whose prompt held a record, under the id that it had then.
fn in_prompt(id: &str, created: &str) -> u64 {
    tagged(IN_PROMPT, xxh3_64(format!("{id} {created}").as_bytes()))
}

/// Terms of all runs whose prompt held a record, which may have had other ids before merges. A run that does not say
/// when its records were created counts for the one that has the id now.
pub(super) fn with_record(id: &str, former: &[String], created: &str) -> Vec<u64> {
    let ids = std::iter::once(id).chain(former.iter().map(String::as_str));
    let mut terms: Vec<u64> = ids.map(|id| in_prompt(id, created)).collect();
    terms.push(in_prompt(id, ""));
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// Term of the run with an id.
pub(super) fn of_id(id: &str) -> u64 {
    tagged(ID, xxh3_64(id.as_bytes()))
}

/// Returns the number in a term.
pub(super) fn number(term: u64) -> f64 {
    f64::from_bits(term & !TAG)
}

/// Returns the day and the outcome in a term.
pub(super) fn judged(term: u64) -> (Option<NaiveDate>, &'static Outcome) {
    let day = i32::try_from(term >> 8).ok().filter(|day| *day > 0);
    let outcome = &OUTCOMES[(term >> 3 & 0b11) as usize];
    (day.and_then(NaiveDate::from_num_days_from_ce_opt), outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_have_what_statistics_count() {
        let check = |more: serde_json::Value, judged_at: (Option<&str>, Outcome), side: usize| {
            let mut run = serde_json::json!({ "execution_id": "EXEC-1", "skill": "hr/x" });
            let fields = more.as_object().unwrap().clone();
            run.as_object_mut().unwrap().extend(fields);
            let terms = terms(&serde_json::from_value(run).unwrap());
            let with = |tag: u64| terms.iter().copied().find(|term| term & TAG == tag);
            assert_eq!(with(ID), Some(of_id("EXEC-1")));
            let (day, outcome) = judged(with(JUDGED[side]).unwrap());
            assert_eq!(day.map(|day| day.to_string()).as_deref(), judged_at.0);
            assert_eq!(*outcome, judged_at.1);
            let numbers = [COST, LATENCY, TOKENS[side]].map(|tag| with(tag).map(number));
            let records = with_record("REFL-001", &["REFL-009".to_owned()], "2026");
            (numbers, records.iter().any(|term| terms.contains(term)))
        };
        let nothing = serde_json::json!({ "outcome": "unheard of" });
        let found = check(nothing, (None, Outcome::PendingReview), 0);
        assert_eq!(found, ([None; 3], false));
        let all = serde_json::json!({
            "timestamp": "2026-02-20T23:30:00-05:00", "outcome": "accepted", "cost_usd": 0.0,
            "latency_ms": 12.5, "reflexions_injected": ["REFL-001"],
            "usage": { "input_tokens": 3, "output_tokens": 4 },
        });
        let found = check(all, (Some("2026-02-21"), Outcome::Accepted), 1);
        assert_eq!(found, ([Some(0.0), Some(12.5), Some(7.0)], true));
        let former = serde_json::json!({
            "outcome": "error", "reflexions_injected": ["REFL-009"], "injected_created_at": ["2026"],
        });
        let found = check(former, (None, Outcome::Error), 1);
        assert_eq!(found, ([None; 3], true));
        let another =
            serde_json::json!({ "outcome": "rejected", "reflexions_injected": ["REFL-009"] });
        let found = check(another, (None, Outcome::Rejected), 1);
        assert_eq!(found, ([None; 3], false));
    }
}
