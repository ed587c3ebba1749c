//! Table of the executions: the records in their prompts, and the facts that statistics count.
//!
//! An execution has a kilobyte or more of input and output, which neither `why` nor `stats` needs. The table
//! has 40 bytes for each. New executions are added to it when it is read.

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveDateTime};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::{Execution, Kind, Outcome};
use crate::store::workspace::Error;
use crate::store::{Scheme, Scoped, Terms};

/// Version of the terms and the facts. A change invalidates saved tables.
const VERSION: u64 = 2;
/// Number of bytes of the facts of a run.
const WIDTH: usize = 40;

/// Opens the table.
pub(super) fn table(store: &Scoped) -> Result<Terms, Error> {
    let of = &|text: &[u8]| {
        let Ok(run) = serde_json::from_slice::<Execution>(text) else {
            return (Vec::new(), Vec::new());
        };
        let terms = run.injected().map(|(id, created)| term(id, created));
        (terms.collect(), RunFacts::of(&run).to_bytes())
    };
    let scheme = Scheme {
        version: VERSION,
        width: WIDTH,
        of,
    };
    store.terms_and_facts(Kind::Execution, scheme)
}

/// Term of the runs whose prompt held a record, under the id that it had then.
fn term(id: &str, created: &str) -> u64 {
    if created.is_empty() {
        return number(id);
    }
    number(&format!("{id} {created}"))
}

/// Terms of all runs whose prompt held a record, which may have had other ids before merges. A run that does not say
/// when its records were created counts for the one that has the id now.
pub(super) fn terms(id: &str, former: &[String], created: &str) -> Vec<u64> {
    let ids = std::iter::once(id).chain(former.iter().map(String::as_str));
    let mut terms: Vec<u64> = ids.map(|id| term(id, created)).collect();
    terms.push(number(id));
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// Number of an id.
pub(super) fn number(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

/// Verdict on the answer of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunVerdict {
    /// There is no answer.
    Error = 1,
    /// Nobody has judged it.
    Unjudged = 2,
    /// A person found it wrong.
    Wrong = 3,
    /// A person found it right.
    Right = 4,
}

/// Facts of a run that statistics count.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunFacts {
    /// [`number`] of its id.
    pub(super) id: u64,
    /// Day in UTC, if its time can be read.
    pub(super) day: Option<NaiveDate>,
    pub(super) verdict: RunVerdict,
    /// `true` if its prompt held a rule.
    pub(super) with_rules: bool,
    pub(super) cost_usd: Option<f64>,
    pub(super) latency_ms: Option<f64>,
    /// Input and output tokens.
    pub(super) tokens: Option<f64>,
}

impl RunFacts {
    fn of(run: &Execution) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "tokens of a question stay far below 2^52")]
        let tokens = |input: u64, output: u64| input.saturating_add(output) as f64;
        let usage = run.usage.as_ref();
        Self {
            id: number(&run.execution_id),
            day: day(&run.timestamp),
            verdict: match run.outcome {
                Outcome::Error => RunVerdict::Error,
                Outcome::Rejected => RunVerdict::Wrong,
                Outcome::Accepted => RunVerdict::Right,
                Outcome::PendingReview | Outcome::Other(_) => RunVerdict::Unjudged,
            },
            with_rules: !run.reflexions_injected.is_empty(),
            cost_usd: run.cost_usd.filter(|cost| cost.is_finite()),
            latency_ms: run.latency_ms.filter(|ms| ms.is_finite()),
            tokens: usage.map(|usage| tokens(usage.input_tokens, usage.output_tokens)),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let day = self.day.map_or(0, |day| day.num_days_from_ce());
        let [verdict, with_rules] = [self.verdict as u8, u8::from(self.with_rules)];
        let mut bytes = self.id.to_le_bytes().to_vec();
        bytes.extend_from_slice(&day.to_le_bytes());
        bytes.extend_from_slice(&[verdict, with_rules, 0, 0]);
        for number in [self.cost_usd, self.latency_ms, self.tokens] {
            bytes.extend_from_slice(&number.unwrap_or(f64::NAN).to_le_bytes());
        }
        bytes
    }

    /// Returns the facts of a run; `None` for an execution that cannot be read.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; WIDTH] = bytes.try_into().ok()?;
        let number = |at: usize| {
            let number = f64::from_le_bytes(*bytes[at..].first_chunk()?);
            Some(number).filter(|number| number.is_finite())
        };
        Some(Self {
            id: u64::from_le_bytes(*bytes.first_chunk()?),
            day: match i32::from_le_bytes(*bytes[8..].first_chunk()?) {
                0 => None,
                day => NaiveDate::from_num_days_from_ce_opt(day),
            },
            verdict: match bytes[12] {
                1 => RunVerdict::Error,
                2 => RunVerdict::Unjudged,
                3 => RunVerdict::Wrong,
                4 => RunVerdict::Right,
                _ => return None,
            },
            with_rules: bytes[13] != 0,
            cost_usd: number(16),
            latency_ms: number(24),
            tokens: number(32),
        })
    }
}

/// Parses the day of a time in a record. Python writes some times without a zone, and means UTC.
pub(super) fn day(text: &str) -> Option<NaiveDate> {
    let with_zone = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc().date_naive());
    let plain =
        || NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").map(|time| time.date());
    // A year far away comes from a broken clock, and would stretch every average.
    let day = with_zone.or_else(|_| plain()).ok()?;
    (2000..2200).contains(&day.year()).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_kept_in_forty_bytes() {
        let check = |more: serde_json::Value, expected: RunFacts| {
            let mut run = serde_json::json!({ "execution_id": "EXEC-1", "skill": "hr/x" });
            let fields = more.as_object().unwrap().clone();
            run.as_object_mut().unwrap().extend(fields);
            let run: Execution = serde_json::from_value(run).unwrap();
            let facts = RunFacts::of(&run);
            assert_eq!(facts, expected);
            assert_eq!(facts.to_bytes().len(), WIDTH);
            assert_eq!(RunFacts::from_bytes(&facts.to_bytes()), Some(facts));
        };
        let nothing = RunFacts {
            id: number("EXEC-1"),
            day: None,
            verdict: RunVerdict::Unjudged,
            with_rules: false,
            cost_usd: None,
            latency_ms: None,
            tokens: None,
        };
        check(serde_json::json!({}), nothing.clone());
        let all = serde_json::json!({
            "timestamp": "2026-02-20T23:30:00-05:00", "outcome": "accepted", "cost_usd": 0.0,
            "latency_ms": 12.5, "reflexions_injected": ["REFL-001"],
            "usage": { "input_tokens": 3, "output_tokens": 4 },
        });
        let expected = RunFacts {
            day: NaiveDate::from_ymd_opt(2026, 2, 21),
            verdict: RunVerdict::Right,
            with_rules: true,
            cost_usd: Some(0.0),
            latency_ms: Some(12.5),
            tokens: Some(7.0),
            ..nothing
        };
        check(all, expected);
        assert_eq!(RunFacts::from_bytes(&[0; WIDTH]), None);
    }

    #[test]
    fn times_with_and_without_a_zone() {
        let check = |text: &str, expected: Option<&str>| {
            let found = day(text).map(|day| day.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("2026-02-20T23:30:00-05:00", Some("2026-02-21"));
        check("2026-02-20T12:43:41.681444", Some("2026-02-20"));
        check("2026-02-20T12:43:41", Some("2026-02-20"));
        check("20 February", None);
        check("0001-01-01T00:00:00Z", None);
    }
}
