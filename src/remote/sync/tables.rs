//! Table and columns of each record kind.
//!
//! A row holds the record as JSON text. The other columns repeat parts of it for readers that use
//! SQL or `PostgREST`. Values that a column cannot hold are replaced by its default.

use chrono::DateTime;
use serde_json::value::RawValue;
use serde_json::{Value, json};

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

/// User of the rows of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowUser {
    /// The user of the login.
    Login,
    /// The user that the record names, if it names one: the memory has several users.
    Record,
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

const fn plain(name: &'static str) -> Table {
    Table {
        name,
        columns: &[],
        has_vector: false,
        holder: "user_id",
    }
}

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
        Kind::Execution => plain("executions"),
        Kind::Correction => plain("corrections"),
        Kind::Reflexion => plain("reflexions"),
        Kind::Procedure => of_seed("context_eng_memories", PROCEDURE, true),
        Kind::Memory => of_seed("agent_memory", MEMORY, true),
        Kind::Session => of_seed("agent_sessions", SESSION, false),
    }
}

impl Table {
    /// Number of parameters of [`Self::insert`] and [`Self::upsert`].
    pub(crate) const fn parameters(self) -> usize {
        if self.columns.is_empty() { 4 } else { 5 }
    }

    /// SQL that inserts rows, and fails if one of them is there. Parameters: origin, and arrays of
    /// ids, skills, texts and, if the table has extra columns, JSON objects for them.
    pub(crate) fn insert(self, user: RowUser) -> String {
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
        values = if self.sets_user(user) {
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
        let rows = "unnest($2::text[]) as entry_id, unnest($3::text[]) as skill, unnest($4::text[]) as entry";
        let (more, fields) = if self.columns.is_empty() {
            ("", "")
        } else {
            (
                ", unnest($5::text[]) as fields",
                "cross join lateral (select i.fields::jsonb as f) as x",
            )
        };
        format!(
            "insert into public.{name} as t (origin, entry_id, skill, entry{names})
             select $1, i.entry_id, nullif(i.skill, ''), i.entry{values}
             from (select {rows}{more}) as i
             {fields}"
        )
    }

    /// SQL that writes rows, with the parameters of [`Self::insert`]. Identical rows are not touched.
    pub(crate) fn upsert(self, user: RowUser) -> String {
        let columns = self.columns.iter();
        let sets = columns.map(|column| format!(", {0} = excluded.{0}", column.name));
        let sets: String = sets.collect();
        let (set_user, is_other_user) = if self.sets_user(user) {
            (
                ", user_id = excluded.user_id",
                " or t.user_id <> excluded.user_id",
            )
        } else {
            ("", "")
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
             where t.hash is distinct from excluded.hash or t.deleted_at is not null{is_other_user}",
            self.insert(user),
            self.holder
        )
    }

    /// Returns `true` if rows get the user that their record names.
    fn sets_user(self, user: RowUser) -> bool {
        user == RowUser::Record && self.holder != "user_id"
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

/// JSON object for the columns of a record, with the user that the record names. A record that
/// cannot be read gets defaults.
pub(crate) fn fields_with_user(kind: Kind, text: &str) -> String {
    let mut fields = columns(kind, text).unwrap_or_else(|| blank(kind));
    let user = memctl_files::json::string_field(text.as_bytes(), "user_id");
    if let Some(user) = user.filter(|_| kind.has_user()) {
        fields["user"] = Value::from(user);
    }
    without_nul(&fields.to_string())
}

/// JSON object for the columns of a record; `None` if the table has extra columns and the text is
/// not a valid record of its kind.
pub(crate) fn fields(kind: Kind, text: &str) -> Option<String> {
    Some(without_nul(&columns(kind, text)?.to_string()))
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
        Kind::Execution | Kind::Correction | Kind::Reflexion => {
            json!({})
        }
    };
    Some(fields)
}

/// JSON object for an unreadable record: the row keeps its text and cannot be found by content.
fn blank(kind: Kind) -> Value {
    match kind {
        Kind::Memory => json!({ "memory_type": "task_memory", "content": "" }),
        _ => json!({}),
    }
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
        let fields: Value = serde_json::from_str(&fields(Kind::Session, session).unwrap()).unwrap();
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
