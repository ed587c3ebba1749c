//! Runs the regression cases: each without and with its rule, all other rules in their place.
//!
//! Failing without and passing with is what validates a rule, and exactly that one. Passing without
//! it says that the test proves nothing. Where a case fails with its rule but passes with it alone,
//! the others are left out one at a time, and the one that breaks it is named and loses confidence.
//! What was found out is stored before the next case is run.
//!
//! Rules act through a prompt, so without a model there is nothing to run: what can be checked then
//! is whether a case takes the expected output for right.
//!
//! Deliberately absent: repeating a case until it passes, and recording the answers as executions.

use serde::Serialize;
use serde_json::Value;

use crate::guard;
use crate::learn::case::Case;
use crate::learn::rubric;
use crate::llm::{Llm, OnProgress, Request};
use crate::model::{Correction, Kind, Reflexion, SkillPath};
use crate::skill::Skill;
use crate::store::Selection;

use super::cases::CaseFile;
use super::error::chain;
use super::model::Chosen;
use super::run::output;
use super::{Engine, Error, dollars, mended};

mod credit;

/// Tokens of an answer, for the estimate of its price.
const USUAL_ANSWER: u64 = 500;
/// Bytes of a question that make a token, for the same.
const BYTES_PER_TOKEN: u64 = 4;

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It fails without its rule and passes with it.
    Passed,
    /// It fails with its rule.
    Failed,
    /// It passes without its rule too, and so proves nothing.
    Worthless,
    /// It was not run.
    Skipped,
}

/// One case.
#[derive(Debug, Clone, Serialize)]
pub struct CaseReport {
    /// The name of its file, without the end.
    pub id: String,
    /// The skill.
    pub skill: SkillPath,
    /// The correction that it comes from.
    pub correction_id: Option<String>,
    /// The rule that has to make it pass.
    pub reflexion_id: Option<String>,
    /// What became of it.
    pub status: Status,
    /// `passed` or `failed`; `None` where it was not run so.
    pub without_rule: Option<Status>,
    /// The same with the rule.
    pub with_rule: Option<Status>,
    /// The rules that make it fail.
    pub broken_by: Vec<String>,
    /// Why, in words.
    pub reason: String,
}

/// What came of all cases.
#[derive(Debug, Default, Serialize)]
pub struct TestReport {
    /// How many fail without their rule and pass with it.
    pub passed: usize,
    /// How many fail.
    pub failed: usize,
    /// How many were not run.
    pub skipped: usize,
    /// How many prove nothing.
    pub worthless: usize,
    /// Each of them.
    pub cases: Vec<CaseReport>,
    /// How often a model was asked.
    pub calls: usize,
    /// What that cost, in US dollars; `None` where a price is not known.
    pub cost_usd: Option<f64>,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// What will be run.
#[derive(Debug)]
pub struct TestPlan {
    /// The models that will be asked: `provider/model`.
    pub models: Vec<String>,
    /// How many questions there will be where every case passes; a failing one may need more.
    pub calls: usize,
    /// How many there may be at most.
    pub max_calls: usize,
    /// About what the planned ones will cost, in US dollars; `None` where a price is not known.
    pub cost_usd: Option<f64>,
    /// How many cases there are.
    pub cases: usize,
    groups: Vec<Group>,
}

/// The cases of one skill.
#[derive(Debug)]
struct Group {
    path: SkillPath,
    skill: Skill,
    chosen: Chosen,
    cases: Vec<CaseFile>,
}

/// Why a case has no verdict.
enum Stop {
    /// The cap on calls.
    Capped,
    /// The model, or what it answered.
    Failed(String),
}

/// What was asked so far.
struct Meter<'p> {
    left: usize,
    calls: usize,
    cost: Option<f64>,
    progress: OnProgress<'p>,
}

impl Engine {
    /// Says which cases would be run and what would be asked: of one skill, or of all in the scope.
    pub async fn plan_tests(
        &self,
        skill: Option<&SkillPath>,
        max_calls: usize,
    ) -> Result<TestPlan, Error> {
        let skills = self.skills()?;
        let paths = match skill {
            Some(path) => vec![path.clone()],
            None => skills.list()?.skills,
        };
        let mut plan = TestPlan {
            models: Vec::new(),
            calls: 0,
            max_calls,
            cost_usd: Some(0.0),
            cases: 0,
            groups: Vec::new(),
        };
        for path in paths {
            if skill.is_none() && self.permit(&path).is_err() {
                continue;
            }
            // A skill that was named has to be there; of the others those count that have cases.
            let cases = match skill {
                Some(_) => {
                    let (skills, _) = self.skill(&path)?;
                    self.cases(&skills, &path)?
                }
                None => self.cases(&skills, &path)?,
            };
            if cases.is_empty() {
                continue;
            }
            let (_, skill) = self.skill(&path)?;
            let chosen = self.providers.choose(skill.model.as_deref()).await?;
            plan.cases += cases.len();
            if let Chosen::Model(llm) = &chosen {
                let rules = self.rules(&path)?;
                for case in cases.iter().filter_map(|file| file.case.as_ref().ok()) {
                    let calls = if case.rubric.is_some() { 4 } else { 2 };
                    let prompt = self
                        .put_together(&skill, &rules, Some(case.input.get()), &[])
                        .prompt;
                    let bytes = (prompt.len() + case.input.get().len()) as u64;
                    let tokens = bytes / BYTES_PER_TOKEN * calls;
                    let cost = llm.estimate(tokens, USUAL_ANSWER * calls);
                    plan.cost_usd = plan.cost_usd.zip(cost).map(|(a, b)| dollars(a + b));
                    plan.calls += usize::try_from(calls).unwrap_or(usize::MAX);
                }
                if !plan.models.iter().any(|model| model == llm.model()) {
                    plan.models.push(llm.model().to_owned());
                }
            }
            plan.groups.push(Group {
                path,
                skill,
                chosen,
                cases,
            });
        }
        plan.calls = plan.calls.min(max_calls);
        Ok(plan)
    }

    /// Runs what was planned. `on_case` is told how many cases are done, of how many.
    pub async fn test(
        &self,
        plan: TestPlan,
        on_case: &mut (dyn FnMut(usize, usize) + Send),
        progress: OnProgress<'_>,
    ) -> Result<TestReport, Error> {
        let mut report = TestReport::default();
        let mut meter = Meter {
            left: plan.max_calls,
            calls: 0,
            cost: Some(0.0),
            progress,
        };
        on_case(0, plan.cases);
        for group in &plan.groups {
            for CaseFile { id, case } in &group.cases {
                let done = match case {
                    Ok(case) => {
                        self.one(group, case, &mut meter, &mut report.warnings)
                            .await?
                    }
                    Err(reason) => CaseReport {
                        status: Status::Failed,
                        reason: format!("the file is no case: {reason}"),
                        ..blank(id, &group.path)
                    },
                };
                match done.status {
                    Status::Passed => report.passed += 1,
                    Status::Failed => report.failed += 1,
                    Status::Worthless => report.worthless += 1,
                    Status::Skipped => report.skipped += 1,
                }
                report.cases.push(done);
                on_case(report.cases.len(), plan.cases);
            }
        }
        report.calls = meter.calls;
        report.cost_usd = meter.cost.map(dollars);
        Ok(report)
    }

    /// Writes a report to a file that the caller has named.
    pub fn write_report(&self, path: &std::path::Path, text: &str) -> Result<(), Error> {
        super::door::create(path, text).map(drop)
    }

    fn rules(&self, path: &SkillPath) -> Result<Vec<Reflexion>, Error> {
        let of_skill = Selection {
            skill: Some(path),
            newest: None,
        };
        Ok(self.store.list::<Reflexion>(&of_skill)?.records)
    }

    /// Runs one case and stores what it says about rules.
    async fn one(
        &self,
        group: &Group,
        case: &Case,
        meter: &mut Meter<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<CaseReport, Error> {
        let mut report = CaseReport {
            correction_id: Some(case.correction_id.clone()),
            reflexion_id: Some(case.reflexion_id.clone()),
            ..blank(&case.id, &group.path)
        };
        let rules = self.rules(&group.path)?;
        let Some(rule) = rules
            .iter()
            .find(|rule| rule.reflexion_id == case.reflexion_id)
        else {
            report.reason = format!("its rule `{}` is gone", case.reflexion_id);
            return Ok(report);
        };
        let Chosen::Model(llm) = &group.chosen else {
            (report.status, report.reason) = self.without_model(case)?;
            return Ok(report);
        };
        let prompt = self.put_together(&group.skill, &rules, Some(case.input.get()), &[]);
        if let Some(omitted) = prompt.omitted.iter().find(|o| o.id == rule.reflexion_id) {
            let id = &rule.reflexion_id;
            report.reason = format!("`{id}` does not stand in the prompt: {}", omitted.reason);
            return Ok(report);
        }
        let mut trial = Trial {
            engine: self,
            llm,
            group,
            case,
            meter,
        };
        match trial.judge(&rules, rule, &mut report).await {
            Ok(()) => {
                let mut writer = self.writer()?;
                self.credit(&mut writer, &rules, &report)?;
                warnings.extend(mended(writer.take_mended()));
            }
            Err(stop) => {
                report.status = Status::Skipped;
                report.reason = match stop {
                    Stop::Capped => "the cap on calls is reached (--max-calls)".to_owned(),
                    Stop::Failed(reason) => reason,
                };
            }
        }
        Ok(report)
    }

    /// What can be said of a case without a model.
    fn without_model(&self, case: &Case) -> Result<(Status, String), Error> {
        let correction: Option<Correction> =
            match self.store.find(Kind::Correction, &case.correction_id)? {
                Some(_) => Some(self.store.get(&case.correction_id)?),
                None => None,
            };
        let expected = correction.and_then(|correction| correction.expected_output);
        let expected = expected.and_then(|json| serde_json::from_str::<Value>(json.get()).ok());
        let wrong = expected.as_ref().map(|expected| case.wrong(expected));
        let no_model = "a rule acts through a model's prompt, and no model is configured";
        Ok(match wrong {
            Some(wrong) if !wrong.is_empty() => (
                Status::Failed,
                format!("the expected output does not pass: {}", wrong.join("; ")),
            ),
            Some(_) if !case.assertions.is_empty() => (
                Status::Skipped,
                format!("{no_model}; the expected output passes"),
            ),
            _ => (Status::Skipped, no_model.to_owned()),
        })
    }
}

/// A case on its way.
struct Trial<'t, 'p> {
    engine: &'t Engine,
    llm: &'t Llm,
    group: &'t Group,
    case: &'t Case,
    meter: &'t mut Meter<'p>,
}

impl Trial<'_, '_> {
    /// Runs the case without and with its rule, and finds out why it fails where it does.
    async fn judge(
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
        (report.status, report.reason) = match (before, after) {
            (Err(_), Ok(())) => (
                Status::Passed,
                format!("fails without `{id}` and passes with it"),
            ),
            (Ok(()), Ok(())) => (
                Status::Worthless,
                format!("passes without `{id}` too, so the test proves nothing"),
            ),
            (Ok(()), Err(wrong)) => {
                report.broken_by.push(id.clone());
                (
                    Status::Failed,
                    format!("`{id}` breaks it: passes without it, and with it {wrong}"),
                )
            }
            (Err(_), Err(wrong)) => {
                let culprit = self.culprit(rules, rule).await?;
                report.broken_by.extend(culprit.clone());
                let reason = match culprit {
                    Some(other) => format!(
                        "`{other}` breaks it: passes with `{id}` alone, and with both {wrong}"
                    ),
                    None => format!("`{id}` does not help: {wrong}"),
                };
                (Status::Failed, reason)
            }
        };
        Ok(())
    }

    /// The rule that makes the case fail although its own stands in the prompt.
    async fn culprit(
        &mut self,
        rules: &[Reflexion],
        rule: &Reflexion,
    ) -> Result<Option<String>, Stop> {
        let others = all_but(rules, &rule.reflexion_id);
        if others.is_empty() || self.answer(std::slice::from_ref(rule)).await?.is_err() {
            return Ok(None);
        }
        for other in &others {
            if self
                .answer(&all_but(rules, &other.reflexion_id))
                .await?
                .is_ok()
            {
                return Ok(Some(other.reflexion_id.clone()));
            }
        }
        Ok(None)
    }

    /// Asks with these rules, and says what is wrong with the answer.
    async fn answer(&mut self, rules: &[Reflexion]) -> Result<Result<(), String>, Stop> {
        let input = self.case.input.get();
        let request = Request {
            system: self
                .engine
                .put_together(&self.group.skill, rules, Some(input), &[])
                .prompt,
            user: input.to_owned(),
            schema: None,
            max_tokens: self.engine.settings.max_output_tokens,
        };
        let text = self.meter.ask(self.llm, &request).await?;
        let answer = guard::redact_json(output(&text).get()).text.into_owned();
        let value: Value = serde_json::from_str(&answer).unwrap_or_default();
        let wrong = self.case.wrong(&value);
        if !wrong.is_empty() {
            return Ok(Err(wrong.join("; ")));
        }
        let Some(rubric) = &self.case.rubric else {
            return Ok(Ok(()));
        };
        let system = self.engine.settings.judge_prompt.as_deref();
        let request = rubric::ask(rubric, input, &answer, system.unwrap_or(rubric::PROMPT));
        let reply = self.meter.ask(self.llm, &request).await?;
        let verdict = rubric::accept(&reply).map_err(|reason| {
            Stop::Failed(format!("the judge's answer cannot be used: {reason}"))
        })?;
        let reason = guard::redact(&verdict.reason).text.into_owned();
        Ok(if verdict.pass {
            Ok(())
        } else {
            Err(format!("the judge says: {reason}"))
        })
    }
}

impl Meter<'_> {
    async fn ask(&mut self, llm: &Llm, request: &Request) -> Result<String, Stop> {
        if self.left == 0 {
            return Err(Stop::Capped);
        }
        self.left -= 1;
        self.calls += 1;
        match llm.ask(request, self.progress).await {
            Ok(reply) => {
                self.cost = self.cost.zip(reply.cost_usd).map(|(a, b)| a + b);
                Ok(reply.text)
            }
            Err(error) => {
                let paid = error.paid().map_or(Some(0.0), |paid| paid.cost_usd);
                self.cost = self.cost.zip(paid).map(|(a, b)| a + b);
                Err(Stop::Failed(format!("the model failed: {}", chain(&error))))
            }
        }
    }
}

fn blank(id: &str, skill: &SkillPath) -> CaseReport {
    CaseReport {
        id: id.to_owned(),
        skill: skill.clone(),
        correction_id: None,
        reflexion_id: None,
        status: Status::Skipped,
        without_rule: None,
        with_rule: None,
        broken_by: Vec::new(),
        reason: String::new(),
    }
}

const fn verdict(answer: &Result<(), String>) -> Status {
    match answer {
        Ok(()) => Status::Passed,
        Err(_) => Status::Failed,
    }
}

fn all_but(rules: &[Reflexion], id: &str) -> Vec<Reflexion> {
    let others = rules.iter().filter(|rule| rule.reflexion_id != id);
    others.cloned().collect()
}
