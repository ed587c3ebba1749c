//! Session that holds a lock.

use std::fmt;

/// Session that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Role that logged in.
    pub role: String,
    /// Process id on the server.
    pub process: i32,
    /// Locked table, or the lock type.
    pub object: String,
    /// Lock mode as the server names it.
    pub mode: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            role,
            process,
            object,
            mode,
        } = self;
        write!(f, "`{role}` (process {process}, {mode} of {object})")
    }
}
