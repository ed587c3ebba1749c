//! Records of sessions and imports that wait: procedures and memories.

use std::collections::HashSet;

use crate::lessons::recovery::episodes::LEARNED;
use crate::lessons::telling::evidence::doubts;
use crate::model::{Kind, Memory, Origin, Procedure, QUARANTINED, Record as _, Trust};
use crate::store::TrustSnapshot;

use super::rules::without_command;
use super::waiting::{Backing, Part, Provenance, Waiting, WaitingKind};

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
        let mut waiting = about(procedure, WaitingKind::Doubtful, command);
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
        return Some(about(procedure, WaitingKind::Procedure, command));
    }
    let mut waiting = about(procedure, WaitingKind::Quarantined, command);
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

fn about(procedure: &Procedure, kind: WaitingKind, command: String) -> Waiting {
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
    waiting.origin.at.clone_from(&memory.created_at);
    waiting.evidence.times = 1;
    Some(waiting)
}

fn came_from(origins: &[Origin], at: [&String; 2]) -> Provenance {
    let newest = origins.last();
    let known = at.into_iter().find(|at| !at.is_empty());
    Provenance {
        session: newest.map(|at| at.session.clone()).unwrap_or_default(),
        project: newest.map(|at| at.workspace.clone()).unwrap_or_default(),
        at: known.cloned().unwrap_or_default(),
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
