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
pub(crate) mod telling;
pub(crate) mod vocabulary;

/// Recoveries: a failing call, and the later call of the same goal that worked.
///
/// - `goal`, `goal_match`: what a call is for, and whether two calls are for the same. `outcome`: whether it
///   worked, and whether that is proved.
/// - `episodes`: failures of a session with their recovery.
/// - `difference`: the small change between two calls, and where else it fits.
/// - `pattern`: recoveries that may be told unasked. `hazard`: changes and values that never are.
pub mod recovery {
    pub(crate) mod difference;
    pub mod episodes;
    pub(crate) mod goal;
    pub(crate) mod goal_match;
    pub(crate) mod hazard;
    pub(crate) mod outcome;
    pub mod pattern;
}

/// Calls of a session, of a running one or of a past one.
///
/// - `calls`: each call with its result, in the log of a running session; what became of the question to its agent,
///   and the failures that the newest call has recovered.
/// - `call_match`: the calls that a written command occurs in.
pub(crate) mod session {
    pub(crate) mod call_match;
    pub(crate) mod calls;
}

/// Storage of lessons, and of the patterns and procedures beside them.
///
/// - `advice`: what a lesson or a pattern says to run, and which recoveries that covers.
/// - `words`: checks of the words of a lesson; what an agent or a model words, against the calls of its
///   session. `new_lesson`: stores it among the existing ones; equal lessons become one.
/// - `patterns`: recoveries that nobody has worded, also at the moment a hook sees one, and procedures of other
///   programs.
/// - `table`: the derived table that finds lessons for a call.
pub(crate) mod storage {
    pub(crate) mod advice;
    pub(crate) mod new_lesson;
    pub(crate) mod patterns;
    pub(crate) mod table;
    pub(crate) mod words;
}

/// Past sessions: reads session files of agents, and learns recoveries and lessons from them.
///
/// - `session_files`: finds and reads session files. `learn`: stores new patterns, counts existing ones, and
///   reports both. `of_host`: the session of an agent host as a record.
/// - `past_sessions`: questions to a model about the agents' findings. `question`: one of them, and the lessons of its
///   answer that pass; `digest`: the session as the model sees it.
pub mod past {
    pub(crate) mod digest;
    pub(crate) mod learn;
    pub(crate) mod of_host;
    pub mod past_sessions;
    pub(crate) mod question;
    pub(crate) mod session_files;
}

pub use asking::{AnswerBy, Asking, PROMPT, carries_lessons};
pub use past::learn::{EpisodeReport, LearnOptions, LearnReport, OnBytes, TranscriptReport, learn};
pub use session::calls::Marks;
pub(crate) use session::calls::{NewestCalls, append_message};
pub use storage::new_lesson::{Neighbour, StoredLesson, TidyReport, tidy};
pub use storage::patterns::{ProcedureReport, add_procedure};
pub use storage::words::LessonArgs;
pub use telling::service::{HintOptions, HintReport, HintService, NO_SESSION, RecordReport};
