//! Native endpoints below `/v1/`, with the behaviour and the documents of the commands of the same
//! names.
//!
//! - `records`: executions and corrections. `search`: search, prompts, embeddings. `hints`: hints,
//!   failures, successes. `operations`: the operations for agents,
//!   for programs that serve agents. `users`: all data of the caller.
//!
//! For a skill outside the token's scope, a write is refused and a search returns nothing.

pub(crate) mod hints;
mod records;
pub(crate) mod search;
mod users;

pub(crate) use hints::{FailureBody, HintBody, SuccessBody};
pub(crate) use hints::{failure, hint, success};
pub(crate) use records::{CorrectionBody, Corrections, ExecutionBody, Executions, Page};
pub(crate) use records::{correct, corrections, executions, log_execution};
pub(crate) use search::operation;
pub(crate) use search::{Embeddings, EmbeddingsBody, Operated, SearchBody};
pub(crate) use search::{embeddings, prompt, search, search_by_query};
pub(crate) use users::{Confirmation, DeletedUser, Switched};
pub(crate) use users::{delete_user, disable_user, enable_user, export_user};

use crate::model::SkillPath;

use super::problem::Problem;

/// Parses the skill of a request.
fn skill(given: &str) -> Result<SkillPath, Problem> {
    given
        .parse()
        .map_err(|error: crate::model::InvalidSkillPath| {
            Problem::unfit(error.to_string(), "a skill is written as `domain/skill`")
        })
}
