//! Records of sessions and imports that wait: fixes, procedures, memories.

use std::collections::HashSet;

use crate::guard;
use crate::hints::fixes::{QUARANTINED, doubts};
use crate::learn::distil::LEARNED;
use crate::learn::fix::hazard::new_hazards;
use crate::model::{Fix, Kind, Memory, Origin, Procedure, Record as _, Trust};
use crate::store::TrustSnapshot;

use super::rules::without_command;
use super::waiting::{Backing, Part, Provenance, Waiting, WaitingKind};

/// Returns the entry about a fix, if it waits. An episode does not wait: it is no advice.
pub(super) fn of_fix(fix: &Fix, trust_snapshot: &TrustSnapshot) -> Option<Waiting> {
    let id = &fix.fix_id;
    if trust_snapshot.level(fix) != Trust::Observed {
        let doubt = doubts([fix]).pop()?;
        let command = format!("memctl memory forget {id}");
        let mut waiting = about(fix, WaitingKind::Doubtful, command);
        waiting.reason = without_command(&doubt);
        return Some(waiting);
    }
    if !fix.is_active() || fix.is_episode() {
        return None;
    }
    let command = format!("memctl memory approve {id}");
    if fix.status != QUARANTINED {
        return Some(about(fix, WaitingKind::Fix, command));
    }
    let mut waiting = about(fix, WaitingKind::Quarantined, command);
    waiting.reason = suspicion(fix, &waiting.parts);
    Some(waiting)
}

/// Reason why a fix is quarantined.
fn suspicion(fix: &Fix, parts: &[Part]) -> String {
    let mut reasons = parts
        .iter()
        .filter_map(|part| guard::admit(&part.text).quarantine);
    if let Some(reason) = reasons.next() {
        return reason;
    }
    let hazards = new_hazards(&fix.failing_code, &fix.working_code);
    let hazards: Vec<&str> = hazards.into_iter().collect();
    if hazards.is_empty() {
        "quarantined when it was learned; nothing in it is suspicious today".to_owned()
    } else {
        format!("dangerous: {}", hazards.join(", "))
    }
}

fn about(fix: &Fix, kind: WaitingKind, command: String) -> Waiting {
    let mut waiting = Waiting::about(kind, Kind::Fix, &fix.fix_id, command);
    waiting.title = fix.summary();
    let error = match fix.error_line.as_str() {
        "" => &fix.error_key,
        line => line,
    };
    waiting.part("error", error);
    waiting.part("failed", &fix.failing_code);
    waiting.part("worked", &fix.working_code);
    waiting.part("printed", &fix.success_output);
    waiting.advice.clone_from(&fix.judgement);
    let at = [&fix.last_seen, &fix.created_at];
    waiting.origin = came_from(&fix.origins, at);
    waiting.origin.tool.clone_from(&fix.tool);
    waiting.evidence = observed(&fix.origins, fix.occurrences);
    waiting.evidence.uses = fix.evidence();
    waiting.weight = weight(&waiting.evidence);
    waiting
}

/// Returns the entry about a procedure, if it waits.
pub(super) fn of_procedure(
    procedure: &Procedure,
    trust_snapshot: &TrustSnapshot,
) -> Option<Waiting> {
    let is_open = procedure.status == LEARNED && trust_snapshot.level(procedure) == Trust::Observed;
    if !is_open {
        return None;
    }
    let id = &procedure.procedure_id;
    let command = format!("memctl memory approve {id}");
    let mut waiting = Waiting::about(WaitingKind::Procedure, Kind::Procedure, id, command);
    let fields = procedure.fields();
    waiting.skill.clone_from(&procedure.skill);
    waiting.title = match fields.name.as_str() {
        "" => procedure.summary(),
        name => name.to_owned(),
    };
    waiting.part("failure", &fields.failure);
    waiting.part("cause", &fields.root_cause);
    let steps = (1..).zip(fields.steps());
    let steps: Vec<String> = steps.map(|(n, step)| format!("{n}. {step}")).collect();
    waiting.part("steps", &steps.join("\n"));
    waiting.advice.clone_from(&procedure.judgement);
    let at = [&procedure.last_seen, &procedure.created_at];
    waiting.origin = came_from(&procedure.origins, at);
    waiting.evidence = observed(&procedure.origins, procedure.occurrences);
    waiting.weight = weight(&waiting.evidence);
    Some(waiting)
}

/// Returns the entry about a memory, if it waits.
pub(super) fn of_memory(memory: &Memory, trust_snapshot: &TrustSnapshot) -> Option<Waiting> {
    if trust_snapshot.level(memory) != Trust::Observed {
        return None;
    }
    let command = format!("memctl memory approve {}", memory.id);
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

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of uses stay far below 2^52"
)]
fn weight(known: &Backing) -> [f64; 3] {
    let posterior = known.uses.posterior();
    [posterior, known.sessions as f64, known.times as f64]
}
