//! Recovery.

pub(crate) mod call;
pub(crate) mod change;
pub(crate) mod episodes;
pub(crate) mod goal;
pub(crate) mod goal_match;
pub(crate) mod outcome;
pub mod pattern;
pub mod recover;
pub(crate) mod shell;
pub(crate) mod shell_command;
pub(crate) mod trace;
