//! Typed notes that users write.
//!
//! Types of note.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::kind::{Kind, Record, Trust, one_layout};
use crate::model::lenient;
use crate::model::words::{names, schema};

/// A typed note: an entry of `memories.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Memory {
    /// `MEM-{NNN}`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub id: String,
    /// Id of the user; `None` for the owner of the files.
    #[serde(
        default,
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub user_id: Option<String>,
    /// Type of the note.
    pub memory_type: MemoryType,
    /// Text of the note.
    #[serde(default, deserialize_with = "lenient::text")]
    pub content: String,
    /// Fields of the type's schema, and any others that were given.
    #[serde(default)]
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
