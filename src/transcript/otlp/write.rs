//! Conversion between runs and spans.
//!
//! A run is one span `invoke_agent` with the skill as the agent. Names follow the conventions for
//! generative AI; other data (cost, rules in the prompt) has the prefix `memctl.`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Span;

/// Agent run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// Trace id: 32 hexadecimal digits.
    pub trace: String,
    /// Span id: 16 hexadecimal digits.
    pub span: String,
    /// Id of the parent span; `None` without a parent.
    pub parent: Option<String>,
    /// Service name of the exporter.
    pub service: String,
    /// Skill as `domain/skill`; agent name for other agents.
    pub skill: String,
    /// Model as `provider/model`; other programs may use other forms.
    pub model: String,
    /// Start time in nanoseconds since 1970.
    pub start: u64,
    /// Duration in milliseconds.
    pub latency_ms: f64,
    /// Cost in US dollars; `None` if unknown.
    pub cost_usd: Option<f64>,
    /// Input tokens; `None` if not counted.
    pub input_tokens: Option<u64>,
    /// Output tokens; `None` if not counted.
    pub output_tokens: Option<u64>,
    /// Session id.
    pub session: Option<String>,
    /// Id of the execution record.
    pub execution_id: Option<String>,
    /// Ids of the rules in the prompt.
    pub injected: Vec<String>,
    /// Error message; `None` after success.
    pub error: Option<String>,
    /// Input text; `None` if content is not recorded.
    pub input: Option<String>,
    /// Output text; `None` if content is not recorded.
    pub output: Option<String>,
}

/// OTLP/JSON of a run, without a line break.
pub fn line(run: &Traced) -> String {
    let (provider, model) = run.model.split_once('/').unwrap_or(("", &run.model));
    let mut attributes = vec![
        text("gen_ai.operation.name", "invoke_agent"),
        text("gen_ai.agent.name", &run.skill),
    ];
    let texts = [
        (
            "gen_ai.provider.name",
            Some(provider).filter(|name| !name.is_empty()),
        ),
        (
            "gen_ai.request.model",
            Some(model).filter(|name| !name.is_empty()),
        ),
        ("gen_ai.conversation.id", run.session.as_deref()),
        ("memctl.execution.id", run.execution_id.as_deref()),
        ("error.type", run.error.as_ref().map(|_| "model")),
    ];
    attributes.extend(
        texts
            .into_iter()
            .filter_map(|(name, value)| Some(text(name, value?))),
    );
    let counts = [
        ("gen_ai.usage.input_tokens", run.input_tokens),
        ("gen_ai.usage.output_tokens", run.output_tokens),
    ];
    // 64-bit numbers are strings in this encoding.
    let count =
        |name: &str, value: u64| json!({"key": name, "value": {"intValue": value.to_string()}});
    attributes.extend(
        counts
            .into_iter()
            .filter_map(|(name, value)| Some(count(name, value?))),
    );
    if let Some(cost) = run.cost_usd {
        attributes.push(json!({"key": "memctl.cost_usd", "value": {"doubleValue": cost}}));
    }
    if !run.injected.is_empty() {
        let ids: Vec<Value> = run
            .injected
            .iter()
            .map(|id| json!({"stringValue": id}))
            .collect();
        attributes.push(
            json!({"key": "memctl.rules.injected", "value": {"arrayValue": {"values": ids}}}),
        );
    }
    let messages = [
        ("gen_ai.input.messages", "user", &run.input),
        ("gen_ai.output.messages", "assistant", &run.output),
    ];
    for (name, role, content) in messages {
        if let Some(content) = content {
            let mut message =
                json!({"role": role, "parts": [{"type": "text", "content": content}]});
            if role == "assistant" {
                message["finish_reason"] = json!("stop");
            }
            attributes.push(text(name, &json!([message]).to_string()));
        }
    }
    let mut span = json!({
        "traceId": run.trace,
        "spanId": run.span,
        "name": format!("invoke_agent {}", run.skill),
        "kind": 1,
        "startTimeUnixNano": run.start.to_string(),
        "endTimeUnixNano": run.start.saturating_add(nanoseconds(run.latency_ms)).to_string(),
        "attributes": attributes,
        "status": {},
    });
    if let Some(parent) = &run.parent {
        span["parentSpanId"] = json!(parent);
    }
    if let Some(error) = &run.error {
        span["status"] = json!({"code": 2, "message": error});
    }
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", &run.service)]},
        "scopeSpans": [{
            "scope": {"name": "memctl", "version": env!("CARGO_PKG_VERSION")},
            "spans": [span],
        }],
    }]})
    .to_string()
}

fn text(name: &str, value: &str) -> Value {
    json!({"key": name, "value": {"stringValue": value}})
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast to an integer saturates, and a time below zero is none"
)]
fn nanoseconds(milliseconds: f64) -> u64 {
    (milliseconds * 1e6) as u64
}

/// Converts a span to a run; `None` unless its operation is an agent or model invocation.
pub fn traced(span: &Span) -> Option<Traced> {
    if ![
        "invoke_agent", "chat", "generate_content", "text_completion",
    ]
    .contains(&span.operation())
    {
        return None;
    }
    let texts = |name: &str, role: &str| {
        let messages = span.data(name)?;
        let parts = messages
            .as_array()?
            .iter()
            .filter(|message| message["role"] == role);
        let parts = parts
            .filter_map(|message| message["parts"].as_array())
            .flatten();
        let texts: Vec<&str> = parts.filter_map(|part| part["content"].as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    };
    let own = |name: &str| span.text(name).map(str::to_owned);
    let model = own("gen_ai.response.model")
        .or(own("gen_ai.request.model"))
        .unwrap_or_default();
    let provider = own("gen_ai.provider.name").or(own("gen_ai.system"));
    let count = |name: &str| span.whole(name).and_then(|count| u64::try_from(count).ok());
    let injected = span
        .attributes
        .get("memctl.rules.injected")
        .and_then(Value::as_array);
    let nanoseconds = span.end.saturating_sub(span.start);
    #[expect(clippy::cast_precision_loss, reason = "no run lasts 104 days")]
    let latency_ms = nanoseconds as f64 / 1e6;
    Some(Traced {
        trace: span.trace.clone(),
        span: span.id.clone(),
        parent: Some(span.parent.clone()).filter(|parent| !parent.is_empty()),
        service: own("service.name").unwrap_or_default(),
        skill: own("gen_ai.agent.name").unwrap_or_default(),
        model: provider.map_or(model.clone(), |provider| format!("{provider}/{model}")),
        start: span.start,
        latency_ms,
        cost_usd: span
            .attributes
            .get("memctl.cost_usd")
            .and_then(Value::as_f64),
        input_tokens: count("gen_ai.usage.input_tokens"),
        output_tokens: count("gen_ai.usage.output_tokens"),
        session: own("gen_ai.conversation.id"),
        execution_id: own("memctl.execution.id"),
        injected: injected
            .into_iter()
            .flatten()
            .filter_map(|id| id.as_str().map(str::to_owned))
            .collect(),
        error: span.failed.then(|| span.message.clone()),
        input: texts("gen_ai.input.messages", "user"),
        output: texts("gen_ai.output.messages", "assistant"),
    })
}
