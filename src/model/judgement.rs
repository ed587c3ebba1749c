//! Judgement of a record that no person has reviewed: keep, discard or merge, and the reason.
//!
//! It is advice for the person who reviews, and never raises the trust of a record.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// Verdict on a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Worth the time of the person who reviews.
    Keep,
    /// Of no use to anybody.
    Discard,
    /// Says the same as another record.
    Merge,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keep => "keep",
            Self::Discard => "discard",
            Self::Merge => "merge",
        })
    }
}

/// Verdict of a model, or of the program itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judgement {
    /// Verdict.
    pub verdict: Verdict,
    /// Id of the record that says the same; empty unless the verdict is [`Verdict::Merge`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub into: String,
    /// Reason, one sentence.
    #[serde(default)]
    pub reason: String,
    /// Author: `offline`, or `provider/model`.
    #[serde(default)]
    pub by: String,
    /// RFC 3339, UTC.
    #[serde(default)]
    pub at: String,
}

impl Judgement {
    /// Returns `true` if the record is of no use, or says the same as another.
    pub fn is_against(&self) -> bool {
        self.verdict != Verdict::Keep
    }
}

/// Reads a judgement; one in another form counts as none, and does not hide the record.
pub(super) fn lenient<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Judgement>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}
