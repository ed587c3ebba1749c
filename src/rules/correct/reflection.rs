//! Second stage: words the rule, by a model if one is configured and answers.
//!
//! The model sees the existing rules that are nearest to the correction, and judges their relation to the new
//! rule. It sees only rules that this user vouches for: other people's text must not decide what a person's
//! correction becomes.

use memctl_llm::OnProgress;

use super::CorrectOptions;
use super::storage::Stored;
use crate::model::error::message as chain;
use crate::model::{Record as _, RelatedRule};
use crate::rules::place::neighbours::nearest;
use crate::rules::place::own_rules;
use crate::rules::reflect::{self, CorrectionContext, Neighbour, Reflection, offline};
use crate::store::Selection;
use crate::store::workspace::providers::Chosen;
use crate::store::workspace::{Error, Workspace};

const OFFLINE: &str = "offline";
/// Maximum number of existing rules that a model compares with a correction.
const NEIGHBOURS: usize = 8;

/// Words of the rule of a correction.
pub(super) struct Worded {
    pub(super) reflection: Reflection,
    /// Judgements of the model on existing rules.
    pub(super) related: Vec<RelatedRule>,
    /// Source of the text: `offline`, or `provider/model`.
    pub(super) by: String,
    /// Price in US dollars; `None` if the price is not known.
    pub(super) cost_usd: Option<f64>,
}

/// Words the rule. A model that fails is a warning, and the rule is made without one. A paid answer that is no
/// rule is kept in a file, which a warning names.
pub(super) async fn reflect(
    workspace: &Workspace,
    stored: &mut Stored,
    progress: OnProgress<'_>,
) -> Worded {
    let mut warnings = Vec::new();
    let options = &stored.options;
    let skills = workspace.skills();
    let of_skill = skills.and_then(|skills| Ok(skills.load(&options.skill)?.model));
    let of_skill = of_skill.unwrap_or_default();
    let chosen = workspace.providers.choose(of_skill.as_deref()).await;
    let neighbours = match &chosen {
        Ok(Chosen::Model(_)) => neighbours(workspace, options).unwrap_or_else(|error| {
            warnings.push(format!(
                "existing rules were not compared: {}",
                chain(&error)
            ));
            Vec::new()
        }),
        _ => Vec::new(),
    };
    let execution = stored.execution.as_ref();
    let context = CorrectionContext {
        skill: &options.skill,
        correction: options.correction.trim(),
        input: execution.map(|run| &*run.input_summary),
        output: execution.map(|run| &*run.output_summary),
        is_rule: options.is_rule,
        neighbours: &neighbours,
    };
    let prompt = workspace.settings.reflect_prompt.as_deref();
    let prompt = prompt.unwrap_or(reflect::PROMPT);
    let mut worded = Worded {
        reflection: offline(&context),
        related: Vec::new(),
        by: OFFLINE.to_owned(),
        cost_usd: Some(0.0),
    };
    // Why the rule is made without a model, and its answer.
    let (mut failure, mut answer) = (None, None);
    match chosen {
        Ok(Chosen::Offline) => {}
        Err(error) => failure = Some(chain(&error)),
        Ok(Chosen::Model(llm)) => match llm.ask(&reflect::ask(&context, prompt), progress).await {
            Ok(reply) => {
                worded.cost_usd = reply.cost_usd;
                match reflect::accept(&context, &reply.text) {
                    Ok(mut accepted) => {
                        worded.by = reply.model;
                        for related in &mut accepted.related {
                            related.by.clone_from(&worded.by);
                        }
                        worded.reflection = accepted.reflection;
                        worded.related = accepted.related;
                        warnings.append(&mut accepted.warnings);
                    }
                    Err(reason) => {
                        let model = &reply.model;
                        failure = Some(format!("the answer of `{model}` is no rule: {reason}"));
                        answer = Some(reply.text);
                    }
                }
            }
            Err(error) => {
                worded.cost_usd = error.paid().and_then(|paid| paid.cost_usd);
                failure = Some(chain(&error));
                answer = error.raw_text().map(str::to_owned);
            }
        },
    }
    let without = |why| format!("the rule was made without a model: {why}");
    warnings.extend(failure.map(without));
    if let Some(answer) = answer.filter(|answer| !answer.is_empty()) {
        let name = format!("{}-answer.txt", stored.correction.correction_id);
        let file = workspace.set_aside(&name, &answer);
        warnings.extend(file.map(|path| format!("the answer is kept in `{}`", path.display())));
    }
    if stored.options.is_rule && matches!(worded.reflection, Reflection::Nothing { .. }) {
        worded.reflection = offline(&context);
        OFFLINE.clone_into(&mut worded.by);
    }
    stored.warnings.append(&mut warnings);
    worded
}

/// Rules in use, and harmless candidates, that are nearest to a correction, nearest first.
fn neighbours(workspace: &Workspace, options: &CorrectOptions) -> Result<Vec<Neighbour>, Error> {
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
