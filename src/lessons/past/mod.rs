//! Past.

pub(crate) mod digest;
pub(crate) mod files;
pub(crate) mod learn;
pub(crate) mod learn_report;
pub(crate) mod of_host;
pub mod past_sessions;
pub(crate) mod session_files;
