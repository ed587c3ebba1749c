//! The Anthropic Messages protocol.
//!
//! Answers are streamed, so that a long one does not look like a dead connection. The system text
//! is marked for the provider's cache, because the questions of a skill share it. The form of an
//! answer is asked for by `output_config`; a server that does not know it gets the schema as a tool
//! that the model must use, whose input is then the answer. No sampling parameter is ever sent:
//! the protocol has dropped them.

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};

use super::fault::{Fault, parse};
use super::http::{Connection, Dialect, Limits, Peer, Protocol};
use super::price::Pricing;
use super::schema::{Optional, strict};
use super::{Draft, Error, OnProgress, Request, Secret, Stop, Tally, sse};

/// The revision of the protocol that is spoken.
const VERSION: &str = "2023-06-01";

/// Which model, where.
#[derive(Debug, Clone)]
pub struct AnthropicConfig {
    /// Without `/v1`; `https://api.anthropic.com` by default.
    pub base_url: String,
    /// Sent as `x-api-key`.
    pub key: Secret,
    /// The provider's name of the model.
    pub model: String,
    /// Limits of a question.
    pub limits: Limits,
    /// Fields that are added to every request, over our own.
    pub extra: Map<String, Value>,
}

impl AnthropicConfig {
    /// A model of Anthropic's own service, with the default limits.
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

/// A model behind the Anthropic Messages protocol.
#[derive(Debug)]
pub struct Anthropic {
    pub(super) connection: Connection,
}

impl Anthropic {
    /// Takes the configuration; nothing is sent before the first question.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a base URL that is none or a key that fits in no header.
    pub fn new(config: AnthropicConfig) -> Result<Self, Error> {
        let base_url = config.base_url.trim_end_matches('/');
        let peer = Peer {
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
            connection: Connection::new(peer, dialect)?,
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
        // An empty block is refused.
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
            // `ping`, the ends of blocks, and what later revisions add.
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

/// Takes over the counts that are given. They are running totals, and `input_tokens` means the
/// part that no cache had to do with.
fn count(draft: &mut Draft, usage: &Value) {
    if !usage.is_object() {
        return;
    }
    let tokens = draft.tokens.get_or_insert_default();
    let field = |name: &str, now: u64| usage[name].as_u64().unwrap_or(now);
    let uncached = tokens.input - tokens.cache_read - tokens.cache_write;
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

/// The status that an error within a stream would have had.
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
