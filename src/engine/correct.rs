//! Corrects an execution: correction, rule, guardrail, regression test.
//!
//! The correction is stored first; whatever fails after that is a warning and loses nothing. The
//! same correction said again changes nothing and answers what is there already.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::guard;
use crate::learn::reflect::{self, Draft, Lesson, Reflection};
use crate::llm::OnProgress;
use crate::model::{AGENT, Correction, Execution, Kind, Record as _, Reflexion, SkillPath, Trust};
use crate::store::Selection;

use super::assemble::suspicion;
use super::door::kept_out;
use super::error::chain;
use super::evidence::{Witness, count_correction, uncounted};
use super::model::Chosen;
use super::passed_on::{adopt, stand_for};
use super::rules::{Conflict, Placed, own_rules, standing};
use super::{Engine, Error, dollars, mended};

const OFFLINE: &str = "offline";

/// What a person says.
#[derive(Debug)]
pub struct CorrectOptions {
    /// The skill.
    pub skill: SkillPath,
    /// The execution: an id, the beginning of one, or `latest`.
    pub execution: String,
    /// What was wrong and what should change.
    pub correction: String,
    /// What the output should have been.
    pub expected: Option<Box<RawValue>>,
    /// Whether the new rule takes the place of those that it contradicts.
    pub supersede: bool,
    /// Whether an agent has passed it on. Then the rule is a candidate, and acts nowhere before a person
    /// approves it.
    pub by_agent: bool,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct CorrectReport {
    /// The correction.
    pub correction_id: String,
    /// The execution that it corrects.
    pub execution_id: String,
    /// The rule: the new one, or the one that said the same already.
    pub reflexion_id: Option<String>,
    /// Its text.
    pub rule: Option<String>,
    /// How the rule stands: `active`, or `candidate` where an agent has passed it on.
    pub status: Option<&'static str>,
    /// How far the rule may be believed.
    pub trust: Option<Trust>,
    /// Whether it was a candidate, and is a rule now since a person has said the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_candidate: bool,
    /// When it matters.
    pub applies_when: Option<String>,
    /// Why the mistake was made.
    pub root_cause: Option<String>,
    /// How specific and actionable the correction was.
    pub confidence: f64,
    /// Regression tests that came out of it.
    pub tests: Vec<String>,
    /// The guardrail files that it was added to.
    pub guardrails: Vec<String>,
    /// Rules that say the opposite.
    pub conflicts: Vec<Conflict>,
    /// The rule that said the same already.
    pub duplicate_of: Option<String>,
    /// Who put the rule into words: `offline`, or `provider/model`.
    pub distilled_by: String,
    /// What that cost, in US dollars; `None` where the price is not known.
    pub cost_usd: Option<f64>,
    /// Why there is no rule, and what to say for one.
    pub not_learned: Option<String>,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// A correction in the words of a rule.
struct Worded {
    reflection: Reflection,
    /// `offline`, or `provider/model`.
    by: String,
    /// US dollars; `None` where the price is not known.
    cost_usd: Option<f64>,
}

impl Engine {
    /// Corrects an execution.
    pub async fn correct(
        &self,
        mut options: CorrectOptions,
        progress: OnProgress<'_>,
    ) -> Result<CorrectReport, Error> {
        self.permit(&options.skill)?;
        let left_out = clean(&mut options);
        let said = options.correction.trim();
        if guard::says_nothing(said) {
            return Err(Error::EmptyCorrection);
        }
        // Nobody but a person decides what holds in the place of what.
        options.supersede &= !options.by_agent;
        let mut execution = self.execution_of(&options)?;
        // An old file may still hold what no model is to be told.
        for json in [&mut execution.input_summary, &mut execution.output_summary] {
            clean_json(json);
        }
        let (correction, known_rule, mut warnings) =
            self.store_correction(&options, said, &execution)?;
        warnings.extend(kept_out(left_out));
        if let Some(rule) = known_rule {
            return self.said_before(&options, &correction, &execution, rule, warnings);
        }
        let lesson = Lesson {
            skill: &options.skill,
            correction: said,
            input: &execution.input_summary,
            output: &execution.output_summary,
        };
        let Worded {
            reflection,
            by,
            cost_usd,
        } = self
            .reflect(&correction, &lesson, &mut warnings, progress)
            .await;
        let (draft, refused) = match reflection {
            Reflection::Rule(draft) => {
                let refused = self.refused(&draft)?;
                (Ok(draft), refused)
            }
            Reflection::Nothing { reason, confidence } => (Err(confidence), Some(reason)),
        };
        let mut report = match (draft, refused) {
            (Ok(draft), None) => {
                let Placed {
                    rule,
                    duplicate_of,
                    was_candidate,
                    mended,
                } = self.place_rule(&correction, draft, &by, options.by_agent)?;
                warnings.extend(mended);
                warnings.extend(suspicion(&rule));
                let (mut guardrails, mut tests) = (Vec::new(), Vec::new());
                if !options.by_agent {
                    guardrails = self.finish_guardrails(&options.skill, &mut warnings);
                    if duplicate_of.is_none() {
                        guardrails
                            .extend(self.add_guardrails(&options.skill, &rule, &mut warnings));
                    }
                    tests = self.write_tests(&correction, &execution, &rule, &mut warnings);
                }
                CorrectReport {
                    tests,
                    guardrails,
                    duplicate_of,
                    was_candidate,
                    conflicts: self.settle(&rule, options.supersede)?,
                    ..report(&correction, Some(&rule), warnings)
                }
            }
            (draft, not_learned) => CorrectReport {
                confidence: draft.map_or_else(|confidence| confidence, |draft| draft.confidence),
                distilled_by: by,
                not_learned,
                ..report(&correction, None, warnings)
            },
        };
        report.cost_usd = cost_usd.map(dollars);
        Ok(report)
    }

    /// The same correction again, whose rule is there. An agent that repeats it changes nothing; a person
    /// who says what an agent has passed on stands for it.
    fn said_before(
        &self,
        options: &CorrectOptions,
        correction: &Correction,
        execution: &Execution,
        mut rule: Reflexion,
        mut warnings: Vec<String>,
    ) -> Result<CorrectReport, Error> {
        let (mut guardrails, mut tests) = (Vec::new(), Vec::new());
        let was_candidate = rule.is_candidate() && !options.by_agent;
        if was_candidate {
            adopt(&mut self.writer()?, &mut rule, correction, None)?;
        }
        if !options.by_agent {
            guardrails = self.finish_guardrails(&options.skill, &mut warnings);
            if was_candidate {
                let added = self.add_guardrails(&options.skill, &rule, &mut warnings);
                guardrails.extend(added);
            }
            tests = self.write_tests(correction, execution, &rule, &mut warnings);
        }
        Ok(CorrectReport {
            tests,
            guardrails,
            was_candidate,
            conflicts: self.settle(&rule, options.supersede)?,
            ..report(correction, Some(&rule), warnings)
        })
    }

    /// Why a rule that could be learnt is not: it was removed on purpose.
    fn refused(&self, draft: &Draft) -> Result<Option<String>, Error> {
        let tombstone = self.store.buried(Kind::Reflexion, &draft.rule)?;
        Ok(tombstone.map(|tombstone| {
            let day = tombstone.at.split('T').next().unwrap_or_default();
            format!(
                "this rule was removed on purpose ({} on {day}); say it in other words to learn it again",
                tombstone.id
            )
        }))
    }

    /// The execution that is meant. One of another skill is refused: a rule that was learnt from
    /// it would land where nobody looks for it.
    fn execution_of(&self, options: &CorrectOptions) -> Result<Execution, Error> {
        let resolved =
            self.store
                .resolve(Kind::Execution, &options.execution, Some(&options.skill));
        let id = match resolved {
            Ok(id) => id,
            Err(error) => {
                // Whoever mistypes the skill as well wants to hear of the skill.
                self.skill(&options.skill)?;
                return Err(error.into());
            }
        };
        let execution: Execution = self.store.get(&id)?;
        if execution.skill == options.skill.to_string() {
            return Ok(execution);
        }
        self.skill(&options.skill)?;
        Err(Error::OtherSkill {
            execution: id,
            actual: execution.skill,
            skill: options.skill.clone(),
        })
    }

    /// Stores the correction, or finds it where it has been said before, together with the rule
    /// that came of it then.
    fn store_correction(
        &self,
        options: &CorrectOptions,
        said: &str,
        execution: &Execution,
    ) -> Result<(Correction, Option<Reflexion>, Vec<String>), Error> {
        let of_skill = Selection {
            skill: Some(&options.skill),
            newest: None,
        };
        let mut writer = self.writer()?;
        let before = writer.store().list::<Correction>(&of_skill)?.records;
        let same = before
            .into_iter()
            .find(|c| c.execution_id == execution.execution_id && c.user_correction.trim() == said);
        if let Some(mut known) = same {
            let mut warnings = Vec::new();
            if !options.by_agent && known.trust() < Trust::User {
                stand_for(&mut writer, &mut known, options.expected.clone())?;
                let counted = count_correction(&mut writer, execution, said, Witness::Person);
                warnings.extend(counted.err().map(|error| uncounted(&error)));
            } else if let Some(expected) = &options.expected
                && (!options.by_agent || known.trust() == Trust::Observed)
            {
                let change = [("expected_output", expected)];
                writer.update(Kind::Correction, &known.correction_id, &change)?;
                known.expected_output = Some(expected.clone());
            }
            warnings.extend(mended(writer.take_mended()));
            let rules = own_rules(writer.store(), &of_skill)?;
            let rule = rules
                .iter()
                .find(|r| r.correction_id == known.correction_id)
                .map(|rule| standing(&rules, rule).clone());
            return Ok((known, rule, warnings));
        }
        let correction = Correction {
            correction_id: String::new(),
            execution_id: execution.execution_id.clone(),
            skill: options.skill.to_string(),
            timestamp: self.timestamp(),
            original_output: execution.output_summary.clone(),
            user_correction: options.correction.clone(),
            expected_output: options.expected.clone(),
            source: if options.by_agent { AGENT } else { "" }.to_owned(),
            trust: String::new(),
        };
        let correction = writer.append(correction, self.now)?;
        // What an agent says speaks against no rule before a person approves it.
        let counted = if options.by_agent {
            Ok(())
        } else {
            count_correction(&mut writer, execution, said, Witness::Person)
        };
        let mut warnings: Vec<String> = mended(writer.take_mended()).collect();
        warnings.extend(counted.err().map(|error| uncounted(&error)));
        Ok((correction, None, warnings))
    }

    /// Turns the correction into words of a rule: by a model, where there is one and it answers.
    /// An answer that was paid for and is no rule is kept in a file that the warning names.
    async fn reflect(
        &self,
        correction: &Correction,
        lesson: &Lesson<'_>,
        warnings: &mut Vec<String>,
        progress: OnProgress<'_>,
    ) -> Worded {
        let asked = self
            .skills()
            .and_then(|skills| Ok(skills.load(lesson.skill)?.model))
            .unwrap_or_default();
        let mut offline = |why: Option<String>, answer: Option<&str>, cost_usd| {
            warnings.extend(why.map(|why| format!("the rule was made without a model: {why}")));
            if let Some(answer) = answer.filter(|answer| !answer.is_empty()) {
                let name = format!("{}-answer.txt", correction.correction_id);
                let kept = self.set_aside(&name, answer);
                warnings
                    .extend(kept.map(|path| format!("the answer is kept in `{}`", path.display())));
            }
            Worded {
                reflection: reflect::offline(lesson),
                by: OFFLINE.to_owned(),
                cost_usd,
            }
        };
        let llm = match self.providers.choose(asked.as_deref()).await {
            Ok(Chosen::Model(llm)) => llm,
            Ok(Chosen::Offline) => return offline(None, None, Some(0.0)),
            Err(error) => return offline(Some(chain(&error)), None, Some(0.0)),
        };
        let system = self
            .settings
            .reflect_prompt
            .as_deref()
            .unwrap_or(reflect::PROMPT);
        let reply = match llm.ask(&reflect::ask(lesson, system), progress).await {
            Ok(reply) => reply,
            Err(error) => {
                let cost = error.paid().and_then(|paid| paid.cost_usd);
                return offline(Some(chain(&error)), error.raw_text(), cost);
            }
        };
        match reflect::accept(lesson, &reply.text) {
            Ok(reflection) => Worded {
                reflection,
                by: reply.model,
                cost_usd: reply.cost_usd,
            },
            Err(reason) => {
                let why = format!("the answer of `{}` is no rule: {reason}", reply.model);
                offline(Some(why), Some(&reply.text), reply.cost_usd)
            }
        }
    }
}

/// Takes out of what a person gave what must not be stored; answers the kinds of it.
fn clean(options: &mut CorrectOptions) -> Vec<&'static str> {
    let redacted = guard::redact(&options.correction);
    let mut found = redacted.found;
    if let std::borrow::Cow::Owned(text) = redacted.text {
        options.correction = text;
    }
    if let Some(expected) = &mut options.expected {
        found.extend(clean_json(expected));
    }
    found
}

/// The same for a JSON value.
fn clean_json(json: &mut Box<RawValue>) -> Vec<&'static str> {
    let redacted = guard::redact_json(json.get());
    if redacted.found.is_empty() {
        return Vec::new();
    }
    let found = redacted.found;
    // JSON without its secrets is JSON; if it were not, nothing of it would be kept.
    let cleaned = serde_json::from_str(&redacted.text);
    *json = cleaned.unwrap_or_else(|_| RawValue::NULL.to_owned());
    found
}

fn report(
    correction: &Correction,
    rule: Option<&Reflexion>,
    warnings: Vec<String>,
) -> CorrectReport {
    CorrectReport {
        correction_id: correction.correction_id.clone(),
        execution_id: correction.execution_id.clone(),
        reflexion_id: rule.map(|rule| rule.reflexion_id.clone()),
        rule: rule.map(|rule| rule.rule.clone()),
        status: rule.map(Reflexion::state),
        trust: rule.map(Reflexion::trust),
        was_candidate: false,
        applies_when: rule.map(|rule| rule.applies_when.clone()),
        root_cause: rule.map(|rule| rule.root_cause.clone()),
        confidence: rule.and_then(|rule| rule.confidence).unwrap_or(0.5),
        tests: Vec::new(),
        guardrails: Vec::new(),
        conflicts: Vec::new(),
        duplicate_of: None,
        distilled_by: rule
            .map(|rule| rule.distilled_by.clone())
            .unwrap_or_default(),
        cost_usd: Some(0.0),
        not_learned: None,
        warnings,
    }
}
