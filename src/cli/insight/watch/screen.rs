//! Screen of `watch`: a table of executions, and below it the other events.

use std::time::Duration;

use crate::cli::context::Context;
use crate::cli::live::Live;
use crate::cli::output::{Style, Table, change, plural, when};
use crate::cli::skills::run::latency;
use crate::model::{Execution, Outcome};

use super::event::Other;
use super::feed::{Feed, What};

/// Columns of the other events, without the text.
const OTHER_COLUMNS: usize = 30;
/// Minimum width of the text of an event.
const LEAST_TEXT: usize = 20;

/// Current events on the screen.
pub(super) struct Screen<'a> {
    context: &'a Context,
    feed: Feed<'a>,
    executions: (Vec<Execution>, u64),
    others: Vec<Other>,
}

impl<'a> Screen<'a> {
    pub(super) fn new(context: &'a Context, feed: Feed<'a>) -> Self {
        Self {
            context,
            feed,
            executions: (Vec::new(), 0),
            others: Vec::new(),
        }
    }
}

impl Live for Screen<'_> {
    fn look(&mut self) {
        self.executions = self.feed.executions();
        self.others = self.feed.others();
    }

    fn frame(&self, rows: usize, columns: usize, since: Duration) -> String {
        let now = self.context.environment.now + since;
        let colour = self.context.printer.page_has_colour();
        // Empty line, totals, and the row of the cursor.
        let room = rows.saturating_sub(3).max(2);
        let has_executions = self.feed.has(What::Executions);
        let others = match (self.others.len(), has_executions) {
            (0, _) => 0,
            (some, false) => some.min(room.saturating_sub(1)),
            // A third of the screen, or what the executions leave.
            (some, true) => {
                let left = room.saturating_sub(self.executions.0.len() + 3);
                some.min(left.max(room / 3).saturating_sub(1))
            }
        };
        let mut parts = Vec::new();
        if has_executions {
            let taken = if others == 0 { 1 } else { others + 3 };
            parts.push(self.executions_table(room.saturating_sub(taken).max(1), now));
        }
        if others > 0 {
            parts.push(self.others_table(others, columns, now));
        }
        let tables: Vec<String> = parts.iter().map(|t| t.render(columns, colour)).collect();
        let sums = self.sums(has_executions);
        let sums = if colour {
            Style::Dim.paint(&sums)
        } else {
            sums
        };
        format!("{}\n\n{sums}", tables.join("\n\n"))
            .trim_start_matches('\n')
            .to_owned()
    }
}

impl Screen<'_> {
    fn executions_table(&self, room: usize, now: chrono::DateTime<chrono::Utc>) -> Table {
        let mut table = Table::new("ID|Skill|Outcome|>Cost|>Latency|Model|>Age", &[1, 5, 0]);
        for execution in self.executions.0.iter().rev().take(room) {
            table.styled_row(cells(execution, &when(&execution.timestamp, now)));
        }
        table
    }

    fn others_table(
        &self,
        room: usize,
        columns: usize,
        now: chrono::DateTime<chrono::Utc>,
    ) -> Table {
        let mut table = Table::new("Event|ID|Text|>Age", &[2]);
        let width = columns.saturating_sub(OTHER_COLUMNS).max(LEAST_TEXT);
        for other in self.others.iter().rev().take(room) {
            let style = match other {
                Other::Hint(_) => Style::Warn,
                Other::Lesson(_) | Other::Rule(_) => Style::Good,
            };
            let (name, id, text) = said(other, width);
            table.styled_row(vec![
                (style, name.to_owned()),
                (Style::Plain, id),
                (Style::Plain, text),
                (Style::Dim, when(other.at(), now)),
            ]);
        }
        table
    }

    /// Totals on one line.
    fn sums(&self, has_executions: bool) -> String {
        let (executions, total) = &self.executions;
        let mut sums = Vec::new();
        if has_executions {
            // The sum of no values is negative zero; `+ 0.0` makes it positive.
            let cost = executions.iter().filter_map(|e| e.cost_usd).sum::<f64>() + 0.0;
            let known: Vec<f64> = executions.iter().filter_map(|e| e.latency_ms).collect();
            #[expect(clippy::cast_precision_loss, reason = "a screen holds few rows")]
            let mean = known.iter().sum::<f64>() / (known.len().max(1) as f64);
            sums.push(format!(
                "{} shown of {total}",
                plural(executions.len() as u64, "execution")
            ));
            sums.push(format!("${cost:.4}"));
            sums.push(format!("{} on average", latency(mean)));
        } else if self.others.is_empty() {
            sums.push("nothing has happened yet".to_owned());
        } else {
            sums.push(plural(self.others.len() as u64, "event"));
        }
        sums.push("q quits".to_owned());
        sums.join("  |  ")
    }
}

/// Returns the cells of an execution.
pub(super) fn cells(execution: &Execution, time: &str) -> Vec<(Style, String)> {
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

/// Returns the name, the ids and the text of an event. A lesson takes at most `width` columns.
pub(super) fn said(other: &Other, width: usize) -> (&'static str, String, String) {
    match other {
        Other::Hint(hint) => ("hint shown", hint.hints.join(","), hint.error_key.clone()),
        Other::Lesson(lesson) => {
            let text = if lesson.working_code.is_empty() {
                lesson.lesson.clone()
            } else {
                change(&lesson.failing_code, &lesson.working_code, width)
            };
            ("lesson learned", lesson.id.clone(), text)
        }
        Other::Rule(rule) => {
            let name = if rule.is_candidate {
                "rule proposed"
            } else {
                "rule made"
            };
            (name, rule.id.clone(), rule.rule.clone())
        }
    }
}
