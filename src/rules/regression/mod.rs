//! Regression tests of rules: a case for each corrected execution, and its files in the skill.
//!
//! - `case`: a case and its text. `assertion`: what a case demands of an output, in a short form.
//! - `cases`: case files of a skill, and those for other test frameworks beside them.
//! - `export`: the formats of `DeepEval` and Promptfoo.
//!
//! Deliberately absent: running them. That is `skills::test`.

pub mod assertion;
pub mod case;
pub(crate) mod cases;
pub mod export;
