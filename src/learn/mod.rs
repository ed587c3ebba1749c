//! Learning from corrections and failures.
//!
//! All functions are pure. Where a model can help, `ask` builds the request and `accept` reads the
//! reply, and an offline function needs no model. The engine combines them with the store and the
//! network.

pub mod assertion;
pub mod case;
pub mod credit;
pub mod error_key;
pub mod error_line;
pub mod export;
pub(crate) mod failure;
pub(crate) mod goal;
pub(crate) mod goal_match;
pub(crate) mod likeness;
mod line_rank;
pub(crate) mod outcome;
pub(crate) mod people;
mod plain_output;
pub(crate) mod plain_words;
pub mod recover;
pub mod reflect;
pub(crate) mod remark;
pub mod rewrite;
pub mod rubric;
pub(crate) mod shell;
pub(crate) mod shell_command;
