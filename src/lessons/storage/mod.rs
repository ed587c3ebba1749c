//! Stored lessons: a new one among those that say nearly the same.
//!
//! - `new_lesson`: stores a checked lesson, and lists lessons. `neighbours`: lessons that are near.
//! - `patterns`: recoveries that nobody has worded, and one at the moment that a hook sees it.
//! - `procedures`: procedures of other programs. `record`: a success that a program reports.
//! - `tidy`: equal lessons become one.

pub(crate) mod neighbours;
pub(crate) mod new_lesson;
pub(crate) mod patterns;
pub(crate) mod procedures;
pub(crate) mod record;
pub(crate) mod tidy;
