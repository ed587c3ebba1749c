//! Reading through the access filter of one caller. Every read for a caller and every change to an existing
//! record applies the filter.
//!
//! - Here: the records visible to a caller, by scope, user and time; the store of one caller, with their audit events.
//! - `query`: reads records by a query. `ids`: what a user means by an id. `disabled`: the marks that switch a
//!   memory off.
//!
//! An entry is visible if the scope covers its skill, its user matches the viewer, and it has not
//! expired. Records with a user but no skill are visible to that user in every non-empty scope.
//!
//! The filter fails closed: without a current time, every record with an expiry is hidden.

pub(crate) mod disabled;
mod ids;
pub(crate) mod query;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use memctl_files::{Directory, json};

use crate::model::{Expiry, Kind, Scope, Viewer};
use crate::store::audit::AuditLog;
use crate::store::files::data::scan::LineNumbers;
use crate::store::files::directory;
use crate::store::files::log;
use crate::store::{
    Approvals, AuditAction, AuditContext, Audited, DataFile, Entry, Error, Identity, JsonFile,
    Primary, Problem, ProblemKind, Touched, TrustSnapshot,
};

/// Access filter for one caller.
#[derive(Debug, Clone)]
pub(crate) struct AccessFilter {
    pub(crate) scope: Scope,
    pub(crate) viewer: Viewer,
    /// Current time; `None` hides every record with an expiry.
    pub(crate) now: Option<DateTime<Utc>>,
}

impl AccessFilter {
    /// Returns `true` if an entry of this kind is visible to the caller.
    pub(crate) fn sees(&self, kind: Kind, entry: &[u8]) -> bool {
        self.covers(kind, entry) && !(kind.may_expire() && expiry(entry).is_over(self.now))
    }

    /// Returns `true` if an entry is within scope and user, expired or not.
    pub(crate) fn covers(&self, kind: Kind, entry: &[u8]) -> bool {
        let in_scope = self.scope == Scope::All || {
            let skill = json::string_field(entry, "skill");
            let names_none = matches!(json::field(entry, "skill"), None | Some(b"null"));
            self.scope.allows(skill.as_deref()) || (names_none && self.is_in_every_domain(kind))
        };
        in_scope && self.is_own(kind, entry)
    }

    /// Returns `true` if the scope covers a record of this kind and skill.
    pub(crate) fn covers_skill(&self, kind: Kind, skill: Option<&str>) -> bool {
        self.scope.allows(skill) || (skill.is_none() && self.is_in_every_domain(kind))
    }

    /// Returns `true` if the viewer is a user and the scope is not empty: their records of this
    /// kind without a skill are then visible.
    pub(crate) fn is_in_every_domain(&self, kind: Kind) -> bool {
        let is_empty = matches!(&self.scope, Scope::Domains(domains) if domains.is_empty());
        kind.has_user() && matches!(self.viewer, Viewer::User(_)) && !is_empty
    }

    /// Returns `true` if the user of an entry permits the viewer to read and write it.
    pub(crate) fn is_own(&self, kind: Kind, entry: &[u8]) -> bool {
        !kind.has_user()
            || self.viewer == Viewer::Owner
            || self
                .viewer
                .sees(json::string_field(entry, "user_id").as_deref())
    }

    /// Returns `true` if the caller may see everything in the files, except expired records.
    pub(crate) fn is_whole(&self) -> bool {
        self.scope == Scope::All && self.viewer == Viewer::Owner
    }

    /// Returns `true` if visibility depends on the text of the entry: the table of offsets knows
    /// skills, but no users and times.
    pub(crate) fn asks_the_text(&self, kind: Kind) -> bool {
        kind.may_expire() || (kind.has_user() && self.viewer != Viewer::Owner)
    }
}

/// Returns the expiry of an entry.
pub(crate) fn expiry(entry: &[u8]) -> Expiry {
    match json::field(entry, "expires_at") {
        None | Some(b"null") => Expiry::Never,
        Some(_) => match json::string_field(entry, "expires_at") {
            Some(text) => Expiry::of(Some(&text)),
            None => Expiry::Unreadable,
        },
    }
}

/// Maximum wait for another writer while an agent waits for an answer.
const PATIENCE: Duration = Duration::from_millis(120);
/// Default maximum wait for another writer.
const LOCK_LIMIT: Duration = Duration::from_secs(30);

/// Records of one memory directory that a caller may see.
#[derive(Debug, Clone)]
pub struct Scoped {
    directory: Directory,
    access: AccessFilter,
    lock_limit: Duration,
    /// `true` if a writer reads through this store and holds the lock.
    held: bool,
    /// Caller, time and reason of reads and writes.
    audit_context: Arc<AuditContext>,
    /// The primary database, if the files are only a copy.
    pub(crate) primary: Option<Arc<dyn Primary>>,
    /// The user's decisions about trust in these files.
    approvals: Approvals,
    /// `true` if writes are allowed while the memory is disabled.
    pub(crate) regardless: bool,
    /// The user store that is read beside these records; `None` for none.
    user_store: Option<Arc<Scoped>>,
    /// `true` if these records are those of the user store.
    is_of_user: bool,
}

impl Scoped {
    /// Opens a directory, which need not exist, for the owner of the files. Records with an expiry
    /// are hidden until [`Self::at`] sets the time.
    pub fn new(directory: impl Into<Directory>, scope: Scope) -> Self {
        Self {
            directory: directory.into(),
            access: AccessFilter {
                scope,
                viewer: Viewer::Owner,
                now: None,
            },
            lock_limit: LOCK_LIMIT,
            held: false,
            audit_context: Arc::default(),
            primary: None,
            approvals: Approvals::default(),
            regardless: false,
            user_store: None,
            is_of_user: false,
        }
    }

    /// Names these records as those of the user store, where an agent works without another memory.
    #[must_use]
    pub fn of_user_if(mut self, is_of_user: bool) -> Self {
        self.is_of_user = is_of_user;
        self
    }

    /// Returns `true` for the user store, whose ids end with its name elsewhere.
    pub fn is_of_user(&self) -> bool {
        self.is_of_user
    }

    /// Reads the user store in this directory beside these records, with the same access.
    #[must_use]
    pub fn beside(mut self, directory: impl Into<Directory>, approvals: Approvals) -> Self {
        let user_store = Self {
            directory: directory.into(),
            primary: None,
            approvals,
            user_store: None,
            is_of_user: true,
            ..self.clone()
        };
        self.user_store = Some(Arc::new(user_store));
        self
    }

    /// Sets the user's decisions about trust. Without them every record is `observed`.
    #[must_use]
    pub fn trusting(mut self, approvals: Approvals) -> Self {
        self.approvals = approvals;
        self
    }

    /// Returns the user's decisions about trust in these files.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Returns the current decision about records that count as this user's own word.
    pub fn trust_snapshot(&self) -> TrustSnapshot {
        self.approvals.trust_snapshot()
    }

    /// Sets the current time, which hides expired records.
    #[must_use]
    pub fn at(mut self, now: DateTime<Utc>) -> Self {
        self.access.now = Some(now);
        self
    }

    /// Sets the viewer.
    #[must_use]
    pub fn seen_by(mut self, viewer: Viewer) -> Self {
        self.access.viewer = viewer;
        self
    }

    /// Returns the store for a writer that holds the lock.
    pub(crate) fn held(&self) -> Self {
        Self {
            held: true,
            ..self.clone()
        }
    }

    /// Returns the store for another directory, with the records of another workspace.
    pub(crate) fn moved_to(&self, directory: Directory, origin: &str) -> Self {
        Self {
            directory,
            primary: None,
            approvals: self.approvals.of_origin(origin),
            user_store: None,
            is_of_user: false,
            ..self.clone()
        }
    }

    /// Sets the maximum wait for other writers.
    #[must_use]
    pub fn with_lock_limit(mut self, limit: Duration) -> Self {
        self.lock_limit = limit;
        self
    }

    /// Returns the store with a short wait for other writers, for writes that an agent waits for.
    #[must_use]
    pub fn impatient(&self) -> Self {
        let limit = self.lock_limit.min(PATIENCE);
        self.clone().with_lock_limit(limit)
    }

    /// Returns the maximum wait for other writers.
    pub fn lock_limit(&self) -> Duration {
        self.lock_limit
    }

    /// Sets the context of reads and writes.
    #[must_use]
    pub fn acting(mut self, audit_context: AuditContext) -> Self {
        self.audit_context = Arc::new(audit_context);
        self
    }

    /// Returns the context of reads and writes.
    pub fn audit_context(&self) -> &AuditContext {
        &self.audit_context
    }

    /// Returns `true` if the caller may see the entry.
    pub fn admits(&self, entry: &Entry) -> bool {
        self.access.sees(entry.kind, &entry.text)
    }

    /// Returns the memory directory.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the scope of reads and writes.
    pub fn scope(&self) -> &Scope {
        &self.access.scope
    }

    /// Returns the viewer of reads and writes.
    pub fn viewer(&self) -> &Viewer {
        &self.access.viewer
    }

    /// Returns `true` if the caller may see everything in the files: the owner, with an unlimited
    /// scope. Operations on whole files require this.
    pub fn sees_all(&self) -> bool {
        self.access.is_whole()
    }

    pub(crate) fn access(&self) -> &AccessFilter {
        &self.access
    }

    /// Returns the identity of the workspace, if it has one.
    pub fn identity(&self) -> Option<Identity> {
        directory::identity(&self.directory)
    }

    pub(crate) fn file(&self, of: DataFile) -> JsonFile<'_> {
        JsonFile::new(&self.directory, of, self.held)
    }

    /// Returns problems at positions of a data file, given in its order.
    pub(crate) fn problems_at(
        &self,
        of: DataFile,
        found: impl IntoIterator<Item = (u64, ProblemKind, String)>,
    ) -> Result<Vec<Problem>, Error> {
        let mut found = found.into_iter().peekable();
        if found.peek().is_none() {
            return Ok(Vec::new());
        }
        let path = self.directory.join(of.name());
        let text = log::whole(&self.directory, of.name())?;
        let mut lines = LineNumbers::of(&text, &path);
        let problems = found.map(|(at, kind, message)| lines.problem(at, kind, message));
        Ok(problems.collect())
    }

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
    use super::*;

    #[test]
    fn all_three_conditions_hold_at_once() {
        let now = DateTime::parse_from_rfc3339("2026-05-01T00:00:00Z").unwrap();
        let access = |scope, viewer| AccessFilter {
            scope,
            viewer,
            now: Some(now.to_utc()),
        };
        let owner = access(Scope::All, Viewer::Owner);
        let alice = access(Scope::All, Viewer::User("alice".parse().unwrap()));
        let hr = access(Scope::parse("hr"), Viewer::Owner);
        let alice_in_hr = access(Scope::parse("hr"), Viewer::User("alice".parse().unwrap()));
        let nowhere = access(Scope::parse(""), Viewer::User("alice".parse().unwrap()));
        let check_own = |kind, entry: &str, expected: bool| {
            assert_eq!(
                alice_in_hr.sees(kind, entry.as_bytes()),
                expected,
                "{entry}"
            );
            assert!(!nowhere.sees(kind, entry.as_bytes()), "{entry}");
        };
        check_own(Kind::Memory, r#"{"user_id": "alice"}"#, true);
        check_own(
            Kind::Session,
            r#"{"user_id": "alice", "skill": null}"#,
            true,
        );
        check_own(
            Kind::Memory,
            r#"{"user_id": "alice", "skill": "hr/x"}"#,
            true,
        );
        for skill in [r#""finance/x""#, r#"["hr/x"]"#, r#""x""#, r#""""#] {
            let entry = format!(r#"{{"user_id": "alice", "skill": {skill}}}"#);
            check_own(Kind::Memory, &entry, false);
        }
        check_own(Kind::Memory, r#"{"user_id": "bob"}"#, false);
        check_own(Kind::Memory, "{}", false);
        check_own(Kind::Procedure, r#"{"user_id": "alice"}"#, false);
        let check = |kind, entry: &str, expected: [bool; 3]| {
            let seen = [&owner, &alice, &hr].map(|access| access.sees(kind, entry.as_bytes()));
            assert_eq!(seen, expected, "{entry}");
        };
        check(Kind::Memory, r#"{"user_id": "alice"}"#, [true, true, false]);
        check(Kind::Memory, r#"{"user_id": "bob"}"#, [true, false, false]);
        check(
            Kind::Memory,
            r#"{"user_id": ["alice"]}"#,
            [true, false, false],
        );
        check(Kind::Memory, "{}", [true, false, false]);
        check(Kind::Session, "{}", [true, false, false]);
        check(Kind::Procedure, "{}", [true, true, false]);
        check(Kind::Reflexion, r#"{"skill": "hr/x"}"#, [true; 3]);
        // The last of two fields counts, as in every JSON parser.
        let twice = r#"{"user_id": "alice", "user_id": "bob"}"#;
        check(Kind::Memory, twice, [true, false, false]);
        check(Kind::Memory, r#"{"expires_at": "2026-05-01"}"#, [false; 3]);
        check(Kind::Memory, r#"{"expires_at": 90}"#, [false; 3]);
        check(
            Kind::Memory,
            r#"{"expires_at": null}"#,
            [true, false, false],
        );
        check(
            Kind::Procedure,
            r#"{"expires_at": "2026-05-01"}"#,
            [true, true, false],
        );
    }
}

#[cfg(test)]
mod tests_of_audit {
    use std::path::{Path, PathBuf};

    use memctl_files::named;

    use super::*;
    use crate::store::files::directory::{AUDIT_ANCHOR, AUDIT_LOG};
    use crate::store::{ChainError, atomic};

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
        let changes: [(&str, Change); 8] = [
            ("changed", |l| l[2] = l[2].replace("MEM-003", "MEM-999")),
            ("deleted", |l| drop(l.remove(2))),
            ("first deleted", |l| drop(l.remove(0))),
            ("last deleted", |l| drop(l.pop())),
            ("all deleted", Vec::clear),
            ("inserted", |l| l.insert(2, l[2].clone())),
            ("appended", |l| l.push(l[2].clone())),
            ("swapped", |l| l.swap(1, 2)),
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
        let lock = atomic::open_or_create(&Directory::at(dir.path()), AUDIT_LOG).unwrap();
        lock.lock().unwrap();
        let locked = |done: Result<(), Error>| match done {
            Err(Error::Locked { path, .. }) => path.ends_with(AUDIT_LOG),
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
        let anchor = dir.path().join(AUDIT_ANCHOR);
        let before = std::fs::read(&anchor).unwrap();
        store
            .audit(AuditAction::Read, &[("MEM-004", None)])
            .unwrap();
        let head = store.verify_audit(None).unwrap().head.unwrap();
        assert_eq!(store.verify_audit(Some(&head)).unwrap().flaws, []);
        // Its hash, with the proof of another.
        let text = String::from_utf8(before).unwrap();
        let (proof, _) = text.split_once(' ').unwrap();
        named::replace(&anchor, format!("{proof} {head}\n").as_bytes()).unwrap();
        assert_eq!(flaws(&store).len(), 1);
        std::fs::remove_file(&anchor).unwrap();
        assert_eq!(flaws(&store).len(), 1);
        std::fs::remove_file(log_path(dir.path())).unwrap();
        assert_eq!(flaws(&store), []);
        assert_eq!(store.verify_audit(Some(&head)).unwrap().flaws.len(), 1);
    }

    /// A killed process leaves a line without an anchor, or a partial line. Neither was acknowledged, so
    /// neither is an error.
    #[test]
    fn traces_of_a_crash_are_no_chain_error() {
        let (dir, store) = logged(3);
        let anchor = std::fs::read(dir.path().join(AUDIT_ANCHOR)).unwrap();
        store
            .audit(AuditAction::Read, &[("MEM-004", None)])
            .unwrap();
        let full = std::fs::read(log_path(dir.path())).unwrap();
        let third = memchr::memchr_iter(b'\n', &full).nth(2).unwrap() + 1;
        for end in third..=full.len() {
            named::replace(&dir.path().join(AUDIT_ANCHOR), &anchor).unwrap();
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
