//! `memory audit`: audit events, and verification of their hash chain.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::arguments::TYPED;
use crate::cli::context::Context;
use crate::cli::output::{Align, Page, Report, Style, Table, plural, when};
use crate::error::UserError;
use crate::store::Audited;
use crate::upkeep::{self, AuditFilter, AuditReport};

/// Show who read and wrote which records, when and why
///
/// Logs every write, and every read of memories and sessions; with the setting `audit.reads` =
/// `all`, also reads of other records. Users see their own events and the events on their own
/// records.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  memctl memory audit\n  memctl memory audit --record MEM-003\n  \
        memctl memory audit --who ann -n 100\n  memctl memory audit verify"
)]
pub(in crate::cli) struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    /// Show only events of this user or program
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Show only events on this record
    #[arg(long, value_name = "ID")]
    record: Option<String>,
    /// Show only access to records of another user
    #[arg(long)]
    foreign: bool,
    /// Show at most N events, the newest
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N",
        value_parser = clap::value_parser!(u32).range(TYPED))]
    limit: u32,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    Verify(VerifyArgs),
}

/// Check that no audit event was changed, removed, inserted or cut off
///
/// Exits with 1 if one was. Keep the printed `head` in another place: `--head` then detects even a
/// log that was rewritten as a whole.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory audit verify\n  memctl memory audit verify --head 9f86d081…"
)]
struct VerifyArgs {
    /// Hash noted earlier that must still be in the log
    #[arg(long, value_name = "HASH")]
    head: Option<String>,
}

pub(in crate::cli) fn audit(
    context: &Context,
    args: AuditArgs,
) -> Result<Box<dyn Report>, UserError> {
    if let Some(AuditCommand::Verify(args)) = args.command {
        return Ok(Box::new(
            context
                .store(&context.config(&[])?)?
                .verify_audit(args.head.as_deref())?,
        ));
    }
    let filter = AuditFilter {
        who: args.who,
        record: args.record,
        foreign: args.foreign,
        limit: args.limit as usize,
    };
    Ok(Box::new(Lines {
        report: upkeep::audit(&context.workspace(None)?.store, &filter)?,
        now: context.environment.now,
    }))
}

/// Audit events, and the time that their ages are relative to.
struct Lines {
    report: AuditReport,
    now: chrono::DateTime<chrono::Utc>,
}

impl Report for Lines {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.report)
    }

    fn page(&self, page: &mut Page) {
        if self.report.lines.is_empty() {
            page.line("No matching audit events.");
            return;
        }
        let columns = [
            ("Age", Align::Right),
            ("Who", Align::Left),
            ("Did", Align::Left),
            ("Records", Align::Prose),
            ("Why", Align::Left),
        ];
        let mut table = Table::new(&columns, &[3, 4]);
        for line in &self.report.lines {
            let whose = if line.is_foreign() {
                format!(" (of {})", line.of.join(", "))
            } else {
                String::new()
            };
            table.row([
                when(&line.at, self.now),
                line.who.clone(),
                format!("{:?}", line.did).to_lowercase(),
                format!("{}{whose}", line.records.join(", ")),
                line.why.clone(),
            ]);
        }
        page.table(&table);
        let shown = self.report.lines.len() as u64;
        if self.report.total > shown {
            let rest = format!("the newest {shown} of {}", self.report.total);
            page.styled(&[(Style::Dim, &rest)]);
        }
    }
}

/// Result of a verification, with its verdict.
#[derive(Serialize, schemars::JsonSchema)]
pub(in crate::cli) struct Verified<'a> {
    /// `true` if no event was changed, removed, inserted or cut off.
    sound: bool,
    #[serde(flatten)]
    audited: &'a Audited,
}

impl Report for Audited {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Verified {
            sound: self.flaws.is_empty(),
            audited: self,
        })
    }

    fn page(&self, page: &mut Page) {
        for flaw in &self.flaws {
            let line = flaw.line.map(|line| format!("line {line}: "));
            let message = format!("{}{}", line.unwrap_or_default(), flaw.message);
            page.styled(&[(Style::Bad, "broken  "), (Style::Plain, &message)]);
        }
        if self.flaws.is_empty() {
            let lines = plural(self.lines, "line");
            page.styled(&[(Style::Good, "sound  "), (Style::Plain, &lines)]);
        }
        if let Some(head) = &self.head {
            page.styled(&[(Style::Dim, &format!("head {head}"))]);
        }
    }

    fn exit_code(&self) -> u8 {
        u8::from(!self.flaws.is_empty())
    }
}
