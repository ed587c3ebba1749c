//! Statistics on the value of memory: right runs with and without rules, outcomes of hints,
//! learning and reuse, cost and time.
//!
//! Unrecorded values are `None`, never 0. Observations are no proof: runs with rules may be right
//! more often for other reasons.
//!
//! The records are read in one pass over the store; `runs` counts those of skills. A week begins on Monday and ends on Sunday, in UTC. Weeks
//! without data are left out.
//!
//! Intervals of shares are Wilson's, which also hold for small counts and for shares near 0 and 1.
#![expect(clippy::cast_precision_loss, reason = "counts of what happened stay far below 2^52")]

pub(super) mod runs;

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveDateTime};
use runs::Runs;
use serde::{Deserialize, Serialize};

use crate::model::{
    CallAction, Correction, Evidence, Kind, Procedure, Receipts, Record as _, Reflexion, Session,
};
use crate::notes::find::rounded;
use crate::store::workspace::{Error, Workspace};
use crate::store::{Entry, LateCalls, Selection};

/// Statistics on the value of memory. Shares and rates are from 0 to 1.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct StatsReport {
    /// First and last day with data, in UTC; `None` without data.
    pub days: Option<[String; 2]>,
    /// The newest weeks with data, at most 12, oldest first.
    pub weeks: Vec<Week>,
    /// Runs of skills.
    pub executions: Executions,
    /// Sessions of agents.
    pub sessions: AgentSessions,
    /// Lessons told.
    pub hints: Hints,
    /// Learned records.
    pub learning: Learning,
    /// Most used rules, at most 20, most used first.
    pub rules: Vec<Used>,
    /// Most used lessons, at most 20, most used first.
    pub lessons: Vec<Used>,
    /// Rules that act on calls, and those that did, most told first.
    pub at_calls: Vec<RuleAtCalls>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Share with its interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Part {
    /// Numerator.
    pub count: u64,
    /// Denominator.
    pub of: u64,
    /// `count` divided by `of`; `None` if `of` is 0.
    pub share: Option<f64>,
    /// 95 % interval of the share (Wilson).
    pub interval: Option<[f64; 2]>,
}

impl Part {
    fn new(count: u64, of: u64) -> Self {
        let interval = share(count, of);
        Self {
            count,
            of,
            share: quotient(count, of),
            interval: interval.map(|ends| ends.map(rounded)),
        }
    }
}

/// Runs of skills.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Executions {
    /// Number of runs.
    pub total: u64,
    /// Number of runs without an answer.
    pub errors: u64,
    /// Number of runs without a verdict.
    pub unjudged: u64,
    /// Right runs among the judged runs with rules in their prompt. Right means accepted and not
    /// corrected; judged means accepted, rejected or corrected.
    pub right_with_rules: Part,
    /// Right runs among the judged runs without rules.
    pub right_without_rules: Part,
    /// Mean input and output tokens of a run with rules, if the provider reports them.
    pub tokens_with_rules: Option<f64>,
    /// Mean input and output tokens of a run without rules.
    pub tokens_without_rules: Option<f64>,
    /// Sum of the known costs, in US dollars.
    pub cost_usd: Option<f64>,
    /// Number of runs without a known cost.
    pub cost_unknown: u64,
    /// Median and 95th percentile of the latency, in milliseconds.
    pub latency_ms: Option<Latency>,
}

/// Latency in milliseconds.
#[derive(Debug, Clone, Copy, Default, Serialize, schemars::JsonSchema)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

/// Sessions of agents whose end a hook has seen.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct AgentSessions {
    /// Sessions that were told a rule or a lesson at a call.
    pub told: SessionMeans,
    /// Sessions that were not.
    pub not_told: SessionMeans,
}

/// Means of sessions.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct SessionMeans {
    /// Number of sessions.
    pub sessions: u64,
    /// Mean number of calls; `None` without a session.
    pub calls: Option<f64>,
    /// Mean number of failing calls.
    pub failed: Option<f64>,
    /// Mean number of tokens of the sessions whose host says it: input without the cache, and output.
    pub tokens: Option<f64>,
}

/// Lessons that agents were told, from the evidence of all lessons.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Hints {
    /// Share of the hints shown that a call followed with success: precision@k, where k is the number of
    /// hints shown at once.
    pub precision: Part,
    /// Number of hints shown, those that helped, and those that were followed in vain.
    pub evidence: Evidence,
}

/// Learned records.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Learning {
    /// Number of corrections.
    pub corrections: u64,
    /// Number of rules, without candidates.
    pub reflexions: u64,
    /// Number of rules that a test validated.
    pub validated: u64,
    /// Number of procedures: lessons, and patterns that nobody has worded yet.
    pub procedures: u64,
    /// Rules and lessons learned per week, on average; `None` for less than a week.
    pub a_week: Option<f64>,
    /// Rules and lessons that were in a prompt or told at a call, among all.
    pub reused: Part,
}

/// Rule or lesson that has been used.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Used {
    /// Id of the record.
    pub id: String,
    /// Skill of a rule, or tool of a lesson.
    pub about: String,
    /// Text of a rule or a lesson.
    pub text: String,
    /// Evidence from use.
    pub evidence: Evidence,
    /// Mean of the posterior, from 0 to 1.
    pub confidence: f64,
}

/// Rule that acts on calls. Each session counts at most once.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RuleAtCalls {
    /// Id of the rule.
    pub id: String,
    /// Text of the rule.
    pub rule: String,
    /// Answer to a call that breaks the rule.
    pub action: CallAction,
    /// Number of sessions, by what agents did.
    #[serde(flatten)]
    pub receipts: Receipts,
    /// `true` if it acts here: the rule is in use, and this user approved its patterns.
    pub active: bool,
}

impl StatsReport {
    /// Returns `true` if there is no data.
    pub fn is_empty(&self) -> bool {
        self.days.is_none()
    }
}

/// Maximum number of rules, and of lessons, in a report.
const TOLD: usize = 20;

/// Returns statistics on the value of memory, for all records in the scope.
pub fn stats(workspace: &Workspace) -> Result<StatsReport, Error> {
    let all = Selection::default();
    let mut weeks = Weeks::default();
    let corrections = workspace.store.list::<Correction>(&all)?;
    let executions = workspace.store.positions(Kind::Execution)?;
    let runs = Runs::of(
        &workspace.store, &executions, &corrections.records, &mut weeks,
    )?;
    let mut rules = workspace.store.list::<Reflexion>(&all)?;
    let procedures = workspace.store.list::<Procedure>(&all)?;
    let problems = [&corrections.problems, &rules.problems, &procedures.problems];
    let problems = executions.problems().chain(problems.into_iter().flatten());
    let mut warnings: Vec<String> = problems.map(ToString::to_string).collect();
    let procedures = procedures.records;
    warnings.extend(LateCalls::of(workspace.store.directory()).sentence());
    let at_calls = at_calls(workspace, &rules.records);
    rules.records.retain(|rule| !rule.is_candidate());
    let mut learning = Learning {
        corrections: corrections.records.len() as u64,
        reflexions: rules.records.len() as u64,
        validated: rules
            .records
            .iter()
            .filter(|rule| rule.validated_by_test)
            .count() as u64,
        procedures: procedures.len() as u64,
        ..Learning::default()
    };
    let of_rule = |rule: &Reflexion| {
        runs.prompts_with(&rule.reflexion_id, &rule.merged_from, &rule.created_at)
    };
    let of_lesson =
        |one: &Procedure| runs.prompts_with(&one.procedure_id, &one.merged_from, &one.created_at);
    let reused = rules.records.iter().filter(|rule| {
        let told = rule.evidence().shown + rule.receipts().told;
        told + of_rule(rule) > 0
    });
    let lessons = procedures
        .iter()
        .filter(|one| one.evidence().shown + of_lesson(one) > 0);
    let reused = reused.count() + lessons.count();
    learning.reused = Part::new(reused as u64, learning.reflexions + learning.procedures);
    let rule_times = rules.records.iter().map(|rule| &rule.created_at);
    let lesson_times = procedures.iter().map(|one| &one.created_at);
    for time in rule_times.chain(lesson_times) {
        weeks.count(day(time), |week| week.learned += 1);
    }
    let sessions = sessions(workspace, &mut weeks)?;
    learning.a_week = weeks.a_week(learning.reflexions + learning.procedures);
    let hints = hints(&procedures);
    let rules = rules.records.iter().map(|rule| {
        let mut evidence = rule.evidence();
        evidence.shown = evidence.shown.max(of_rule(rule));
        used(&rule.reflexion_id, &rule.skill, &rule.rule, evidence)
    });
    let rules = most_used(rules);
    let lessons = procedures.iter().map(|one| {
        let tool = one.pattern.as_ref().map_or("", |pattern| &pattern.tool);
        used(&one.procedure_id, tool, &one.summary(), one.evidence())
    });
    let lessons = most_used(lessons);
    Ok(StatsReport {
        days: weeks.days(),
        weeks: weeks.newest(),
        executions: runs.end(),
        sessions,
        hints,
        learning,
        rules,
        lessons,
        at_calls,
        warnings,
    })
}

/// Counts in the record of an agent's session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SessionData {
    native_id: String,
    steps: u64,
    failures: u64,
    hints_shown: u64,
    hints_helped: u64,
    rules_at_calls: u64,
    rules_heeded: u64,
    tokens: Option<f64>,
}

/// Means of the sessions of agents, told something at a call and not.
fn sessions(workspace: &Workspace, weeks: &mut Weeks) -> Result<AgentSessions, Error> {
    let (mut told, mut not_told) = (Vec::new(), Vec::new());
    let take = &mut |entry: Entry| {
        let Ok(session) = entry.parse::<Session>() else {
            return;
        };
        let data = serde_json::from_str(session.session_data.get()).ok();
        let Some(data) = data.filter(|data: &SessionData| !data.native_id.is_empty()) else {
            return;
        };
        weeks.count(day(&session.started_at), |week| {
            week.sessions += 1;
            week.calls += data.steps;
            week.failed += data.failures;
            week.told += data.rules_at_calls;
            week.heeded += data.rules_heeded;
            week.hints += data.hints_shown;
            week.helped += data.hints_helped;
        });
        match data.hints_shown + data.rules_at_calls {
            0 => not_told.push(data),
            _ => told.push(data),
        }
    };
    // A record that cannot be read is named where sessions are listed.
    let all = Selection::default();
    drop(workspace.store.each_entry(Kind::Session, &all, take)?);
    let means = |all: &[SessionData]| {
        let of = |value: &dyn Fn(&SessionData) -> Option<f64>| {
            mean(&all.iter().filter_map(value).collect::<Vec<_>>()).map(rounded)
        };
        SessionMeans {
            sessions: all.len() as u64,
            calls: of(&|one| Some(one.steps as f64)),
            failed: of(&|one| Some(one.failures as f64)),
            tokens: of(&|one| one.tokens).map(f64::round),
        }
    };
    Ok(AgentSessions {
        told: means(&told),
        not_told: means(&not_told),
    })
}

/// Rules that act on calls, most told first.
fn at_calls(workspace: &Workspace, rules: &[Reflexion]) -> Vec<RuleAtCalls> {
    let own = workspace.store.approvals().own_words();
    let all = rules.iter().filter(|rule| !rule.seen_by.is_empty());
    let all = all.map(|rule| RuleAtCalls {
        id: rule.reflexion_id.clone(),
        rule: rule.rule.clone(),
        action: rule.action,
        receipts: rule.receipts(),
        active: rule.action != CallAction::Off && own.lets_act(rule),
    });
    let mut all: Vec<RuleAtCalls> = all.collect();
    all.retain(|rule| rule.active || rule.receipts.told > 0);
    all.sort_by_key(|rule| std::cmp::Reverse(rule.receipts.told));
    all
}

fn used(id: &str, about: &str, text: &str, evidence: Evidence) -> Used {
    Used {
        id: id.to_owned(),
        about: about.to_owned(),
        text: text.to_owned(),
        evidence,
        confidence: rounded(evidence.posterior()),
    }
}

fn most_used(all: impl Iterator<Item = Used>) -> Vec<Used> {
    let mut all: Vec<Used> = all
        .filter(|used| used.evidence != Evidence::default())
        .collect();
    all.sort_by_key(|used| {
        let Evidence {
            shown,
            helped,
            harmed,
        } = used.evidence;
        std::cmp::Reverse((shown, helped + harmed))
    });
    all.truncate(TOLD);
    all
}

/// Sum of the evidence of lessons.
fn hints(procedures: &[Procedure]) -> Hints {
    let mut evidence = Evidence::default();
    for one in procedures.iter().map(Procedure::evidence) {
        evidence.shown += one.shown;
        evidence.helped += one.helped;
        evidence.harmed += one.harmed;
    }
    // Another program may have counted outcomes only.
    let outcomes = evidence.helped + evidence.harmed;
    Hints {
        precision: Part::new(evidence.helped, evidence.shown.max(outcomes)),
        evidence,
    }
}

fn quotient(count: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| rounded(count as f64 / of as f64))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Percentile by nearest rank; 0 if `values` is empty.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a length lies within it"
)]
fn percentile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    let rank = (share * values.len() as f64).ceil().max(1.0) as usize;
    let place = rank.min(values.len()).saturating_sub(1);
    if values.is_empty() {
        return 0.0;
    }
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}

/// Quantile of the normal distribution at 97.5 %.
const Z: f64 = 1.959_963_984_540_054;

/// Interval of a share, `count` of `of`; `None` if `of` is 0.
pub(crate) fn share(count: u64, of: u64) -> Option<[f64; 2]> {
    if of == 0 {
        return None;
    }
    let (n, p) = (of as f64, count as f64 / of as f64);
    let middle = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    Some([
        ((middle - half) / scale).max(0.0),
        ((middle + half) / scale).min(1.0),
    ])
}

/// Maximum number of weeks in a report: the newest.
const SHOWN: usize = 12;

/// Counts of a week. Runs of skills count by the day of the run, whenever they were judged.
#[derive(Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Week {
    /// Monday of the week, in UTC.
    pub week: String,
    /// Sessions of agents that began in it and whose end a hook has seen.
    pub sessions: u64,
    /// Calls of these sessions.
    pub calls: u64,
    /// Failing calls of these sessions.
    pub failed: u64,
    /// Rules that these sessions were told at calls.
    pub told: u64,
    /// Rules among them that no later call of the session broke.
    pub heeded: u64,
    /// Lessons that these sessions were told.
    pub hints: u64,
    /// Lessons among them that a call followed with success.
    pub helped: u64,
    /// Judged runs of skills.
    pub judged: u64,
    /// Right runs among them.
    pub right: u64,
    /// New rules and lessons.
    pub learned: u64,
}

/// Parses the day of a time in a record. Python writes some times without a zone, and means UTC.
fn day(text: &str) -> Option<NaiveDate> {
    let with_zone = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc().date_naive());
    let plain =
        || NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").map(|time| time.date());
    // A year far away comes from a broken clock, and would stretch every average.
    let day = with_zone.or_else(|_| plain()).ok()?;
    (2000..2200).contains(&day.year()).then_some(day)
}

/// Counts by week, and the days between which they lie.
#[derive(Debug, Default)]
struct Weeks {
    /// First and last day on which something happened, in UTC.
    days: Option<[NaiveDate; 2]>,
    by_monday: BTreeMap<NaiveDate, Week>,
}

impl Weeks {
    /// Counts something of a day. Without a readable time it counts in no week.
    fn count(&mut self, day: Option<NaiveDate>, count: impl FnOnce(&mut Week)) {
        let Some(day) = day else { return };
        let [first, last] = self.days.unwrap_or([day, day]);
        self.days = Some([first.min(day), last.max(day)]);
        let since_monday = Days::new(day.weekday().num_days_from_monday().into());
        let monday = day.checked_sub_days(since_monday).unwrap_or(day);
        count(self.by_monday.entry(monday).or_default());
    }

    /// First and last day with data.
    fn days(&self) -> Option<[String; 2]> {
        self.days.map(|days| days.map(|day| day.to_string()))
    }

    /// Average per week; `None` for less than a week.
    fn a_week(&self, count: u64) -> Option<f64> {
        let [first, last] = self.days?;
        let days = u64::try_from((last - first).num_days() + 1).ok()?;
        quotient(count * 7, days).filter(|_| days >= 7)
    }

    /// The newest weeks with data, oldest first.
    fn newest(self) -> Vec<Week> {
        let older = self.by_monday.len().saturating_sub(SHOWN);
        let newest = self.by_monday.into_iter().skip(older);
        let named = newest.map(|(monday, week)| Week {
            week: monday.to_string(),
            ..week
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<[f64; 2]>, expected: [f64; 2]) {
        let found = found.unwrap();
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 6e-4, "{found:?} {expected:?}");
        }
    }

    #[test]
    fn percentiles_are_values() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        let check = |share: f64, expected: f64| {
            assert!(
                (percentile(&values, share) - expected).abs() < 1e-9,
                "{share}"
            );
        };
        check(0.0, 1.0);
        check(0.5, 3.0);
        check(0.95, 5.0);
        assert!(percentile(&[], 0.5).abs() < 1e-9);
    }

    #[test]
    fn intervals_are_those_of_the_literature() {
        // Newcombe 1998: 81 of 263.
        near(share(81, 263), [0.2553, 0.3662]);
        near(share(0, 20), [0.0, 0.1611]);
        near(share(20, 20), [0.8389, 1.0]);
        assert_eq!(share(0, 0), None);
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

    #[test]
    fn rates_are_by_week() {
        let mut weeks = Weeks::default();
        weeks.count(day("2026-01-14T10:00:00Z"), |_| {});
        weeks.count(day("someday"), |_| {});
        assert_eq!(weeks.a_week(1), None);
        weeks.count(day("2026-01-01T10:00:00Z"), |_| {});
        assert_eq!(weeks.a_week(3), Some(1.5));
    }

    #[test]
    fn a_week_is_from_monday_to_sunday_and_old_weeks_are_left_out() {
        let mut weeks = Weeks::default();
        for (day_of_2026, count) in [("01-05", 1), ("01-11", 2), ("01-12", 4)] {
            let at = day(&format!("2026-{day_of_2026}T23:00:00Z"));
            weeks.count(at, |week| week.learned += count);
        }
        let learned = |weeks: Weeks| -> Vec<(String, u64)> {
            let all = weeks.newest().into_iter();
            all.map(|week| (week.week, week.learned)).collect()
        };
        let two = [("2026-01-05".to_owned(), 3), ("2026-01-12".to_owned(), 4)];
        assert_eq!(learned(weeks), two);
        let mut weeks = Weeks::default();
        let first = NaiveDate::from_ymd_opt(2026, 1, 5).unwrap();
        for n in 0..20 {
            weeks.count(first.checked_add_days(Days::new(7 * n)), |week| {
                week.learned = n;
            });
        }
        let newest = learned(weeks);
        assert_eq!((newest.len(), newest[0].1, newest[11].1), (SHOWN, 8, 19));
    }
}
