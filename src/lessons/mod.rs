//! Lessons: the whole life of a lesson, from a failing call to the hint that spares the next one.
//!
//! In the order of that life, each file tree using those above it alone:
//! - `vocabulary`: the programs, options and phrases that calls are known by.
//! - `call`: a call in comparable form. `failure`: an error in comparable form: its line, its key, and the
//!   failure to look up.
//! - `recovery`: which later call had the same goal and worked, what it changed, and when that is a
//!   pattern that may be told unasked.
//! - `session`: the calls of a session.
//! - `storage`: the mechanical checks of a lesson, its place among the existing ones, procedures.
//! - `asking`: the question to the agent that found something out, and its answer.
//! - `telling`: lessons that match a call, their text, and what became of them in the session.
//! - `past`: the same for session files of agents that ran before.
//!
//! Invariants: an agent, a model or a person words a lesson, never the program, and every word is checked
//! against the session. Unapproved lessons are shown as data. A lookup reads a derived table: no model, no
//! network, no runtime. Outcomes are counted, and an agent never waits for the count.
//!
//! Deliberately absent: `rules`. The caller of [`HintService`] passes the function that decides if a rule
//! forbids a lesson.

pub(crate) mod asking;
pub(crate) mod call;
pub mod failure;
pub mod past;
pub mod recovery;
pub(crate) mod session;
pub(crate) mod storage;
pub(crate) mod telling;
pub(crate) mod vocabulary;

pub use asking::{AnswerBy, Asking, PROMPT, carries_lessons};
pub use past::learn::{EpisodeReport, LearnOptions, LearnReport, OnBytes, TranscriptReport, learn};
pub(crate) use past::of_host::{HostSession, record_host_session};
pub(crate) use session::calls::{NewestCalls, append_message};
pub use session::marks::Marks;
pub use storage::analyst::{ProcedureReport, add_procedure};
pub use storage::new_lesson::{Neighbour, StoredLesson};
pub use storage::tidy::{TidyReport, tidy};
pub use storage::words::LessonArgs;
pub use telling::reported::{RecordReport, Success};
pub use telling::service::{HintOptions, HintReport, HintService, NO_SESSION};
