//! Events of a memory, and the screen that `watch` shows them on.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::context::Context;
use crate::cli::output::Style;
use crate::cli::output::table::Table;
use crate::cli::output::text::change;
use crate::cli::output::text::{plural, when};
use crate::cli::review::watch::{Feed, What};
use crate::cli::skills::run::latency;
use crate::model::{
    Execution, ExecutionLog, Outcome, Procedure, Record as _, Reflexion, Trust, utc,
};

/// Event.
pub(crate) enum WatchEvent {
    Execution(Box<Execution>),
    Other(Other),
}

/// Event that is no execution, as `--json` prints it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Other {
    /// Hints that an agent got at a failing call.
    Hint(ShownHint),
    /// Lesson or pattern that was learned.
    Lesson(NewLesson),
    /// Rule that was made from a correction, or proposed.
    Rule(NewRule),
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ShownHint {
    /// Time: RFC 3339, UTC.
    pub(crate) at: String,
    /// Id of the log line.
    pub(crate) log: String,
    /// Session of the agent; `None` outside any session.
    pub(crate) session: Option<String>,
    /// Tool that failed; `None` if unknown.
    pub(crate) tool: Option<String>,
    /// Error without its variable parts.
    pub(crate) error_key: String,
    /// Ids of the procedures that were shown.
    pub(crate) hints: Vec<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct NewLesson {
    /// Time: RFC 3339, UTC.
    pub(crate) at: String,
    /// Id of the procedure.
    pub(crate) id: String,
    /// Lesson in one line; the error or the name if nobody has worded it.
    pub(crate) lesson: String,
    /// Code or command that failed; empty without a pattern.
    pub(crate) failing_code: String,
    /// Code or command that worked; empty without a pattern.
    pub(crate) working_code: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct NewRule {
    /// Time: RFC 3339, UTC.
    pub(crate) at: String,
    /// Id of the rule.
    pub(crate) id: String,
    /// `domain/skill`; empty if the rule belongs to no skill.
    pub(crate) skill: String,
    /// Text of the rule.
    pub(crate) rule: String,
    /// `true` if the rule acts only after an approval.
    pub(crate) is_candidate: bool,
}

impl WatchEvent {
    /// Id of the event, unique within its kind.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Execution(execution) => &execution.execution_id,
            Self::Other(other) => match other {
                Other::Hint(hint) => &hint.log,
                Other::Lesson(lesson) => &lesson.id,
                Other::Rule(rule) => &rule.id,
            },
        }
    }

    /// Time of the event: RFC 3339, UTC.
    pub(crate) fn at(&self) -> String {
        match self {
            Self::Execution(execution) => utc(&execution.timestamp),
            Self::Other(other) => utc(other.at()),
        }
    }
}

impl Other {
    pub(crate) fn at(&self) -> &str {
        match self {
            Self::Hint(hint) => &hint.at,
            Self::Lesson(lesson) => &lesson.at,
            Self::Rule(rule) => &rule.at,
        }
    }
}

impl From<Execution> for WatchEvent {
    fn from(execution: Execution) -> Self {
        Self::Execution(Box::new(execution))
    }
}

impl From<Procedure> for WatchEvent {
    fn from(procedure: Procedure) -> Self {
        let lesson = procedure.summary();
        let pattern = procedure.pattern.unwrap_or_default();
        Self::Other(Other::Lesson(NewLesson {
            at: procedure.created_at,
            id: procedure.procedure_id,
            lesson,
            failing_code: pattern.failing_code,
            working_code: pattern.working_code,
        }))
    }
}

impl From<Reflexion> for WatchEvent {
    fn from(rule: Reflexion) -> Self {
        let is_candidate = rule.trust() == Trust::Observed;
        Self::Other(Other::Rule(NewRule {
            at: rule.created_at,
            id: rule.reflexion_id,
            skill: rule.skill,
            rule: rule.rule,
            is_candidate,
        }))
    }
}

impl From<ExecutionLog> for WatchEvent {
    fn from(line: ExecutionLog) -> Self {
        let field = |data: &Option<Box<RawValue>>, name: &str| {
            let data = data.as_ref()?;
            let fields: serde_json::Value = serde_json::from_str(data.get()).ok()?;
            fields.get(name).cloned()
        };
        let key = field(&line.input_data, "error_key");
        let ids = field(&line.output_data, "hints");
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        Self::Other(Other::Hint(ShownHint {
            at: line.created_at,
            log: line.id,
            session: line.session_id,
            tool: line.tool_name,
            error_key: key.as_ref().and_then(text).unwrap_or_default(),
            hints: ids
                .as_ref()
                .and_then(serde_json::Value::as_array)
                .map(|ids| ids.iter().filter_map(text).collect())
                .unwrap_or_default(),
        }))
    }
}

/// Columns of the other events, without the text.
const OTHER_COLUMNS: usize = 30;
/// Minimum width of the text of an event.
const LEAST_TEXT: usize = 20;

/// Current events on the screen.
pub(crate) struct Screen<'a> {
    context: &'a Context,
    feed: Feed<'a>,
    executions: Vec<Execution>,
    /// Number of all executions.
    total: u64,
    others: Vec<Other>,
}

impl<'a> Screen<'a> {
    pub(crate) fn new(context: &'a Context, feed: Feed<'a>) -> Self {
        Self {
            context,
            feed,
            executions: Vec::new(),
            total: 0,
            others: Vec::new(),
        }
    }

    /// Reads what may have changed.
    pub(crate) fn look(&mut self) {
        let (events, total) = self.feed.newest();
        self.total = total;
        self.executions.clear();
        self.others.clear();
        for event in events {
            match event {
                WatchEvent::Execution(execution) => self.executions.push(*execution),
                WatchEvent::Other(other) => self.others.push(other),
            }
        }
        let surplus = self.others.len().saturating_sub(self.feed.limit);
        self.others.drain(..surplus);
    }

    /// Returns the text for a screen of `rows` × `columns`, `since` after the start. It has at most
    /// `rows - 1` lines: the cursor rests on the last row.
    pub(crate) fn frame(&self, rows: usize, columns: usize, since: Duration) -> String {
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
                let left = room.saturating_sub(self.executions.len() + 3);
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
        for execution in self.executions.iter().rev().take(room) {
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
        let (executions, total) = (&self.executions, self.total);
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
pub(crate) fn cells(execution: &Execution, time: &str) -> Vec<(Style, String)> {
    let style = match execution.outcome {
        Outcome::Accepted => Style::Good,
        Outcome::Rejected | Outcome::Error => Style::Bad,
        Outcome::PendingReview => Style::Plain,
        Outcome::Other(_) => Style::Warn,
    };
    let model = execution.model_used.rsplit('/').next().unwrap_or_default();
    let unknown = || "–".to_owned();
    let cost = execution.cost_usd.map(|cost| format!("${cost:.4}"));
    vec![
        (Style::Plain, execution.execution_id.clone()),
        (Style::Plain, execution.skill.clone()),
        (style, execution.outcome.as_str().to_owned()),
        (Style::Plain, cost.unwrap_or_else(unknown)),
        (
            Style::Plain,
            execution.latency_ms.map_or_else(unknown, latency),
        ),
        (Style::Dim, model.to_owned()),
        (Style::Dim, time.to_owned()),
    ]
}

/// Returns the name, the ids and the text of an event. A lesson takes at most `width` columns.
pub(crate) fn said(other: &Other, width: usize) -> (&'static str, String, String) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_of_another_writer_is_a_hint_without_ids() {
        let line = ExecutionLog {
            id: "1".to_owned(),
            ..ExecutionLog::default()
        };
        let WatchEvent::Other(other) = WatchEvent::from(line) else {
            panic!("no hint");
        };
        assert!(matches!(other, Other::Hint(hint) if hint.hints.is_empty()));
    }
}
