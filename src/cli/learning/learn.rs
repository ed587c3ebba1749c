//! `learn`: lessons from agents' session files.

use clap::Args;

use super::session_files::{SessionFiles, reading, show_problem};
use crate::cli::context::Context;
use crate::cli::output::{Page, Report, Style, change, end, middle, plural};
use crate::error::UserError;
use crate::learning::{self, EpisodeReport, LearnOptions, LearnReport};

/// Minimum width of an error or a change.
pub(in crate::cli) const LEAST_TEXT: usize = 20;

/// Learn from failures and recoveries in agent sessions
///
/// Reads session files of Claude Code, Codex, Gemini CLI and SWE-agent, lists of OpenAI and
/// Anthropic messages, and JSON Lines of steps. Searches folders recursively, and skips unchanged
/// files that were read before. Without a path, it reads the sessions of this project that Claude Code
/// and Codex have kept. Nothing is counted twice.
/// A recovery whose working call is the failing one with a small change becomes a pattern. It is told
/// only at the same failure in the same project, until a person approves it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl learn\n  memctl learn ~/.claude/projects\n  \
    memctl learn --dry-run --json session.jsonl"
)]
pub(in crate::cli) struct LearnArgs {
    /// Show what would be learned, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    files: SessionFiles,
}

pub(in crate::cli) fn learn(
    context: &Context,
    args: &LearnArgs,
) -> Result<Box<dyn Report>, UserError> {
    let workspace = context.workspace(None)?;
    let (paths, project) = args.files.given_or_of_project(context)?;
    let options = LearnOptions {
        project_name: project.as_ref().and_then(|_| context.project_name()),
        paths,
        project,
        format: args.files.format(),
        dry_run: args.dry_run,
        session: context.session(None),
        host_session: None,
    };
    let report = reading(context, |progress| {
        learning::learn(&workspace.records(), &options, progress)
    })?;
    Ok(Box::new(report))
}

/// Shows the recoveries by session, each on two lines: the error, and what became of it.
fn recoveries(episodes: &[EpisodeReport], page: &mut Page) {
    let steps =
        |episode: &EpisodeReport| format!("{} → {}", episode.fail_step, episode.success_step);
    let widths = episodes
        .iter()
        .map(|episode| steps(episode).chars().count());
    let indent = widths.max().unwrap_or_default() + 4;
    let room = page.width().saturating_sub(indent).max(LEAST_TEXT);
    let mut session = "";
    for episode in episodes {
        if episode.transcript != session {
            session = &episode.transcript;
            let name = session.rsplit('/').next().unwrap_or_default();
            page.styled(&[(Style::Dim, &middle(name, page.width()))]);
        }
        let (style, outcome) = outcome(episode, room);
        page.styled(&[
            (Style::Dim, &format!("  {:<1$}", steps(episode), indent - 2)),
            (Style::Plain, &end(&episode.error_key, room)),
        ]);
        page.styled(&[(Style::Plain, &" ".repeat(indent)), (style, &outcome)]);
    }
}

/// The change of a recovery on one line, or the reason why it is no pattern.
fn outcome(episode: &EpisodeReport, room: usize) -> (Style, String) {
    if let Some(fix) = &episode.fix {
        return (
            Style::Good,
            change(&fix.failing_code, &fix.working_code, room),
        );
    }
    let reason = episode.no_fix.unwrap_or_default().replace('_', " ");
    (Style::Dim, format!("no pattern: {reason}"))
}

/// Number of new records: "2 procedures learned".
fn learned(ids: &[String]) -> String {
    match ids.len() {
        0 => "nothing new".to_owned(),
        count => format!("{} learned", plural(count as u64, "procedure")),
    }
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
        recoveries(&self.episodes, page);
        let mut ends = Vec::new();
        if self.dry_run {
            ends.push("nothing was written".to_owned());
        } else {
            ends.push(learned(&self.learned));
            if !self.merged.is_empty() {
                ends.push(format!("{} seen again", self.merged.len()));
            }
        }
        let rest = [
            (self.unchanged, "unchanged since the last run"),
            (self.skipped, "skipped: not session files"),
            (self.buried, "deleted earlier, not learned again"),
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
