//! Stores a procedure from an external analyst, in the source document's form.
//!
//! The trust is `observed`, as for procedures learned here, because an analyst reads tool output.
//! Prompt injection is refused, and so is a procedure with a tombstone. A known procedure is
//! counted up instead of added.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::patterns::{LEARNED, count_up};
use crate::lessons::telling::table::prepare;
use crate::model::{Kind, Procedure, Record as _};
use crate::store::Selection;
use memctl_files::json::compact;

use crate::model::OBSERVED;
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
        return Err(Error::Suspicious { reason });
    }
    let mut writer = workspace.writer()?;
    let mut new = Procedure {
        created_at: workspace.timestamp(),
        status: LEARNED.to_owned(),
        data,
        distilled_by: ELSEWHERE.to_owned(),
        occurrences: Some(1.0),
        last_seen: workspace.timestamp(),
        trust: OBSERVED.to_owned(),
        ..Procedure::default()
    };
    if let Some(removed) = writer
        .store()
        .tombstone_of(Kind::Procedure, &new.content())?
    {
        return Err(Error::Forgotten {
            day: removed.at.split('T').next().unwrap_or_default().to_owned(),
            id: removed.id,
            kind: Kind::Procedure,
        });
    }
    let text = compact(&memctl_redact::redact_json(new.data.get()).text);
    let known = writer.store().list::<Procedure>(&Selection::default())?;
    let mut known = known.records.into_iter();
    let same = known.find(|known| compact(known.data.get()) == text);
    let added = same.is_none();
    if let Some(known) = same {
        count_up(&mut writer, &known, None, &workspace.timestamp())?;
        new = known;
    } else {
        new = writer.append(new, workspace.now)?;
    }
    prepare(writer.store())?;
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    warnings.extend(redaction_warning(writer.take_left_out()));
    Ok(ProcedureReport {
        id: new.procedure_id,
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
    serde_json::value::to_raw_value(data).map_err(|error| crate::store::Error::from(error).into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_procedure_has_a_name_a_description_and_steps() {
        let check = |document: Value, expected: &str| {
            let raw = serde_json::value::to_raw_value(&document).unwrap();
            let said = data(&raw).map_or_else(|error| error.to_string(), |_| String::new());
            assert!(
                said.contains(expected) && said.is_empty() == expected.is_empty(),
                "{said}"
            );
        };
        let good = json!({ "procedure_name": "a", "semantic_description": "b", "learned_procedure_steps": ["c"] });
        check(json!({ "status": LEARNED, "data": good }), "");
        check(json!({ "status": "no_failure_detected" }), "`status`");
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
