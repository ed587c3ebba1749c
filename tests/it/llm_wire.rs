//! Model calls over a real socket, in both protocols: requests, responses and error handling.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use memctl_llm::{
    Chat, Endpoint, Error, ErrorKind, Limits, Llm, Progress, Reply, Request, Schema, Secret, Usage,
    list_models,
};
use serde_json::{Value, json};

use crate::fake_model::{Behaviour, FakeModel};

const KEY: &str = "sk-test-0123456789";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Wire {
    Anthropic,
    OpenAi,
}

const WIRES: [Wire; 2] = [Wire::Anthropic, Wire::OpenAi];

impl Wire {
    fn llm(self, server: &FakeModel, change: impl FnOnce(&mut Limits)) -> Llm {
        let mut limits = Limits {
            answer_within: Duration::from_secs(5),
            first_pause: Duration::from_millis(2),
            ..Limits::default()
        };
        change(&mut limits);
        let (model, base_url) = match self {
            Self::Anthropic => ("claude-haiku-4-5", server.anthropic_url()),
            Self::OpenAi => ("gpt-5-mini", server.openai_url()),
        };
        let endpoint = Endpoint {
            base_url,
            limits,
            ..Endpoint::new(self.provider(), model, Some(Secret::new(KEY)))
        };
        Llm::Chat(Chat::new(endpoint).unwrap())
    }

    const fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }
}

fn question(schema: Option<&Value>) -> Request {
    Request {
        system: "You are brief.".to_owned(),
        user: "What is ä€😀?".to_owned(),
        schema: schema.map(|json| Schema {
            name: "answer".to_owned(),
            json: json.clone(),
        }),
        max_tokens: 500,
    }
}

fn form() -> Value {
    json!({"type": "object", "required": ["rule"], "additionalProperties": false, "properties": {
        "rule": {"type": "string"}, "confidence": {"type": "number"}}})
}

/// Calls the model, and records the progress.
fn ask(llm: &Llm, request: &Request) -> (Result<Reply, Error>, String) {
    let mut log = String::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let result = runtime.block_on(llm.ask(request, &mut |progress| match progress {
        Progress::Retry { reason, .. } => writeln!(log, "retry: {reason}").unwrap(),
        Progress::Repair { reason } => writeln!(log, "repair: {reason}").unwrap(),
    }));
    // No output contains the key.
    let shown = format!("{log} {llm:?} {result:?}");
    assert!(!shown.contains(KEY), "{shown}");
    if let Err(error) = &result {
        let mut error: Option<&dyn std::error::Error> = Some(error);
        while let Some(cause) = error {
            assert!(!cause.to_string().contains(KEY), "{cause}");
            error = cause.source();
        }
    }
    (result, log)
}

/// Calls a server with this behaviour, in each protocol, and checks the outcome.
fn each_wire(
    behaviours: &[Behaviour],
    schema: Option<&Value>,
    check: impl Fn(Wire, Result<Reply, Error>, &str, &FakeModel),
) {
    for wire in WIRES {
        let server = FakeModel::queue(behaviours.to_vec());
        let llm = wire.llm(&server, |limits| {
            limits.answer_within = Duration::from_millis(1500);
        });
        let (result, log) = ask(&llm, &question(schema));
        check(wire, result, &log, &server);
    }
}

#[test]
fn an_answer_comes_with_its_tokens_and_price() {
    {
        let behaviour = Behaviour::text("It is a ä€😀.");
        each_wire(&[behaviour], None, |wire, result, log, server| {
            let reply = result.unwrap();
            assert_eq!(reply.text, "It is a ä€😀.", "{wire:?}");
            assert_eq!(log, "");
            let usage = Usage {
                input_tokens: 120,
                output_tokens: 30,
            };
            assert_eq!(reply.usage, Some(usage), "{wire:?}");
            assert_eq!(server.requests().len(), 1);
            let (model, dollars) = match wire {
                // 20 + 100 cached at a tenth, 30 written; by the million at $1 and $5.
                Wire::Anthropic => ("anthropic/claude-haiku-4-5", 20e-6 + 10e-6 + 150e-6),
                // The same at $0.25 and $2.
                Wire::OpenAi => ("openai/gpt-5-mini", 5e-6 + 2.5e-6 + 60e-6),
            };
            assert_eq!(reply.model, model);
            let cost = reply.cost_usd.unwrap();
            assert!((cost - dollars).abs() < 1e-9, "{wire:?}: {cost} {dollars}");

            let request = &server.requests()[0];
            assert_eq!(request.system(), "You are brief.");
            assert_eq!(request.user(), "What is ä€😀?");
            assert_eq!(request.body.get("temperature"), None);
            assert!(request.header("user-agent").unwrap().starts_with("memctl/"));
            match wire {
                Wire::Anthropic => {
                    assert_eq!(request.path, "/v1/messages");
                    assert_eq!(request.header("x-api-key"), Some(KEY));
                    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
                    assert_eq!(request.body["max_tokens"], 500);
                    let cache = &request.body["system"][0]["cache_control"];
                    assert_eq!(cache, &json!({"type": "ephemeral"}));
                }
                Wire::OpenAi => {
                    assert_eq!(request.path, "/v1/chat/completions");
                    let bearer = format!("Bearer {KEY}");
                    assert_eq!(request.header("authorization"), Some(bearer.as_str()));
                    assert_eq!(request.body["max_completion_tokens"], 500);
                    assert_eq!(request.body.get("max_tokens"), None);
                }
            }
        });
    }
}

#[test]
fn an_answer_without_a_count_has_no_price() {
    let behaviour = Behaviour::answer("yes", |answer| answer.usage = None);
    each_wire(&[behaviour], None, |wire, result, _, _| {
        let reply = result.unwrap();
        assert_eq!((reply.usage, reply.cost_usd), (None, None), "{wire:?}");
    });
}

#[test]
fn the_providers_own_price_wins_and_own_machines_are_free() {
    let priced = Behaviour::answer("yes", |answer| answer.cost = Some(0.125));
    let check = |endpoint: Endpoint, behaviour: &Behaviour, expected| {
        let server = FakeModel::queue([behaviour.clone()]);
        let endpoint = Endpoint {
            base_url: server.openai_url(),
            ..endpoint
        };
        let llm = Llm::Chat(Chat::new(endpoint).unwrap());
        let reply = ask(&llm, &question(None)).0.unwrap();
        assert_eq!(reply.cost_usd, expected, "{}", reply.model);
        server.requests().remove(0)
    };
    let key = Some(Secret::new(KEY));
    let openrouter = Endpoint::new("openrouter", "anthropic/claude-haiku-4.5", key);
    check(openrouter, &priced, Some(0.125));
    let plain = Behaviour::text("yes");
    let request = check(Endpoint::new("ollama", "llama3.2", None), &plain, Some(0.0));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.body["max_tokens"], 500);
    // The cost of a gateway is unknown: it may forward to a paid service.
    check(Endpoint::new("gateway", "gpt-5", None), &plain, None);
}

#[test]
fn passing_troubles_are_retried() {
    let limited = |wait| Behaviour::status(429).with_header("retry-after", wait);
    let troubles = [
        limited("0"),
        Behaviour::status(529),
        Behaviour::status(503),
        Behaviour::TruncatedBody("half an".to_owned()),
    ];
    for trouble in troubles {
        let behaviours = [trouble.clone(), Behaviour::text("whole")];
        each_wire(&behaviours, None, |wire, result, log, server| {
            let reply = result.unwrap_or_else(|error| panic!("{wire:?} {trouble:?}: {error}"));
            assert_eq!(reply.text, "whole", "{wire:?} {trouble:?}");
            assert_eq!(server.requests().len(), 2);
            assert!(log.starts_with("retry: "), "{log}");
        });
    }
}

#[test]
fn lasting_troubles_end_after_two_retries() {
    let lasting = |behaviour: Behaviour, kind| {
        let behaviours = vec![behaviour.clone(); 5];
        each_wire(&behaviours, None, |wire, result, _, server| {
            let error = result.unwrap_err();
            assert_eq!(error.kind, kind, "{wire:?} {behaviour:?}: {error:?}");
            assert_eq!(server.requests().len(), 3, "{wire:?} {behaviour:?}");
            assert_eq!(error.raw_text(), None, "{wire:?} {behaviour:?}");
        });
    };
    lasting(Behaviour::status(429), ErrorKind::RateLimited);
    lasting(Behaviour::status(529), ErrorKind::Overloaded);
}

#[test]
fn a_cut_answer_is_interrupted() {
    let cut = vec![Behaviour::TruncatedBody("whole".to_owned()); 3];
    each_wire(&cut, None, |wire, result, _, server| {
        let error = result.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Interrupted, "{wire:?} {error:?}");
        assert!(error.raw_text().is_some(), "{error:?}");
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        assert_eq!(requests[2].body.get("stream"), None);
    });
}

#[test]
fn unchanging_answer_is_requested_once() {
    let once = |behaviour: Behaviour, kind, says: &str| {
        let behaviours = [behaviour.clone(), Behaviour::text("never asked for")];
        each_wire(&behaviours, None, |wire, result, log, server| {
            let error = result.unwrap_err();
            assert_eq!(error.kind, kind, "{wire:?} {behaviour:?}: {error:?}");
            assert!(error.to_string().contains(says), "{error}");
            assert!(error.to_string().contains(wire.provider()), "{error}");
            assert_eq!(server.requests().len(), 1, "{wire:?} {behaviour:?}");
            assert_eq!(log, "");
        });
    };
    let message = format!("invalid x-api-key {KEY}");
    once(
        Behaviour::error(401, "authentication_error", &message),
        ErrorKind::Auth,
        "invalid x-api-key [key]",
    );
    once(
        Behaviour::SpendLimit,
        ErrorKind::SpendLimit,
        "spending limit",
    );
    once(
        Behaviour::status(402),
        ErrorKind::SpendLimit,
        "something is wrong",
    );
    once(
        Behaviour::error(404, "not_found_error", "model: no-such-model"),
        ErrorKind::BadRequest(404),
        "no-such-model",
    );
    once(
        Behaviour::status(429).with_header("retry-after", "86400"),
        ErrorKind::RateLimited,
        "asks to wait 86400 s",
    );
    // Longer than the rest of the time limit.
    once(
        Behaviour::status(529).with_header("retry-after", "20"),
        ErrorKind::Overloaded,
        "asks to wait 20 s",
    );
    once(Behaviour::InvalidJson, ErrorKind::Malformed, "invalid JSON");
    once(
        Behaviour::status(307).with_header("location", "http://other.example:81/v1?key=1"),
        ErrorKind::BadRequest(307),
        "redirects to `other.example:81`",
    );
}

#[test]
fn a_question_ends_with_its_time_limit() {
    let late = Box::new(Behaviour::text("too late"));
    let slow = Behaviour::Slow(Duration::from_secs(20), late);
    for behaviour in [slow, Behaviour::Hang] {
        for wire in WIRES {
            let server = FakeModel::queue([behaviour.clone()]);
            let llm = wire.llm(&server, |limits| {
                limits.answer_within = Duration::from_millis(120);
            });
            let start = Instant::now();
            let error = ask(&llm, &question(None)).0.unwrap_err();
            assert_eq!(error.kind, ErrorKind::TimedOut, "{error:?}");
            assert!(
                error.to_string().ends_with("did not answer within 0.12 s"),
                "{error}"
            );
            assert!(start.elapsed() < Duration::from_secs(15));
            assert_eq!(server.requests().len(), 1);
        }
    }
    let soon = Box::new(Behaviour::text("in time"));
    let slow = [Behaviour::Slow(Duration::from_millis(60), soon)];
    each_wire(&slow, None, |_, result, _, _| {
        let reply = result.unwrap();
        assert_eq!(reply.text, "in time");
        assert!(reply.latency >= Duration::from_millis(60));
    });
}

#[test]
fn nobody_there_is_told_by_host_and_port() {
    for wire in WIRES {
        let server = FakeModel::queue([]);
        let llm = wire.llm(&server, |_| {});
        let address = server.anthropic_url().replace("http://", "");
        drop(server);
        let error = ask(&llm, &question(None)).0.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unreachable, "{error:?}");
        assert_eq!(error.to_string(), format!("`{address}` cannot be reached"));
    }
}

#[test]
fn an_answer_that_is_cut_or_declined_is_kept() {
    let stops = |stop| Behaviour::answer("the beginning", |answer| answer.stop = stop);
    let check = |wire: Wire, error: &Error| {
        let paid = error.paid().unwrap();
        assert_eq!(paid.text, "the beginning");
        assert!(
            paid.usage.is_some() && paid.cost_usd.is_some(),
            "{wire:?} {paid:?}"
        );
    };
    each_wire(&[stops("max_tokens")], None, |wire, result, _, _| {
        let error = result.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Truncated, "{wire:?} {error:?}");
        assert!(error.to_string().ends_with("was cut at 500 tokens"));
        check(wire, &error);
    });
    each_wire(
        &[stops("refusal")],
        Some(&form()),
        |wire, result, _, server| {
            let error = result.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Refused, "{wire:?} {error:?}");
            check(wire, &error);
            assert_eq!(server.requests().len(), 1);
        },
    );
}

#[test]
fn endless_answers_are_cut_off() {
    for wire in WIRES {
        let long = Behaviour::text(&"x".repeat(5000));
        let server = FakeModel::queue([long]);
        let llm = wire.llm(&server, |limits| limits.max_bytes = 4000);
        let error = ask(&llm, &question(None)).0.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed, "{error:?}");
        assert!(
            error.to_string().ends_with("more than 4000 bytes"),
            "{error}"
        );
        assert!(error.raw_text().unwrap().contains("xxxx"));
    }
}

#[test]
fn the_form_is_asked_for_in_the_providers_own_way() {
    let answer = "Here it is:\n```json\n{\"rule\": \"x\", \"confidence\": 1.0}\n```";
    each_wire(
        &[Behaviour::text(answer)],
        Some(&form()),
        |wire, result, log, server| {
            let reply = result.unwrap();
            assert_eq!(reply.text, r#"{"rule": "x", "confidence": 1.0}"#);
            assert_eq!(log, "");
            let body = &server.requests()[0].body;
            let confidence = json!({"type": "number"});
            match wire {
                Wire::Anthropic => {
                    let format = &body["output_config"]["format"];
                    assert_eq!(format["type"], "json_schema");
                    assert_eq!(format["schema"]["additionalProperties"], false);
                    assert_eq!(format["schema"]["properties"]["confidence"], confidence);
                }
                Wire::OpenAi => {
                    let format = &body["response_format"]["json_schema"];
                    assert_eq!(
                        (&format["name"], &format["strict"]),
                        (&json!("answer"), &json!(true))
                    );
                    assert_eq!(format["schema"]["required"], json!(["rule", "confidence"]));
                    let optional = &format["schema"]["properties"]["confidence"]["anyOf"];
                    assert_eq!(optional, &json!([confidence, {"type": "null"}]));
                }
            }
        },
    );
}

#[test]
fn a_server_that_refuses_the_form_gets_it_otherwise_and_only_once() {
    for (wire, field) in [
        (Wire::Anthropic, "output_config"),
        (Wire::OpenAi, "response_format"),
    ] {
        {
            let server = FakeModel::answering(move |request| {
                if request.body.get(field).is_some() {
                    let message = format!("{field}: unknown field");
                    return Behaviour::error(400, "invalid_request_error", &message);
                }
                Behaviour::text(r#"{"rule":"x"}"#)
            });
            let llm = wire.llm(&server, |_| {});
            for requests in [2, 3] {
                let reply = ask(&llm, &question(Some(&form()))).0.unwrap();
                assert_eq!(reply.text, r#"{"rule":"x"}"#, "{wire:?}");
                assert_eq!(server.requests().len(), requests, "{wire:?}");
            }
            let requests = server.requests();
            let system = requests[1].system();
            assert!(system.starts_with("You are brief.\n\nAnswer with one JSON"));
            assert!(system.contains(r#""required":["rule"]"#), "{system}");
        }
    }
}

#[test]
fn an_answer_of_the_wrong_form_is_repaired_once() {
    let behaviours = [
        Behaviour::text("I think that x."),
        Behaviour::text(r#"{"rule": "x"}"#),
    ];
    each_wire(&behaviours, Some(&form()), |wire, result, log, server| {
        let reply = result.unwrap();
        assert_eq!(reply.text, r#"{"rule": "x"}"#);
        assert_eq!(server.requests().len(), 2, "{wire:?}");
        assert_eq!(log, "repair: the answer holds no complete JSON object\n");
        // Both answers are paid for.
        let usage = Usage {
            input_tokens: 240,
            output_tokens: 60,
        };
        assert_eq!(reply.usage, Some(usage));
        let single = match wire {
            Wire::Anthropic => 180e-6,
            Wire::OpenAi => 67.5e-6,
        };
        assert!(
            (reply.cost_usd.unwrap() - 2.0 * single).abs() < 1e-9,
            "{reply:?}"
        );
        let requests = server.requests();
        let again = requests[1].user();
        assert!(again.starts_with("What is ä€😀?"), "{again}");
        assert!(again.contains("I think that x."), "{again}");
        assert!(again.contains("holds no complete JSON object"), "{again}");
        assert_eq!(requests[1].system(), requests[0].system());
    });
}

#[test]
fn an_answer_that_cannot_be_repaired_is_not_lost() {
    let wrong = [Behaviour::text("first"), Behaviour::text(r#"{"rule": 2}"#)];
    each_wire(&wrong, Some(&form()), |wire, result, _, server| {
        let error = result.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidStructure);
        let message = error.to_string();
        assert!(
            message.ends_with("`rule` is a number but must be string"),
            "{message}"
        );
        let paid = error.paid().unwrap();
        assert_eq!(paid.text, r#"{"rule": 2}"#);
        assert_eq!(paid.usage.unwrap().input_tokens, 240, "{wire:?}");
        assert!(paid.cost_usd.unwrap() > 0.0);
        assert_eq!(server.requests().len(), 2);
    });
    let failing = [Behaviour::text("first"), Behaviour::SpendLimit];
    each_wire(&failing, Some(&form()), |_, result, _, _| {
        let error = result.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidStructure, "{error:?}");
        assert_eq!(error.raw_text(), Some("first"));
        assert_eq!(error.paid().unwrap().usage.unwrap().input_tokens, 120);
        assert!(error.to_string().contains("spending limit"), "{error}");
    });
    // A whole answer of the wrong form is worth more than the beginning of a right one.
    let cut = Behaviour::answer("{\"rule\": ", |answer| answer.stop = "max_tokens");
    let cut = [Behaviour::text("first"), cut];
    each_wire(&cut, Some(&form()), |wire, result, _, _| {
        let error = result.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidStructure, "{error:?}");
        assert_eq!(error.raw_text(), Some("first"), "{wire:?}");
        assert_eq!(error.paid().unwrap().usage.unwrap().input_tokens, 240);
    });
    for wire in WIRES {
        let server = FakeModel::queue([Behaviour::text("first"), Behaviour::Hang]);
        let llm = wire.llm(&server, |limits| {
            limits.answer_within = Duration::from_millis(400);
        });
        let error = ask(&llm, &question(Some(&form()))).0.unwrap_err();
        assert_eq!(error.kind, ErrorKind::TimedOut, "{error:?}");
        assert_eq!(error.raw_text(), Some("first"));
    }
}

#[test]
fn a_local_server_is_found_by_its_models() {
    let list = |url: &str| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(list_models("ollama", url, None, Duration::from_millis(500)))
    };
    let server = FakeModel::queue([]);
    let url = server.openai_url();
    assert_eq!(list(&url).unwrap(), ["fake"]);
    assert_eq!(server.requests()[0].path, "/v1/models");
    drop(server);
    assert_eq!(list(&url).unwrap_err().kind, ErrorKind::Unreachable);
}

#[test]
fn a_configuration_that_cannot_work_is_refused_at_once() {
    let refused = |base_url: &str, key: &str| {
        let endpoint = Endpoint {
            base_url: base_url.to_owned(),
            ..Endpoint::new("openai", "gpt-5", Some(Secret::new(key)))
        };
        let error = Chat::new(endpoint).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config, "{error:?}");
        error.to_string()
    };
    assert!(refused("localhost:11434", KEY).contains("does not begin with `http://`"));
    assert!(refused("", KEY).contains("base URL"));
    let error = refused("https://api.example", "sk-with\nline");
    assert!(
        error.contains("the key") && !error.contains("sk-with"),
        "{error}"
    );
    assert!(refused("https://api.example", "").contains("the key is empty"));
}
