//! Key of a user, and digests under it.

use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::store::error::Error;
use memctl_files::named;

const FILE: &str = "key";
/// Length of the key and of a digest, in bytes.
const LENGTH: usize = 32;

/// A keyed digest (HMAC-SHA-256).
pub(crate) type Mac = [u8; LENGTH];

/// Random bytes that only this user can read.
#[derive(Clone)]
pub(crate) struct UserKey([u8; LENGTH]);

impl std::fmt::Debug for UserKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UserKey(..)")
    }
}

impl UserKey {
    /// Reads the key in a state directory; `None` if it is missing or damaged.
    pub(super) fn read(state: &Path) -> Option<Self> {
        let bytes = named::read(&state.join(FILE), LENGTH as u64).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// Creates the key. The first of several concurrent processes wins, and all use its key.
    pub(super) fn make(state: &Path, random: &mut dyn FnMut() -> String) -> Result<Self, Error> {
        let mut hash = Sha256::new();
        for _ in 0..4 {
            hash.update(random());
        }
        let key: [u8; LENGTH] = hash.finalize().into();
        let file = state.join(FILE);
        named::create_dir(state).map_err(Error::io("create", state))?;
        named::create_once(&file, &key).map_err(Error::io("write", &file))?;
        Ok(Self::read(state).unwrap_or(Self(key)))
    }

    /// Returns the digest of the parts; `purpose` separates the digests of different uses.
    pub(crate) fn digest<T: AsRef<[u8]>>(
        &self,
        purpose: &str,
        parts: impl IntoIterator<Item = T>,
    ) -> Mac {
        let mut mac = self.mac();
        mac.update(purpose.as_bytes());
        for part in parts {
            let part = part.as_ref();
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    #[expect(
        clippy::expect_used,
        reason = "HMAC takes keys of every length; the error type cannot occur"
    )]
    fn mac(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(&self.0).expect("a key of any length")
    }
}
