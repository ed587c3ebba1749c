//! Storage of lessons, and of the patterns and procedures beside them.
//!
//! - `advice`: what a lesson or a pattern says to run, and which recoveries that covers.
//! - `words`: checks of the words of a lesson. `support`: what an agent or a model words, against the calls of its
//!   session. `new_lesson`: stores it among the existing ones. `tidy`: equal lessons become one.
//! - `patterns`: recoveries that nobody has worded, also at the moment a hook sees one. `analyst`: procedures of
//!   other programs.
//! - `table`: the derived table that finds lessons for a call. `source_files`: what a lesson was read from.

pub(crate) mod advice;
pub(crate) mod analyst;
pub(crate) mod new_lesson;
pub(crate) mod patterns;
pub(crate) mod source_files;
pub(crate) mod support;
pub(crate) mod table;
pub(crate) mod tidy;
pub(crate) mod words;
