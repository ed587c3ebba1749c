//! Lessons: what recoveries and detours taught, who words it, and when an agent is told it.
//!
//! Worded by an agent, a model or a person, and checked by the program:
//! - `session_calls`: calls of a running session, as the hooks append them. `found_out`: what it found
//!   out, by its calls alone.
//! - `question`: the question to the agent. `asking`: when it is asked, and what became of it.
//! - `lesson_args`: a lesson as an agent writes it. `checks`, `call_match`: its mechanical checks.
//! - `new_lesson`: storage of a checked lesson. `neighbours`: lessons that say nearly the same. `list`:
//!   lessons for people. `tidy`: equal lessons become one.
//! - `session_files`, `digest`, `past_sessions`: questions to a model about past sessions.
//!
//! Seen by the program, and told:
//! - `call`: a call in comparable form. `change`: small difference of two. `pattern`: when a recovery
//!   may be told unasked. `hazard`: changes that never are.
//! - `episodes`: storage of recoveries. `trace`: recent steps of a running session.
//! - `table`, `matching`: lessons and patterns for a failing call, and before a call. `cues`:
//!   procedures that another program wrote.
//! - `here`: the place that a session works in.
//! - `hint`, `rendering`, `shown`: what is shown at a call, its text, and what became of it.
//! - `telling`: texts for an agent. `evidence`: whether a call follows what was told.
//!
//! Nothing here puts a lesson into words.

pub(crate) mod asking;
pub(crate) mod call;
pub(crate) mod call_match;
pub(crate) mod change;
pub(crate) mod checks;
pub(crate) mod cues;
pub(crate) mod digest;
pub(crate) mod episodes;
pub(crate) mod evidence;
pub(crate) mod found_out;
pub(crate) mod hazard;
pub(crate) mod here;
pub(crate) mod hint;
pub(crate) mod lesson_args;
pub(crate) mod list;
pub(crate) mod matching;
pub(crate) mod neighbours;
pub(crate) mod new_lesson;
pub mod past_sessions;
pub mod pattern;
pub(crate) mod question;
pub(crate) mod rendering;
pub(crate) mod session_calls;
pub(crate) mod session_files;
pub(crate) mod shown;
pub(crate) mod table;
pub(crate) mod telling;
pub(crate) mod tidy;
pub(crate) mod trace;

pub use asking::{Asking, Marks};
pub use checks::Refusal;
pub use lesson_args::{LessonArgs, carries_lessons};
pub use list::{LessonRow, list};
pub use neighbours::Neighbour;
pub use new_lesson::StoredLesson;
pub use question::{AnswerBy, PROMPT};
pub use session_calls::keep_call;
pub use tidy::{TidyReport, tidy};
