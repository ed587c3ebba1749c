//! What a token says, and what of it counts.
//!
//! Counted are `sub` (the user), `domain_scope` (the domains, a list or a text with commas; `*` is all),
//! `exp`, `nbf` and `aud`. `role` is carried for the clients that look at it, and gives no right here:
//! `agent` says that an agent has the token, whose corrections wait for a person.
//! Issuers that let an application add its own claims only below `app_metadata` may put `domain_scope`
//! there; below `user_metadata`, which users edit themselves, it counts for nothing.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{AGENT, Scope, SkillPath, UserId};

use super::secret::Secret;
use super::verify::Refused;

/// The audience of tokens where nobody says otherwise.
pub const AUDIENCE: &str = "memctl";

/// How far two clocks may be apart, in seconds.
const SKEW: f64 = 30.0;

/// Who asks, by a token that has been verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Whose memories and sessions there are.
    pub user: UserId,
    /// The domains that there are; never empty.
    pub scope: Scope,
    /// What the token calls the user's role. It gives no right; [`AGENT`] takes one.
    pub role: String,
    /// When the token ends.
    pub until: DateTime<Utc>,
}

/// What is to stand in a token.
#[derive(Debug)]
pub struct NewToken {
    /// The user.
    pub sub: UserId,
    /// The domains; `*` among them is all.
    pub domains: Vec<String>,
    /// The role.
    pub role: String,
    /// For whom it is.
    pub audience: String,
    /// How long it holds.
    pub ttl: TimeDelta,
}

/// A token that was made.
#[derive(Debug, Serialize)]
pub struct Minted {
    /// The token itself.
    pub token: String,
    /// The user.
    pub sub: String,
    /// The domains.
    pub scope: Vec<String>,
    /// When it ends: RFC 3339, UTC.
    pub expires_at: String,
}

/// What stands in the tokens that are made here.
#[derive(Serialize)]
struct Written<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    role: &'a str,
    domain_scope: &'a [String],
    iat: i64,
    exp: i64,
}

/// What is read of a token, wherever it was made. Its audience is looked at by the library.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    sub: Value,
    exp: f64,
    nbf: Option<f64>,
    domain_scope: Option<Value>,
    #[serde(default)]
    app_metadata: Value,
    role: Option<String>,
}

/// Makes a token.
///
/// # Errors
///
/// A domain that is none, a list without any, or an end that no calendar has, in words.
pub fn mint(new: &NewToken, secret: &Secret, now: DateTime<Utc>) -> Result<Minted, String> {
    if domains(new.domains.iter().map(String::as_str)).is_none() {
        let given = new.domains.join(",");
        return Err(format!("`{}` names no domains", given.escape_debug()));
    }
    let end = now.checked_add_signed(new.ttl);
    let end = end.ok_or("the token would end after the last day of the calendar")?;
    let written = Written {
        iss: "memctl",
        sub: new.sub.as_str(),
        aud: &new.audience,
        role: &new.role,
        domain_scope: &new.domains,
        iat: now.timestamp(),
        exp: end.timestamp(),
    };
    super::ring::install();
    let key = EncodingKey::from_secret(secret.expose());
    let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &written, &key);
    Ok(Minted {
        token: token.map_err(|_| "the token cannot be signed")?,
        sub: new.sub.to_string(),
        scope: new.domains.clone(),
        expires_at: end.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
    })
}

impl Caller {
    /// Whether an agent has the token: what it corrects waits for a person, what it notes is observed.
    pub fn is_agent(&self) -> bool {
        self.role == AGENT
    }
}

impl Claims {
    /// Who asks, if the token holds now.
    pub(super) fn caller(self, now: DateTime<Utc>) -> Result<Caller, Refused> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "seconds since 1970 have 31 bits"
        )]
        let now = now.timestamp() as f64;
        // A number that is none compares as false, and so ends the token.
        if !(self.exp.is_finite() && self.exp > now - SKEW) {
            return Err(Refused::Expired);
        }
        if let Some(nbf) = self.nbf
            && !(nbf.is_finite() && nbf <= now + SKEW)
        {
            return Err(Refused::NotYet);
        }
        let user = self.sub.as_str().and_then(|sub| sub.parse().ok());
        let given = self.domain_scope.as_ref();
        let given = given.or_else(|| self.app_metadata.get("domain_scope"));
        Ok(Caller {
            user: user.ok_or(Refused::NoSubject)?,
            scope: given.and_then(scope).ok_or(Refused::NoScope)?,
            role: self.role.unwrap_or_default(),
            until: end(self.exp),
        })
    }
}

/// A time in seconds since 1970, as far as the calendar goes.
fn end(seconds: f64) -> DateTime<Utc> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float cast to an integer saturates"
    )]
    let whole = seconds as i64;
    DateTime::from_timestamp(whole, 0).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// The scope that a claim names; `None` where it names nothing, or anything else than domains.
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
}
