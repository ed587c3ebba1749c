//! Events of a memory, each as one line of text and as one line of JSON.

use console::truncate_str;
use memctl_files::json::compact;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cli::output::{Page, Style, change};
use crate::cli::skills::run::latency;
use crate::model::{Execution, ExecutionLog, Outcome, Procedure, Record, Reflexion, Trust};

/// Event, as it is printed.
#[derive(Debug)]
pub(super) struct Event {
    /// Id, unique within its kind.
    pub(super) id: String,
    /// Time as stored.
    pub(super) at: String,
    /// Line of JSON.
    pub(super) json: String,
    /// Its line for a person, before the time.
    text: String,
    style: Style,
}

/// Event that is no execution, as `--json` prints it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Other {
    /// Hints that an agent got at a failing call.
    Hint(Happened),
    /// Rules or lessons that an agent was told at a start or a call.
    Told(Happened),
    /// Lesson or pattern that was learned.
    Lesson(Happened),
    /// Rule that was made from a correction, or proposed.
    Rule(Happened),
}

/// What happened to records.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub(crate) struct Happened {
    /// Time: RFC 3339, UTC.
    at: String,
    /// Id of the record, or of the line of the log.
    id: String,
    /// What happened, in words, such as `told at a start` or `rule proposed`.
    what: &'static str,
    /// Text of the records; of a hint, the error without its variable parts.
    text: String,
    /// Ids of the records.
    records: Vec<String>,
    /// Session of the agent; `None` outside any session, and for records.
    session: Option<String>,
    /// Tool that failed or was about to be called; `None` if unknown, and for records.
    tool: Option<String>,
}

/// Line of JSON with a document.
fn json(document: &impl Serialize) -> String {
    compact(&serde_json::to_string(document).unwrap_or_default()) + "\n"
}

impl Event {
    /// Adds the event to a page as one line, which is cut at the width of a terminal.
    pub(super) fn line(&self, page: &mut Page, columns: Option<usize>) {
        let at: String = self.at.chars().take(19).collect();
        let text = self.text.lines().next().unwrap_or_default();
        let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(at.len() + 2));
        let text = truncate_str(text, room, "…");
        page.styled(&[(self.style, &text), (Style::Dim, &format!("  {at}"))]);
    }
}

impl From<Execution> for Event {
    fn from(execution: Execution) -> Self {
        let style = match execution.outcome {
            Outcome::Accepted => Style::Good,
            Outcome::Rejected | Outcome::Error => Style::Bad,
            Outcome::PendingReview => Style::Plain,
            Outcome::Other(_) => Style::Warn,
        };
        let model = execution.model_used.rsplit('/').next().unwrap_or_default();
        let unknown = || "–".to_owned();
        let cost = execution.cost_usd.map(|cost| format!("${cost:.4}"));
        let cells = [
            execution.execution_id.as_str(),
            &execution.skill,
            execution.outcome.as_str(),
            &cost.unwrap_or_else(unknown),
            &execution.latency_ms.map_or_else(unknown, latency),
            model,
        ];
        Self {
            json: json(&execution),
            text: cells.join("  "),
            style,
            id: execution.execution_id,
            at: execution.timestamp,
        }
    }
}

impl From<Other> for Event {
    fn from(document: Other) -> Self {
        let json = json(&document);
        let (style, of) = match document {
            Other::Hint(of) | Other::Told(of) => (Style::Warn, of),
            Other::Lesson(of) | Other::Rule(of) => (Style::Good, of),
        };
        Self {
            id: of.id,
            at: of.at,
            json,
            text: [&in_short(&of.records), of.what, &of.text].join("  "),
            style,
        }
    }
}

impl From<Procedure> for Event {
    fn from(procedure: Procedure) -> Self {
        let pattern = procedure.pattern.clone().unwrap_or_default();
        let text = match pattern.working_code.as_str() {
            "" => procedure.summary(),
            working => change(&pattern.failing_code, working, usize::MAX),
        };
        Self::from(Other::Lesson(Happened {
            at: procedure.created_at,
            records: vec![procedure.procedure_id.clone()],
            id: procedure.procedure_id,
            what: "lesson learned",
            text,
            ..Happened::default()
        }))
    }
}

impl From<Reflexion> for Event {
    fn from(rule: Reflexion) -> Self {
        let what = if rule.trust() == Trust::Observed {
            "rule proposed"
        } else {
            "rule made"
        };
        Self::from(Other::Rule(Happened {
            at: rule.created_at,
            records: vec![rule.reflexion_id.clone()],
            id: rule.reflexion_id,
            what,
            text: rule.rule,
            ..Happened::default()
        }))
    }
}

/// Returns few ids as they are, and of many the first with their number: what happened stands behind them.
fn in_short(ids: &[String]) -> String {
    match ids {
        [first, _, _, rest @ ..] => format!("{first} and {} more", rest.len() + 2),
        few => few.join(","),
    }
}

/// Event of a line about what an agent was told. `text_of` returns the text of a record.
pub(super) fn told(line: ExecutionLog, text_of: &dyn Fn(&str) -> Option<String>) -> Event {
    // Lines of other writers hold anything.
    let field = |data: &Option<Box<RawValue>>, name: &str| -> Value {
        let fields = data.as_ref().map(|data| serde_json::from_str(data.get()));
        let fields: Value = fields.and_then(Result::ok).unwrap_or_default();
        fields[name].clone()
    };
    let ids = |name: &str| -> Vec<String> {
        let ids = field(&line.output_data, name);
        let ids = ids.as_array().into_iter().flatten();
        ids.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let said = |name: &str| {
        let said = field(&line.input_data, name);
        said.as_str().unwrap_or_default().to_owned()
    };
    let is_told = line.step_name == "told";
    let (what, name) = match (is_told, &*said("at")) {
        (false, _) => ("hint shown", "hints"),
        (true, "start") => ("told at a start", "told"),
        (true, _) => ("told at a call", "told"),
    };
    let records = ids(name);
    let text = if is_told {
        let texts: Vec<String> = records.iter().filter_map(|id| text_of(id)).collect();
        texts.join(" · ")
    } else {
        said("error_key")
    };
    let happened = Happened {
        at: line.created_at,
        id: line.id,
        what,
        text,
        records,
        session: line.session_id,
        tool: line.tool_name,
    };
    let event = if is_told { Other::Told } else { Other::Hint };
    Event::from(event(happened))
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
        let event = told(line, &|_| None);
        assert!(event.json.contains("\"records\":[]"), "{event:?}");
    }

    #[test]
    fn a_line_fits_a_terminal_and_keeps_its_time() {
        let rule = Reflexion {
            reflexion_id: "REFL-001".to_owned(),
            created_at: "2026-02-20T12:43:41.681444+00:00".to_owned(),
            rule: "Every score has to name its evidence in the input".to_owned(),
            ..Reflexion::default()
        };
        let event = Event::from(rule);
        let check = |columns, expected: &str| {
            let mut page = Page::new(100, false, chrono::DateTime::UNIX_EPOCH);
            event.line(&mut page, columns);
            assert_eq!(page.into_text().trim_end(), expected);
        };
        let whole = "REFL-001  rule made  Every score has to name its evidence in the input  2026-02-20T12:43:41";
        check(None, whole);
        check(
            Some(52),
            "REFL-001  rule made  Every sco…  2026-02-20T12:43:41",
        );
    }
}
