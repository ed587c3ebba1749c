//! Approved procedures: those of this memory, then those of other workspaces with other texts.
//!
//! Only these may enter an instruction layer. The `trust` field of a file is a claim: it counts
//! only where this user vouches for the record.

use std::collections::HashSet;

use crate::model::{Kind, OBSERVED, Procedure, Record as _, Trust, with_origin};
use crate::store::{Problem, Pulled, Scoped, Selection};
use memctl_files::json;

use crate::store::workspace::Error;

/// Returns the approved procedures, oldest first, and the problems of the files.
pub(crate) fn approved(
    store: &Scoped,
    selection: &Selection<'_>,
) -> Result<(Vec<Procedure>, Vec<Problem>), Error> {
    let (mut found, mut problems) = of_store(store, selection)?;
    let mut said: HashSet<String> = found.iter().map(Procedure::content).collect();
    for Pulled { origin, store } in store.others() {
        let (theirs, trouble) = of_store(&store, selection)?;
        problems.extend(trouble);
        for mut procedure in theirs {
            if said.insert(procedure.content()) {
                procedure.procedure_id = with_origin(&procedure.procedure_id, &origin);
                found.push(procedure);
            }
        }
    }
    Ok((found, problems))
}

fn of_store(
    store: &Scoped,
    selection: &Selection<'_>,
) -> Result<(Vec<Procedure>, Vec<Problem>), Error> {
    let mut claimed: Vec<Procedure> = Vec::new();
    let problems = store.each_entry(Kind::Procedure, selection, &mut |entry| {
        // Most procedures are observed, and are not worth parsing.
        let claim = json::string_field(&entry.text, "trust");
        if claim.is_some_and(|claim| !claim.is_empty() && claim != OBSERVED) {
            claimed.extend(entry.parse::<Procedure>().ok());
        }
    })?;
    if !claimed.is_empty() {
        let trust_snapshot = store.trust_snapshot();
        claimed.retain(|procedure| trust_snapshot.level(procedure) != Trust::Observed);
    }
    Ok((claimed, problems))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::store::{Approvals, PulledChange};
    use memctl_files::named;
    use serde_json::{Value, json};

    fn procedure(id: &str, trust: &str, name: &str) -> Value {
        json!({"procedure_id": id, "trust": trust, "data": {"procedure_name": name}})
    }

    #[test]
    fn only_what_this_user_vouches_for_is_approved() {
        let dir = tempfile::tempdir().unwrap();
        let own = json!({"entries": [procedure("PROC-001", "approved", "a"),
            procedure("PROC-002", "observed", "b"), procedure("PROC-003", "", "c")]});
        let path = dir.path().join(Kind::Procedure.file());
        named::replace(&path, own.to_string().as_bytes()).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let ids = |store: &Scoped| -> Vec<String> {
            let (found, _) = approved(store, &Selection::default()).unwrap();
            found.into_iter().map(|p| p.procedure_id).collect()
        };
        assert_eq!(ids(&store), [""; 0]);
        assert_eq!(ids(&store.trusting(Approvals::everything())), ["PROC-001"]);
    }

    #[test]
    fn procedure_of_another_workspace_comes_last_and_says_something_else() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All).trusting(Approvals::everything());
        let change = |id: &str, name: &str| PulledChange {
            id: id.to_owned(),
            text: Some(procedure(id, "approved", name).to_string()),
        };
        let theirs = [change("PROC-001", "a"), change("PROC-002", "b")];
        let origin = "3f2a9c1b-0000-4000";
        store
            .pull()
            .unwrap()
            .apply(origin, Kind::Procedure, &theirs)
            .unwrap();
        let own = json!({"entries": [procedure("PROC-001", "approved", "a")]});
        let path = dir.path().join(Kind::Procedure.file());
        named::replace(&path, own.to_string().as_bytes()).unwrap();
        let (found, _) = approved(&store, &Selection::default()).unwrap();
        let ids: Vec<&str> = found.iter().map(|p| p.procedure_id.as_str()).collect();
        assert_eq!(ids, ["PROC-001", "PROC-002@3f2a9c1b"]);
    }
}
