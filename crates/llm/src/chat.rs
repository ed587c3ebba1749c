//! Chat protocols: Anthropic's Messages, and `OpenAI`'s chat as many servers implement it.
//!
//! `OpenAI`, `OpenRouter`, Ollama, vLLM and LM Studio differ in the fields that they reject. A server
//! that rejects the form of the answer, with a 400 and its name, gets it in the prompt from then on.
//!
//! Anthropic's system text is marked for the provider's cache, since requests of a skill share it.
//! Deliberately absent: sampling parameters, which providers have dropped, and `OpenAI`'s Responses
//! protocol, because only `OpenAI` itself implements it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use super::ask::{Draft, Stop};
use super::error::Fault;
use super::http::{Connection, Endpoint, bearer, unusable, with_key};
use super::request::{Attempts, Limits, Tokens, in_words};
use super::structure::with_all_required;
use super::{Error, ErrorKind, Request, Secret};

/// Version of Anthropic's protocol.
const VERSION: &str = "2023-06-01";

/// Known providers, with the base URL of their service. All others have `OpenAI`'s protocol.
const PROVIDERS: [(&str, &str); 3] = [
    (ANTHROPIC, "https://api.anthropic.com"),
    (OPENAI, "https://api.openai.com/v1"),
    // It reports its own costs.
    ("openrouter", "https://openrouter.ai/api/v1"),
];
const ANTHROPIC: &str = "anthropic";
const OPENAI: &str = "openai";

fn built_in(provider: &str) -> Option<(&'static str, &'static str)> {
    PROVIDERS.into_iter().find(|(name, _)| *name == provider)
}

impl Endpoint {
    /// Model of a provider, at its own service if it is known, with default limits.
    pub fn new(provider: &str, model: &str, key: Option<Secret>) -> Self {
        Self {
            provider: provider.to_owned(),
            base_url: built_in(provider).map_or("", |(_, url)| url).to_owned(),
            key,
            model: model.to_owned(),
            limits: Limits::default(),
        }
    }
}

/// Model behind a chat protocol.
#[derive(Debug)]
pub struct Chat {
    pub(super) connection: Box<Connection>,
    is_anthropic: bool,
    /// The server rejects the form of the answer.
    rejects_form: AtomicBool,
}

impl Chat {
    /// Creates the client. Sends nothing before the first request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] for an invalid base URL, or a key that is not a valid header value.
    pub fn new(mut endpoint: Endpoint) -> Result<Self, Error> {
        let is_anthropic = endpoint.provider == ANTHROPIC;
        let price_id = built_in(&endpoint.provider).map(|(name, _)| name);
        let shown = format!("{}/{}", endpoint.provider, endpoint.model);
        let key = endpoint.key.as_ref();
        let headers = if is_anthropic {
            with_key(key, "x-api-key", "")
        } else {
            bearer(key)
        };
        let mut headers = headers.map_err(|reason| unusable(&shown, &reason))?;
        if is_anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
            let base_url = endpoint.base_url.trim_end_matches('/');
            let base_url = base_url.strip_suffix("/v1").unwrap_or(base_url);
            endpoint.base_url = String::from(base_url);
        }
        Ok(Self {
            connection: Box::new(Connection::new(endpoint, price_id, headers)?),
            is_anthropic,
            rejects_form: AtomicBool::new(false),
        })
    }

    /// Asks until there is an answer, or an error is final.
    pub(super) async fn answer(
        &self,
        request: &Request,
        attempts: &mut Attempts<'_>,
    ) -> Result<Draft, Error> {
        if request.schema.is_some() && !self.rejects_form.load(Relaxed) {
            match self.send(request, attempts).await {
                Err(error) if is_about_form(&error) => self.rejects_form.store(true, Relaxed),
                outcome => return outcome,
            }
        }
        self.send(&in_words(request), attempts).await
    }

    async fn send(&self, request: &Request, attempts: &mut Attempts<'_>) -> Result<Draft, Error> {
        let connection = &self.connection;
        if self.is_anthropic {
            let body = self.for_anthropic(request);
            let answer = connection.fetch("/v1/messages", &body, of_anthropic, attempts);
            answer.await
        } else {
            let body = self.for_openai(request);
            let answer = connection.fetch("/chat/completions", &body, of_openai, attempts);
            answer.await
        }
    }

    fn for_anthropic(&self, request: &Request) -> Value {
        let mut body = json!({
            "model": self.connection.endpoint.model,
            "max_tokens": request.max_tokens,
            "messages": [{"role": "user", "content": request.user}],
        });
        // The server rejects an empty block.
        if !request.system.is_empty() {
            body["system"] = json!([{
                "type": "text",
                "text": request.system,
                "cache_control": {"type": "ephemeral"},
            }]);
        }
        if let Some(schema) = &request.schema {
            let format = json!({"type": "json_schema", "schema": schema.json});
            body["output_config"] = json!({"format": format});
        }
        body
    }

    fn for_openai(&self, request: &Request) -> Value {
        let mut messages = Vec::new();
        if !request.system.is_empty() {
            messages.push(json!({"role": "system", "content": request.system}));
        }
        messages.push(json!({"role": "user", "content": request.user}));
        // `OpenAI` has deprecated the name that other servers use.
        let limit = if self.connection.endpoint.provider == OPENAI {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        let mut body = json!({
            "model": self.connection.endpoint.model,
            "messages": messages,
            limit: request.max_tokens,
        });
        if let Some(schema) = &request.schema {
            body["response_format"] = json!({
                "type": "json_schema",
                "json_schema": {
                    "name": schema.name,
                    "strict": true,
                    "schema": with_all_required(&schema.json),
                },
            });
        }
        body
    }
}

/// Returns `true` for the error of a server that rejects the form of the answer.
fn is_about_form(error: &Error) -> bool {
    let names = [
        "output_config", "response_format", "json_schema", "structured output",
    ];
    let message = error.to_string();
    matches!(error.kind, ErrorKind::BadRequest(400 | 422))
        && names.iter().any(|name| message.contains(name))
}

/// Reads an answer of Anthropic's protocol. `input_tokens` excludes cached tokens.
fn of_anthropic(body: &Value) -> Result<Draft, Fault> {
    Fault::in_success(body)?;
    let Some(blocks) = body["content"].as_array() else {
        return Err(Fault::lacks("no list `content`", body));
    };
    // Blocks of other kinds, such as thoughts, have no `text`.
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    let usage = &body["usage"];
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    let cache_read = count("cache_read_input_tokens");
    let cache_write = count("cache_creation_input_tokens");
    Ok(Draft {
        text: texts.collect(),
        stop: match body["stop_reason"].as_str() {
            Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
            Some("refusal") => Stop::Refusal,
            _ => Stop::End,
        },
        tokens: usage.is_object().then(|| Tokens {
            input: count("input_tokens")
                .saturating_add(cache_read)
                .saturating_add(cache_write),
            cache_read,
            cache_write,
            output: count("output_tokens"),
        }),
        cost_usd: None,
    })
}

/// Reads an answer of `OpenAI`'s protocol.
fn of_openai(body: &Value) -> Result<Draft, Fault> {
    Fault::in_success(body)?;
    let choice = &body["choices"][0];
    let message = &choice["message"];
    if !message.is_object() {
        return Err(Fault::lacks("no `choices` with a `message`", body));
    }
    let refusal = message["refusal"].as_str();
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    };
    let usage = &body["usage"];
    let details = &usage["prompt_tokens_details"];
    Ok(Draft {
        text: text + refusal.unwrap_or_default(),
        stop: match choice["finish_reason"].as_str() {
            Some("content_filter") => Stop::Refusal,
            _ if refusal.is_some() => Stop::Refusal,
            Some("length") => Stop::Length,
            _ => Stop::End,
        },
        tokens: usage["prompt_tokens"].as_u64().map(|input| {
            let part = |name: &str| details[name].as_u64().unwrap_or(0).min(input);
            let cache_read = part("cached_tokens");
            Tokens {
                input,
                cache_read,
                cache_write: part("cache_write_tokens").min(input - cache_read),
                output: usage["completion_tokens"].as_u64().unwrap_or(0),
            }
        }),
        cost_usd: usage["cost"].as_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counts_saturate() {
        let most = u64::MAX;
        let usage = json!({ "input_tokens": 7, "cache_read_input_tokens": most,
            "cache_creation_input_tokens": most, "output_tokens": most });
        let draft = of_anthropic(&json!({ "content": [], "usage": usage })).unwrap();
        let tokens = draft.tokens.unwrap();
        assert_eq!((tokens.input, tokens.output), (most, most));
    }
}
