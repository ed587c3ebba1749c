//! Hints from fixes that were pulled from other workspaces.

use crate::hints::failure::Failure;
use crate::hints::hint::Hint;
use crate::hints::ranking::truncate;
use crate::model::with_origin;
use crate::store::{Pulled, Scoped};
use crate::workspace::Error;

use super::fixes;

/// Merges local hints with those of other workspaces, best first. Equal advice is given once; local hints
/// win.
pub(crate) fn hints(
    store: &Scoped,
    own: Vec<Hint>,
    failure: &Failure<'_>,
    withheld: &[String],
    max_hints: usize,
) -> Vec<Hint> {
    let mut hints = own;
    let pulled = store.others();
    if pulled.is_empty() {
        return hints;
    }
    for Pulled { origin, store } in pulled {
        // A copy that cannot be read is no reason to keep this memory's own advice back.
        let Ok(terms) = fixes::table(&store) else {
            continue;
        };
        for hint in fixes::known(&terms, failure, &[], max_hints) {
            let id = with_origin(&hint.id, &origin);
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

/// Builds the tables of remote fixes ahead of the first failing call.
pub(crate) fn prepare(store: &Scoped) -> Result<(), Error> {
    store
        .others()
        .iter()
        .try_for_each(|pulled| fixes::prepare(&pulled.store))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hints::fixes::tests::fix;
    use crate::model::{EPISODE, Kind, Scope};
    use crate::platform::named;
    use crate::store::PulledChange;
    use serde_json::Value;

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
    fn an_episode_of_another_workspace_is_no_hint_whatever_its_file_claims() {
        let key = "TypeError: string indices must be integers";
        let mut theirs = fix(1, key, "print(a['b'])", "print(a[0]['b'])");
        theirs["trust"] = "approved".into();
        let failure = Failure::of(key, None, None).unwrap();
        let found = |theirs: &Value| {
            let entries = std::slice::from_ref(theirs);
            let (_dir, store) = pulled(Kind::Fix, "3f2a9c1b-0000-4000", entries);
            hints(&store, Vec::new(), &failure, &[], 3).len()
        };
        assert_eq!(found(&theirs), 1);
        theirs["status"] = EPISODE.into();
        assert_eq!(found(&theirs), 0);
    }

    #[test]
    fn a_fix_of_another_workspace_helps_here() {
        let key = "TypeError: string indices must be integers";
        let theirs = [fix(1, key, "print(a['b'])", "print(a[0]['b'])")];
        let (_dir, store) = pulled(Kind::Fix, "3f2a9c1b-0000-4000", &theirs);
        let failure = Failure::of(key, None, None).unwrap();
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
