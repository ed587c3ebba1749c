//! Inputs that a skill has had, and the most similar of them to a new one.
//!
//! - `features`: features of an input, and their hashes.
//! - `input_table`, `input_table_builder`: features of the inputs of one index segment, as bytes that
//!   are searched in place, and their construction.
//! - `blocks`: bytes that are verified a block at a time.
//! - `similarity`: similarity of two inputs.
//! - `nearest`: rows in the order of their similarity to an input.
//!
//! Deliberately absent: which rows may answer. The caller says that of each row.

mod blocks;
pub(crate) mod features;
pub(crate) mod input_table;
pub(crate) mod input_table_builder;
pub(crate) mod nearest;
pub(crate) mod similarity;
