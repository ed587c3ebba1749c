//! `accept` and `reject`: a person's verdict on an execution.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::output::{Page, Report, Style};
use crate::error::UserError;
use crate::model::Outcome;
use crate::review::{self, ReviewReport};

/// Mark an execution as right
///
/// Without a model, an accepted execution answers similar inputs.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl accept latest")]
pub(in crate::cli) struct AcceptArgs {
    /// Execution id, a prefix of one, or `latest`
    id: String,
}

pub(in crate::cli) fn accept(
    context: &Context,
    args: &AcceptArgs,
) -> Result<Box<dyn Report>, UserError> {
    let workspace = context.workspace(None)?;
    Ok(Box::new(review::give_verdict(
        &workspace,
        &args.id,
        Outcome::Accepted,
        None,
    )?))
}

/// Mark an execution as wrong, without a correction
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  memctl reject EXEC-20260220124341 --reason \"made-up employer\""
)]
pub(in crate::cli) struct RejectArgs {
    /// Execution id, a prefix of one, or `latest`
    id: String,
    /// Reason of the rejection
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(in crate::cli) fn reject(
    context: &Context,
    args: RejectArgs,
) -> Result<Box<dyn Report>, UserError> {
    let workspace = context.workspace(None)?;
    Ok(Box::new(review::give_verdict(
        &workspace,
        &args.id,
        Outcome::Rejected,
        args.reason,
    )?))
}

impl Report for ReviewReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
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
        if !self.guardrails.is_empty() {
            page.field("guardrail", &self.guardrails.join(", "));
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
