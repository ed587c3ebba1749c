//! Verdicts that need no model: duplicates, and fixes that are of no use.
//!
//! Only what is certain is decided here. Two fixes are duplicates if error, subject and difference
//! are the same. A fix is of no use if it changes nothing, is dangerous, or did not help.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::hints::ranking::is_demoted;
use crate::learn::conflict::{Relation, Statement, relation};
use crate::learn::error_key::normalised;
use crate::learn::fix::difference::Difference;
use crate::learn::fix::hazard::new_hazards;
use crate::learn::triage::{Decision, Rewording};
use crate::model::{Fix, Kind, OFFLINE, Procedure, Reflexion, Verdict};
use crate::workspace::{Error, Workspace};

use super::ConsolidateReport;
use super::apply::apply;
use super::candidates::{Candidates, data};

/// Number of times that a hint is shown before it counts as never followed.
const CHANCES: u64 = 5;

/// Merges duplicates and retires fixes of no use. With `dry_run`, nothing is written.
pub fn tidy(workspace: &Workspace, dry_run: bool) -> Result<ConsolidateReport, Error> {
    let candidates = Candidates::read(&workspace.store)?;
    let mut decisions: Vec<Decision> = candidates.fixes.iter().filter_map(useless).collect();
    let gone: BTreeSet<String> = decisions.iter().map(|one| one.id.clone()).collect();
    let stays = |fix: &&Fix| !gone.contains(&fix.fix_id);
    decisions.extend(same_fixes(
        &candidates.approved,
        candidates.fixes.iter().filter(stays),
    ));
    decisions.extend(same_procedures(&candidates.alone));
    decisions.extend(same_rules(&candidates.in_use, &candidates.rules));
    let mut report = ConsolidateReport {
        cost_usd: Some(0.0),
        dry_run,
        ..ConsolidateReport::default()
    };
    apply(workspace, &decisions, OFFLINE, dry_run, &mut report)?;
    Ok(report)
}

/// Verdict on a fix that is of no use.
fn useless(fix: &Fix) -> Option<Decision> {
    let evidence = fix.evidence();
    let hazards = new_hazards(&fix.failing_code, &fix.working_code);
    let reason = if Difference::between(&fix.failing_code, &fix.working_code).is_empty() {
        "the call that worked is the call that failed".to_owned()
    } else if let Some(hazard) = hazards.first() {
        format!("dangerous: {hazard}")
    } else if is_demoted(evidence) {
        format!(
            "it harmed {} of {} times",
            evidence.harmed,
            evidence.helped + evidence.harmed
        )
    } else if evidence.shown >= CHANCES && evidence.helped == 0 {
        format!("shown {} times, and it never helped", evidence.shown)
    } else {
        return None;
    };
    Some(decision(
        &fix.fix_id,
        Kind::Fix,
        Verdict::Discard,
        None,
        reason,
    ))
}

/// Error, subject and difference of a fix.
type Meaning = (String, Vec<String>, Vec<String>, Vec<String>);

fn meaning(fix: &Fix) -> Meaning {
    let difference = Difference::between(&fix.failing_code, &fix.working_code);
    let sorted = |mut words: Vec<String>| {
        words.sort_unstable();
        words
    };
    (
        normalised(&fix.error_key),
        sorted(fix.subject.clone()),
        sorted(difference.added),
        sorted(difference.dropped),
    )
}

/// Merges fixes with the same meaning into the approved one, else into the one with most evidence.
fn same_fixes<'a>(approved: &'a [Fix], observed: impl Iterator<Item = &'a Fix>) -> Vec<Decision> {
    let mut groups: BTreeMap<Meaning, Vec<&Fix>> = BTreeMap::new();
    for fix in observed {
        groups.entry(meaning(fix)).or_default().push(fix);
    }
    let approved: HashMap<Meaning, &Fix> = approved.iter().map(|fix| (meaning(fix), fix)).collect();
    let mut decisions = Vec::new();
    for (meaning, mut group) in groups {
        let weight = |fix: &Fix| (fix.evidence().helped, fix.origins.len());
        // The oldest of equals stays, so that its id keeps its meaning.
        group.sort_by(|a, b| weight(b).cmp(&weight(a)).then(a.fix_id.cmp(&b.fix_id)));
        let kept = match approved.get(&meaning) {
            Some(fix) => *fix,
            None => group.remove(0),
        };
        // Knowledge of one project says nothing about another.
        let same = group.into_iter().filter(|fix| fix.scope == kept.scope);
        decisions.extend(same.map(|fix| {
            let reason = "same error, same difference".to_owned();
            let into = Some(kept.fix_id.clone());
            decision(&fix.fix_id, Kind::Fix, Verdict::Merge, into, reason)
        }));
    }
    decisions
}

/// Merges procedures with the same steps for the same failure into the oldest.
fn same_procedures(procedures: &[Procedure]) -> Vec<Decision> {
    let mut known: HashMap<(Option<&str>, String), &str> = HashMap::new();
    let mut decisions = Vec::new();
    for procedure in procedures {
        let data = data(procedure);
        let steps = data["learned_procedure_steps"].to_string();
        let failure = data["initial_failure_summary"].as_str().unwrap_or_default();
        let meaning = [normalised(failure), steps].join("\n").to_lowercase();
        let id = procedure.procedure_id.as_str();
        let first = *known
            .entry((procedure.skill.as_deref(), meaning))
            .or_insert(id);
        if first != id {
            let reason = "same failure, same steps".to_owned();
            let into = Some(first.to_owned());
            decisions.push(decision(id, Kind::Procedure, Verdict::Merge, into, reason));
        }
    }
    decisions
}

/// Notes for candidate rules that repeat a rule in use, or an older candidate, of the same skill.
fn same_rules(in_use: &[Reflexion], candidates: &[Reflexion]) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for (place, rule) in candidates.iter().enumerate() {
        if rule.judgement.is_some() {
            continue;
        }
        let new = Statement::of(&rule.rule);
        let earlier = in_use.iter().chain(&candidates[..place]);
        let mut same = earlier.filter(|known| {
            known.skill == rule.skill
                && relation(&Statement::of(&known.rule), &new, None)
                    .is_some_and(|found| found.relation == Relation::Duplicate)
        });
        if let Some(known) = same.next() {
            let reason = "the rules say the same".to_owned();
            let into = Some(known.reflexion_id.clone());
            let id = &rule.reflexion_id;
            decisions.push(decision(id, Kind::Reflexion, Verdict::Merge, into, reason));
        }
    }
    decisions
}

fn decision(
    id: &str,
    kind: Kind,
    verdict: Verdict,
    into: Option<String>,
    reason: String,
) -> Decision {
    Decision {
        id: id.to_owned(),
        kind,
        verdict,
        into,
        reason,
        rewording: Rewording::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix(id: &str, failing: &str, working: &str) -> Fix {
        Fix {
            fix_id: id.to_owned(),
            error_key: "error: unexpected argument <name> found".to_owned(),
            failing_code: failing.to_owned(),
            working_code: working.to_owned(),
            ..Fix::default()
        }
    }

    #[test]
    fn a_fix_without_a_difference_danger_or_success_is_of_no_use() {
        let check = |fix: &Fix, expected: &str| {
            let reason = useless(fix)
                .map(|decision| decision.reason)
                .unwrap_or_default();
            assert!(
                reason.contains(expected) && reason.is_empty() == expected.is_empty(),
                "{reason}"
            );
        };
        let good = fix("FIX-001", "cargo run --fast", "cargo run -- --fast");
        check(&good, "");
        check(&fix("FIX-001", "make", "make"), "call that failed");
        check(&fix("FIX-001", "git push", "git push --force"), "dangerous");
        let counted = |shown, helped, harmed| Fix {
            shown: Some(shown),
            helped: Some(helped),
            harmed: Some(harmed),
            ..good.clone()
        };
        check(&counted(4.0, 0.0, 0.0), "");
        check(&counted(5.0, 1.0, 0.0), "");
        check(&counted(5.0, 0.0, 0.0), "never helped");
        check(&counted(6.0, 0.0, 6.0), "harmed 6 of 6");
    }

    #[test]
    fn fixes_of_one_error_and_difference_are_merged_into_the_one_with_most_evidence() {
        let observed = [
            fix("FIX-001", "cargo run --fast", "cargo run -- --fast"),
            Fix {
                helped: Some(2.0),
                ..fix("FIX-002", "cargo run --quick x", "cargo run -- --quick x")
            },
            fix("FIX-003", "cargo run --fast", "cargo run --release"),
        ];
        let merged = |approved: &[Fix]| -> Vec<(String, String)> {
            let decisions = same_fixes(approved, observed.iter());
            let pair = |one: Decision| (one.id, one.into.unwrap_or_default());
            decisions.into_iter().map(pair).collect()
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(merged(&[]), [pair("FIX-001", "FIX-002")]);
        let approved = [fix("FIX-009", "cargo run --fast", "cargo run -- --fast")];
        assert_eq!(
            merged(&approved),
            [pair("FIX-002", "FIX-009"), pair("FIX-001", "FIX-009")]
        );
        let other = Fix {
            error_key: "error: no bin target".to_owned(),
            ..observed[0].clone()
        };
        assert!(same_fixes(&[other], observed[..1].iter()).is_empty());
    }
}
