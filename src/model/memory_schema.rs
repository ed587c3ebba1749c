//! Metadata schemas of the memory types, as tables, and the validation of metadata.
//!
//! The tables hold the source document's five schemas and are the only definition: validation and `memory
//! add --help` read them. Metadata is checked as JSON text and never rewritten: fields outside the schema
//! are kept byte for byte.
//!
//! Deliberately absent: schemas for fields that users add, and automatic correction of a user's input.

use std::borrow::Cow;
use std::fmt;

use memctl_files::json;
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

/// A field of metadata.
#[derive(Debug, Clone, Copy)]
pub struct MetadataField {
    /// Key in the object.
    pub name: &'static str,
    /// Allowed values.
    pub shape: Shape,
    /// `true` if the field must be present.
    pub is_required: bool,
}

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
    /// An object with these fields, all optional.
    Fields(&'static [MetadataField]),
}

const fn optional(name: &'static str, shape: Shape) -> MetadataField {
    MetadataField {
        name,
        shape,
        is_required: false,
    }
}

const fn required(name: &'static str, shape: Shape) -> MetadataField {
    MetadataField {
        name,
        shape,
        is_required: true,
    }
}

const BRAND: &[MetadataField] = &[
    optional("brand_name", Text),
    optional("industry", Text),
    optional("target_audience", Text),
    optional("tone", Texts),
    optional("keywords", Texts),
    optional("competitors", Texts),
    optional(
        "source",
        OneOf(&["user_input", "agent_inferred", "uploaded_doc"]),
    ),
];

const PREFERENCES: &[MetadataField] = &[
    required(
        "preference_type",
        OneOf(&["video_format", "actor", "music", "tone", "platform"]),
    ),
    required("confidence_score", Number(Some(1.0))),
    required("last_updated", Text),
    optional("source", OneOf(&["explicit_choice", "inferred_from_usage"])),
];

const COMPETITIVE: &[MetadataField] = &[
    optional("competitor_name", Text),
    optional("platform", OneOf(&["meta", "tiktok", "youtube"])),
    optional("ad_id", Text),
    optional(
        "performance_metrics",
        Fields(&[
            optional("engagement_rate", Number(None)),
            optional("view_count", Number(None)),
            optional("share_count", Number(None)),
        ]),
    ),
    optional("date_captured", Text),
    optional("hook_type", Text),
    optional("cta_type", Text),
];

const TASK: &[MetadataField] = &[
    required("session_id", Text),
    required(
        "task_type",
        OneOf(&[
            "full_agent_run", "research_only", "script_generation", "video_generation",
        ]),
    ),
    required("outcome", OneOf(&["success", "partial_success", "failure"])),
    optional("user_feedback", OneOf(&["positive", "neutral", "negative"])),
    optional("decisions_made", Texts),
    optional("tools_used", Texts),
];

const PERFORMANCE: &[MetadataField] = &[
    required("video_id", Text),
    optional("platform", Text),
    optional(
        "metrics",
        Fields(&[
            optional("views", Number(None)),
            optional("engagement_rate", Number(None)),
            optional("conversion_rate", Number(None)),
            optional("ctr", Number(None)),
        ]),
    ),
    optional("campaign_context", Text),
    optional("what_worked", Text),
    optional("what_didnt_work", Text),
];

impl MemoryType {
    /// Returns the fields of the type's schema.
    pub const fn fields(self) -> &'static [MetadataField] {
        match self {
            Self::BrandMemory => BRAND,
            Self::UserPreferences => PREFERENCES,
            Self::CompetitiveMemory => COMPETITIVE,
            Self::TaskMemory => TASK,
            Self::PerformanceMemory => PERFORMANCE,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a text"),
            Self::Texts => f.write_str("a list of texts"),
            Self::Number(Some(most)) => write!(f, "a number from 0 to {most}"),
            Self::Number(None) => f.write_str("a number, 0 or more"),
            Self::OneOf(names) => {
                for (i, name) in names.iter().enumerate() {
                    let before = match i {
                        0 => "",
                        i if i + 1 == names.len() => " or ",
                        _ => ", ",
                    };
                    write!(f, "{before}`{name}`")?;
                }
                Ok(())
            }
            Self::Fields(fields) => {
                f.write_str("an object with ")?;
                for (i, field) in fields.iter().enumerate() {
                    write!(f, "{}`{}`", if i == 0 { "" } else { ", " }, field.name)?;
                }
                Ok(())
            }
        }
    }
}

impl MemoryType {
    /// Returns every violation of the schema in the metadata.
    pub fn check(self, metadata: &RawValue) -> Vec<Misfit> {
        let mut misfits = Vec::new();
        check_fields(
            "metadata",
            self.fields(),
            self.name(),
            metadata.get(),
            &mut misfits,
        );
        misfits
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
        let Self {
            field,
            value,
            allowed,
        } = self;
        match value {
            Some(value) => {
                let cut = value.char_indices().nth(SHOWN);
                let (value, rest) = cut.map_or((value.as_str(), ""), |(at, _)| (&value[..at], "…"));
                write!(f, "`{field}` is `{value}{rest}`, and must be {allowed}")
            }
            None => write!(f, "`{field}` is missing, and must be {allowed}"),
        }
    }
}

fn check_fields(
    path: &str,
    fields: &[MetadataField],
    of: &str,
    object: &str,
    misfits: &mut Vec<Misfit>,
) {
    let misfit = |field: String, value: &str, allowed: String| Misfit {
        field,
        value: Some(value.to_owned()),
        allowed,
    };
    let Some(given) = pairs(object) else {
        let names: Vec<_> = fields.iter().map(|field| field.name).collect();
        let allowed = format!("an object, with the fields of {of}: {}", names.join(", "));
        misfits.push(misfit(path.to_owned(), object, allowed));
        return;
    };
    for (i, (name, value)) in given.iter().enumerate() {
        if given[..i].iter().any(|(other, _)| other == name) {
            let allowed = "given only once".to_owned();
            misfits.push(misfit(format!("{path}.{name}"), value, allowed));
        }
    }
    for field in fields {
        let path = format!("{path}.{}", field.name);
        let value = given.iter().rev().find(|(name, _)| name == field.name);
        match value {
            // Programs write `null` for a value that they do not have.
            Some((_, value)) if *value == "null" && !field.is_required => {}
            Some((_, value)) => check_value(&path, field.shape, value, misfits),
            None if field.is_required => misfits.push(Misfit {
                field: path,
                value: None,
                allowed: field.shape.to_string(),
            }),
            None => {}
        }
    }
}

fn check_value(path: &str, shape: Shape, value: &str, misfits: &mut Vec<Misfit>) {
    let text = serde_json::from_str::<String>(value).ok();
    let fits = match shape {
        Text => text.is_some(),
        Texts => serde_json::from_str::<Vec<String>>(value).is_ok(),
        Number(most) => is_number(value, most),
        OneOf(names) => text.is_some_and(|text| names.contains(&text.as_str())),
        Fields(fields) => return check_fields(path, fields, path, value, misfits),
    };
    if !fits {
        misfits.push(Misfit {
            field: path.to_owned(),
            value: Some(value.to_owned()),
            allowed: shape.to_string(),
        });
    }
}

fn is_number(json: &str, most: Option<f64>) -> bool {
    let number = serde_json::from_str::<f64>(json);
    number.is_ok_and(|n| n.is_finite() && n >= 0.0 && most.is_none_or(|most| n <= most))
}

/// Returns the fields of an object in order, including duplicates; `None` if the value is not an
/// object.
fn pairs(value: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    let fields = json::fields(value.as_bytes());
    let pairs = fields.map(|(name, span)| (name, &value[span])).collect();
    value.starts_with('{').then_some(pairs)
}

#[cfg(test)]
mod tests_of_misfit {
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
                "`metadata.keywords` is `[\"a\", 1]`, and must be a list of texts",
                "`metadata.source` is `\"user-input\"`, and must be `user_input`, `agent_inferred` or \
                 `uploaded_doc`",
            ],
        );
        check(
            T::BrandMemory,
            "[]",
            &[
                "`metadata` is `[]`, and must be an object, with the fields of brand_memory: brand_name, \
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
                "`metadata.platform` is `\"tikok\"`, and must be `meta`, `tiktok` or `youtube`",
                "`metadata.performance_metrics.view_count` is `-1`, and must be a number, 0 or more",
            ],
        );
        check(
            T::TaskMemory,
            r#"{"sesion_id": "s", "outcome": "won"}"#,
            &[
                "`metadata.session_id` is missing, and must be a text",
                "`metadata.task_type` is missing, and must be `full_agent_run`, `research_only`, \
                 `script_generation` or `video_generation`",
                "`metadata.outcome` is `\"won\"`, and must be `success`, `partial_success` or `failure`",
            ],
        );
        check(
            T::PerformanceMemory,
            r#"{"video_id": "v", "video_id": "w", "metrics": 5}"#,
            &[
                "`metadata.video_id` is `\"w\"`, and must be given only once",
                "`metadata.metrics` is `5`, and must be an object, with the fields of metadata.metrics: \
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
