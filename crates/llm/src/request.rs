//! Question to a model, and the progress of its answer.

use std::time::Duration;

use serde_json::Value;

/// Question to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Instructions shared by all requests of this kind; providers cache them. May be empty.
    pub system: String,
    /// Text of the question.
    pub user: String,
    /// Schema of the answer; `None` accepts any text.
    pub schema: Option<Schema>,
    /// Maximum length of the answer in tokens. Programs and recorded replies ignore it.
    pub max_tokens: u32,
}

/// Schema of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Letters, digits, `_` and `-`, at most 64. Providers require a name.
    pub name: String,
    /// JSON Schema of an object.
    pub json: Value,
}

/// Progress of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Next piece of the answer.
    Text(&'a str),
    /// The request failed and is sent again; earlier pieces of the answer are void.
    Retry {
        /// Pause before the retry.
        after: Duration,
        /// Reason as text.
        reason: &'a str,
    },
    /// The answer does not match the schema and is requested again; its pieces are void.
    Repair {
        /// Reason as text.
        reason: &'a str,
    },
}

/// Callback for [`Progress`]; `&mut |_| {}` ignores it.
pub type OnProgress<'a> = &'a mut (dyn FnMut(Progress<'_>) + Send);

/// Request with its schema as text, for models without structured output.
pub(super) fn in_words(request: &Request) -> Request {
    let Some(schema) = &request.schema else {
        return request.clone();
    };
    let form = format!(
        "Answer with one JSON object and nothing else. It must fit this JSON Schema:\n{}",
        schema.json
    );
    let system = match request.system.as_str() {
        "" => form,
        system => format!("{system}\n\n{form}"),
    };
    Request {
        system,
        ..request.clone()
    }
}
