//! Asks a model about records in batches.
//!
//! Number and price of the calls are known before the first one. A limit on the cost needs a known
//! price. Each answer is paid for once: it is stored, or kept in a file of its own.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::json;

use crate::learn::triage::{self, Item};
use crate::llm::{Llm, OnProgress, Request};
use crate::model::{ActionType, ExecutionLog};
use crate::workspace::execution_log_lines::{Scribe, data};
use crate::workspace::providers::Chosen;
use crate::workspace::{Error, Workspace, dollars};

use super::apply::apply;
use super::candidates::Candidates;
use super::{ConsolidateReport, Undecided};

/// Number of records in a question.
const BATCH: usize = 10;
/// Usual length of an answer about one record, in tokens, for the price estimate.
const USUAL_ANSWER: u64 = 120;
/// Bytes of a question per token, for the price estimate.
const BYTES_PER_TOKEN: u64 = 4;

/// Limits of a run.
#[derive(Debug, Clone, Default)]
pub struct ConsolidateOptions {
    /// Maximum number of model calls.
    pub max_calls: usize,
    /// Maximum estimated cost in US dollars; `None` sets no limit.
    pub max_cost: Option<f64>,
    /// Session of the calls, for the execution log.
    pub session: Option<String>,
    /// Ids of records that already have a verdict and are not asked about.
    pub settled: Vec<String>,
}

/// Text of a question.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Question {
    /// Instructions.
    pub system: String,
    /// Records, as a JSON document.
    pub user: String,
}

/// Planned calls.
#[derive(Debug)]
pub struct ConsolidatePlan {
    /// Model, as `provider/model`.
    pub model: String,
    /// Number of records that are asked about.
    pub records: usize,
    /// Number of records beyond the limits.
    pub left_out: usize,
    /// Estimated cost in US dollars; `None` if the price is unknown.
    pub cost_usd: Option<f64>,
    batches: Vec<Batch>,
    llm: Box<Llm>,
    session: Option<String>,
}

#[derive(Debug)]
struct Batch {
    items: Vec<Item>,
    known: Vec<Item>,
    request: Request,
}

impl ConsolidatePlan {
    /// Returns the number of calls.
    pub fn calls(&self) -> usize {
        self.batches.len()
    }

    /// Returns the questions that would be sent.
    pub fn questions(&self) -> Vec<Question> {
        let question = |batch: &Batch| Question {
            system: batch.request.system.clone(),
            user: batch.request.user.clone(),
        };
        self.batches.iter().map(question).collect()
    }
}

/// Plans the calls about the records that neither a person nor a model has judged. `None` without
/// a model.
///
/// # Errors
///
/// [`Error::UnknownPrice`] if a cost limit is set and the model has no known price.
pub async fn plan(
    workspace: &Workspace,
    options: &ConsolidateOptions,
) -> Result<Option<ConsolidatePlan>, Error> {
    let Chosen::Model(llm) = workspace.providers.choose(None).await? else {
        return Ok(None);
    };
    let candidates = Candidates::read(&workspace.store)?;
    let settled: HashSet<&str> = options.settled.iter().map(String::as_str).collect();
    let items = candidates.items(&settled);
    let prompt = workspace.settings.consolidate_prompt.as_deref();
    let system = prompt.unwrap_or(triage::PROMPT);
    let mut plan = ConsolidatePlan {
        model: llm.model().to_owned(),
        records: 0,
        left_out: items.len(),
        cost_usd: Some(0.0),
        batches: Vec::new(),
        llm,
        session: options.session.clone(),
    };
    for items in items.chunks(BATCH).take(options.max_calls) {
        let known = candidates.known(items);
        let request = triage::ask(items, &known, system);
        let bytes = (request.system.len() + request.user.len()) as u64;
        let answer = USUAL_ANSWER * items.len() as u64;
        let price = plan.llm.estimate(bytes / BYTES_PER_TOKEN, answer);
        let cost = plan.cost_usd.zip(price).map(|(cost, price)| cost + price);
        match (options.max_cost, cost) {
            (Some(_), None) => return Err(Error::UnknownPrice { model: plan.model }),
            (Some(limit), Some(cost)) if cost > limit => break,
            _ => {}
        }
        plan.cost_usd = cost;
        plan.records += items.len();
        plan.left_out -= items.len();
        plan.batches.push(Batch {
            items: items.to_vec(),
            known,
            request,
        });
    }
    plan.cost_usd = plan.cost_usd.map(dollars);
    Ok(Some(plan))
}

/// Makes the planned calls, and adds their verdicts to `report`.
pub async fn consolidate(
    workspace: &Workspace,
    plan: ConsolidatePlan,
    report: &mut ConsolidateReport,
    on_batch: &mut dyn FnMut(usize, usize),
    progress: OnProgress<'_>,
) -> Result<(), Error> {
    report.model = Some(plan.model.clone());
    report.left_out = plan.left_out;
    let scribe = Scribe::new(workspace.now, workspace.random, plan.session.as_deref());
    for (place, batch) in plan.batches.iter().enumerate() {
        on_batch(place, plan.batches.len());
        report.calls += 1;
        let asked = plan.llm.ask(&batch.request, progress).await;
        let (cost, model) = match &asked {
            Ok(reply) => (reply.cost_usd, reply.model.as_str()),
            Err(error) => {
                let paid = error.paid();
                (
                    paid.map_or(Some(0.0), |paid| paid.cost_usd),
                    plan.model.as_str(),
                )
            }
        };
        report.cost_usd = report
            .cost_usd
            .zip(cost)
            .map(|(sum, cost)| dollars(sum + cost));
        note_call(workspace, &scribe, model, batch.items.len(), cost)?;
        match asked {
            Ok(reply) => take(workspace, batch, &reply.text, &reply.model, report)?,
            Err(error) => {
                report.failed_calls += 1;
                leave(report, &batch.items, &format!("no answer: {error}"));
                if !matches!(error, crate::llm::Error::InvalidStructure { .. }) {
                    let rest = plan.batches[place + 1..].iter();
                    report.left_out += rest.map(|batch| batch.items.len()).sum::<usize>();
                    break;
                }
            }
        }
        on_batch(place + 1, plan.batches.len());
    }
    Ok(())
}

/// Stores the verdicts of an answer.
fn take(
    workspace: &Workspace,
    batch: &Batch,
    text: &str,
    model: &str,
    report: &mut ConsolidateReport,
) -> Result<(), Error> {
    let answer = match triage::accept(text, &batch.items, &batch.known) {
        Ok(answer) => answer,
        Err(reason) => {
            let kept = workspace.set_aside("consolidate-answer.txt", text);
            let place = kept.map(|path| format!("; it is kept in `{}`", path.display()));
            let reason = format!(
                "the answer is unreadable: {reason}{}",
                place.unwrap_or_default()
            );
            report.failed_calls += 1;
            leave(report, &batch.items, &reason);
            return Ok(());
        }
    };
    let undecided = answer.undecided.into_iter();
    report
        .undecided
        .extend(undecided.map(|(id, reason)| Undecided { id, reason }));
    apply(workspace, &answer.decisions, model, false, report)
}

fn leave(report: &mut ConsolidateReport, items: &[Item], reason: &str) {
    let undecided = items.iter().map(|item| Undecided {
        id: item.id.clone(),
        reason: reason.to_owned(),
    });
    report.undecided.extend(undecided);
}

/// Writes a call and its cost to the execution log, before the answer is used.
fn note_call(
    workspace: &Workspace,
    scribe: &Scribe,
    model: &str,
    records: usize,
    cost_usd: Option<f64>,
) -> Result<(), Error> {
    let mut writer = workspace.writer()?;
    writer.note_execution_logs(vec![ExecutionLog {
        tool_name: Some(model.to_owned()),
        output_data: data(&json!({ "records": records, "cost_usd": cost_usd })),
        ..scribe.line("consolidate", ActionType::Decision)
    }])?;
    Ok(())
}
