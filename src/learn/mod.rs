//! Thinking: from what happened to what is learnt.
//!
//! Pure. Where a model may help there are two halves, `ask` which builds the question and `accept`
//! which reads the answer, and beside them a path that needs no model. Sequencing them with the
//! store and the network is the engine's work.

pub mod analyse;
pub mod assertion;
pub mod case;
mod claim;
pub mod conflict;
pub mod credit;
pub mod distil;
pub mod error_key;
pub mod error_line;
pub mod export;
mod goal;
pub mod hint;
pub mod hint_budget;
mod judge;
pub mod likeness;
mod outcome;
pub mod pitfall;
pub mod recover;
pub mod reflect;
pub mod rewrite;
pub mod rubric;
mod run;
mod same;
pub mod session_notes;
mod shell;
pub mod trial;
mod wording;
