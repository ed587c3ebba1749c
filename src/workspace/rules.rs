//! Remote records in use: rules and lessons of other workspaces, pulled from the shared store.
//!
//! An id such as `REFL-003@3f2a9c1b` ends with the start of the workspace's name, so that a prompt,
//! a hint or an execution shows the origin. Evidence is counted in the origin only: use here
//! changes nothing in a remote record.

use std::collections::HashSet;

use crate::model::{Reflexion, Trust, with_origin};
use crate::store::{Problem, Pulled, Scoped, Selection};

use super::Error;

/// Returns the local rules, and after them the remote rules with other texts.
pub(crate) fn rules(
    store: &Scoped,
    selection: &Selection<'_>,
) -> Result<(Vec<Reflexion>, Vec<Problem>), Error> {
    let own = store.list::<Reflexion>(selection)?;
    let (mut rules, mut problems) = (own.records, own.problems);
    mark_observed(store, &mut rules);
    let words = |rule: &Reflexion| rule.rule.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut said: HashSet<(String, String)> = HashSet::new();
    let pulled = store.others();
    if pulled.is_empty() {
        return Ok((rules, problems));
    }
    // A rule that was retired or superseded here must not return as a remote rule. A local
    // candidate is not a rule yet, and blocks no remote rule.
    let own = rules.iter().filter(|rule| !rule.is_candidate());
    said.extend(own.map(|rule| (rule.skill.clone(), words(rule))));
    for Pulled { origin, store } in pulled {
        let theirs = store.list::<Reflexion>(selection)?;
        problems.extend(theirs.problems);
        let mut records = theirs.records;
        mark_observed(&store, &mut records);
        for mut rule in records {
            if said.insert((rule.skill.clone(), words(&rule))) {
                rule.reflexion_id = with_origin(&rule.reflexion_id, &origin);
                rules.push(rule);
            }
        }
    }
    Ok((rules, problems))
}

/// Marks the rules that no one here vouches for.
pub(crate) fn mark_observed(store: &Scoped, rules: &mut [Reflexion]) {
    if rules.is_empty() {
        return;
    }
    let trust_snapshot = store.trust_snapshot();
    for rule in rules {
        // A candidate is data in any case, and is in no prompt.
        rule.observed = !rule.is_candidate() && trust_snapshot.level(rule) == Trust::Observed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, Scope};
    use crate::platform::named;
    use crate::store::{Approvals, PulledChange};
    use serde_json::{Value, json};

    fn pulled(kind: Kind, origin: &str, entries: &[Value]) -> (tempfile::TempDir, Scoped) {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let changes: Vec<PulledChange> = entries
            .iter()
            .map(|entry| PulledChange {
                id: entry[kind.id_field()].as_str().unwrap().to_owned(),
                text: Some(entry.to_string()),
            })
            .collect();
        store.pull().unwrap().apply(origin, kind, &changes).unwrap();
        (dir, store)
    }

    #[test]
    fn rules_of_others_stand_behind_ones_own_and_say_something_else() {
        let rule = |id: &str, rule: &str| json!({"reflexion_id": id, "skill": "hr/x", "rule": rule, "correction_id": "CORR-001"});
        let theirs = [
            rule("REFL-001", "Never  ask for a photo."),
            rule("REFL-002", "Name it."),
        ];
        let (dir, store) = pulled(Kind::Reflexion, "3f2a9c1b-0000-4000", &theirs);
        let own = json!({"entries": [rule("REFL-001", "Never ask for a photo.")]});
        let path = dir.path().join(Kind::Reflexion.file());
        named::replace(&path, own.to_string().as_bytes()).unwrap();
        let (rules, problems) = rules(&store, &Selection::default()).unwrap();
        let ids: Vec<&str> = rules
            .iter()
            .map(|rule| rule.reflexion_id.as_str())
            .collect();
        assert_eq!(
            (ids.as_slice(), problems.len()),
            (&["REFL-001", "REFL-002@3f2a9c1b"][..], 0)
        );
    }

    #[test]
    fn a_candidate_keeps_no_rule_of_others_out() {
        let rule = |status: &str| json!({"reflexion_id": "REFL-001", "skill": "hr/x", "rule": "Name it.", "status": status});
        let (dir, store) = pulled(Kind::Reflexion, "3f2a9c1b-0000-4000", &[rule("")]);
        let store = store.trusting(Approvals::everything());
        let path = dir.path().join(Kind::Reflexion.file());
        for (status, expected) in [("candidate", 2), ("active", 1)] {
            let own = json!({"entries": [rule(status)]});
            named::replace(&path, own.to_string().as_bytes()).unwrap();
            let (rules, _) = rules(&store, &Selection::default()).unwrap();
            assert_eq!(rules.len(), expected, "{status}");
        }
    }
}
