//! Verification of the audit log. It needs no JSON parser: it reads the file once, in pieces, and its only
//! cost is one hash per line.

use std::io::{self, BufRead as _};
use std::time::Duration;

use memctl_files::Directory;
use serde::Serialize;

use crate::store::Error;
use crate::store::audit::chain::{DIGITS, Key, LOCK_LIMIT, read_anchor, split};
use crate::store::files::directory::{self, AUDIT_ANCHOR, AUDIT_LOG};

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
        if key.hash(&before, body).as_bytes() != hash {
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
