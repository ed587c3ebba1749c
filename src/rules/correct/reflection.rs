//! Second stage: words the rule, by a model if one is configured and answers.
//!
//! The model sees the existing rules that are nearest to the correction, and judges their relation to
//! the new rule. Only rules that a person here vouches for are shown: text of others must not
//! decide what becomes of a person's correction.

use super::CorrectOptions;
use super::storage::Stored;
use crate::model::{Execution, Record as _};
use crate::rules::place::own_rules;
use crate::rules::place::similar::nearest;
use crate::rules::reflect::{
    self, CorrectionContext, Judged, Neighbour, Reflection, offline as without_model,
};
use crate::store::Selection;
use crate::store::workspace::error::chain;
use crate::store::workspace::providers::Chosen;
use crate::store::workspace::{Error, Workspace};
use memctl_llm::{OnProgress, Request};

const OFFLINE: &str = "offline";
/// Maximum number of existing rules that a model compares with a correction.
const NEIGHBOURS: usize = 8;

/// Stored correction with the words of its rule.
pub(super) struct Worded {
    pub(super) stored: Stored,
    pub(super) reflection: Reflection,
    /// Judgements of the model on existing rules.
    pub(super) related: Vec<Judged>,
    /// Source of the text: `offline`, or `provider/model`.
    pub(super) by: String,
    /// Price in US dollars; `None` if the price is not known.
    pub(super) cost_usd: Option<f64>,
}

/// Words the rule. A model that fails is a warning, and the rule is made without one.
pub(super) async fn reflect(
    workspace: &Workspace,
    mut stored: Stored,
    progress: OnProgress<'_>,
) -> Result<Worded, Error> {
    let chosen = choose(workspace, &stored.options).await;
    let is_asked = matches!(chosen, Ok(Chosen::Model(_)));
    let neighbours = if is_asked {
        neighbours(workspace, &stored.options).unwrap_or_else(|error| {
            let warning = format!("existing rules were not compared: {}", chain(&error));
            stored.warnings.push(warning);
            Vec::new()
        })
    } else {
        Vec::new()
    };
    let context = context(&stored.options, stored.execution.as_ref(), &neighbours);
    let mut answer = match chosen {
        Ok(Chosen::Model(llm)) => {
            let request = request(workspace, &context);
            match llm.ask(&request, progress).await {
                Ok(reply) => read(
                    workspace,
                    &context,
                    &stored.correction.correction_id,
                    &reply,
                ),
                Err(error) => {
                    let cost = error.paid().and_then(|paid| paid.cost_usd);
                    let mut answer = Answer::offline(&context, cost);
                    if let Some(nothing) = error.raw_text().and_then(reflect::refusal) {
                        answer.reflection = nothing;
                        llm.model().clone_into(&mut answer.by);
                    } else {
                        answer.warn(&chain(&error));
                    }
                    answer.keep(
                        workspace,
                        &stored.correction.correction_id,
                        error.raw_text(),
                    );
                    answer
                }
            }
        }
        Ok(Chosen::Offline) => Answer::offline(&context, Some(0.0)),
        Err(error) => {
            let mut answer = Answer::offline(&context, Some(0.0));
            answer.warn(&chain(&error));
            answer
        }
    };
    if stored.options.is_rule && matches!(answer.reflection, Reflection::Nothing { .. }) {
        answer.reflection = without_model(&context);
        OFFLINE.clone_into(&mut answer.by);
    }
    stored.warnings.append(&mut answer.warnings);
    Ok(Worded {
        stored,
        reflection: answer.reflection,
        related: answer.related,
        by: answer.by,
        cost_usd: answer.cost_usd,
    })
}

/// Model for the rule: the one that is asked for, that of the skill, or the configured one.
pub(super) async fn choose(
    workspace: &Workspace,
    options: &CorrectOptions,
) -> Result<Chosen, Error> {
    let of_skill = workspace
        .skills()
        .and_then(|skills| Ok(skills.load(&options.skill)?.model))
        .unwrap_or_default();
    workspace.providers.choose(of_skill.as_deref()).await
}

/// Request to a model about a correction.
pub(super) fn request(workspace: &Workspace, context: &CorrectionContext<'_>) -> Request {
    let own = workspace.settings.reflect_prompt.as_deref();
    reflect::ask(context, own.unwrap_or(reflect::PROMPT))
}

/// Correction as the request and the offline wording take it.
pub(super) fn context<'a>(
    options: &'a CorrectOptions,
    execution: Option<&'a Execution>,
    neighbours: &'a [Neighbour],
) -> CorrectionContext<'a> {
    CorrectionContext {
        skill: &options.skill,
        correction: options.correction.trim(),
        input: execution.map(|run| &*run.input_summary),
        output: execution.map(|run| &*run.output_summary),
        is_rule: options.is_rule,
        neighbours,
    }
}

/// Rules in use, and harmless candidates, that are nearest to a correction, nearest first.
pub(super) fn neighbours(
    workspace: &Workspace,
    options: &CorrectOptions,
) -> Result<Vec<Neighbour>, Error> {
    let of_skill = Selection::of(&options.skill);
    let mut rules = own_rules(&workspace.store, &of_skill)?;
    rules.retain(|rule| {
        rule.is_in_use()
            || (rule.is_candidate() && memctl_redact::admit(&rule.content()).quarantine.is_none())
    });
    let near = nearest(&options.correction, rules, NEIGHBOURS)?;
    let near = near.into_iter().map(|(_, rule)| Neighbour {
        id: rule.reflexion_id,
        rule: rule.rule,
        applies_when: rule.applies_when,
    });
    Ok(near.collect())
}

/// Outcome of the wording, with its warnings.
struct Answer {
    reflection: Reflection,
    related: Vec<Judged>,
    by: String,
    cost_usd: Option<f64>,
    warnings: Vec<String>,
}

impl Answer {
    fn offline(context: &CorrectionContext<'_>, cost_usd: Option<f64>) -> Self {
        Self {
            reflection: without_model(context),
            related: Vec::new(),
            by: OFFLINE.to_owned(),
            cost_usd,
            warnings: Vec::new(),
        }
    }

    fn warn(&mut self, why: &str) {
        let warning = format!("the rule was made without a model: {why}");
        self.warnings.push(warning);
    }

    /// Keeps a paid answer that is not a rule in a file, which the warning names.
    fn keep(&mut self, workspace: &Workspace, correction: &str, answer: Option<&str>) {
        if let Some(answer) = answer.filter(|answer| !answer.is_empty()) {
            let kept = workspace.set_aside(&format!("{correction}-answer.txt"), answer);
            let place = kept.map(|path| format!("the answer is kept in `{}`", path.display()));
            self.warnings.extend(place);
        }
    }
}

fn read(
    workspace: &Workspace,
    context: &CorrectionContext<'_>,
    correction: &str,
    reply: &memctl_llm::Reply,
) -> Answer {
    match reflect::accept(context, &reply.text) {
        Ok(accepted) => Answer {
            reflection: accepted.reflection,
            related: accepted.related,
            by: reply.model.clone(),
            cost_usd: reply.cost_usd,
            warnings: accepted.warnings,
        },
        Err(reason) => {
            let mut answer = Answer::offline(context, reply.cost_usd);
            answer.warn(&format!(
                "the answer of `{}` is no rule: {reason}",
                reply.model
            ));
            answer.keep(workspace, correction, Some(&reply.text));
            answer
        }
    }
}
