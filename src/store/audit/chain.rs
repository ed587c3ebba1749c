//! The chain of the audit log: its lines, the anchor that stores its end, and the verification of both.
//!
//! A line is `{…,"hash":"<64 hexadecimal digits>"}`. The hash is an HMAC-SHA-256 under the workspace's key, over
//! the previous hash and the text before `,"hash"`.
//!
//! Verification needs no JSON parser: it reads the file once, in pieces, and its only cost is one hash per line.

use std::fs::File;
use std::io::{self, BufRead as _, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use hmac::{Hmac, Mac as _};
use memctl_files::{Directory, PositionedFile as _, hex};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::store::audit::{AuditAction, Line};
use crate::store::files::directory::{self, AUDIT_ANCHOR, AUDIT_LOG};
use crate::store::files::keyed_hash;
use crate::store::{Error, Identity, atomic};

/// Maximum wait for the lock. This program holds it for one line only; a longer hold is another
/// program's.
pub(super) const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// The locked log, ready for its next line.
pub(super) struct Chain {
    key: Key,
    anchor_file: File,
    anchor_path: PathBuf,
    log: File,
    log_path: PathBuf,
    end: Anchor,
    /// `true` if the log continues from its anchor.
    pub(super) is_sound: bool,
    /// `true` if there is neither a line nor an anchor.
    pub(super) is_blank: bool,
}

impl Chain {
    pub(super) fn open(
        directory: &Directory,
        limit: Duration,
        identity: &Identity,
    ) -> Result<Self, Error> {
        let anchor_path = directory.join(AUDIT_ANCHOR);
        let anchor_file = atomic::open_or_create(directory, AUDIT_ANCHOR)?;
        directory::wait_for(&anchor_path, limit.min(LOCK_LIMIT), || {
            anchor_file.try_lock()
        })?;
        let log_path = directory.join(AUDIT_LOG);
        let log = atomic::open_or_create(directory, AUDIT_LOG)?;
        let key = Key::of(identity);
        let read = Error::io("read", &anchor_path);
        let saved = read_anchor(&anchor_file).map_err(read)?;
        let mut chain = Self {
            end: Anchor::new(&key, 0, 0, String::new()),
            is_sound: false,
            is_blank: false,
            key,
            anchor_file,
            anchor_path,
            log,
            log_path,
        };
        let saved = saved.filter(|anchor| anchor.is_ours(&chain.key));
        let found = chain.find_end(saved);
        found.map_err(Error::io("read", &chain.log_path))?;
        Ok(chain)
    }

    /// Finds the end of the log. It continues from its anchor if that is where it says, and the lines behind
    /// it are links of the chain: lines, or part of one, that were written just before a crash. A line that
    /// a crash cut off is overwritten, because no caller relies on it.
    fn find_end(&mut self, saved: Option<Anchor>) -> io::Result<()> {
        let length = self.log.metadata()?.len();
        self.is_blank = length == 0 && saved.is_none();
        self.is_sound = self.is_blank;
        match saved {
            Some(anchor) if anchor.bytes <= length => {
                self.is_sound = self.is_at(&anchor)?;
                self.end = anchor;
            }
            // The log is shorter, or gone. Its new lines have the numbers behind the anchor.
            Some(anchor) if length == 0 => self.end = Anchor { bytes: 0, ..anchor },
            _ => {}
        }
        let from = self.end.bytes;
        if from == length {
            return Ok(());
        }
        let mut rest = vec![0; usize::try_from(length - from).unwrap_or(usize::MAX)];
        self.log.read_exact_at(&mut rest, from)?;
        let (mut lines, mut bytes, mut hash) = (self.end.lines, from, self.end.hash.clone());
        for line in rest.split_inclusive(|b| *b == b'\n') {
            let Some(whole) = line.strip_suffix(b"\n") else {
                break;
            };
            let (body, found) = split(whole).unwrap_or_default();
            self.is_sound &= self.key.made(found, hash.as_bytes(), body);
            lines += 1;
            bytes += line.len() as u64;
            hash = String::from_utf8_lossy(found).into_owned();
        }
        self.log.set_len(bytes)?;
        self.end = Anchor::new(&self.key, lines, bytes, hash);
        Ok(())
    }

    /// Returns `true` if the log has the last line of an anchor where that says.
    fn is_at(&self, anchor: &Anchor) -> io::Result<bool> {
        let end = format!("{}{AFTER_HASH}\n", anchor.hash);
        let Some(at) = anchor.bytes.checked_sub(end.len() as u64) else {
            return Ok(anchor.lines == 0 && anchor.bytes == 0);
        };
        let mut found = vec![0; end.len()];
        self.log.read_exact_at(&mut found, at)?;
        Ok(found == end.as_bytes())
    }

    /// Appends a line, after a [`AuditAction::Broken`] line if the log does not continue from its anchor.
    pub(super) fn append(&mut self, line: Line) -> Result<(), Error> {
        if !std::mem::replace(&mut self.is_sound, true) {
            let line = line.clone();
            self.write(Line {
                did: AuditAction::Broken,
                records: Vec::new(),
                of: Vec::new(),
                ..line
            })?;
        }
        self.write(line)
    }

    fn write(&mut self, line: Line) -> Result<(), Error> {
        let seq = self.end.lines + 1;
        let mut text = serde_json::to_string(&Line { seq, ..line })?;
        // The closing bracket follows the hash.
        text.pop();
        let hash = self.key.hash(self.end.hash.as_bytes(), text.as_bytes());
        text.extend([BEFORE_HASH, &hash, AFTER_HASH, "\n"]);
        let written = self.log.write_all_at(text.as_bytes(), self.end.bytes);
        written.map_err(Error::io("append to", &self.log_path))?;
        self.end = Anchor::new(&self.key, seq, self.end.bytes + text.len() as u64, hash);
        self.write_anchor()
    }

    pub(super) fn write_anchor(&self) -> Result<(), Error> {
        // One short write at the start; padding keeps the length constant.
        let text = serde_json::to_string(&self.end)?;
        let text = format!("{text:<ANCHOR_LENGTH$}\n");
        let written = self.anchor_file.write_all_at(text.as_bytes(), 0);
        written
            .and_then(|()| self.anchor_file.set_len(text.len() as u64))
            .map_err(Error::io("write", &self.anchor_path))
    }
}

pub(super) fn read_anchor(mut file: &File) -> io::Result<Option<Anchor>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(4096).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes).ok())
}

/// Text between the body of a line and its hash.
const BEFORE_HASH: &str = ",\"hash\":\"";
/// Text after the hash.
const AFTER_HASH: &str = "\"}";
/// Length of a hash in hexadecimal digits.
pub(super) const DIGITS: usize = 64;
/// Least length of an anchor as text.
const ANCHOR_LENGTH: usize = 2 * DIGITS + 96;

/// End of the log after the last write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    /// Number of lines.
    pub(super) lines: u64,
    /// Length of the log in bytes.
    bytes: u64,
    /// Hash of the last line; empty before the first.
    pub(super) hash: String,
    /// Keyed hash of the other three fields.
    seal: String,
}

impl Anchor {
    fn new(key: &Key, lines: u64, bytes: u64, hash: String) -> Self {
        let seal = Key::seal(&key.0[0], lines, bytes, &hash);
        Self {
            lines,
            bytes,
            hash,
            seal,
        }
    }

    /// Returns `true` if the seal was made with this key.
    pub(super) fn is_ours(&self, key: &Key) -> bool {
        let seal = |key| Key::seal(key, self.lines, self.bytes, &self.hash);
        key.0.iter().any(|key| self.seal == seal(key))
    }
}

/// Keys of the chain: that of new lines first, then those of workspaces that git has merged into this one.
pub(super) struct Key(Vec<Hmac<Sha256>>);

impl Key {
    pub(super) fn of(identity: &Identity) -> Self {
        let keys = identity.keys();
        Self(keys.map(|key| keyed_hash(key.as_bytes())).collect())
    }

    /// Returns the hash of a new line with this body and this previous hash.
    pub(super) fn hash(&self, before: &[u8], body: &[u8]) -> String {
        Self::line(&self.0[0], before, body)
    }

    /// Returns `true` if a line with this body and this previous hash has this one by any of the keys.
    fn made(&self, hash: &[u8], before: &[u8], body: &[u8]) -> bool {
        let mut keys = self.0.iter();
        keys.any(|key| Self::line(key, before, body).as_bytes() == hash)
    }

    fn line(key: &Hmac<Sha256>, before: &[u8], body: &[u8]) -> String {
        let mut mac = key.clone();
        mac.update(b"line\0");
        mac.update(before);
        mac.update(body);
        hex(&mac.finalize().into_bytes())
    }

    fn seal(key: &Hmac<Sha256>, lines: u64, bytes: u64, hash: &str) -> String {
        let mut mac = key.clone();
        mac.update(format!("anchor\0{lines}\0{bytes}\0{hash}").as_bytes());
        hex(&mac.finalize().into_bytes())
    }
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
    let key = directory::identity(directory).map(|identity| Key::of(&identity));
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
        let limit = limit.min(LOCK_LIMIT);
        directory::wait_for(&path, limit, || file.try_lock_shared())?;
    }
    let anchor = match &anchor_file {
        Some(file) => {
            read_anchor(file).map_err(Error::io("read", &directory.join(AUDIT_ANCHOR)))?
        }
        None => None,
    };
    let is_changed = anchor.as_ref().is_some_and(|anchor| !anchor.is_ours(&key));
    let anchor = anchor.filter(|_| !is_changed);
    // Hash of the line before.
    let mut before = Vec::with_capacity(DIGITS);
    let (mut met_anchor, mut met_noted, mut is_torn) = (false, noted.is_none(), false);
    let mut reader = log.map(|log| io::BufReader::with_capacity(1 << 20, log));
    let mut line = Vec::new();
    while let Some(reader) = &mut reader {
        line.clear();
        let read = reader.read_until(b'\n', &mut line);
        if read.map_err(Error::io("read", &directory.join(AUDIT_LOG)))? == 0 {
            break;
        }
        let Some(whole) = line.strip_suffix(b"\n") else {
            // A crash leaves a partial line behind the anchor; below is decided whether it was one.
            is_torn = true;
            break;
        };
        audited.lines += 1;
        let number = Some(audited.lines);
        let Some((body, hash)) = split(whole) else {
            audited.flaw(number, "not an audit event");
            continue;
        };
        if !key.made(hash, &before, body) {
            let message = "it was changed, or a line before it was changed, removed or inserted";
            audited.flaw(number, message);
        } else if memchr::memmem::find(body, b"\"did\":\"broken\"").is_some() {
            let message = "when it was written, the log did not end where its anchor says";
            audited.flaw(number, message);
        }
        before.clear();
        before.extend_from_slice(hash);
        let is = |other: &str| other.as_bytes() == hash;
        let at_anchor = anchor
            .as_ref()
            .filter(|anchor| anchor.lines == audited.lines);
        met_anchor |= at_anchor.is_some_and(|anchor| is(&anchor.hash));
        met_noted |= noted.is_some_and(is);
        audited.head = Some(String::from_utf8_lossy(hash).into_owned());
    }
    audited.is_begun = anchor.is_some() || is_changed || audited.lines > 0;
    if is_changed {
        audited.flaw(None, "the anchor (`audit.anchor`) has been changed");
    } else if anchor.is_none() && audited.lines > 0 {
        audited.flaw(None, "the anchor (`audit.anchor`) is gone");
    }
    if let Some(anchor) = anchor.filter(|anchor| anchor.lines > 0 && !met_anchor) {
        let (lines, there) = (anchor.lines, audited.lines);
        audited.flaw(
            None,
            match lines.checked_sub(there) {
                Some(missing @ 1..) => {
                    format!("the log is truncated: {missing} of {lines} lines are missing")
                }
                _ => format!("line {lines} differs from the anchor"),
            },
        );
    }
    if !met_noted {
        audited.flaw(None, "the given hash is not in the log");
    }
    // A partial line behind a valid anchor is the result of a crash, and was never acknowledged.
    if is_torn && !met_anchor && audited.flaws.is_empty() && audited.lines > 0 {
        audited.flaw(Some(audited.lines + 1), "it is truncated");
    }
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
