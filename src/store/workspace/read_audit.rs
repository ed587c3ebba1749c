//! Audit events of reads.
//!
//! Writers audit themselves. Verbs that answer with records audit the read: always for kinds that belong to a
//! user (memories, sessions), and for every kind if `audit.reads = all`.

use std::str::FromStr;

use crate::model::Kind;
use crate::store::workspace::Workspace;
use crate::store::workspace::error::chain;
use crate::store::{AuditAction, Entry, Touched};

/// Which reads are noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditReads {
    /// Reads of memories and sessions.
    #[default]
    Personal,
    /// All.
    All,
}

impl Workspace {
    /// Notes that records were read, where such reads are noted. What was not noted is said: the answer
    /// is given all the same, since a memory that is only read may lie where nobody can write.
    pub(crate) fn note_read<'a>(
        &self,
        records: impl IntoIterator<Item = (Kind, Touched<'a>)>,
    ) -> Option<String> {
        let all = self.settings.audit_reads == AuditReads::All;
        let noted = records
            .into_iter()
            .filter(|(kind, (id, _))| (all || kind.has_user()) && !id.is_empty());
        let noted: Vec<Touched<'_>> = noted.map(|(_, touched)| touched).collect();
        if noted.is_empty() {
            return None;
        }
        let done = self.store.audit(AuditAction::Read, &noted);
        done.err().map(|error| unnoted(&error))
    }
}

impl Workspace {
    /// Audits reads of whole kinds by their number of records, if reads of all kinds are audited. Returns a
    /// warning if the event cannot be written.
    pub(crate) fn note_counted(&self, read: &[(Kind, u64)]) -> Option<String> {
        if self.settings.audit_reads != AuditReads::All {
            return None;
        }
        let read = read.iter().filter(|(_, count)| *count > 0);
        let numbers: Vec<String> = read.map(|(kind, count)| number(*kind, *count)).collect();
        if numbers.is_empty() {
            return None;
        }
        let touched: Vec<Touched<'_>> = numbers.iter().map(|n| (n.as_str(), None)).collect();
        let done = self.store.audit(AuditAction::Read, &touched);
        done.err().map(|error| unnoted(&error))
    }

    /// Audits an export: records of users by id, others by number and kind. Returns a warning if the event
    /// cannot be written.
    pub(crate) fn note_exported(&self, entries: &[Entry]) -> Option<String> {
        let mut numbers: Vec<String> = Vec::new();
        for kind in Kind::ALL.into_iter().filter(|kind| !kind.has_user()) {
            let count = entries.iter().filter(|entry| entry.kind == kind).count();
            if count > 0 {
                numbers.push(number(kind, count as u64));
            }
        }
        let owned = entries.iter().filter(|entry| entry.kind.has_user());
        let owned: Vec<_> = owned.map(|e| (e.id.as_str(), e.user_id())).collect();
        let mut touched: Vec<Touched<'_>> = owned
            .iter()
            .map(|(id, user)| (*id, user.as_deref()))
            .collect();
        touched.extend(numbers.iter().map(|number| (number.as_str(), None)));
        let done = self.store.audit(AuditAction::Exported, &touched);
        done.err()
            .map(|error| format!("this export is not in the audit: {}", chain(&error)))
    }
}

/// Number and kind of audited records.
fn number(kind: Kind, count: u64) -> String {
    format!("{count} {}", kind.plural())
}

fn unnoted(error: &crate::store::Error) -> String {
    format!("this read is not in the audit: {}", chain(error))
}

impl FromStr for AuditReads {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "personal" => Ok(Self::Personal),
            "all" => Ok(Self::All),
            _ => Err("it is `personal` or `all`"),
        }
    }
}
