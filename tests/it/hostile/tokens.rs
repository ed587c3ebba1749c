//! Tokens with odd heads and claims, signed with the right secret: only what is understood whole holds.

use hmac::{KeyInit as _, Mac as _};
use serde_json::{Value, json};

use crate::serve::access::base64;
use crate::serve::{Served, ask, bearer};
use crate::workspace::Workspace;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// A token of these two texts, signed as the server verifies it.
fn signed(head: &str, claims: &str) -> String {
    let message = format!("{}.{}", base64(head.as_bytes()), base64(claims.as_bytes()));
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(message.as_bytes());
    format!("{message}.{}", base64(&mac.finalize().into_bytes()))
}

fn claims() -> Value {
    json!({ "sub": "ann", "aud": "memctl", "exp": 9_999_999_999_u64, "domain_scope": ["hr"] })
}

fn served() -> (Workspace, Served) {
    let workspace = Workspace::sample();
    workspace.write("secret.txt", SECRET);
    let served = Served::start(&workspace, &["--jwt-secret-file", "secret.txt"]);
    (workspace, served)
}

#[track_caller]
fn check(served: &Served, token: &str, what: &str, status: u16) {
    let reply = ask(
        served.host(),
        "GET",
        "/v1/executions",
        &[&bearer(token)],
        "",
    );
    assert_eq!(reply.status, status, "{what}: {reply:?}");
}

#[test]
fn a_head_that_names_what_nobody_understands_is_refused() {
    let (_workspace, served) = served();
    let claims = claims().to_string();
    let with = |more: &str| format!(r#"{{"alg":"HS256","typ":"JWT"{more}}}"#);
    // What only describes the token or names a key is no reason to refuse it, and opens no file.
    for more in [
        "",
        r#","kid":"../../../../dev/zero""#,
        r#","kid":"file:///etc/passwd""#,
        r#","kid":"' or 1=1 --""#,
        r#","x5u":"http://127.0.0.1:1/key.pem","jku":"http://127.0.0.1:1/jwks.json""#,
        r#","odd":{"deep":[{"er":1}]}"#,
        r#","odd":{"a":1,"a":2}"#,
    ] {
        let head = with(more);
        check(&served, &signed(&head, &claims), &head, 200);
    }
    for more in [
        r#","crit":["exp"]"#,
        r#","crit":["b64"],"b64":false"#,
        r#","crit":["http://example.org/own"],"http://example.org/own":true"#,
        r#","crit":[]"#,
        r#","crit":"exp""#,
        r#","crit":null"#,
        r#","b64":false"#,
        r#","zip":"DEF""#,
        r#","enc":"A256GCM""#,
        r#","kid":["a"]"#,
        r#","kid":{"$ne":null}"#,
        r#","alg":"none""#,
    ] {
        let head = with(more);
        check(&served, &signed(&head, &claims), &head, 401);
    }
}

#[test]
fn another_algorithm_does_not_make_another_token() {
    let (_workspace, served) = served();
    let claims = claims().to_string();
    for alg in [
        r#""none""#, r#""None""#, r#""""#, r#""hs256""#, r#""HS256 ""#, r#""HS384""#, r#""HS512""#,
        r#""RS256""#, r#""ES256""#, r#""PS256""#, r#""EdDSA""#, r#""dir""#, "null", "256",
        r#"["HS256"]"#,
    ] {
        let head = format!(r#"{{"alg":{alg}}}"#);
        check(&served, &signed(&head, &claims), &head, 401);
        let unsigned = format!("{}.{}.", base64(head.as_bytes()), base64(claims.as_bytes()));
        check(&served, &unsigned, &head, 401);
    }
}

#[test]
fn claims_that_say_two_things_say_nothing() {
    let (_workspace, served) = served();
    let head = r#"{"alg":"HS256"}"#;
    let rest = r#""aud":"memctl","exp":9999999999"#;
    check(
        &served,
        &signed(
            head,
            &format!(r#"{{"sub":"ann","domain_scope":"hr",{rest}}}"#),
        ),
        "the plain one",
        200,
    );
    for claims in [
        format!(r#"{{"sub":"ann","sub":"eve","domain_scope":"hr",{rest}}}"#),
        format!(r#"{{"sub":"ann","domain_scope":"hr","domain_scope":"*",{rest}}}"#),
        format!(r#"{{"sub":"ann","domain_scope":"hr","domain_\u0073cope":"*",{rest}}}"#),
        format!(
            r#"{{"sub":"ann","app_metadata":{{"domain_scope":"hr","domain_scope":"*"}},{rest}}}"#
        ),
        format!(r#"{{"sub":"ann","domain_scope":"hr","aud":"other",{rest}}}"#),
        format!(r#"{{"sub":"ann","domain_scope":"hr","exp":1,{rest}}}"#),
        r#""ann""#.to_owned(),
        "[]".to_owned(),
    ] {
        check(&served, &signed(head, &claims), &claims, 401);
    }
    // A token in a token is no claims.
    let inner = signed(head, &claims().to_string());
    check(
        &served,
        &signed(r#"{"alg":"HS256","cty":"JWT"}"#, &inner),
        "nested",
        401,
    );
}
