//! Corrects an execution: correction, rule, guardrail, regression test.
//!
//! The correction is stored first; a later failure is a warning and loses nothing. Repeating a
//! correction changes nothing and returns the existing records.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::guard;
use crate::learn::reflect::{self, Draft, Lesson, Reflection};
use crate::llm::OnProgress;
use crate::model::{AGENT, Correction, Execution, Kind, Record as _, Reflexion, SkillPath, Trust};
use crate::store::{Scoped, Selection};

use super::assemble::suspicion;
use super::contradictions::{Conflict, settle};
use super::evidence::{Witness, count_correction, uncounted};
use super::passed_on::{adopt, stand_for};
use super::rules::{Placed, own_rules, place_rule, standing};
use super::similar::{SimilarRule, similar_rules};
use crate::workspace::Error;
use crate::workspace::error::chain;
use crate::workspace::providers::Chosen;
use crate::workspace::redacting_writer::redaction_warning;
use crate::workspace::{Workspace, dollars, repair_warnings};

const OFFLINE: &str = "offline";

/// Correction from the caller.
#[derive(Debug, Clone)]
pub struct CorrectOptions {
    /// Path of the skill.
    pub skill: SkillPath,
    /// Execution: an id, an id prefix, or `latest`.
    pub execution: String,
    /// Description of the mistake and of the desired change.
    pub correction: String,
    /// Expected output; `None` if not given.
    pub expected: Option<Box<RawValue>>,
    /// Keeps the correction as a rule even if it reads like a remark.
    pub is_rule: bool,
    /// Lets the new rule supersede the rules that it contradicts. Ignored if `by_agent`.
    pub supersede: bool,
    /// Marks a correction from an agent. Its rule is a candidate without effect until a person
    /// approves it.
    pub by_agent: bool,
}

/// Result of a correction.
#[derive(Debug, Serialize)]
pub struct CorrectReport {
    /// Id of the correction.
    pub correction_id: String,
    /// Id of the corrected execution.
    pub execution_id: String,
    /// Id of the rule: a new one, or an existing one with the same meaning. `None` if none was
    /// learnt.
    pub reflexion_id: Option<String>,
    /// Text of the rule.
    pub rule: Option<String>,
    /// Status of the rule: `active`, or `candidate` if an agent supplied it or it is in doubt.
    pub status: Option<&'static str>,
    /// Trust level of the rule.
    pub trust: Option<Trust>,
    /// True if a person repeated the correction and so turned a candidate into a rule.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_candidate: bool,
    /// Condition under which the rule applies.
    pub applies_when: Option<String>,
    /// Cause of the mistake.
    pub root_cause: Option<String>,
    /// Score from 0 to 1 for how specific and actionable the correction is.
    pub confidence: f64,
    /// Files that hold the regression test.
    pub tests: Vec<String>,
    /// Guardrail files that the rule was added to.
    pub guardrails: Vec<String>,
    /// Rules that contradict the new one.
    pub conflicts: Vec<Conflict>,
    /// Rules near the new one, at most three, nearest first: it may repeat, narrow or contradict
    /// them, and a person has to say so. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<SimilarRule>,
    /// Id of the existing rule with the same meaning.
    pub duplicate_of: Option<String>,
    /// Source of the rule's text: `offline`, or `provider/model`.
    pub distilled_by: String,
    /// Price in US dollars; `None` if the price is not known.
    pub cost_usd: Option<f64>,
    /// Reason why no rule was learnt, and how to get one.
    pub not_learned: Option<String>,
    /// Reason why the rule is a candidate until a person says that it is one; absent for a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<&'static str>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Result of the reflection step.
struct Worded {
    reflection: Reflection,
    /// Source of the text: `offline`, or `provider/model`.
    by: String,
    /// Price in US dollars; `None` if the price is not known.
    cost_usd: Option<f64>,
}

/// Corrects an execution.
pub async fn correct(
    workspace: &Workspace,
    mut options: CorrectOptions,
    progress: OnProgress<'_>,
) -> Result<CorrectReport, Error> {
    workspace.permit(&options.skill)?;
    let left_out = clean(&mut options);
    let said = options.correction.trim();
    if guard::says_nothing(said) {
        return Err(Error::EmptyCorrection);
    }
    // Only a person may supersede rules.
    options.supersede &= !options.by_agent;
    let mut execution = execution_of(workspace, &options)?;
    // Data files of older versions may hold secrets, which no model may see.
    for json in [&mut execution.input_summary, &mut execution.output_summary] {
        clean_json(json);
    }
    let (correction, known_rule, mut warnings) =
        store_correction(workspace, &options, said, &execution)?;
    warnings.extend(redaction_warning(left_out));
    if let Some(rule) = known_rule {
        return said_before(workspace, &options, &correction, &execution, rule, warnings);
    }
    let lesson = Lesson {
        skill: &options.skill,
        correction: said,
        input: &execution.input_summary,
        output: &execution.output_summary,
        is_rule: options.is_rule,
    };
    let mut worded = reflect(workspace, &correction, &lesson, &mut warnings, progress).await;
    if options.is_rule && matches!(worded.reflection, Reflection::Nothing { .. }) {
        worded.reflection = reflect::offline(&lesson);
        OFFLINE.clone_into(&mut worded.by);
    }
    let Worded {
        reflection,
        by,
        cost_usd,
    } = worded;
    let (draft, refused) = match reflection {
        Reflection::Rule(draft) => {
            let refused = refused(&workspace.store, &draft)?;
            (Ok(draft), refused)
        }
        Reflection::Nothing { reason, confidence } => (Err(confidence), Some(reason)),
    };
    let mut report = match (draft, refused) {
        (Ok(draft), None) => {
            let doubt = draft.doubt;
            let Placed {
                rule,
                duplicate_of,
                was_candidate,
                mended,
            } = place_rule(workspace, &correction, draft, &by, options.by_agent)?;
            warnings.extend(mended);
            warnings.extend(suspicion(&rule));
            let (mut guardrails, mut tests) = (Vec::new(), Vec::new());
            if !rule.is_candidate() && !options.by_agent {
                guardrails = workspace.finish_guardrails(&options.skill, &mut warnings);
                if duplicate_of.is_none() {
                    guardrails
                        .extend(workspace.add_guardrails(&options.skill, &rule, &mut warnings));
                }
                tests = workspace.write_tests(&correction, &execution, &rule, &mut warnings);
            }
            let conflicts = settle(workspace, &rule, options.supersede && !rule.is_candidate())?;
            CorrectReport {
                tests,
                guardrails,
                duplicate_of,
                was_candidate,
                doubt: doubt.filter(|_| rule.is_candidate()),
                similar: similar(workspace, &rule, &conflicts, &mut warnings),
                conflicts,
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

/// Returns the rules near a rule. A search that fails is a warning: the rule is stored.
fn similar(
    workspace: &Workspace,
    rule: &Reflexion,
    conflicts: &[Conflict],
    warnings: &mut Vec<String>,
) -> Vec<SimilarRule> {
    let named: Vec<&str> = conflicts.iter().map(|other| other.id.as_str()).collect();
    similar_rules(workspace, rule, &named).unwrap_or_else(|error| {
        warnings.push(format!(
            "similar rules were not looked up: {}",
            chain(&error)
        ));
        Vec::new()
    })
}

/// Handles a repeated correction that already has a rule. From an agent it changes nothing;
/// from a person it approves the agent's correction.
fn said_before(
    workspace: &Workspace,
    options: &CorrectOptions,
    correction: &Correction,
    execution: &Execution,
    mut rule: Reflexion,
    mut warnings: Vec<String>,
) -> Result<CorrectReport, Error> {
    let (mut guardrails, mut tests) = (Vec::new(), Vec::new());
    let was_candidate = rule.is_candidate() && !options.by_agent;
    if was_candidate {
        adopt(&mut workspace.writer()?, &mut rule, correction, None)?;
    }
    if !options.by_agent {
        guardrails = workspace.finish_guardrails(&options.skill, &mut warnings);
        if was_candidate {
            let added = workspace.add_guardrails(&options.skill, &rule, &mut warnings);
            guardrails.extend(added);
        }
        tests = workspace.write_tests(correction, execution, &rule, &mut warnings);
    }
    Ok(CorrectReport {
        tests,
        guardrails,
        was_candidate,
        conflicts: settle(workspace, &rule, options.supersede)?,
        ..report(correction, Some(&rule), warnings)
    })
}

/// Returns the reason if the rule was deleted on purpose and may not be learnt again.
fn refused(store: &Scoped, draft: &Draft) -> Result<Option<String>, Error> {
    let tombstone = store.buried(Kind::Reflexion, &draft.rule)?;
    Ok(tombstone.map(|tombstone| {
        let day = tombstone.at.split('T').next().unwrap_or_default();
        format!(
            "this rule was removed on purpose ({} on {day}); say it in other words to learn it again",
            tombstone.id
        )
    }))
}

/// Returns the execution to correct. Fails if it belongs to another skill: its rule would be
/// stored under the wrong skill.
fn execution_of(workspace: &Workspace, options: &CorrectOptions) -> Result<Execution, Error> {
    let resolved =
        workspace
            .store
            .resolve(Kind::Execution, &options.execution, Some(&options.skill));
    let id = match resolved {
        Ok(id) => id,
        Err(error) => {
            // If the skill is misspelt as well, its error comes first.
            workspace.skill(&options.skill)?;
            return Err(error.into());
        }
    };
    let execution: Execution = workspace.store.get(&id)?;
    if execution.skill == options.skill.to_string() {
        return Ok(execution);
    }
    workspace.skill(&options.skill)?;
    Err(Error::OtherSkill {
        execution: id,
        actual: execution.skill,
        skill: options.skill.clone(),
    })
}

/// Stores the correction, or returns the stored one with the same text and its rule.
fn store_correction(
    workspace: &Workspace,
    options: &CorrectOptions,
    said: &str,
    execution: &Execution,
) -> Result<(Correction, Option<Reflexion>, Vec<String>), Error> {
    let of_skill = Selection {
        skill: Some(&options.skill),
        newest: None,
    };
    let mut writer = workspace.writer()?;
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
        warnings.extend(repair_warnings(writer.take_repairs()));
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
        timestamp: workspace.timestamp(),
        original_output: execution.output_summary.clone(),
        user_correction: options.correction.clone(),
        expected_output: options.expected.clone(),
        source: if options.by_agent { AGENT } else { "" }.to_owned(),
        trust: String::new(),
    };
    let correction = writer.append(correction, workspace.now)?;
    // A correction from an agent counts against no rule until a person approves it.
    let counted = if options.by_agent {
        Ok(())
    } else {
        count_correction(&mut writer, execution, said, Witness::Person)
    };
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    warnings.extend(counted.err().map(|error| uncounted(&error)));
    Ok((correction, None, warnings))
}

/// Turns the correction into a rule, by a model if one is configured and answers. A paid answer
/// that is not a rule is kept in a file, which the warning names.
async fn reflect(
    workspace: &Workspace,
    correction: &Correction,
    lesson: &Lesson<'_>,
    warnings: &mut Vec<String>,
    progress: OnProgress<'_>,
) -> Worded {
    let asked = workspace
        .skills()
        .and_then(|skills| Ok(skills.load(lesson.skill)?.model))
        .unwrap_or_default();
    let mut offline = |why: Option<String>, answer: Option<&str>, cost_usd| {
        warnings.extend(why.map(|why| format!("the rule was made without a model: {why}")));
        if let Some(answer) = answer.filter(|answer| !answer.is_empty()) {
            let name = format!("{}-answer.txt", correction.correction_id);
            let kept = workspace.set_aside(&name, answer);
            warnings.extend(kept.map(|path| format!("the answer is kept in `{}`", path.display())));
        }
        Worded {
            reflection: reflect::offline(lesson),
            by: OFFLINE.to_owned(),
            cost_usd,
        }
    };
    let llm = match workspace.providers.choose(asked.as_deref()).await {
        Ok(Chosen::Model(llm)) => llm,
        Ok(Chosen::Offline) => return offline(None, None, Some(0.0)),
        Err(error) => return offline(Some(chain(&error)), None, Some(0.0)),
    };
    let system = workspace
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

/// Redacts the options; returns the kinds of secrets found.
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

/// Redacts a JSON value; returns the kinds of secrets found.
fn clean_json(json: &mut Box<RawValue>) -> Vec<&'static str> {
    let redacted = guard::redact_json(json.get());
    if redacted.found.is_empty() {
        return Vec::new();
    }
    let found = redacted.found;
    // Redacted JSON should still parse; if it does not, the value becomes null.
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
        similar: Vec::new(),
        duplicate_of: None,
        distilled_by: rule
            .map(|rule| rule.distilled_by.clone())
            .unwrap_or_default(),
        cost_usd: Some(0.0),
        not_learned: None,
        doubt: None,
        warnings,
    }
}
