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
pub mod failure;
pub mod past;
pub mod recovery;
pub(crate) mod storage;
pub(crate) mod telling;

pub use asking::checks::Refusal;
pub use asking::lesson_args::{LessonArgs, carries_lessons};
pub use asking::question::{AnswerBy, PROMPT};
pub(crate) use asking::session_calls::SessionCalls;
pub use asking::session_calls::keep_call;
pub use asking::{Asking, Marks};
pub use past::learn::{LearnOptions, OnBytes, learn};
pub use past::learn_report::{EpisodeReport, LearnReport, TranscriptReport};
pub(crate) use past::of_host::{HostSession, record_host_session};
pub use storage::neighbours::Neighbour;
pub use storage::new_lesson::{LessonRow, StoredLesson, list};
pub use storage::procedures::{ProcedureReport, add_procedure};
pub use storage::record::{RecordReport, Success};
pub use storage::tidy::{TidyReport, tidy};
pub use telling::service::{HintOptions, HintReport, HintService};
