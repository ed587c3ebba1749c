//! Stored lessons: a new one among those that say nearly the same.
//!
//! - `new_lesson`: stores a checked lesson among those that are near; equal ones become one.
//! - `patterns`: recoveries that nobody has worded, and one at the moment that a hook sees it.
//! - `record`: a success that a program reports, and procedures of other programs.

pub(crate) mod new_lesson;
pub(crate) mod patterns;
pub(crate) mod record;
