//! Procedures that nobody has worded yet: the pattern of a recovery, in the words of the calls.
//!
//! An existing pattern gains one occurrence for each session and step that showed it. A pattern with a
//! tombstone is not stored again.
//!
//! Deliberately absent: recoveries without a pattern. The session file has them.

use crate::lessons::recovery::difference::Change;
use crate::lessons::storage::advice::covers;
use crate::lessons::storage::table::prepare;
use crate::model::text::one_line;
use crate::model::{
    EPISODE, Kind, OBSERVED, Origin, Pattern, Procedure, QUARANTINED, Record as _, Trust,
};
use crate::store::Error::Locked;
use crate::store::workspace::{Error, Workspace, raw, stamp, warnings_of};
use crate::store::{Scoped, Selection, Tombstone, Writer, same_project};
use chrono::{DateTime, Utc};
use memctl_files::json::compact;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Status of a procedure in the source document.
pub(crate) const LEARNED: &str = "procedure_learned";
/// Status of a session without a failure in the source document.
pub(crate) const NO_FAILURE: &str = "No_Failure_Detected";
/// Status of a session whose failures teach nothing.
pub(crate) const NOTHING: &str = "nothing_learned";

/// Outcome for a procedure that was to be stored.
#[derive(Debug)]
pub(crate) enum Stored {
    /// It is new: its id.
    New(String),
    /// A known one was seen again: its id.
    Again(String),
    /// This occurrence of a known one is counted already: its id.
    Counted(String),
    /// It was deleted on purpose.
    Forgotten(Tombstone),
}

/// Stores the pattern of a recovery, or counts up the procedure that has the same failure with the same
/// change, or what a person has approved and that says it. `existing` are the stored procedures, read once while the
/// lock is held.
pub(crate) fn store(
    writer: &mut Writer,
    existing: &mut Vec<Procedure>,
    pattern: &Pattern,
    origin: &Origin,
    now: DateTime<Utc>,
) -> Result<Stored, Error> {
    let line = one_line(&pattern.error_line);
    let change = Change::of(pattern);
    let trust = writer.store().trust_snapshot();
    let is_in_force = |own: &Procedure| {
        own.is_active()
            && own.is_of(&|name| same_project(name, &origin.workspace))
            && trust.level(own) != Trust::Observed
    };
    let is_same = |own: &Procedure| {
        if is_in_force(own) && covers(own, pattern) {
            return true;
        }
        let Some(own) = &own.pattern else {
            return false;
        };
        let is_equal = || {
            one_line(&own.failing_code) == one_line(&pattern.failing_code)
                && one_line(&own.working_code) == one_line(&pattern.working_code)
        };
        let is_alike = || {
            let Some((own, new)) = Change::of(own).zip(change.as_ref()) else {
                return false;
            };
            own == *new || own.is_of_other_names(new, &line)
        };
        one_line(&own.error_line) == line && (is_equal() || is_alike())
    };
    let procedure = Procedure {
        state: state(pattern).to_owned(),
        origins: vec![origin.clone()],
        ..procedure(pattern.clone(), &stamp(now))?
    };
    store_unless(writer, existing, procedure, &is_same, now)
}

/// Stores a procedure, or counts up the one that is the same.
pub(crate) fn store_unless(
    writer: &mut Writer,
    existing: &mut Vec<Procedure>,
    procedure: Procedure,
    is_same: &dyn Fn(&Procedure) -> bool,
    now: DateTime<Utc>,
) -> Result<Stored, Error> {
    if let Some(twin) = existing.iter_mut().find(|one| is_same(one)) {
        let origin = procedure.origins.first();
        let is_counted = |origin| twin.origins.iter().any(|own| own.is_same(origin));
        if origin.is_some_and(is_counted) {
            return Ok(Stored::Counted(twin.procedure_id.clone()));
        }
        count_up(writer, twin, origin, &procedure.last_seen)?;
        twin.occurrences = Some(twin.occurrences.unwrap_or(1.0) + 1.0);
        twin.origins.extend(origin.cloned());
        return Ok(Stored::Again(twin.procedure_id.clone()));
    }
    let content = procedure.content();
    if let Some(removed) = writer.store().tombstone_of(Kind::Procedure, &content)? {
        return Ok(Stored::Forgotten(removed));
    }
    let stored = writer.append(procedure, now)?;
    let id = stored.procedure_id.clone();
    existing.push(stored);
    Ok(Stored::New(id))
}

/// Returns the stored procedures.
pub(crate) fn existing(writer: &Writer) -> Result<Vec<Procedure>, Error> {
    Ok(writer
        .store()
        .list::<Procedure>(&Selection::default())?
        .records)
}

/// Counts up a procedure that was seen again, at a place if there is one.
pub(crate) fn count_up(
    writer: &mut Writer,
    existing: &Procedure,
    origin: Option<&Origin>,
    seen: &str,
) -> Result<(), Error> {
    let times = existing.occurrences.unwrap_or(1.0) + 1.0;
    let mut changes = vec![("occurrences", raw(&times)?), ("last_seen", raw(&seen)?)];
    if let Some(origin) = origin {
        let origins: Vec<&Origin> = existing.origins.iter().chain([origin]).collect();
        changes.push(("origins", raw(&origins)?));
    }
    writer.update(Kind::Procedure, &existing.procedure_id, &changes)?;
    Ok(())
}

/// Procedure that was learned now, with the eight fields of the source document.
pub(crate) fn learned(data: Box<RawValue>, by: &str, now: &str) -> Procedure {
    Procedure {
        created_at: now.to_owned(),
        status: LEARNED.to_owned(),
        data,
        distilled_by: by.to_owned(),
        occurrences: Some(1.0),
        last_seen: now.to_owned(),
        trust: OBSERVED.to_owned(),
        ..Procedure::default()
    }
}

/// Procedure of a pattern, in the words of the calls.
pub(crate) fn procedure(pattern: Pattern, now: &str) -> Result<Procedure, Error> {
    let own = learned(document(&pattern)?, "offline", now);
    Ok(Procedure {
        worded_by: "program".to_owned(),
        pattern: Some(pattern),
        ..own
    })
}

/// The eight fields of the source document, in the words of the calls. Nobody has named the cause.
fn document(pattern: &Pattern) -> Result<Box<RawValue>, Error> {
    let error = pattern.line();
    // A record of an agent itself names no tool.
    let tool = match pattern.tool.as_str() {
        "" => "code",
        tool => tool,
    };
    raw(&json!({
        "procedure_name": pattern.error_key,
        "semantic_description": format!("{tool} failed: {error}"),
        "initial_failure_summary": format!("{}\n{error}", pattern.failing_code),
        "identified_root_cause": error,
        "successful_intervention": pattern.working_code,
        "learned_procedure_steps": [pattern.working_code],
        "critical_contextual_cues": [error],
        "example_scenario_abstract": "",
    }))
}

/// State of a new pattern: quarantined if a text looks like prompt injection.
fn state(pattern: &Pattern) -> &'static str {
    let texts = [
        &pattern.error_line, &pattern.failing_code, &pattern.working_code,
    ];
    let is_suspicious = |text: &&String| memctl_redact::admit(text).quarantine.is_some();
    if texts.iter().any(is_suspicious) {
        QUARANTINED
    } else {
        EPISODE
    }
}

/// Stores the pattern of a running session. Does nothing if another process holds the lock, or the records are
/// elsewhere; the end of the session learns it then.
pub(crate) fn learn_at_once(
    store: &Scoped,
    pattern: &Pattern,
    session: &str,
    project: &str,
    now: DateTime<Utc>,
    random: fn() -> String,
) -> Result<(), Error> {
    if store.is_apart()? {
        return Ok(());
    }
    let mut writer = match store.write(&mut || random()) {
        Err(Locked { .. }) => return Ok(()),
        opened => opened?,
    };
    let origin = Origin {
        session: session.to_owned(),
        workspace: project.to_owned(),
        live: true,
        ..Origin::default()
    };
    let mut existing = existing(&writer)?;
    self::store(&mut writer, &mut existing, pattern, &origin, now)?;
    prepare(writer.store())
}

/// Value of `distilled_by` for a procedure from an external analyst.
const ELSEWHERE: &str = "elsewhere";

/// Maximum size of a document, in bytes; a model reads the procedure at each use.
const LONGEST: usize = 64 << 10;

/// Outcome of [`add_procedure()`].
#[derive(Debug, Serialize)]
pub struct ProcedureReport {
    /// Id of the procedure.
    pub id: String,
    /// `true` if the procedure is new; `false` if a known one was counted up.
    pub added: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Stores a procedure of an analyst: `{"status": "procedure_learned", "data": {…}}`. It has trust `observed`, like one
/// learned here, because an analyst reads tool output. Prompt injection is refused, and so is a procedure with a
/// tombstone. An existing procedure is counted up.
pub fn add_procedure(workspace: &Workspace, document: &RawValue) -> Result<ProcedureReport, Error> {
    let data = data(document)?;
    if let Some(reason) = memctl_redact::admit(data.get()).quarantine {
        return Err(Error::suspicious(&reason));
    }
    let mut writer = workspace.writer()?;
    let new = learned(data, ELSEWHERE, &workspace.timestamp());
    let text = compact(&memctl_redact::redact_json(new.data.get()).text);
    let is_same = |existing: &Procedure| compact(existing.data.get()) == text;
    let mut existing = existing(&writer)?;
    let stored = store_unless(&mut writer, &mut existing, new, &is_same, workspace.now)?;
    let (id, added) = match stored {
        Stored::New(id) => (id, true),
        Stored::Again(id) | Stored::Counted(id) => (id, false),
        Stored::Forgotten(removed) => {
            return Err(Error::Forgotten {
                day: removed.at.split('T').next().unwrap_or_default().to_owned(),
                id: removed.id,
                kind: Kind::Procedure,
            });
        }
    };
    prepare(writer.store())?;
    Ok(ProcedureReport {
        id,
        added,
        warnings: warnings_of(&mut writer).collect(),
    })
}

/// Returns the `data` of a document, or the reason why it is not a procedure.
fn data(document: &RawValue) -> Result<Box<RawValue>, Error> {
    let refuse = |reason: &str| {
        Err(Error::input(
            format!("invalid procedure: {reason}"),
            "give `{\"status\": \"procedure_learned\", \"data\": {…}}` as the whole document",
        ))
    };
    if document.get().len() > LONGEST {
        return refuse("it is longer than 64 KiB");
    }
    let read: Value = serde_json::from_str(document.get()).unwrap_or_default();
    if read["status"] != LEARNED {
        return refuse("its `status` is not `procedure_learned`");
    }
    let data = &read["data"];
    let says = |name: &str| {
        let text = data[name].as_str().unwrap_or_default();
        !memctl_redact::says_nothing(text)
    };
    for name in ["procedure_name", "semantic_description"] {
        if !says(name) {
            return refuse(&format!("`data.{name}` is missing or empty"));
        }
    }
    let steps = data["learned_procedure_steps"].as_array();
    if steps.is_none_or(Vec::is_empty) {
        return refuse("`data.learned_procedure_steps` is no list, or an empty one");
    }
    Ok(serde_json::value::to_raw_value(data)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_procedure_has_a_name_a_description_and_steps() {
        let check = |document: Value, expected: &str| {
            let raw = serde_json::value::to_raw_value(&document).unwrap();
            let message = data(&raw).map_or_else(|error| error.to_string(), |_| String::new());
            assert!(
                message.contains(expected) && message.is_empty() == expected.is_empty(),
                "{message}"
            );
        };
        let good = json!({ "procedure_name": "a", "semantic_description": "b", "learned_procedure_steps": ["c"] });
        check(json!({ "status": LEARNED, "data": good }), "");
        check(json!({ "status": "No_Failure_Detected" }), "`status`");
        check(json!([]), "`status`");
        check(json!({ "status": LEARNED }), "procedure_name");
        let mut none = good.clone();
        none["learned_procedure_steps"] = json!([]);
        check(
            json!({ "status": LEARNED, "data": none }),
            "learned_procedure_steps",
        );
    }
}
