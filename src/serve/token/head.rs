//! Format check of a token, before its signature is verified.
//!
//! A JWS has three parts of base64url. Head and claims are JSON objects without duplicate names
//! (RFC 7515 §4, RFC 7519 §4): of two values, one parser takes the first and another the last.
//! `crit` lists extensions that a recipient must understand or refuse (RFC 7515 §4.1.11). No
//! extension is supported here, so that every `crit` is refused. Refused too are the extensions
//! that change what the signature covers or how the claims are read: `b64` (RFC 7797), `zip` and
//! `enc` (RFC 7516).
//!
//! Deliberately absent: keys. `jku`, `jwk`, `x5u` and `x5c` are never used, and a `kid` only
//! selects among the keys that the operator has configured.

use std::collections::HashSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Unsupported header parameters that change the meaning of a token.
const NOT_UNDERSTOOD: [&str; 4] = ["crit", "b64", "zip", "enc"];

/// Returns `true` if a token is well-formed and uses no unsupported extension.
pub(super) fn is_understood(token: &str) -> bool {
    let parts: Vec<&str> = token.split('.').collect();
    let [head, claims, _signature] = parts.as_slice() else {
        return false;
    };
    let Some(names) = names(head) else {
        return false;
    };
    let is_known = !NOT_UNDERSTOOD.iter().any(|name| names.contains(*name));
    is_known && self::names(claims).is_some()
}

/// Returns the top-level names of an encoded JSON object; `None` if it is no object, or has
/// duplicate names at any depth.
fn names(part: &str) -> Option<HashSet<String>> {
    let text = URL_SAFE_NO_PAD.decode(part).ok()?;
    let Unique(names) = serde_json::from_slice(&text).ok()?;
    names
}

/// JSON value without duplicate names; contains the names if it is an object.
struct Unique(Option<HashSet<String>>);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Walk)
    }
}

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without duplicate names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value::<Unique>()?;
            if !names.insert(name) {
                return Err(A::Error::custom("a name occurs twice"));
            }
        }
        Ok(Unique(Some(names)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Unique, A::Error> {
        while list.next_element::<Unique>()?.is_some() {}
        Ok(Unique(None))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique(None))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique(None))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique(None))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique(None))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique(None))
    }

    fn visit_unit<E: Error>(self) -> Result<Unique, E> {
        Ok(Unique(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_is_not_understood_whole_is_refused() {
        let check = |head: &str, claims: &str, expected: bool| {
            let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
            let token = format!("{}.{}.x", part(head), part(claims));
            assert_eq!(is_understood(&token), expected, "{head} {claims}");
        };
        let (head, claims) = (r#"{"alg":"HS256","typ":"JWT"}"#, r#"{"sub":"ann"}"#);
        check(head, claims, true);
        check(
            r#"{"alg":"HS256","kid":"../../etc","x":{"y":[1,null,true,2.5,-1]}}"#,
            claims,
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
            r#"{"alg":"HS256","x":{"y":1,"y":2}}"#,
            r#"[{"alg":"HS256"}]"#,
            r#""HS256""#,
            "",
            "{",
            r#"{"alg":"HS256"} {}"#,
        ] {
            check(head, claims, false);
        }
        for claims in [
            r#"{"sub":"ann","sub":"eve"}"#,
            r#"{"app_metadata":{"domain_scope":"hr","domain_scope":"*"}}"#,
            "[]",
            "null",
        ] {
            check(head, claims, false);
        }
        for token in ["", ".", "..", "a.b", "a.b.c.d", "e30.e30", "e30=.e30.x"] {
            assert!(!is_understood(token), "{token}");
        }
        let deep = "[".repeat(100_000);
        check(&deep, claims, false);
    }
}
