//! Names of files that more than one room of the store refers to.

/// Directory of remote records.
pub(crate) const REMOTE: &str = "remote";
/// Directory for torn tails and copies.
pub(crate) const RECOVERED: &str = "recovered";
/// File created to test whether the directory is writable.
pub(crate) const PROBE: &str = ".writable";
/// Name of this copy of a memory.
pub(crate) const REPLICA: &str = "replica";
/// File that names the primary database.
pub(crate) const PRIMARY: &str = "primary.json";
/// Marker file that binds a memory directory to a user's note about trust.
pub(crate) const TRUST_MARKER: &str = ".trust";
/// Marker file that disables a memory.
pub(crate) const DISABLED: &str = "disabled";
/// List of the users for whom a memory is disabled.
pub(crate) const DISABLED_USERS: &str = "disabled_users.json";
/// Audit log.
pub(crate) const AUDIT_LOG: &str = "audit.jsonl";
/// Anchor of the audit log, which is also its lock file.
pub(crate) const AUDIT_ANCHOR: &str = "audit.anchor";
/// Undo journal.
pub(crate) const JOURNAL: &str = "changes.jsonl";
/// Hint log.
pub(crate) const HINTS: &str = "hints.jsonl";
/// Execution log of agents.
pub(crate) const EXECUTION_LOGS: &str = "execution_logs.jsonl";
/// Note of a move between the local and the shared file of a kind.
pub(crate) const MOVING: &str = "moving.local.json";
