//! The secret that tokens are signed with and verified by.
//!
//! One for each memory directory, made when it is first needed, among the user's own data: never in
//! the memory directory itself, which teams commit. There is no `Display` and no `Serialize`, and
//! `Debug` prints a placeholder.

use std::fmt;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::platform::named;
use crate::store;

/// The shortest secret, in bytes: as many as the signatures have (RFC 7518 §3.2).
const SHORTEST: usize = 32;

/// The longest file that is taken for one.
const LONGEST: u64 = 64 << 10;

/// A secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSecret {
    /// The file cannot be read.
    #[error("cannot read the secret in `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It is too short to be one.
    #[error("the secret in `{}` has {length} bytes and needs 32 or more", path.display())]
    Short {
        /// The file.
        path: PathBuf,
        /// How many bytes it has.
        length: usize,
    },
    /// It is too long to be one.
    #[error("`{}` is no secret: it is longer than 64 KiB", path.display())]
    Long {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Where the secret of a memory directory lies below the directory for the user's own data.
pub fn default_file(state: &Path, memory: &Path) -> PathBuf {
    let real = named::resolved(memory);
    let digest = Sha256::digest(real.as_os_str().as_encoded_bytes());
    let mut name = String::new();
    for byte in &digest[..8] {
        name.extend([byte >> 4, byte & 15].map(|n| char::from_digit(n.into(), 16).unwrap_or('0')));
    }
    state.join("serve").join(format!("{name}.secret"))
}

impl Secret {
    /// The secret in a file; what stands around it, as line breaks, does not count.
    pub fn read(path: &Path) -> Result<Self, InvalidSecret> {
        let unreadable = |source| InvalidSecret::Unreadable {
            path: path.to_owned(),
            source,
        };
        if named::metadata(path).map_err(unreadable)?.len() > LONGEST {
            return Err(InvalidSecret::Long {
                path: path.to_owned(),
            });
        }
        let bytes = named::read(path, LONGEST).map_err(unreadable)?;
        let secret = bytes.trim_ascii();
        if secret.len() < SHORTEST {
            return Err(InvalidSecret::Short {
                path: path.to_owned(),
                length: secret.len(),
            });
        }
        Ok(Self(secret.to_vec()))
    }

    /// The same; made where there is none. Of two who make it at once, both get the same.
    pub fn read_or_make(path: &Path, random: fn() -> String) -> Result<Self, InvalidSecret> {
        if !named::exists(path) {
            if let Some(parent) = path.parent() {
                named::create_dir(parent).map_err(store::Error::io("create", parent))?;
            }
            // Three names of 122 random bits each.
            let secret: String = (0..3).map(|_| random()).collect();
            let secret = secret.replace('-', "");
            let made = named::create_once(path, format!("{secret}\n").as_bytes());
            made.map_err(store::Error::io("write", path))?;
        }
        Self::read(path)
    }

    pub(super) fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_made_once_and_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = default_file(dir.path(), &dir.path().join("w/.agentura"));
        let other = default_file(dir.path(), &dir.path().join("v/.agentura"));
        assert_ne!(path, other);
        let random = || "4f1c9a1e-0000-4000-8000-000000000000".to_owned();
        let made = Secret::read_or_make(&path, random).unwrap();
        assert_eq!(made.expose().len(), 96);
        assert_eq!(Secret::read_or_make(&path, random).unwrap(), made);
        assert_eq!(format!("{made:?}"), "[secret]");
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let rights = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(rights & 0o777, 0o600);
        }
    }

    #[test]
    fn a_short_secret_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let check = |text: &str, holds: bool| {
            named::replace(&path, text.as_bytes()).unwrap();
            assert_eq!(Secret::read(&path).is_ok(), holds, "{text:?}");
        };
        check(&"x".repeat(32), true);
        check(&format!(" {}\n", "x".repeat(32)), true);
        check(&"x".repeat(31), false);
        check(&format!("x{}", " ".repeat(99)), false);
        check("", false);
        assert!(Secret::read(&dir.path().join("none")).is_err());
    }
}
