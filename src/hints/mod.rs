//! Hints: from the error of a failing call to the text that an agent gets.
//!
//! - `service`: looks up fixes, shows hints, and credits those that helped. `settlement`: writes what
//!   became of them.
//! - `before`: answer before a call. `checks`: rules that act on calls. `fired`: their firings.
//! - `adoption`: whether a later call follows a hint.
//! - `failure`: the failing call. `applies`: whether a fix is for it.
//! - `fixes`, `lookup`: table from error keys to fixes. `search_terms`: what it is searched by.
//!   `remote`: fixes of other workspaces.
//! - `procedure_hints`: procedures without a fix, by the error that they tell.
//! - `comparison`, `likeness`: similarity of errors and commands. `ranking`, `budget`: which fixes
//!   fit, in which order, and how much text. `hint`, `rendering`: the answer, and its text.
//! - `differing_name`: what a fix calls otherwise than the present error.
//! - `session_state`, `shown`, `trace`, `trial`, `pitfall`: what was shown and tried in a session.
//! - `briefing`: text for the start of a session. `briefing_rules`: its rules.
//!   `briefing_lines`: its limits and lines.
//!   `here`: the place that the session works in. `session_counts`: numbers of a session.
//!
//! Deliberately absent: models, network and an async runtime. An agent waits for the answer.

pub(crate) mod adoption;
pub(crate) mod applies;
pub(crate) mod before;
pub(crate) mod briefing;
mod briefing_lines;
pub(crate) mod briefing_rules;
pub(crate) mod budget;
pub(crate) mod checks;
pub(crate) mod comparison;
pub(crate) mod differing_name;
pub(crate) mod failure;
mod fired;
pub(crate) mod fixes;
pub(crate) mod here;
pub(crate) mod hint;
pub(crate) mod likeness;
pub(crate) mod lookup;
pub(crate) mod pitfall;
pub(crate) mod procedure_hints;
pub(crate) mod ranking;
pub(crate) mod remote;
pub(crate) mod rendering;
pub(crate) mod search_terms;
pub(crate) mod service;
mod session_counts;
pub(crate) mod session_state;
mod settlement;
pub(crate) mod shown;
pub(crate) mod trace;
pub(crate) mod trial;

pub use before::{BeforeCall, RuleFilter, Warning};
pub use briefing::Briefing;
pub use here::Here;
pub use service::{HintOptions, HintReport, HintService};
pub use session_counts::SessionCounts;
