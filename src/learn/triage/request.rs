//! Question to a model about a batch of records.

use serde_json::{Value, json};

use crate::llm::{Request, Schema};

use super::Item;

/// Default prompt; users can replace it.
pub const PROMPT: &str = include_str!("../prompts/consolidate.md");
/// Maximum length of an answer, in tokens for each record.
pub const MAX_TOKENS: u32 = 400;

/// Builds the question. `system` is [`PROMPT`] or the user's replacement; `known` are approved
/// records that others may be merged into.
pub fn ask(items: &[Item], known: &[Item], system: &str) -> Request {
    let document = json!({
        "records": items.iter().map(shown).collect::<Vec<_>>(),
        "known": known.iter().map(shown).collect::<Vec<_>>(),
    });
    let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
    Request {
        system: system.to_owned(),
        user: format!("{document:#}"),
        schema: Some(Schema {
            name: "verdicts".to_owned(),
            json: schema(),
        }),
        max_tokens: MAX_TOKENS.saturating_mul(count),
    }
}

fn shown(item: &Item) -> Value {
    let mut fields = json!({ "id": item.id, "kind": item.kind });
    for (name, text) in &item.fields {
        fields[*name] = json!(text);
    }
    fields
}

fn schema() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "properties": {
            "verdicts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": text,
                        "verdict": { "type": "string", "enum": ["keep", "discard", "merge"] },
                        "into": text,
                        "reason": text,
                        "worked": text,
                        "cause": text,
                        "name": text,
                        "steps": { "type": "array", "items": text },
                        "rule": text,
                        "applies_when": text,
                    },
                    "required": [
                        "id", "verdict", "into", "reason", "worked", "cause", "name", "steps", "rule",
                        "applies_when",
                    ],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["verdicts"],
        "additionalProperties": false,
    })
}
