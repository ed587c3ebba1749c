//! A key that cannot be shown by accident.
//!
//! There is no `Display` and no `Serialize`, and `Debug` prints a placeholder. Servers have been
//! seen to repeat the key in their error messages, so whatever a server says passes
//! [`Secret::scrub`] before it may stand in an error.

use std::fmt;

/// An API key.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a key as a person wrote it; spaces and line ends around it are dropped.
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// The key itself, for the one header that carries it.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// The text with every occurrence of the key replaced.
    pub(super) fn scrub(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        text.replace(&self.0, "[key]")
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
