//! `memory export`: export of the memory to files.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::records::counted;
use crate::cli::context::Context;
use crate::cli::output::{Page, Report, Style, plural};
use crate::error::UserError;
use crate::exchange::{self, ExportFormat, ExportOptions, ExportReport};
use crate::model::{Kind, SkillPath};

/// Format of an export.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    /// JSON Lines: everything, byte for byte; `memory import` reads it
    Jsonl,
    /// A readable page
    Markdown,
    /// A folder with a `SKILL.md` for each approved procedure
    Skills,
}

/// Export memories
///
/// `memory import` restores the JSON Lines exactly, with tombstones and logs. Secrets are redacted.
/// An existing file is replaced only if it is an export; a skill's folder only if `memctl` created
/// it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory export --output memory.jsonl\n  \
    memctl memory export --format markdown --kind reflexion --output -\n  \
    memctl memory export --format skills --output ~/.claude/skills"
)]
pub(in crate::cli) struct ExportArgs {
    /// Output file or `-` for stdout; for skills, the parent directory
    #[arg(long, short, value_name = "FILE|-")]
    output: PathBuf,
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

pub(in crate::cli) fn export(
    context: &Context,
    args: &ExportArgs,
) -> Result<Box<dyn Report>, UserError> {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let is_stdout = args.output == Path::new("-");
    if is_stdout && context.printer.is_json() {
        return Err(UserError::usage(
            "the export and the report cannot both go to standard output",
            "memctl memory export --output FILE --json",
        ));
    }
    let options = ExportOptions {
        output: (!is_stdout).then(|| context.environment.absolute(&args.output)),
        format: match args.format {
            FormatName::Jsonl => ExportFormat::Jsonl,
            FormatName::Markdown => ExportFormat::Markdown,
            FormatName::Skills => ExportFormat::Skills,
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

impl Report for ExportReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
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
        page.styled(&[(Style::Good, "exported "), (Style::Plain, &what)]);
        let kilobytes = plural(self.bytes.div_ceil(1_000), "kilobyte");
        page.styled(&[(Style::Dim, &format!("{} ({kilobytes})", output.display()))]);
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn reveals(&self) -> bool {
        // Each record is redacted as JSON. Redaction of the whole line as text could remove more
        // and break the JSON.
        self.text.is_some()
    }
}
