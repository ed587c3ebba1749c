//! Storage of lessons, and of the patterns and procedures beside them.
//!
//! - `new_lesson`: stores a checked lesson with its relation to similar ones; equal lessons become one.
//! - `patterns`: recoveries that nobody has worded, also at the moment a hook sees one.
//! - `record`: successes that a program reports, and procedures of other programs.

pub(crate) mod new_lesson;
pub(crate) mod patterns;
pub(crate) mod record;
