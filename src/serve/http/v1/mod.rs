//! Native endpoints below `/v1/`, with the behaviour and the documents of the commands of the same
//! names.
//!
//! - `records`: executions and corrections. `rules`: rules. `hints`: hints, failures, successes.
//! - `search`: search, prompts, embeddings, and the tools for agents.
//! - `users`: all data of the caller.
//!
//! For a skill outside the token's scope, a write is refused and a search returns nothing.

pub(crate) mod hints;
pub(crate) mod records;
pub(crate) mod rules;
pub(crate) mod search;
pub(crate) mod users;

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
