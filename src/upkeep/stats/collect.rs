//! Collects statistics: reads each record once, and counts.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use crate::model::{
    CallAction, Correction, Evidence, Kind, Outcome, Procedure, Record as _, Reflexion, Session,
    Trust,
};
use crate::store::{Entry, LateCalls, Positions, Scoped, Selection};

use super::{
    AgentSessions, Executions, Hints, Latency, Learning, Part, RuleAtCalls, SessionMeans,
    StatsReport, Used, Weeks, day, mean, percentile, rounded,
};
use crate::store::workspace::{Error, Workspace, dollars};
use crate::upkeep::runs as table;

/// Maximum number of rules, and of lessons, in a report.
const TOLD: usize = 20;

/// Returns statistics on the value of memory, for all records in the scope.
pub fn stats(workspace: &Workspace) -> Result<StatsReport, Error> {
    let all = Selection::default();
    let mut weeks = Weeks::default();
    let mut warnings = Vec::new();
    let corrections = workspace.store.list::<Correction>(&all)?;
    let executions = workspace.store.positions(Kind::Execution)?;
    let problems = executions.problems().cloned().collect();
    let runs = Runs::of(
        &workspace.store, &executions, &corrections.records, &mut weeks,
    )?;
    let mut rules = workspace.store.list::<Reflexion>(&all)?;
    let procedures = workspace.store.list::<Procedure>(&all)?;
    for problem in [
        problems, corrections.problems, rules.problems, procedures.problems,
    ]
    .concat()
    {
        warnings.push(problem.to_string());
    }
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

/// Counters over runs, whose terms are read one by one.
#[derive(Debug, Default)]
struct Runs {
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
    fn of(
        store: &Scoped,
        executions: &Positions,
        corrections: &[Correction],
        weeks: &mut Weeks,
    ) -> Result<Self, Error> {
        let terms = table::table(store)?;
        // A correction passed on by an agent marks no run as wrong before a person approves it.
        let counting = corrections.iter();
        let counting = counting.filter(|one| one.trust() > Trust::Observed);
        let holding = |id: &str| terms.holding(table::of_id(id), usize::MAX);
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
        let tag = term & table::TAG;
        match tag {
            table::IN_PROMPT => *self.prompts.entry(term).or_default() += 1,
            table::COST => {
                *self.report.cost_usd.get_or_insert_default() += table::number(term);
                self.costs += 1;
            }
            table::LATENCY => self.latencies.push(table::number(term)),
            _ => {
                if let Some(side) = table::TOKENS.iter().position(|one| *one == tag) {
                    self.tokens[side].push(table::number(term));
                }
                if let Some(side) = table::JUDGED.iter().position(|one| *one == tag) {
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
        let (day, outcome) = table::judged(term);
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
    fn prompts_with(&self, id: &str, former: &[String], created: &str) -> u64 {
        let terms = table::with_record(id, former, created);
        terms.iter().filter_map(|term| self.prompts.get(term)).sum()
    }

    fn end(self) -> Executions {
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
