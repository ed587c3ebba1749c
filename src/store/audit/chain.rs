//! The open log: its end, and the next line of the chain.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use crate::store::error::Error;
use crate::store::files::file_names::AUDIT_ANCHOR;
use memctl_files::{Directory, PositionedFile as _};

use super::audit_context::AuditContext;
use super::audit_event::{AuditAction, Line};
use super::hash::{AFTER_HASH, Anchor, Key, sealed, split, text};
use super::log_files;

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
        let anchor_file = log_files::lock(directory, limit)?;
        let anchor_path = directory.join(AUDIT_ANCHOR);
        let log_path = log_files::log_path(directory);
        let log = log_files::open_log(directory)?;
        let length = log.metadata().map_err(Error::io("read", &log_path))?.len();
        let key = Key::new(key).ok_or_else(|| {
            Error::io("lock", &anchor_path)(std::io::Error::other("the workspace has no key"))
        })?;
        let saved = log_files::read_anchor(&anchor_file, &anchor_path)?;
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
        log_files::write_anchor(&self.anchor_file, &self.anchor_path, &self.end)
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
        let hash = text(&hash);
        let text_of_line = sealed(text_of_line, &hash);
        log_files::write_line(&self.log, &self.log_path, self.end.bytes, &text_of_line)?;
        let bytes = self.end.bytes + text_of_line.len() as u64;
        self.end = Anchor::new(&self.key, line.seq, bytes, hash);
        log_files::write_anchor(&self.anchor_file, &self.anchor_path, &self.end)
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
        let hash = last.and_then(split).map(|(_, hash)| text(hash));
        Ok(Anchor::new(
            &self.key,
            lines,
            whole as u64,
            hash.unwrap_or_default(),
        ))
    }
}
