//! `accept` and `reject`: a person's verdict on an execution, or on a proposal.

use clap::Args;
use dialoguer::Select;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style};
use crate::cli::question::ask;
use crate::model::error::UserError;
use crate::model::{Kind, Outcome};
use crate::review::{self, Rejected};
use crate::rules::{self, Blame, ReviewReport};

/// Mark an execution as right
///
/// Without a model, an accepted execution answers similar inputs.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl accept latest\n  memctl accept EXEC-20260220124341 --json"
)]
pub(crate) struct AcceptArgs {
    /// Execution id, a prefix of one, or `latest`
    id: String,
}

pub(crate) fn accept(context: &Context, args: &AcceptArgs) -> Done {
    let workspace = context.workspace(None)?;
    Ok(Box::new(rules::give_verdict(
        &workspace,
        &args.id,
        Outcome::Accepted,
        None,
        Blame::default(),
    )?))
}

/// Mark an execution as wrong, or a learned record as useless
///
/// A candidate rule or an unapproved procedure stays in its file with the reason, and is not proposed
/// again; a procedure is not told any more.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl reject EXEC-20260220124341 --reason \"made-up employer\"\n  \
    memctl reject latest --rule REFL-003\n  \
    memctl reject PROC-007 --reason \"only in this branch\""
)]
pub(crate) struct RejectArgs {
    /// Id of an execution, a candidate rule or a procedure, a prefix of one, or `latest`
    id: String,
    /// Reason of the rejection
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Rule that was at fault; default: the one that the reason is clearly about, or none
    #[arg(long = "rule", value_name = "ID")]
    rules: Vec<String>,
}

pub(crate) fn reject(context: &Context, args: RejectArgs) -> Done {
    let workspace = context.workspace(None)?;
    let reason = args.reason.as_deref().unwrap_or_default();
    if Kind::of_id(&args.id).is_some_and(|kind| kind != Kind::Execution) {
        return Ok(Box::new(review::reject(&workspace, &args.id, reason)?));
    }
    let mut blame = rules::blame(&workspace, &args.id, reason, &args.rules)?;
    if blame.blamed.is_empty() && !blame.candidates.is_empty() && context.is_interactive() {
        let named: Vec<String> = which_rule(&blame.candidates)?.into_iter().collect();
        if !named.is_empty() {
            blame = rules::blame(&workspace, &args.id, reason, &named)?;
        }
    }
    if let Some(warning) = &blame.warning {
        context.printer.warn(warning);
    }
    Ok(Box::new(rules::give_verdict(
        &workspace,
        &args.id,
        Outcome::Rejected,
        args.reason,
        blame,
    )?))
}

/// Asks which of the rules in the prompt was at fault; `None` for none of them.
fn which_rule(rules: &[(String, String)]) -> Result<Option<String>, UserError> {
    let mut answers = vec!["none of them".to_owned()];
    answers.extend(rules.iter().map(|(id, rule)| format!("{id}: {rule}")));
    let question = Select::new()
        .with_prompt("Which rule was at fault?")
        .items(&answers)
        .default(0);
    let answer = ask(|| question.interact_opt())?.unwrap_or(0);
    Ok(answer.checked_sub(1).map(|at| rules[at].0.clone()))
}

impl Report for Rejected {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.bad("rejected ", &self.id);
        page.field(self.kind.name(), &self.summary);
        if !self.reason.is_empty() {
            page.field("reason", &self.reason);
        }
    }
}

impl Report for ReviewReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let style = if self.outcome == Outcome::Accepted {
            Style::Good
        } else {
            Style::Bad
        };
        page.styled(&[
            (Style::Plain, &self.execution_id),
            (Style::Dim, &format!(" {} → ", self.before.as_str())),
            (style, self.outcome.as_str()),
        ]);
        if let Some(reason) = &self.reason {
            page.field("reason", reason);
        }
        for rule in &self.blamed {
            page.field("counts against", &format!("{} ({})", rule.id, rule.reason));
        }
        if !self.guardrails.is_empty() {
            page.field("guardrail", &self.guardrails.join(", "));
        }
    }
}
