//! The chain: where the log ends, and what the next hash is.
//!
//! A line is `{…,"hash":"<64 hexadecimal digits>"}`. The hash is an HMAC-SHA-256 under the workspace's
//! key of the hash before and of all that stands before `,"hash"`. So a check needs no JSON.
//!
//! Where two logs were joined, a line may go on from another one than that above it. It then begins with
//! `{"after":"<the hash that it goes on from>",`, which is no part of what is hashed: the hash covers it.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::platform::Directory;
use crate::store::act::Act;
use crate::store::error::Error;

use super::{Did, Line};

/// What follows the body of a line, up to its hash.
pub(super) const BEFORE_HASH: &str = ",\"hash\":\"";
/// What follows the hash.
pub(super) const AFTER_HASH: &str = "\"}";
/// What a line that goes on from another one than that above it begins with.
const AFTER: &str = "{\"after\":\"";
/// Goes on from no line at all.
const BEGINNING: [u8; DIGITS] = [b'0'; DIGITS];
/// How long a hash is, in hexadecimal digits.
pub(super) const DIGITS: usize = 64;

/// Where the log ends, as it was when the last line was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    /// How many lines there are.
    pub(super) lines: u64,
    /// How many bytes.
    pub(super) bytes: u64,
    /// The hash of the last line; empty before the first.
    pub(super) hash: String,
    /// The keyed hash of the three.
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

    /// Whether nobody without the key has written it.
    pub(super) fn is_ours(&self, key: &Key) -> bool {
        self.seal == key.seal(self.lines, self.bytes, &self.hash)
    }

    /// As a line of always the same length.
    pub(super) fn render(&self) -> Result<String, Error> {
        let mut text = serde_json::to_string(self)?;
        let width = 2 * DIGITS + 96;
        text.extend(std::iter::repeat_n(' ', width.saturating_sub(text.len())));
        text.push('\n');
        Ok(text)
    }
}

/// The key of the chain.
pub(super) struct Key(Hmac<Sha256>);

impl Key {
    pub(super) fn new(key: &str) -> Option<Self> {
        // HMAC takes keys of every length; there is no way for it to fail.
        Hmac::new_from_slice(key.as_bytes()).ok().map(Self)
    }

    /// The hash of a line with this body, after this hash.
    pub(super) fn hash(&self, before: &[u8], body: &[u8]) -> [u8; DIGITS] {
        let mut mac = self.0.clone();
        mac.update(b"line\0");
        mac.update(before);
        mac.update(body);
        hexadecimal(&mac.finalize().into_bytes())
    }

    fn seal(&self, lines: u64, bytes: u64, hash: &str) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("anchor\0{lines}\0{bytes}\0{hash}").as_bytes());
        text(&hexadecimal(&mac.finalize().into_bytes()))
    }
}

fn hexadecimal(bytes: &[u8]) -> [u8; DIGITS] {
    let mut digits = [b'0'; DIGITS];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
        pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    digits
}

pub(super) fn text(digits: &[u8]) -> String {
    String::from_utf8_lossy(digits).into_owned()
}

/// A line in its parts.
pub(super) struct Link<'a> {
    /// What the hash covers.
    pub(super) body: Cow<'a, [u8]>,
    pub(super) hash: &'a [u8],
    /// The hash that it goes on from, where that is not the one above it; empty is the beginning.
    pub(super) after: Option<&'a [u8]>,
}

/// The parts of a line; `None` where it is no line of ours.
pub(super) fn link(line: &[u8]) -> Option<Link<'_>> {
    let (body, hash) = split(line)?;
    let Some(rest) = body.strip_prefix(AFTER.as_bytes()) else {
        let body = Cow::Borrowed(body);
        return Some(Link {
            body,
            hash,
            after: None,
        });
    };
    let (after, rest) = rest.split_at_checked(DIGITS)?;
    let rest = rest.strip_prefix(b"\",")?;
    let body = Cow::Owned([b"{", rest].concat());
    let after = if after == BEGINNING { b"" } else { after };
    Some(Link {
        body,
        hash,
        after: Some(after),
    })
}

/// A line, without its line break, that says where it goes on from.
pub(super) fn going_on_from(line: &str, before: &str) -> String {
    let before = if before.is_empty() {
        String::from_utf8_lossy(&BEGINNING).into_owned()
    } else {
        before.to_owned()
    };
    let rest = line.strip_prefix('{').unwrap_or(line);
    format!("{AFTER}{before}\",{rest}")
}

/// All of a line up to its hash, and the hash; `None` where it is no line of ours.
pub(super) fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_suffix(AFTER_HASH.as_bytes())?;
    let at = rest.len().checked_sub(DIGITS)?;
    let (front, hash) = rest.split_at(at);
    Some((front.strip_suffix(BEFORE_HASH.as_bytes())?, hash))
}

/// The log, locked, and ready for its next line.
pub(super) struct Chain {
    key: Key,
    anchor_file: File,
    anchor_path: PathBuf,
    log: File,
    log_path: PathBuf,
    end: Anchor,
    /// Whether the log goes on from its anchor.
    is_sound: bool,
    is_blank: bool,
}

impl Chain {
    pub(super) fn open(directory: &Directory, limit: Duration, key: &str) -> Result<Self, Error> {
        let anchor_file = super::lock(directory, limit)?;
        let anchor_path = directory.join(super::ANCHOR);
        let log_path = super::log_path(directory);
        let log = super::open_log(directory)?;
        let length = log.metadata().map_err(Error::io("read", &log_path))?.len();
        let key = Key::new(key).ok_or_else(|| {
            Error::io("lock", &anchor_path)(std::io::Error::other("the workspace has no key"))
        })?;
        let saved = super::read_anchor(&anchor_file, &anchor_path)?;
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
            // A line that was written just before a crash, or half of one.
            Some(anchor) if anchor.bytes < length => chain.go_on_from(anchor, length)?,
            _ if length > 0 => chain.end = chain.at_the_end(length)?,
            // All of it is gone; what the anchor knows is what the new line goes on from.
            Some(anchor) => chain.end = Anchor { bytes: 0, ..anchor },
            None => {}
        }
        Ok(chain)
    }

    /// Whether there is neither a line nor an anchor.
    pub(super) fn is_blank(&self) -> bool {
        self.is_blank
    }

    /// Writes the anchor of a log without lines.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        super::write_anchor(&self.anchor_file, &self.anchor_path, &self.end)
    }

    /// Makes the next line say that the log does not go on from where it was.
    pub(super) fn doubt(&mut self) {
        self.is_sound = false;
    }

    /// Writes a line, behind one that says so where the log does not go on from its anchor.
    pub(super) fn append(
        &mut self,
        act: &Act,
        did: Did,
        records: Vec<String>,
        of: Vec<String>,
    ) -> Result<(), Error> {
        if !std::mem::replace(&mut self.is_sound, true) {
            self.write(act, Did::Broken, Vec::new(), Vec::new())?;
        }
        self.write(act, did, records, of)
    }

    fn write(
        &mut self,
        act: &Act,
        did: Did,
        records: Vec<String>,
        of: Vec<String>,
    ) -> Result<(), Error> {
        let line = Line {
            seq: self.end.lines + 1,
            at: act.at.clone(),
            who: act.who.clone(),
            did,
            records,
            of,
            why: act.why.clone(),
        };
        let mut text_of_line = serde_json::to_string(&line)?;
        // The closing bracket comes back behind the hash.
        text_of_line.pop();
        let hash = self
            .key
            .hash(self.end.hash.as_bytes(), text_of_line.as_bytes());
        let hash = text(&hash);
        text_of_line.extend([BEFORE_HASH, &hash, AFTER_HASH, "\n"]);
        super::write_line(&self.log, &self.log_path, self.end.bytes, &text_of_line)?;
        let bytes = self.end.bytes + text_of_line.len() as u64;
        self.end = Anchor::new(&self.key, line.seq, bytes, hash);
        super::write_anchor(&self.anchor_file, &self.anchor_path, &self.end)
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

    /// Goes on behind the lines that stand behind the anchor, as far as they are links of the chain. A
    /// line that a crash has cut is written over: nobody has been told that it is there.
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
                .filter(|(body, found)| self.key.hash(hash.as_bytes(), body) == **found);
            let Some((_, found)) = link else {
                self.is_sound = false;
                self.end = self.at_the_end(length)?;
                return Ok(());
            };
            lines += 1;
            bytes += line.len() as u64;
            hash = text(found);
        }
        self.log
            .set_len(bytes)
            .map_err(Error::io("write", &self.log_path))?;
        self.is_sound = sound;
        self.end = Anchor::new(&self.key, lines, bytes, hash);
        Ok(())
    }

    /// The end of a log that is not what the anchor knows: its last whole line, whatever it is.
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
        let hash = last.and_then(split).map(|(_, hash)| text(hash));
        Ok(Anchor::new(
            &self.key,
            lines,
            whole as u64,
            hash.unwrap_or_default(),
        ))
    }
}
