//! Procedures of an analyst, in the form of the source document.
//!
//! A procedure has trust `observed`, like one learned here, because an analyst reads tool output. Prompt
//! injection is refused, and so is a procedure with a tombstone. An existing procedure is counted up.

use memctl_files::json::compact;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::patterns::{self, LEARNED, Stored, learned, store_unless};
use super::table::prepare;
use crate::model::{Kind, Procedure};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings};

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

/// Stores a procedure: `{"status": "procedure_learned", "data": {…}}`.
pub fn add_procedure(workspace: &Workspace, document: &RawValue) -> Result<ProcedureReport, Error> {
    let data = data(document)?;
    if let Some(reason) = memctl_redact::admit(data.get()).quarantine {
        return Err(Error::suspicious(&reason));
    }
    let mut writer = workspace.writer()?;
    let new = learned(data, ELSEWHERE, &workspace.timestamp());
    let text = compact(&memctl_redact::redact_json(new.data.get()).text);
    let is_same = |existing: &Procedure| compact(existing.data.get()) == text;
    let mut existing = patterns::existing(&writer)?;
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
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    warnings.extend(redaction_warning(writer.take_left_out()));
    Ok(ProcedureReport {
        id,
        added,
        warnings,
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
