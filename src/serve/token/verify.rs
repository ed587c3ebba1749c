//! Verification of tokens, and the reasons for a refusal.
//!
//! Head and claims are JSON objects without duplicate names among those that are evaluated (RFC 7515 §4,
//! RFC 7519 §4): of two values, one parser takes the first and another the last. `crit` lists extensions
//! that a recipient must understand or refuse (RFC 7515 §4.1.11). No extension is supported here, so every
//! `crit` is refused. So are extensions that change the signed part or the reading of claims: `b64` (RFC
//! 7797), `zip` and `enc` (RFC 7516).
//!
//! Deliberately absent: keys. `jku`, `jwk`, `x5u` and `x5c` are never used, and a `kid` only
//! selects among the keys that the operator has configured.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};

use crate::serve::token::claims::{Caller, Claims};
use crate::serve::token::jwks::Jwks;
use crate::serve::token::ring::Secret;

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
        let header = understood(token).ok_or(Refused::Invalid)?;
        let (key, algorithm) = match &self.keys {
            Keys::Secret(secret) => {
                let key = DecodingKey::from_secret(secret.expose());
                (key, Algorithm::HS256)
            }
            Keys::Jwks(keys) => {
                let key = keys.key(header.kid.as_deref(), header.alg).await?;
                (key, header.alg)
            }
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

/// Unsupported header parameters that change the meaning of a token.
const NOT_UNDERSTOOD: [&str; 4] = ["crit", "b64", "zip", "enc"];

/// Returns the head of a token, if it uses no unsupported extension.
fn understood(token: &str) -> Option<Header> {
    let head = token.split('.').next().filter(|_| token.len() <= LONGEST)?;
    let head = URL_SAFE_NO_PAD.decode(head).ok()?;
    let names: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&head).ok()?;
    if NOT_UNDERSTOOD.iter().any(|name| names.contains_key(*name)) {
        return None;
    }
    jsonwebtoken::decode_header(token).ok()
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

#[cfg(test)]
mod tests_of_head {
    use super::*;

    #[test]
    fn a_token_that_is_not_understood_whole_is_refused() {
        let check = |head: &str, expected: bool| {
            let token = format!("{}.e30.x", URL_SAFE_NO_PAD.encode(head));
            assert_eq!(understood(&token).is_some(), expected, "{head}");
        };
        check(r#"{"alg":"HS256","typ":"JWT"}"#, true);
        check(
            r#"{"alg":"HS256","kid":"../../etc","x":{"y":[1,null,true,2.5,-1]}}"#,
            true,
        );
        for head in [
            r#"{"alg":"HS256","crit":["exp"]}"#,
            r#"{"alg":"HS256","crit":[]}"#,
            r#"{"alg":"HS256","crit":null}"#,
            r#"{"alg":"HS256","b64":false}"#,
            r#"{"alg":"HS256","b64":true}"#,
            r#"{"alg":"HS256","zip":"DEF"}"#,
            r#"{"alg":"dir","enc":"A128GCM"}"#,
            r#"{"alg":"HS256","alg":"none"}"#,
            r#"{"alg":"HS256","\u0061lg":"none"}"#,
            r#"{"alg":"HS256","kid":"a","kid":"b"}"#,
            r#"[{"alg":"HS256"}]"#,
            r#""HS256""#,
            "",
            "{",
            r#"{"alg":"HS256"} {}"#,
        ] {
            check(head, false);
        }
        for token in ["", ".", "..", "a.b", "a.b.c.d", "e30.e30", "e30=.e30.x"] {
            assert!(understood(token).is_none(), "{token}");
        }
        check(&"[".repeat(100_000), false);
    }

    #[test]
    fn claims_have_each_name_once() {
        let check = |claims: &str, expected: bool| {
            let read = serde_json::from_str::<Claims>(claims);
            assert_eq!(read.is_ok(), expected, "{claims}");
        };
        check(r#"{"sub":"ann","exp":1,"x":{"y":[1,null]}}"#, true);
        for claims in [
            r#"{"sub":"ann","exp":1,"sub":"eve"}"#,
            r#"{"sub":"ann","exp":1,"aud":"a","aud":"b"}"#,
            r#"{"sub":"ann","exp":1,"app_metadata":{"domain_scope":"hr","domain_scope":"*"}}"#,
            "[]",
            "null",
        ] {
            check(claims, false);
        }
    }
}
