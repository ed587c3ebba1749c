//! The derived file of vectors: what a text means, kept beside the text so that it is computed
//! once.
//!
//! ```text
//! memctl vectors 1 <stamp>\n
//! { key: 16 bytes, vector: WIDTH bytes, check: 4 bytes }*
//! ```
//!
//! The key is a hash of the text, not an id: an edited record asks for another vector by itself, and
//! equal texts share one. The stamp names the model; a file of another stamp is as good as none.
//! Each entry carries its own check, so that damage costs that entry only. The file can be deleted
//! at any time.
//!
//! Deliberately absent: what a vector means. Here it is bytes of a fixed number.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::directory::DERIVED;
use super::{Scoped, atomic};

/// A text's hash.
pub type TextKey = [u8; KEY];

const KEY: usize = 16;
const CHECK: usize = 4;

/// The key of a text.
pub fn text_key(text: &str) -> TextKey {
    let mut key = [0; KEY];
    key.copy_from_slice(&Sha256::digest(text.as_bytes())[..KEY]);
    key
}

/// Vectors of `WIDTH` bytes by the texts that they are of.
#[derive(Debug)]
pub struct Vectors<const WIDTH: usize> {
    path: PathBuf,
    header: String,
    entries: HashMap<TextKey, [u8; WIDTH]>,
    changed: bool,
}

impl Scoped {
    /// The vectors that are kept under this stamp; none is no error, nor is a damaged file. Outside
    /// the scope nothing can be learnt from them: only who has a text can ask for its vector.
    pub fn vectors<const WIDTH: usize>(&self, stamp: &str) -> Vectors<WIDTH> {
        let mut vectors = Vectors {
            path: self.directory().join(DERIVED).join("vectors"),
            header: format!("memctl vectors 1 {stamp}\n"),
            entries: HashMap::new(),
            changed: false,
        };
        let bytes = std::fs::read(&vectors.path).unwrap_or_default();
        let entries = bytes.strip_prefix(vectors.header.as_bytes());
        for entry in entries
            .unwrap_or_default()
            .chunks_exact(KEY + WIDTH + CHECK)
        {
            let (content, sum) = entry.split_at(KEY + WIDTH);
            let (key, vector) = content.split_at(KEY);
            if check(content) == sum
                && let (Ok(key), Ok(vector)) = (key.try_into(), vector.try_into())
            {
                vectors.entries.insert(key, vector);
            }
        }
        vectors
    }
}

impl<const WIDTH: usize> Vectors<WIDTH> {
    /// The vector of a text.
    pub fn get(&self, key: &TextKey) -> Option<&[u8; WIDTH]> {
        self.entries.get(key)
    }

    /// Adds the vector of a text.
    pub fn insert(&mut self, key: TextKey, vector: [u8; WIDTH]) {
        self.changed |= self.entries.insert(key, vector) != Some(vector);
    }

    /// Drops the vector of a text. Whoever else has the same text gets it made again.
    pub fn remove(&mut self, key: &TextKey) {
        self.changed |= self.entries.remove(key).is_some();
    }

    /// Drops the vectors of all other texts: what was forgotten leaves nothing behind.
    pub fn retain(&mut self, keys: &HashSet<TextKey>) {
        let before = self.entries.len();
        self.entries.retain(|key, _| keys.contains(key));
        self.changed |= self.entries.len() != before;
    }

    /// Saves them, if anything changed and the memory directory exists. Failure is not an error:
    /// they can be made again.
    pub fn save(&self) {
        let Some(derived) = self.path.parent() else {
            return;
        };
        let exists = derived.parent().is_some_and(std::path::Path::is_dir);
        if !self.changed || !exists || atomic::create_dir(derived).is_err() {
            return;
        }
        let mut bytes = Vec::with_capacity(self.entries.len() * (KEY + WIDTH + CHECK));
        for (key, vector) in &self.entries {
            let start = bytes.len();
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(vector);
            bytes.extend_from_slice(&check(&bytes[start..]));
        }
        drop(atomic::replace_derived(
            &self.path,
            &[self.header.as_bytes(), &bytes],
        ));
    }
}

/// FNV-1a: enough to notice damage that nobody meant.
fn check(bytes: &[u8]) -> [u8; CHECK] {
    let step = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, step).to_le_bytes()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the test damages a file on purpose"
)]
mod tests {
    use super::*;
    use crate::model::Scope;

    fn open(directory: &std::path::Path, stamp: &str) -> Vectors<8> {
        Scoped::new(directory, Scope::All).vectors(stamp)
    }

    #[test]
    fn vectors_come_back_under_their_stamp_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut vectors = open(dir.path(), "a/8");
        vectors.insert(text_key("one"), [1; 8]);
        vectors.insert(text_key("two"), [2; 8]);
        vectors.save();
        let mut vectors = open(dir.path(), "a/8");
        assert_eq!(vectors.get(&text_key("one")), Some(&[1; 8]));
        assert_eq!(open(dir.path(), "b/8").get(&text_key("one")), None);
        vectors.retain(&HashSet::from([text_key("two")]));
        vectors.save();
        let vectors = open(dir.path(), "a/8");
        assert_eq!(vectors.get(&text_key("one")), None);
        assert_eq!(vectors.get(&text_key("two")), Some(&[2; 8]));
    }

    #[test]
    fn damage_costs_the_damaged_entry_only() {
        let dir = tempfile::tempdir().unwrap();
        let keys: Vec<TextKey> = (0..5).map(|i| text_key(&i.to_string())).collect();
        let mut vectors = open(dir.path(), "a/8");
        for key in &keys {
            vectors.insert(*key, [7; 8]);
        }
        vectors.save();
        let path = dir.path().join(".index/vectors");
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            std::fs::write(&path, &bytes).unwrap();
            let vectors = open(dir.path(), "a/8");
            let kept = keys.iter().filter(|key| vectors.get(key).is_some()).count();
            assert!(kept == 4 || (kept == 0 && at < "memctl vectors 1 a/8\n".len()));
            std::fs::write(&path, &whole[..at]).unwrap();
            let vectors = open(dir.path(), "a/8");
            assert!(
                keys.iter()
                    .all(|key| vectors.get(key).is_none_or(|v| v == &[7; 8]))
            );
        }
    }

    #[test]
    fn nothing_is_made_where_there_is_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        let mut vectors = open(&missing, "a/8");
        vectors.insert(text_key("one"), [1; 8]);
        vectors.save();
        assert!(!missing.exists());
    }
}
