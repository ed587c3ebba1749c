//! `watch`: live view of executions.
//!
//! On a terminal, a table that redraws in place; through a pipe, one line per execution. File
//! system events trigger each read, whichever program writes.

use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::Args;

use crate::arguments::TYPED;
use crate::cli::context::Context;
use crate::cli::follow::{Event, Follower};
use crate::cli::live::{self, Live};
use crate::cli::output::{Align, Style, Table, plural, when};
use crate::cli::primary;
use crate::cli::skills::run::latency;
use crate::engine;
use crate::error::{self, UserError};
use crate::json::compact;
use crate::model::{Execution, Kind, Outcome, SkillPath};
use crate::workspace::Workspace;

const EXECUTIONS: &[&str] = &[Kind::Execution.file()];

/// Show executions as they are recorded
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl watch\n  memctl watch --skill hr/triage --json | jq .outcome"
)]
pub(in crate::cli) struct WatchArgs {
    /// Show only executions of this skill
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// Maximum number of rows, and of past executions at the start
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(TYPED), value_name = "N")]
    limit: u32,
}

pub(in crate::cli) fn watch(context: &Context, args: &WatchArgs) -> Result<u8, UserError> {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let workspace = context.workspace(None)?;
    primary::follow(&context.environment, &workspace)?;
    let mut follower = Follower::new(&context.places.memory, EXECUTIONS)?;
    let watch = Watch {
        context,
        workspace,
        skill,
        limit: args.limit as usize,
    };
    if std::io::stdout().is_terminal() && !context.printer.is_json() {
        let mut screen = Screen {
            watch: &watch,
            seen: (Vec::new(), 0),
        };
        live::redraw(context, &mut follower, &mut screen)
    } else {
        watch.lines(&mut follower)
    }
}

struct Watch<'a> {
    context: &'a Context,
    workspace: Workspace,
    skill: Option<SkillPath>,
    limit: usize,
}

impl Watch<'_> {
    /// Prints one line per execution until interrupted, or until the reader closes the pipe.
    fn lines(&self, follower: &mut Follower) -> Result<u8, UserError> {
        let (mut next, mut total) = self.recent();
        let mut shown: HashSet<String> = HashSet::new();
        loop {
            for execution in next {
                if shown.insert(execution.execution_id.clone())
                    && !self.context.printer.line(&self.one_line(&execution)?)
                {
                    return Ok(0);
                }
            }
            match follower.next(None)? {
                Event::Changed | Event::Nothing => {}
                Event::Interrupted => return Ok(error::Kind::Interrupted.code()),
                Event::Failed(reason) => self.context.printer.warn(&reason),
            }
            next = self.updates(&shown, &mut total);
        }
    }

    /// Returns all executions after the last one shown.
    fn updates(&self, shown: &HashSet<String>, total: &mut u64) -> Vec<Execution> {
        let mut limit = self.limit;
        loop {
            let Ok((mut executions, now)) =
                engine::recent_executions(&self.workspace.store, self.skill.as_ref(), limit)
            else {
                return Vec::new();
            };
            let torn = self.workspace.store.has_problems(Kind::Execution);
            if now == 0 || (now < *total && torn.unwrap_or(true)) {
                // Another program is rewriting the file; its next event brings the rest.
                return Vec::new();
            }
            let last = executions
                .iter()
                .rposition(|execution| shown.contains(&execution.execution_id));
            if last.is_none() && limit as u64 <= now && !shown.is_empty() {
                limit *= 2;
                continue;
            }
            *total = now;
            return executions.split_off(last.map_or(0, |last| last + 1));
        }
    }

    /// Returns the newest executions, oldest first, and their total number. Returns nothing for a
    /// file that cannot be read yet; the next event reads it again.
    fn recent(&self) -> (Vec<Execution>, u64) {
        engine::recent_executions(&self.workspace.store, self.skill.as_ref(), self.limit)
            .unwrap_or_default()
    }

    fn one_line(&self, execution: &Execution) -> Result<String, UserError> {
        if self.context.printer.is_json() {
            return Ok(compact(&serde_json::to_string(execution)?) + "\n");
        }
        let cells = cells(
            execution,
            &execution.timestamp.chars().take(19).collect::<String>(),
        );
        let cells: Vec<String> = cells.into_iter().map(|(_, text)| text).collect();
        let mut page = self.context.printer.page();
        page.line(cells.join("  "));
        Ok(page.into_text())
    }

    fn frame(
        &self,
        (executions, total): &(Vec<Execution>, u64),
        (rows, columns): (usize, usize),
        since: Duration,
    ) -> String {
        // Heading, totals, and the row of the cursor.
        let room = rows.saturating_sub(4).max(1).min(self.limit);
        let now = self.context.environment.now + since;
        let names = [
            ("ID", Align::Left),
            ("Skill", Align::Left),
            ("Outcome", Align::Left),
            ("Cost", Align::Right),
            ("Latency", Align::Right),
            ("Model", Align::Left),
            ("Age", Align::Right),
        ];
        let mut table = Table::new(&names, &[1, 5, 0]);
        for execution in executions.iter().rev().take(room) {
            table.styled_row(cells(execution, &when(&execution.timestamp, now)));
        }
        // The sum of no values is negative zero; `+ 0.0` makes it positive.
        let cost = executions.iter().filter_map(|e| e.cost_usd).sum::<f64>() + 0.0;
        let known: Vec<f64> = executions.iter().filter_map(|e| e.latency_ms).collect();
        #[expect(clippy::cast_precision_loss, reason = "a screen holds few rows")]
        let mean = known.iter().sum::<f64>() / (known.len().max(1) as f64);
        let sums = format!(
            "{} shown of {total}  |  ${cost:.4}  |  {} on average",
            plural(executions.len() as u64, "execution"),
            latency(mean),
        );
        let colour = self.context.printer.page_has_colour();
        let sums = if colour {
            Style::Dim.paint(&sums)
        } else {
            sums
        };
        format!("{}\n\n{sums}", table.render(columns, colour))
    }
}

/// Table on the screen, and its current executions.
struct Screen<'a> {
    watch: &'a Watch<'a>,
    seen: (Vec<Execution>, u64),
}

impl Live for Screen<'_> {
    fn look(&mut self) {
        self.seen = self.watch.recent();
    }

    fn frame(&self, rows: usize, columns: usize, since: Duration) -> String {
        self.watch.frame(&self.seen, (rows, columns), since)
    }
}

fn cells(execution: &Execution, time: &str) -> Vec<(Style, String)> {
    let style = match execution.outcome {
        Outcome::Accepted => Style::Good,
        Outcome::Rejected | Outcome::Error => Style::Bad,
        Outcome::PendingReview => Style::Plain,
        Outcome::Other(_) => Style::Warn,
    };
    let model = execution.model_used.rsplit('/').next().unwrap_or_default();
    let unknown = || "–".to_owned();
    vec![
        (Style::Plain, execution.execution_id.clone()),
        (Style::Plain, execution.skill.clone()),
        (style, execution.outcome.as_str().to_owned()),
        (
            Style::Plain,
            execution
                .cost_usd
                .map_or_else(unknown, |cost| format!("${cost:.4}")),
        ),
        (
            Style::Plain,
            execution.latency_ms.map_or_else(unknown, latency),
        ),
        (Style::Dim, model.to_owned()),
        (Style::Dim, time.to_owned()),
    ]
}
