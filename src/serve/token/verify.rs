//! Claims of a token, and its verification.
//!
//! Head and claims are JSON objects without duplicate names among those that are evaluated (RFC 7515 §4,
//! RFC 7519 §4): of two values, one parser takes the first and another the last. `crit` lists extensions
//! that a recipient must understand or refuse (RFC 7515 §4.1.11). No extension is supported here, so every
//! `crit` is refused. So are extensions that change the signed part or the reading of claims: `b64` (RFC
//! 7797), `zip` and `enc` (RFC 7516).
//!
//! Evaluated are `sub` (the user), `domain_scope` (the domains, as a list or a text with commas;
//! `*` is all), `exp`, `nbf` and `aud`. `role` is kept for clients and grants nothing here. The
//! role `agent` marks a token of an agent, whose corrections wait for a person.
//!
//! Issuers that let an application add claims only below `app_metadata` may put `domain_scope`
//! there. It is ignored below `user_metadata`, which users can edit.
//!
//! Deliberately absent: keys. `jku`, `jwk`, `x5u` and `x5c` are never used, and a `kid` only
//! selects among the keys that the operator has configured.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::{AGENT, Scope, SkillPath, UserId};
use crate::serve::token::keys::{Jwks, Refused, Secret, install};

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
        install();
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

/// Unsupported header parameters that change the meaning of a token.
const NOT_UNDERSTOOD: [&str; 4] = ["crit", "b64", "zip", "enc"];

/// Returns the head of a token, if it uses no unsupported extension.
fn understood(token: &str) -> Option<Header> {
    let head = token.split('.').next().filter(|_| token.len() <= LONGEST)?;
    let head = URL_SAFE_NO_PAD.decode(head).ok()?;
    let names: serde_json::Map<String, Value> = serde_json::from_slice(&head).ok()?;
    if NOT_UNDERSTOOD.iter().any(|name| names.contains_key(*name)) {
        return None;
    }
    jsonwebtoken::decode_header(token).ok()
}

/// Default audience of tokens.
pub const AUDIENCE: &str = "memctl";

/// Tolerated clock difference in seconds.
const SKEW: f64 = 30.0;

/// Caller of a request, from a verified token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// User whose memories and sessions are visible.
    pub user: UserId,
    /// Visible domains; never empty.
    pub scope: Scope,
    /// `true` for a token with the role [`AGENT`]: its corrections wait for a person, and its notes are
    /// observed.
    pub is_agent: bool,
}

/// Claims of a token to create.
#[derive(Debug)]
pub struct NewToken {
    /// User id.
    pub sub: UserId,
    /// Domains; `*` among them is all.
    pub domains: Vec<String>,
    /// Role.
    pub role: String,
    /// Audience.
    pub audience: String,
    /// Lifetime.
    pub ttl: TimeDelta,
}

/// Created token.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Minted {
    /// Encoded token.
    pub token: String,
    /// User id.
    pub sub: String,
    /// Domains.
    pub scope: Vec<String>,
    /// Expiry: RFC 3339, UTC.
    pub expires_at: String,
}

/// Claims read from a token of any issuer. The library checks the audience.
#[derive(Debug, Deserialize)]
struct Claims {
    sub: Value,
    exp: f64,
    nbf: Option<f64>,
    domain_scope: Option<Value>,
    app_metadata: Option<AppMetadata>,
    role: Option<String>,
    /// Checked by the library; here so that a second one is an error.
    #[serde(rename = "aud")]
    _aud: Option<IgnoredAny>,
}

/// Claims that an application may add.
#[derive(Debug, Deserialize)]
struct AppMetadata {
    domain_scope: Option<Value>,
}

/// Creates a token.
///
/// # Errors
///
/// Returns a message for an invalid domain, an empty list of domains, or an expiry beyond the
/// calendar.
pub fn mint(new: &NewToken, secret: &Secret, now: DateTime<Utc>) -> Result<Minted, String> {
    if domains(new.domains.iter().map(String::as_str)).is_none() {
        let given = new.domains.join(",");
        let given = given.escape_debug();
        return Err(format!("`{given}` is not a list of domains"));
    }
    let end = now.checked_add_signed(new.ttl);
    let end = end.ok_or("the token would expire after the last supported date")?;
    let written = json!({
        "iss": "memctl",
        "sub": new.sub.as_str(),
        "aud": new.audience,
        "role": new.role,
        "domain_scope": new.domains,
        "iat": now.timestamp(),
        "exp": end.timestamp(),
    });
    install();
    let key = EncodingKey::from_secret(secret.expose());
    let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &written, &key);
    Ok(Minted {
        token: token.map_err(|_| "cannot sign the token")?,
        sub: new.sub.to_string(),
        scope: new.domains.clone(),
        expires_at: end.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
    })
}

impl Claims {
    /// Returns the caller, if the token is valid at this time.
    fn caller(self, now: DateTime<Utc>) -> Result<Caller, Refused> {
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 have 31 bits")]
        let now = now.timestamp() as f64;
        // NaN and infinity count as expired.
        if !(self.exp.is_finite() && self.exp > now - SKEW) {
            return Err(Refused::Expired);
        }
        if let Some(nbf) = self.nbf
            && !(nbf.is_finite() && nbf <= now + SKEW)
        {
            return Err(Refused::NotYet);
        }
        let user = self.sub.as_str().and_then(|sub| sub.parse().ok());
        let of_app = self.app_metadata.and_then(|of_app| of_app.domain_scope);
        let given = self.domain_scope.or(of_app);
        Ok(Caller {
            user: user.ok_or(Refused::NoSubject)?,
            scope: given.as_ref().and_then(scope).ok_or(Refused::NoScope)?,
            is_agent: self.role.is_some_and(|role| is_of_agent(&role)),
        })
    }
}

/// Returns `true` for the role `agent`, also written `Agent` or `agents`: a slip must not give the rights of a person.
fn is_of_agent(role: &str) -> bool {
    let start = role.trim_start().get(..AGENT.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(AGENT))
}

/// Returns the scope of a claim; `None` if it names no domains or is malformed.
fn scope(claim: &Value) -> Option<Scope> {
    match claim {
        Value::String(list) => domains(list.split(',').map(str::trim)),
        Value::Array(list) => {
            let names: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            domains(names?.into_iter())
        }
        _ => None,
    }
}

fn domains<'a>(names: impl Iterator<Item = &'a str>) -> Option<Scope> {
    let mut domains = BTreeSet::new();
    for name in names {
        let is_domain = |name: &str| format!("{name}/x").parse::<SkillPath>().is_ok();
        if name != "*" && !is_domain(name) {
            return None;
        }
        domains.insert(name.to_owned());
    }
    if domains.contains("*") {
        return Some(Scope::All);
    }
    (!domains.is_empty()).then_some(Scope::Domains(domains))
}

#[cfg(test)]
mod tests {
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

#[cfg(test)]
mod tests_of_claims {
    use super::*;

    #[test]
    fn a_scope_names_domains_or_is_refused() {
        let check = |claim: Value, expected: Option<&str>| {
            assert_eq!(scope(&claim), expected.map(Scope::parse), "{claim}");
        };
        check(json!("hr"), Some("hr"));
        check(json!("hr, dev"), Some("hr,dev"));
        check(json!(["hr", "dev"]), Some("hr,dev"));
        check(json!(["*"]), Some("*"));
        for bad in [
            json!(""),
            json!([]),
            json!([""]),
            json!(null),
            json!(true),
            json!({"hr": true}),
            json!(["hr", 1]),
            json!(["hr,finance"]),
            json!(["hr/x"]),
            json!(["../hr"]),
            json!(["hr", "h r"]),
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn a_token_holds_between_its_times() {
        let now = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let check = |claims: Value, expected: Result<&str, Refused>| {
            let claims: Claims = serde_json::from_value(claims).unwrap();
            let caller = claims.caller(now).map(|caller| caller.user.to_string());
            assert_eq!(caller, expected.map(str::to_owned));
        };
        let hr = |exp: f64| json!({ "sub": "ann", "exp": exp, "domain_scope": "hr" });
        check(hr(1_000_060.0), Ok("ann"));
        check(hr(999_980.5), Ok("ann"));
        check(hr(999_960.0), Err(Refused::Expired));
        let early = json!({ "sub": "ann", "exp": 2e6, "nbf": 1_000_040, "domain_scope": "hr" });
        check(early, Err(Refused::NotYet));
        for sub in [json!(""), json!(" "), json!(7), json!(null)] {
            let claims = json!({ "sub": sub, "exp": 2e6, "domain_scope": "hr" });
            check(claims, Err(Refused::NoSubject));
        }
        check(json!({ "sub": "ann", "exp": 2e6 }), Err(Refused::NoScope));
        let below =
            |name: &str| json!({ "sub": "ann", "exp": 2e6, name: { "domain_scope": ["hr"] } });
        check(below("app_metadata"), Ok("ann"));
        check(below("user_metadata"), Err(Refused::NoScope));
    }

    #[test]
    fn a_mistyped_role_is_that_of_an_agent() {
        for (role, expected) in [
            ("agent", true),
            ("Agent", true),
            ("agents", true),
            ("authenticated", false),
            ("", false),
        ] {
            assert_eq!(is_of_agent(role), expected, "{role}");
        }
    }
}
