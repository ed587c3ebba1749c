//! Storage.

pub(crate) mod neighbours;
pub(crate) mod new_lesson;
pub(crate) mod procedures;
pub(crate) mod record;
pub(crate) mod tidy;
