//! The audit log, `audit.jsonl`: reads and writes by caller, time and reason. Append-only and
//! chained.
//!
//! A line is `{…,"hash":"<64 hexadecimal digits>"}`. The hash is an HMAC-SHA-256 under the workspace's key, over
//! the previous hash and the text before `,"hash"`. A changed, removed or inserted line breaks the chain at that
//! point. The file `audit.anchor` has the hash of the last line, and a proof of it under the key, so that a log without
//! its end is noticed. Verification also accepts a hash that was noted elsewhere.
//!
//! Invariants:
//! - A line is written before the write that it describes, and before an answer with the data read.
//! - A line about memories of users has a line in the log of agents beside it, as the source document says.
//! - The log is locked for microseconds, apart from the memory: a reader does not wait for a long write.
//!   Waiting for the lock has a time limit.
//!
//! The user's state directory (`trust`) also records that a log exists. Removing the log therefore does not make it
//! look new: the first line of the next one says that, and every later verification reports it.
//!
//! The key is in `workspace.json`; a process that can read it can forge the whole chain. That, too, only a noted hash
//! shows.
//!
//! Verification needs no JSON parser: it reads the file once, in pieces, and its only cost is one hash per line.
//!
//! Deliberately absent: syncing to disk (a power failure may cost the newest lines), the texts that were read or
//! written, and a merge of two logs: git ignores the log, which is of one machine.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use hmac::{Hmac, Mac as _};
use memctl_files::{Directory, PositionedFile as _, hex};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::to_raw_value;
use sha2::Sha256;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

use crate::model::{ActionType, ExecutionLog, Kind, LogStatus};
use crate::store::files::directory::{self, AUDIT_ANCHOR, AUDIT_LOG, EXECUTION_LOGS};
use crate::store::files::keyed_hash;
use crate::store::files::log::{self, Sync};
use crate::store::{Approvals, Error, Identity, atomic};

/// Maximum wait for the lock. This program holds it for a few lines only; a longer hold is another
/// program's.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

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
        let mut chain = self.open(&identity)?;
        let is_blank = chain.bytes == 0;
        // A purge removes the log itself.
        let is_gone = is_blank && self.approvals.remembers_audit(&identity.origin);
        let is_missed = did != AuditAction::Purged && (is_gone || !self.is_at_anchor(&chain)?);
        for (i, (audit_context, touched)) in lines.iter().enumerate() {
            let mut of: Vec<String> = Vec::new();
            for (_, user) in *touched {
                let other =
                    user.filter(|user| *user != audit_context.who && !of.iter().any(|o| o == user));
                of.extend(other.map(str::to_owned));
            }
            let line = Line {
                seq: 0,
                at: audit_context.at.clone(),
                who: audit_context.who.clone(),
                did,
                records: touched.iter().map(|(id, _)| (*id).to_owned()).collect(),
                of,
                why: audit_context.why.clone(),
            };
            if is_missed && i == 0 {
                chain.add(Line {
                    did: AuditAction::Broken,
                    records: Vec::new(),
                    of: Vec::new(),
                    ..line.clone()
                })?;
            }
            chain.add(line)?;
        }
        if is_blank {
            // A crash after the first line leaves an anchor, too.
            self.set_anchor(&chain.key, b"")?;
        }
        chain.write()?;
        self.set_anchor(&chain.key, &chain.hash)?;
        if is_blank {
            // Without this record, a removal of the log goes unnoticed; nothing else fails.
            drop(self.approvals.remember_audit(&identity.origin));
        }
        note_memories(self.directory, did, lines);
        Ok(())
    }

    /// Locks the log and finds its end. A line that a crash cut off is overwritten, because no caller relies on it.
    fn open(self, identity: &Identity) -> Result<Chain, Error> {
        let path = self.directory.join(AUDIT_LOG);
        let file = atomic::open_or_create(self.directory, AUDIT_LOG)?;
        directory::wait_for(&path, self.lock_limit.min(LOCK_LIMIT), || file.try_lock())?;
        let failed = || Error::io("read", &path);
        let length = file.metadata().map_err(failed())?.len();
        let mut is_torn = log::ends_inside_a_line(self.directory, AUDIT_LOG).map_err(failed())?;
        let (mut torn, mut last) = (0, Vec::new());
        log::backwards(self.directory, AUDIT_LOG, &mut |line| {
            if std::mem::take(&mut is_torn) {
                torn = line.len() as u64;
                return ControlFlow::Continue(());
            }
            last = line.to_vec();
            ControlFlow::Break(())
        })?;
        if torn > 0 {
            file.set_len(length - torn).map_err(failed())?;
        }
        let (_, hash) = split(&last).unwrap_or_default();
        Ok(Chain {
            key: Key::of(identity),
            bytes: length - torn,
            hash: hash.to_vec(),
            seq: serde_json::from_slice(&last).map_or(0, |line: Line| line.seq),
            text: String::new(),
            file,
            path,
        })
    }

    /// Hash of the last line according to the anchor; `None` without an anchor of this key.
    fn anchored(self, key: &Key) -> Option<Vec<u8>> {
        let text = self.directory.read_text(AUDIT_ANCHOR, 4 * DIGITS as u64);
        let text = text.ok().flatten()?;
        let (proof, hash) = text
            .trim_end()
            .split_once(' ')
            .unwrap_or((text.trim_end(), ""));
        key.proves(proof, hash.as_bytes()).then(|| hash.into())
    }

    fn set_anchor(self, key: &Key, hash: &[u8]) -> Result<(), Error> {
        let proof = Key::mac(&key.0[0], &[b"anchor\0", hash]);
        let text = format!("{proof} {}\n", String::from_utf8_lossy(hash));
        let file = atomic::open_or_create(self.directory, AUDIT_ANCHOR)?;
        file.write_all_at(text.as_bytes(), 0)
            .and_then(|()| file.set_len(text.len() as u64))
            .map_err(Error::io("write", &self.directory.join(AUDIT_ANCHOR)))
    }

    /// Returns `true` if the log still has the line of its anchor: the last one, or one before a crash.
    fn is_at_anchor(self, chain: &Chain) -> Result<bool, Error> {
        let anchored = self.anchored(&chain.key);
        let mut is_met = anchored
            .as_deref()
            .map_or(chain.bytes == 0, <[u8]>::is_empty);
        if let Some(anchored) = anchored.filter(|_| !is_met) {
            log::backwards(self.directory, AUDIT_LOG, &mut |line| {
                is_met = split(line).is_some_and(|(_, hash)| hash == anchored);
                if is_met {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
        }
        Ok(is_met)
    }

    /// Verifies the whole log. `noted` is a hash noted elsewhere that the log must still contain.
    pub(crate) fn verify(self, noted: Option<&str>) -> Result<Audited, Error> {
        let mut audited = Audited::default();
        let path = self.directory.join(AUDIT_LOG);
        let log = directory::open_data(self.directory, AUDIT_LOG)?;
        let Some(identity) = directory::identity(self.directory) else {
            if log.is_some() {
                let message = "the key of the chain is missing: `workspace.json` cannot be read";
                audited.flaw(None, message);
            }
            return Ok(audited);
        };
        // The shared lock keeps writers out meanwhile.
        if let Some(log) = &log {
            let limit = self.lock_limit.min(LOCK_LIMIT);
            directory::wait_for(&path, limit, || log.try_lock_shared())?;
        }
        let key = Key::of(&identity);
        // Hash of the line before.
        let mut before = Vec::with_capacity(DIGITS);
        let mut met_noted = noted.is_none();
        let anchored = self.anchored(&key);
        let mut met_anchored = anchored.as_deref().is_none_or(<[u8]>::is_empty);
        let mut reader = log.map(|log| io::BufReader::with_capacity(1 << 20, log));
        let mut line = Vec::new();
        while let Some(reader) = &mut reader {
            line.clear();
            let read = reader.read_until(b'\n', &mut line);
            read.map_err(Error::io("read", &path))?;
            // A partial line is the result of a crash, and was never acknowledged.
            let Some(whole) = line.strip_suffix(b"\n") else {
                break;
            };
            audited.lines += 1;
            let number = Some(audited.lines);
            let Some((body, hash)) = split(whole) else {
                audited.flaw(number, "not an audit event");
                continue;
            };
            if !key.made(hash, &before, body) {
                let message =
                    "it was changed, or a line before it was changed, removed or inserted";
                audited.flaw(number, message);
            } else if memchr::memmem::find(body, b"\"did\":\"broken\"").is_some() {
                let message = "when it was written, the log before it was gone or had another end";
                audited.flaw(number, message);
            }
            before.clear();
            before.extend_from_slice(hash);
            met_noted |= noted.is_some_and(|noted| noted.as_bytes() == hash);
            met_anchored |= anchored.as_deref() == Some(hash);
            audited.head = Some(String::from_utf8_lossy(hash).into_owned());
        }
        if audited.lines > 0 {
            drop(self.approvals.remember_audit(&identity.origin));
        } else if self.approvals.remembers_audit(&identity.origin) {
            audited.flaw(
                None,
                "an audit was kept here, and it is gone: `audit.jsonl`",
            );
        }
        if anchored.is_none() && audited.lines > 0 {
            audited.flaw(
                None,
                "`audit.anchor`, which knows the last line, was changed or is gone",
            );
        } else if !met_anchored {
            audited.flaw(None, "the end of the log is gone");
        }
        if !met_noted {
            audited.flaw(None, "the given hash is not in the log");
        }
        Ok(audited)
    }
}

/// The locked log, with its next lines.
struct Chain {
    key: Key,
    file: File,
    path: PathBuf,
    /// Length of the whole lines.
    bytes: u64,
    /// Number and hash of the last line; 0 and empty before the first.
    seq: u64,
    hash: Vec<u8>,
    /// Lines to be written.
    text: String,
}

impl Chain {
    fn add(&mut self, line: Line) -> Result<(), Error> {
        self.seq += 1;
        let mut text = serde_json::to_string(&Line {
            seq: self.seq,
            ..line
        })?;
        // The closing bracket follows the hash.
        text.pop();
        let hash = Key::mac(&self.key.0[0], &[b"line\0", &self.hash, text.as_bytes()]);
        self.text
            .extend([&*text, BEFORE_HASH, &hash, AFTER_HASH, "\n"]);
        self.hash = hash.into_bytes();
        Ok(())
    }

    fn write(&self) -> Result<(), Error> {
        let written = self.file.write_all_at(self.text.as_bytes(), self.bytes);
        written.map_err(Error::io("append to", &self.path))
    }
}

/// Text between the body of a line and its hash.
const BEFORE_HASH: &str = ",\"hash\":\"";
/// Text after the hash.
const AFTER_HASH: &str = "\"}";
/// Length of a hash in hexadecimal digits.
const DIGITS: usize = 64;

/// Keys of the chain: that of new lines first, then those of workspaces that git has merged into this one.
struct Key(Vec<Hmac<Sha256>>);

impl Key {
    fn of(identity: &Identity) -> Self {
        let keys = identity.keys();
        Self(keys.map(|key| keyed_hash(key.as_bytes())).collect())
    }

    /// Returns `true` if a line with this body and this previous hash has this one by any of the keys.
    fn made(&self, hash: &[u8], before: &[u8], body: &[u8]) -> bool {
        let line = [b"line\0", before, body];
        self.0
            .iter()
            .any(|key| Self::mac(key, &line).as_bytes() == hash)
    }

    /// Returns `true` if a proof of a last line is by any of the keys.
    fn proves(&self, proof: &str, hash: &[u8]) -> bool {
        let mut keys = self.0.iter();
        keys.any(|key| Self::mac(key, &[b"anchor\0", hash]) == proof)
    }

    fn mac(key: &Hmac<Sha256>, parts: &[&[u8]]) -> String {
        let mut mac = key.clone();
        for part in parts {
            mac.update(part);
        }
        hex(&mac.finalize().into_bytes())
    }
}

/// Splits a line into the text before its hash, and the hash; `None` if it is not an audit line.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_suffix(AFTER_HASH.as_bytes())?;
    let at = rest.len().checked_sub(DIGITS)?;
    let (front, hash) = rest.split_at(at);
    Some((front.strip_suffix(BEFORE_HASH.as_bytes())?, hash))
}

/// Maximum number of reported errors; a foreign log has one per line.
const TOLD: usize = 20;

/// Result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Audited {
    /// Number of lines.
    pub lines: u64,
    /// Hash of the last line. Note it elsewhere to check a later state of the log against it.
    pub head: Option<String>,
    /// Errors in file order; at most twenty.
    pub flaws: Vec<ChainError>,
}

impl Audited {
    fn flaw(&mut self, line: Option<u64>, message: &str) {
        if self.flaws.len() < TOLD {
            let message = message.to_owned();
            self.flaws.push(ChainError { line, message });
        }
    }
}

/// An error in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ChainError {
    /// Line number from 1; `None` if the error concerns no single line.
    pub line: Option<u64>,
    /// Description of the error.
    pub message: String,
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
    drop(log::append(directory, EXECUTION_LOGS, &texts, Sync::Leave));
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
    /// The log before the next line was gone.
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

/// An affected record: its id, and the id of its user.
pub type Touched<'a> = (&'a str, Option<&'a str>);
