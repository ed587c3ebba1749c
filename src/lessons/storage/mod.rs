//! Stored lessons: a new one among those that say nearly the same.
//!
//! - `new_lesson`: stores a checked lesson, and lists lessons. `neighbours`: lessons that are near.
//! - `procedures`: procedures of other programs. `record`: a success that a program reports.
//! - `tidy`: equal lessons become one.

pub(crate) mod neighbours;
pub(crate) mod new_lesson;
pub(crate) mod procedures;
pub(crate) mod record;
pub(crate) mod tidy;
