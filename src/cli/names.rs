//! Values of options that name a kind, a memory type or a trust level.
//!
//! An option is parsed into the type of the records. This file adds the plurals and the
//! descriptions that only the command line has.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::model::{Kind, MemoryType, Trust};

/// Kind of record, in singular or plural; a rule is also a reflexion, as in the files.
impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.noun());
        Some(value.aliases([self.nouns(), self.name(), self.plural()]))
    }
}

impl ValueEnum for MemoryType {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let about = match self {
            Self::BrandMemory => "Voice, messages and customers of a brand",
            Self::UserPreferences => "Preferences of a user",
            Self::CompetitiveMemory => "Actions of competitors, and their results",
            Self::TaskMemory => "Tasks, decisions and their results; expires after 90 days",
            Self::PerformanceMemory => "Performance figures of published work",
        };
        Some(PossibleValue::new(self.name()).help(about))
    }
}

impl ValueEnum for Trust {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Observed, Self::Approved, Self::User]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let about = match self {
            Self::Observed => "Extracted from tool output",
            Self::Approved => "Observed, and approved by a person",
            Self::User => "Written by a person",
        };
        Some(PossibleValue::new(self.name()).help(about))
    }
}
