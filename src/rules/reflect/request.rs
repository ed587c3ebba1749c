//! Request to a model: one correction, and the existing rules near it.

use serde_json::{Value, json};

use super::{CorrectionContext, Neighbour};
use memctl_llm::{Request, Schema};
use memctl_redact::Clean;

/// Default prompt; users can replace it.
pub const PROMPT: &str = include_str!("prompts/reflect.md");
/// Maximum length of a reply, in tokens.
const MAX_TOKENS: u32 = 1536;
/// Maximum length of an input or output in the prompt, in bytes.
const MAX_SHOWN: usize = 24_000;

/// Builds the request to a model. `system` is [`PROMPT`] or the user's replacement.
pub fn ask(context: &CorrectionContext<'_>, system: &str) -> Request {
    let mut user = format!("<skill>{}</skill>", context.skill);
    let mut add = |name: &str, text: &str| {
        user.extend(["\n<", name, ">\n", &fenced(text), "\n</", name, ">"]);
    };
    for (name, json) in [("input", context.input), ("output", context.output)] {
        if let Some(json) = json {
            add(name, json.get());
        }
    }
    add("correction", context.correction.trim());
    if !context.neighbours.is_empty() {
        user.push_str("\n<rules>\n");
        for rule in context.neighbours {
            user.push_str(&line(rule));
            user.push('\n');
        }
        user.push_str("</rules>");
    }
    Request {
        system: system.to_owned(),
        user,
        schema: Some(Schema {
            name: "reflexion".to_owned(),
            json: schema(context.neighbours),
        }),
        max_tokens: MAX_TOKENS,
    }
}

/// Rule as a JSON object on one line.
fn line(neighbour: &Neighbour) -> String {
    fenced(&json!(neighbour).to_string())
}

/// Redacted text, cut to a maximum length, that cannot close its enclosing tag.
pub(crate) fn fenced(text: &str) -> String {
    let text = Clean::of(text);
    let head = text.head(MAX_SHOWN);
    let cut = if head.len() < text.as_str().len() {
        "\n[cut]"
    } else {
        ""
    };
    head.replace("</", "<\\/") + cut
}

/// Schema of the reply. Without existing rules it has no field for their relations.
fn schema(neighbours: &[Neighbour]) -> Value {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let mut schema = json!({
        "type": "object",
        "properties": {
            "learnable": { "type": "boolean" },
            "reason": text("why nothing lasting follows; empty where something does"),
            "mistake": text("what the output did wrong"),
            "root_cause": text("why a model would make this mistake"),
            "rule": text("When <condition>, ALWAYS/NEVER <action>; without a condition where the person said none"),
            "applies_when": text("the condition in the person's words; empty where the person said none"),
            "confidence": { "type": "number", "description": "0 to 1" },
            "assertions": {
                "type": "array",
                "items": { "type": "string" },
                "description": "checks of an output, such as `$.score < 60` or `$ not contains \"soon\"`; empty where none can tell",
            },
            "assertions_suffice": { "type": "boolean", "description": "true if they check all that the rule demands" },
        },
        "required": ["learnable", "reason", "mistake", "root_cause", "rule", "applies_when", "confidence"],
        "additionalProperties": false,
    });
    if neighbours.is_empty() {
        return schema;
    }
    let ids: Vec<&str> = neighbours.iter().map(|rule| rule.id.as_str()).collect();
    schema["properties"]["related"] = json!({
        "type": "array",
        "description": "each rule of <rules> exactly once",
        "items": {
            "type": "object",
            "properties": {
                "id": { "type": "string", "enum": ids },
                "reason": text("one sentence: what the two have in common and where they differ"),
                "relation": {
                    "type": "string",
                    "enum": ["same", "contradicts", "narrows", "unrelated"],
                },
            },
            "required": ["id", "reason", "relation"],
            "additionalProperties": false,
        },
    });
    if let Some(required) = schema["required"].as_array_mut() {
        required.push(json!("related"));
    }
    schema
}
