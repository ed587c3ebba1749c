//! Editable fields of each kind, the form of their values, and fields inside the metadata of a memory,
//! which are set by path and checked against the type.
//!
//! Fields outside these tables are not editable: ids, links, times and counts are facts, not opinions. The
//! validation of a rule is a fact too, but a program with tests of its own reports it through an edit.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use memctl_files::json::with_fields;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::{Kind, MemoryType, Shape, ending};
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

/// Returns the editable fields of a kind; the first is its text. The fields of a procedure are inside its
/// `data`, except for its lesson.
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
        Kind::Procedure => &[
            (LESSON, Form::Words),
            ("procedure_name", Form::Words),
            ("semantic_description", Form::Text),
            ("initial_failure_summary", Form::Text),
            ("identified_root_cause", Form::Text),
            ("successful_intervention", Form::Text),
            ("learned_procedure_steps", Form::List),
            ("critical_contextual_cues", Form::List),
            ("example_scenario_abstract", Form::Text),
        ],
        Kind::Memory => &[
            ("content", Form::Words),
            ("memory_type", Form::NoteType),
            (METADATA, Form::Object),
            ("expires_at", Form::Time),
        ],
        Kind::Session => &[],
    }
}

/// Field of a procedure that is beside its `data`.
pub(crate) const LESSON: &str = "lesson";
const METADATA: &str = "metadata";

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

/// Returns the path inside the metadata, or `None` if the name is not such a path.
pub(crate) fn path(name: &str) -> Option<&str> {
    let path = name.strip_prefix(METADATA)?.strip_prefix('.')?;
    (!path.is_empty()).then_some(path)
}

/// Sets single fields in the given or stored metadata, and checks the result against the type.
/// Without a change to the type or the metadata nothing is checked, so a memory that does not fit
/// its type stays editable in its other fields.
pub(crate) fn fit(
    values: &mut Vec<(&'static str, Box<RawValue>)>,
    paths: &[(&str, &str)],
    stored: &Fields,
) -> Result<(), Error> {
    let given = |name: &str| {
        let given = values.iter().find(|(field, _)| *field == name);
        given.map(|(_, value)| value.clone())
    };
    let (new_type, new) = (given("memory_type"), given(METADATA));
    let of = new_type.as_ref().or(stored.get("memory_type"));
    let of: Option<MemoryType> = of.and_then(|of| serde_json::from_str(of.get()).ok());
    let start = new.as_ref().or(stored.get(METADATA));
    let mut text = start.map_or("{}", |raw| raw.get()).to_owned();
    for (path, value) in paths {
        let shape = of.and_then(|of| of.field(path)).map(|field| field.shape);
        text = with(&text, path, &as_json(shape, value)).map_err(|problem| Error::BadMemory {
            memory_type: of.unwrap_or(MemoryType::BrandMemory),
            problems: vec![memctl_redact::redact(&problem).text.into_owned()],
        })?;
    }
    let metadata = RawValue::from_string(text)?;
    if !paths.is_empty() {
        values.retain(|(field, _)| *field != METADATA);
        values.push((METADATA, metadata.clone()));
    }
    let is_whole = new_type.is_some() || new.is_some();
    let Some(memory_type) = of.filter(|_| is_whole || !paths.is_empty()) else {
        return Ok(());
    };
    let mut problems = misfits(memory_type, &metadata);
    // Fixing one field of hand-written metadata does not require fixing all of them.
    if !is_whole {
        let none = RawValue::from_string("{}".to_owned())?;
        let before = stored.get(METADATA).unwrap_or(&none);
        let before = misfits(memory_type, before);
        problems.retain(|problem| !before.contains(problem));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::BadMemory {
        memory_type,
        problems,
    })
}

/// Converts typed input to JSON: a text needs no quotation marks.
fn as_json(shape: Option<Shape>, typed: &str) -> String {
    let is_text = matches!(shape, Some(Shape::Text | Shape::OneOf(_)));
    let json = if is_text {
        serde_json::from_str::<String>(typed).is_ok() || typed.trim() == "null"
    } else {
        serde_json::from_str::<serde::de::IgnoredAny>(typed).is_ok()
    };
    if json {
        typed.trim().to_owned()
    } else {
        json!(typed).to_string()
    }
}

/// Sets the field at a path and leaves every other byte unchanged. Missing parents are created.
/// Fails if the path leads through a value that is not an object.
fn with(object: &str, path: &str, value: &str) -> Result<String, String> {
    let object = if object == "null" { "{}" } else { object };
    let fields: HashMap<String, Box<RawValue>> = serde_json::from_str(object)
        .map_err(|_| format!("`metadata` holds `{object}` where `{path}` was to be set"))?;
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) if !fields.contains_key(path) => (name, rest),
        _ => return Ok(with_fields(object, &[(path, value.to_owned())], 8)),
    };
    let inner = fields.get(name).map_or("{}", |inner| inner.get());
    let inner = with(inner, rest, value)?;
    Ok(with_fields(object, &[(name, inner)], 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_takes_what_it_is_for() {
        let check = |form: Form, given: &str, expected: Option<Value>| {
            assert_eq!(
                form.read(given, DateTime::UNIX_EPOCH).ok(),
                expected,
                "{form:?} {given}"
            );
        };
        check(Form::Words, "Always x", Some(json!("Always x")));
        check(Form::Words, " \n", None);
        check(Form::Words, "<private>x</private>", None);
        check(Form::Text, "", Some(json!("")));
        check(Form::Share, "0.8", Some(json!(0.8)));
        for given in ["1.1", "-0.1", "NaN", "", "high"] {
            check(Form::Share, given, None);
        }
        check(Form::List, "[\"a\"]", Some(json!(["a"])));
        check(Form::List, "[1]", None);
        check(Form::List, "a", None);
        check(Form::Object, "{\"a\": 1}", Some(json!({"a": 1})));
        check(Form::Object, "[1]", None);
        check(Form::Json, "60", Some(json!(60)));
        check(Form::Json, "sixty", None);
        let time = json!("2027-01-31T11:00:00.000000+00:00");
        check(Form::Time, "2027-01-31T12:00:00+01:00", Some(time));
        check(Form::Time, "", Some(Value::Null));
        check(Form::Time, "tomorrow", None);
        check(Form::NoteType, "task_memory", Some(json!("task_memory")));
        check(Form::NoteType, "task", None);
    }

    #[test]
    fn unedited_text_is_read_back_unchanged() {
        let check = |form: Form, stored: &str| {
            let raw = RawValue::from_string(stored.to_owned()).unwrap();
            let text = form.text(Some(&raw));
            let back = form.json(&text, DateTime::UNIX_EPOCH).unwrap();
            let value = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).unwrap();
            assert_eq!(value(&back), value(&raw), "{form:?} {stored}");
        };
        check(Form::Words, "\"a \\\"b\\\"\\nc\"");
        check(Form::Share, "0.75");
        check(Form::List, "[\"a\",\"b\"]");
        check(Form::Object, "{\"z\": 1.0, \"a\": 12345678901234567890123}");
        check(Form::Json, "\"text\"");
        check(Form::Time, "null");
    }

    #[test]
    fn one_field_is_set_and_every_other_byte_stays() {
        let check = |object: &str, path: &str, value: &str, expected: Option<&str>| {
            assert_eq!(with(object, path, value).ok().as_deref(), expected);
        };
        let object = r#"{"a":  1.0, "m": {"x": 1e3,  "y": 2}, "p.q": 0}"#;
        check(
            object,
            "m.x",
            "5",
            Some(r#"{"a":  1.0, "m": {"x": 5,  "y": 2}, "p.q": 0}"#),
        );
        check(
            object,
            "p.q",
            "7",
            Some(r#"{"a":  1.0, "m": {"x": 1e3,  "y": 2}, "p.q": 7}"#),
        );
        check(object, "a.b", "7", None);
        check(
            "{}",
            "a.b",
            "7",
            Some("{\n        \"a\": {\n        \"b\": 7}}"),
        );
        check("[]", "a", "7", None);
    }

    #[test]
    fn texts_need_no_quotation_marks() {
        let check = |shape, typed: &str, expected: &str| {
            assert_eq!(as_json(shape, typed), expected, "{typed}");
        };
        check(Some(Shape::Text), "calm", "\"calm\"");
        check(Some(Shape::Text), "7", "\"7\"");
        check(Some(Shape::Text), "\"calm\"", "\"calm\"");
        check(Some(Shape::Text), "null", "null");
        check(Some(Shape::Number(None)), " 7 ", "7");
        check(Some(Shape::Number(None)), "many", "\"many\"");
        check(Some(Shape::Texts), "[\"a\"]", "[\"a\"]");
        check(None, "7", "7");
        check(None, "seven", "\"seven\"");
    }
}
