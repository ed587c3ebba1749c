//! Regression tests of rules: a case for each corrected execution, and its files in the skill.
//!
//! - `case`: a case and its text. `assertion`: what a case demands of an output, in a short form.
//! - `files`: case files of a skill, those for other test frameworks beside them, and their removal.
//! - `export`: the formats of `DeepEval` and Promptfoo.
//!
//! Deliberately absent: running them. That is `skills::test`.

pub mod assertion;
pub mod case;
pub mod export;
pub(crate) mod files;
