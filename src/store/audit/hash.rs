//! The hash chain: hashes of lines, and the anchor that seals the end of the log.
//!
//! A line is `{…,"hash":"<64 hexadecimal digits>"}`. The hash is an HMAC-SHA-256 under the
//! workspace's key, over the previous hash and the text before `,"hash"`. Verification therefore
//! needs no JSON parser.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::store::error::Error;

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
