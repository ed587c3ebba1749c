//! Typed notes that users write.
//!
//! Types of note.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::kind::{Kind, Record, one_layout};
use crate::model::lenient;
use crate::model::trust::Trust;

/// A typed note: an entry of `memories.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Memory {
    /// `MEM-{NNN}`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub id: String,
    /// Id of the user; `None` for the owner of the files.
    #[serde(default, deserialize_with = "lenient::name", skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Type of the note.
    pub memory_type: MemoryType,
    /// Text of the note.
    #[serde(default, deserialize_with = "lenient::text")]
    pub content: String,
    /// Fields of the type's schema, and any others that were given.
    #[serde(default = "lenient::null")]
    pub metadata: Box<RawValue>,
    /// RFC 3339, UTC.
    #[serde(default, deserialize_with = "lenient::text")]
    pub created_at: String,
    /// RFC 3339, UTC.
    #[serde(default, deserialize_with = "lenient::text")]
    pub updated_at: String,
    /// RFC 3339, UTC; `None` means never.
    #[serde(default, deserialize_with = "lenient::text_or_none")]
    pub expires_at: Option<String>,
    /// `observed` if imported from another memory, `approved` if a user has approved the import;
    /// empty if a user entered the note here.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub trust: String,
}

impl Record for Memory {
    const KIND: Kind = Kind::Memory;

    fn id(&self) -> &str {
        &self.id
    }

    fn set_id(&mut self, id: String) {
        self.id = id;
    }

    fn skill(&self) -> Option<&str> {
        None
    }

    fn content(&self) -> String {
        self.content.clone()
    }

    fn created(&self) -> &str {
        &self.created_at
    }

    fn trust(&self) -> Trust {
        match self.trust.as_str() {
            "" | "user" => Trust::User,
            "approved" => Trust::Approved,
            // An unknown word gives no trust.
            _ => Trust::Observed,
        }
    }

    fn claims(&self) -> Vec<String> {
        let metadata = one_layout(&self.metadata);
        let kind = self.memory_type.name().to_owned();
        vec![kind, self.content.clone(), metadata]
    }

    fn expires(&self) -> Option<&str> {
        self.expires_at.as_deref()
    }

    fn memory_type(&self) -> Option<MemoryType> {
        Some(self.memory_type)
    }

    fn user_id(&self) -> Option<&str> {
        self.user_id.as_deref()
    }

    fn set_user_id(&mut self, id: &str) {
        self.user_id = Some(id.to_owned());
    }
}

/// The five types of note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the names are the definition: they are the source document's"
)]
pub enum MemoryType {
    BrandMemory,
    UserPreferences,
    CompetitiveMemory,
    TaskMemory,
    PerformanceMemory,
}

impl MemoryType {
    /// All types, in the order of the source document.
    pub const ALL: [Self; 5] = [
        Self::BrandMemory,
        Self::UserPreferences,
        Self::CompetitiveMemory,
        Self::TaskMemory,
        Self::PerformanceMemory,
    ];

    /// Returns the name, as in `--type task_memory` and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BrandMemory => "brand_memory",
            Self::UserPreferences => "user_preferences",
            Self::CompetitiveMemory => "competitive_memory",
            Self::TaskMemory => "task_memory",
            Self::PerformanceMemory => "performance_memory",
        }
    }
}
