//! Lets a model describe new procedures.
//!
//! The questions, their number and an estimate of the price are known before the first call. The
//! offline description is stored already, so a failed call loses nothing.

use serde::Serialize;

use crate::learn::analyse;
use crate::llm::{Llm, OnProgress, Request};
use crate::model::{Fix, Kind, Procedure};
use crate::store::Selection;

use super::learn::redacted;
use crate::workspace::Error;
use crate::workspace::execution_log_lines::raw;
use crate::workspace::providers::Chosen;
use crate::workspace::{Workspace, dollars};

/// Usual number of tokens in an answer, for the price estimate.
const USUAL_ANSWER: u64 = 350;
/// Bytes of a question per token, for the price estimate.
const BYTES_PER_TOKEN: u64 = 4;

/// Planned model calls.
#[derive(Debug)]
pub struct AnalysisPlan {
    /// Model, as `provider/model`.
    pub model: String,
    /// Number of calls.
    pub calls: usize,
    /// Number of procedures beyond the limit of calls.
    pub left_out: usize,
    /// Estimated price of the calls in US dollars; `None` if the price is not known.
    pub cost_usd: Option<f64>,
    llm: Box<Llm>,
    questions: Vec<(Procedure, Request)>,
}

/// Result of the calls.
#[derive(Debug, Default, Serialize)]
pub struct AnalysisReport {
    /// Ids of the procedures with a new description.
    pub analysed: Vec<String>,
    /// Price in US dollars; `None` if the price of a call is not known.
    pub cost_usd: Option<f64>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Plans the calls for those of these records that are procedures. `None` without a model.
pub async fn plan_analysis(
    workspace: &Workspace,
    ids: &[String],
    max_calls: usize,
) -> Result<Option<AnalysisPlan>, Error> {
    let Chosen::Model(llm) = workspace.providers.choose(None).await? else {
        return Ok(None);
    };
    let fixes = workspace.store.list::<Fix>(&Selection::default())?.records;
    let system = workspace
        .settings
        .analyse_prompt
        .as_deref()
        .unwrap_or(analyse::PROMPT);
    let mut questions = Vec::new();
    for id in ids
        .iter()
        .filter(|id| Kind::of_id(id) == Some(Kind::Procedure))
    {
        let procedure: Procedure = workspace.store.get(id)?;
        if let Some(fix) = fixes.iter().find(|fix| fix.procedure_id == *id) {
            let request = analyse::ask(fix, procedure.data.get(), system);
            questions.push((procedure, request));
        }
    }
    let left_out = questions.len().saturating_sub(max_calls);
    questions.truncate(max_calls);
    let bytes = questions
        .iter()
        .map(|(_, r)| r.system.len() + r.user.len())
        .sum::<usize>() as u64;
    let answers = USUAL_ANSWER * questions.len() as u64;
    Ok(Some(AnalysisPlan {
        model: llm.model().to_owned(),
        calls: questions.len(),
        left_out,
        cost_usd: llm.estimate(bytes / BYTES_PER_TOKEN, answers).map(dollars),
        llm,
        questions,
    }))
}

/// Makes the planned calls. Each answer is stored before the next call.
pub async fn analyse(
    workspace: &Workspace,
    plan: AnalysisPlan,
    progress: OnProgress<'_>,
) -> Result<AnalysisReport, Error> {
    let mut report = AnalysisReport::default();
    let mut cost = Some(0.0);
    for (procedure, request) in &plan.questions {
        let id = &procedure.procedure_id;
        let reply = match plan.llm.ask(request, progress).await {
            Ok(reply) => reply,
            Err(error) => {
                let paid = error.paid().map_or(Some(0.0), |paid| paid.cost_usd);
                cost = cost.zip(paid).map(|(a, b)| a + b);
                report
                    .warnings
                    .push(format!("`{id}` keeps its words: {error}"));
                continue;
            }
        };
        cost = cost.zip(reply.cost_usd).map(|(a, b)| a + b);
        match analyse::accept(procedure.data.get(), &reply.text, &redacted) {
            Ok(Some(data)) => {
                let changes = [("data", raw(&data)?), ("distilled_by", raw(&reply.model)?)];
                workspace.writer()?.update(Kind::Procedure, id, &changes)?;
                report.analysed.push(id.clone());
            }
            Ok(None) => report.warnings.push(format!(
                "`{}` sees no recovery in `{id}`; its words stay",
                reply.model
            )),
            Err(reason) => {
                let kept = workspace.set_aside(&format!("{id}-answer.txt"), &reply.text);
                let place =
                    kept.map(|path| format!("; the answer is kept in `{}`", path.display()));
                report.warnings.push(format!(
                    "the answer for `{id}` cannot be used: {reason}{}",
                    place.unwrap_or_default()
                ));
            }
        }
    }
    report.cost_usd = cost.map(dollars);
    Ok(report)
}
