//! Schemas of request bodies and responses for the API description.
//!
//! Schemas of bodies are generated from the types that parse them. Responses are described as far
//! as clients may rely on them; more fields may be added.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::model::MemoryType;

/// Pattern of a skill name.
pub(super) const SKILL: &str =
    r"^[\p{L}\p{N}_+-][\p{L}\p{N}_.+-]*/[\p{L}\p{N}_+-][\p{L}\p{N}_.+-]*$";

/// Returns the names of the memory types.
pub(super) fn types() -> Vec<Value> {
    MemoryType::ALL.map(|of| of.name().into()).to_vec()
}

/// Returns the names of the memory types, and null.
pub(super) fn types_or_null() -> Vec<Value> {
    let mut types = types();
    types.push(Value::Null);
    types
}

/// Description of a response.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) content_type: &'static str,
    pub(super) about: &'static str,
    pub(super) schema: fn() -> Value,
}

const fn json_of(about: &'static str, schema: fn() -> Value) -> Answer {
    Answer {
        status: "200",
        content_type: "application/json",
        about,
        schema,
    }
}

pub(super) const HEALTH: Answer = json_of("It answers", || {
    record(&json!({ "status": { "const": "ok" } }))
});
pub(super) const OBJECT: Answer = json_of("An object", object);
pub(super) const PROCEDURES: Answer = json_of("The best procedures first", || list(&procedure()));
pub(super) const ROWS: Answer = json_of(
    "Rows, or the one that was requested",
    || json!({ "type": ["array", "object"] }),
);
pub(super) const INSERTED: Answer = Answer {
    status: "201",
    ..json_of(
        "Stored; with `Prefer: return=representation` the rows",
        || json!({ "type": ["array", "object"] }),
    )
};
pub(super) const MEMORIES: Answer = json_of("Most similar first", || {
    let row = record(&json!({
        "id": text(),
        "content": text(),
        "similarity": { "type": "number" },
        "metadata": {},
        "created_at": text(),
        "trust": trust(),
    }));
    record(&json!({ "results": list(&row) }))
});
pub(super) const MEMORY: Answer = json_of("The memory as stored", || {
    let row = record(&json!({
        "id": text(),
        "user_id": text(),
        "memory_type": text(),
        "content": text(),
        "embedding": { "type": ["array", "null"], "items": { "type": "number" } },
        "metadata": object(),
        "created_at": text(),
        "updated_at": text(),
        "expires_at": { "type": ["string", "null"] },
        "trust": trust(),
    }));
    record(&json!({ "memory": row }))
});
pub(super) const EXECUTIONS: Answer = json_of("Newest first", || {
    record(&json!({ "executions": list(&object()), "warnings": list(&text()) }))
});
pub(super) const CORRECTIONS: Answer = json_of("Newest first", || {
    record(&json!({ "corrections": list(&object()), "warnings": list(&text()) }))
});
pub(super) const LOGGED: Answer = Answer {
    status: "201",
    ..json_of("Stored", || {
        record(&json!({
            "execution_id": text(),
            "skill": text(),
            "timestamp": text(),
            "outcome": text(),
            "warnings": list(&text()),
        }))
    })
};
pub(super) const CORRECTED: Answer = json_of("Result", || {
    record(&json!({
        "correction_id": text(),
        "execution_id": { "type": ["string", "null"] },
        "reflexion_id": { "type": ["string", "null"] },
        "rule": { "type": ["string", "null"] },
        "status": { "enum": ["active", "candidate", "retired", "superseded", null] },
        "trust": { "enum": ["observed", "approved", "user", null] },
        "confidence": { "type": "number" },
        "warnings": list(&text()),
    }))
});
pub(super) const HINTS: Answer = json_of("Hints", || {
    record(&json!({
        "error_key": { "type": ["string", "null"] },
        "hints": list(&record(&json!({
            "id": text(),
            "kind": text(),
            "error_key": text(),
            "failing_code": text(),
            "working_code": text(),
            "trust": trust(),
            "differs": list(&record(&json!({ "then": text(), "now": text() }))),
        }))),
        "pitfalls": list(&text()),
        "took_ms": { "type": "number" },
    }))
});
pub(super) const RECORDED: Answer = json_of("Result", || {
    record(&json!({
        "learned": list(&text()),
        "merged": list(&text()),
        "helped": list(&text()),
        "not_learned": { "type": ["string", "null"] },
    }))
});
pub(super) const FOUND: Answer = json_of("Best first", || {
    record(&json!({
        "query": text(),
        "results": list(&record(&json!({
            "id": text(),
            "kind": text(),
            "skill": { "type": ["string", "null"] },
            "score": { "type": "number" },
            "snippet": text(),
            "trust": trust(),
            "status": { "type": ["string", "null"] },
            "source": { "type": ["string", "null"] },
        }))),
        "took_ms": { "type": "number" },
        "warnings": list(&text()),
    }))
});
pub(super) const PROMPT: Answer = json_of("The prompt and its parts", || {
    record(&json!({
        "skill": text(),
        "prompt": text(),
        "layers": list(&object()),
        "injected": list(&record(&json!({ "id": text(), "kind": text() }))),
        "omitted": list(&record(&json!({ "id": text(), "status": text(), "reason": text() }))),
    }))
});
pub(super) const EMBEDDINGS: Answer = json_of("One vector per text, in the same order", || {
    let one = record(&json!({
        "index": { "type": "integer" },
        "embedding": list(&json!({ "type": "number" })),
    }));
    record(&json!({ "model": text(), "data": list(&one) }))
});
pub(super) const OPERATED: Answer = json_of("Data for programs, and text for models", || {
    record(&json!({ "data": object(), "text": text() }))
});
pub(super) const LISTED_MEMORIES: Answer = json_of("Newest first", || {
    record(&json!({
        "memories": list(&record(&json!({ "id": text(), "created": text(), "summary": text() }))),
        "total": { "type": "integer" },
        "warnings": list(&text()),
    }))
});
pub(super) const SESSIONS: Answer = json_of("Newest first", || {
    record(&json!({
        "total": { "type": "integer" },
        "sessions": list(&record(&json!({ "session_id": text(), "status": text() }))),
        "warnings": list(&text()),
    }))
});
pub(super) const SESSION: Answer = json_of("The session, and its log, oldest line first", || {
    record(&json!({
        "session": object(),
        "logs": list(&object()),
        "has_older_logs": { "type": "boolean" },
        "warnings": list(&text()),
    }))
});
pub(super) const EXPORTED: Answer = Answer {
    status: "200",
    content_type: "application/x-ndjson",
    about: "A header with `format`, `exported_at` and `counts`, then one record, log line or audit event a line",
    schema: text,
};
pub(super) const DELETED: Answer = json_of("Numbers of what was deleted", || {
    record(&json!({
        "user_id": text(),
        "records": object(),
        "log_lines": { "type": "integer" },
        "warnings": list(&text()),
    }))
});
pub(super) const SWITCHED: Answer = json_of("State of the switch", || {
    record(&json!({
        "user_id": text(),
        "enabled": { "type": "boolean" },
        "changed": { "type": "boolean" },
    }))
});
pub(super) const EVENTS: Answer = Answer {
    status: "200",
    content_type: "text/event-stream",
    about: "Events `memory_updated`, whose data is an object with `kind`, `id`, `skill`, `user_id`, \
        `memory_type` and `operation` (`INSERT`, `UPDATE` or `DELETE`)",
    schema: text,
};

fn procedure() -> Value {
    record(&json!({
        "id": text(),
        "content": text(),
        "metadata": object(),
        "created_dt": text(),
        "rrf_score": { "type": "number" },
        "keyword_rank": { "type": ["integer", "null"] },
        "semantic_rank": { "type": ["integer", "null"] },
        "trust": trust(),
    }))
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// Returns the schema of a trust level.
fn trust() -> Value {
    json!({ "enum": ["observed", "approved", "user"] })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// Returns the schema of any object.
pub(super) fn object() -> Value {
    json!({ "type": "object" })
}

/// Returns the schema of an object with these required fields.
fn record(fields: &Value) -> Value {
    let names = fields
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.keys());
    let names: Vec<&String> = names.collect();
    json!({ "type": "object", "required": names, "properties": fields })
}

/// Returns the schema of the input of a type.
pub(super) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
    }
    schema
}

/// Returns the schema of one item, or of a list of items.
pub(super) fn items<T: JsonSchema>() -> Value {
    json!({ "anyOf": [of::<T>(), list(&of::<T>())] })
}
