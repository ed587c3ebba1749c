//! Conflicts of a merge: fields for a person to decide, and damage that prevents the merge.

use serde::Serialize;

use crate::model::Kind;

/// Field with open conflicts of an entry: the values of theirs by JSON pointer.
pub(crate) const CONFLICT: &str = "merge_conflict";

/// Field that a person has to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Conflict {
    /// Kind of the record.
    pub kind: Kind,
    /// Id of the record.
    pub id: String,
    /// JSON pointer to the field.
    pub field: String,
}

/// Error that prevents the whole merge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` cannot be merged: {reason}")]
pub struct Unjoinable {
    /// Path of the damaged file.
    pub path: String,
    /// Description of the damage.
    pub reason: String,
}
