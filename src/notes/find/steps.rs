//! Steps of the procedures among search results: an agent acts on steps, not on an excerpt.
//!
//! The index holds one text a record, so the entries of the few results are read again. Each result
//! counts as a retrieval of the procedure.

use std::collections::HashSet;

use crate::model::{Kind, Procedure, ProcedureFields};
use crate::store::workspace::Error;
use crate::store::{Pulled, Scoped};

use super::report::Found;

/// Adds the steps to the procedures of a list, and puts them first in the full text.
pub(super) fn add(store: &Scoped, found: &mut [Found]) -> Result<(), Error> {
    count(store, found);
    of_store(store, None, found)?;
    if found.iter().any(|found| found.pulled) {
        for Pulled { origin, store } in store.others() {
            of_store(&store, Some(&origin), found)?;
        }
    }
    Ok(())
}

/// Counts a retrieval of each procedure among results.
pub(crate) fn count(store: &Scoped, found: &[Found]) {
    let procedures = found.iter().filter(|found| found.kind == Kind::Procedure);
    let names: Vec<String> = procedures.map(Found::name).collect();
    store.count_retrievals(names.iter().map(String::as_str));
}

/// Returns the steps for display. Older versions or other programs may have stored secrets.
pub(crate) fn of(fields: &ProcedureFields) -> Vec<String> {
    let steps = fields.steps();
    let steps = steps.map(|step| memctl_redact::redact(step).text.into_owned());
    steps.collect()
}

fn of_store(store: &Scoped, origin: Option<&str>, found: &mut [Found]) -> Result<(), Error> {
    let is_here = |found: &Found| {
        let of_it = origin.is_none() || found.origin.as_deref() == origin;
        found.kind == Kind::Procedure && found.pulled == origin.is_some() && of_it
    };
    let names = found.iter().filter(|found| is_here(found));
    let names: Vec<String> = names.map(|found| found.id.clone()).collect();
    let ids: HashSet<&str> = names.iter().map(String::as_str).collect();
    if ids.is_empty() {
        return Ok(());
    }
    store.each_of(Kind::Procedure, &ids, &mut |entry| {
        let one = found
            .iter_mut()
            .find(|one| is_here(one) && one.id == entry.id);
        if let (Some(one), Ok(procedure)) = (one, entry.parse::<Procedure>()) {
            let fields = procedure.fields();
            one.steps = of(&fields);
            if !one.steps.is_empty() {
                one.content = laid_out(&fields);
            }
        }
    })?;
    Ok(())
}

/// Name, condition and numbered steps of a procedure, then its other texts.
fn laid_out(fields: &ProcedureFields) -> String {
    let mut text = fields.name.clone();
    for (number, step) in (1..).zip(fields.steps()) {
        text.extend([&format!("\n{number}. "), step]);
    }
    let when = fields.when();
    let rest = [
        ("When: ", when.as_str()),
        ("", &fields.description),
        ("", &fields.failure),
        ("", &fields.intervention),
        ("", &fields.example),
    ];
    for (label, said) in rest {
        if !said.trim().is_empty() {
            text.extend(["\n", label, said]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_before_the_rest() {
        let fields: ProcedureFields = serde_json::from_value(serde_json::json!({
            "procedure_name": "Add a column", "semantic_description": "How to.",
            "identified_root_cause": "No type.", "learned_procedure_steps": ["Choose.", " ", "Run."]
        }))
        .unwrap();
        assert_eq!(
            laid_out(&fields),
            "Add a column\n1. Choose.\n2. Run.\nWhen: No type.\nHow to."
        );
    }
}
