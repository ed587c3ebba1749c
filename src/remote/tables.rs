//! Tables of the database, and the columns of each record kind.
//!
//! A row holds the record as JSON text. The other columns repeat parts of it for readers that use
//! SQL or `PostgREST`. Values that a column cannot hold are replaced by its default.

use chrono::DateTime;
use memctl_files::json::{self, string_field};
use serde_json::{Value, json};
use tokio_postgres::types::ToSql;

use crate::model::{Kind, Memory, Procedure, Record as _, Session};

/// Tables with rows of all users, each with the column with the user whose login wrote a row.
pub(super) const TABLES: [(&str, &str); 8] = [
    ("public.executions", "user_id"),
    ("public.corrections", "user_id"),
    ("public.reflexions", "user_id"),
    ("public.context_eng_memories", "user_id"),
    ("public.agent_memory", "held_by"),
    ("public.agent_sessions", "held_by"),
    ("public.agent_execution_logs", "user_id"),
    ("memctl.audit_events", "held_by"),
];

/// Table of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Columns besides the common ones, each with the field of the record of the same name.
    columns: &'static [Column],
    /// `true` if the content has a vector.
    pub(crate) has_vector: bool,
    /// Column with the user whose login wrote the row; with origin and id, it names the row.
    pub(crate) holder: &'static str,
}

/// Name of a column, its type, and its value in a tombstone; `None` keeps the column, which reveals no
/// content.
type Column = (&'static str, Of, Option<&'static str>);

/// Type of a column.
#[derive(Debug, Clone, Copy)]
enum Of {
    Text,
    Status,
    Flag,
    Number,
    Whole,
    Time,
    /// Time that is now, if the record has none.
    Created,
    Texts,
    Json,
    Object,
}

const NULL: Option<&str> = Some("null");
const KEPT: Option<&str> = None;

const EXECUTION: &[Column] = &[
    ("execution_id", Of::Text, NULL),
    ("timestamp", Of::Time, KEPT),
    ("input_summary", Of::Json, NULL),
    ("output_summary", Of::Json, NULL),
    ("outcome", Of::Text, NULL),
    ("cost_usd", Of::Number, NULL),
    ("latency_ms", Of::Number, NULL),
    ("model_used", Of::Text, NULL),
];

const CORRECTION: &[Column] = &[
    ("correction_id", Of::Text, NULL),
    ("execution_id", Of::Text, NULL),
    ("timestamp", Of::Time, KEPT),
    ("original_output", Of::Json, NULL),
    ("user_correction", Of::Text, NULL),
];

const REFLEXION: &[Column] = &[
    ("reflexion_id", Of::Text, NULL),
    ("created_at", Of::Time, KEPT),
    ("correction_id", Of::Text, NULL),
    ("mistake", Of::Text, NULL),
    ("root_cause", Of::Text, NULL),
    ("rule", Of::Text, NULL),
    ("applies_when", Of::Text, NULL),
    ("confidence", Of::Number, NULL),
    ("validated_by_test", Of::Flag, NULL),
    ("generated_test_ids", Of::Json, NULL),
];

const PROCEDURE: &[Column] = &[
    ("content", Of::Text, NULL),
    ("metadata", Of::Json, NULL),
    ("created_dt", Of::Created, KEPT),
];

const MEMORY: &[Column] = &[
    ("memory_type", Of::Text, KEPT),
    ("content", Of::Text, Some("''")),
    ("metadata", Of::Object, Some("'{}'")),
    ("created_at", Of::Created, KEPT),
    ("expires_at", Of::Time, NULL),
];

const SESSION: &[Column] = &[
    ("status", Of::Status, KEPT),
    ("current_step", Of::Text, NULL),
    ("progress_percentage", Of::Whole, KEPT),
    ("total_steps", Of::Whole, KEPT),
    ("completed_steps", Of::Texts, Some("array[]::text[]")),
    ("error_message", Of::Text, NULL),
    ("session_data", Of::Object, Some("'{}'")),
    ("started_at", Of::Created, KEPT),
    ("completed_at", Of::Time, KEPT),
    ("created_at", Of::Created, KEPT),
];

/// Returns the table of a kind.
pub(crate) fn table(kind: Kind) -> Table {
    let (name, columns, has_vector) = match kind {
        Kind::Execution => ("executions", EXECUTION, false),
        Kind::Correction => ("corrections", CORRECTION, false),
        Kind::Reflexion => ("reflexions", REFLEXION, false),
        Kind::Procedure => ("context_eng_memories", PROCEDURE, true),
        Kind::Memory => ("agent_memory", MEMORY, true),
        Kind::Session => ("agent_sessions", SESSION, false),
    };
    Table {
        name,
        columns,
        has_vector,
        holder: if kind.has_user() {
            "held_by"
        } else {
            "user_id"
        },
    }
}

impl Of {
    /// SQL of the value, in terms of `i`, a row of texts.
    fn sql(self, name: &str) -> String {
        match self {
            Self::Text => format!("i.{name}"),
            Self::Status => format!("coalesce(i.{name}, 'initializing')"),
            Self::Flag => format!("i.{name}::boolean"),
            Self::Number => format!("i.{name}::float8"),
            Self::Whole => format!("i.{name}::integer"),
            Self::Time => format!("i.{name}::timestamptz"),
            Self::Created => format!("coalesce(i.{name}::timestamptz, now())"),
            Self::Texts => format!("array(select jsonb_array_elements_text(i.{name}::jsonb))"),
            Self::Json => format!("i.{name}::jsonb"),
            Self::Object => format!("coalesce(i.{name}::jsonb, '{{}}')"),
        }
    }

    /// Text of the value, if the column can hold it: the files are edited by hand.
    fn fitting(self, value: &Value) -> Option<String> {
        let json = || without_nul(&value.to_string());
        match self {
            Self::Text | Self::Status => value.as_str().map(|text| text.replace('\0', "")),
            Self::Flag => value.is_boolean().then(json),
            Self::Number => value.is_number().then(json),
            Self::Texts => value.is_array().then(json),
            Self::Json => Some(json()),
            Self::Object => (!value.is_null()).then(json),
            Self::Time | Self::Created => value.as_str().and_then(time),
            Self::Whole => {
                let whole = value.as_f64().map(f64::round)?;
                let range = f64::from(i32::MIN)..=f64::from(i32::MAX);
                range.contains(&whole).then(|| whole.to_string())
            }
        }
    }
}

/// Parts of a list in SQL, each behind a comma.
fn list(parts: impl Iterator<Item = String>) -> String {
    parts
        .map(|part| format!(", {part}"))
        .collect::<Vec<_>>()
        .concat()
}

impl Table {
    /// SQL of the rows of this login, after `from`; a condition may follow.
    pub(crate) fn own(self) -> String {
        let Self { name, holder, .. } = self;
        format!("public.{name} where {holder} = (select memctl.current_user_id())")
    }

    /// SQL that inserts rows, and fails if one of them is there. Parameters: see [`parameters`]. A row
    /// belongs to the user that its record names, or else to the login.
    ///
    /// Values are texts, which the server reads as the types of their columns. It parsed a JSON object of
    /// them again for each column: a third of what it took to store a row.
    pub(crate) fn insert(self) -> String {
        let (name, holder) = (self.name, self.holder);
        let columns = self.columns.iter();
        let texts = ["entry_id", "skill", "entry"].into_iter();
        let texts = texts.chain(columns.clone().map(|(name, ..)| *name));
        let texts = texts.chain(self.has_user().then_some("user"));
        let texts = texts
            .zip(2..)
            .map(|(name, n)| format!("unnest(${n}::text[]) as {name}"));
        let texts = texts.collect::<Vec<_>>().join(", ");
        let mut names = list(columns.clone().map(|(name, ..)| (*name).to_owned()));
        let mut values = list(columns.map(|(name, of, _)| of.sql(name)));
        // The defaults of these columns say the same, and would look up the user for each row.
        let me = "(select memctl.current_user_id())";
        names.push_str(", user_id");
        if self.has_user() {
            names = format!("{names}, {holder}");
            values = format!("{values}, coalesce(memctl.host_user(i.user), {me})");
        }
        values = format!("{values}, {me}");
        // In the list of columns, these functions give one row at a time; after `from`, all rows are
        // copied first.
        format!(
            "insert into public.{name} as t (origin, entry_id, skill, entry{names})
             select $1, i.entry_id, i.skill, i.entry{values} from (select {texts}) as i"
        )
    }

    /// SQL that writes rows, with the parameters of [`Self::insert`]. Identical rows are not touched.
    pub(crate) fn upsert(self) -> String {
        let columns = self.columns.iter();
        let sets = list(columns.map(|(name, ..)| format!("{name} = excluded.{name}")));
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
        let cleared = self
            .columns
            .iter()
            .filter_map(|(name, _, cleared)| cleared.map(|value| format!(", {name} = {value}")));
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

/// Returns `true` if a record with this id and text can be stored as a row.
pub(crate) fn is_fit(id: &str, text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    id.len() <= 128
        && id.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && id.bytes().all(plain)
        && !text.contains('\0')
}

/// Texts of a row: id, skill, record, the values of the columns of its table, and for a kind with users
/// the one that the record names.
pub(crate) type Row = Vec<Option<String>>;

/// Turns rows into an array a column.
pub(crate) fn columns(rows: &[Row]) -> Vec<Vec<Option<&str>>> {
    let number = rows.first().map_or(0, Vec::len);
    let column = |n: usize| rows.iter().map(|row| row[n].as_deref()).collect();
    (0..number).map(column).collect()
}

/// Returns the parameters of [`Table::insert`]: the origin, and an array a column.
pub(crate) fn parameters<'p>(
    origin: &'p &str,
    columns: &'p [Vec<Option<&str>>],
) -> Vec<&'p (dyn ToSql + Sync)> {
    let origin: &(dyn ToSql + Sync) = origin;
    let columns = columns.iter().map(|column| column as &(dyn ToSql + Sync));
    std::iter::once(origin).chain(columns).collect()
}

/// Row of a record. That of an unreadable one keeps its text, and cannot be found by its content.
pub(crate) fn row(kind: Kind, id: &str, text: &str) -> Row {
    let blank = || match kind {
        Kind::Memory => json!({"memory_type": "task_memory", "content": ""}),
        _ => Value::Null,
    };
    let fields = document(kind, text).unwrap_or_else(blank);
    let own = |name| string_field(text.as_bytes(), name).map(|value| value.replace('\0', ""));
    let skill = own("skill").filter(|skill| !skill.is_empty());
    let mut row = vec![Some(id.to_owned()), skill, Some(text.to_owned())];
    let table = table(kind);
    let columns = table.columns.iter();
    row.extend(columns.map(|(name, of, _)| of.fitting(fields.get(*name)?)));
    if table.has_user() {
        row.push(own("user_id"));
    }
    row
}

/// Fields of a record, by the names of columns.
fn document(kind: Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::Procedure => {
            let record: Procedure = serde_json::from_str(text).ok()?;
            let document = record.document();
            let data: Value = serde_json::from_str(record.data.get()).ok()?;
            Some(json!({
                "content": record.shown_content(),
                "metadata": {
                    "status": record.status,
                    "data": data,
                    "id": document.id,
                    "skill": document.skill,
                    "trust": document.trust,
                },
                "created_dt": document.created,
            }))
        }
        Kind::Memory => {
            let record: Memory = serde_json::from_str(text).ok()?;
            serde_json::to_value(record).ok()
        }
        Kind::Session => {
            let mut record: Session = serde_json::from_str(text).ok()?;
            let progress = record.progress_percentage;
            record.progress_percentage = progress.map(|percent| percent.clamp(0.0, 100.0));
            let is_known = record.status.is_known();
            let mut fields = serde_json::to_value(record).ok()?;
            if !is_known {
                fields["status"] = Value::Null;
            }
            Some(fields)
        }
        // Each column has the value of the field of its name.
        Kind::Execution | Kind::Correction | Kind::Reflexion => {
            let columns = table(kind).columns;
            let named = |key: &str| columns.iter().any(|(name, ..)| key == *name);
            let fields = json::fields(text.as_bytes()).filter(|(key, _)| named(key));
            let fields = fields.filter_map(|(key, value)| {
                Some((
                    key.into_owned(),
                    serde_json::from_str(text.get(value)?).ok()?,
                ))
            });
            Some(Value::Object(fields.collect()))
        }
    }
}

/// Normalised RFC 3339 time; `None` if `text` is invalid.
pub(crate) fn time(text: &str) -> Option<String> {
    DateTime::parse_from_rfc3339(text)
        .ok()
        .map(|at| at.to_rfc3339())
}

/// Removes NUL escapes, which the server's JSON does not support. After an escaped backslash,
/// `u0000` is ordinary text.
pub(crate) fn without_nul(json: &str) -> String {
    let parts = json.split(r"\\").map(|part| part.replace(r"\u0000", ""));
    parts.collect::<Vec<_>>().join(r"\\")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
    fn record_that_fits_no_row_is_left_out() {
        let check = |id: &str, text: &str, expected: bool| {
            assert_eq!(is_fit(id, text), expected, "{id:?} {text:?}");
        };
        check("CORR-001", "{}", true);
        check("EXEC-20260220124341-a1b2c3", "{}", true);
        check("", "{}", false);
        check("-x", "{}", false);
        check("a b", "{}", false);
        check(&"x".repeat(129), "{}", false);
        check("CORR-001", "{\"a\": \"\0\"}", false);
    }

    #[test]
    fn odd_values_do_not_reach_the_columns() {
        let session = r#"{"session_id": "SESS-1", "status": "dreaming", "progress_percentage": 250.4,
            "total_steps": 99999999999, "started_at": "yesterday", "completed_at": "2026-05-01T00:00:00Z"}"#;
        let read = |kind, text| -> BTreeMap<&str, String> {
            let columns = table(kind).columns.iter().map(|(name, ..)| *name);
            let names = ["id", "skill", "entry"].into_iter().chain(columns);
            let values = names.zip(row(kind, "X-1", text));
            values
                .filter_map(|(name, value)| Some((name, value?)))
                .collect()
        };
        let text = r#"{"execution_id": "EXEC-1", "timestamp": "soon", "cost_usd": "much", "latency_ms": 7,
            "outcome": "a\u0000", "input_summary": {"b": "\u0000"}, "skill": "a/b\u0000", "cost": NaN}"#;
        let run = read(Kind::Execution, text);
        let expected = [
            ("entry", text),
            ("execution_id", "EXEC-1"),
            ("id", "X-1"),
            ("input_summary", r#"{"b":""}"#),
            ("latency_ms", "7"),
            ("outcome", "a"),
            ("skill", "a/b"),
        ];
        assert_eq!(
            run,
            expected
                .map(|(name, value)| (name, value.to_owned()))
                .into()
        );
        let fields = read(Kind::Session, session);
        for name in ["status", "total_steps", "started_at", "session_data"] {
            assert_eq!(fields.get(name), None, "{name}");
        }
        assert_eq!(fields["progress_percentage"], "100");
        assert_eq!(fields["completed_at"], "2026-05-01T00:00:00+00:00");
        let note = read(Kind::Memory, "{\"memory_type\": \"odd\"}");
        assert_eq!(
            (note["memory_type"].as_str(), note["content"].as_str()),
            ("task_memory", "")
        );
    }
}
