//! Table and columns of each record kind.
//!
//! A row holds the record as JSON text. The other columns repeat parts of it for readers that use
//! SQL or `PostgREST`. Values that a column cannot hold are replaced by its default.

use chrono::DateTime;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::{Kind, Memory, Procedure, Record as _, Session};

/// Table of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Columns besides the common ones. Each has an SQL value in terms of `f`, a JSON object, and a
    /// value for tombstones.
    pub(crate) columns: &'static [Column],
    /// `true` if the content has a vector.
    pub(crate) has_vector: bool,
    /// Column with the user whose login wrote the row; with origin and id, it names the row.
    pub(crate) holder: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    value: &'static str,
    /// Value in a tombstone; `None` keeps the column, which reveals no content.
    cleared: Option<&'static str>,
}

const fn column(name: &'static str, value: &'static str, cleared: Option<&'static str>) -> Column {
    Column {
        name,
        value,
        cleared,
    }
}

/// Text field of the record of the same name.
macro_rules! text {
    ($name:literal) => {
        column($name, concat!("f->>'", $name, "'"), Some("null"))
    };
}

/// Object or list of the record, as JSON.
macro_rules! json_value {
    ($name:literal) => {
        column($name, concat!("f->'", $name, "'"), Some("null"))
    };
}

const EXECUTION: &[Column] = &[
    text!("execution_id"),
    column("timestamp", "(f->>'timestamp')::timestamptz", None),
    json_value!("input_summary"),
    json_value!("output_summary"),
    text!("outcome"),
    column("cost_usd", "(f->>'cost_usd')::float8", Some("null")),
    column("latency_ms", "(f->>'latency_ms')::float8", Some("null")),
    text!("model_used"),
];

const CORRECTION: &[Column] = &[
    text!("correction_id"),
    text!("execution_id"),
    column("timestamp", "(f->>'timestamp')::timestamptz", None),
    json_value!("original_output"),
    text!("user_correction"),
];

const REFLEXION: &[Column] = &[
    text!("reflexion_id"),
    column("created_at", "(f->>'created_at')::timestamptz", None),
    text!("correction_id"),
    text!("mistake"),
    text!("root_cause"),
    text!("rule"),
    text!("applies_when"),
    column("confidence", "(f->>'confidence')::float8", Some("null")),
    column(
        "validated_by_test",
        "(f->>'validated_by_test')::boolean",
        Some("null"),
    ),
    json_value!("generated_test_ids"),
];

const PROCEDURE: &[Column] = &[
    column("content", "f->>'content'", Some("null")),
    column("metadata", "f->'metadata'", Some("null")),
    column("created_dt", CREATED, None),
];

const MEMORY: &[Column] = &[
    column("memory_type", "f->>'memory_type'", None),
    column("content", "f->>'content'", Some("''")),
    column("metadata", "coalesce(f->'metadata', '{}')", Some("'{}'")),
    column("created_at", CREATED, None),
    column("expires_at", "(f->>'expires')::timestamptz", Some("null")),
];

const SESSION: &[Column] = &[
    column("status", "coalesce(f->>'status', 'initializing')", None),
    column("current_step", "f->>'current_step'", Some("null")),
    column("progress_percentage", "(f->>'progress')::integer", None),
    column("total_steps", "(f->>'total_steps')::integer", None),
    column(
        "completed_steps",
        "array(select jsonb_array_elements_text(f->'completed_steps'))",
        Some("array[]::text[]"),
    ),
    column("error_message", "f->>'error_message'", Some("null")),
    column(
        "session_data",
        "coalesce(f->'session_data', '{}')",
        Some("'{}'"),
    ),
    column(
        "started_at",
        "coalesce((f->>'started')::timestamptz, now())",
        None,
    ),
    column("completed_at", "(f->>'completed')::timestamptz", None),
    column("created_at", CREATED, None),
];

const CREATED: &str = "coalesce((f->>'created')::timestamptz, now())";

/// Returns the table of a kind.
pub(crate) fn table(kind: Kind) -> Table {
    let of_seed = |name, columns, has_vector| Table {
        name,
        columns,
        has_vector,
        holder: if kind.has_user() {
            "held_by"
        } else {
            "user_id"
        },
    };
    match kind {
        Kind::Execution => of_seed("executions", EXECUTION, false),
        Kind::Correction => of_seed("corrections", CORRECTION, false),
        Kind::Reflexion => of_seed("reflexions", REFLEXION, false),
        Kind::Procedure => of_seed("context_eng_memories", PROCEDURE, true),
        Kind::Memory => of_seed("agent_memory", MEMORY, true),
        Kind::Session => of_seed("agent_sessions", SESSION, false),
    }
}

impl Table {
    /// SQL that inserts rows, and fails if one of them is there. Parameters: origin, and arrays of
    /// ids, skills, texts and JSON objects for the other columns. A row belongs to the user that its
    /// record names, or else to the login.
    pub(crate) fn insert(self) -> String {
        let (name, holder) = (self.name, self.holder);
        let list = |part: &dyn Fn(&Column) -> String| {
            let parts = self
                .columns
                .iter()
                .map(|column| format!(", {}", part(column)));
            parts.collect::<String>()
        };
        let mut names = list(&|column| column.name.to_owned());
        let mut values = list(&|column| column.value.to_owned());
        // The defaults of these columns say the same, and would look up the user for each row.
        let me = "(select memctl.current_user_id())";
        names.push_str(", user_id");
        values = if self.has_user() {
            format!("{values}, coalesce(memctl.host_user(f->>'user'), {me})")
        } else {
            format!("{values}, {me}")
        };
        if holder != "user_id" {
            names = format!("{names}, {holder}");
            values = format!("{values}, {me}");
        }
        // In the list of columns, these functions give one row at a time; after `from`, all rows are
        // copied first.
        format!(
            "insert into public.{name} as t (origin, entry_id, skill, entry{names})
             select $1, i.entry_id, nullif(i.skill, ''), i.entry{values}
             from (select unnest($2::text[]) as entry_id, unnest($3::text[]) as skill,
               unnest($4::text[]) as entry, unnest($5::text[]) as fields) as i
             cross join lateral (select i.fields::jsonb as f) as x"
        )
    }

    /// SQL that writes rows, with the parameters of [`Self::insert`]. Identical rows are not touched.
    pub(crate) fn upsert(self) -> String {
        let columns = self.columns.iter();
        let sets = columns.map(|column| format!(", {0} = excluded.{0}", column.name));
        let sets: String = sets.collect();
        let set_user = if self.has_user() {
            ", user_id = excluded.user_id"
        } else {
            ""
        };
        // A changed content invalidates the vector.
        let vector = if self.has_vector {
            ", embedding = case when t.content is distinct from excluded.content then null else t.embedding end"
        } else {
            ""
        };
        format!(
            "{}
             on conflict ({}, origin, entry_id) do update
             set skill = excluded.skill, entry = excluded.entry, deleted_at = null, tombstone = null{sets}{set_user}{vector}
             where t.hash is distinct from excluded.hash or t.deleted_at is not null",
            self.insert(),
            self.holder
        )
    }

    /// Returns `true` if a record may name the user of its row.
    fn has_user(self) -> bool {
        self.holder != "user_id"
    }

    /// SQL that inserts tombstones of records that never had a row. Parameters: origin, and arrays
    /// of ids and tombstones.
    pub(crate) fn insert_tombstones(self) -> String {
        // Columns that may not be null.
        let (names, values) = match self.name {
            "agent_memory" => (", memory_type, content", ", 'task_memory', ''"),
            _ => ("", ""),
        };
        format!(
            "insert into public.{} (origin, entry_id, deleted_at, tombstone{names})
             select $1, i.entry_id, now(), i.tombstone{values}
             from unnest($2::text[], $3::text[]) as i (entry_id, tombstone)
             on conflict ({}, origin, entry_id) do nothing",
            self.name, self.holder
        )
    }

    /// SQL that turns rows into tombstones. Parameters: origin, and arrays of ids and tombstones.
    pub(crate) fn bury(self) -> String {
        let cleared = self.columns.iter().filter_map(|column| {
            let value = column.cleared?;
            Some(format!(", {} = {value}", column.name))
        });
        let vector = if self.has_vector {
            ", embedding = null"
        } else {
            ""
        };
        format!(
            "update public.{} as t set entry = null, deleted_at = now(), tombstone = i.tombstone{}{vector}
             from unnest($2::text[], $3::text[]) as i (entry_id, tombstone)
             where t.{} = (select memctl.current_user_id()) and t.origin = $1
               and t.entry_id = i.entry_id and t.deleted_at is null",
            self.name,
            cleared.collect::<String>(),
            self.holder
        )
    }
}

/// JSON object for the columns of a record, with the user that the record names; `None` if the text
/// is not a valid record of its kind.
pub(crate) fn fields(kind: Kind, text: &str) -> Option<String> {
    let mut fields = columns(kind, text)?;
    let user = memctl_files::json::string_field(text.as_bytes(), "user_id");
    if let Some(user) = user.filter(|_| kind.has_user()) {
        fields["user"] = Value::from(user);
    }
    Some(without_nul(&fields.to_string()))
}

/// As [`fields`], with defaults for an unreadable record: the row keeps its text, and cannot be found
/// by content.
pub(crate) fn fields_or_blank(kind: Kind, text: &str) -> String {
    let blank = match kind {
        Kind::Memory => r#"{"memory_type": "task_memory", "content": ""}"#,
        _ => "{}",
    };
    fields(kind, text).unwrap_or_else(|| blank.to_owned())
}

fn columns(kind: Kind, text: &str) -> Option<Value> {
    let fields = match kind {
        Kind::Procedure => {
            let record: Procedure = serde_json::from_str(text).ok()?;
            let document = record.document();
            json!({
                "content": record.shown_content(),
                "metadata": {
                    "status": record.status,
                    "data": value(&record.data),
                    "id": document.id,
                    "skill": document.skill,
                    "trust": document.trust,
                },
                "created": time(&document.created),
            })
        }
        Kind::Memory => {
            let record: Memory = serde_json::from_str(text).ok()?;
            json!({
                "memory_type": record.memory_type.name(),
                "content": record.content,
                "metadata": value(&record.metadata),
                "created": time(&record.created_at),
                "expires": record.expires_at.as_deref().and_then(time),
            })
        }
        Kind::Session => {
            let record: Session = serde_json::from_str(text).ok()?;
            #[expect(clippy::cast_possible_truncation, reason = "it was brought between 0 and 100")]
            let progress = record
                .progress_percentage
                .map(|p| p.clamp(0.0, 100.0).round() as i32);
            json!({
                "status": record.status.is_known().then(|| record.status.to_string()),
                "current_step": record.current_step,
                "progress": progress,
                "total_steps": record.total_steps.and_then(|steps| i32::try_from(steps).ok()),
                "completed_steps": record.completed_steps,
                "error_message": record.error_message,
                "session_data": value(&record.session_data),
                "started": time(&record.started_at),
                "completed": record.completed_at.as_deref().and_then(time),
                "created": time(&record.created_at),
            })
        }
        Kind::Execution | Kind::Correction | Kind::Reflexion => of_document(text),
    };
    Some(fields)
}

/// Fields of the source document that have the type of their column. Others are left out: the files are
/// edited by hand.
fn of_document(text: &str) -> Value {
    let mut fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    fields.retain(|name, value| match name.as_str() {
        "timestamp" | "created_at" => match value.as_str().and_then(time) {
            Some(at) => {
                *value = Value::from(at);
                true
            }
            None => false,
        },
        "cost_usd" | "latency_ms" | "confidence" => value.is_number(),
        "validated_by_test" => value.is_boolean(),
        "input_summary" | "output_summary" | "original_output" | "generated_test_ids" => true,
        "execution_id" | "outcome" | "model_used" | "correction_id" | "user_correction"
        | "reflexion_id" | "mistake" | "root_cause" | "rule" | "applies_when" => value.is_string(),
        _ => false,
    });
    Value::Object(fields)
}

/// Normalised RFC 3339 time; `None` if `text` is invalid.
pub(crate) fn time(text: &str) -> Option<String> {
    DateTime::parse_from_rfc3339(text)
        .ok()
        .map(|at| at.to_rfc3339())
}

/// Parsed JSON value; `None` for `null` or invalid JSON.
fn value(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get())
        .ok()
        .filter(|value| !Value::is_null(value))
}

/// Removes NUL escapes, which the server's JSON does not support. After an escaped backslash,
/// `u0000` is ordinary text.
pub(crate) fn without_nul(json: &str) -> String {
    if !json.contains("\\u0000") {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = if escape.starts_with("\\u") { 6 } else { 2 };
        let (escape, behind) = escape.split_at(length.min(escape.len()));
        if escape != "\\u0000" {
            out.push_str(escape);
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_is_taken_out_and_nothing_else() {
        let check = |text: &str, expected: &str| {
            let json = serde_json::to_string(text).unwrap();
            let back: String = serde_json::from_str(&without_nul(&json)).unwrap();
            assert_eq!(back, expected);
        };
        check("a\0b\0", "ab");
        check("plain \\ \" \n \u{1} é", "plain \\ \" \n \u{1} é");
        check("\\u0000 \0 \\\\u0000", "\\u0000  \\\\u0000");
    }

    #[test]
    fn odd_values_do_not_reach_the_columns() {
        let session = r#"{"session_id": "SESS-1", "status": "dreaming", "progress_percentage": 250.4,
            "total_steps": 99999999999, "started_at": "yesterday", "completed_at": "2026-05-01T00:00:00Z"}"#;
        let read =
            |kind, text| -> Value { serde_json::from_str(&fields(kind, text).unwrap()).unwrap() };
        let run = read(
            Kind::Execution,
            r#"{"execution_id": "EXEC-1", "timestamp": "soon", "cost_usd": "much", "latency_ms": 7, "skill": "a/b"}"#,
        );
        assert_eq!(run, json!({ "execution_id": "EXEC-1", "latency_ms": 7 }));
        let fields = read(Kind::Session, session);
        for name in ["status", "total_steps", "started", "session_data"] {
            assert_eq!(fields[name], Value::Null, "{name}");
        }
        assert_eq!(fields["progress"], 100);
        assert_eq!(fields["completed"], "2026-05-01T00:00:00+00:00");
        assert_eq!(
            super::fields(Kind::Memory, "{\"memory_type\": \"odd\"}"),
            None
        );
    }
}
