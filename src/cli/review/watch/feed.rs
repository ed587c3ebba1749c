//! Events of a memory: what is new in its files since the last look.
//!
//! A file that cannot be read yet, or that another program is rewriting, is read again at its next
//! event.

use std::collections::HashSet;

use clap::ValueEnum;
use memctl_files::json::compact;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cli::output::{Page, Style, change};
use crate::cli::skills::run::latency;
use crate::model::{
    Execution, ExecutionLog, Kind, Outcome, Procedure, Record, Reflexion, SkillPath, Trust, utc,
};
use crate::store::workspace::Workspace;
use crate::store::{DataFile, Scoped, Selection};

/// Step of the action log that tells of shown hints.
const HINT_STEP: &str = "hint";

/// Kind of event; at one time, in the order of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum What {
    /// Executions, as they are recorded
    Executions,
    /// Rules, as they are made or proposed
    Rules,
    /// Lessons, as they are learned
    Lessons,
    /// Hints, as agents get them
    Hints,
}

impl What {
    /// Kind of the records; the action log tells of hints.
    const fn kind(self) -> Option<Kind> {
        match self {
            Self::Executions => Some(Kind::Execution),
            Self::Rules => Some(Kind::Reflexion),
            Self::Lessons => Some(Kind::Procedure),
            Self::Hints => None,
        }
    }

    /// Files that tell of the events.
    pub(crate) fn files(self) -> Vec<&'static str> {
        match self.kind() {
            Some(kind) => DataFile::of(kind).map(DataFile::name).collect(),
            None => vec![Scoped::EXECUTION_LOGS],
        }
    }

    /// Returns `true` if the events belong to skills.
    pub(crate) const fn has_skill(self) -> bool {
        matches!(self, Self::Executions | Self::Rules)
    }
}

/// Event.
#[derive(Debug)]
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
    at: String,
    /// Id of the log line.
    log: String,
    /// Session of the agent; `None` outside any session.
    session: Option<String>,
    /// Tool that failed; `None` if unknown.
    tool: Option<String>,
    /// Error without its variable parts.
    error_key: String,
    /// Ids of the procedures that were shown.
    hints: Vec<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct NewLesson {
    /// Time: RFC 3339, UTC.
    at: String,
    /// Id of the procedure.
    id: String,
    /// Lesson in one line; the error or the name if nobody has worded it.
    lesson: String,
    /// Code or command that failed; empty without a pattern.
    failing_code: String,
    /// Code or command that worked; empty without a pattern.
    working_code: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct NewRule {
    /// Time: RFC 3339, UTC.
    at: String,
    /// Id of the rule.
    id: String,
    /// `domain/skill`; empty if the rule belongs to no skill.
    skill: String,
    /// Text of the rule.
    rule: String,
    /// `true` if the rule acts only after an approval.
    is_candidate: bool,
}

impl WatchEvent {
    /// Id of the event, unique within its kind, and its time as stored.
    fn place(&self) -> (&str, &str) {
        match self {
            Self::Execution(execution) => (&execution.execution_id, &execution.timestamp),
            Self::Other(Other::Hint(hint)) => (&hint.log, &hint.at),
            Self::Other(Other::Lesson(lesson)) => (&lesson.id, &lesson.at),
            Self::Other(Other::Rule(rule)) => (&rule.id, &rule.at),
        }
    }

    /// Returns the event as a line of JSON.
    pub(crate) fn json(&self) -> serde_json::Result<String> {
        let document = match self {
            Self::Execution(execution) => serde_json::to_string(execution)?,
            Self::Other(other) => serde_json::to_string(other)?,
        };
        Ok(compact(&document) + "\n")
    }

    /// Adds the event to a page as one line.
    pub(crate) fn line(&self, page: &mut Page) {
        let mut cells = match self {
            Self::Execution(execution) => cells(execution),
            Self::Other(Other::Hint(hint)) => vec![
                (Style::Plain, hint.hints.join(",")),
                (Style::Warn, "hint shown".to_owned()),
                (Style::Plain, hint.error_key.clone()),
            ],
            Self::Other(Other::Lesson(lesson)) => {
                let text = match lesson.working_code.as_str() {
                    "" => lesson.lesson.clone(),
                    working => change(&lesson.failing_code, working, usize::MAX),
                };
                vec![
                    (Style::Plain, lesson.id.clone()),
                    (Style::Good, "lesson learned".to_owned()),
                    (Style::Plain, text),
                ]
            }
            Self::Other(Other::Rule(rule)) => {
                let name = if rule.is_candidate {
                    "rule proposed"
                } else {
                    "rule made"
                };
                vec![
                    (Style::Plain, rule.id.clone()),
                    (Style::Good, name.to_owned()),
                    (Style::Plain, rule.rule.clone()),
                ]
            }
        };
        let (_, at) = self.place();
        cells.push((Style::Dim, at.chars().take(19).collect()));
        let first_lines = cells
            .iter()
            .filter_map(|(style, text)| Some((*style, text.lines().next()?)));
        let parts: Vec<(Style, &str)> = first_lines
            .flat_map(|part| [(Style::Plain, "  "), part])
            .skip(1)
            .collect();
        page.styled(&parts);
    }
}

fn cells(execution: &Execution) -> Vec<(Style, String)> {
    let style = match execution.outcome {
        Outcome::Accepted => Style::Good,
        Outcome::Rejected | Outcome::Error => Style::Bad,
        Outcome::PendingReview => Style::Plain,
        Outcome::Other(_) => Style::Warn,
    };
    let model = execution.model_used.rsplit('/').next().unwrap_or_default();
    let unknown = || "–".to_owned();
    let cost = execution.cost_usd.map(|cost| format!("${cost:.4}"));
    let time = execution.latency_ms.map(latency);
    vec![
        (Style::Plain, execution.execution_id.clone()),
        (Style::Plain, execution.skill.clone()),
        (style, execution.outcome.as_str().to_owned()),
        (Style::Plain, cost.unwrap_or_else(unknown)),
        (Style::Plain, time.unwrap_or_else(unknown)),
        (Style::Dim, model.to_owned()),
    ]
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
        Self::Other(Other::Rule(NewRule {
            is_candidate: rule.trust() == Trust::Observed,
            at: rule.created_at,
            id: rule.reflexion_id,
            skill: rule.skill,
            rule: rule.rule,
        }))
    }
}

impl From<ExecutionLog> for WatchEvent {
    fn from(line: ExecutionLog) -> Self {
        // Lines of other writers hold anything.
        let field = |data: &Option<Box<RawValue>>, name: &str| -> Value {
            let fields = data.as_ref().map(|data| serde_json::from_str(data.get()));
            let fields: Value = fields.and_then(Result::ok).unwrap_or_default();
            fields[name].clone()
        };
        let hints = field(&line.output_data, "hints");
        let ids = hints.as_array().into_iter().flatten();
        Self::Other(Other::Hint(ShownHint {
            error_key: field(&line.input_data, "error_key")
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            hints: ids
                .filter_map(|id| id.as_str().map(str::to_owned))
                .collect(),
            at: line.created_at,
            log: line.id,
            session: line.session_id,
            tool: line.tool_name,
        }))
    }
}

/// Newest events of a kind that one read returns. More at once, as of an import, are not shown.
const WINDOW: usize = 1_000;

/// Reader of events.
pub(crate) struct Feed<'a> {
    workspace: &'a Workspace,
    skill: Option<&'a SkillPath>,
    /// Each kind, with the ids that were seen.
    sources: Vec<(What, HashSet<String>)>,
}

impl<'a> Feed<'a> {
    pub(crate) fn new(
        workspace: &'a Workspace,
        skill: Option<&'a SkillPath>,
        mut kinds: Vec<What>,
    ) -> Self {
        kinds.sort_unstable();
        kinds.dedup();
        let sources = kinds.into_iter().map(|what| (what, HashSet::new()));
        Self {
            workspace,
            skill,
            sources: sources.collect(),
        }
    }

    /// Returns the newest events at the start, oldest first.
    pub(crate) fn start(&mut self, limit: usize) -> Vec<WatchEvent> {
        let mut events = self.updates();
        events.split_off(events.len().saturating_sub(limit))
    }

    /// Returns the events since the last call, by time. Those of one time stay in the order of their file.
    pub(crate) fn updates(&mut self) -> Vec<WatchEvent> {
        let mut new = Vec::new();
        for (what, known) in &mut self.sources {
            // A file that cannot be read now is read at its next event.
            let Some(mut events) = read(self.workspace, self.skill, *what) else {
                continue;
            };
            // What stands before a known event is older: it is in the window since another was removed.
            let last = events
                .iter()
                .rposition(|event| known.contains(event.place().0));
            let after = events.split_off(last.map_or(0, |last| last + 1));
            // No known event is left of a file that is being rewritten, or that others have replaced.
            let is_shown = last.is_some() || known.is_empty();
            for event in after {
                if known.insert(event.place().0.to_owned()) && is_shown {
                    new.push(event);
                }
            }
        }
        new.sort_by_cached_key(|event| utc(event.place().1));
        new
    }
}

/// Returns the newest events of a kind, oldest first; `None` if the file cannot be read.
fn read(workspace: &Workspace, skill: Option<&SkillPath>, what: What) -> Option<Vec<WatchEvent>> {
    fn records<R: Record + Into<WatchEvent>>(
        workspace: &Workspace,
        skill: Option<&SkillPath>,
    ) -> Option<Vec<WatchEvent>> {
        let selection = Selection {
            skill,
            newest: Some(WINDOW),
        };
        let found = workspace.store.list::<R>(&selection).ok()?;
        Some(found.records.into_iter().map(Into::into).collect())
    }
    match what {
        What::Executions => records::<Execution>(workspace, skill),
        What::Lessons => records::<Procedure>(workspace, skill),
        What::Rules => records::<Reflexion>(workspace, skill),
        What::Hints => {
            let listing = workspace.store.logs_of_step(HINT_STEP, WINDOW).ok()?;
            Some(listing.lines.into_iter().map(WatchEvent::from).collect())
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
        let event = WatchEvent::from(line);
        assert!(
            matches!(&event, WatchEvent::Other(Other::Hint(hint)) if hint.hints.is_empty()),
            "{event:?}"
        );
    }
}
