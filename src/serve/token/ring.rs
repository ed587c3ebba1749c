//! Signatures of tokens with `ring`, which the program already uses for TLS, and the secret of this server.
//!
//! HMAC with SHA-256 for a shared secret; RSA (PKCS #1, SHA-256) and ECDSA (P-256) for public keys.
//! All other algorithms are refused; the library does not even know the name `none`.
//!
//! Each memory directory has one secret, created on first use in the user's data directory. It is never in
//! the memory directory itself, which teams commit. Its memory is overwritten when it is dropped. It has no
//! `Display` and no `Serialize`, and `Debug` prints a placeholder.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{self, ErrorKind};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use memctl_files::{hex, named};
use ring::{hmac, signature};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::model::error::{Kind, UserError, of_io};
use crate::store;

/// Installs these algorithms in the library; only the first call has an effect.
pub(super) fn install() {
    static PROVIDER: CryptoProvider = CryptoProvider {
        signer_factory: signer,
        verifier_factory: verifier,
        // No key is derived from another key here.
        key_utils: KeyUtils::new_unimplemented(),
    };
    // An error only means that it is installed already.
    let _ = PROVIDER.install_default();
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library calls it like this")]
fn signer(algorithm: &Algorithm, key: &EncodingKey) -> errors::Result<Box<dyn JwtSigner>> {
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => Ok(Box::new(Shared(hmac::Key::new(
            hmac::HMAC_SHA256,
            key.as_bytes(),
        )))),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library calls it like this")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> errors::Result<Box<dyn JwtVerifier>> {
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => {
            let secret = key.try_get_as_bytes()?;
            Ok(Box::new(Shared(hmac::Key::new(hmac::HMAC_SHA256, secret))))
        }
        (Algorithm::RS256, AlgorithmFamily::Rsa) | (Algorithm::ES256, AlgorithmFamily::Ec) => {
            Ok(Box::new(Public(key.clone(), *algorithm)))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

/// Shared secret.
struct Shared(hmac::Key);

impl Signer<Vec<u8>> for Shared {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for Shared {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
        hmac::verify(&self.0, message, signature).map_err(|_| Error::new())
    }
}

impl JwtSigner for Shared {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Shared {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

/// Public key.
struct Public(DecodingKey, Algorithm);

impl Verifier<Vec<u8>> for Public {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
        let verified = match self.0.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                // Some issuers pad the numbers with leading zeros, which `ring` rejects.
                let n = trimmed(n);
                let e = trimmed(e);
                let key = signature::RsaPublicKeyComponents { n, e };
                key.verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            DecodingKeyKind::SecretOrDer(point) => {
                let key =
                    signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point);
                key.verify(message, signature)
            }
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for Public {
    fn algorithm(&self) -> Algorithm {
        self.1
    }
}

fn trimmed(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

/// Minimum length of a secret in bytes, the length of the signatures (RFC 7518 §3.2).
const SHORTEST: usize = 32;

/// Way to make a secret.
const HINT: &str = "openssl rand -hex 32 > secret.txt";

/// Maximum size of a secret file: 64 KiB.
const LONGEST: u64 = 64 << 10;

/// Secret.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

/// Returns the path of a memory directory's secret, below the user's state directory.
pub fn default_file(state: &Path, memory: &Path) -> PathBuf {
    let real = named::resolved(memory);
    let digest = Sha256::digest(real.as_os_str().as_encoded_bytes());
    let name = hex(&digest[..8]);
    state.join("serve").join(format!("{name}.secret"))
}

impl Secret {
    /// Reads the secret in a file; ignores surrounding white space.
    pub fn read(path: &Path) -> Result<Self, UserError> {
        let shown = path.display();
        let invalid = |kind, message: String| UserError::new(kind, message, HINT);
        let unreadable = |error: io::Error| {
            let message = format!("cannot read the secret in `{shown}`: {error}");
            invalid(of_io(&error), message)
        };
        if named::metadata(path).map_err(unreadable)?.len() > LONGEST {
            let message = format!("the secret in `{shown}` is longer than 64 KiB");
            return Err(invalid(Kind::Input, message));
        }
        let bytes = named::read(path, LONGEST).map_err(unreadable)?;
        let secret = bytes.trim_ascii();
        if secret.len() < SHORTEST {
            let length = secret.len();
            let message =
                format!("the secret in `{shown}` has {length} bytes and needs 32 or more");
            return Err(invalid(Kind::Input, message));
        }
        Ok(Self(Zeroizing::new(secret.to_vec())))
    }

    /// Reads the secret in a file, or creates it. Concurrent callers get the same secret.
    pub fn read_or_make(path: &Path, random: fn() -> String) -> Result<Self, UserError> {
        if !named::exists(path) {
            if let Some(parent) = path.parent() {
                named::create_dir(parent).map_err(store::Error::io("create", parent))?;
            }
            // Three random UUIDs with 122 random bits each.
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
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
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
            let found = std::fs::metadata(&path).unwrap().permissions();
            assert_eq!(found.mode() & 0o777, 0o600);
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
