//! `memory audit`: audit events, and verification of their hash chain.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Table, plural};
use crate::serve::arguments::TYPED;
use crate::store::Audited;
use crate::upkeep;
use crate::upkeep::{AuditFilter, AuditReport};

/// Show who read and wrote which records, when and why
///
/// Logs every write, and every read of notes and sessions; with the setting `audit.reads` =
/// `all`, also reads of other records. Users see their own events and the events on their own
/// records.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  memctl memory audit\n  memctl memory audit --record MEM-003\n  \
        memctl memory audit --who ann -n 100\n  memctl memory audit verify"
)]
pub(crate) struct AuditArgs {
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

pub(crate) fn audit(context: &Context, args: AuditArgs) -> Done {
    if let Some(AuditCommand::Verify(args)) = args.command {
        let store = context.store(&context.config(&[])?)?;
        let audited = store.verify_audit(args.head.as_deref())?;
        return Ok(Box::new(Verified {
            sound: audited.flaws.is_empty(),
            audited,
        }));
    }
    let filter = AuditFilter {
        who: args.who,
        record: args.record,
        foreign: args.foreign,
        limit: args.limit as usize,
    };
    let store = context.workspace(None)?.store;
    Ok(Box::new(upkeep::audit(&store, &filter)?))
}

impl Report for AuditReport {
    fn page(&self, page: &mut Page) {
        if self.lines.is_empty() {
            return page.line("No matching audit events.");
        }
        let mut table = Table::new(">Age|Who|Did|~Records|Why", &[3, 4]);
        for line in &self.lines {
            let whose = if line.is_foreign() {
                format!(" (of {})", line.of.join(", "))
            } else {
                String::new()
            };
            table.row([
                page.age(&line.at),
                line.who.clone(),
                format!("{:?}", line.did).to_lowercase(),
                format!("{}{whose}", line.records.join(", ")),
                line.why.clone(),
            ]);
        }
        page.table(&table);
        page.newest(self.lines.len(), self.total);
    }
}

/// Result of a verification, with its verdict.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Verified {
    /// `true` if no event was changed, removed, inserted or cut off.
    sound: bool,
    #[serde(flatten)]
    audited: Audited,
}

impl Report for Verified {
    fn page(&self, page: &mut Page) {
        page.fails_if(!self.sound);
        for flaw in &self.audited.flaws {
            let line = flaw.line.map(|line| format!("line {line}: "));
            let message = format!("{}{}", line.unwrap_or_default(), flaw.message);
            page.bad("broken  ", &message);
        }
        if self.sound {
            let lines = plural(self.audited.lines, "line");
            page.good("sound  ", &lines);
        }
        if let Some(head) = &self.audited.head {
            page.dim(format!("head {head}"));
        }
    }
}
