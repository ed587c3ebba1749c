//! The audit log, `audit.jsonl`: reads and writes by caller, time and reason. Append-only and
//! chained.
//!
//! - Here: an event with the call that it is about, and the log that takes it.
//! - `chain`: the lines as one chain, with its anchor, and their verification.
//!
//! Every line ends with a keyed hash of itself and of the previous hash. A changed, removed or
//! inserted line breaks the chain at that point. A truncated chain is still valid, so a small file
//! next to it, the anchor, stores the number of lines and the last hash under a hash of its own.
//!
//! Invariants:
//! - A line is written before the write that it describes, and before an answer with the data read.
//! - A line about memories of users has a line in the log of agents beside it, as the source document says.
//! - A new line never hides damage: if the log does not continue from the anchor, the next line
//!   records it, and every later verification reports it.
//! - The log has a lock of its own, held for microseconds: a reader does not wait for a long write.
//!   Waiting for the lock has a time limit.
//!
//! The user's state directory (`trust`) also records that a log exists. Removing all files of a log
//! therefore does not make it look new.
//!
//! The key is in `workspace.json`; a process that can read it can forge the whole chain. Only a
//! hash noted elsewhere detects that, and verification accepts one.
//!
//! Deliberately absent: syncing to disk (a power failure may cost the newest lines, which
//! verification then reports), the texts that were read or written, and a merge of two logs: git
//! ignores the log, which is of one machine.

pub(crate) mod chain;

use std::collections::BTreeMap;
use std::time::Duration;

use memctl_files::Directory;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::to_raw_value;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

use crate::model::{ActionType, ExecutionLog, Kind, LogStatus};
use crate::store::audit::chain::{Audited, Chain, ChainError, verify};
use crate::store::files::directory::{self, EXECUTION_LOGS};
use crate::store::files::log::{self, Sync};
use crate::store::{Approvals, Error, Identity};

/// The log of a directory, with the caller's context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditLog<'a> {
    pub(crate) directory: &'a Directory,
    /// Maximum wait for the lock of the log.
    pub(crate) lock_limit: Duration,
    pub(crate) approvals: &'a Approvals,
}

impl AuditLog<'_> {
    /// Appends a line for each caller and their records. Without a key there is no memory to audit.
    pub(crate) fn append(
        self,
        did: AuditAction,
        lines: &[(&AuditContext, &[Touched<'_>])],
    ) -> Result<(), Error> {
        let Some(identity) = directory::identity(self.directory) else {
            return Ok(());
        };
        let mut chain = Chain::open(self.directory, self.lock_limit, &identity)?;
        // A purge removes the log itself.
        let is_missed = did != AuditAction::Purged && chain.is_blank;
        chain.is_sound &= !(is_missed && self.approvals.remembers_audit(&identity.origin));
        for (audit_context, touched) in lines {
            let mut of: Vec<String> = Vec::new();
            for (_, user) in *touched {
                let other =
                    user.filter(|user| *user != audit_context.who && !of.iter().any(|o| o == user));
                of.extend(other.map(str::to_owned));
            }
            chain.append(Line {
                seq: 0,
                at: audit_context.at.clone(),
                who: audit_context.who.clone(),
                did,
                records: touched.iter().map(|(id, _)| (*id).to_owned()).collect(),
                of,
                why: audit_context.why.clone(),
            })?;
        }
        drop(chain);
        note_memories(self.directory, did, lines);
        Ok(())
    }

    /// Begins the audit log of a workspace with a new identity: an anchor and no line. From then
    /// on, a missing anchor means a removed one.
    pub(crate) fn begin(self, identity: &Identity) -> Result<(), Error> {
        let chain = Chain::open(self.directory, self.lock_limit, identity)?;
        if chain.is_blank {
            chain.write_anchor()?;
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

/// Adds a line for the memories of each user that audit events name. Neither waits nor fails, because the audit log has
/// the events.
fn note_memories(
    directory: &Directory,
    did: AuditAction,
    events: &[(&AuditContext, &[Touched<'_>])],
) {
    let action = match did {
        AuditAction::Read => ActionType::MemoryRead,
        AuditAction::Added | AuditAction::Edited | AuditAction::Removed => ActionType::MemoryWrite,
        AuditAction::Exported | AuditAction::Purged | AuditAction::Broken => return,
    };
    let mut lines = Vec::new();
    for (context, touched) in events {
        let mut of_users: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
        for (id, user) in *touched {
            if Kind::of_id(id) == Some(Kind::Memory) {
                of_users.entry(*user).or_default().push(*id);
            }
        }
        for (user, ids) in of_users {
            let digest = xxh3_128(format!("{context:?} {did:?} {user:?} {ids:?}").as_bytes());
            lines.push(ExecutionLog {
                id: Uuid::from_u128(digest).to_string(),
                user_id: user.map(str::to_owned),
                step_name: context.why.clone(),
                action_type: action.clone(),
                output_data: to_raw_value(&json!({ "memories": ids })).ok(),
                status: LogStatus::Success,
                // As the other lines write it: texts of times are compared.
                created_at: context.at.replace('Z', "+00:00"),
                ..ExecutionLog::default()
            });
        }
    }
    let texts = lines.iter().map(serde_json::to_string);
    let texts: Vec<String> = texts.filter_map(Result::ok).collect();
    drop(log::append_freely(
        directory,
        EXECUTION_LOGS,
        &texts,
        Sync::Leave,
    ));
}

/// One call of a verb, on behalf of one caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditContext {
    /// Id of the user, or the caller's name in the operating system. Empty if unknown.
    pub who: String,
    /// Reason: the command, as `correct hr/resume-screen`.
    pub why: String,
    /// Time of the call: RFC 3339, UTC.
    pub at: String,
    /// Id of the change that groups its writes. Writes with an empty id are not journaled and
    /// cannot be reverted.
    pub change: String,
}

impl AuditContext {
    /// Derives the id of a change from random text: 12 hexadecimal digits.
    pub fn change_name(random: &str) -> String {
        random
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(12)
            .collect::<String>()
            .to_ascii_lowercase()
    }
}

/// Action of an audit event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditAction {
    /// Records were shown, or used in an answer.
    Read,
    /// Records were added.
    Added,
    /// Records were changed.
    Edited,
    /// Records were removed.
    Removed,
    /// Records left the workspace as a file or over the network.
    Exported,
    /// All records were removed.
    Purged,
    /// The log did not continue from its anchor when the next line was written.
    Broken,
}

/// One audit event: a line of the log, without its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Line {
    /// Sequence number, from 1.
    pub seq: u64,
    /// Time: RFC 3339, UTC.
    pub at: String,
    /// Caller; empty if unknown.
    pub who: String,
    /// Action.
    pub did: AuditAction,
    /// Ids of the records.
    pub records: Vec<String>,
    /// Ids of the users that own the records, other than the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// Reason: the command.
    pub why: String,
}

impl Line {
    /// Returns `true` if the caller accessed another user's records.
    pub fn is_foreign(&self) -> bool {
        !self.of.is_empty()
    }
}

/// An affected record: its id, and the id of its user.
pub type Touched<'a> = (&'a str, Option<&'a str>);
