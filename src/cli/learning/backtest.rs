//! `backtest`: simulated savings on past sessions.

use clap::Args;

use super::learn::LEAST_TEXT;
use super::session_files::{SessionFiles, reading, show_problem};
use crate::cli::context::Context;
use crate::cli::output::{Align, Page, Report, Style, Table, change, end, middle, plural};
use crate::error::UserError;
use crate::insight::{BacktestOptions, BacktestReport, ShownReport};

/// Maximum number of errors on the page; `--json` has all of them.
const SHOWN: usize = 15;

/// Measure what memory would have saved in past sessions
///
/// Replays session files in the order of time, beginning with an empty memory. Each failing call
/// asks for hints, and each recovery is learned. Reads the formats and folders that `learn` reads,
/// and writes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl backtest ~/.claude/projects\n  \
    memctl backtest --json session.jsonl")]
pub(in crate::cli) struct BacktestArgs {
    #[command(flatten)]
    files: SessionFiles,
}

pub(in crate::cli) fn backtest(
    context: &Context,
    args: &BacktestArgs,
) -> Result<Box<dyn Report>, UserError> {
    let options = BacktestOptions {
        paths: args.files.given(context)?,
        format: args.files.format(),
    };
    let report = reading(context, |progress| {
        crate::insight::backtest(&options, progress)
    })?;
    Ok(Box::new(report))
}

impl Report for BacktestReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        let count = |n: usize, what: &str| plural(n as u64, what);
        let read = count(self.transcripts, "session");
        let happened = format!(
            ": {}, {}, {} recovered, {} seen before",
            count(self.steps, "step"),
            count(self.failures, "failure"),
            self.episodes,
            self.repeated,
        );
        page.styled(&[(Style::Strong, &read), (Style::Plain, &happened)]);
        for problem in &self.problems {
            show_problem(page, &problem.path, problem.line, &problem.message);
        }
        let met_again: Vec<_> = self.by_error.iter().filter(|e| e.hinted > 0).collect();
        if !met_again.is_empty() {
            let mut table = Table::new(
                &[
                    ("Error", Align::Prose),
                    ("Times", Align::Right),
                    ("Hinted", Align::Right),
                    ("Right", Align::Right),
                    ("Wasted", Align::Right),
                    ("Saved", Align::Right),
                ],
                &[0],
            );
            for error in met_again.iter().take(SHOWN) {
                table.row([
                    error.error_key.clone(),
                    error.times.to_string(),
                    error.hinted.to_string(),
                    error.hinted_right.to_string(),
                    error.steps_wasted.to_string(),
                    error.steps_saved.to_string(),
                ]);
            }
            page.table(&table);
            page.line("");
            hints(&self.shown, page);
        }
        let rest = met_again.len().saturating_sub(SHOWN);
        let rest_of_hints = self.shown.len().saturating_sub(SHOWN);
        let ends = [
            (rest, "more errors in `--json`"),
            (rest_of_hints, "more hints in `--json`"),
            (self.skipped, "skipped: not session files"),
        ];
        let ends: Vec<String> = ends
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}"))
            .collect();
        if !ends.is_empty() {
            page.styled(&[(Style::Dim, &ends.join(" · "))]);
        }
        page.line(self.sentence());
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Shows the first hints by session, each with its error, the first fix, and what then worked.
fn hints(shown: &[ShownReport], page: &mut Page) {
    const INDENT: usize = 8;
    let room = page.width().saturating_sub(INDENT).max(LEAST_TEXT);
    let mut session = "";
    for failure in shown.iter().take(SHOWN) {
        if failure.transcript != session {
            session = &failure.transcript;
            let name = session.rsplit('/').next().unwrap_or_default();
            page.styled(&[(Style::Dim, &middle(name, page.width()))]);
        }
        page.styled(&[
            (Style::Dim, &format!("{:>6}  ", failure.step)),
            (Style::Plain, &end(&failure.error_key, room)),
        ]);
        let label = |name: &str| format!("{:<1$}{name:<11}", "", INDENT);
        let room = room.saturating_sub(11);
        if let Some(hint) = failure.hints.first() {
            let fix = change(&hint.failing_code, &hint.working_code, room);
            page.styled(&[(Style::Dim, &label("hint")), (Style::Plain, &fix)]);
        }
        let (style, verdict) = match failure.right {
            Some(true) => (Style::Good, "as hinted"),
            Some(false) => (Style::Warn, "instead"),
            None => (Style::Dim, "unsolved"),
        };
        let did = match &failure.worked {
            Some(worked) => change(&failure.call, worked, room),
            None => String::new(),
        };
        page.styled(&[(style, &label(verdict)), (Style::Plain, &did)]);
    }
}

impl BacktestReport {
    /// Returns a summary in one sentence.
    fn sentence(&self) -> String {
        if self.failures == 0 {
            return "No call failed, so memory could not have saved anything.".to_owned();
        }
        if self.hinted == 0 {
            return "Memory would have shown no hints: no failure had an earlier recovery."
                .to_owned();
        }
        let judged = match self.hinted_overcome {
            0 => "none of them recovered".to_owned(),
            judged => format!(
                "correct for {} of the {judged} that recovered",
                self.hinted_right
            ),
        };
        format!(
            "Memory would have shown hints at {} of {} ({judged}) and saved {} of {}.",
            self.hinted,
            plural(self.failures as u64, "failure"),
            self.steps_saved,
            plural(self.steps_wasted as u64, "wasted step"),
        )
    }
}
