//! Entries about one record: candidate rules, rules of others, rules with evidence against them, and
//! procedures and memories that nobody has approved.

use std::collections::HashSet;

use crate::lessons::storage::patterns::LEARNED;
use crate::lessons::telling::evidence::doubts;
use crate::model::{
    CANDIDATE, CallPattern, Kind, Memory, Origin, Procedure, QUARANTINED, Record as _, Reflexion,
    Trust, utc,
};
use crate::review::queue::waiting::{Backing, Part, Provenance, Waiting, WaitingKind};
use crate::rules::acting;
use crate::store::TrustSnapshot;

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
    judgement.by == crate::review::reject::PERSON
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
        at: utc(&rule.created_at),
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

/// Returns the entry about a procedure, if it waits.
pub(super) fn of_procedure(
    procedure: &Procedure,
    trust_snapshot: &TrustSnapshot,
) -> Option<Waiting> {
    let id = &procedure.procedure_id;
    let trust = trust_snapshot.level(procedure);
    if trust != Trust::Observed {
        let doubt = doubts([&procedure.clone().with_trust(trust)]).pop()?;
        let command = format!("memctl forget {id}");
        let mut waiting = about_procedure(procedure, WaitingKind::Doubtful, command);
        waiting.reason = without_command(&doubt);
        return Some(waiting);
    }
    let is_quarantined = procedure.state == QUARANTINED;
    let is_open = procedure.status == LEARNED && (procedure.is_active() || is_quarantined);
    if !is_open {
        return None;
    }
    let command = format!("memctl approve {id}");
    if !is_quarantined {
        return Some(about_procedure(procedure, WaitingKind::Procedure, command));
    }
    let mut waiting = about_procedure(procedure, WaitingKind::Quarantined, command);
    waiting.reason = suspicion(&waiting.parts);
    Some(waiting)
}

/// Reason why a procedure is quarantined.
fn suspicion(parts: &[Part]) -> String {
    let mut reasons = parts
        .iter()
        .filter_map(|part| memctl_redact::admit(&part.text).quarantine);
    reasons.next().unwrap_or_else(|| {
        "quarantined when it was learned; nothing in it is suspicious today".to_owned()
    })
}

fn about_procedure(procedure: &Procedure, kind: WaitingKind, command: String) -> Waiting {
    let id = &procedure.procedure_id;
    let mut waiting = Waiting::about(kind, Kind::Procedure, id, command);
    waiting.skill.clone_from(&procedure.skill);
    waiting.title = procedure.summary();
    waiting.part("lesson", &procedure.lesson);
    if let Some(applies) = &procedure.applies {
        waiting.part("errors", &applies.errors.join("\n"));
        waiting.part("commands", &applies.commands.join("\n"));
        waiting.part("not", &applies.not.join("\n"));
        waiting.part("scope", applies.scope.name());
    }
    if let Some(pattern) = &procedure.pattern {
        let error = match pattern.error_line.as_str() {
            "" => &pattern.error_key,
            line => line,
        };
        waiting.part("error", error);
        waiting.part("failed", &pattern.failing_code);
        waiting.part("worked", &pattern.working_code);
        waiting.part("printed", &pattern.success_output);
        waiting.origin.tool.clone_from(&pattern.tool);
    } else {
        let fields = procedure.fields();
        waiting.part("failure", &fields.failure);
        waiting.part("cause", &fields.root_cause);
        let steps = (1..).zip(fields.steps());
        let steps: Vec<String> = steps.map(|(n, step)| format!("{n}. {step}")).collect();
        waiting.part("steps", &steps.join("\n"));
    }
    waiting.advice.clone_from(&procedure.judgement);
    let at = [&procedure.last_seen, &procedure.created_at];
    let tool = std::mem::take(&mut waiting.origin.tool);
    waiting.origin = came_from(&procedure.origins, at);
    waiting.origin.tool = tool;
    waiting.evidence = observed(&procedure.origins, procedure.occurrences);
    waiting.evidence.uses = procedure.evidence();
    waiting.weight = weight(&waiting.evidence);
    waiting
}

/// Returns the entry about a memory, if it waits.
pub(super) fn of_memory(memory: &Memory, trust_snapshot: &TrustSnapshot) -> Option<Waiting> {
    if trust_snapshot.level(memory) != Trust::Observed {
        return None;
    }
    let command = format!("memctl approve {}", memory.id);
    let mut waiting = Waiting::about(WaitingKind::Memory, Kind::Memory, &memory.id, command);
    waiting.title = memory.summary();
    waiting.part("memory", &memory.content);
    waiting.part("type", memory.memory_type.name());
    waiting.origin.at = utc(&memory.created_at);
    waiting.evidence.times = 1;
    Some(waiting)
}

fn came_from(origins: &[Origin], at: [&String; 2]) -> Provenance {
    let newest = origins.last();
    let known = at.into_iter().find(|at| !at.is_empty());
    Provenance {
        session: newest.map(|at| at.session.clone()).unwrap_or_default(),
        project: newest.map(|at| at.workspace.clone()).unwrap_or_default(),
        at: known.map(|at| utc(at)).unwrap_or_default(),
        ..Provenance::default()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast to an integer saturates, and a count below zero is none"
)]
fn observed(origins: &[Origin], occurrences: Option<f64>) -> Backing {
    let sessions: HashSet<&str> = origins.iter().map(|at| at.session.as_str()).collect();
    Backing {
        times: occurrences.unwrap_or(1.0) as u64,
        sessions: sessions.len() as u64,
        ..Backing::default()
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of uses stay far below 2^52")]
fn weight(known: &Backing) -> [f64; 3] {
    let posterior = known.uses.posterior();
    [posterior, known.sessions as f64, known.times as f64]
}
