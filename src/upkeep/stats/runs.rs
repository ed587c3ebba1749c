//! Runs of skills: a table of the records in their prompts and of what statistics count, and these counts.
//!
//! An execution has a kilobyte or more of input and output, which neither `why` nor `stats` needs. The table has some
//! terms for each, of which the lowest bits say what the others are: a hash, or a number without its lowest bits.

use std::collections::{HashMap, HashSet};

use chrono::{Datelike as _, NaiveDate};
use xxhash_rust::xxh3::xxh3_64;

use super::{Executions, Latency, Part, Weeks, day, mean, percentile, rounded};
use crate::model::{Correction, Execution, Kind, Outcome, Record as _, Trust};
use crate::store::workspace::{Error, dollars};
use crate::store::{Positions, Scoped, Terms};

/// Version of the terms. A change invalidates saved tables.
const VERSION: u64 = 3;

/// Bits of a term that say what it is: one of the following.
const TAG: u64 = 0b111;
/// Hash of a record in the prompt.
const IN_PROMPT: u64 = 0;
/// Hash of the id.
const ID: u64 = 1;
const COST: u64 = 2;
const LATENCY: u64 = 3;
/// Input and output tokens, of a prompt without rules and with.
const TOKENS: [u64; 2] = [4, 5];
/// Day and outcome, without rules and with.
const JUDGED: [u64; 2] = [6, 7];

/// Outcomes by their number in a term. Every other is one without a verdict.
const OUTCOMES: [Outcome; 4] = [
    Outcome::PendingReview,
    Outcome::Accepted,
    Outcome::Rejected,
    Outcome::Error,
];

/// Opens the table.
pub(in crate::upkeep) fn table(store: &Scoped) -> Result<Terms, Error> {
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
pub(in crate::upkeep) fn with_record(id: &str, former: &[String], created: &str) -> Vec<u64> {
    let ids = std::iter::once(id).chain(former.iter().map(String::as_str));
    let mut terms: Vec<u64> = ids.map(|id| in_prompt(id, created)).collect();
    terms.push(in_prompt(id, ""));
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// Term of the run with an id.
fn of_id(id: &str) -> u64 {
    tagged(ID, xxh3_64(id.as_bytes()))
}

/// Returns the number in a term.
fn number(term: u64) -> f64 {
    f64::from_bits(term & !TAG)
}

/// Returns the day and the outcome in a term.
fn judged(term: u64) -> (Option<NaiveDate>, &'static Outcome) {
    let day = i32::try_from(term >> 8).ok().filter(|day| *day > 0);
    let outcome = &OUTCOMES[(term >> 3 & 0b11) as usize];
    (day.and_then(NaiveDate::from_num_days_from_ce_opt), outcome)
}

/// Counters over runs, whose terms are read one by one.
#[derive(Debug, Default)]
pub(super) struct Runs {
    report: Executions,
    /// Numbers of right and of judged runs, without rules and with.
    judged: [(u64, u64); 2],
    /// Tokens of each run, without rules and with.
    tokens: [Vec<f64>; 2],
    latencies: Vec<f64>,
    /// Number of runs with a known cost.
    costs: u64,
    /// Number of prompts that held a record, by its term.
    prompts: HashMap<u64, u64>,
}

impl Runs {
    pub(super) fn of(
        store: &Scoped,
        executions: &Positions,
        corrections: &[Correction],
        weeks: &mut Weeks,
    ) -> Result<Self, Error> {
        let terms = table(store)?;
        // A correction passed on by an agent marks no run as wrong before a person approves it.
        let counting = corrections.iter();
        let counting = counting.filter(|one| one.trust() > Trust::Observed);
        let holding = |id: &str| terms.holding(of_id(id), usize::MAX);
        let corrected = counting.flat_map(|one| holding(&one.execution_id));
        let corrected: HashSet<u32> = corrected.collect();
        // Within a scope, the text of a run says if it is in it.
        let seen: Option<HashSet<u32>> = (!store.sees_all()).then(|| {
            let places = executions.places();
            let seen = places.filter(|place| terms.entry(*place).is_some());
            seen.collect()
        });
        let mut runs = Self::default();
        for (term, place) in terms.postings() {
            if seen.as_ref().is_none_or(|seen| seen.contains(&place)) {
                runs.take(term, || corrected.contains(&place), weeks);
            }
        }
        Ok(runs)
    }

    fn take(&mut self, term: u64, is_corrected: impl FnOnce() -> bool, weeks: &mut Weeks) {
        let tag = term & TAG;
        match tag {
            IN_PROMPT => *self.prompts.entry(term).or_default() += 1,
            COST => {
                *self.report.cost_usd.get_or_insert_default() += number(term);
                self.costs += 1;
            }
            LATENCY => self.latencies.push(number(term)),
            _ => {
                if let Some(side) = TOKENS.iter().position(|one| *one == tag) {
                    self.tokens[side].push(number(term));
                }
                if let Some(side) = JUDGED.iter().position(|one| *one == tag) {
                    self.judge(term, side, is_corrected, weeks);
                }
            }
        }
    }

    fn judge(
        &mut self,
        term: u64,
        side: usize,
        is_corrected: impl FnOnce() -> bool,
        weeks: &mut Weeks,
    ) {
        self.report.total += 1;
        let (day, outcome) = judged(term);
        let right = match outcome {
            Outcome::Error => {
                self.report.errors += 1;
                None
            }
            _ if is_corrected() => Some(false),
            Outcome::Rejected => Some(false),
            Outcome::Accepted => Some(true),
            Outcome::PendingReview | Outcome::Other(_) => {
                self.report.unjudged += 1;
                None
            }
        };
        weeks.count(day, |week| {
            week.judged += u64::from(right.is_some());
            week.right += u64::from(right == Some(true));
        });
        if let Some(right) = right {
            self.judged[side].0 += u64::from(right);
            self.judged[side].1 += 1;
        }
    }

    /// Returns the number of prompts that held a record.
    pub(super) fn prompts_with(&self, id: &str, former: &[String], created: &str) -> u64 {
        let terms = with_record(id, former, created);
        terms.iter().filter_map(|term| self.prompts.get(term)).sum()
    }

    pub(super) fn end(self) -> Executions {
        let [without, with] = self.judged.map(|(right, judged)| Part::new(right, judged));
        let [tokens_without, tokens_with] = self.tokens.map(|all| mean(&all).map(f64::round));
        let latency = Latency {
            p50: rounded(percentile(&self.latencies, 0.5)),
            p95: rounded(percentile(&self.latencies, 0.95)),
        };
        Executions {
            right_with_rules: with,
            right_without_rules: without,
            tokens_with_rules: tokens_with,
            tokens_without_rules: tokens_without,
            cost_usd: self.report.cost_usd.map(dollars),
            cost_unknown: self.report.total.saturating_sub(self.costs),
            latency_ms: (!self.latencies.is_empty()).then_some(latency),
            ..self.report
        }
    }
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
