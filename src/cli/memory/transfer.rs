//! `memory export` and `memory import`: the memory as files, and rules in a file of agents.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::context::Context;
use crate::cli::memory::counted;
use crate::cli::output::{Done, Page, Report, plural};
use crate::model::error::UserError;
use crate::model::{Kind, SkillPath};
use crate::review::approve;
use crate::upkeep::{
    self, AgentsMdReport, ExportOptions, ExportReport, FileChange, ImportOptions, ImportReport,
};

/// Format of an export.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    /// JSON Lines: everything; `memory import` reads it
    Jsonl,
    /// The approved rules as a block in a Markdown file
    AgentsMd,
}

/// Export memories
///
/// `memory import` restores the JSON Lines, with tombstones and logs. Secrets are redacted.
/// An existing file is replaced only if it is an export.
///
/// `agents-md` keeps the approved rules between two markers of `AGENTS.md`, or of the file that
/// `--output` names. The rest of the file stays as it is.
///
/// ```console
/// $ memctl memory export --output memory.jsonl
/// $ memctl memory export --kind rule --output -
/// $ memctl memory export --format agents-md
/// ```
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Output file or `-` for stdout; agents-md writes `AGENTS.md` without it
    #[arg(long, short, value_name = "FILE|-")]
    output: Option<PathBuf>,
    /// Format of the export
    #[arg(long, default_value = "jsonl", value_name = "FORMAT")]
    format: FormatName,
    /// Export only records of this kind, and no logs; repeatable
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<Kind>,
    /// Export only records of this skill, and no logs
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// Replace a file even if it is not an export
    #[arg(long)]
    force: bool,
}

pub(crate) fn export(context: &Context, args: &ExportArgs) -> Done {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let is_stdout = args.output.as_deref() == Some(Path::new("-"));
    let is_block = matches!(args.format, FormatName::AgentsMd);
    let refusal = if is_block
        && (is_stdout || !args.kinds.is_empty() || skill.is_some() || args.force)
    {
        Some((
            "`agents-md` replaces a block of a file with all approved rules: it takes only `--output FILE`",
            "memctl memory export --format agents-md --output AGENTS.md",
        ))
    } else if !is_block && args.output.is_none() {
        Some((
            "the export needs a file",
            "memctl memory export --output FILE",
        ))
    } else {
        (is_stdout && context.printer.is_json()).then_some((
            "the export and the report cannot both go to standard output",
            "memctl memory export --output FILE --json",
        ))
    };
    if let Some((message, hint)) = refusal {
        return Err(UserError::usage(message, hint));
    }
    let output = args.output.as_ref().filter(|_| !is_stdout);
    let output = output.map(|path| context.environment.absolute(path));
    if is_block {
        // The rules reach agents with it, which they do not while memory is off.
        if let Some(off) = &context.off {
            return Err(off.clone().into());
        }
        let root = context.places.project(&context.environment);
        let file = output.unwrap_or_else(|| root.join("AGENTS.md"));
        let workspace = context.workspace(None)?;
        let report = upkeep::export_agents_md(&workspace, &root, &file)?;
        return Ok(Box::new(report));
    }
    let options = ExportOptions {
        output,
        kinds: args.kinds.clone(),
        skill,
        force: args.force,
    };
    let workspace = context.workspace(None)?;
    let report = context.printer.counting("exporting", |reach| {
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let progress = &mut |done, of| reach(count(done), count(of));
        upkeep::export(&workspace, &options, progress)
    });
    Ok(Box::new(report?))
}

impl Report for AgentsMdReport {
    fn page(&self, page: &mut Page) {
        if self.rules == 0 && self.change == FileChange::Unchanged {
            return page.line(format!(
                "no approved rule for {}: nothing was written",
                self.path
            ));
        }
        page.document(self, &[]);
        if self.candidates > 0 {
            page.note("hint: ", "candidates wait for approval: memctl review");
        }
    }
}

impl Report for ExportReport {
    fn page(&self, page: &mut Page) {
        let Some(output) = &self.output else {
            return page.verbatim(self.text.as_deref().unwrap_or_default());
        };
        let counts = self.counts.iter().map(|(name, n)| counted(name, *n));
        page.good(
            "exported ",
            match counts.collect::<Vec<_>>().join(", ") {
                none if none.is_empty() => "nothing".to_owned(),
                what => what,
            },
        );
        let kilobytes = plural(self.bytes.div_ceil(1_000), "kilobyte");
        page.dim(format!("{} ({kilobytes})", output.display()));
    }

    fn reveals(&self) -> bool {
        // Each record is redacted as JSON. Redaction of the whole line as text could remove more
        // and break the JSON.
        self.text.is_some()
    }
}

/// Import an export, or an `.agentura` directory
///
/// Reads exports of this program and `.agentura` directories byte for byte. Each entry is imported, already
/// known, or skipped with a reason. Existing records do not change, and a repeated import adds nothing.
/// Rules, lessons and notes that you did not write or approve on this machine wait for `memctl approve`.
/// `--trust` approves all of these, also those that an earlier import left waiting.
///
/// ```console
/// $ memctl memory import memory.jsonl
/// $ memctl memory import memory.jsonl --dry-run
/// $ memctl memory import ../other/.agentura --trust
/// ```
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// File or directory to import
    #[arg(value_name = "FILE|DIR")]
    path: PathBuf,
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

pub(crate) fn import(context: &Context, args: &ImportArgs) -> Done<ImportReport> {
    let options = ImportOptions {
        path: context.environment.absolute(&args.path),
        dry_run: args.dry_run,
        restore: args.restore,
        trust: args.trust,
    };
    let workspace = context.workspace(None)?;
    let import = || upkeep::import(&workspace, &options);
    let mut report = context.printer.during("importing", import)?;
    if !args.dry_run && !report.approved.is_empty() {
        let approved = approve(&workspace, &report.approved, None, None)?;
        let new = approved
            .into_iter()
            .filter(|one| !matches!(one.before, "approved" | "user"));
        report.approved = new.map(|one| one.id).collect();
    }
    Ok(report)
}

impl Report for ImportReport {
    fn page(&self, page: &mut Page) {
        page.document(self, &[]);
        if self.read > 0 && self.duplicates == self.read {
            page.line("All of it is already there.");
        }
        if self.observed > 0 && !self.dry_run {
            let hint = "what is not approved yet: memctl review, memctl approve ID, or import with --trust";
            page.note("hint: ", hint);
        }
    }
}
