//! `memory approve`: what was observed, lifted by a person.

use clap::Args;
use serde_json::json;

use crate::engine::Approved;
use crate::model::Trust;

use super::context::Context;
use super::error::CliError;
use super::output::{Page, Report, Style};

/// Approve what was learnt from sessions or passed on by agents, after looking at it
///
/// Fixes and procedures come from what tools printed, and are shown to agents as data. One that
/// speaks to the model instead is quarantined and not shown at all. What a person approves is both
/// lifted and shown. A rule that an agent has passed on is a candidate: approved, it stands in prompts,
/// and gets its guardrail and its test. What a person has said needs no approval.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory approve FIX-001\n  memctl memory approve REFL-004\n  memctl memory approve FIX-001 PROC-001 --json"
)]
pub(super) struct ApproveArgs {
    /// Ids, or the beginnings of them
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

pub(super) fn approve(context: &Context, args: &ApproveArgs) -> Result<Box<dyn Report>, CliError> {
    let records = context.engine(None)?.approve(&args.ids)?;
    let warnings = records.iter().flat_map(|record| record.warnings.clone());
    Ok(Box::new(Approval {
        warnings: warnings.collect(),
        records,
    }))
}

/// The records, and all that is to be said of them.
struct Approval {
    records: Vec<Approved>,
    warnings: Vec<String>,
}

impl Report for Approval {
    /// One record is the document; several are a list in it.
    fn json(&self) -> Result<String, serde_json::Error> {
        match self.records.as_slice() {
            [record] => serde_json::to_string(record),
            records => serde_json::to_string(&json!({ "records": records })),
        }
    }

    fn page(&self, page: &mut Page) {
        for (i, record) in self.records.iter().enumerate() {
            if i > 0 {
                page.line("");
            }
            for (label, text) in &record.says {
                if !text.trim().is_empty() {
                    page.field(label, text);
                }
            }
            let (style, now) = match (record.before, record.trust) {
                ("user", Trust::User) => (Style::Dim, "said by a person: it needs no approval"),
                ("approved", _) => (Style::Dim, "approved already"),
                _ => (Style::Good, "approved"),
            };
            let before = match record.before {
                "observed" | "quarantined" | "candidate" => format!(" {} → ", record.before),
                _ => " ".to_owned(),
            };
            page.styled(&[
                (Style::Plain, &record.id),
                (Style::Dim, &before),
                (style, now),
            ]);
            for (label, files) in [("guardrail", &record.guardrails), ("tests", &record.tests)] {
                if !files.is_empty() {
                    page.field(label, &files.join(", "));
                }
            }
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
