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
use crate::model::{Fix, Kind, Memory, Procedure, Record as _, Trust};
use crate::store::{Entry, Writer};

use super::find::level;
use super::fixes::{QUARANTINED, prepare};
use super::{Engine, Error, mended};

/// A record as it is trusted now.
#[derive(Debug, Serialize)]
pub struct Approved {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// How it stood before: `observed`, `quarantined`, `approved` or `user`.
    pub before: &'static str,
    /// How far it may be believed now.
    pub trust: Trust,
    /// What it says: the names of its fields and their text.
    #[serde(skip)]
    pub says: Vec<(&'static str, String)>,
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
        for entry in &entries {
            let counted = level(writer.store(), entry) != Trust::Observed;
            let record = match entry.kind {
                Kind::Fix => approve_fix(&mut writer, entry)?,
                Kind::Procedure => approve_procedure(&mut writer, entry)?,
                Kind::Memory => approve_memory(&mut writer, entry)?,
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
        id: entry.id.clone(),
        kind: Kind::Fix,
        before,
        trust: Trust::Approved,
        says,
        warnings,
    })
}

fn approve_procedure(writer: &mut Writer, entry: &Entry) -> Result<Approved, Error> {
    let procedure: Procedure = writer.store().get(&entry.id)?;
    let says = vec![("procedure", procedure.content())];
    let was_approved = procedure.trust() == Trust::Approved;
    if !was_approved {
        writer.update(Kind::Procedure, &entry.id, &[("trust", json!("approved"))])?;
    }
    Ok(Approved {
        id: entry.id.clone(),
        kind: Kind::Procedure,
        before: if was_approved { "approved" } else { "observed" },
        trust: Trust::Approved,
        warnings: suspicions(&entry.id, &says),
        says,
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
        id: entry.id.clone(),
        kind: Kind::Memory,
        before,
        trust: Trust::Approved,
        warnings: suspicions(&entry.id, &says),
        says,
    })
}

/// A record that a person has said: it counts already.
fn said(entry: &Entry) -> Approved {
    let document = super::find::document(entry);
    let content = document
        .map(|document| document.content)
        .unwrap_or_default();
    Approved {
        id: entry.id.clone(),
        kind: entry.kind,
        before: "user",
        trust: Trust::User,
        says: vec![(entry.kind.name(), content.trim().to_owned())],
        warnings: Vec::new(),
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
