//! The store of one caller: a memory directory, filtered by scope, user and time.
//!
//! Records outside the scope, of another user, or expired do not exist for the reader: they are not
//! listed, counted or found by id.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use memctl_files::Directory;

use crate::model::{Scope, Viewer};
use crate::store::files::data::scan::LineNumbers;
use crate::store::files::directory;
use crate::store::files::log;
use crate::store::{
    AccessFilter, Approvals, AuditContext, DataFile, Entry, Error, Identity, JsonFile, Primary,
    Problem, ProblemKind, TrustSnapshot,
};

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

    /// Returns the user store, even if it is disabled; `None` if there is none here.
    pub(super) fn attached_user_store(&self) -> Option<&Self> {
        self.user_store.as_deref()
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
}
