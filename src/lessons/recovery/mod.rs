//! Recoveries: a failing call, and the later call of the same goal that worked.
//!
//! - `call`: a call in comparable form. `goal`, `goal_match`: what it is for, and whether two calls are for
//!   the same. `outcome`: whether it worked.
//! - `recover`: failures of a session with their recovery, also while it runs.
//! - `change`: the small difference of two calls.
//! - `pattern`: recoveries that may be told unasked; a change that could do harm never is.

pub(crate) mod call;
pub(crate) mod change;
pub(crate) mod goal;
pub(crate) mod goal_match;
pub(crate) mod outcome;
pub mod pattern;
pub mod recover;
