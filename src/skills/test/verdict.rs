//! Decides one output by one case: assertions without a model, the rest by a judge.
//!
//! Files for other test tools call this, so that assertions are decided in one place.

use serde::Serialize;
use serde_json::Value;

use super::super::run::output;
use super::report::Status;
use crate::model::SkillPath;
use crate::rules::regression::case::Case;
use crate::rules::regression::cases::cases;
use crate::skills::test::rubric;
use crate::store::workspace::error::chain;
use crate::store::workspace::providers::Chosen;
use crate::store::workspace::{Error, Workspace};
use memctl_llm::OnProgress;

/// Reason if a case needs a judge and none is named.
const NO_JUDGE: &str = "not tested without a judge: set MEMCTL_JUDGE to a program that answers a \
     prompt, or name a model with --model";

/// Verdict on one output.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct OutputVerdict {
    /// Case that decided.
    pub case: String,
    /// Skill of the case.
    pub skill: SkillPath,
    /// `passed`, `failed`, or `skipped` without a judge.
    pub status: Status,
    /// Explanation of the status.
    pub reason: String,
}

/// Decides an output, the text of a model, by a case. The model of the workspace judges it if
/// `has_judge`, and only if every assertion holds.
pub async fn decide_output(
    workspace: &Workspace,
    skill: &SkillPath,
    case: &str,
    text: &str,
    has_judge: bool,
    progress: OnProgress<'_>,
) -> Result<OutputVerdict, Error> {
    let (skills, _) = workspace.skill(skill)?;
    let found = cases(&skills, skill)?
        .into_iter()
        .find(|file| file.id == case);
    let missing = || {
        let message = format!("`{skill}` has no test case `{case}`");
        Error::missing(message, "memctl test --json lists the cases")
    };
    let (status, reason) = match found.ok_or_else(missing)?.case {
        Ok(case) => decide(workspace, &case, text, has_judge, progress).await?,
        Err(reason) => (Status::Failed, format!("the file is no case: {reason}")),
    };
    Ok(OutputVerdict {
        case: case.to_owned(),
        skill: skill.clone(),
        status,
        reason,
    })
}

async fn decide(
    workspace: &Workspace,
    case: &Case,
    text: &str,
    has_judge: bool,
    progress: OnProgress<'_>,
) -> Result<(Status, String), Error> {
    let answer = memctl_redact::redact_json(output(text).get())
        .text
        .into_owned();
    let value: Value = serde_json::from_str(&answer).unwrap_or_default();
    let wrong: Vec<String> = case.wrong(&value).into_values().collect();
    if !wrong.is_empty() {
        return Ok((Status::Failed, wrong.join("; ")));
    }
    let Some(rule) = &case.rubric else {
        return Ok((Status::Passed, "all assertions hold".to_owned()));
    };
    let chosen = if has_judge {
        workspace.providers.choose(None).await?
    } else {
        Chosen::Offline
    };
    let Chosen::Model(llm) = chosen else {
        return Ok((Status::Skipped, NO_JUDGE.to_owned()));
    };
    let system = workspace.settings.judge_prompt.as_deref();
    let request = rubric::ask(
        rule,
        case.input.get(),
        &answer,
        system.unwrap_or(rubric::PROMPT),
    );
    let verdict = match llm.ask(&request, progress).await {
        Ok(reply) => rubric::accept(&reply.text),
        Err(error) => Err(chain(&error)),
    };
    Ok(match verdict {
        Ok(verdict) if verdict.pass => (Status::Passed, verdict.reason),
        Ok(verdict) => (
            Status::Failed,
            format!("the judge says: {}", verdict.reason),
        ),
        Err(reason) => (
            Status::Skipped,
            format!("not tested: the judge failed: {reason}"),
        ),
    })
}
