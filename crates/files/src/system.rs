//! The operating system: `unix` for Linux and macOS, or `windows`. Both have the same functions, and
//! the modules above write down what each promises. No other file asks which system it is compiled
//! for.

#[cfg(unix)]
pub(super) use super::unix::*;
#[cfg(windows)]
pub(super) use super::windows::*;

/// Modes of opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// For reading.
    Read,
    /// For reading and writing in place.
    Update,
    /// For reading and writing in place; created if missing.
    UpdateOrCreate,
    /// For appending; created if missing.
    Append,
    /// For writing a new file; fails if it exists.
    Create,
}
