//! Context of a read or write, recorded in the audit log and the undo journal.

/// One call of a verb, on behalf of one caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditContext {
    /// Id of the user, or the caller's name in the operating system. Empty if unknown.
    pub who: String,
    /// Reason: the command, as `correct hr/resume-screen`.
    pub why: String,
    /// Time of the call: RFC 3339, UTC.
    pub at: String,
    /// Id of the change that groups its writes. Writes with an empty id are not journaled and
    /// cannot be reverted.
    pub change: String,
}

impl AuditContext {
    /// Derives the id of a change from random text: 12 hexadecimal digits.
    pub fn change_name(random: &str) -> String {
        random
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(12)
            .collect::<String>()
            .to_ascii_lowercase()
    }
}
