//! Corrects an execution: correction, rule, guardrail, regression test.
//!
//! Three stages, each with the result of the one before: [`storage`] stores the correction first, so
//! that a later failure is a warning and loses nothing; [`reflection`] words the rule; [`placement`]
//! adds it to the rules of its skill. Repeating a correction changes nothing and returns the existing
//! records.

mod placement;
mod reflection;
pub(crate) mod remark;
mod storage;

use serde_json::value::RawValue;

use crate::model::SkillPath;
use crate::store::workspace::{Error, Workspace};
use memctl_llm::OnProgress;

pub use placement::{CorrectReport, RelationReport};

/// Correction from the caller.
#[derive(Debug, Clone)]
pub struct CorrectOptions {
    /// Path of the skill.
    pub skill: SkillPath,
    /// Execution: an id, an id prefix, or `latest`. `None` for a rule about the skill without an
    /// example.
    pub execution: Option<String>,
    /// Description of the mistake and of the desired change.
    pub correction: String,
    /// Expected output; `None` if not given.
    pub expected: Option<Box<RawValue>>,
    /// Checks of an output in the short form, from the person; they suffice for the test.
    pub assertions: Vec<String>,
    /// Keeps the correction as a rule even if it reads like a remark.
    pub is_rule: bool,
    /// Marks a correction from an agent. Its rule is a candidate without effect until a person
    /// approves it.
    pub by_agent: bool,
}

/// Corrects an execution.
pub async fn correct(
    workspace: &Workspace,
    options: CorrectOptions,
    progress: OnProgress<'_>,
) -> Result<CorrectReport, Error> {
    let (mut stored, known_rule) = storage::store(workspace, options)?;
    if let Some(rule) = known_rule {
        return placement::place_again(workspace, stored, rule);
    }
    let worded = reflection::reflect(workspace, &mut stored, progress).await;
    placement::place(workspace, stored, worded)
}
