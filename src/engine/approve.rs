//! Lifts what was observed to what a person stands for.
//!
//! Everything is looked up before anything is written: with one wrong id nothing is approved. What
//! made a record suspicious is said again, and it is the person who decides.
//!
//! Deliberately absent: approval of executions, which is a verdict on an output (`review`), and of
//! anything that is not named by its id.

use serde::Serialize;
use serde_json::json;

use crate::guard;
use crate::model::{
    CANDIDATE, Correction, Fix, Kind, Memory, Procedure, Record as _, Reflexion, Trust,
};
use crate::store::{Entry, Writer};

use super::find::level;
use super::fixes::{QUARANTINED, prepare};
use super::passed_on::{Lifted, lift};
use super::{Engine, Error, mended};

/// A record as it is trusted now.
#[derive(Debug, Serialize)]
pub struct Approved {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// How it stood before: `observed`, `quarantined`, `candidate`, `approved` or `user`.
    pub before: &'static str,
    /// How far it may be believed now.
    pub trust: Trust,
    /// What it says: the names of its fields and their text.
    #[serde(skip)]
    pub says: Vec<(&'static str, String)>,
    /// Of a candidate: the guardrail files that it was added to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<String>,
    /// Of a candidate: the files that hold its test.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// Why a person should look twice, and what went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Approves records, by their ids or the beginnings of them.
    pub fn approve(&self, ids: &[String]) -> Result<Vec<Approved>, Error> {
        let mut named: Vec<(Kind, String)> = Vec::new();
        for id in ids {
            let found = self.locate(id)?;
            if matches!(found.0, Kind::Execution | Kind::Session) {
                return Err(Error::NotApprovable {
                    id: found.1,
                    kind: found.0,
                });
            }
            if !named.contains(&found) {
                named.push(found);
            }
        }
        let mut writer = self.writer()?;
        let mut entries = Vec::new();
        for (kind, id) in &named {
            let entry = writer.store().find(*kind, id)?;
            entries.push(entry.ok_or_else(|| crate::store::Error::NotFound {
                kind: Some(*kind),
                id: id.clone(),
                similar: Vec::new(),
            })?);
        }
        let mut approved = Vec::new();
        let mut lifted = Vec::new();
        for entry in &entries {
            let counted = level(writer.store(), entry) != Trust::Observed;
            let record = match entry.kind {
                Kind::Fix => approve_fix(&mut writer, entry)?,
                Kind::Procedure => approve_procedure(&mut writer, entry)?,
                Kind::Memory => approve_memory(&mut writer, entry)?,
                Kind::Reflexion => approve_rule(&mut writer, entry, &mut lifted)?,
                Kind::Correction => approve_correction(&mut writer, entry)?,
                _ => said(entry),
            };
            writer.vouch(record.kind, &record.id)?;
            approved.push(match record.before {
                // The file says so; nobody here did.
                "approved" | "user" if !counted => Approved {
                    warnings: suspicions(&record.id, &record.says),
                    before: "observed",
                    ..record
                },
                _ => record,
            });
        }
        if approved.iter().any(|record| record.kind == Kind::Fix) {
            prepare(writer.store())?;
        }
        let trouble: Vec<String> = mended(writer.take_mended()).collect();
        if let Some(first) = approved.first_mut() {
            first.warnings.extend(trouble);
        }
        drop(writer);
        for rule in lifted {
            let of_it = |record: &&mut Approved| record.id == rule.reflexion_id;
            if let Some(record) = approved.iter_mut().find(of_it) {
                let Lifted { guardrails, tests } = self.follow_up(&rule, &mut record.warnings);
                (record.guardrails, record.tests) = (guardrails, tests);
            }
        }
        Ok(approved)
    }
}

fn approve_fix(writer: &mut Writer, entry: &Entry) -> Result<Approved, Error> {
    let fix: Fix = writer.store().get(&entry.id)?;
    let says = vec![
        ("error", fix.error_key.clone()),
        ("wrong", fix.failing_code.clone()),
        ("correct", fix.working_code.clone()),
        ("printed", fix.success_output.clone()),
    ];
    let was_quarantined = fix.status == QUARANTINED;
    let mut warnings = suspicions(&entry.id, &says);
    if was_quarantined && warnings.is_empty() {
        warnings.push(format!(
            "`{}` was quarantined when it was learnt; nothing in it is suspicious today",
            entry.id
        ));
    }
    if !fix.is_active() {
        warnings.push(format!(
            "`{}` is retired, since it stopped working: it is found, and not hinted",
            entry.id
        ));
    }
    let before = match (was_quarantined, fix.trust()) {
        (true, _) => QUARANTINED,
        (false, Trust::Approved) => "approved",
        (false, _) => "observed",
    };
    let mut changes = Vec::new();
    if fix.trust() != Trust::Approved {
        changes.push(("trust", json!("approved")));
    }
    if was_quarantined {
        changes.push(("status", json!("active")));
    }
    if !changes.is_empty() {
        writer.update(Kind::Fix, &entry.id, &changes)?;
    }
    Ok(Approved {
        says,
        warnings,
        ..looked_at(entry, before)
    })
}

fn approve_procedure(writer: &mut Writer, entry: &Entry) -> Result<Approved, Error> {
    let procedure: Procedure = writer.store().get(&entry.id)?;
    let says = vec![("procedure", procedure.content())];
    let was_approved = procedure.trust() == Trust::Approved;
    if !was_approved {
        writer.update(Kind::Procedure, &entry.id, &[("trust", json!("approved"))])?;
    }
    let before = if was_approved { "approved" } else { "observed" };
    Ok(Approved {
        warnings: suspicions(&entry.id, &says),
        says,
        ..looked_at(entry, before)
    })
}

/// A note counts already where a person has said it here; one that was imported counts from now on.
fn approve_memory(writer: &mut Writer, entry: &Entry) -> Result<Approved, Error> {
    let memory: Memory = writer.store().get(&entry.id)?;
    let before = match memory.trust() {
        Trust::User => return Ok(said(entry)),
        Trust::Approved => "approved",
        Trust::Observed => {
            writer.update(Kind::Memory, &entry.id, &[("trust", json!("approved"))])?;
            "observed"
        }
    };
    let says = vec![("memory", memory.content)];
    Ok(Approved {
        warnings: suspicions(&entry.id, &says),
        says,
        ..looked_at(entry, before)
    })
}

/// A rule counts already where a person has given it. A candidate counts from now on, and `lifted` gets it:
/// its guardrail and its test are made when the writer is gone.
fn approve_rule(
    writer: &mut Writer,
    entry: &Entry,
    lifted: &mut Vec<Reflexion>,
) -> Result<Approved, Error> {
    let mut rule: Reflexion = writer.store().get(&entry.id)?;
    let mut says = vec![
        ("rule", rule.rule.clone()),
        ("applies when", rule.applies_when.clone()),
        ("mistake", rule.mistake.clone()),
    ];
    // The test will ask for it.
    let from = writer.store().find(Kind::Correction, &rule.correction_id)?;
    let from = from.and_then(|entry| entry.parse::<Correction>().ok());
    if let Some(expected) = from.and_then(|correction| correction.expected_output) {
        says.push(("expected", expected.get().to_owned()));
    }
    let before = match rule.trust() {
        Trust::User => return Ok(said(entry)),
        Trust::Approved => "approved",
        Trust::Observed => {
            let was_candidate = rule.is_candidate();
            lift(writer, &mut rule)?;
            if was_candidate {
                lifted.push(rule);
                CANDIDATE
            } else {
                "observed"
            }
        }
    };
    let warnings = suspicions(&entry.id, &says);
    Ok(Approved {
        says,
        warnings,
        ..looked_at(entry, before)
    })
}

/// A correction that an agent has passed on: from now on it says what was wrong, as if a person had.
fn approve_correction(writer: &mut Writer, entry: &Entry) -> Result<Approved, Error> {
    let correction: Correction = writer.store().get(&entry.id)?;
    let before = match correction.trust() {
        Trust::User => return Ok(said(entry)),
        Trust::Approved => "approved",
        Trust::Observed => {
            writer.update(Kind::Correction, &entry.id, &[("trust", json!("approved"))])?;
            "observed"
        }
    };
    let mut says = vec![("correction", correction.user_correction.clone())];
    if let Some(expected) = &correction.expected_output {
        says.push(("expected", expected.get().to_owned()));
    }
    let warnings = suspicions(&entry.id, &says);
    Ok(Approved {
        says,
        warnings,
        ..looked_at(entry, before)
    })
}

/// A record that counts from now on, or did already.
fn looked_at(entry: &Entry, before: &'static str) -> Approved {
    Approved {
        id: entry.id.clone(),
        kind: entry.kind,
        before,
        trust: Trust::Approved,
        says: Vec::new(),
        guardrails: Vec::new(),
        tests: Vec::new(),
        warnings: Vec::new(),
    }
}

/// A record that a person has said: it counts already.
fn said(entry: &Entry) -> Approved {
    let document = super::find::document(entry);
    let content = document
        .map(|document| document.content)
        .unwrap_or_default();
    Approved {
        trust: Trust::User,
        says: vec![(entry.kind.name(), content.trim().to_owned())],
        ..looked_at(entry, "user")
    }
}

/// Why the texts of a record are suspicious, each reason once.
fn suspicions(id: &str, says: &[(&'static str, String)]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for (_, text) in says {
        if let Some(reason) = guard::admit(text).quarantine
            && !reasons.contains(&reason)
        {
            reasons.push(reason);
        }
    }
    let warned = reasons.into_iter();
    warned
        .map(|reason| format!("`{id}` is suspicious: {reason}"))
        .collect()
}
