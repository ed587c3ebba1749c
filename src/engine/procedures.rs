//! Takes a procedure that an analyst elsewhere has worded, in the source document's form.
//!
//! It counts as observed, as one that is learnt here does: whoever analyses sessions reads what tools
//! printed. What is aimed at a model is refused, what was forgotten on purpose does not come back by it,
//! and the same procedure again is counted up instead of added.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::guard;
use crate::learn::distil::LEARNED;
use crate::model::{Kind, Procedure, Record as _};
use crate::store::{Selection, compact};

use super::door::kept_out;
use super::import::OBSERVED;
use super::{Engine, Error, mended};

/// What stands in `distilled_by` of a procedure that came from elsewhere.
const ELSEWHERE: &str = "elsewhere";

/// The longest document, in bytes: a how-to is read by a model at every use.
const LONGEST: usize = 64 << 10;

/// A procedure that is kept now.
#[derive(Debug, Serialize)]
pub struct ProcedureReport {
    /// Its id.
    pub id: String,
    /// Whether it is new; else the same was known already.
    pub added: bool,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Keeps a procedure: `{"status": "procedure_learned", "data": {…}}`.
    pub fn add_procedure(&self, document: &RawValue) -> Result<ProcedureReport, Error> {
        let data = data(document)?;
        if let Some(reason) = guard::admit(data.get()).quarantine {
            return Err(Error::Suspicious { reason });
        }
        let mut writer = self.writer()?;
        let mut new = Procedure {
            procedure_id: String::new(),
            skill: None,
            created_at: self.timestamp(),
            status: LEARNED.to_owned(),
            data,
            distilled_by: ELSEWHERE.to_owned(),
            occurrences: Some(1.0),
            last_seen: self.timestamp(),
            origins: Vec::new(),
            trust: OBSERVED.to_owned(),
        };
        if let Some(removed) = writer.store().buried(Kind::Procedure, &new.content())? {
            return Err(Error::Forgotten {
                day: removed.at.split('T').next().unwrap_or_default().to_owned(),
                id: removed.id,
                kind: Kind::Procedure,
            });
        }
        let text = compact(&guard::redact_json(new.data.get()).text);
        let known = writer.store().list::<Procedure>(&Selection::default())?;
        let mut known = known.records.into_iter();
        let same = known.find(|known| compact(known.data.get()) == text);
        let added = same.is_none();
        if let Some(known) = same {
            let seen = known.occurrences.unwrap_or(1.0) + 1.0;
            let changes = [
                ("occurrences", Value::from(seen)),
                ("last_seen", Value::from(self.timestamp())),
            ];
            writer.update(Kind::Procedure, &known.procedure_id, &changes)?;
            new = known;
        } else {
            new = writer.append(new, self.now)?;
        }
        let mut warnings: Vec<String> = mended(writer.take_mended()).collect();
        warnings.extend(kept_out(writer.take_left_out()));
        Ok(ProcedureReport {
            id: new.procedure_id,
            added,
            warnings,
        })
    }
}

/// The eight fields of a procedure, if they are there.
fn data(document: &RawValue) -> Result<Box<RawValue>, Error> {
    let refuse = |reason: &str| {
        Err(Error::BadProcedure {
            reason: reason.to_owned(),
        })
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
        !guard::says_nothing(text)
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
