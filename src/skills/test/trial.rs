//! Runs one case: calls the model without and with its rule, and finds the rule that breaks it.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::model::{Reflexion, SkillPath};
use crate::rules::regression::case::Case;
use crate::skills::test::rubric;
use crate::store::skill::Skill;
use memctl_llm::{Llm, OnProgress, Request};

use super::super::assemble::assemble_layers;
use super::super::run::{output, requested_files};
use super::report::{CaseReport, Status};
use crate::rules::regression::cases::CaseFile;
use crate::store::workspace::Workspace;
use crate::store::workspace::error::chain;
use crate::store::workspace::providers::Chosen;

/// Cases of one skill.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) path: SkillPath,
    pub(super) skill: Skill,
    pub(super) chosen: Chosen,
    pub(super) cases: Vec<CaseFile>,
}

/// Reason why a case has no verdict.
pub(crate) enum Stop {
    /// Cap on calls reached.
    Capped,
    /// Judge unable to judge the answer.
    NoJudge(String),
    /// Failed model call.
    Failed(String),
}

/// Demands of a case that an answer fails.
#[derive(Debug, Default)]
struct Errors {
    /// Messages, by the number of the assertion.
    asserted: BTreeMap<usize, String>,
    /// Objection of the judge, who is asked only if every assertion holds.
    judged: Option<String>,
}

impl Errors {
    fn is_empty(&self) -> bool {
        self.asserted.is_empty() && self.judged.is_none()
    }

    /// Returns true if fewer assertions fail, and none that held `before`.
    fn improves_on(&self, before: &Self) -> bool {
        let failed_before = |number: &usize| before.asserted.contains_key(number);
        self.asserted.len() < before.asserted.len() && self.asserted.keys().all(failed_before)
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<&str> = self.asserted.values().map(String::as_str).collect();
        f.write_str(&messages.join("; "))?;
        match &self.judged {
            Some(reason) => write!(f, "the judge says: {reason}"),
            None => Ok(()),
        }
    }
}

/// Counter of model calls and their cost.
pub(crate) struct Meter<'p> {
    pub(crate) left: usize,
    pub(crate) calls: usize,
    pub(crate) cost: Option<f64>,
    pub(crate) progress: OnProgress<'p>,
}

/// Run of one case.
pub(crate) struct Trial<'t, 'p> {
    pub(crate) workspace: &'t Workspace,
    pub(crate) llm: &'t Llm,
    pub(crate) group: &'t Group,
    pub(crate) case: &'t Case,
    pub(crate) meter: &'t mut Meter<'p>,
}

impl Trial<'_, '_> {
    /// Runs the case without and with its rule, and finds the cause of a failure.
    pub(crate) async fn judge(
        &mut self,
        rules: &[Reflexion],
        rule: &Reflexion,
        report: &mut CaseReport,
    ) -> Result<(), Stop> {
        let id = &rule.reflexion_id;
        let without: Vec<Reflexion> = all_but(rules, id);
        let before = self.answer(&without).await?;
        report.without_rule = Some(verdict(&before));
        let after = self.answer(rules).await?;
        report.with_rule = Some(verdict(&after));
        (report.status, report.reason) = match (before.is_empty(), after.is_empty()) {
            (false, true) => (
                Status::Passed,
                format!("fails without `{id}` and passes with it"),
            ),
            (true, true) => (
                Status::Worthless,
                format!("passes without `{id}` too, so the test proves nothing"),
            ),
            (true, false) => {
                report.broken_by.push(id.clone());
                (
                    Status::Failed,
                    format!("`{id}` breaks it: passes without it, and with it {after}"),
                )
            }
            (false, false) => {
                let culprit = self.culprit(rules, rule).await?;
                report.broken_by.extend(culprit.clone());
                match culprit {
                    Some(other) => (
                        Status::Failed,
                        format!(
                            "`{other}` breaks it: passes with `{id}` alone, and with both {after}"
                        ),
                    ),
                    None if after.improves_on(&before) => (
                        Status::Partial,
                        format!("`{id}` satisfies a part of the correction: {after}"),
                    ),
                    None => (Status::Failed, format!("`{id}` does not help: {after}")),
                }
            }
        };
        Ok(())
    }

    /// Returns the rule that makes the case fail although its own rule is in the prompt.
    async fn culprit(
        &mut self,
        rules: &[Reflexion],
        rule: &Reflexion,
    ) -> Result<Option<String>, Stop> {
        let others = all_but(rules, &rule.reflexion_id);
        if others.is_empty() || !self.answer(std::slice::from_ref(rule)).await?.is_empty() {
            return Ok(None);
        }
        for other in &others {
            if self
                .answer(&all_but(rules, &other.reflexion_id))
                .await?
                .is_empty()
            {
                return Ok(Some(other.reflexion_id.clone()));
            }
        }
        Ok(None)
    }

    /// Calls the model with these rules, and returns the errors in its answer.
    async fn answer(&mut self, rules: &[Reflexion]) -> Result<Errors, Stop> {
        let input = self.case.input.get();
        let mut request = Request {
            system: assemble_layers(self.workspace, &self.group.skill, rules, Some(input)).prompt,
            user: input.to_owned(),
            schema: None,
            max_tokens: self.workspace.settings.max_output_tokens,
        };
        let mut text = self.meter.ask(self.llm, &request).await?;
        let skills = self.workspace.skills().ok();
        let files = skills.and_then(|skills| requested_files(&skills, &self.group.skill, &text));
        if let Some(files) = files {
            request.system.push_str(&files);
            text = self.meter.ask(self.llm, &request).await?;
        }
        let answer = memctl_redact::redact_json(output(&text).get())
            .text
            .into_owned();
        let value: Value = serde_json::from_str(&answer).unwrap_or_default();
        let mut errors = Errors {
            asserted: self.case.wrong(&value),
            judged: None,
        };
        let Some(rubric) = self.case.rubric.as_ref().filter(|_| errors.is_empty()) else {
            return Ok(errors);
        };
        let system = self.workspace.settings.judge_prompt.as_deref();
        let request = rubric::ask(rubric, input, &answer, system.unwrap_or(rubric::PROMPT));
        let cannot = |reason: String| {
            Stop::NoJudge(format!("`{}` cannot judge it: {reason}", self.llm.model()))
        };
        let reply = match self.meter.put(self.llm, &request).await? {
            Ok(reply) => reply,
            Err(error @ memctl_llm::Error::InvalidStructure { .. }) => {
                return Err(cannot(chain(&error)));
            }
            Err(error) => return Err(failed(&error)),
        };
        let verdict = rubric::accept(&reply).map_err(cannot)?;
        errors.judged =
            (!verdict.pass).then(|| memctl_redact::redact(&verdict.reason).text.into_owned());
        Ok(errors)
    }
}

impl Meter<'_> {
    async fn ask(&mut self, llm: &Llm, request: &Request) -> Result<String, Stop> {
        self.put(llm, request)
            .await?
            .map_err(|error| failed(&error))
    }

    /// Calls the model if the cap allows it, and counts the call.
    async fn put(
        &mut self,
        llm: &Llm,
        request: &Request,
    ) -> Result<Result<String, memctl_llm::Error>, Stop> {
        if self.left == 0 {
            return Err(Stop::Capped);
        }
        self.left -= 1;
        self.calls += 1;
        let answer = llm.ask(request, self.progress).await;
        let cost = match &answer {
            Ok(reply) => reply.cost_usd,
            Err(error) => error.paid().map_or(Some(0.0), |paid| paid.cost_usd),
        };
        self.cost = self.cost.zip(cost).map(|(a, b)| a + b);
        Ok(answer.map(|reply| reply.text))
    }
}

fn failed(error: &memctl_llm::Error) -> Stop {
    Stop::Failed(format!("the model failed: {}", chain(error)))
}

fn verdict(errors: &Errors) -> Status {
    if errors.is_empty() {
        Status::Passed
    } else {
        Status::Failed
    }
}

fn all_but(rules: &[Reflexion], id: &str) -> Vec<Reflexion> {
    let others = rules.iter().filter(|rule| rule.reflexion_id != id);
    others.cloned().collect()
}
