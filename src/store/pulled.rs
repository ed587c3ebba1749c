//! Remote records, pulled from a shared store: `remote/<origin>/`, with the same files as a memory.
//!
//! Each of these directories is a copy with a single writer, the workspace of that name. So there is nothing to
//! merge, and it can be pulled again. Only a pull changes its records: [`Puller`] is the only writer below
//! `remote/`, where each kind has one file. The records of the user store are read beside them.
//!
//! Deliberately absent: the source of the records, and their use.

use std::time::Duration;

use memctl_files::{Directory, FoundKind};

use crate::model::{Kind, Scope, USER_STORE};
use crate::store::files::data::write::apply;
use crate::store::files::directory::{REMOTE, directory_name, is_pulled_origin, origin_of};
use crate::store::{
    DataFile, Error, Lock, PulledChange, PulledCount, SMALL_FILE, Scoped, Selection, atomic,
};

/// Name of the file with the progress of pulling.
const STATE: &str = "state.json";

/// Maximum wait for another process that pulls.
const PATIENCE: Duration = Duration::from_secs(2);

/// Records of another workspace.
#[derive(Debug, Clone)]
pub struct Pulled {
    /// Origin of the workspace.
    pub origin: String,
    /// The records, filtered by the caller's access.
    pub store: Scoped,
}

/// Exclusive access for pulling.
#[derive(Debug)]
pub struct Puller {
    store: Scoped,
    lock: Lock,
}

impl Scoped {
    fn pulled_directory(&self) -> Directory {
        self.directory().below(REMOTE)
    }

    /// Returns the remote records by workspace, sorted by name, each filtered by the caller's
    /// access.
    pub fn pulled(&self) -> Vec<Pulled> {
        let found = self.pulled_directory().list().unwrap_or_default();
        let directories = found
            .into_iter()
            .filter(|one| one.kind == FoundKind::Directory);
        let names = directories.map(|one| one.name.to_string_lossy().into_owned());
        let mut origins: Vec<(String, String)> = names
            .filter_map(|name| Some((origin_of(&name)?, name)))
            .collect();
        // A clone must not pass its records off as those of the user store.
        origins.retain(|(origin, _)| !origin.eq_ignore_ascii_case(USER_STORE));
        origins.sort_unstable();
        origins
            .into_iter()
            .map(|(origin, name)| Pulled {
                store: self.moved_to(self.pulled_directory().below(name), &origin),
                origin,
            })
            .collect()
    }

    /// Returns the remote records, and after them those of the user store.
    pub fn others(&self) -> Vec<Pulled> {
        let mut others = self.pulled();
        others.extend(self.of_user());
        others
    }

    fn of_user(&self) -> Option<Pulled> {
        Some(Pulled {
            origin: USER_STORE.to_owned(),
            store: self.user_store()?.clone(),
        })
    }

    /// Returns the records of the only workspace with this name prefix, or those of the user store.
    pub fn pulled_as(&self, beginning: &str) -> Result<Pulled, Error> {
        if let Some(user) = self.of_user().filter(|_| beginning == USER_STORE) {
            return Ok(user);
        }
        let mut all = self.pulled();
        let names: Vec<String> = all.iter().map(|pulled| pulled.origin.clone()).collect();
        // A whole name is that workspace, even if another name begins with it.
        let is_whole = names.iter().any(|name| name == beginning);
        all.retain(|pulled| {
            let is_begun = !beginning.is_empty() && pulled.origin.starts_with(beginning);
            pulled.origin == beginning || is_begun && !is_whole
        });
        if let (Some(only), true) = (all.pop(), all.is_empty()) {
            Ok(only)
        } else {
            let beginning = beginning.escape_debug();
            Err(Error::missing(
                format!("no single pulled workspace has a name that starts with `{beginning}`"),
                if names.is_empty() {
                    "memctl sync".to_owned()
                } else {
                    format!("give a longer prefix: {}", names.join(", "))
                },
            ))
        }
    }

    /// Returns `true` if the memory is shared through a database, because it has pulled from one.
    pub fn is_shared(&self) -> bool {
        self.pulled_directory().is_file(STATE)
    }

    fn pulled_from(&self, origin: &str) -> Self {
        let directory = self.pulled_directory().below(directory_name(origin));
        self.moved_to(directory, origin)
    }

    /// Begins a pull. Requires full access, because remote records may be of any user and domain.
    pub fn pull(&self) -> Result<Puller, Error> {
        self.must_be_enabled()?;
        if !self.sees_all() {
            return Err(Error::OutOfScope("what other workspaces share".to_owned()));
        }
        Ok(Puller {
            store: self.clone(),
            lock: Lock::take(self.pulled_directory(), PATIENCE)?,
        })
    }

    /// Begins a pull of all records for a copy, regardless of the caller's access. `None` while another process
    /// pulls.
    pub(crate) fn puller_of_copy(&self) -> Result<Option<Puller>, Error> {
        let lock = match Lock::take(self.pulled_directory(), Duration::ZERO) {
            Err(Error::Locked { .. }) => return Ok(None),
            lock => lock?,
        };
        let store = Self::new(self.directory().clone(), Scope::All);
        Ok(Some(Puller { store, lock }))
    }
}

impl Puller {
    /// Returns the origins with a damaged file.
    pub fn damaged(&self) -> Vec<String> {
        let is_damaged = |store: &Scoped, kind| match store.file(DataFile::shared(kind)).snapshot()
        {
            Ok(snapshot) => snapshot.table.header.problems > 0,
            Err(Error::NewerFormat { .. }) => false,
            Err(_) => true,
        };
        let pulled = self.store.pulled().into_iter();
        pulled
            .filter(|pulled| {
                Kind::ALL
                    .iter()
                    .any(|kind| is_damaged(&pulled.store, *kind))
            })
            .map(|pulled| pulled.origin)
            .collect()
    }

    /// Removes all records of an origin, so that they can be pulled again.
    pub fn discard(&self, origin: &str) -> Result<(), Error> {
        let (above, name) = (self.lock.directory(), directory_name(origin));
        let removed = above.remove_tree(&name);
        removed.map_err(Error::io("remove", &above.join(name)))
    }

    /// Returns the saved progress of pulling.
    pub fn state(&self) -> Option<Vec<u8>> {
        self.lock.directory().read(STATE, SMALL_FILE).ok().flatten()
    }

    /// Saves the progress of pulling.
    pub fn keep_state(&self, state: &[u8]) -> Result<(), Error> {
        atomic::replace(self.lock.directory(), STATE, state)
    }

    /// Returns the number of these records that are present.
    pub fn count_held(&self, origin: &str, kind: Kind, ids: &[&str]) -> Result<u64, Error> {
        let store = self.store.pulled_from(origin);
        let Ok(snapshot) = store.file(DataFile::shared(kind)).snapshot() else {
            // A damaged file is pulled again as a whole.
            return Ok(0);
        };
        let found = snapshot.of_ids(&ids.iter().copied().collect())?;
        Ok(found.len() as u64)
    }

    /// Returns the ids of the records of an origin.
    pub fn ids(&self, origin: &str, kind: Kind) -> Result<Vec<String>, Error> {
        let store = self.store.pulled_from(origin);
        let mut ids = Vec::new();
        store.each_entry(kind, &Selection::default(), &mut |entry| ids.push(entry.id))?;
        Ok(ids)
    }

    /// Returns the total number of remote records.
    pub fn total(&self) -> Result<u64, Error> {
        let mut total = 0;
        for pulled in self.store.pulled() {
            for kind in Kind::ALL {
                let snapshot = pulled.store.file(DataFile::shared(kind)).snapshot();
                total += snapshot.map_or(0, |snapshot| snapshot.table.header.count);
            }
        }
        Ok(total)
    }

    /// Applies changes to the records of another workspace. The last of several changes to one
    /// record wins. All changes are on disk when this returns. After a crash, applying the same
    /// changes again completes them.
    pub fn apply(
        &self,
        origin: &str,
        kind: Kind,
        changes: &[PulledChange],
    ) -> Result<PulledCount, Error> {
        if !is_pulled_origin(origin) {
            return Err(Error::OutOfScope(format!(
                "the workspace `{}`",
                origin.escape_debug()
            )));
        }
        let directory = self.lock.directory().below(directory_name(origin));
        let lock = Lock::take(&directory, PATIENCE)?;
        let store = self.store.moved_to(directory, origin).held();
        let changes = changes
            .iter()
            .map(|change| (&*change.id, change.text.as_deref()));
        let file = store.file(DataFile::shared(kind));
        apply(file, &lock, &changes.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use memctl_files::named;

    use super::*;
    use crate::store::Entry;

    fn put(id: &str, rule: &str) -> PulledChange {
        let text = format!(
            "{{\n      \"reflexion_id\": \"{id}\",\n      \"skill\": \"hr/x\",  \"rule\": \"{rule}\"\n    }}"
        );
        PulledChange {
            id: id.to_owned(),
            text: Some(text),
        }
    }

    fn removal(id: &str) -> PulledChange {
        PulledChange {
            id: id.to_owned(),
            text: None,
        }
    }

    fn store() -> (tempfile::TempDir, Scoped) {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path().join(".agentura"), Scope::All);
        (dir, store)
    }

    fn texts(store: &Scoped) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for pulled in store.pulled() {
            let all = Selection::default();
            let each = &mut |entry: Entry| {
                let text = String::from_utf8(entry.text).unwrap();
                found.push((format!("{}@{}", entry.id, pulled.origin), text));
            };
            let problems = pulled.store.each_entry(Kind::Reflexion, &all, each);
            assert_eq!(problems.unwrap(), []);
        }
        found
    }

    #[test]
    fn records_of_others_keep_their_ids_and_their_bytes() {
        let (_dir, store) = store();
        assert!(store.pulled().is_empty());
        let puller = store.pull().unwrap();
        let first = [
            put("REFL-001", "a"),
            put("REFL-002", "b"),
            put("REFL-003", "c"),
        ];
        let count = puller.apply("one", Kind::Reflexion, &first).unwrap();
        assert_eq!(count.added, 3);
        let two = [put("REFL-001", "mine")];
        puller.apply("two", Kind::Reflexion, &two).unwrap();
        let text = |change: &PulledChange| change.text.clone().unwrap();
        let named = |id: &str, change| (id.to_owned(), text(change));
        assert_eq!(
            texts(&store),
            [
                named("REFL-001@one", &first[0]),
                named("REFL-002@one", &first[1]),
                named("REFL-003@one", &first[2]),
                named("REFL-001@two", &two[0]),
            ]
        );
        // Applying them again changes nothing; the last of several changes wins.
        assert_eq!(
            puller.apply("one", Kind::Reflexion, &first).unwrap(),
            PulledCount::default()
        );
        let count = puller
            .apply(
                "one",
                Kind::Reflexion,
                &[
                    removal("REFL-001"),
                    put("REFL-002", "longer than before"),
                    put("REFL-004", "x"),
                    put("REFL-004", "d"),
                    removal("REFL-009"),
                    put("REFL-001", "again"),
                    removal("REFL-003"),
                ],
            )
            .unwrap();
        let expected = PulledCount {
            added: 1,
            changed: 2,
            removed: 1,
            refused: 0,
        };
        assert_eq!(count, expected);
        let rules: Vec<String> = texts(&store).into_iter().map(|(id, _)| id).collect();
        assert_eq!(
            rules,
            [
                "REFL-001@one", "REFL-002@one", "REFL-004@one", "REFL-001@two"
            ]
        );
        assert_eq!(puller.total().unwrap(), 4);
        let count = puller.count_held("one", Kind::Reflexion, &["REFL-002", "REFL-003"]);
        assert_eq!(count.unwrap(), 1);
    }

    #[test]
    fn invalid_record_and_workspace_are_refused() {
        let (_dir, store) = store();
        let puller = store.pull().unwrap();
        for name in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            ".index",
            "a\u{0}",
            &"x".repeat(65),
        ] {
            assert!(
                puller.apply(name, Kind::Procedure, &[]).is_err(),
                "{name:?}"
            );
        }
        let texts = [
            "",
            "7",
            "{}",
            "{\"procedure_id\": \"PROC-002\"}",
            "{\"procedure_id\": \"PROC-001\"",
            "[]",
            "{\"procedure_id\": \"PROC-001\"}]}, {",
            "{\"procedure_id\": [\"PROC-001\"]}",
        ];
        for text in texts {
            let change = PulledChange {
                id: "PROC-001".to_owned(),
                text: Some(text.to_owned()),
            };
            let count = puller.apply("one", Kind::Procedure, &[change]).unwrap();
            assert_eq!((count.added, count.refused), (0, 1), "{text}");
        }
        let hr = Scoped::new(store.directory(), Scope::parse("hr"));
        assert!(matches!(hr.pull(), Err(Error::OutOfScope(..))));
    }

    #[test]
    fn an_origin_called_like_a_file_of_ours_is_in_nobodys_way() {
        let (_dir, store) = store();
        let puller = store.pull().unwrap();
        let origins = [
            "state.json", "workspace.json", "Support", "support", "support-eu",
        ];
        for origin in origins {
            puller
                .apply(origin, Kind::Reflexion, &[put("REFL-001", origin)])
                .unwrap();
        }
        puller.keep_state(b"{}").unwrap();
        assert_eq!(puller.state().unwrap(), b"{}");
        let mut found: Vec<String> = store.pulled().into_iter().map(|p| p.origin).collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [
                "Support", "state.json", "support", "support-eu", "workspace.json"
            ]
        );
        assert_eq!(texts(&store).len(), 5);
        for (given, expected) in [("support", "support"), ("support-", "support-eu")] {
            assert_eq!(store.pulled_as(given).unwrap().origin, expected);
        }
    }

    #[test]
    fn a_damaged_origin_is_known_and_can_be_thrown_away() {
        let (_dir, store) = store();
        let puller = store.pull().unwrap();
        for origin in ["one", "two"] {
            puller
                .apply(origin, Kind::Reflexion, &[put("REFL-001", "a")])
                .unwrap();
        }
        assert_eq!(puller.damaged(), Vec::<String>::new());
        let path = store
            .directory()
            .join("remote/one")
            .join(Kind::Reflexion.file());
        let whole = fs::read(&path).unwrap();
        for damage in [
            &b""[..],
            b"\0\0\0",
            b"[]",
            b"{\"reflexions\": [nonsense]}",
            &whole[..10],
            &whole[..60],
        ] {
            named::replace(&path, damage).unwrap();
            assert_eq!(puller.damaged(), ["one"], "{}", damage.escape_ascii());
            assert!(puller.total().is_ok());
        }
        puller.discard("one").unwrap();
        puller.discard("never").unwrap();
        assert_eq!(puller.damaged(), Vec::<String>::new());
        assert_eq!(puller.total().unwrap(), 1);
    }

    #[test]
    fn a_scope_holds_for_what_was_pulled() {
        let (_dir, store) = store();
        let puller = store.pull().unwrap();
        puller
            .apply("one", Kind::Reflexion, &[put("REFL-001", "a")])
            .unwrap();
        let seen = |scope| texts(&Scoped::new(store.directory(), Scope::parse(scope))).len();
        assert_eq!((seen("hr"), seen("finance")), (1, 0));
    }

    /// Each torn end is waited for, in case that another program is about to complete it: side by side.
    #[test]
    fn torn_end_is_repaired_by_the_next_pull() {
        const THREADS: usize = 8;
        std::thread::scope(|scope| {
            for first in 0..THREADS {
                scope.spawn(move || torn_ends_are_repaired(first, THREADS));
            }
        });
    }

    /// Tears the end off at every length from `first` on, in steps.
    fn torn_ends_are_repaired(first: usize, step: usize) {
        let (_dir, store) = store();
        let puller = store.pull().unwrap();
        let both = [put("REFL-001", "a"), put("REFL-002", "b")];
        puller.apply("one", Kind::Reflexion, &both).unwrap();
        let path = store
            .directory()
            .join("remote/one")
            .join(Kind::Reflexion.file());
        let whole = fs::read(&path).unwrap();
        for length in (first..whole.len()).step_by(step) {
            named::replace(&path, &whole[..length]).unwrap();
            let applied = puller.apply("one", Kind::Reflexion, &both);
            if applied.is_ok() {
                assert_eq!(texts(&store).len(), 2, "{length}");
            }
            // A beginning without its array cannot be repaired here.
            assert!(applied.is_ok() || length < 30, "{length}: {applied:?}");
        }
    }
}
