//! claude-mem's database, `~/.claude-mem/claude-mem.db` (versions up to 13).
//!
//! Observations and session summaries become records. Prompts, raw tool calls and sessions do not;
//! the records name their session. Internal tables (schema, search index, sync) are not counted.

use serde_json::{Value, json};

use crate::model::MemoryType;

use super::sqlite::{Broken, Database, Row};
use super::{Foreign, Found, Skipped, metadata};

/// Skipped tables: name, description of a row, reason.
const LEFT: &[(&str, &str, &str)] = &[
    (
        "user_prompts",
        "user prompts",
        "a prompt is a question, not something to remember; observations and summaries say what came of it",
    ),
    (
        "sdk_sessions",
        "sessions",
        "the frame of its observations and summaries, which name it",
    ),
    (
        "tool_uses",
        "raw tool calls",
        "the raw material of observations; `memctl learn` reads the host's own transcripts",
    ),
    (
        "pending_messages",
        "pending messages",
        "claude-mem had not looked at them yet",
    ),
];

/// Returns `true` for a database of claude-mem.
pub fn is_one(database: &Database) -> bool {
    database.has("observations", &["id", "memory_session_id", "type"])
}

/// Reads all records of a database.
pub fn read(database: &Database) -> Result<Found, Broken> {
    let mut found = Found::default();
    for (table, what, record) in [
        (
            "observations",
            "observation",
            observation as fn(&Row) -> Option<Foreign>,
        ),
        ("session_summaries", "session summary", summary),
    ] {
        if !database.has(table, &["id"]) {
            continue;
        }
        let (rows, broken) = database.rows(table)?;
        for row in &rows {
            if let Some(record) = record(row) {
                found.records.push(record);
            } else {
                let name = format!("{what} {}", row.integer("id").unwrap_or_default());
                found.skipped.push(Skipped::one(name, "it says nothing"));
            }
        }
        found.skipped.extend(
            broken
                .iter()
                .map(|broken| Skipped::one(format!("a part of `{table}`"), broken.to_string())),
        );
    }
    for (table, what, reason) in LEFT {
        let count = match database.rows(table) {
            Ok((rows, _)) => rows.len() as u64,
            Err(_) => 0,
        };
        if count > 0 {
            found.skipped.push(Skipped::some(count, *what, *reason));
        }
    }
    Ok(found)
}

fn observation(row: &Row) -> Option<Foreign> {
    let mut parts: Vec<String> = Vec::new();
    for column in ["title", "subtitle", "narrative", "text"] {
        let text = row.text(column).map(str::trim).unwrap_or_default();
        if !text.is_empty() && !parts.iter().any(|part| part == text) {
            parts.push(text.to_owned());
        }
    }
    let facts: Vec<String> = list(row, "facts")
        .iter()
        .map(|fact| format!("- {fact}"))
        .collect();
    if !facts.is_empty() {
        parts.push(facts.join("\n"));
    }
    let mut fields = common(row);
    fields.extend([
        ("observation_type", json!(row.text("type"))),
        ("concepts", json!(list(row, "concepts"))),
        ("files_read", json!(list(row, "files_read"))),
        ("files_modified", json!(list(row, "files_modified"))),
    ]);
    record(row, "observation", &parts, fields)
}

fn summary(row: &Row) -> Option<Foreign> {
    let parts: Vec<String> = [
        ("request", "Request"),
        ("investigated", "Investigated"),
        ("learned", "Learned"),
        ("completed", "Completed"),
        ("next_steps", "Next steps"),
        ("notes", "Notes"),
    ]
    .iter()
    .filter_map(|(column, label)| Some(format!("{label}: {}", row.text(column)?.trim())))
    .collect();
    let mut fields = common(row);
    fields.extend([
        ("files_read", json!(list(row, "files_read"))),
        ("files_modified", json!(list(row, "files_edited"))),
    ]);
    record(row, "session summary", &parts, fields)
}

fn common(row: &Row) -> Vec<(&'static str, Value)> {
    vec![
        ("session_id", json!(row.text("memory_session_id"))),
        ("project", json!(row.text("project"))),
    ]
}

fn record(row: &Row, what: &str, parts: &[String], fields: Vec<(&str, Value)>) -> Option<Foreign> {
    let text = parts.join("\n");
    if text.trim().is_empty() {
        return None;
    }
    let id = row.integer("id")?;
    let created = row.text("created_at").map(str::to_owned).or_else(|| {
        let at = chrono::DateTime::from_timestamp_millis(row.integer("created_at_epoch")?)?;
        Some(at.to_rfc3339())
    });
    Some(Foreign {
        what: format!("{what} {id}"),
        id: format!("{what}:{id}"),
        created,
        memory_type: MemoryType::TaskMemory,
        text,
        user: None,
        metadata: metadata(fields),
    })
}

/// Column with a JSON list of texts; some older rows hold plain text.
fn list(row: &Row, column: &str) -> Vec<String> {
    let Some(text) = row.text(column) else {
        return Vec::new();
    };
    match serde_json::from_str::<Vec<Value>>(text) {
        Ok(items) => items
            .into_iter()
            .filter_map(|item| match item {
                Value::String(text) => Some(text),
                Value::Null => None,
                other => Some(other.to_string()),
            })
            .collect(),
        Err(_) => vec![text.to_owned()],
    }
}
