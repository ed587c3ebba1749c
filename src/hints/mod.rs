//! What an agent is told at its calls, and what became of it.
//!
//! - `service`: answers a failing call and a successful one. `settlement`: writes the outcomes.
//! - `before`: lessons before a call.
//! - `failure`: the failing call. `likeness`: similarity of errors and commands.
//! - `hint`, `rendering`, `budget`: the answer, its text and its length.
//! - `session_state`, `shown`, `trial`, `pitfall`: what was shown and tried in a session.
//! - `briefing`: text for the start of a session. `briefing_rules`: its rules.
//!   `briefing_lines`: its limits and lines.
//!   `here`: the place that the session works in. `session_counts`: numbers of a session.
//!
//! The lessons themselves are in `lessons`. Deliberately absent: models, network and an async
//! runtime. An agent waits for the answer.

pub(crate) mod before;
pub(crate) mod briefing;
mod briefing_lines;
pub(crate) mod briefing_rules;
pub(crate) mod budget;
pub(crate) mod failure;
pub(crate) mod here;
pub(crate) mod hint;
pub(crate) mod likeness;
pub(crate) mod pitfall;
pub(crate) mod rendering;
pub(crate) mod service;
mod session_counts;
pub(crate) mod session_state;
mod settlement;
pub(crate) mod shown;
pub(crate) mod trial;

pub use briefing::Briefing;
pub use here::Here;
pub use service::{HintOptions, HintReport, HintService};
pub use session_counts::SessionCounts;
