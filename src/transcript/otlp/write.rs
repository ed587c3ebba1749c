//! A run as a span, and a span as a run: what is written of a run, and what is read of one.
//!
//! One span `invoke_agent`: the skill is the agent. Names are those of the conventions for generative AI; what
//! they do not know (what it cost, which rules stood in the prompt) stands below `memctl.`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Span;

/// The agent that is invoked, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// The trace: 32 hexadecimal digits.
    pub trace: String,
    /// The span: 16 hexadecimal digits.
    pub span: String,
    /// The span that it is a part of, where there is one.
    pub parent: Option<String>,
    /// Who says so: the name of the service.
    pub service: String,
    /// The skill, `domain/skill`; of other agents their name.
    pub skill: String,
    /// `provider/model`; of others as they write it.
    pub model: String,
    /// When it began, in nanoseconds since 1970.
    pub start: u64,
    /// How long it took, in milliseconds.
    pub latency_ms: f64,
    /// US dollars, where that is known.
    pub cost_usd: Option<f64>,
    /// Tokens that were read, where they were counted.
    pub input_tokens: Option<u64>,
    /// Tokens that were written.
    pub output_tokens: Option<u64>,
    /// The session that it is part of.
    pub session: Option<String>,
    /// The execution that records it.
    pub execution_id: Option<String>,
    /// The rules that stood in the prompt.
    pub injected: Vec<String>,
    /// What went wrong, where something did.
    pub error: Option<String>,
    /// What was given, where content may be told.
    pub input: Option<String>,
    /// What came out, likewise.
    pub output: Option<String>,
}

/// The line of a run in OTLP/JSON, without a line break.
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
    // Numbers of 64 bits are strings in this encoding.
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

/// The run that a span tells of; `None` where it is no agent's, and no model's that an agent has asked.
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
