//! Who reads or writes, when, and why: what the audit and the journal of changes say of it.

/// One call of a verb, for whoever it is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Act {
    /// Who: a user's id, or the name that the system knows the caller by. Empty is nobody known.
    pub who: String,
    /// What for: the command, as `correct hr/resume-screen`.
    pub why: String,
    /// When: RFC 3339, UTC.
    pub at: String,
    /// The name of the change that its writes together make. Empty writes are no change of anybody, and
    /// cannot be taken back.
    pub change: String,
}

impl Act {
    /// The name of a change, out of something random: 12 hexadecimal digits.
    pub fn change_name(random: &str) -> String {
        random
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(12)
            .collect::<String>()
            .to_ascii_lowercase()
    }
}
