//! Verification of tokens.

use chrono::{DateTime, Utc};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};

use super::claims::{Caller, Claims};
use super::head;
use super::jwks::Jwks;
use super::refused::Refused;
use super::secret::Secret;

/// Maximum size of a token: 16 KiB.
const LONGEST: usize = 16 << 10;

/// Keys that verify tokens.
#[derive(Debug)]
pub enum Keys {
    /// Shared secret that also signs them.
    Secret(Secret),
    /// Public keys at a URL.
    Jwks(Jwks),
}

/// Verifier of tokens.
#[derive(Debug)]
pub struct Verifier {
    keys: Keys,
    audience: String,
}

impl Verifier {
    /// Creates a verifier for this audience with these keys.
    pub fn new(keys: Keys, audience: String) -> Self {
        super::ring::install();
        Self { keys, audience }
    }

    /// Verifies a token, and returns its caller.
    ///
    /// # Errors
    ///
    /// Returns the reason why the token is refused.
    pub async fn caller(&self, token: &str, now: DateTime<Utc>) -> Result<Caller, Refused> {
        if token.len() > LONGEST || !head::is_understood(token) {
            return Err(Refused::Invalid);
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| Refused::Invalid)?;
        let (key, algorithm) = match &self.keys {
            Keys::Secret(secret) => {
                let key = DecodingKey::from_secret(secret.expose());
                (key, Algorithm::HS256)
            }
            Keys::Jwks(keys) => keys.key(header.kid.as_deref(), header.alg).await?,
        };
        self.read(token, &key, algorithm)?.caller(now)
    }

    fn read(
        &self,
        token: &str,
        key: &DecodingKey,
        algorithm: Algorithm,
    ) -> Result<Claims, Refused> {
        let mut validation = Validation::new(algorithm);
        validation.set_required_spec_claims(&["exp", "aud", "sub"]);
        validation.set_audience(&[&self.audience]);
        // The caller checks the times, with a clock that is an argument.
        validation.validate_exp = false;
        let read = jsonwebtoken::decode::<Claims>(token, key, &validation);
        read.map(|read| read.claims)
            .map_err(|error| match error.kind() {
                ErrorKind::InvalidAudience => Refused::Audience,
                ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
                    "aud" => Refused::Audience,
                    "sub" => Refused::NoSubject,
                    _ => Refused::Expired,
                },
                _ => Refused::Invalid,
            })
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use serde_json::{Value, json};

    use super::super::claims::{NewToken, mint};
    use super::*;
    use memctl_files::named;

    fn secret(byte: char) -> Secret {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        named::replace(&path, byte.to_string().repeat(32).as_bytes()).unwrap();
        Secret::read(&path).unwrap()
    }

    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut text = String::new();
        for part in bytes.chunks(3) {
            let mut word = [0; 3];
            word[..part.len()].copy_from_slice(part);
            let word = u32::from_be_bytes([0, word[0], word[1], word[2]]);
            for digit in 0..=part.len() {
                let place = (word >> (18 - 6 * digit)) & 63;
                text.push(char::from(DIGITS[place as usize]));
            }
        }
        text
    }

    fn check(verifier: &Verifier, token: &str, expected: Result<&str, Refused>) {
        let now = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let caller = runtime.block_on(verifier.caller(token, now));
        let caller = caller.map(|caller| caller.user.to_string());
        assert_eq!(caller, expected.map(str::to_owned), "{token}");
    }

    #[test]
    fn only_a_signed_token_for_us_holds() {
        let now = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let token = |audience: &str, key: char| {
            let new = NewToken {
                sub: "ann".parse().unwrap(),
                domains: vec!["hr".to_owned()],
                role: "authenticated".to_owned(),
                audience: audience.to_owned(),
                ttl: TimeDelta::hours(1),
            };
            mint(&new, &secret(key), now).unwrap().token
        };
        let verifier = Verifier::new(Keys::Secret(secret('s')), "memctl".to_owned());
        let good = token("memctl", 's');
        check(&verifier, &good, Ok("ann"));
        check(&verifier, &token("other", 's'), Err(Refused::Audience));
        check(&verifier, &token("memctl", 't'), Err(Refused::Invalid));
        for bad in [
            "",
            ".",
            "..",
            "a.b.c",
            "…",
            &good[..good.len() - 2],
            &format!("{good}.x"),
        ] {
            check(&verifier, bad, Err(Refused::Invalid));
        }
        // Forged heads over the same claims, with many signatures.
        let parts: Vec<&str> = good.split('.').collect();
        let (claims, signature) = (parts[1], parts[2]);
        for alg in [
            "none", "None", "NONE", "", "HS384", "HS512", "RS256", "ES256", "PS256",
        ] {
            let head = base64(json!({ "typ": "JWT", "alg": alg }).to_string().as_bytes());
            for signature in ["", signature] {
                let token = format!("{head}.{claims}.{signature}");
                check(&verifier, &token, Err(Refused::Invalid));
            }
        }
        // Other claims under the same signature.
        let forged: Value =
            json!({ "sub": "eve", "aud": "memctl", "exp": 2e6, "domain_scope": "*" });
        let forged = base64(forged.to_string().as_bytes());
        let forged = format!("{}.{forged}.{signature}", parts[0]);
        check(&verifier, &forged, Err(Refused::Invalid));
    }
}
