//! Verification of the whole log.
//!
//! Reads the file once, in pieces, without parsing JSON: the only cost is one hash per line.

use std::io::BufRead as _;
use std::time::Duration;

use serde::Serialize;

use crate::store::error::Error;
use crate::store::files::directory;
use crate::store::files::directory::{AUDIT_ANCHOR, AUDIT_LOG};
use memctl_files::Directory;

use super::audit_log;
use super::chain::{Anchor, DIGITS, Key, split};

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
        let limit = limit.min(audit_log::LOCK_LIMIT);
        directory::wait_for(&path, limit, || file.try_lock_shared())?;
    }
    let anchor = match &anchor_file {
        Some(file) => audit_log::read_anchor(file, &directory.join(AUDIT_ANCHOR))?,
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
        if self.key.hash(&self.before, body)[..] != *hash {
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
        // The last line of a log that was joined has its former hash in the reason.
        let names = |noted: &str| memchr::memmem::find(body, noted.as_bytes()).is_some();
        let is_joined = memchr::memmem::find(body, b"\"did\":\"merged\"").is_some();
        self.met_noted |= self
            .noted
            .is_some_and(|noted| is(noted) || is_joined && names(noted));
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
