//! Text that an agent is told at its calls, and its outcomes.
//!
//! - `service`: answers a failing call and a successful one. `settlement`: writes the outcomes.
//! - `before`: lessons before a call.
//! - `budget`: the length of an answer. `forbidden`: calls that a rule in force forbids.
//! - `session_state`, `trial`, `pitfall`: what was shown and tried in a session.
//! - `briefing`: text for the start of a session. `briefing_rules`: its rules.
//!   `briefing_lines`: its limits and lines.
//!   `session_counts`: numbers of a session.
//!
//! The lessons themselves are in `lessons`. Deliberately absent: models, network and an async
//! runtime. An agent waits for the answer.

pub(crate) mod before;
pub(crate) mod briefing;
mod briefing_lines;
pub(crate) mod briefing_rules;
pub(crate) mod budget;
pub(crate) mod forbidden;
pub(crate) mod pitfall;
pub(crate) mod service;
mod session_counts;
pub(crate) mod session_state;
mod settlement;
pub(crate) mod trial;

pub use crate::lessons::here::Here;
pub use briefing::Briefing;
pub use service::{HintOptions, HintReport, HintService};
pub use session_counts::SessionCounts;
