//! `OpenAI`'s chat protocol, as many servers implement it.
//!
//! `OpenAI`, `OpenRouter`, Ollama, vLLM and LM Studio differ in the fields that they reject. The
//! full request is sent first. A field that a server rejects with a 400 and its name is left out of
//! later requests: `response_format` (the schema then goes into the prompt), the name of the token
//! limit, streaming. The newer Responses protocol is not supported, because only `OpenAI` itself
//! implements it.

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};

use super::attempt_error::{Fault, parse};
use super::attempt_log::{Draft, Stop, Tally};
use super::http::Connection;
use super::price::{Pricing, Tokens};
use super::protocol::{Dialect, Endpoint, Limits, Protocol, bearer};
use super::request::in_words;
use super::schema::{Optional, strict};
use super::{Error, OnProgress, Request, Secret, sse};

const MAX_TOKENS: &str = "max_tokens";
const COMPLETION_TOKENS: &str = "max_completion_tokens";

/// Model and endpoint.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// First part of `provider/model`.
    pub provider: String,
    /// Base URL up to `/chat/completions`, usually with `/v1`.
    pub base_url: String,
    /// Sent as bearer token; `None` for local servers.
    pub key: Option<Secret>,
    /// Model name at the server.
    pub model: String,
    /// Price source, if the server does not report the cost.
    pub pricing: Pricing,
    /// Limits of a request.
    pub limits: Limits,
    /// Fields added to every request; they override our own.
    pub extra: Map<String, Value>,
}

impl OpenAiConfig {
    /// Configuration for any compatible server. Prices are known for known base URLs.
    pub fn compatible(provider: &str, base_url: &str, model: &str, key: Option<Secret>) -> Self {
        Self {
            provider: provider.to_owned(),
            base_url: base_url.to_owned(),
            key,
            model: model.to_owned(),
            pricing: Pricing::BaseUrl,
            limits: Limits::default(),
            extra: Map::new(),
        }
    }

    /// Configuration for `OpenAI`'s own service.
    pub fn openai(model: &str, key: Secret) -> Self {
        Self {
            pricing: Pricing::Provider("openai"),
            ..Self::compatible("openai", "https://api.openai.com/v1", model, Some(key))
        }
    }

    /// Configuration for `OpenRouter`, with models named `vendor/model`. It reports its own costs.
    pub fn openrouter(model: &str, key: Secret) -> Self {
        Self {
            pricing: Pricing::Provider("openrouter"),
            ..Self::compatible(
                "openrouter",
                "https://openrouter.ai/api/v1",
                model,
                Some(key),
            )
        }
    }

    /// Configuration for a free local server: Ollama, LM Studio, vLLM.
    pub fn local(provider: &str, base_url: &str, model: &str) -> Self {
        Self {
            pricing: Pricing::Free,
            ..Self::compatible(provider, base_url, model, None)
        }
    }
}

/// Model behind the chat protocol.
#[derive(Debug)]
pub struct OpenAi {
    pub(super) connection: Connection,
}

impl OpenAi {
    /// Creates the client. Sends nothing before the first request.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for an invalid base URL, or a key that is not a valid header value.
    pub fn new(config: OpenAiConfig) -> Result<Self, Error> {
        let dialect = Dialect {
            native_structure: true,
            // `OpenAI` has deprecated the name that other servers use.
            token_limit: if config.provider == "openai" {
                COMPLETION_TOKENS
            } else {
                MAX_TOKENS
            },
            swapped_tokens: false,
            stream: true,
        };
        let endpoint = Endpoint {
            provider: config.provider,
            model: config.model,
            base_url: config.base_url,
            key: config.key,
            pricing: config.pricing,
            limits: config.limits,
            extra: config.extra,
        };
        Ok(Self {
            connection: Connection::new(endpoint, dialect)?,
        })
    }

    pub(super) async fn answer(
        &self,
        request: &Request,
        progress: OnProgress<'_>,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        self.connection.ask(self, request, progress, tally).await
    }
}

impl Protocol for OpenAi {
    const PATH: &'static str = "/chat/completions";

    fn headers(&self, key: Option<HeaderValue>) -> HeaderMap {
        bearer(key.as_ref())
    }

    fn body(&self, request: &Request, dialect: Dialect) -> Value {
        let asked = match &request.schema {
            Some(_) if !dialect.native_structure => in_words(request),
            _ => request.clone(),
        };
        let mut messages = Vec::new();
        if !asked.system.is_empty() {
            messages.push(json!({"role": "system", "content": asked.system}));
        }
        messages.push(json!({"role": "user", "content": asked.user}));
        let mut body = json!({
            "model": self.connection.model(),
            "messages": messages,
            dialect.token_limit: request.max_tokens,
            "stream": dialect.stream,
        });
        if dialect.stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        if let Some(schema) = request.schema.as_ref().filter(|_| dialect.native_structure) {
            body["response_format"] = json!({
                "type": "json_schema",
                "json_schema": {
                    "name": schema.name,
                    "strict": true,
                    "schema": strict(&schema.json, Optional::Null),
                },
            });
        }
        body
    }

    fn event(&self, draft: &mut Draft, event: &sse::Event) -> Result<bool, Fault> {
        if event.data == "[DONE]" {
            // The answer is complete even without a finish reason.
            draft.complete = true;
            return Ok(true);
        }
        let data = parse(&event.data)?;
        error_in(&data)?;
        let choice = &data["choices"][0];
        take(draft, &choice["delta"], &choice["finish_reason"]);
        count(draft, &data["usage"]);
        Ok(false)
    }

    fn whole(&self, draft: &mut Draft, body: &Value) -> Result<(), Fault> {
        error_in(body)?;
        let choice = &body["choices"][0];
        if !choice["message"].is_object() {
            return Err(Fault::Malformed {
                reason: "no `choices` with a `message`".to_owned(),
                text: body.to_string(),
            });
        }
        take(draft, &choice["message"], &choice["finish_reason"]);
        count(draft, &body["usage"]);
        draft.complete = true;
        Ok(())
    }

    fn fall_back(&self, dialect: Dialect, message: &str) -> Option<Dialect> {
        let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if dialect.native_structure && names(&["response_format", "json_schema"]) {
            return Some(Dialect {
                native_structure: false,
                ..dialect
            });
        }
        if !dialect.swapped_tokens && names(&[COMPLETION_TOKENS]) {
            return Some(Dialect {
                token_limit: if dialect.token_limit == MAX_TOKENS {
                    COMPLETION_TOKENS
                } else {
                    MAX_TOKENS
                },
                swapped_tokens: true,
                ..dialect
            });
        }
        (dialect.stream && names(&["stream"])).then_some(Dialect {
            stream: false,
            ..dialect
        })
    }
}

/// Returns the error of a response with status 200, as in streams and on some servers.
pub(super) fn error_in(body: &Value) -> Result<(), Fault> {
    let Some(error) = body.get("error").filter(|error| !error.is_null()) else {
        return Ok(());
    };
    let status = error["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok());
    let kind = error["type"].as_str().or(error["code"].as_str());
    let status = status.unwrap_or_else(|| match kind.unwrap_or_default() {
        "invalid_request_error" => 400,
        "authentication_error" | "invalid_api_key" => 401,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
        "overloaded_error" | "overloaded" => 529,
        _ => 500,
    });
    Err(Fault::read(status, HeaderMap::new(), body))
}

/// Adds a message, or a delta of one, to the draft.
fn take(draft: &mut Draft, message: &Value, finish_reason: &Value) {
    match &message["content"] {
        Value::String(text) => draft.text.push_str(text),
        Value::Array(parts) => {
            for text in parts.iter().filter_map(|part| part["text"].as_str()) {
                draft.text.push_str(text);
            }
        }
        _ => {}
    }
    if let Some(refusal) = message["refusal"].as_str() {
        draft.text.push_str(refusal);
        draft.stop = Stop::Refusal;
    }
    let Some(reason) = finish_reason.as_str() else {
        return;
    };
    draft.complete = true;
    match reason {
        "length" => draft.stop = Stop::Length,
        "content_filter" => draft.stop = Stop::Refusal,
        _ => {}
    }
}

fn count(draft: &mut Draft, usage: &Value) {
    let Some(input) = usage["prompt_tokens"].as_u64() else {
        return;
    };
    let details = &usage["prompt_tokens_details"];
    let part = |name: &str| details[name].as_u64().unwrap_or(0).min(input);
    let cache_read = part("cached_tokens");
    draft.tokens = Some(Tokens {
        input,
        cache_read,
        cache_write: part("cache_write_tokens").min(input - cache_read),
        output: usage["completion_tokens"].as_u64().unwrap_or(0),
    });
    draft.cost_usd = usage["cost"].as_f64();
}
