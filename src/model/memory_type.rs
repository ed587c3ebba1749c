//! Types of note.

use serde::{Deserialize, Serialize};

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
