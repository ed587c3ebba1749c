//! Rules that wait: candidates, rules of others, and rules with evidence against them.

use crate::model::{CANDIDATE, CallPattern, Kind, Record as _, Reflexion, Trust};
use crate::rules::acting;
use crate::store::TrustSnapshot;

use super::waiting::{Backing, Provenance, Waiting, WaitingKind};

/// Returns the entries about a rule.
pub(super) fn of_rule(rule: &Reflexion, trust_snapshot: &TrustSnapshot) -> Vec<Waiting> {
    if rule.is_candidate() && rule.superseded_by.is_empty() {
        let is_decided = rule.judgement.as_ref().is_some_and(is_of_person);
        return (!is_decided)
            .then(|| candidate(rule, ""))
            .into_iter()
            .collect();
    }
    if !rule.is_in_use() {
        return Vec::new();
    }
    if trust_snapshot.level(rule) == Trust::Observed {
        let reason = "came with the files of others, and nobody has approved it here";
        return vec![candidate(rule, reason)];
    }
    let id = &rule.reflexion_id;
    let mut found = Vec::new();
    if would_retire(rule) {
        let mut waiting = about(
            rule,
            WaitingKind::Doubtful,
            format!("memctl memory pin {id}"),
        );
        "the next outcome against it takes it out of prompts".clone_into(&mut waiting.reason);
        found.push(waiting);
    }
    if let Some(sentence) = acting::ignored([rule]).pop() {
        let command = format!("memctl approve {id} --action ask");
        let mut waiting = about(rule, WaitingKind::Doubtful, command);
        waiting.reason = without_command(&sentence);
        found.push(waiting);
    }
    if !rule.breaks_test_ids.is_empty() {
        let skill = &rule.skill;
        let mut waiting = about(rule, WaitingKind::Test, format!("memctl test {skill}"));
        waiting.reason = format!(
            "these tests fail with it: {}",
            rule.breaks_test_ids.join(", ")
        );
        found.push(waiting);
    }
    found
}

/// Returns `true` if a person has judged.
pub(super) fn is_of_person(judgement: &crate::model::Judgement) -> bool {
    judgement.by == super::super::reject::PERSON
}

/// Removes the command at the end of a sentence: the entry has its own.
pub(super) fn without_command(sentence: &str) -> String {
    let end = sentence.find(": memctl").unwrap_or(sentence.len());
    sentence[..end].to_owned()
}

/// Returns `true` if one more outcome against the rule retires it.
fn would_retire(rule: &Reflexion) -> bool {
    let mut after = rule.clone();
    after.count_outcome(false);
    after.is_retired()
}

fn candidate(rule: &Reflexion, reason: &str) -> Waiting {
    let id = &rule.reflexion_id;
    let command = format!("memctl approve {id}");
    let mut waiting = about(rule, WaitingKind::Candidate, command);
    reason.clone_into(&mut waiting.reason);
    if rule.status == CANDIDATE {
        waiting.advice.clone_from(&rule.judgement);
    }
    waiting
}

/// The patterns of a rule, one per line.
fn patterns(patterns: &[CallPattern]) -> String {
    let line = |pattern: &CallPattern| {
        let mut line = format!("{}: {}", pattern.on.name(), pattern.matches);
        let places = pattern.within.join("  or: ");
        let conditions = [
            ("within", &places),
            ("unless", &pattern.unless),
            ("after", &pattern.after),
        ];
        for (name, text) in conditions {
            if !text.is_empty() {
                line.extend(["  ", name, ": ", text]);
            }
        }
        line
    };
    let lines: Vec<String> = patterns.iter().map(line).collect();
    lines.join("\n")
}

/// Entry about a rule, with its texts.
pub(super) fn about(rule: &Reflexion, kind: WaitingKind, command: String) -> Waiting {
    let mut waiting = Waiting::about(kind, Kind::Reflexion, &rule.reflexion_id, command);
    waiting.skill = rule.skill().map(str::to_owned);
    waiting.title = rule.summary();
    let said = rule.said.last();
    if let Some(said) = said {
        waiting.part("quote", &said.quote);
        waiting.part("after", &said.after);
    }
    waiting.part("rule", &rule.rule);
    waiting.part("applies when", &rule.applies_when);
    waiting.part("mistake", &rule.mistake);
    waiting.part("seen by", &patterns(&rule.seen_by));
    waiting.part("receipts", &rule.receipts().words());
    waiting.patterns.clone_from(&rule.seen_by);
    waiting.origin = Provenance {
        source: rule.source.clone(),
        session: said.map(|said| said.session.clone()).unwrap_or_default(),
        project: said.map(|said| said.workspace.clone()).unwrap_or_default(),
        at: rule.created_at.clone(),
        ..Provenance::default()
    };
    let times = rule.said.len().max(1 + rule.also_corrected_by.len());
    waiting.evidence = Backing {
        uses: rule.evidence(),
        times: times as u64,
        sessions: rule.sessions() as u64,
        confidence: rule.confidence,
    };
    #[expect(clippy::cast_precision_loss, reason = "counts of messages stay far below 2^52")]
    let (sessions, times) = (rule.sessions() as f64, times as f64);
    waiting.weight = match kind {
        // The rule with the least utility is the most urgent.
        WaitingKind::Doubtful | WaitingKind::Test => [-rule.utility(), 0.0, 0.0],
        _ => [sessions, times, rule.confidence.unwrap_or(0.5)],
    };
    waiting
}
