//! Lessons: the whole life of a lesson, from a failing call to the hint that spares the next one.
//!
//! In the order of that life:
//! - `failure`: an error in comparable form: its line, its key, and the failure to look up.
//! - `recovery`: which later call had the same goal and worked, what it changed, and when that is a
//!   pattern that may be told unasked.
//! - `asking`: the question to the agent that found it out, and the mechanical checks of the answer.
//! - `storage`: a checked lesson among the existing ones, procedures, and equal lessons joined.
//! - `past`: the same for session files of agents that ran before.
//! - `telling`: lessons that match a call, their text, and what became of them in the session.
//!
//! `vocabulary` has the programs, options and phrases that all of them know calls by.
//!
//! Invariants: an agent, a model or a person words a lesson, never the program, and every word is checked
//! against the session. Unapproved lessons are shown as data. A lookup reads a derived table: no model, no
//! network, no runtime. Outcomes are counted, and an agent never waits for the count.
//!
//! Deliberately absent: `rules`. The caller of [`HintService`] passes the function that decides if a rule
//! forbids a lesson.

pub(crate) mod asking;
pub mod failure;
pub mod past;
pub mod recovery;
pub(crate) mod storage;
pub(crate) mod telling;
pub(crate) mod vocabulary;

pub(crate) use asking::session_calls::SessionCalls;
pub(crate) use asking::session_calls::{SessionCall, SessionHead, keep_call};
pub use asking::{AnswerBy, Asking, LessonArgs, Marks, PROMPT, carries_lessons};
pub use past::learn::{EpisodeReport, LearnOptions, LearnReport, OnBytes, TranscriptReport, learn};
pub(crate) use past::of_host::{HostSession, record_host_session};
pub use storage::new_lesson::{Neighbour, StoredLesson, TidyReport, tidy};
pub use storage::record::{ProcedureReport, RecordReport, Success, add_procedure};
pub use telling::service::{HintOptions, HintReport, HintService, NO_SESSION};
pub(crate) use telling::session_state::forget_failures;
