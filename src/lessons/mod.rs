//! Everything of a lesson that an agent or a model words: the calls of a session, the question, the
//! checks of the answer, and its storage.
//!
//! - `session_calls`: calls of a running session, as the hooks append them.
//! - `found_out`: what a session found out, by its calls alone.
//! - `question`: the question to the agent. `asking`: when it is asked, and what became of it.
//! - `lesson_args`: a lesson as an agent writes it. `checks`, `call_match`: its mechanical checks.
//! - `list`: lessons for people.
//! - `new_lesson`: storage of a checked lesson. `neighbours`: lessons that say nearly the same.
//! - `digest`, `past_sessions`: questions to a model about past sessions. `tidy`: equal lessons become one.
//!
//! Deliberately absent: putting anything into words, and rules.

pub(crate) mod asking;
pub(crate) mod call_match;
pub(crate) mod checks;
pub(crate) mod digest;
pub(crate) mod found_out;
pub(crate) mod lesson_args;
pub(crate) mod list;
pub(crate) mod neighbours;
pub(crate) mod new_lesson;
pub mod past_sessions;
pub(crate) mod question;
pub(crate) mod session_calls;
pub(crate) mod session_files;
pub(crate) mod tidy;

pub use asking::{Asking, Marks};
pub use checks::Refusal;
pub use lesson_args::{LessonArgs, carries_lessons};
pub use list::{LessonRow, list};
pub use neighbours::Neighbour;
pub use new_lesson::StoredLesson;
pub use question::{AnswerBy, PROMPT};
pub use session_calls::keep_call;
pub use tidy::{TidyReport, tidy};
