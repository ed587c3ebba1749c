//! `memory export`: export of the memory to files, and rules in the files of agents.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::wording::counted;
use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style, plural};
use crate::model::error::UserError;
use crate::model::{Kind, SkillPath};
use crate::upkeep::exchange::{
    self, AgentsMdOptions, AgentsMdReport, ExportFormat, ExportOptions, ExportReport, FileChange,
};

/// Format of an export.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    /// JSON Lines: everything, byte for byte; `memory import` reads it
    Jsonl,
    /// A readable page
    Markdown,
    /// A folder with a `SKILL.md` for each approved procedure
    Skills,
    /// The approved rules as a block in `AGENTS.md` and `CLAUDE.md`
    AgentsMd,
}

/// Export memories
///
/// `memory import` restores the JSON Lines exactly, with tombstones and logs. Secrets are redacted.
/// An existing file is replaced only if it is an export; a skill's folder only if `memctl` created
/// it.
///
/// `agents-md` keeps a marked block with the approved rules in step, in `AGENTS.md` and `CLAUDE.md`
/// of the workspace or in the file that `--output` names. The rest of the file stays as it is; rules
/// that it says already are left out of the block. `memctl undo` reverts it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl memory export --output memory.jsonl\n  \
    memctl memory export --format markdown --kind reflexion --output -\n  \
    memctl memory export --format skills --output ~/.claude/skills\n  \
    memctl memory export --format agents-md --dry-run")]
pub(crate) struct ExportArgs {
    /// Output file or `-` for stdout; for skills, the parent directory; optional for agents-md
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
    /// Replace a file even if it is not an export, and a block that was edited by hand
    #[arg(long)]
    force: bool,
    /// Show the change of `AGENTS.md` and `CLAUDE.md`, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl ExportArgs {
    /// Returns `true` if the rules reach agents with the export, which they do not while memory is
    /// off.
    pub(super) const fn acts(&self) -> bool {
        matches!(self.format, FormatName::AgentsMd)
    }
}

pub(crate) fn export(context: &Context, args: &ExportArgs) -> Done {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    if args.acts() {
        return agents_md(context, args);
    }
    if args.dry_run {
        return Err(UserError::usage(
            "`--dry-run` shows the change of a file that is kept in step",
            "memctl memory export --format agents-md --dry-run",
        ));
    }
    let Some(output) = args.output.as_deref() else {
        return Err(UserError::usage(
            "the export needs a file or a directory",
            "memctl memory export --output FILE",
        ));
    };
    let is_stdout = output == Path::new("-");
    if is_stdout && context.printer.is_json() {
        return Err(UserError::usage(
            "the export and the report cannot both go to standard output",
            "memctl memory export --output FILE --json",
        ));
    }
    let options = ExportOptions {
        output: (!is_stdout).then(|| context.environment.absolute(output)),
        format: match args.format {
            FormatName::Jsonl => ExportFormat::Jsonl,
            FormatName::Markdown => ExportFormat::Markdown,
            FormatName::Skills | FormatName::AgentsMd => ExportFormat::Skills,
        },
        kinds: args.kinds.clone(),
        skill,
        force: args.force,
    };
    let bar = context.printer.bar("exporting");
    let report = exchange::export(&context.workspace(None)?, &options, &mut |done, of| {
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        bar.reach(count(done), count(of));
    });
    drop(bar);
    Ok(Box::new(report?))
}

/// Keeps the rules in `AGENTS.md` and `CLAUDE.md` in step.
fn agents_md(context: &Context, args: &ExportArgs) -> Done {
    if !args.kinds.is_empty() || args.skill.is_some() {
        return Err(UserError::usage(
            "`agents-md` holds all approved rules: it takes neither `--kind` nor `--skill`",
            "memctl memory export --format agents-md",
        ));
    }
    if args.output.as_deref() == Some(Path::new("-")) {
        return Err(UserError::usage(
            "`agents-md` is a part of a file, and cannot go to standard output",
            "memctl memory export --format agents-md --dry-run",
        ));
    }
    let options = AgentsMdOptions {
        root: context.places.project(&context.environment),
        output: args
            .output
            .as_ref()
            .map(|path| context.environment.absolute(path)),
        force: args.force,
        dry_run: args.dry_run,
    };
    let report = exchange::export_agents_md(&context.workspace(None)?, &options)?;
    Ok(Box::new(report))
}

impl Report for AgentsMdReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        for file in &self.files {
            let (style, done) = match (file.change, self.dry_run) {
                (FileChange::Unchanged, _) => (Style::Dim, "unchanged "),
                (FileChange::Created, true) => (Style::Dim, "would create "),
                (_, true) => (Style::Dim, "would update "),
                (FileChange::Created, false) => (Style::Good, "created "),
                (_, false) => (Style::Good, "updated "),
            };
            let rules = format!("  {}", plural(file.rules as u64, "rule"));
            page.styled(&[
                (style, done),
                (Style::Plain, &file.path),
                (Style::Dim, &rules),
            ]);
            for rule in &file.said {
                page.field("said already", &format!("{}  {}", rule.id, rule.statement));
            }
            for near in &file.near {
                let text = format!("{}  {}", near.id, near.statement);
                page.field("similar", &text);
            }
            if self.dry_run {
                page.line(file.diff.trim_end());
            }
        }
        let left_out = [
            (self.other_projects, "of other projects"),
            (self.candidates, "waiting for approval: memctl review"),
        ];
        for (count, reason) in left_out {
            if count > 0 {
                let rules = plural(count as u64, "rule");
                page.dim(format!("left out: {rules} {reason}"));
            }
        }
    }
}

impl Report for ExportReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let Some(output) = &self.output else {
            return page.verbatim(self.text.as_deref().unwrap_or_default());
        };
        let counts: Vec<String> = self
            .counts
            .iter()
            .map(|(name, n)| counted(name, *n))
            .collect();
        let what = if counts.is_empty() {
            "nothing".to_owned()
        } else {
            counts.join(", ")
        };
        page.good("exported ", &what);
        let kilobytes = plural(self.bytes.div_ceil(1_000), "kilobyte");
        page.dim(format!("{} ({kilobytes})", output.display()));
    }

    fn reveals(&self) -> bool {
        // Each record is redacted as JSON. Redaction of the whole line as text could remove more
        // and break the JSON.
        self.text.is_some()
    }
}
