//! The open log: its end, and the next line of the chain.
//!
//! The hash chain: hashes of lines, and the anchor that seals the end of the log.
//!
//! A line is `{…,"hash":"<64 hexadecimal digits>"}`. The hash is an HMAC-SHA-256 under the
//! workspace's key, over the previous hash and the text before `,"hash"`. Verification therefore
//! needs no JSON parser.
//!
//! Verification of the whole log.
//!
//! Reads the file once, in pieces, without parsing JSON: the only cost is one hash per line.

use std::fs::File;
use std::io::BufRead as _;
use std::path::PathBuf;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use memctl_files::{Directory, PositionedFile as _, hex};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::store::audit::{self, Line};
use crate::store::files::directory::{self, AUDIT_ANCHOR, AUDIT_LOG};
use crate::store::{AuditAction, AuditContext, Error, atomic};

/// The locked log, ready for its next line.
pub(super) struct Chain {
    key: Key,
    anchor_file: File,
    anchor_path: PathBuf,
    log: File,
    log_path: PathBuf,
    end: Anchor,
    /// `true` if the log continues from its anchor.
    is_sound: bool,
    is_blank: bool,
}

impl Chain {
    pub(super) fn open(directory: &Directory, limit: Duration, key: &str) -> Result<Self, Error> {
        let anchor_file = audit::lock(directory, limit)?;
        let anchor_path = directory.join(AUDIT_ANCHOR);
        let log_path = directory.join(AUDIT_LOG);
        let log = atomic::open_or_create(directory, AUDIT_LOG)?;
        let length = log.metadata().map_err(Error::io("read", &log_path))?.len();
        let key = Key::new(key).ok_or_else(|| {
            Error::io("lock", &anchor_path)(std::io::Error::other("the workspace has no key"))
        })?;
        let saved = audit::read_anchor(&anchor_file, &anchor_path)?;
        let saved = saved.filter(|anchor| anchor.is_ours(&key));
        let mut chain = Self {
            end: Anchor::new(&key, 0, 0, String::new()),
            is_sound: length == 0 && saved.is_none(),
            is_blank: length == 0 && saved.is_none(),
            key,
            anchor_file,
            anchor_path,
            log,
            log_path,
        };
        match saved {
            Some(anchor) if anchor.bytes == length => {
                chain.is_sound = chain.last_hash_is(&anchor)?;
                chain.end = anchor;
            }
            // A line, or part of one, that was written just before a crash.
            Some(anchor) if anchor.bytes < length => chain.go_on_from(anchor, length)?,
            _ if length > 0 => chain.end = chain.at_the_end(length)?,
            // The whole log is gone; the new line continues from the anchor.
            Some(anchor) => chain.end = Anchor { bytes: 0, ..anchor },
            None => {}
        }
        Ok(chain)
    }

    /// Returns `true` if there is neither a line nor an anchor.
    pub(super) fn is_blank(&self) -> bool {
        self.is_blank
    }

    /// Writes the anchor of a log without lines.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        audit::write_anchor(&self.anchor_file, &self.anchor_path, &self.end)
    }

    /// Makes the next append record that the log is not intact.
    pub(super) fn doubt(&mut self) {
        self.is_sound = false;
    }

    /// Appends a line, after a [`AuditAction::Broken`] line if the log does not continue from its anchor.
    pub(super) fn append(
        &mut self,
        audit_context: &AuditContext,
        did: AuditAction,
        records: Vec<String>,
        of: Vec<String>,
    ) -> Result<(), Error> {
        if !std::mem::replace(&mut self.is_sound, true) {
            self.write(audit_context, AuditAction::Broken, Vec::new(), Vec::new())?;
        }
        self.write(audit_context, did, records, of)
    }

    fn write(
        &mut self,
        audit_context: &AuditContext,
        did: AuditAction,
        records: Vec<String>,
        of: Vec<String>,
    ) -> Result<(), Error> {
        let line = Line {
            seq: self.end.lines + 1,
            at: audit_context.at.clone(),
            who: audit_context.who.clone(),
            did,
            records,
            of,
            why: audit_context.why.clone(),
        };
        let mut text_of_line = serde_json::to_string(&line)?;
        // The closing bracket follows the hash.
        text_of_line.pop();
        let hash = self
            .key
            .hash(self.end.hash.as_bytes(), text_of_line.as_bytes());
        let text_of_line = sealed(text_of_line, &hash);
        self.log
            .write_all_at(text_of_line.as_bytes(), self.end.bytes)
            .map_err(Error::io("append to", &self.log_path))?;
        let bytes = self.end.bytes + text_of_line.len() as u64;
        self.end = Anchor::new(&self.key, line.seq, bytes, hash);
        audit::write_anchor(&self.anchor_file, &self.anchor_path, &self.end)
    }

    fn last_hash_is(&self, anchor: &Anchor) -> Result<bool, Error> {
        if anchor.lines == 0 {
            return Ok(anchor.bytes == 0);
        }
        let end = format!("{}{AFTER_HASH}\n", anchor.hash);
        let mut found = vec![0; end.len()];
        let Some(at) = anchor.bytes.checked_sub(end.len() as u64) else {
            return Ok(false);
        };
        self.log
            .read_exact_at(&mut found, at)
            .map_err(Error::io("read", &self.log_path))?;
        Ok(found == end.as_bytes())
    }

    /// Continues after the lines behind the anchor, if they are valid links of the chain.
    /// Overwrites a line that a crash cut off, because no caller relies on it.
    fn go_on_from(&mut self, anchor: Anchor, length: u64) -> Result<(), Error> {
        let sound = self.last_hash_is(&anchor)?;
        let mut rest = vec![0; usize::try_from(length - anchor.bytes).unwrap_or(usize::MAX)];
        self.log
            .read_exact_at(&mut rest, anchor.bytes)
            .map_err(Error::io("read", &self.log_path))?;
        let (mut lines, mut bytes, mut hash) = (anchor.lines, anchor.bytes, anchor.hash);
        for line in rest.split_inclusive(|b| *b == b'\n') {
            let Some(whole) = line.strip_suffix(b"\n") else {
                break;
            };
            let link = split(whole)
                .filter(|(body, found)| self.key.hash(hash.as_bytes(), body).as_bytes() == *found);
            let Some((_, found)) = link else {
                self.is_sound = false;
                self.end = self.at_the_end(length)?;
                return Ok(());
            };
            lines += 1;
            bytes += line.len() as u64;
            hash = String::from_utf8_lossy(found).into_owned();
        }
        self.log
            .set_len(bytes)
            .map_err(Error::io("write", &self.log_path))?;
        self.is_sound = sound;
        self.end = Anchor::new(&self.key, lines, bytes, hash);
        Ok(())
    }

    /// Returns the end of a log that does not match its anchor: the last whole line, valid or not.
    fn at_the_end(&self, length: u64) -> Result<Anchor, Error> {
        let mut all = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        self.log
            .read_exact_at(&mut all, 0)
            .map_err(Error::io("read", &self.log_path))?;
        let whole = memchr::memrchr(b'\n', &all).map_or(0, |at| at + 1);
        let lines = memchr::memchr_iter(b'\n', &all[..whole]).count() as u64;
        let last = all[..whole]
            .split(|b| *b == b'\n')
            .rev()
            .find(|line| !line.is_empty());
        let hash = last
            .and_then(split)
            .map(|(_, hash)| String::from_utf8_lossy(hash).into_owned());
        Ok(Anchor::new(
            &self.key,
            lines,
            whole as u64,
            hash.unwrap_or_default(),
        ))
    }
}

/// Text between the body of a line and its hash.
const BEFORE_HASH: &str = ",\"hash\":\"";
/// Text after the hash.
pub(super) const AFTER_HASH: &str = "\"}";
/// Length of a hash in hexadecimal digits.
pub(super) const DIGITS: usize = 64;

/// End of the log after the last write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    /// Number of lines.
    pub(super) lines: u64,
    /// Length of the log in bytes.
    pub(super) bytes: u64,
    /// Hash of the last line; empty before the first.
    pub(super) hash: String,
    /// Keyed hash of the other three fields.
    pub(super) seal: String,
}

impl Anchor {
    pub(super) fn new(key: &Key, lines: u64, bytes: u64, hash: String) -> Self {
        let seal = key.seal(lines, bytes, &hash);
        Self {
            lines,
            bytes,
            hash,
            seal,
        }
    }

    /// Returns `true` if the seal was made with this key.
    pub(super) fn is_ours(&self, key: &Key) -> bool {
        self.seal == key.seal(self.lines, self.bytes, &self.hash)
    }

    /// Renders the anchor as a line of constant length.
    pub(super) fn render(&self) -> Result<String, Error> {
        let mut text = serde_json::to_string(self)?;
        let width = 2 * DIGITS + 96;
        text.extend(std::iter::repeat_n(' ', width.saturating_sub(text.len())));
        text.push('\n');
        Ok(text)
    }
}

/// Key of the chain.
pub(super) struct Key(Hmac<Sha256>);

impl Key {
    pub(super) fn new(key: &str) -> Option<Self> {
        // HMAC accepts keys of every length, so this cannot fail.
        Hmac::new_from_slice(key.as_bytes()).ok().map(Self)
    }

    /// Returns the hash of a line with this body and this previous hash.
    pub(super) fn hash(&self, before: &[u8], body: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(b"line\0");
        mac.update(before);
        mac.update(body);
        hex(&mac.finalize().into_bytes())
    }

    fn seal(&self, lines: u64, bytes: u64, hash: &str) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("anchor\0{lines}\0{bytes}\0{hash}").as_bytes());
        hex(&mac.finalize().into_bytes())
    }
}

/// Returns a whole line from the text before its hash, and the hash.
pub(super) fn sealed(body: String, hash: &str) -> String {
    body + BEFORE_HASH + hash + AFTER_HASH + "\n"
}

/// Splits a line into the text before its hash, and the hash; `None` if it is not an audit line.
pub(super) fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_suffix(AFTER_HASH.as_bytes())?;
    let at = rest.len().checked_sub(DIGITS)?;
    let (front, hash) = rest.split_at(at);
    Some((front.strip_suffix(BEFORE_HASH.as_bytes())?, hash))
}

/// Maximum number of reported errors; a foreign log has one per line.
const TOLD: usize = 20;

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Audited {
    /// Number of lines.
    pub lines: u64,
    /// `true` if there is an anchor or a line.
    #[serde(skip)]
    pub is_begun: bool,
    /// Hash of the last line. Note it elsewhere to check a later state of the log against it.
    pub head: Option<String>,
    /// Errors in file order; at most twenty.
    pub flaws: Vec<ChainError>,
}

/// An error in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ChainError {
    /// Line number from 1; `None` if the error concerns no single line.
    pub line: Option<u64>,
    /// Description of the error.
    pub message: String,
}

pub(super) fn verify(
    directory: &Directory,
    limit: Duration,
    noted: Option<&str>,
) -> Result<Audited, Error> {
    let mut audited = Audited {
        lines: 0,
        is_begun: false,
        head: None,
        flaws: Vec::new(),
    };
    let key = directory::identity(directory).and_then(|i| Key::new(&i.tombstone_key));
    let log = directory::open_data(directory, AUDIT_LOG)?;
    let anchor_file = directory::open_data(directory, AUDIT_ANCHOR)?;
    let Some(key) = key else {
        if log.is_some() {
            audited.flaw(
                None,
                "the key of the chain is missing: `workspace.json` cannot be read",
            );
        }
        return Ok(audited);
    };
    // The shared lock keeps writers out during the comparison.
    if let Some(file) = &anchor_file {
        let path = directory.join(AUDIT_ANCHOR);
        let limit = limit.min(audit::LOCK_LIMIT);
        directory::wait_for(&path, limit, || file.try_lock_shared())?;
    }
    let anchor = match &anchor_file {
        Some(file) => audit::read_anchor(file, &directory.join(AUDIT_ANCHOR))?,
        None => None,
    };
    let mut walk = Walk {
        key: &key,
        before: Vec::with_capacity(DIGITS),
        anchor: anchor.as_ref().filter(|anchor| anchor.is_ours(&key)),
        met_anchor: false,
        met_noted: noted.is_none(),
        noted,
        is_torn: false,
    };
    if let Some(log) = log {
        let mut reader = std::io::BufReader::with_capacity(1 << 20, log);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader
                .read_until(b'\n', &mut line)
                .map_err(Error::io("read", &directory.join(AUDIT_LOG)))?;
            if read == 0 {
                break;
            }
            walk.line(&line, &mut audited);
        }
    }
    if anchor.is_some() && walk.anchor.is_none() {
        audited.flaw(None, "the anchor (`audit.anchor`) has been changed");
    }
    if anchor.is_none() && audited.lines > 0 {
        audited.flaw(None, "the anchor (`audit.anchor`) is gone");
    }
    audited.is_begun = anchor.is_some() || audited.lines > 0;
    walk.end(&mut audited);
    Ok(audited)
}

impl Audited {
    fn flaw(&mut self, line: Option<u64>, message: impl Into<String>) {
        if self.flaws.len() < TOLD {
            let message = message.into();
            self.flaws.push(ChainError { line, message });
        }
    }
}

struct Walk<'a> {
    key: &'a Key,
    /// Hash of the previous line.
    before: Vec<u8>,
    anchor: Option<&'a Anchor>,
    met_anchor: bool,
    noted: Option<&'a str>,
    met_noted: bool,
    is_torn: bool,
}

impl Walk<'_> {
    fn line(&mut self, line: &[u8], audited: &mut Audited) {
        let Some(whole) = line.strip_suffix(b"\n") else {
            // A crash leaves a partial line behind the anchor; `end` decides whether it was one.
            self.is_torn = true;
            return;
        };
        audited.lines += 1;
        let number = Some(audited.lines);
        let Some((body, hash)) = split(whole) else {
            audited.flaw(number, "not an audit event");
            return;
        };
        if self.key.hash(&self.before, body).as_bytes() != hash {
            audited.flaw(
                number,
                "it was changed, or a line before it was changed, removed or inserted",
            );
        } else if memchr::memmem::find(body, b"\"did\":\"broken\"").is_some() {
            audited.flaw(
                number,
                "when it was written, the log did not end where its anchor says",
            );
        }
        self.before.clear();
        self.before.extend_from_slice(hash);
        let is = |other: &str| other.as_bytes() == hash;
        if self
            .anchor
            .is_some_and(|anchor| anchor.lines == audited.lines && is(&anchor.hash))
        {
            self.met_anchor = true;
        }
        self.met_noted |= self.noted.is_some_and(is);
        audited.head = Some(String::from_utf8_lossy(hash).into_owned());
    }

    fn end(&self, audited: &mut Audited) {
        if let Some(anchor) = self.anchor.filter(|anchor| anchor.lines > 0)
            && !self.met_anchor
        {
            let message = if anchor.lines > audited.lines {
                let missing = anchor.lines - audited.lines;
                format!(
                    "the log is truncated: {missing} of {} lines are missing",
                    anchor.lines
                )
            } else {
                format!("line {} differs from the anchor", anchor.lines)
            };
            audited.flaw(None, message);
        }
        if !self.met_noted {
            audited.flaw(None, "the given hash is not in the log");
        }
        // A partial line behind a valid anchor is the result of a crash, and was never
        // acknowledged.
        if self.is_torn && !self.met_anchor && audited.flaws.is_empty() && audited.lines > 0 {
            audited.flaw(Some(audited.lines + 1), "it is truncated");
        }
    }
}
