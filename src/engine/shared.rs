//! What other workspaces have learnt, and was pulled from the shared store: rules and fixes beside those of
//! this memory.
//!
//! They are named `REFL-003@3f2a9c1b`, with the beginning of their workspace's name, so that a prompt, a
//! hint or an execution says whose they are. They are counted where they were made: what comes of them
//! here changes nothing in them.

use std::collections::HashSet;

use crate::learn::hint::{Failure, Hint, truncate};
use crate::model::{Reflexion, Trust, abroad, split_origin};
use crate::store::{Problem, Pulled, Scoped, Selection};

use super::{Engine, Error, fixes};

impl Engine {
    /// The engine and the id that somebody means: `CORR-003@3f2a` is a record of another workspace, and is
    /// looked at there.
    pub fn of_id(&self, id: &str) -> Result<(Self, String), Error> {
        let (id, origin) = split_origin(id);
        let mut engine = self.clone();
        if let Some(origin) = origin {
            engine.store = self.store.pulled_as(origin)?.store;
        }
        Ok((engine, id.to_owned()))
    }
}

/// The rules of this memory, and behind them those of others which say something else.
pub(super) fn rules(
    store: &Scoped,
    selection: &Selection<'_>,
) -> Result<(Vec<Reflexion>, Vec<Problem>), Error> {
    let own = store.list::<Reflexion>(selection)?;
    let (mut rules, mut problems) = (own.records, own.problems);
    mark_observed(store, &mut rules);
    let words = |rule: &Reflexion| rule.rule.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut said: HashSet<(String, String)> = HashSet::new();
    let pulled = store.pulled();
    if pulled.is_empty() {
        return Ok((rules, problems));
    }
    // A rule that was retired or replaced here is not to come back by way of another.
    // A candidate is none, and stands in nobody's way.
    let own = rules.iter().filter(|rule| !rule.is_candidate());
    said.extend(own.map(|rule| (rule.skill.clone(), words(rule))));
    for Pulled { origin, store } in pulled {
        let theirs = store.list::<Reflexion>(selection)?;
        problems.extend(theirs.problems);
        let mut records = theirs.records;
        mark_observed(&store, &mut records);
        for mut rule in records {
            if said.insert((rule.skill.clone(), words(&rule))) {
                rule.reflexion_id = abroad(&rule.reflexion_id, &origin);
                rules.push(rule);
            }
        }
    }
    Ok((rules, problems))
}

/// Marks the rules that nobody here stands behind.
pub(super) fn mark_observed(store: &Scoped, rules: &mut [Reflexion]) {
    if rules.is_empty() {
        return;
    }
    let standing = store.standing();
    for rule in rules {
        // A candidate is data wherever it is, and stands in no prompt.
        rule.observed = !rule.is_candidate() && standing.level(rule) == Trust::Observed;
    }
}

/// The best of these hints and of those that other workspaces have for the failure. The same advice is
/// given once, and this memory's own goes before.
pub(super) fn hints(
    store: &Scoped,
    own: Vec<Hint>,
    failure: &Failure<'_>,
    withheld: &[String],
    max_hints: usize,
) -> Vec<Hint> {
    let mut hints = own;
    let pulled = store.pulled();
    if pulled.is_empty() {
        return hints;
    }
    for Pulled { origin, store } in pulled {
        // A copy that cannot be read is no reason to keep this memory's own advice back.
        let Ok(terms) = fixes::table(&store) else {
            continue;
        };
        for hint in fixes::known(&terms, failure, &[], max_hints) {
            let id = abroad(&hint.id, &origin);
            let is_new = !hints
                .iter()
                .any(|other| other.working_code == hint.working_code);
            if is_new && !withheld.contains(&id) {
                hints.push(Hint { id, ..hint });
            }
        }
    }
    hints.sort_by(|a, b| b.score.total_cmp(&a.score));
    truncate(&mut hints, max_hints);
    hints
}

/// Makes the tables of what was pulled, while nobody waits for an answer.
pub(super) fn prepare(store: &Scoped) -> Result<(), Error> {
    store
        .pulled()
        .iter()
        .try_for_each(|pulled| fixes::prepare(&pulled.store))
}

#[cfg(test)]
mod tests {
    use super::super::fixes::tests::fix;
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

    #[test]
    fn a_fix_of_another_workspace_helps_here() {
        let key = "TypeError: string indices must be integers";
        let theirs = [fix(1, key, "print(a['b'])", "print(a[0]['b'])")];
        let (_dir, store) = pulled(Kind::Fix, "3f2a9c1b-0000-4000", &theirs);
        let key = fixes::key_of(key).unwrap();
        let failure = Failure {
            error_key: &key,
            code: None,
        };
        let found = |withheld: &[String]| {
            let hints = hints(&store, Vec::new(), &failure, withheld, 3);
            hints.into_iter().map(|hint| hint.id).collect::<Vec<_>>()
        };
        assert_eq!(found(&[]), ["FIX-001@3f2a9c1b"]);
        // A copy that cannot be read takes no other away.
        let broken = store.directory().join("remote/0000/fixes.json");
        named::create_dir(&broken).unwrap();
        assert_eq!(found(&[]), ["FIX-001@3f2a9c1b"]);
        assert_eq!(
            found(&["FIX-001@3f2a9c1b".to_owned()]),
            Vec::<String>::new()
        );
    }
}
