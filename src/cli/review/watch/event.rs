//! Events of a memory, each as one line of text and as one line of JSON.

use console::measure_text_width;
use memctl_files::json::compact;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cli::output::{Page, Style, change, day, end};
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
    /// Cells of its line for a person, before the time.
    cells: Vec<(Style, String)>,
}

/// Event that is no execution, as `--json` prints it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Other {
    /// Hints that an agent got at a failing call.
    Hint(ShownHint),
    /// Rules or lessons that an agent was told at a start or a call.
    Told(ToldNote),
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
pub(crate) struct ToldNote {
    /// Time: RFC 3339, UTC.
    at: String,
    /// Id of the log line.
    log: String,
    /// Session of the agent; `None` outside any session.
    session: Option<String>,
    /// Tool that was about to be called; `None` at a start, or if unknown.
    tool: Option<String>,
    /// `start` of a session or a subagent, or `call`.
    moment: String,
    /// Texts that were told.
    records: Vec<ToldRecord>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ToldRecord {
    /// Id of the rule or the lesson.
    id: String,
    /// Present text; empty if it is gone.
    text: String,
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

/// Line of JSON with a document.
fn json(document: &impl Serialize) -> String {
    compact(&serde_json::to_string(document).unwrap_or_default()) + "\n"
}

/// Minimum width of a cell that is cut.
const LEAST: usize = 8;
/// Spaces between two cells.
const GAP: &str = "  ";

impl Event {
    /// Event that is no execution: its records, what happened to them, and their text.
    fn other(
        (id, at): (&str, &str),
        records: String,
        what: (Style, &str),
        text: String,
        document: &Other,
    ) -> Self {
        Self {
            id: id.to_owned(),
            at: at.to_owned(),
            json: json(document),
            cells: vec![
                (Style::Plain, records),
                (what.0, what.1.to_owned()),
                (Style::Plain, text),
            ],
        }
    }

    /// Adds the event to a page as one line. On a terminal of `columns`, its last cells give way, and its time is a
    /// clock from the day `today` on.
    pub(super) fn line(&self, page: &mut Page, columns: Option<usize>, today: &str) {
        let at: String = self.at.chars().take(19).collect();
        let at = match at.split_once('T') {
            Some((day, clock)) if columns.is_some() && day >= today => clock.to_owned(),
            _ if columns.is_some() => day(&self.at),
            _ => at,
        };
        let mut room = columns
            .unwrap_or(usize::MAX)
            .saturating_sub(measure_text_width(&at));
        let mut parts = Vec::new();
        for (style, text) in &self.cells {
            let Some(text) = text.lines().next() else {
                continue;
            };
            room = room.saturating_sub(GAP.len());
            let cut = columns.map_or_else(|| text.to_owned(), |_| end(text, room));
            if room < LEAST && cut != text {
                break;
            }
            room -= measure_text_width(&cut);
            parts.extend([(*style, cut), (Style::Plain, GAP.to_owned())]);
        }
        parts.push((Style::Dim, at));
        let parts = parts.iter().map(|(style, text)| (*style, text.as_str()));
        page.styled(&parts.collect::<Vec<_>>());
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
        let cells = vec![
            (Style::Plain, execution.execution_id.clone()),
            (Style::Plain, execution.skill.clone()),
            (style, execution.outcome.as_str().to_owned()),
            (Style::Plain, cost.unwrap_or_else(unknown)),
            (
                Style::Plain,
                execution.latency_ms.map_or_else(unknown, latency),
            ),
            (Style::Dim, model.to_owned()),
        ];
        Self {
            json: json(&execution),
            cells,
            id: execution.execution_id,
            at: execution.timestamp,
        }
    }
}

impl From<Procedure> for Event {
    fn from(procedure: Procedure) -> Self {
        let pattern = procedure.pattern.clone().unwrap_or_default();
        let lesson = procedure.summary();
        let text = match pattern.working_code.as_str() {
            "" => lesson.clone(),
            working => change(&pattern.failing_code, working, usize::MAX),
        };
        let (id, at) = (procedure.procedure_id, procedure.created_at);
        let document = Other::Lesson(NewLesson {
            at: at.clone(),
            id: id.clone(),
            lesson,
            failing_code: pattern.failing_code,
            working_code: pattern.working_code,
        });
        let what = (Style::Good, "lesson learned");
        Self::other((&id, &at), id.clone(), what, text, &document)
    }
}

impl From<Reflexion> for Event {
    fn from(rule: Reflexion) -> Self {
        let is_candidate = rule.trust() == Trust::Observed;
        let (id, at, text) = (rule.reflexion_id, rule.created_at, rule.rule);
        let document = Other::Rule(NewRule {
            at: at.clone(),
            id: id.clone(),
            skill: rule.skill,
            rule: text.clone(),
            is_candidate,
        });
        let what = if is_candidate {
            "rule proposed"
        } else {
            "rule made"
        };
        Self::other((&id, &at), id.clone(), (Style::Good, what), text, &document)
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
    let (log, at) = (line.id, line.created_at);
    if line.step_name != "told" {
        let (hints, error_key) = (ids("hints"), said("error_key"));
        let shown = hints.join(",");
        let document = Other::Hint(ShownHint {
            at: at.clone(),
            log: log.clone(),
            session: line.session_id,
            tool: line.tool_name,
            error_key: error_key.clone(),
            hints,
        });
        let what = (Style::Warn, "hint shown");
        return Event::other((&log, &at), shown, what, error_key, &document);
    }
    let moment = said("at");
    let what = match moment.as_str() {
        "start" => (Style::Warn, "told at a start"),
        _ => (Style::Warn, "told at a call"),
    };
    let ids = ids("told");
    let shown = in_short(&ids);
    let records = ids.into_iter().map(|id| ToldRecord {
        text: text_of(&id).unwrap_or_default(),
        id,
    });
    let records: Vec<ToldRecord> = records.collect();
    let texts: Vec<&str> = records.iter().map(|record| &*record.text).collect();
    let text = texts.join(" · ");
    let document = Other::Told(ToldNote {
        at: at.clone(),
        log: log.clone(),
        session: line.session_id,
        tool: line.tool_name,
        moment,
        records,
    });
    Event::other((&log, &at), shown, what, text, &document)
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
        assert!(event.json.contains("\"hints\":[]"), "{event:?}");
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
        let check = |columns, today, expected: &str| {
            let mut page = Page::new(100, false, chrono::DateTime::UNIX_EPOCH);
            event.line(&mut page, columns, today);
            assert_eq!(page.into_text().trim_end(), expected);
        };
        let whole = "REFL-001  rule made  Every score has to name its evidence in the input  2026-02-20T12:43:41";
        check(None, "2026-02-20", whole);
        let cut = "REFL-001  rule made  Every score has to n…  12:43:41";
        check(Some(52), "2026-02-20", cut);
        check(Some(30), "2026-02-21", "REFL-001  rule ma…  2026-02-20");
    }
}
