//! Stored lessons: a new one among those that say nearly the same.
//!
//! - `new_lesson`: stores a checked lesson among those that are near.
//! - `patterns`: recoveries that nobody has worded, and one at the moment that a hook sees it.
//! - `record`: a success that a program reports, and procedures of other programs.
//! - `tidy`: equal lessons become one.

pub(crate) mod new_lesson;
pub(crate) mod patterns;
pub(crate) mod record;
pub(crate) mod tidy;
