//! The audit log of one memory directory, for one caller.

use std::time::Duration;

use crate::store::error::Error;
use crate::store::files::directory::{self, Identity};
use crate::store::trust::Approvals;
use memctl_files::Directory;

use super::audit_context::AuditContext;
use super::audit_event::{AuditAction, Touched};
use super::chain::Chain;
use super::verify::{Audited, ChainError, verify};

/// The log of a directory, with the caller's context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditLog<'a> {
    pub(crate) directory: &'a Directory,
    pub(crate) audit_context: &'a AuditContext,
    /// Maximum wait for the lock of the log.
    pub(crate) lock_limit: Duration,
    pub(crate) approvals: &'a Approvals,
}

impl AuditLog<'_> {
    /// Appends a line. Without a key there is no memory to audit.
    pub(crate) fn append(self, did: AuditAction, touched: &[Touched<'_>]) -> Result<(), Error> {
        self.append_lines(did, &[(self.audit_context, touched)])
    }

    /// Appends a line for each caller and record.
    pub(crate) fn append_each(
        self,
        did: AuditAction,
        touched: &[(&AuditContext, Touched<'_>)],
    ) -> Result<(), Error> {
        let lines = touched.iter();
        let lines: Vec<_> = lines
            .map(|(audit_context, touched)| (*audit_context, std::slice::from_ref(touched)))
            .collect();
        self.append_lines(did, &lines)
    }

    fn append_lines(
        self,
        did: AuditAction,
        lines: &[(&AuditContext, &[Touched<'_>])],
    ) -> Result<(), Error> {
        let Some(identity) = directory::identity(self.directory) else {
            return Ok(());
        };
        let mut chain = Chain::open(self.directory, self.lock_limit, &identity.tombstone_key)?;
        // A purge removes the log itself.
        let is_missed = did != AuditAction::Purged && chain.is_blank();
        if is_missed && self.approvals.remembers_audit(&identity.origin) {
            chain.doubt();
        }
        for (audit_context, touched) in lines {
            let mut of: Vec<String> = Vec::new();
            for (_, user) in *touched {
                let other =
                    user.filter(|user| *user != audit_context.who && !of.iter().any(|o| o == user));
                of.extend(other.map(str::to_owned));
            }
            let records = touched.iter().map(|(id, _)| (*id).to_owned()).collect();
            chain.append(audit_context, did, records, of)?;
        }
        Ok(())
    }

    /// Begins the audit log of a workspace with a new identity: an anchor and no line. From then
    /// on, a missing anchor means a removed one.
    pub(crate) fn begin(self, identity: &Identity) -> Result<(), Error> {
        let mut chain = Chain::open(self.directory, self.lock_limit, &identity.tombstone_key)?;
        if chain.is_blank() {
            chain.begin()?;
        }
        // Without this record, a removal of the log goes unnoticed; nothing else fails.
        drop(self.approvals.remember_audit(&identity.origin));
        Ok(())
    }

    /// Verifies the whole log. `noted` is a hash noted elsewhere that the log must still contain.
    pub(crate) fn verify(self, noted: Option<&str>) -> Result<Audited, Error> {
        let mut audited = verify(self.directory, self.lock_limit, noted)?;
        let origin = directory::identity(self.directory).map(|identity| identity.origin);
        let origin = origin.unwrap_or_default();
        if audited.is_begun {
            drop(self.approvals.remember_audit(&origin));
        } else if self.approvals.remembers_audit(&origin) {
            audited.flaws.push(ChainError {
                line: None,
                message:
                    "an audit was kept here, and it is gone: both `audit.jsonl` and `audit.anchor`"
                        .to_owned(),
            });
        }
        Ok(audited)
    }
}
