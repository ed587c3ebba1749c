//! The endpoints of our own, below `/v1/`: what the commands of the same names do, and their documents.
//!
//! - `records`: executions and corrections. `look`: search, prompts, vectors. `repair`: hints, failures,
//!   successes. `traces`: executions out of spans. `operations`: the table that agents have, for programs
//!   that serve agents.
//!
//! A skill that the token does not cover is refused where something is to be written, and empty where
//! something is looked for.

mod look;
mod operations;
mod records;
mod repair;
mod traces;

pub(super) use look::{EmbeddingsBody, SearchBody};
pub(super) use look::{embeddings, prompt, search, search_by_query};
pub(super) use operations::operation;
pub(super) use records::{CorrectionBody, ExecutionBody, Page};
pub(super) use records::{correct, corrections, executions, log_execution};
pub(super) use repair::{FailureBody, HintBody, SuccessBody};
pub(super) use repair::{failure, hint, success};
pub(super) use traces::{TracesBody, traces};

use crate::model::SkillPath;

use super::problem::Problem;

/// A skill as a request names it.
fn skill(given: &str) -> Result<SkillPath, Problem> {
    given
        .parse()
        .map_err(|error: crate::model::InvalidSkillPath| {
            Problem::unfit(error.to_string(), "a skill is written as `domain/skill`")
        })
}
