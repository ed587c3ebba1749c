//! Rules: read, added as another program has worded them, and edited.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::{Kind, Reflexion};
use crate::rules::{self, AddedRule};
use crate::serve::arguments::{LONGEST_NAME, LONGEST_TEXT, text};
use crate::serve::operations::screened;
use crate::{review, skills};

use super::super::input::{Answer, Body, Names, Parameters, reply};
use super::super::problem::Problem;
use super::super::route;
use super::super::state::{Call, Use};
use super::records::Page;
use super::skill;
use super::users::refuse_agents;

/// Confidence of a rule that names none, as in the source document.
const USUAL: f64 = 0.8;

/// Rules, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Reflexions {
    #[schemars(with = "Vec<Map<String, Value>>")]
    reflexions: Vec<Reflexion>,
    warnings: Vec<String>,
}

/// `GET /v1/reflexions`
pub(crate) async fn reflexions(call: Call, Parameters(page): Parameters<Page>) -> Answer {
    let (skill, limit) = page.read()?;
    let work = call.work(Use::Any, "serve reflexions", async move |workspace| {
        let found = skills::records(workspace, skill.as_ref(), limit)?;
        Ok(Reflexions {
            reflexions: found.records,
            warnings: found.warnings,
        })
    });
    reply(&work.await?)
}

/// `GET /v1/reflexions/{id}`
pub(crate) async fn reflexion(call: Call, Names(id): Names<String>) -> Answer {
    let work = call.work(Use::Any, "serve reflexions", async move |workspace| {
        Ok(skills::record::<Reflexion>(workspace, &id)?)
    });
    reply(&work.await?)
}

/// Rule that another program has worded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReflexionBody {
    /// Skill, as `domain/skill`.
    #[schemars(regex(pattern = route::SKILL))]
    skill: String,
    /// Guidance for the prompt.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    rule: String,
    /// Condition under which the rule applies.
    #[serde(default)]
    applies_when: String,
    /// The mistake.
    #[serde(default)]
    mistake: String,
    /// Cause of the mistake.
    #[serde(default)]
    root_cause: String,
    /// Id of the correction that the rule comes from.
    #[serde(default)]
    correction_id: String,
    /// From 0 to 1; default 0.8.
    #[schemars(range(min = 0, max = 1))]
    confidence: Option<f64>,
    /// `true` if a test of the caller holds with the rule and fails without it.
    #[serde(default)]
    validated_by_test: bool,
    /// Ids of these tests.
    #[serde(default)]
    generated_test_ids: Vec<String>,
}

impl ReflexionBody {
    fn read(self) -> Result<Reflexion, Problem> {
        let given = |name, value: String| {
            if value.is_empty() {
                Ok(value)
            } else {
                text(name, value, LONGEST_TEXT)
            }
        };
        let confidence = self.confidence.unwrap_or(USUAL);
        if !(0.0..=1.0).contains(&confidence) {
            return Err(Problem::unfit(
                format!("`confidence` is out of range: {confidence}"),
                "give a number from 0 to 1",
            ));
        }
        let correction_id = match self.correction_id {
            none if none.is_empty() => none,
            id => text("correction_id", id, LONGEST_NAME)?,
        };
        Ok(Reflexion {
            skill: skill(&self.skill)?.to_string(),
            correction_id,
            mistake: given("mistake", self.mistake)?,
            root_cause: given("root_cause", self.root_cause)?,
            rule: text("rule", self.rule, LONGEST_TEXT)?,
            applies_when: given("applies_when", self.applies_when)?,
            confidence: Some(confidence),
            validated_by_test: self.validated_by_test,
            generated_test_ids: self.generated_test_ids,
            ..Reflexion::default()
        })
    }
}

/// `POST /v1/reflexions`
pub(crate) async fn add_reflexion(
    call: Call,
    Body(body): Body<ReflexionBody>,
) -> Result<(StatusCode, Response), Problem> {
    let by_agent = call.caller.is_agent;
    let rule = body.read()?;
    if by_agent {
        for text in [
            &rule.rule, &rule.applies_when, &rule.mistake, &rule.root_cause,
        ] {
            screened(text)?;
        }
    }
    let work = call.work(Use::Writes, "serve reflexions", async move |workspace| {
        Ok(rules::add_rule(workspace, rule, by_agent)?)
    });
    let added: AddedRule = work.await?;
    Ok((StatusCode::CREATED, reply(&added)?))
}

/// `PATCH /v1/reflexions/{id}`
pub(crate) async fn update_reflexion(
    call: Call,
    Names(id): Names<String>,
    Body(updates): Body<BTreeMap<String, Value>>,
) -> Answer {
    refuse_agents(&call, "an agent cannot edit a rule")?;
    let given = updates.into_iter().map(|(field, value)| match value {
        Value::String(text) => Ok((field, text)),
        value if value.is_null() || review::is_text(Kind::Reflexion, &field) => {
            let found = if value.is_null() { "null" } else { "no text" };
            let message = format!("`{}` is {found}", field.escape_debug());
            Err(Problem::unfit(message, "give it a value, or leave it out"))
        }
        value => Ok((field, value.to_string())),
    });
    let given: Vec<(String, String)> = given.collect::<Result<_, _>>()?;
    let work = call.work(Use::Writes, "serve reflexions", async move |workspace| {
        // Only rules are edited here.
        let id = workspace.store.resolve(Kind::Reflexion, &id, None)?;
        Ok(review::edit(workspace, &id, &given)?)
    });
    reply(&work.await?)
}
