//! Audit of reads and writes by one caller, and the events that they may see.

use crate::model::{Kind, Viewer};
use crate::store::audit::audit_event::{AuditAction, Line, Touched};
use crate::store::audit::audit_log::AuditLog;
use crate::store::audit::verify::Audited;
use crate::store::error::Error;
use crate::store::files::directory;
use crate::store::files::file_names::AUDIT_LOG;

use super::scoped::Scoped;

impl Scoped {
    /// Returns the audit log, for this caller.
    pub(crate) fn audit_log(&self) -> AuditLog<'_> {
        AuditLog {
            directory: self.directory(),
            audit_context: self.audit_context(),
            lock_limit: self.lock_limit(),
            approvals: self.approvals(),
        }
    }

    /// Appends an audit event for an action that no writer has recorded.
    pub fn audit(&self, did: AuditAction, touched: &[Touched<'_>]) -> Result<(), Error> {
        if touched.is_empty() {
            return Ok(());
        }
        self.audit_log().append(did, touched)
    }

    /// Visits the lines of the log, oldest first. Skips unreadable lines, which
    /// [`Scoped::verify_audit`] reports. A user sees their own events, and other callers' events on
    /// their records. A limited scope sees none, because the log covers everything.
    pub fn audited(&self, visit: &mut dyn FnMut(Line)) -> Result<(), Error> {
        if !self.scope().allows(None) {
            return Ok(());
        }
        let Some(file) = directory::open_data(self.directory(), AUDIT_LOG)? else {
            return Ok(());
        };
        let lines = std::io::BufRead::split(std::io::BufReader::new(file), b'\n');
        for line in lines {
            let line = line.map_err(Error::io("read", &self.directory().join(AUDIT_LOG)))?;
            if let Ok(line) = serde_json::from_slice::<Line>(&line)
                && let Some(line) = self.seen_part(line)?
            {
                visit(line);
            }
        }
        Ok(())
    }

    /// Returns an event without the names and the records of other users that it also concerned;
    /// `None` if nothing of it is of the viewer.
    pub(crate) fn seen_part(&self, mut line: Line) -> Result<Option<Line>, Error> {
        let id = match self.viewer() {
            Viewer::Owner => return Ok(Some(line)),
            Viewer::Nobody => return Ok(None),
            Viewer::User(id) => id.as_str(),
        };
        if line.who == id {
            return Ok(Some(line));
        }
        if !line.of.iter().any(|user| user == id) {
            return Ok(None);
        }
        if line.of.iter().any(|user| user != id) {
            line.of.retain(|user| user == id);
            let mut own = Vec::new();
            for record in line.records {
                let kind = Kind::of_id(&record).filter(|kind| kind.has_user());
                if let Some(kind) = kind
                    && let Some(entry) = self.find(kind, &record)?
                    && entry.user_id().is_some_and(|user| user == id)
                {
                    own.push(record);
                }
            }
            line.records = own;
        }
        Ok(Some(line))
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

    use super::*;
    use crate::model::Scope;
    use crate::store::atomic;
    use crate::store::audit::audit_context::AuditContext;
    use crate::store::audit::verify::ChainError;
    use crate::store::files::file_names::AUDIT_ANCHOR as ANCHOR;
    use memctl_files::{Directory, named};

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
    fn who_keeps_the_lock_of_the_log_is_not_waited_for_without_an_end() {
        let (dir, store) = logged(1);
        let store = store.with_lock_limit(Duration::from_millis(20));
        let held = atomic::open_or_create(&Directory::at(dir.path()), ANCHOR).unwrap();
        held.lock().unwrap();
        let locked = |done: Result<(), Error>| match done {
            Err(Error::Locked { path, .. }) => path.ends_with(ANCHOR),
            _ => false,
        };
        assert!(locked(store.audit(AuditAction::Read, &[("MEM-002", None)])));
        assert!(locked(store.verify_audit(None).map(drop)));
        drop(held);
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
    fn what_a_crash_leaves_is_no_flaw() {
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
