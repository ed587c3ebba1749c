//! mem0's exports: the JSON of `get_all()` and `search()` (a list, `{"results": […]}` or the pages
//! of its platform), JSON Lines of such objects, and the local `history.db`.
//!
//! Only the last event of each memory in the history counts. mem0's vector stores are not read,
//! since their formats differ (a local Qdrant uses Python's pickle).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::model::MemoryType;

use super::sqlite::{Broken, Database, Row};
use super::{Foreign, Found, Skipped, metadata};

/// Names of the text field, in the versions of the API.
const TEXT: [&str; 4] = ["memory", "data", "text", "content"];

/// Returns `true` for a history database of mem0.
pub fn is_history(database: &Database) -> bool {
    database.has("history", &["memory_id", "new_memory", "event"])
}

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
    let mut found = Found::default();
    for document in documents {
        match document {
            Value::Array(items) => {
                for item in items {
                    answer(item, &mut found);
                }
            }
            Value::Object(mut fields) if fields.contains_key("results") => {
                if let Some(Value::Array(items)) = fields.remove("results") {
                    for item in items {
                        answer(item, &mut found);
                    }
                }
                // Relations of mem0's graph.
                if let Some(Value::Array(relations)) = fields.remove("relations")
                    && !relations.is_empty()
                {
                    let reason = "a relation of mem0's graph is no text";
                    let count = relations.len() as u64;
                    found
                        .skipped
                        .push(Skipped::some(count, "relations", reason));
                }
            }
            other => answer(other, &mut found),
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
    let Some(said) = TEXT.iter().find_map(|name| text(&fields, name)) else {
        let reason = "it has no text in `memory`";
        found.skipped.push(Skipped::one(what, reason));
        return;
    };
    let user = text(&fields, "user_id");
    let created = text(&fields, "created_at");
    // These fields are stored elsewhere; a score belongs to a query.
    for name in TEXT.iter().chain(&["id", "user_id", "created_at", "score"]) {
        fields.remove(*name);
    }
    let given = match fields.remove("metadata") {
        Some(Value::Object(given)) => given,
        _ => Map::new(),
    };
    let mut kept = metadata(
        fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect(),
    );
    kept.extend(given);
    found.records.push(Foreign {
        id: id.unwrap_or_else(|| said.clone()),
        what,
        created,
        memory_type: MemoryType::UserPreferences,
        text: said,
        user,
        metadata: kept,
    });
}

/// Reads the last state of each memory in a history.
pub fn history(database: &Database) -> Result<Found, Broken> {
    let (rows, broken) = database.rows("history")?;
    let mut found = Found::default();
    let mut last: BTreeMap<String, (usize, &Row)> = BTreeMap::new();
    let mut superseded = 0;
    for (i, row) in rows.iter().enumerate() {
        let Some(id) = row.text("memory_id") else {
            let what = format!("event {}", row.text("id").unwrap_or("without an id"));
            found.skipped.push(Skipped::one(what, "it names no memory"));
            continue;
        };
        superseded += u64::from(last.insert(id.to_owned(), (i, row)).is_some());
    }
    if superseded > 0 {
        let reason = "a later event of the same memory counts";
        found
            .skipped
            .push(Skipped::some(superseded, "earlier events", reason));
    }
    let mut events: Vec<(usize, String, &Row)> = last
        .into_iter()
        .map(|(id, (i, row))| (i, id, row))
        .collect();
    events.sort_by_key(|(i, _, _)| *i);
    for (_, id, row) in events {
        let what = format!("memory {id}");
        let deleted = row.integer("is_deleted") == Some(1) || row.text("event") == Some("DELETE");
        let text = row
            .text("new_memory")
            .map(str::trim)
            .filter(|text| !text.is_empty());
        match text {
            _ if deleted => found
                .skipped
                .push(Skipped::one(what, "it was deleted in mem0")),
            None => found.skipped.push(Skipped::one(what, "it says nothing")),
            Some(text) => found.records.push(Foreign {
                what,
                id,
                created: row.text("created_at").map(str::to_owned),
                memory_type: MemoryType::UserPreferences,
                text: text.to_owned(),
                // The history has no user ids.
                user: None,
                metadata: metadata(vec![
                    ("updated_at", json!(row.text("updated_at"))),
                    ("actor_id", json!(row.text("actor_id"))),
                    ("role", json!(row.text("role"))),
                ]),
            }),
        }
    }
    let unread = broken
        .iter()
        .map(|broken| Skipped::one("a part of `history`", broken.to_string()));
    found.skipped.extend(unread);
    if database.has("messages", &["id", "content"]) {
        let count = database
            .rows("messages")
            .map_or(0, |(rows, _)| rows.len() as u64);
        if count > 0 {
            let reason = "a message is what memories were made of, not one of them";
            found.skipped.push(Skipped::some(count, "messages", reason));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
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
        check(json!({"results": []}), 0, 0);
        check(json!("x"), 0, 1);
        assert!(is_answer(&json!({"results": [memory]})));
        assert!(!is_answer(&json!({"results": [{"a": 1}]})) && !is_answer(&json!([])));
    }
}
