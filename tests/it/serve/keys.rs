//! The tokens of another issuer, verified by the public keys that it offers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use serde_json::{Value, json};

use super::access::{base64, sign};
use super::{Served, bearer};
use crate::support::skipped;
use crate::workspace::Workspace;

/// Somebody who offers keys.
struct Issuer {
    url: String,
    keys: Arc<Mutex<Value>>,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    fn new(keys: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
        let (keys, asked) = (Arc::new(Mutex::new(keys)), Arc::new(AtomicUsize::new(0)));
        let (offered, counted) = (Arc::clone(&keys), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while head.read_line(&mut line).unwrap_or(0) > 2 {
                    line.clear();
                }
                counted.fetch_add(1, Ordering::SeqCst);
                let body = offered.lock().unwrap().to_string();
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                drop(stream.write_all((head + &body).as_bytes()));
            }
        });
        Self { url, keys, asked }
    }
}

/// A token with this head, signed by this.
fn token(head: &Value, sub: &str, signer: &dyn Fn(&[u8]) -> Vec<u8>) -> String {
    let claims = json!({ "sub": sub, "aud": "authenticated", "role": "authenticated", "exp": 9_999_999_999_u64,
        "app_metadata": { "domain_scope": ["hr"] } });
    let message = format!(
        "{}.{}",
        base64(head.to_string().as_bytes()),
        base64(claims.to_string().as_bytes())
    );
    let signature = signer(message.as_bytes());
    format!("{message}.{}", base64(&signature))
}

#[test]
fn tokens_of_another_issuer_are_verified_by_its_keys() {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let curve = |document: &[u8]| EcdsaKeyPair::from_pkcs8(algorithm, document, &random).unwrap();
    let new = || {
        curve(
            EcdsaKeyPair::generate_pkcs8(algorithm, &random)
                .unwrap()
                .as_ref(),
        )
    };
    let (first, second) = (new(), new());
    let point = |key: &EcdsaKeyPair, kid: &str| {
        let point = key.public_key().as_ref();
        json!({ "kid": kid, "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig",
            "x": base64(&point[1..33]), "y": base64(&point[33..]) })
    };
    let mut keys = vec![point(&first, "one")];
    // `ring` makes no RSA keys; everybody's OpenSSL does.
    let made = Command::new("openssl")
        .args([
            "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-outform", "DER",
        ])
        .output();
    let rsa = made.ok().filter(|made| made.status.success());
    let read = |der: &[u8]| RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der));
    let rsa = rsa.and_then(|made| read(&made.stdout).ok());
    if let Some(rsa) = &rsa {
        let public: RsaPublicKeyComponents<Vec<u8>> = rsa.public_key().into();
        keys.push(
            json!({ "kid": "rsa", "kty": "RSA", "alg": "RS256", "n": base64(&public.n),
            "e": base64(&public.e) }),
        );
    } else {
        skipped("no `openssl` makes an RSA key");
    }
    let issuer = Issuer::new(json!({ "keys": keys }));
    let workspace = Workspace::sample();
    let served = Served::start(
        &workspace,
        &["--jwks", &issuer.url, "--audience", "authenticated"],
    );
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1);
    let check = |token: &str, status: u16| {
        let reply = served.ask("GET", "/v1/executions", &[&bearer(token)], "");
        assert_eq!(reply.status, status, "{token}: {reply:?}");
    };
    let es = |kid: &str| json!({ "alg": "ES256", "kid": kid });
    check(&token(&es("one"), "ann", &by(&first, &random)), 200);
    check(
        &token(&json!({ "alg": "ES256" }), "ann", &by(&first, &random)),
        200,
    );
    check(&token(&es("one"), "ann", &by(&second, &random)), 401);
    check(
        &token(&json!({ "alg": "none", "kid": "one" }), "ann", &|_| {
            Vec::new()
        }),
        401,
    );
    check(
        &token(
            &json!({ "alg": "RS256", "kid": "one" }),
            "ann",
            &by(&first, &random),
        ),
        401,
    );
    if let Some(rsa) = &rsa {
        let by_rsa = |message: &[u8]| {
            let mut signature = vec![0; rsa.public().modulus_len()];
            rsa.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                .unwrap();
            signature
        };
        check(
            &token(&json!({ "alg": "RS256", "kid": "rsa" }), "ann", &by_rsa),
            200,
        );
        check(
            &token(&json!({ "alg": "ES256", "kid": "rsa" }), "ann", &by_rsa),
            401,
        );
    }
    // What everybody can read is no secret to sign with.
    let claims = json!({ "sub": "eve", "aud": "authenticated", "exp": 9_999_999_999_u64, "domain_scope": "*" });
    for key in &keys {
        for field in ["n", "x"] {
            if let Some(secret) = key[field].as_str() {
                check(&sign(&claims, secret), 401);
            }
        }
    }
    // A new key is fetched when it is first named, and names that nobody knows are not asked for again
    // and again.
    let asked = issuer.asked.load(Ordering::SeqCst);
    *issuer.keys.lock().unwrap() = json!({ "keys": [point(&second, "two")] });
    for _ in 0..5 {
        check(&token(&es("two"), "ann", &by(&second, &random)), 401);
    }
    assert_eq!(
        issuer.asked.load(Ordering::SeqCst),
        asked,
        "asked again within half a minute"
    );
    // Nobody gets in where there are no keys.
    let nowhere = Served::start(
        &workspace,
        &[
            "--jwks",
            "http://127.0.0.1:9/jwks",
            "--audience",
            "authenticated",
        ],
    );
    let reply = nowhere.ask(
        "GET",
        "/v1/executions",
        &[&bearer(&token(&es("one"), "ann", &by(&first, &random)))],
        "",
    );
    assert_eq!(reply.status, 503, "{reply:?}");
}

fn by<'a>(key: &'a EcdsaKeyPair, random: &'a SystemRandom) -> impl Fn(&[u8]) -> Vec<u8> + 'a {
    move |message| key.sign(random, message).unwrap().as_ref().to_vec()
}
