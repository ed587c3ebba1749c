//! Anthropic Messages protocol.
//!
//! Answers are streamed, so that a long answer does not look like a dead connection. The system
//! text is marked for the provider's cache, since requests of a skill share it. The schema is sent
//! as `output_config`. A server that rejects it gets the schema as a tool that the model must use;
//! the tool input is the answer. No sampling parameter is sent, since the protocol has dropped
//! them.

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};

use super::attempt_error::{Fault, parse};
use super::attempt_log::{Draft, Stop, Tally};
use super::http::Connection;
use super::price::Pricing;
use super::protocol::{Dialect, Endpoint, Limits, Protocol};
use super::schema::{Optional, strict};
use super::{Error, OnProgress, Request, Secret, sse};

/// Protocol version.
const VERSION: &str = "2023-06-01";

/// Model and endpoint.
#[derive(Debug, Clone)]
pub struct AnthropicConfig {
    /// Base URL without `/v1`; `https://api.anthropic.com` by default.
    pub base_url: String,
    /// Sent as `x-api-key`.
    pub key: Secret,
    /// Model name at the provider.
    pub model: String,
    /// Limits of a request.
    pub limits: Limits,
    /// Fields added to every request; they override our own.
    pub extra: Map<String, Value>,
}

impl AnthropicConfig {
    /// Configuration for Anthropic's own service, with default limits.
    pub fn new(model: &str, key: Secret) -> Self {
        Self {
            base_url: "https://api.anthropic.com".to_owned(),
            key,
            model: model.to_owned(),
            limits: Limits::default(),
            extra: Map::new(),
        }
    }
}

/// Model behind the Anthropic Messages protocol.
#[derive(Debug)]
pub struct Anthropic {
    pub(super) connection: Connection,
}

impl Anthropic {
    /// Creates the client. Sends nothing before the first request.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for an invalid base URL, or a key that is not a valid header value.
    pub fn new(config: AnthropicConfig) -> Result<Self, Error> {
        let base_url = config.base_url.trim_end_matches('/');
        let endpoint = Endpoint {
            provider: "anthropic".to_owned(),
            model: config.model,
            base_url: base_url.strip_suffix("/v1").unwrap_or(base_url).to_owned(),
            key: Some(config.key),
            pricing: Pricing::Provider("anthropic"),
            limits: config.limits,
            extra: config.extra,
        };
        let dialect = Dialect {
            native_structure: true,
            token_limit: "max_tokens",
            swapped_tokens: false,
            stream: true,
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

impl Protocol for Anthropic {
    const PATH: &'static str = "/v1/messages";

    fn headers(&self, key: Option<HeaderValue>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        if let Some(mut key) = key {
            key.set_sensitive(true);
            headers.insert("x-api-key", key);
        }
        headers
    }

    fn body(&self, request: &Request, dialect: Dialect) -> Value {
        let mut body = json!({
            "model": self.connection.model(),
            "max_tokens": request.max_tokens,
            "stream": true,
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
            let form = strict(&schema.json, Optional::Absent);
            if dialect.native_structure {
                body["output_config"] = json!({"format": {"type": "json_schema", "schema": form}});
            } else {
                body["tools"] = json!([{
                    "name": schema.name,
                    "description": "Gives the answer.",
                    "strict": true,
                    "input_schema": form,
                }]);
                body["tool_choice"] = json!({"type": "tool", "name": schema.name});
            }
        }
        body
    }

    fn event(&self, draft: &mut Draft, event: &sse::Event) -> Result<bool, Fault> {
        let data = parse(&event.data)?;
        match data["type"].as_str().unwrap_or(&event.name) {
            "message_start" => count(draft, &data["message"]["usage"]),
            "content_block_start" => {
                let text = data["content_block"]["text"].as_str();
                draft.text.push_str(text.unwrap_or_default());
            }
            "content_block_delta" => {
                let delta = &data["delta"];
                let text = delta["text"].as_str().or(delta["partial_json"].as_str());
                draft.text.push_str(text.unwrap_or_default());
            }
            "message_delta" => {
                count(draft, &data["usage"]);
                draft.stop = stop(&data["delta"]["stop_reason"]);
            }
            "message_stop" => {
                draft.complete = true;
                return Ok(true);
            }
            "error" => {
                let status = status_of(data["error"]["type"].as_str().unwrap_or_default());
                return Err(Fault::read(status, HeaderMap::new(), &data));
            }
            // `ping`, ends of blocks, and events of later versions.
            _ => {}
        }
        Ok(false)
    }

    fn whole(&self, draft: &mut Draft, body: &Value) -> Result<(), Fault> {
        if body["type"] == "error" {
            let status = status_of(body["error"]["type"].as_str().unwrap_or_default());
            return Err(Fault::read(status, HeaderMap::new(), body));
        }
        let Some(blocks) = body["content"].as_array() else {
            return Err(Fault::Malformed {
                reason: "no list `content`".to_owned(),
                text: body.to_string(),
            });
        };
        for block in blocks {
            match block["type"].as_str() {
                Some("text") => draft
                    .text
                    .push_str(block["text"].as_str().unwrap_or_default()),
                Some("tool_use") => draft.text.push_str(&block["input"].to_string()),
                _ => {}
            }
        }
        count(draft, &body["usage"]);
        draft.stop = stop(&body["stop_reason"]);
        draft.complete = true;
        Ok(())
    }

    fn fall_back(&self, dialect: Dialect, message: &str) -> Option<Dialect> {
        let refused = ["output_config", "json_schema", "structured output"]
            .iter()
            .any(|word| message.contains(word));
        (dialect.native_structure && refused).then_some(Dialect {
            native_structure: false,
            ..dialect
        })
    }
}

/// Takes over the given counts. They are running totals, and `input_tokens` excludes cached tokens.
fn count(draft: &mut Draft, usage: &Value) {
    if !usage.is_object() {
        return;
    }
    let tokens = draft.tokens.get_or_insert_default();
    let field = |name: &str, now: u64| usage[name].as_u64().unwrap_or(now);
    let uncached = tokens
        .input
        .saturating_sub(tokens.cache_read)
        .saturating_sub(tokens.cache_write);
    let uncached = field("input_tokens", uncached);
    tokens.cache_read = field("cache_read_input_tokens", tokens.cache_read);
    tokens.cache_write = field("cache_creation_input_tokens", tokens.cache_write);
    tokens.input = uncached
        .saturating_add(tokens.cache_read)
        .saturating_add(tokens.cache_write);
    tokens.output = field("output_tokens", tokens.output);
}

fn stop(reason: &Value) -> Stop {
    match reason.as_str() {
        Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
        Some("refusal") => Stop::Refusal,
        _ => Stop::End,
    }
}

/// HTTP status for an error type within a stream.
fn status_of(kind: &str) -> u16 {
    match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn token_counts_saturate() {
        let mut draft = Draft::default();
        let most = u64::MAX;
        let huge = json!({ "input_tokens": 7, "cache_read_input_tokens": most,
            "cache_creation_input_tokens": most, "output_tokens": most });
        count(&mut draft, &huge);
        // The second event has no `input_tokens`, so they are derived from the first.
        count(&mut draft, &json!({ "output_tokens": 1 }));
        let tokens = draft.tokens.unwrap();
        assert_eq!((tokens.input, tokens.output), (most, 1));
    }
}
