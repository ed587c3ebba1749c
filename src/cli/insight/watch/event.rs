//! Events of a memory, as `watch` shows and prints them.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{Execution, ExecutionLog, Procedure, Record as _, Reflexion, Trust, utc};

/// Event.
pub(super) enum WatchEvent {
    Execution(Box<Execution>),
    Other(Box<Other>),
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
    pub(super) at: String,
    /// Id of the log line.
    pub(super) log: String,
    /// Session of the agent; `None` outside any session.
    pub(super) session: Option<String>,
    /// Tool that failed; `None` if unknown.
    pub(super) tool: Option<String>,
    /// Error without its variable parts.
    pub(super) error_key: String,
    /// Ids of the procedures that were shown.
    pub(super) hints: Vec<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct NewLesson {
    /// Time: RFC 3339, UTC.
    pub(super) at: String,
    /// Id of the procedure.
    pub(super) id: String,
    /// Lesson in one line; the error or the name if nobody has worded it.
    pub(super) lesson: String,
    /// Code or command that failed; empty without a pattern.
    pub(super) failing_code: String,
    /// Code or command that worked; empty without a pattern.
    pub(super) working_code: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct NewRule {
    /// Time: RFC 3339, UTC.
    pub(super) at: String,
    /// Id of the rule.
    pub(super) id: String,
    /// `domain/skill`; empty if the rule belongs to no skill.
    pub(super) skill: String,
    /// Text of the rule.
    pub(super) rule: String,
    /// `true` if the rule acts only after an approval.
    pub(super) is_candidate: bool,
}

impl WatchEvent {
    /// Id of the event, unique within its kind.
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Execution(execution) => &execution.execution_id,
            Self::Other(other) => match &**other {
                Other::Hint(hint) => &hint.log,
                Other::Lesson(lesson) => &lesson.id,
                Other::Rule(rule) => &rule.id,
            },
        }
    }

    /// Time of the event: RFC 3339, UTC.
    pub(super) fn at(&self) -> String {
        match self {
            Self::Execution(execution) => utc(&execution.timestamp),
            Self::Other(other) => utc(other.at()),
        }
    }
}

impl Other {
    pub(super) fn at(&self) -> &str {
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
        Self::Other(Box::new(Other::Lesson(NewLesson {
            at: procedure.created_at,
            id: procedure.procedure_id,
            lesson,
            failing_code: pattern.failing_code,
            working_code: pattern.working_code,
        })))
    }
}

impl From<Reflexion> for WatchEvent {
    fn from(rule: Reflexion) -> Self {
        let is_candidate = rule.trust() == Trust::Observed;
        Self::Other(Box::new(Other::Rule(NewRule {
            at: rule.created_at,
            id: rule.reflexion_id,
            skill: rule.skill,
            rule: rule.rule,
            is_candidate,
        })))
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
        Self::Other(Box::new(Other::Hint(ShownHint {
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
        })))
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
        assert!(matches!(*other, Other::Hint(hint) if hint.hints.is_empty()));
    }
}
