//! Attacks: each defect that was found in the trust boundary, kept as a test of the program.
//!
//! One file a subject. `SECURITY.md` names the test behind each promise.

mod agent_corrections;
mod clock;
mod clone;
mod connections;
pub(crate) mod database_explain;
pub(crate) mod database_locks;
pub(crate) mod database_logins;
pub(crate) mod database_origins;
pub(crate) mod database_tls;
mod evidence;
mod faults;
mod fences;
mod forgeries;
mod guardrails;
mod hand_edits;
mod injection;
mod links;
mod locks;
mod promises;
mod scaling;
mod secrets;
mod storm;
mod tokens;
