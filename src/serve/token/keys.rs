//! Keys of tokens: the secret of this server, the public keys of an external issuer at a URL, and signatures with
//! `ring`, which the program already uses for TLS; and the reasons to refuse a token.
//!
//! HMAC with SHA-256 for a shared secret; RSA (PKCS #1, SHA-256) and ECDSA (P-256) for public keys.
//! All other algorithms are refused; the library does not even know the name `none`.
//!
//! Each memory directory has one secret, created on first use in the user's data directory. It is never in
//! the memory directory itself, which teams commit. Its memory is overwritten when it is dropped. It has no
//! `Display` and no `Serialize`, and `Debug` prints a placeholder.
//!
//! Public keys are cached. They are fetched again when they are old, or when a token names an unknown
//! key. A fetch happens at most every half minute, so that invented key ids cannot overload the
//! issuer. If a fetch fails, the cached keys stay valid.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, io};

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{self, ErrorKind};
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse,
};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use memctl_files::{hex, named};
use ring::{hmac, signature};
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
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
        (Algorithm::HS256, AlgorithmFamily::Hmac) => Ok(Box::new(shared(key.as_bytes()))),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library calls it like this")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> errors::Result<Box<dyn JwtVerifier>> {
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => Ok(Box::new(shared(key.try_get_as_bytes()?))),
        (Algorithm::RS256, AlgorithmFamily::Rsa) | (Algorithm::ES256, AlgorithmFamily::Ec) => {
            Ok(Box::new(Key::Public(key.clone(), *algorithm)))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

fn shared(secret: &[u8]) -> Key {
    Key::Shared(hmac::Key::new(hmac::HMAC_SHA256, secret))
}

/// Shared secret, or a public key with its algorithm.
enum Key {
    Shared(hmac::Key),
    Public(DecodingKey, Algorithm),
}

impl Signer<Vec<u8>> for Key {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        match self {
            Self::Shared(key) => Ok(hmac::sign(key, message).as_ref().to_vec()),
            Self::Public(..) => Err(Error::new()),
        }
    }
}

impl Verifier<Vec<u8>> for Key {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
        let verified = match self {
            Self::Shared(key) => hmac::verify(key, message, signature),
            Self::Public(key, _) => match key.kind() {
                DecodingKeyKind::RsaModulusExponent { n, e } => {
                    // Some issuers pad the numbers with leading zeros, which `ring` rejects.
                    let n = trimmed(n);
                    let e = trimmed(e);
                    let key = signature::RsaPublicKeyComponents { n, e };
                    key.verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signature)
                }
                DecodingKeyKind::SecretOrDer(point) => {
                    let algorithm = &signature::ECDSA_P256_SHA256_FIXED;
                    signature::UnparsedPublicKey::new(algorithm, point).verify(message, signature)
                }
            },
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtSigner for Key {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Key {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Shared(_) => Algorithm::HS256,
            Self::Public(_, algorithm) => *algorithm,
        }
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

/// Time for which cached keys are fresh.
const FRESH: Duration = Duration::from_mins(10);
/// Minimum time between two fetches.
const PAUSE: Duration = Duration::from_secs(30);
/// Timeout of a fetch.
const WITHIN: Duration = Duration::from_secs(5);
/// Maximum size of a response: 1 MiB.
const LONGEST_RESPONSE: usize = 1 << 20;

/// Reason why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no token.
    #[error("a bearer token is missing")]
    Missing,
    /// The token is malformed, has a wrong signature, or an unsupported algorithm.
    #[error("the token is not valid")]
    Invalid,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("the token is not valid yet")]
    NotYet,
    /// The token is for another audience.
    #[error("the token is for another audience")]
    Audience,
    /// The token has no user.
    #[error("the token has no user in `sub`")]
    NoSubject,
    /// The token permits nothing.
    #[error("the token has no domain in `domain_scope`")]
    NoScope,
    /// The keys are not available.
    #[error("cannot fetch the keys that verify tokens")]
    NoKeys,
}

/// Cached keys of a URL.
#[derive(Debug)]
pub struct Jwks {
    url: String,
    cached: Mutex<Cached>,
}

#[derive(Debug, Default)]
struct Cached {
    keys: Option<JwkSet>,
    fetched: Option<Instant>,
    tried: Option<Instant>,
}

impl Jwks {
    /// Creates an empty cache for this URL: `https`, or `http` on this machine.
    ///
    /// # Errors
    ///
    /// Returns the reason why the URL cannot be used.
    pub fn new(url: &str) -> Result<Self, String> {
        let parsed = url::Url::parse(url).map_err(|error| format!("not a URL: {error}"))?;
        let host = parsed.host().ok_or("the host is missing")?;
        match parsed.scheme() {
            "https" => {}
            "http" if memctl_llm::is_loopback(&host) => {}
            _ => return Err("only `https://`, or `http://` on this machine, is allowed".to_owned()),
        }
        Ok(Self {
            url: url.to_owned(),
            cached: Mutex::default(),
        })
    }

    /// Fetches the keys, unless they are cached.
    ///
    /// # Errors
    ///
    /// Returns the reason why the fetch failed.
    pub async fn prepare(&self) -> Result<(), String> {
        let mut cached = self.cached.lock().await;
        if cached.keys.is_some() {
            return Ok(());
        }
        self.fetch(&mut cached).await
    }

    /// Returns the key for a token with this key id and algorithm.
    pub(super) async fn key(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, Refused> {
        let mut cached = self.cached.lock().await;
        let is_old = cached.fetched.is_none_or(|at| at.elapsed() > FRESH);
        let found = |cached: &Cached| {
            let keys = cached.keys.as_ref()?;
            choose(keys, kid, algorithm)
        };
        let mut key = found(&cached);
        let may_ask = cached.tried.is_none_or(|at| at.elapsed() > PAUSE);
        if (key.is_none() || is_old) && may_ask && self.fetch(&mut cached).await.is_ok() {
            key = found(&cached);
        }
        if cached.keys.is_none() {
            return Err(Refused::NoKeys);
        }
        key.ok_or(Refused::Invalid)
    }

    async fn fetch(&self, cached: &mut Cached) -> Result<(), String> {
        cached.tried = Some(Instant::now());
        let get = memctl_llm::get_json(&self.url, WITHIN, LONGEST_RESPONSE);
        let answer = get.await?;
        let keys: JwkSet = serde_json::from_value(answer)
            .map_err(|error| format!("not a set of keys: {error}"))?;
        cached.keys = Some(keys);
        cached.fetched = Some(Instant::now());
        Ok(())
    }
}

/// Returns the key with this id that fits the algorithm. Without an id, any key may fit. Returns
/// `None` if no key or more than one fits.
fn choose(keys: &JwkSet, kid: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
    let named = |key: &&Jwk| kid.is_none_or(|kid| key.common.key_id.as_deref() == Some(kid));
    let mut fitting = keys
        .keys
        .iter()
        .filter(named)
        .filter(|key| fits(key, algorithm));
    let key = fitting.next()?;
    if fitting.next().is_some() {
        return None;
    }
    DecodingKey::from_jwk(key).ok()
}

fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let wanted = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(_), Algorithm::RS256) => KeyAlgorithm::RS256,
        (AlgorithmParameters::EllipticCurve(curve), Algorithm::ES256)
            if curve.curve == EllipticCurve::P256 =>
        {
            KeyAlgorithm::ES256
        }
        // A symmetric key at a public URL is no secret.
        _ => return false,
    };
    let is_stated = |stated: KeyAlgorithm| stated == wanted;
    let signs = |usage: &PublicKeyUse| *usage == PublicKeyUse::Signature;
    key.common.key_algorithm.is_none_or(is_stated)
        && key.common.public_key_use.as_ref().is_none_or(signs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_fits_by_name_kind_and_use() {
        let set: JwkSet = serde_json::from_value(json!({ "keys": [
            { "kid": "r", "kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "sig", "alg": "RS256" },
            { "kid": "x", "kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "enc" },
            { "kid": "p", "kty": "RSA", "n": "AQAB", "e": "AQAB", "alg": "PS256" },
            { "kid": "e", "kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB" },
            { "kid": "o", "kty": "oct", "k": "AQAB" },
        ] }))
        .unwrap();
        let check = |kid: Option<&str>, algorithm, expected: bool| {
            let chosen = choose(&set, kid, algorithm).is_some();
            assert_eq!(chosen, expected, "{kid:?} {algorithm:?}");
        };
        check(Some("r"), Algorithm::RS256, true);
        check(None, Algorithm::RS256, true);
        check(Some("e"), Algorithm::ES256, true);
        for (kid, algorithm) in [
            ("r", Algorithm::HS256),
            ("r", Algorithm::ES256),
            ("x", Algorithm::RS256),
            ("p", Algorithm::RS256),
            ("p", Algorithm::PS256),
            ("e", Algorithm::RS256),
            ("o", Algorithm::HS256),
            ("none", Algorithm::RS256),
        ] {
            check(Some(kid), algorithm, false);
        }
    }

    #[test]
    fn keys_come_by_a_way_that_nobody_can_change() {
        let check = |url: &str, holds: bool| assert_eq!(Jwks::new(url).is_ok(), holds, "{url}");
        check("https://auth.example/.well-known/jwks.json", true);
        check("http://127.0.0.1:9/jwks", true);
        check("http://localhost:9/jwks", true);
        check("http://auth.example/jwks", false);
        check("http://127.0.0.1.example/jwks", false);
        check("file:///etc/passwd", false);
        check("jwks", false);
    }
}

#[cfg(test)]
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

#[cfg(test)]
mod tests_of_secret {
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
