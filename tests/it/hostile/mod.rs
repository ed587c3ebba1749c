//! Attacks: each defect that was found in the trust boundary, kept as a test of the program.
//!
//! One file a subject. `SECURITY.md` names the test behind each promise.

mod agent_corrections;
mod clock;
mod clone;
mod clone_records;
mod connections;
#[cfg(unix)]
pub(crate) mod database_explain;
#[cfg(unix)]
pub(crate) mod database_locks;
#[cfg(unix)]
pub(crate) mod database_logins;
#[cfg(unix)]
pub(crate) mod database_origins;
#[cfg(unix)]
pub(crate) mod database_tls;
mod evidence;
#[cfg(unix)]
mod faults;
mod fences;
mod forbidden_lessons;
mod forgeries;
#[cfg(unix)]
mod git_calls;
mod guardrails;
mod hand_edits;
mod injection;
#[cfg(unix)]
mod late_events;
#[cfg(unix)]
mod links;
mod locks;
#[cfg(unix)]
mod project_links;
mod promises;
#[cfg(unix)]
#[cfg(unix)]
mod scaling;
mod secrets;
#[cfg(unix)]
mod storm;
pub(crate) mod tally;
mod tokens;
#[cfg(unix)]
mod wrappers;
