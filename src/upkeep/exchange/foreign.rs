//! Notes of mem0: its exports, and JSON Lines of such objects, which other programs write too.
//!
//! The exports are the JSON of `get_all()` and `search()` (a list, `{"results": […]}` or the pages of its platform). A
//! line may name its `memory_type`.
//!
//! Deliberately absent: Markdown for agents, which read it themselves; and mem0's vector stores, whose formats differ (a
//! local Qdrant uses Python's pickle).

use serde_json::{Map, Value};

use crate::model::MemoryType;
use crate::upkeep::exchange::{Foreign, Found, Skipped};

/// Names of the text field, in the versions of the API.
const TEXT: [&str; 4] = ["memory", "data", "text", "content"];

/// Returns `true` for a JSON document in mem0's answer format.
pub fn is_answer(document: &Value) -> bool {
    let is_memory =
        |item: &Value| item.get("id").is_some() && item.get("memory").is_some_and(Value::is_string);
    match document {
        Value::Array(items) => items.first().is_some_and(is_memory),
        Value::Object(fields) => {
            let results = fields.get("results").and_then(Value::as_array);
            is_memory(document) || results.is_some_and(|items| items.iter().any(is_memory))
        }
        _ => false,
    }
}

/// Reads the memories of one or more documents.
pub fn answers(documents: Vec<Value>) -> Found {
    let listed = |value: Option<Value>| match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    let mut found = Found::default();
    for document in documents {
        let items = match document {
            Value::Array(items) => items,
            Value::Object(mut fields) if fields.contains_key("results") => {
                // Relations of mem0's graph.
                let relations = listed(fields.remove("relations")).len() as u64;
                if relations > 0 {
                    let reason = "a relation of mem0's graph is no text";
                    let skipped = Skipped::some(relations, "relations", reason);
                    found.skipped.push(skipped);
                }
                listed(fields.remove("results"))
            }
            other => vec![other],
        };
        for item in items {
            answer(item, &mut found);
        }
    }
    found
}

fn answer(item: Value, found: &mut Found) {
    let number = found.records.len() + found.skipped.len() + 1;
    let Value::Object(mut fields) = item else {
        let what = format!("item {number}");
        found.skipped.push(Skipped::one(what, "it is no object"));
        return;
    };
    let text = |fields: &Map<String, Value>, name: &str| -> Option<String> {
        let text = fields.get(name)?.as_str()?;
        (!text.trim().is_empty()).then(|| text.to_owned())
    };
    let id = text(&fields, "id");
    let what = id
        .as_ref()
        .map_or_else(|| format!("item {number}"), |id| format!("memory {id}"));
    let Some(content) = TEXT.iter().find_map(|name| text(&fields, name)) else {
        let reason = "it has no text in `memory`";
        found.skipped.push(Skipped::one(what, reason));
        return;
    };
    let user = text(&fields, "user_id");
    let created = text(&fields, "created_at");
    let named = text(&fields, "memory_type");
    let types = MemoryType::ALL.into_iter();
    let memory_type = types
        .clone()
        .find(|kind| named.as_deref() == Some(kind.name()));
    // These fields are stored elsewhere; a score belongs to a query.
    let stored = ["id", "user_id", "created_at", "memory_type", "score"];
    for name in TEXT.iter().chain(&stored) {
        fields.remove(*name);
    }
    let given = match fields.remove("metadata") {
        Some(Value::Object(given)) => given,
        _ => Map::new(),
    };
    fields.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    });
    fields.extend(given);
    found.records.push(Foreign {
        id: id.unwrap_or_else(|| content.clone()),
        what,
        created,
        memory_type: memory_type.unwrap_or(MemoryType::UserPreferences),
        text: content,
        user,
        metadata: fields,
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_an_answer_is_read_and_nothing_is_lost() {
        let memory = json!({"id": "a", "memory": "likes tea", "hash": "h", "score": 0.5, "user_id": "alice",
            "created_at": "2026-01-01T00:00:00+00:00", "metadata": {"n": 1}, "run_id": null});
        let check = |document: Value, records: usize, skipped: u64| {
            let found = answers(vec![document.clone()]);
            let lost: u64 = found.skipped.iter().map(|s| s.count).sum();
            assert_eq!(
                (found.records.len(), lost),
                (records, skipped),
                "{document}"
            );
            found
        };
        let found = check(json!([memory]), 1, 0);
        let record = &found.records[0];
        assert_eq!(
            (record.id.as_str(), record.text.as_str()),
            ("a", "likes tea")
        );
        assert_eq!(record.user.as_deref(), Some("alice"));
        assert_eq!(
            Value::Object(record.metadata.clone()),
            json!({"hash": "h", "n": 1})
        );
        check(
            json!({"results": [memory, {"id": "b"}, 7], "relations": [{"a": 1}]}),
            1,
            3,
        );
        check(memory.clone(), 1, 0);
        check(json!({"count": 1, "next": null, "results": [memory]}), 1, 0);
        let typed = json!({"id": "c", "memory": "built", "memory_type": "task_memory"});
        let found = check(typed, 1, 0);
        assert_eq!(found.records[0].memory_type, MemoryType::TaskMemory);
        check(json!({"results": []}), 0, 0);
        check(json!("x"), 0, 1);
        assert!(is_answer(&json!({"results": [memory]})));
        assert!(!is_answer(&json!({"results": [{"a": 1}]})) && !is_answer(&json!([])));
    }
}
