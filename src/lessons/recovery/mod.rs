//! Recoveries: a failing call, and the later call of the same goal that worked.
//!
//! - `goal`, `goal_match`: what a call is for, and whether two calls are for the same. `outcome`: whether it
//!   worked.
//! - `episodes`: failures of a session with their recovery.
//! - `difference`: the small change between two calls, and `statement` that of a statement for a database.
//!   `change`: where else it fits.
//! - `success`: whether a call proves that it worked. `observation`: whether it changes nothing.
//! - `pattern`: recoveries that may be told unasked. `hazard`, `value`: changes and values that
//!   never are.

pub(crate) mod change;
pub(crate) mod difference;
pub mod episodes;
pub(crate) mod goal;
pub(crate) mod goal_match;
pub(crate) mod hazard;
mod observation;
pub(crate) mod outcome;
pub mod pattern;
mod statement;
mod success;
mod value;
