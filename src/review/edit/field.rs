//! Editable fields of each kind, and the form of their values. The metadata of a memory is checked against its type.
//!
//! Fields outside these tables are not editable: ids, links, times and counts are facts, not opinions. The
//! validation of a rule is a fact too, but a program with tests of its own reports it through an edit.

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::{Kind, MemoryType, ending};
use crate::notes::remember::{misfits, timestamp};
use crate::review::edit::Fields;
use crate::store::workspace::Error;

/// Form of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text that is not empty.
    Words,
    /// Any text.
    Text,
    /// Number from 0 to 1.
    Share,
    /// `true` or `false`.
    Flag,
    /// JSON array of strings.
    List,
    /// JSON object.
    Object,
    /// Any JSON value.
    Json,
    /// RFC 3339 time, a date or a span from now, or empty.
    Time,
    /// One of the five types of memory.
    NoteType,
}

/// Editable field: its name and the form of its values.
pub(crate) type Field = (&'static str, Form);

/// Returns the editable fields of a kind; the first is its text.
pub(crate) const fn editable(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Execution => &[("reviewer_notes", Form::Text)],
        Kind::Correction => &[
            ("user_correction", Form::Words),
            ("expected_output", Form::Json),
        ],
        Kind::Reflexion => &[
            ("rule", Form::Words),
            ("applies_when", Form::Text),
            ("mistake", Form::Text),
            ("root_cause", Form::Text),
            ("confidence", Form::Share),
            ("validated_by_test", Form::Flag),
            ("generated_test_ids", Form::List),
        ],
        Kind::Procedure => &[("lesson", Form::Words)],
        Kind::Memory => &[
            ("content", Form::Words),
            (MEMORY_TYPE, Form::NoteType),
            (METADATA, Form::Object),
            ("expires_at", Form::Time),
        ],
        Kind::Session => &[],
    }
}

const METADATA: &str = "metadata";
const MEMORY_TYPE: &str = "memory_type";

impl Form {
    /// Parses the given value, or returns the form that it should have.
    fn read(self, given: &str, now: DateTime<Utc>) -> Result<Value, &'static str> {
        let given_json = || serde_json::from_str::<Value>(given);
        match self {
            Self::Words if memctl_redact::says_nothing(&memctl_redact::redact(given).text) => {
                Err("it must say something")
            }
            Self::Words | Self::Text => Ok(json!(given)),
            Self::Share => match given.trim().parse::<f64>() {
                Ok(share) if (0.0..=1.0).contains(&share) => Ok(json!(share)),
                _ => Err("it must be a number from 0 to 1"),
            },
            Self::Flag => match given.trim().parse::<bool>() {
                Ok(flag) => Ok(json!(flag)),
                Err(_) => Err("it must be true or false"),
            },
            Self::List => match serde_json::from_str::<Vec<String>>(given) {
                Ok(texts) => Ok(json!(texts)),
                Err(_) => Err("it must be a JSON array of texts, as in `[\"first\", \"second\"]`"),
            },
            Self::Object => match serde_json::from_str::<Map<String, Value>>(given) {
                Ok(_) => given_json().map_err(|_| "it must be a JSON object"),
                Err(_) => Err("it must be a JSON object, as in `{\"team\": \"sales\"}`"),
            },
            Self::Json => {
                given_json().map_err(|_| "it must be JSON; texts stand in quotation marks")
            }
            Self::Time => match given.trim() {
                "" | "null" => Ok(Value::Null),
                time => Ok(json!(ending(time, now)?.map(timestamp))),
            },
            Self::NoteType => serde_json::from_value::<MemoryType>(json!(given.trim()))
                .map(|value| json!(value))
                .map_err(|_| {
                    "it must be brand_memory, user_preferences, competitive_memory, task_memory or \
                     performance_memory"
                }),
        }
    }

    /// Returns the value as JSON text. JSON input keeps its number format and key order.
    pub(crate) fn json(
        self,
        given: &str,
        now: DateTime<Utc>,
    ) -> Result<Box<RawValue>, &'static str> {
        let value = self.read(given, now)?;
        let text = match self {
            Self::Object | Self::Json => given.trim().to_owned(),
            _ => value.to_string(),
        };
        RawValue::from_string(text).map_err(|_| "it must be JSON")
    }

    /// Returns a stored value as text to edit; the inverse of [`Self::json`].
    pub(crate) fn text(self, stored: Option<&RawValue>) -> String {
        let Some(stored) = stored else {
            return String::new();
        };
        match serde_json::from_str::<Value>(stored.get()) {
            Ok(Value::String(text)) if self != Self::Json => text,
            Ok(Value::Null) => String::new(),
            Ok(value @ (Value::Array(_) | Value::Object(_))) if self == Self::List => {
                serde_json::to_string_pretty(&value).unwrap_or_default()
            }
            _ => stored.get().to_owned(),
        }
    }
}

/// Checks a given type or given metadata of a memory against the other one. Without either nothing is checked, so a
/// memory that does not fit its type stays editable in its other fields.
pub(crate) fn fit(values: &[(&'static str, Box<RawValue>)], stored: &Fields) -> Result<(), Error> {
    let given = |name: &str| {
        let given = values.iter().find(|(field, _)| *field == name);
        given.map(|(_, value)| value)
    };
    let (new_type, new) = (given(MEMORY_TYPE), given(METADATA));
    if new_type.is_none() && new.is_none() {
        return Ok(());
    }
    let of = new_type.or(stored.get(MEMORY_TYPE));
    let of: Option<MemoryType> = of.and_then(|of| serde_json::from_str(of.get()).ok());
    let Some((memory_type, metadata)) = of.zip(new.or(stored.get(METADATA))) else {
        return Ok(());
    };
    let problems = misfits(memory_type, metadata);
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::BadMemory {
        memory_type,
        problems,
    })
}
