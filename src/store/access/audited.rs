//! Audit events of one caller, and the verification of the log.

use memctl_files::json;

use crate::model::Kind;
use crate::store::audit::AuditLog;
use crate::store::{AuditAction, Audited, Error, Scoped, Touched};

impl Scoped {
    /// Returns the audit log, for this caller.
    pub(crate) fn audit_log(&self) -> AuditLog<'_> {
        AuditLog {
            directory: self.directory(),
            lock_limit: self.lock_limit(),
            approvals: self.approvals(),
        }
    }

    /// Appends an audit event for an action that no writer has recorded.
    pub fn audit(&self, did: AuditAction, touched: &[Touched<'_>]) -> Result<(), Error> {
        if touched.is_empty() {
            return Ok(());
        }
        self.audit_log()
            .append(did, &[(self.audit_context(), touched)])
    }

    /// Appends an audit event for records of a kind: ids, and texts that say whose they are.
    pub(crate) fn audit_records<'a>(
        &self,
        did: AuditAction,
        kind: Kind,
        records: impl Iterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<(), Error> {
        let user = |text| json::string_field(text, "user_id").filter(|_| kind.has_user());
        let records: Vec<_> = records.map(|(id, text)| (id, user(text))).collect();
        let touched = records.iter().map(|(id, user)| (*id, user.as_deref()));
        self.audit(did, &touched.collect::<Vec<_>>())
    }

    /// Verifies the whole log. `noted` is a hash noted elsewhere that the log must still contain.
    pub fn verify_audit(&self, noted: Option<&str>) -> Result<Audited, Error> {
        self.audit_log().verify(noted)
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use memctl_files::{Directory, named};

    use super::*;
    use crate::model::Scope;
    use crate::store::files::directory::{AUDIT_ANCHOR as ANCHOR, AUDIT_LOG};
    use crate::store::{AuditContext, ChainError, atomic};

    fn log_path(directory: &Path) -> PathBuf {
        directory.join(AUDIT_LOG)
    }

    /// Creates a store whose log has this number of lines.
    fn logged(lines: usize) -> (tempfile::TempDir, Scoped) {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All).acting(AuditContext {
            who: "ann".to_owned(),
            why: "memory search".to_owned(),
            at: "2026-01-01T00:00:00Z".to_owned(),
            change: String::new(),
        });
        drop(store.write(&mut || "key".to_owned()).unwrap());
        for n in 1..=lines {
            store
                .audit(AuditAction::Read, &[(&format!("MEM-{n:03}"), None)])
                .unwrap();
        }
        (dir, store)
    }

    fn flaws(store: &Scoped) -> Vec<ChainError> {
        store.verify_audit(None).unwrap().flaws
    }

    #[test]
    fn a_sound_log_is_sound() {
        for lines in [0, 1, 2, 7] {
            let (_dir, store) = logged(lines);
            let audited = store.verify_audit(None).unwrap();
            assert_eq!((audited.lines, audited.flaws), (lines as u64, Vec::new()));
            let mut seen = Vec::new();
            store.audited(&mut |line| seen.push(line.seq)).unwrap();
            assert_eq!(seen, (1..=lines as u64).collect::<Vec<_>>());
        }
    }

    /// Verification finds every change to the lines, also after the next line.
    #[test]
    fn every_change_of_the_lines_is_found() {
        type Change = fn(&mut Vec<String>);
        let changes: [(&str, Change); 9] = [
            ("changed", |l| l[2] = l[2].replace("MEM-003", "MEM-999")),
            ("deleted", |l| drop(l.remove(2))),
            ("first deleted", |l| drop(l.remove(0))),
            ("last deleted", |l| drop(l.pop())),
            ("all deleted", Vec::clear),
            ("inserted", |l| l.insert(2, l[2].clone())),
            ("appended", |l| l.push(l[2].clone())),
            ("swapped", |l| l.swap(1, 2)),
            ("cut off", |l| l.last_mut().unwrap().truncate(40)),
        ];
        for (name, change) in changes {
            let (dir, store) = logged(5);
            let path = log_path(dir.path());
            let text = std::fs::read_to_string(&path).unwrap();
            let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
            change(&mut lines);
            named::replace(&path, lines.concat().as_bytes()).unwrap();
            assert!(!flaws(&store).is_empty(), "{name}");
            store
                .audit(AuditAction::Read, &[("MEM-777", None)])
                .unwrap();
            assert!(!flaws(&store).is_empty(), "{name}, and a line more");
        }
    }

    #[test]
    fn wait_for_the_lock_of_the_log_has_a_limit() {
        let (dir, store) = logged(1);
        let store = store.with_lock_limit(Duration::from_millis(20));
        let lock = atomic::open_or_create(&Directory::at(dir.path()), ANCHOR).unwrap();
        lock.lock().unwrap();
        let locked = |done: Result<(), Error>| match done {
            Err(Error::Locked { path, .. }) => path.ends_with(ANCHOR),
            _ => false,
        };
        assert!(locked(store.audit(AuditAction::Read, &[("MEM-002", None)])));
        assert!(locked(store.verify_audit(None).map(drop)));
        drop(lock);
        store
            .audit(AuditAction::Read, &[("MEM-002", None)])
            .unwrap();
        assert_eq!(flaws(&store), []);
    }

    #[test]
    fn a_changed_or_missing_anchor_is_found_and_a_noted_hash_outlives_it() {
        let (dir, store) = logged(3);
        let head = store.verify_audit(None).unwrap().head.unwrap();
        assert_eq!(store.verify_audit(Some(&head)).unwrap().flaws, []);
        let anchor = dir.path().join(ANCHOR);
        let text = std::fs::read_to_string(&anchor).unwrap();
        named::replace(
            &anchor,
            text.replace("\"lines\":3", "\"lines\":2").as_bytes(),
        )
        .unwrap();
        assert!(!flaws(&store).is_empty());
        std::fs::remove_file(&anchor).unwrap();
        assert!(!flaws(&store).is_empty());
        std::fs::remove_file(log_path(dir.path())).unwrap();
        assert_eq!(flaws(&store), []);
        assert_eq!(store.verify_audit(Some(&head)).unwrap().flaws.len(), 1);
    }

    /// A killed process leaves a line without an anchor, or a partial line. Neither was
    /// acknowledged, so neither is an error.
    #[test]
    fn traces_of_a_crash_are_no_chain_error() {
        let (dir, store) = logged(3);
        let anchor = std::fs::read(dir.path().join(ANCHOR)).unwrap();
        store
            .audit(AuditAction::Read, &[("MEM-004", None)])
            .unwrap();
        let full = std::fs::read(log_path(dir.path())).unwrap();
        let third = memchr::memchr_iter(b'\n', &full).nth(2).unwrap() + 1;
        for end in third..=full.len() {
            named::replace(&dir.path().join(ANCHOR), &anchor).unwrap();
            named::replace(&log_path(dir.path()), &full[..end]).unwrap();
            assert_eq!(flaws(&store), [], "cut at {end} of {}", full.len());
            store
                .audit(AuditAction::Read, &[("MEM-005", None)])
                .unwrap();
            let audited = store.verify_audit(None).unwrap();
            let whole = if end == full.len() { 5 } else { 4 };
            assert_eq!((audited.lines, audited.flaws), (whole, Vec::new()), "{end}");
        }
    }
}
