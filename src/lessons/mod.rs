//! Lessons: what recoveries and detours taught, and when an agent is told it.
//!
//! - `call`: a call in comparable form. `change`: small difference of two. `pattern`: when a recovery
//!   may be told unasked. `hazard`: changes that never are.
//! - `episodes`: storage of recoveries. `trace`: recent steps of a running session.
//! - `table`, `matching`: lessons and patterns for a failing call, and before a call. `cues`:
//!   procedures that another program wrote.
//! - `telling`: texts for an agent. `evidence`: whether a call follows what was told.
//!
//! A person or a model puts a lesson into words; nothing here does.

pub(crate) mod call;
pub(crate) mod change;
pub(crate) mod cues;
pub(crate) mod episodes;
pub(crate) mod evidence;
pub(crate) mod hazard;
pub(crate) mod matching;
pub mod pattern;
pub(crate) mod table;
pub(crate) mod telling;
pub(crate) mod trace;
