//! `accept` and `reject`: a person's verdict on an execution.

use clap::Args;

use crate::engine::ReviewReport;
use crate::model::Outcome;

use super::context::Context;
use super::error::CliError;
use super::output::{Page, Report, Style};

/// Say that an execution was right
///
/// An accepted execution answers for inputs like its own when there is no model.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl accept latest")]
pub(super) struct AcceptArgs {
    /// The execution: an id, the beginning of one, or `latest`
    id: String,
}

pub(super) fn accept(context: &Context, args: &AcceptArgs) -> Result<Box<dyn Report>, CliError> {
    let engine = context.engine(None)?;
    Ok(Box::new(engine.review(
        &args.id,
        Outcome::Accepted,
        None,
    )?))
}

/// Say that an execution was wrong, without saying what should be different
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  memctl reject EXEC-20260220124341 --reason \"made-up employer\""
)]
pub(super) struct RejectArgs {
    /// The execution: an id, the beginning of one, or `latest`
    id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn reject(context: &Context, args: RejectArgs) -> Result<Box<dyn Report>, CliError> {
    let engine = context.engine(None)?;
    Ok(Box::new(engine.review(
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
