//! `memory import`: import of an export or of another tool's memories.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::wording::counted;
use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style, plural};
use crate::upkeep::exchange::{self, ImportOptions, ImportReport, ImportSource};

/// Maximum number of reasons on the page; `--json` has all of them.
const SHOWN: usize = 15;

/// Import an export, or another tool's memories
///
/// Reads exports of this program and `.agentura` directories byte for byte. mem0's answers, lines of
/// that form, and notes such as `CLAUDE.md` become notes that wait for `memctl approve`. Each entry is
/// imported, already known, or skipped with a reason. Existing records do not change, and a repeated
/// import adds nothing. Rules and lessons that you did not
/// write or approve on this machine wait for `memctl approve` too, unless you pass `--trust`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl memory import memory.jsonl\n  \
    memctl memory import CLAUDE.md --dry-run\n  \
    memctl memory import get_all.json --from mem0")]
pub(crate) struct ImportArgs {
    /// File or directory to import
    #[arg(value_name = "FILE|DIR")]
    path: PathBuf,
    /// Source format, if it cannot be detected
    #[arg(long, value_name = "SOURCE", value_parser = PossibleValuesParser::new(ImportSource::ALL.map(ImportSource::name)))]
    from: Option<String>,
    /// Show what would be imported, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Import records that were deleted here, too
    #[arg(long)]
    restore: bool,
    /// Count the approvals that the file claims as yours
    #[arg(long)]
    trust: bool,
}

pub(crate) fn import(context: &Context, args: &ImportArgs) -> Done {
    let from = args.from.as_deref();
    let options = ImportOptions {
        path: context.environment.absolute(&args.path),
        from: ImportSource::ALL
            .into_iter()
            .find(|source| Some(source.name()) == from),
        dry_run: args.dry_run,
        restore: args.restore,
        trust: args.trust,
    };
    let spinner = context.printer.spinner("importing");
    let report = exchange::import(&context.workspace(None)?, &options);
    drop(spinner);
    Ok(Box::new(report?))
}

impl Report for ImportReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let skipped: u64 = self.skipped.iter().map(|skipped| skipped.count).sum();
        let verb = if self.dry_run {
            "would be imported"
        } else {
            "imported"
        };
        let line = format!(
            "{} read: {} {verb}, {} already known, {skipped} skipped ({})",
            self.read,
            self.imported,
            self.duplicates,
            self.source.name()
        );
        page.line(line);
        for (name, count) in &self.by_kind {
            page.styled(&[
                (Style::Good, verb),
                (Style::Plain, " "),
                (Style::Plain, &counted(name, *count)),
            ]);
        }
        for renamed in self.renamed.iter().take(SHOWN) {
            page.line(format!("{} was imported as {}", renamed.from, renamed.to));
        }
        if self.renamed.len() > SHOWN {
            page.line(format!(
                "… and {} more have new ids",
                self.renamed.len() - SHOWN
            ));
        }
        for skipped in self.skipped.iter().take(SHOWN) {
            let what = match skipped.count {
                1 => skipped.what.clone(),
                n => format!("{n} {}", skipped.what),
            };
            page.warn("skipped ", format!("{what}: {}", skipped.reason));
        }
        if self.skipped.len() > SHOWN {
            let more = plural((self.skipped.len() - SHOWN) as u64, "more reason");
            page.line(format!("… and {more}; --json lists them all"));
        }
        let is_foreign = !matches!(self.source, ImportSource::Memctl | ImportSource::Agentura);
        if self.observed > 0 {
            let are = if self.observed == 1 {
                "record is"
            } else {
                "records are"
            };
            let hint = format!(
                "{} {are} not approved yet: memctl approve ID, or import with --trust",
                self.observed
            );
            page.note("hint: ", &hint);
        }
        if is_foreign && self.imported > 0 && !self.dry_run {
            let hint = "these records are not approved: memctl list notes, memctl approve ID";
            page.note("hint: ", hint);
        }
    }
}
