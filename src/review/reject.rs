//! Rejects a record that was learned or proposed: a person found that it is of no use.
//!
//! The record stays in its file with the reason, so that nothing proposes it again. A rejected
//! procedure is retired. `memctl forget` deletes a record instead.

use serde::Serialize;
use serde_json::{Value, json};

use crate::lessons::telling::table::prepare;
use crate::model::{Judgement, Kind, Procedure, Record as _, Reflexion, Trust, Verdict};
use crate::rules::hearing::end_suspension;
use crate::store::workspace::records::{entry, level, locate};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings};

/// Author of a judgement that a person made.
pub(super) const PERSON: &str = "user";

/// Outcome of [`reject()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Rejected {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Record on one line.
    pub summary: String,
    /// Reason of the rejection, as stored.
    pub reason: String,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Rejects a candidate rule or an observed procedure, given by id or id prefix.
///
/// # Errors
///
/// [`Error::Refused`] for a record of another kind, and for one that counts: `memctl forget`
/// deletes it.
pub fn reject(workspace: &Workspace, id: &str, reason: &str) -> Result<Rejected, Error> {
    let (kind, id) = locate(&workspace.store, id)?;
    let mut writer = workspace.writer()?;
    let entry = entry(writer.store(), kind, &id)?;
    let is_observed = level(writer.store(), &entry) == Trust::Observed;
    let redacted = memctl_redact::redact(reason.trim());
    let reason = redacted.text.into_owned();
    let judgement = Judgement {
        verdict: Verdict::Discard,
        into: String::new(),
        reason: reason.clone(),
        by: PERSON.to_owned(),
        at: workspace.timestamp(),
    };
    let mut changes: Vec<(&str, Value)> = vec![("judgement", json!(judgement))];
    let summary = match kind {
        Kind::Procedure if is_observed => {
            changes.push(("state", json!("retired")));
            writer.store().get::<Procedure>(&id)?.summary()
        }
        Kind::Reflexion => {
            let rule: Reflexion = writer.store().get(&id)?;
            if !rule.is_candidate() {
                return Err(not_rejectable(kind, &id));
            }
            end_suspension(&mut writer, &rule)?;
            rule.summary()
        }
        _ => return Err(not_rejectable(kind, &id)),
    };
    writer.update(kind, &id, &changes)?;
    if kind == Kind::Procedure {
        prepare(writer.store())?;
    }
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    warnings.extend(redaction_warning(redacted.found));
    Ok(Rejected {
        id,
        kind,
        summary,
        reason,
        warnings,
    })
}

fn not_rejectable(kind: Kind, id: &str) -> Error {
    let why = "only candidate rules and observed procedures are proposals";
    let message = format!("{kind} `{id}` cannot be rejected: {why}");
    Error::input(message, format!("memctl forget {id}"))
}
