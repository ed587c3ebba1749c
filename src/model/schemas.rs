//! JSON Schemas of names that are written as text, and of the closed sets of names.
//!
//! A set of words that other programs may extend has its known words as examples, not as an enum.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{ActionType, Kind, LogStatus, MemoryType, Outcome, SessionState, SkillPath};

/// Implements the schema of a text.
macro_rules! text {
    ($type:ident, $about:literal, $examples:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let examples: Vec<&str> = $examples;
                json_schema!({ "type": "string", "description": $about, "examples": examples })
            }
        }
    };
}

text!(
    SkillPath,
    "Skill, as `domain/skill`.",
    vec!["hr/resume-screen"]
);
text!(
    Outcome,
    "Result of an execution; other programs may use other words.",
    vec!["accepted", "rejected", "pending_review", "error"]
);
text!(
    ActionType,
    "Kind of an action; other programs may use other words.",
    Self::NAMES.to_vec()
);
text!(
    LogStatus,
    "Status of an action; other programs may use other words.",
    Self::NAMES.to_vec()
);
text!(
    SessionState,
    "State of a session; other programs may use other words.",
    Self::names().map(|(name, _)| name).collect()
);

/// Implements the schema of a closed set of names.
macro_rules! names {
    ($type:ident) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": Self::ALL.map(Self::name) })
            }
        }
    };
}

names!(Kind);
names!(MemoryType);
