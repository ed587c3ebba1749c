//! Metadata schemas of the memory types: the source document's five schemas as tables.
//!
//! These tables are the only definition. Validation, `memory add --help` and the test that compares
//! them with `docs/memories.md` read them.
//!
//! Deliberately absent: schemas for fields that users add.

mod misfit;

use std::fmt;

use super::memory::MemoryType;

pub use misfit::Misfit;

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

use Shape::{Fields, Number, OneOf, Text, Texts};

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

    /// Returns the field at a path of names separated by dots: `metrics.views`.
    pub fn field(self, path: &str) -> Option<&'static MetadataField> {
        let mut fields = self.fields();
        let mut found = None;
        for name in path.split('.') {
            let field = fields.iter().find(|field| field.name == name)?;
            fields = match field.shape {
                Fields(inner) => inner,
                _ => &[],
            };
            found = Some(field);
        }
        found
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
