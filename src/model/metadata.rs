//! Types of notes, with the schemas of their metadata.
//!
//! The tables of the schemas hold the source document's five and are the only definition. Metadata is checked as JSON
//! text and never rewritten: fields outside the schema are kept byte for byte.
//!
//! Deliberately absent: schemas for fields that users add, and automatic correction of a user's input.

use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::words::{names, schema};

use Shape::{Fields, Number, OneOf, Text, Texts};

names! {
    /// The five types of note, in the order of the source document.
    #[expect(missing_docs, reason = "the names are the definition: they are the source document's")]
    MemoryType {
        BrandMemory = "brand_memory",
        UserPreferences = "user_preferences",
        CompetitiveMemory = "competitive_memory",
        TaskMemory = "task_memory",
        PerformanceMemory = "performance_memory",
    }
}

schema!(MemoryType, { "type": "string", "enum": Self::ALL.map(Self::name) });

/// A field of metadata: its key in the object, `true` if it must be present, and its allowed values.
pub type Field = (&'static str, bool, Shape);

const OPTIONAL: bool = false;
const REQUIRED: bool = true;

/// Allowed values of a metadata field.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// A number of at least 0, and at most the given one; `None` means no upper limit.
    Number(Option<f64>),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// An object with these fields.
    Fields(&'static [Field]),
}

const BRAND: &[Field] = &[
    ("brand_name", OPTIONAL, Text),
    ("industry", OPTIONAL, Text),
    ("target_audience", OPTIONAL, Text),
    ("tone", OPTIONAL, Texts),
    ("keywords", OPTIONAL, Texts),
    ("competitors", OPTIONAL, Texts),
    (
        "source",
        OPTIONAL,
        OneOf(&["user_input", "agent_inferred", "uploaded_doc"]),
    ),
];

const PREFERENCES: &[Field] = &[
    (
        "preference_type",
        REQUIRED,
        OneOf(&["video_format", "actor", "music", "tone", "platform"]),
    ),
    ("confidence_score", REQUIRED, Number(Some(1.0))),
    ("last_updated", REQUIRED, Text),
    (
        "source",
        OPTIONAL,
        OneOf(&["explicit_choice", "inferred_from_usage"]),
    ),
];

const COMPETITIVE: &[Field] = &[
    ("competitor_name", OPTIONAL, Text),
    ("platform", OPTIONAL, OneOf(&["meta", "tiktok", "youtube"])),
    ("ad_id", OPTIONAL, Text),
    (
        "performance_metrics",
        OPTIONAL,
        Fields(&[
            ("engagement_rate", OPTIONAL, Number(None)),
            ("view_count", OPTIONAL, Number(None)),
            ("share_count", OPTIONAL, Number(None)),
        ]),
    ),
    ("date_captured", OPTIONAL, Text),
    ("hook_type", OPTIONAL, Text),
    ("cta_type", OPTIONAL, Text),
];

const TASK: &[Field] = &[
    ("session_id", REQUIRED, Text),
    (
        "task_type",
        REQUIRED,
        OneOf(&[
            "full_agent_run", "research_only", "script_generation", "video_generation",
        ]),
    ),
    (
        "outcome",
        REQUIRED,
        OneOf(&["success", "partial_success", "failure"]),
    ),
    (
        "user_feedback",
        OPTIONAL,
        OneOf(&["positive", "neutral", "negative"]),
    ),
    ("decisions_made", OPTIONAL, Texts),
    ("tools_used", OPTIONAL, Texts),
];

const PERFORMANCE: &[Field] = &[
    ("video_id", REQUIRED, Text),
    ("platform", OPTIONAL, Text),
    (
        "metrics",
        OPTIONAL,
        Fields(&[
            ("views", OPTIONAL, Number(None)),
            ("engagement_rate", OPTIONAL, Number(None)),
            ("conversion_rate", OPTIONAL, Number(None)),
            ("ctr", OPTIONAL, Number(None)),
        ]),
    ),
    ("campaign_context", OPTIONAL, Text),
    ("what_worked", OPTIONAL, Text),
    ("what_didnt_work", OPTIONAL, Text),
];

impl MemoryType {
    /// Returns the fields of the type's schema.
    pub const fn fields(self) -> &'static [Field] {
        match self {
            Self::BrandMemory => BRAND,
            Self::UserPreferences => PREFERENCES,
            Self::CompetitiveMemory => COMPETITIVE,
            Self::TaskMemory => TASK,
            Self::PerformanceMemory => PERFORMANCE,
        }
    }

    /// Returns every violation of the schema in the metadata.
    pub fn check(self, metadata: &RawValue) -> Vec<Misfit> {
        let mut misfits = Vec::new();
        let value = serde_json::from_str(metadata.get()).unwrap_or_default();
        check_value("metadata", Fields(self.fields()), &value, &mut misfits);
        misfits
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a text"),
            Self::Texts => f.write_str("a list of texts"),
            Self::Number(Some(most)) => write!(f, "a number from 0 to {most}"),
            Self::Number(None) => f.write_str("a number, 0 or more"),
            Self::OneOf(names) => write!(f, "one of `{}`", names.join("`, `")),
            Self::Fields(fields) => {
                let names: Vec<&str> = fields.iter().map(|(name, ..)| *name).collect();
                write!(f, "an object, with the fields {}", names.join(", "))
            }
        }
    }
}

/// One violation of a metadata schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Path of the field: `metadata.metrics.views`.
    pub field: String,
    /// The value found, as JSON; `None` if the field is missing.
    pub value: Option<String>,
    /// Description of the allowed values.
    pub allowed: String,
}

impl Misfit {
    /// Returns `true` for a field that is not given.
    pub const fn is_missing(&self) -> bool {
        self.value.is_none()
    }
}

/// Number of characters of a value shown in a message.
const SHOWN: usize = 60;

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, allowed) = (&self.field, &self.allowed);
        match &self.value {
            Some(value) => {
                let cut = value.char_indices().nth(SHOWN);
                let (value, rest) = cut.map_or((value.as_str(), ""), |(at, _)| (&value[..at], "…"));
                write!(f, "`{field}` is `{value}{rest}`, and must be {allowed}")
            }
            None => write!(f, "`{field}` is missing, and must be {allowed}"),
        }
    }
}

fn check_value(path: &str, shape: Shape, value: &Value, misfits: &mut Vec<Misfit>) {
    let fits = match shape {
        Text => value.is_string(),
        Texts => value
            .as_array()
            .is_some_and(|all| all.iter().all(Value::is_string)),
        Number(most) => value
            .as_f64()
            .is_some_and(|n| n >= 0.0 && most.is_none_or(|most| n <= most)),
        OneOf(names) => value.as_str().is_some_and(|text| names.contains(&text)),
        Fields(fields) => {
            let given = fields.iter().filter(|_| value.is_object());
            given.for_each(|field| check_field(path, *field, value, misfits));
            value.is_object()
        }
    };
    if !fits {
        misfits.push(Misfit {
            field: path.to_owned(),
            value: Some(value.to_string()),
            allowed: shape.to_string(),
        });
    }
}

fn check_field(above: &str, field: Field, object: &Value, misfits: &mut Vec<Misfit>) {
    let (name, is_required, shape) = field;
    let path = format!("{above}.{name}");
    match object.get(name) {
        // Programs write `null` for a value that they do not have.
        Some(Value::Null) if !is_required => {}
        Some(value) => check_value(&path, shape, value, misfits),
        None if is_required => misfits.push(Misfit {
            field: path,
            value: None,
            allowed: shape.to_string(),
        }),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misfits(of: MemoryType, json: &str) -> Vec<String> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        of.check(&raw).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn invalid_value_is_named_with_the_allowed_ones() {
        use MemoryType as T;
        let check = |of, json: &str, expected: &[&str]| {
            assert_eq!(misfits(of, json), expected, "{json}");
        };
        check(T::BrandMemory, "{}", &[]);
        check(
            T::BrandMemory,
            r#"{"tone": ["a"], "x": [1], "industry": null}"#,
            &[],
        );
        check(
            T::BrandMemory,
            r#"{"tone": "calm", "source": "user-input", "keywords": ["a", 1]}"#,
            &[
                "`metadata.tone` is `\"calm\"`, and must be a list of texts",
                "`metadata.keywords` is `[\"a\",1]`, and must be a list of texts",
                "`metadata.source` is `\"user-input\"`, and must be one of `user_input`, `agent_inferred`, \
                 `uploaded_doc`",
            ],
        );
        check(
            T::BrandMemory,
            "[]",
            &[
                "`metadata` is `[]`, and must be an object, with the fields brand_name, \
               industry, target_audience, tone, keywords, competitors, source",
            ],
        );
        check(
            T::UserPreferences,
            r#"{"preference_type": "tone", "confidence_score": 1.01, "last_updated": 7}"#,
            &[
                "`metadata.confidence_score` is `1.01`, and must be a number from 0 to 1",
                "`metadata.last_updated` is `7`, and must be a text",
            ],
        );
        for number in ["-0.1", "\"1\"", "null", "[1]"] {
            let json = format!(
                r#"{{"preference_type": "tone", "confidence_score": {number}, "last_updated": ""}}"#
            );
            assert_eq!(misfits(T::UserPreferences, &json).len(), 1, "{number}");
        }
        check(
            T::CompetitiveMemory,
            r#"{"platform": "tikok", "performance_metrics": {"view_count": -1, "other": "x"}}"#,
            &[
                "`metadata.platform` is `\"tikok\"`, and must be one of `meta`, `tiktok`, `youtube`",
                "`metadata.performance_metrics.view_count` is `-1`, and must be a number, 0 or more",
            ],
        );
        check(
            T::TaskMemory,
            r#"{"sesion_id": "s", "outcome": "won"}"#,
            &[
                "`metadata.session_id` is missing, and must be a text",
                "`metadata.task_type` is missing, and must be one of `full_agent_run`, `research_only`, \
                 `script_generation`, `video_generation`",
                "`metadata.outcome` is `\"won\"`, and must be one of `success`, `partial_success`, `failure`",
            ],
        );
        check(
            T::PerformanceMemory,
            r#"{"video_id": "v", "metrics": 5}"#,
            &[
                "`metadata.metrics` is `5`, and must be an object, with the fields \
                 views, engagement_rate, conversion_rate, ctr",
            ],
        );
    }

    #[test]
    fn a_long_value_is_not_repeated_as_a_whole() {
        let json = format!(r#"{{"video_id": [{:?}]}}"#, "ö".repeat(500));
        let text = misfits(MemoryType::PerformanceMemory, &json).remove(0);
        assert!(text.len() < 300 && text.contains('…'), "{text}");
    }

    #[test]
    fn names_are_those_of_the_files() {
        for of in MemoryType::ALL {
            assert_eq!(serde_json::to_value(of).unwrap(), of.name());
        }
    }
}
