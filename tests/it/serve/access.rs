//! Who gets in, and what a token opens.

use serde_json::{Value, json};

use super::{Served, bearer, call, execution, token};
use crate::workspace::Workspace;

/// Every route that needs a token, with a body that would do.
fn routes() -> Vec<(&'static str, &'static str, Value)> {
    let query = json!({ "query": "x" });
    let vector = json!({ "query_embedding": [1.0] });
    let memory = json!({ "content": "x", "memory_type": "brand_memory" });
    let run = json!({ "skill": "hr/x", "input": {}, "output": {} });
    let said =
        json!({ "skill": "hr/x", "execution_id": "latest", "correction": "When a, always b." });
    vec![
        (
            "POST",
            "/functions/v1/hybrid-search-context-eng",
            query.clone(),
        ),
        ("POST", "/functions/v1/agent-memory-read", query.clone()),
        ("POST", "/functions/v1/agent-memory-write", memory),
        (
            "POST",
            "/rest/v1/rpc/hybrid_search_context_eng_memories",
            json!({ "query_text": "x" }),
        ),
        ("POST", "/rest/v1/rpc/match_memory", vector),
        ("POST", "/rest/v1/rpc/another", json!({})),
        (
            "POST",
            "/rest/v1/context_eng_memories",
            json!({ "metadata": {} }),
        ),
        ("GET", "/v1/executions", Value::Null),
        ("POST", "/v1/executions", run),
        ("GET", "/v1/corrections", Value::Null),
        ("POST", "/v1/corrections", said),
        ("GET", "/v1/reflexions", Value::Null),
        ("GET", "/v1/reflexions/REFL-001", Value::Null),
        (
            "POST",
            "/v1/reflexions",
            json!({ "skill": "hr/x", "rule": "Always b." }),
        ),
        (
            "PATCH",
            "/v1/reflexions/REFL-001",
            json!({ "rule": "Always c." }),
        ),
        ("POST", "/v1/hints", json!({ "error": "KeyError: 'x'" })),
        (
            "POST",
            "/v1/failures",
            json!({ "code": "a", "error": "KeyError: 'x'" }),
        ),
        (
            "POST",
            "/v1/successes",
            json!({ "code": "a", "output": "b" }),
        ),
        ("GET", "/v1/search?query=x", Value::Null),
        ("POST", "/v1/search", query),
        ("GET", "/v1/prompt/hr/resume-screen", Value::Null),
        ("POST", "/v1/embeddings", json!({ "input": "x" })),
        ("POST", "/mcp", call("search", &json!({ "query": "x" }))),
        ("GET", "/rest/v1/agent_memory", Value::Null),
        (
            "POST",
            "/rest/v1/agent_memory",
            json!({ "content": "x", "memory_type": "brand_memory" }),
        ),
        ("GET", "/v1/users/me/export", Value::Null),
        ("DELETE", "/v1/users/me?confirm=ann", Value::Null),
        ("POST", "/v1/users/me/disable", Value::Null),
        ("POST", "/v1/users/me/enable", Value::Null),
    ]
}

/// A procedure as the source document's analyst words it.
pub(super) fn procedure(name: &str) -> Value {
    json!({ "content": name, "metadata": { "status": "procedure_learned", "data": {
        "procedure_name": name, "semantic_description": format!("How to do {name}"),
        "initial_failure_summary": "it failed", "identified_root_cause": "a type was missing",
        "successful_intervention": "name the type", "learned_procedure_steps": ["name the type", "run it"],
        "critical_contextual_cues": [], "example_scenario_abstract": "" } } })
}

fn body(value: &Value) -> String {
    if value.is_null() {
        String::new()
    } else {
        value.to_string()
    }
}

#[test]
fn every_route_asks_for_a_token_that_holds() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    // The routes of the description are the ones that are tried here.
    let described = served.ask("GET", "/openapi.json", &[], "").is(200).json();
    let mut known = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if operation["security"].is_null() {
                assert!(
                    ["/healthz", "/openapi.json"].contains(&path.as_str()),
                    "{path}"
                );
                served.ask("GET", path, &[], "").is(200);
                continue;
            }
            known += 1;
            let fixed = path.split('{').next().unwrap();
            let is_tried = |(m, p, _): &(&str, &str, Value)| {
                m.eq_ignore_ascii_case(method) && p.starts_with(fixed)
            };
            assert!(routes().iter().any(is_tried), "{method} {path}");
        }
    }
    assert_eq!(
        known + 1,
        routes().len(),
        "the unknown function is tried too"
    );
    let good = token(&workspace, "ann", "hr");
    let parts: Vec<&str> = good.split('.').collect();
    let unsigned = |alg: &str| {
        format!(
            "{}.{}.",
            base64(format!("{{\"alg\":\"{alg}\"}}").as_bytes()),
            parts[1]
        )
    };
    let made = |more: &[&str]| {
        let made = workspace.json(&[&["token", "--sub", "ann", "--scope", "hr"], more].concat());
        made["token"].as_str().unwrap().to_owned()
    };
    let other = Workspace::empty();
    let forged = {
        let claims = json!({ "sub": "ann", "aud": "memctl", "exp": 9_999_999_999_u64, "domain_scope": ["*"] });
        format!(
            "{}.{}.{}",
            parts[0],
            base64(claims.to_string().as_bytes()),
            parts[2]
        )
    };
    let mut expired = Workspace::empty();
    // The same secret, and a clock of a year ago.
    let secret = workspace.write("secret.txt", "s".repeat(32));
    expired.set("MEMCTL_NOW", "2025-02-20T12:00:00Z");
    let second = Served::start(&workspace, &["--jwt-secret-file", "secret.txt"]);
    let secret = secret.to_str().unwrap();
    let old = expired.json(&[
        "token", "--sub", "ann", "--scope", "hr", "--jwt-secret-file", secret,
    ]);
    let refused = [
        ("no token", None, 401),
        ("an empty one", Some(String::new()), 401),
        ("none at all", Some("x".to_owned()), 401),
        ("unsigned", Some(unsigned("none")), 401),
        ("unsigned, in capitals", Some(unsigned("NONE")), 401),
        ("another algorithm", Some(unsigned("RS256")), 401),
        ("forged", Some(forged), 401),
        ("another workspace's", Some(token(&other, "ann", "hr")), 401),
        (
            "another audience's",
            Some(made(&["--audience", "other"])),
            401,
        ),
    ];
    for (method, path, value) in routes() {
        for (why, given, status) in &refused {
            let header = given.as_deref().map(bearer);
            let headers: Vec<&str> = header.iter().map(String::as_str).collect();
            let reply = served.ask(method, path, &headers, &body(&value));
            assert_eq!(reply.status, *status, "{why}: {method} {path}: {reply:?}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{why}");
            let said = reply.json();
            match path.split('/').nth(1).unwrap() {
                "functions" => assert!(said["error"].is_string(), "{said}"),
                "rest" => assert_eq!(said["code"], "PGRST301", "{said}"),
                _ => assert_eq!(said["error"]["kind"], "token", "{said}"),
            }
            if let Some(given) = given.as_deref().filter(|given| given.len() > 1) {
                assert!(!reply.text.contains(given), "{reply:?}");
            }
        }
        // The header in which clients of Supabase name their project opens nothing.
        let key = format!("apikey: {good}");
        served.ask(method, path, &[&key], &body(&value)).is(401);
        let header = bearer(old["token"].as_str().unwrap());
        let reply = second.ask(method, path, &[&header], &body(&value)).is(401);
        assert!(reply.text.contains("expired"), "{reply:?}");
    }
    for kind in [
        "memories.json", "episodic_memory.json", "corrections.json", "audit.jsonl",
    ] {
        let written = std::fs::metadata(workspace.memory(kind)).is_ok_and(|file| file.len() > 0);
        assert!(!written, "`{kind}` was written");
    }
}

#[test]
fn a_token_without_domains_is_not_made_and_does_not_open() {
    let workspace = Workspace::sample();
    let secret = "a secret that is thirty-two bytes";
    workspace.write("secret.txt", secret);
    for scope in ["", " , ", "hr/x", "h r", "../hr"] {
        let arguments = ["token", "--sub", "ann", "--scope", scope];
        workspace
            .run(&arguments)
            .fails(2, "is not a list of domains");
    }
    workspace
        .run(&["token", "--sub", "ann"])
        .fails(2, "`--scope` is required");
    workspace
        .run(&["token", "--sub", " ", "--scope", "hr"])
        .fails(2, "blank");
    workspace.write("short.txt", "x".repeat(31));
    let short = [
        "token", "--sub", "a", "--scope", "hr", "--jwt-secret-file", "short.txt",
    ];
    workspace.run(&short).fails(2, "needs 32");
    let short = [
        "serve", "--addr", "127.0.0.1:0", "--jwt-secret-file", "short.txt",
    ];
    workspace.run(&short).fails(2, "needs 32");
    workspace
        .run(&["serve", "--addr", "0.0.0.0:0"])
        .fails(2, "is not a loopback address");
    workspace
        .run(&["serve", "--addr", "127.0.0.1:0", "--allow-origin", "*"])
        .fails(2, "is not a valid origin");
    workspace
        .run(&[
            "serve",
            "--addr",
            "127.0.0.1:0",
            "--jwks",
            "http://auth.example/jwks",
        ])
        .fails(2, "only `https://`");
    // What another issuer signs with the same secret, and without domains.
    let served = Served::start(&workspace, &["--jwt-secret-file", "secret.txt"]);
    for scope in [
        json!(null),
        json!([]),
        json!(""),
        json!({}),
        json!([""]),
        json!(["hr", 1]),
    ] {
        let claims = json!({ "sub": "ann", "aud": "memctl", "exp": 9_999_999_999_u64, "domain_scope": scope,
            "user_metadata": { "domain_scope": "*" } });
        let signed = sign(&claims, secret);
        for (method, path, value) in routes() {
            let reply = served.ask(method, path, &[&bearer(&signed)], &body(&value));
            assert_eq!(reply.status, 403, "{scope}: {method} {path}: {reply:?}");
        }
    }
    let claims = json!({ "sub": "ann", "aud": ["x", "memctl"], "exp": 9_999_999_999_u64, "domain_scope": ["hr"] });
    served.get(&sign(&claims, secret), "/v1/executions").is(200);
    for claims in [
        json!({ "aud": "memctl", "exp": 9_999_999_999_u64, "domain_scope": ["hr"] }),
        json!({ "sub": "", "aud": "memctl", "exp": 9_999_999_999_u64, "domain_scope": ["hr"] }),
        json!({ "sub": "ann", "exp": 9_999_999_999_u64, "domain_scope": ["hr"] }),
        json!({ "sub": "ann", "aud": "memctl", "domain_scope": ["hr"] }),
        json!({ "sub": "ann", "aud": "memctl", "exp": "never", "domain_scope": ["hr"] }),
    ] {
        served.get(&sign(&claims, secret), "/v1/executions").is(401);
    }
}

/// A token with these claims, as another issuer makes it.
pub(crate) fn sign(claims: &Value, secret: &str) -> String {
    use hmac::{KeyInit as _, Mac as _};
    let head = base64(b"{\"alg\":\"HS256\",\"typ\":\"JWT\"}");
    let message = format!("{head}.{}", base64(claims.to_string().as_bytes()));
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(message.as_bytes());
    let signature = mac.finalize().into_bytes();
    format!("{message}.{}", base64(&signature))
}

/// Base64 as tokens have it.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for part in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..part.len()].copy_from_slice(part);
        let word = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        for digit in 0..=part.len() {
            out.push(char::from(
                DIGITS[((word >> (18 - 6 * digit)) & 63) as usize],
            ));
        }
    }
    out
}

const MARK: &str = "zebrafinance";

#[test]
fn an_hr_token_neither_sees_nor_changes_what_is_finance_or_somebody_elses() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let (all, hr) = (
        token(&workspace, "bob", "*"),
        token(&workspace, "ann", "hr"),
    );
    let foreign = execution(&served, &all, "finance/expense-check", MARK);
    let said = json!({ "skill": "finance/expense-check", "execution_id": foreign,
        "correction": format!("When a receipt names {MARK}, ALWAYS refuse it above 50 dollars.") });
    let corrected = served.post(&all, "/v1/corrections", &said).is(200).json();
    let rule = corrected["reflexion_id"].as_str().unwrap().to_owned();
    let memory =
        json!({ "content": format!("the secret of {MARK}"), "memory_type": "brand_memory" });
    let kept = served
        .post(&all, "/functions/v1/agent-memory-write", &memory)
        .is(200)
        .json();
    let kept = kept["memory"]["id"].as_str().unwrap().to_owned();
    let failure = json!({ "code": format!("{MARK} --x"), "error": format!("KeyError: '{MARK}'") });
    served.post(&all, "/v1/failures", &failure).is(200);
    let success = json!({ "code": format!("{MARK} --y"), "output": "ok" });
    let fix = served.post(&all, "/v1/successes", &success).is(200).json();
    let fix = fix["learned"][0].as_str().unwrap().to_owned();
    let before = files(&workspace);
    // Looked for in every way.
    let marked = json!({ "query": MARK });
    for (method, path, value) in [
        ("GET", "/v1/executions".to_owned(), Value::Null),
        (
            "GET",
            "/v1/executions?skill=finance/expense-check".to_owned(),
            Value::Null,
        ),
        ("GET", "/v1/corrections".to_owned(), Value::Null),
        (
            "GET",
            "/v1/corrections?skill=finance/expense-check&limit=500".to_owned(),
            Value::Null,
        ),
        ("GET", "/v1/reflexions".to_owned(), Value::Null),
        (
            "GET",
            "/v1/reflexions?skill=finance/expense-check".to_owned(),
            Value::Null,
        ),
        ("GET", format!("/v1/search?query={MARK}"), Value::Null),
        (
            "GET",
            format!("/v1/search?query={MARK}&skill=finance/expense-check"),
            Value::Null,
        ),
        ("GET", "/rest/v1/agent_memory".to_owned(), Value::Null),
        ("POST", "/v1/search".to_owned(), marked.clone()),
        (
            "POST",
            "/v1/search".to_owned(),
            json!({ "query": MARK, "kind": "memory", "fusion": "semantic" }),
        ),
        (
            "POST",
            "/functions/v1/agent-memory-read".to_owned(),
            json!({ "query": MARK, "match_threshold": -1 }),
        ),
        (
            "POST",
            "/functions/v1/hybrid-search-context-eng".to_owned(),
            marked.clone(),
        ),
        (
            "POST",
            "/rest/v1/rpc/hybrid_search_context_eng_memories".to_owned(),
            json!({ "query_text": MARK }),
        ),
        (
            "POST",
            "/v1/hints".to_owned(),
            json!({ "error": format!("KeyError: '{MARK}'"), "command": "x" }),
        ),
    ] {
        let reply = served
            .ask(method, &path, &[&bearer(&hr)], &body(&value))
            .is(200);
        let said = reply.text.replace(&format!("\"query\":\"{MARK}\""), "");
        let key = format!("\"error_key\":\"KeyError: '{MARK}'\"");
        let said = said.replace(&key, "");
        assert!(!said.contains(MARK), "{method} {path}: {said}");
        assert!(!said.contains("finance"), "{method} {path}: {said}");
        for id in [&foreign, &rule, &kept, &fix] {
            assert!(!said.contains(id.as_str()), "{method} {path}: {said}");
        }
    }
    // Asked for by its name, and written to.
    let run = json!({ "skill": "finance/expense-check", "input": {}, "output": {} });
    let said = |skill: &str| json!({ "skill": skill, "execution_id": foreign, "correction": "When a, always b." });
    for (method, path, value, status) in [
        (
            "GET",
            "/v1/prompt/finance/expense-check".to_owned(),
            Value::Null,
            403,
        ),
        ("POST", "/v1/executions".to_owned(), run, 403),
        (
            "POST",
            "/v1/corrections".to_owned(),
            said("finance/expense-check"),
            403,
        ),
        (
            "POST",
            "/v1/corrections".to_owned(),
            said("hr/resume-screen"),
            404,
        ),
        (
            "POST",
            "/v1/reflexions".to_owned(),
            json!({ "skill": "finance/expense-check", "rule": "Always b." }),
            403,
        ),
        ("GET", format!("/v1/reflexions/{rule}"), Value::Null, 404),
        (
            "PATCH",
            format!("/v1/reflexions/{rule}"),
            json!({ "rule": "Never." }),
            404,
        ),
        (
            "POST",
            "/rest/v1/context_eng_memories".to_owned(),
            procedure(MARK),
            403,
        ),
        ("POST", "/v1/failures".to_owned(), failure, 403),
        ("POST", "/v1/successes".to_owned(), success, 403),
    ] {
        let reply = served.ask(method, &path, &[&bearer(&hr)], &body(&value));
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
        assert!(!reply.text.contains(MARK), "{reply:?}");
    }
    // By the tools of agents.
    let seen = served.tool(&all, "search", &marked).to_string();
    assert!(seen.contains(&rule) && seen.contains(&kept), "{seen}");
    let hint = json!({ "error": format!("KeyError: '{MARK}'") });
    let hinted = served.tool(&hr, "hint", &hint).to_string();
    assert!(!hinted.contains(&format!("{MARK} --")), "{hinted}");
    let hidden = served.tool(&hr, "search", &marked).to_string();
    let hidden = hidden.replace(&format!("\\\"{MARK}\\\""), "");
    for id in [&foreign, &rule, &kept, &fix] {
        assert!(!hidden.contains(id.as_str()), "{hidden}");
        let refused = served.tool(&hr, "forget", &json!({ "id": id }));
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(!refused.to_string().contains(MARK), "{refused}");
    }
    assert_eq!(files(&workspace), before, "something has changed");
    // His own memories are a user's in whatever domain; another user of the same domain has others.
    let own = json!({ "content": "ann likes tea", "memory_type": "user_preferences" });
    served
        .post(&hr, "/functions/v1/agent-memory-write", &own)
        .is(200);
    let tea = json!({ "query": "ann likes tea" });
    let read = |token: &str| {
        let read = served
            .post(token, "/functions/v1/agent-memory-read", &tea)
            .is(200)
            .json();
        read["results"].as_array().unwrap().len()
    };
    assert_eq!(read(&hr), 1);
    assert_eq!(read(&token(&workspace, "ann", "dev")), 1);
    assert_eq!(read(&token(&workspace, "bob", "hr")), 0);
    assert_eq!(read(&all), 0);
}

/// The data files that matter, as they are.
fn files(workspace: &Workspace) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for name in [
        "episodic_memory.json",
        "corrections.json",
        "reflexion_entries.json",
        "procedural_memory.local.json",
        "memories.json",
    ] {
        all.push((
            name.to_owned(),
            std::fs::read(workspace.memory(name)).unwrap(),
        ));
    }
    all
}

#[test]
fn other_names_and_other_pages_are_refused() {
    let workspace = Workspace::sample();
    let page = "https://app.example";
    let served = Served::start(
        &workspace,
        &["--allow-origin", page, "--allow-host", "memory.example"],
    );
    let token = token(&workspace, "ann", "hr");
    let port = served.url.rsplit(':').next().unwrap().to_owned();
    let check = |headers: &[String], status: u16| {
        let mut all: Vec<String> = headers.to_vec();
        all.push(bearer(&token));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let reply = served.ask("GET", "/v1/executions", &all, "");
        assert_eq!(reply.status, status, "{headers:?}: {reply:?}");
        reply
    };
    let host = |name: &str| format!("Host: {name}");
    for good in [
        "localhost",
        "memory.example",
        "127.0.0.1",
        &format!("localhost:{port}"),
    ] {
        check(&[host(good)], 200);
    }
    for bad in [
        "evil.example",
        &format!("evil.example:{port}"),
        "localhost.evil.example",
        "",
        "127.0.0.1.nip.io",
    ] {
        check(&[host(bad)], 403);
    }
    check(&[host("localhost"), host("evil.example")], 403);
    let absolute = format!(
        "GET http://evil.example/v1/executions HTTP/1.1\r\nHost: localhost\r\n{}\r\nConnection: close\r\n\r\n",
        bearer(&token)
    );
    served.raw(&absolute).is(403);
    let origin = |of: &str| format!("Origin: {of}");
    let allowed = check(&[origin(page)], 200);
    assert_eq!(allowed.header("access-control-allow-origin"), Some(page));
    for bad in [
        "https://evil.example",
        "null",
        "http://app.example",
        "https://app.example.evil.example",
    ] {
        let refused = check(&[origin(bad)], 403);
        assert_eq!(refused.header("access-control-allow-origin"), None);
        assert_eq!(refused.json()["error"]["kind"], "origin");
    }
    // A browser asks first.
    let preflight = |origin: &str| {
        served.ask(
            "OPTIONS",
            "/functions/v1/agent-memory-read",
            &[
                &format!("Origin: {origin}"),
                "Access-Control-Request-Method: POST",
                "Access-Control-Request-Headers: authorization, x-client-info, apikey, content-type, x-retry-count",
            ],
            "",
        )
    };
    let answer = preflight(page).is(200);
    assert_eq!(answer.header("access-control-allow-origin"), Some(page));
    let headers = answer.header("access-control-allow-headers").unwrap();
    for name in [
        "authorization", "x-client-info", "apikey", "content-type", "x-retry-count", "traceparent",
        "tracestate", "baggage",
    ] {
        assert!(headers.contains(name), "{headers}");
    }
    assert!(
        answer
            .header("access-control-allow-methods")
            .unwrap()
            .contains("POST")
    );
    assert_eq!(
        preflight("https://evil.example")
            .is(403)
            .header("access-control-allow-origin"),
        None
    );
    // A refusal is one that the page can read.
    let unknown = served.ask("GET", "/v1/executions", &[&format!("Origin: {page}")], "");
    assert_eq!(
        unknown.is(401).header("access-control-allow-origin"),
        Some(page)
    );
    // Where no page is named, none may ask.
    let closed = Served::start(&workspace, &[]);
    let reply = closed.ask("GET", "/healthz", &["Origin: http://localhost:3000"], "");
    assert_eq!(reply.is(403).header("access-control-allow-origin"), None);
}

#[test]
fn invalid_request_is_explained_and_never_a_server_error() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &["--rate-limit", "0"]);
    let hr = token(&workspace, "ann", "hr");
    let check = |method: &str, path: &str, more: &[&str], body: &str, status: u16| {
        let authorized = bearer(&hr);
        let headers: Vec<&str> = [&authorized as &str]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        let reply = served.ask(method, path, &headers, body);
        assert_eq!(
            reply.status, status,
            "{method} {path} {body:.60}: {reply:?}"
        );
        let said = reply.json();
        let message = match path.split('/').nth(1).unwrap() {
            "functions" => &said["error"],
            "rest" => &said["message"],
            _ => &said["error"]["message"],
        };
        assert!(
            message.as_str().is_some_and(|text| !text.is_empty()),
            "{said}"
        );
        assert!(reply.header("x-request-id").is_some());
    };
    let executions = "/v1/executions";
    check("POST", executions, &[], "{", 400);
    check("POST", executions, &[], "[]", 400);
    let twice = "{\"skill\": \"hr/x\", \"input\": 1, \"output\": 1} {}";
    check("POST", executions, &[], twice, 400);
    check("POST", executions, &[], "{\"skill\": 1}", 422);
    check(
        "POST",
        executions,
        &[],
        "{\"skill\": \"hr/x\", \"input\": 1, \"output\": 1, \"x\": 1}",
        422,
    );
    check(
        "POST",
        executions,
        &[],
        "{\"skill\": \"../x\", \"input\": 1, \"output\": 1}",
        422,
    );
    check(
        "POST",
        executions,
        &[],
        "{\"skill\": \"hr/x\", \"input\": 1, \"output\": 1, \"cost_usd\": -1}",
        422,
    );
    check(
        "POST",
        executions,
        &[],
        "{\"skill\": \"hr/x\", \"input\": 1, \"output\": 1, \"reflexions_injected\": [\"REFL-9\"]}",
        404,
    );
    check("POST", executions, &["Content-Type: text/plain"], "{}", 415);
    check(
        "POST",
        executions,
        &[],
        &format!("{{\"skill\": \"{}\"}}", "x".repeat(2 << 20)),
        413,
    );
    check("POST", executions, &[], &"[".repeat(1 << 19), 400);
    check("DELETE", executions, &[], "", 405);
    check("GET", "/v1/executions?limit=0", &[], "", 422);
    check("GET", "/v1/executions?limit=x", &[], "", 400);
    check("GET", "/v1/executions?skill=%2e%2e/x", &[], "", 422);
    check("GET", "/v1/executions?other=1", &[], "", 400);
    check("GET", "/v1/nothing", &[], "", 404);
    check("GET", "/", &[], "", 404);
    check("GET", "/v1/prompt/hr/unknown", &[], "", 404);
    check("GET", "/v1/prompt/hr/%2e%2e", &[], "", 422);
    check("GET", "/v1/prompt/hr/%ff", &[], "", 400);
    check("POST", "/v1/search", &[], "{\"query\": \" \"}", 422);
    check(
        "POST",
        "/v1/search",
        &[],
        "{\"query\": \"x\", \"kind\": \"rule\"}",
        422,
    );
    check("POST", "/v1/hints", &[], "{\"error\": \"\"}", 422);
    check(
        "POST",
        "/v1/corrections",
        &[],
        "{\"skill\": \"hr/x\", \"execution_id\": \"EXEC-1\", \"correction\": \"When a, b.\"}",
        404,
    );
    check("POST", "/v1/embeddings", &[], "{\"input\": []}", 422);
    check("POST", "/functions/v1/agent-memory-read", &[], "{}", 422);
    check(
        "POST",
        "/functions/v1/agent-memory-read",
        &[],
        "{\"query\": \"x\", \"memory_type\": \"y\"}",
        422,
    );
    check(
        "POST",
        "/functions/v1/agent-memory-read",
        &[],
        "{\"query\": \"x\", \"match_threshold\": 7}",
        422,
    );
    check(
        "POST",
        "/functions/v1/agent-memory-write",
        &[],
        "{\"content\": \"x\", \"memory_type\": \"task_memory\", \"expires_at\": \"soon\"}",
        422,
    );
    check(
        "POST",
        "/functions/v1/agent-memory-write",
        &[],
        "{\"content\": \"x\", \"memory_type\": \"task_memory\", \"metadata\": {\"outcome\": 1}}",
        422,
    );
    check("POST", "/functions/v1/unknown", &[], "{}", 404);
    check("GET", "/functions/v1/agent-memory-read", &[], "", 405);
    check("POST", "/rest/v1/rpc/unknown", &[], "{}", 404);
    check("POST", "/rest/v1/rpc/match_memory", &[], "{}", 422);
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: mine-1\r\nConnection: close\r\n\r\n";
    assert_eq!(
        served.raw(request).is(200).header("x-request-id"),
        Some("mine-1")
    );
    served
        .raw("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
        .is(403);
    served.raw("nonsense\r\n\r\n").is(400);
}

#[test]
fn a_user_who_asks_too_often_waits() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &["--rate-limit", "5"]);
    let (ann, bob) = (
        token(&workspace, "ann", "hr"),
        token(&workspace, "bob", "hr"),
    );
    let statuses: Vec<u16> = (0..30)
        .map(|_| served.get(&ann, "/v1/executions").status)
        .collect();
    assert!(
        statuses[..10].iter().all(|status| *status == 200),
        "{statuses:?}"
    );
    assert!(statuses.contains(&429), "{statuses:?}");
    let refused = (0..20)
        .map(|_| served.get(&ann, "/v1/executions"))
        .find(|reply| reply.status == 429);
    let refused = refused.unwrap();
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&wait));
    assert_eq!(refused.json()["error"]["kind"], "rate");
    served.get(&bob, "/v1/executions").is(200);
}

#[test]
fn a_memory_that_is_switched_off_is_served_to_nobody() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let hr = token(&workspace, "ann", "hr");
    served.get(&hr, "/v1/executions").is(200);
    workspace.run(&["memory", "disable"]).succeeds();
    let off = served.get(&hr, "/v1/executions").is(503);
    assert_eq!(off.json()["error"]["kind"], "disabled");
    workspace.run(&["memory", "enable"]).succeeds();
    served.get(&hr, "/v1/executions").is(200);
    let run = workspace
        .command()
        .args(["serve"])
        .env("MEMCTL_MEMORY", "off")
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
}
