//! Public keys of an external token issuer, at a URL.
//!
//! The keys are cached. They are fetched again when they are old, or when a token names an unknown
//! key. A fetch happens at most every half minute, so that invented key ids cannot overload the
//! issuer. If a fetch fails, the cached keys stay valid.

use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::sync::Mutex;

use super::verify::Refused;

/// Time for which cached keys are fresh.
const FRESH: Duration = Duration::from_mins(10);
/// Minimum time between two fetches.
const PAUSE: Duration = Duration::from_secs(30);
/// Timeout of a fetch.
const WITHIN: Duration = Duration::from_secs(5);
/// Maximum size of a response: 1 MiB.
const LONGEST: usize = 1 << 20;

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
        let get = memctl_llm::get_json(&self.url, WITHIN, LONGEST);
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
    let signs = matches!(
        key.common.public_key_use,
        None | Some(PublicKeyUse::Signature)
    );
    let stated = key.common.key_algorithm;
    let kind = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(_), Algorithm::RS256) => {
            matches!(stated, None | Some(KeyAlgorithm::RS256))
        }
        (AlgorithmParameters::EllipticCurve(curve), Algorithm::ES256) => {
            curve.curve == EllipticCurve::P256 && matches!(stated, None | Some(KeyAlgorithm::ES256))
        }
        // A symmetric key at a public URL is no secret.
        _ => false,
    };
    signs && kind
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
