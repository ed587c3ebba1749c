//! `learn`: fixes and procedures from agents' session files.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::cli::context::Context;
use crate::cli::interrupt::wait;
use crate::cli::output::{Align, Page, Report, Style, Table, plural};
use crate::cli::progress::follow;
use crate::error::UserError;
use crate::learning::{self, LearnOptions, LearnReport, OnBytes};
use crate::transcript::Format;
use crate::workspace::Workspace;

/// Learn fixes and procedures from failures and recoveries in agent sessions
///
/// Reads session files of Claude Code, Codex, Gemini CLI and SWE-agent, lists of OpenAI and
/// Anthropic messages, and JSON Lines of steps. Searches folders recursively, and skips unchanged
/// files that were read before. Nothing is counted twice, and no model is called without `--llm`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl learn ~/.claude/projects\n  \
    memctl learn --dry-run --json session.jsonl")]
pub(in crate::cli) struct LearnArgs {
    /// Session files, or folders of them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Show what would be learnt, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Let a model reword new records; prints the calls and the estimated cost first
    #[arg(long, conflicts_with = "dry_run")]
    llm: bool,
    /// Maximum number of model calls
    #[arg(long, value_name = "N", default_value_t = 20, requires = "llm")]
    max_calls: usize,
    /// Model to call: `provider/model`, `exec:PROGRAM` or `scripted:FILE`
    #[arg(long, value_name = "MODEL", requires = "llm")]
    model: Option<String>,
    /// Format of the files, if it cannot be detected from the content
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(Format::ALL.map(Format::name)))]
    format: Option<String>,
}

pub(in crate::cli) fn learn(
    context: &Context,
    args: &LearnArgs,
) -> Result<Box<dyn Report>, UserError> {
    let workspace = context.workspace(args.model.as_deref())?;
    let options = LearnOptions {
        paths: args
            .paths
            .iter()
            .map(|path| context.environment.absolute(path))
            .collect(),
        format: args.format.as_deref().and_then(Format::from_name),
        dry_run: args.dry_run,
        session: context.session(None),
        host_session: None,
    };
    let mut report = reading(context, |progress| {
        learning::learn(&workspace, &options, progress)
    })?;
    if args.llm {
        word(context, &workspace, args.max_calls, &mut report)?;
    }
    Ok(Box::new(report))
}

/// Shows a progress bar while session files are read.
pub(in crate::cli) fn reading<T>(context: &Context, read: impl FnOnce(OnBytes<'_>) -> T) -> T {
    let bar = context.printer.bar("reading");
    // Progress is counted in kilobytes, because reading takes most of the time.
    read(&mut |done, of| {
        let count = |bytes: u64| usize::try_from(bytes >> 10).unwrap_or(usize::MAX);
        bar.reach(count(done), count(of));
    })
}

/// Prints a line of a session file that could not be read.
pub(in crate::cli) fn show_problem(page: &mut Page, path: &str, line: u64, message: &str) {
    let place = format!("{path}:{line}");
    page.styled(&[
        (Style::Dim, &place),
        (Style::Plain, &format!(": {message}")),
    ]);
}

/// Lets a model reword new records. They are stored already, so an error here is a warning.
fn word(
    context: &Context,
    workspace: &Workspace,
    max_calls: usize,
    report: &mut LearnReport,
) -> Result<(), UserError> {
    let plan = match wait(learning::plan_analysis(
        workspace, &report.learned, max_calls,
    ))? {
        Ok(Some(plan)) => plan,
        Ok(None) => {
            report
                .warnings
                .push("no model is configured; new records keep their offline wording".to_owned());
            return Ok(());
        }
        Err(error) => {
            report
                .warnings
                .push(format!("cannot call the model: {error}"));
            return Ok(());
        }
    };
    if plan.calls == 0 {
        return Ok(());
    }
    let cost = plan
        .cost_usd
        .map_or("an unknown cost".to_owned(), |cost| format!("${cost:.4}"));
    let capped = match plan.left_out {
        0 => String::new(),
        count => format!("; {count} more stay unchanged (--max-calls)"),
    };
    context.printer.note(&format!(
        "calling `{}`: {}, about {cost}{capped}",
        plan.model,
        plural(plan.calls as u64, "call"),
    ));
    let spinner = context.printer.spinner("calling the model");
    let analysis = wait(learning::analyse(workspace, plan, &mut follow(&spinner)))?;
    drop(spinner);
    match analysis {
        Ok(analysis) => {
            report.analysed = analysis.analysed;
            report.cost_usd = analysis.cost_usd;
            report.warnings.extend(analysis.warnings);
        }
        Err(error) => report
            .warnings
            .push(format!("cannot store the new wording: {error}")),
    }
    Ok(())
}

impl Report for LearnReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        let steps: usize = self.transcripts.iter().map(|t| t.steps).sum();
        let failures: usize = self.transcripts.iter().map(|t| t.failures).sum();
        let overcome = format!(
            ": {}, {}, {} recovered",
            plural(steps as u64, "step"),
            plural(failures as u64, "failure"),
            self.episodes.len(),
        );
        let read = plural(self.transcripts.len() as u64, "session");
        page.styled(&[(Style::Strong, &read), (Style::Plain, &overcome)]);
        for transcript in &self.transcripts {
            for problem in &transcript.problems {
                show_problem(page, &transcript.path, problem.line, &problem.message);
            }
        }
        if !self.episodes.is_empty() {
            let mut table = Table::new(
                &[
                    ("Steps", Align::Left),
                    ("Tool", Align::Left),
                    ("Error", Align::Prose),
                    ("Session", Align::Left),
                ],
                &[2, 3],
            );
            for episode in &self.episodes {
                let name = episode.transcript.rsplit('/').next().unwrap_or_default();
                table.row([
                    format!("{} → {}", episode.fail_step, episode.success_step),
                    episode.tool.clone(),
                    episode.error_key.clone(),
                    name.to_owned(),
                ]);
            }
            page.table(&table);
        }
        let mut ends = Vec::new();
        if self.dry_run {
            ends.push("nothing was written".to_owned());
        } else {
            ends.push(format!("{} learnt", self.learned.len()));
            ends.push(format!("{} seen again", self.merged.len()));
        }
        let rest = [
            (self.unchanged, "unchanged since the last run"),
            (self.skipped, "skipped: not session files"),
            (self.buried, "deleted earlier, not learnt again"),
        ];
        ends.extend(
            rest.iter()
                .filter(|(n, _)| *n > 0)
                .map(|(n, what)| format!("{n} {what}")),
        );
        page.styled(&[(Style::Dim, &ends.join(" · "))]);
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
