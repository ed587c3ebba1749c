//! API key that cannot be printed by accident.
//!
//! The key is overwritten in memory when it is dropped. It has no `Display` and no `Serialize`, and
//! `Debug` prints a placeholder. Some servers repeat the key in their error messages, so every
//! server message passes [`Secret::scrub`] before it becomes part of an error.

use std::fmt;

use zeroize::Zeroizing;

/// API key.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Creates a key from user input; surrounding whitespace is removed.
    pub fn new(key: &str) -> Self {
        Self(Zeroizing::new(key.trim().to_owned()))
    }

    /// Plain key, for the one header that sends it.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces every occurrence of the key.
    pub(super) fn scrub(&self, text: &str) -> String {
        if self.expose().is_empty() {
            return text.to_owned();
        }
        text.replace(self.expose(), "[key]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_neither_shown_nor_repeated() {
        let key = Secret::new(" sk-live-1234\n");
        assert_eq!(key.expose(), "sk-live-1234");
        assert_eq!(format!("{key:?} {:?}", Some(&key)), "[key] Some([key])");
        assert_eq!(key.scrub("bad key sk-live-1234."), "bad key [key].");
        assert_eq!(Secret::new("").scrub("as it is"), "as it is");
    }
}
