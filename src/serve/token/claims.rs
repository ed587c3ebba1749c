//! Claims of a token.
//!
//! Evaluated are `sub` (the user), `domain_scope` (the domains, as a list or a text with commas;
//! `*` is all), `exp`, `nbf` and `aud`. `role` is kept for clients and grants nothing here. The
//! role `agent` marks a token of an agent, whose corrections wait for a person.
//!
//! Issuers that let an application add claims only below `app_metadata` may put `domain_scope`
//! there. It is ignored below `user_metadata`, which users can edit.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::{AGENT, Scope, SkillPath, UserId};

use super::ring::Secret;
use super::verify::Refused;

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
pub(super) struct Claims {
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
        return Err(format!(
            "`{}` is not a list of domains",
            given.escape_debug()
        ));
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
    super::ring::install();
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
    pub(super) fn caller(self, now: DateTime<Utc>) -> Result<Caller, Refused> {
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
    use serde_json::json;

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
