//! Output of sessions and their logs.

use serde::Serialize;
use serde_json::Value;

use crate::cli::output::{Page, Report, Style, Table, plural};
use crate::cli::skills::run::latency;
use crate::lessons::telling::pitfall::{MAX_RULES, Pitfall};
use crate::model::{ExecutionLog, LogStatus, Session, SessionState};
use crate::notes::sessions::{ActionReport, ChangedSession, SessionReport, SessionsReport};

/// Result of a change to a session.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Changed {
    #[serde(skip)]
    pub(super) done: &'static str,
    pub(super) session: ChangedSession,
}

impl Report for Changed {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.session.warnings);
        let session = &self.session.session;
        let done = format!("{} ", self.done);
        page.good(&done, &session.session_id);
        page.field("status", session.status.as_str());
        if let Some(step) = &session.current_step {
            page.field("step", step);
        }
        page.field("progress", &progress(session));
        if let Some(error) = &session.error_message {
            page.field("error", error);
        }
    }
}

impl Report for ActionReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let session = self.line.session_id.as_deref().unwrap_or_default();
        let line = &self.line;
        let done = format!(
            "{} of {session}: {} ({})",
            line.step_name, line.action_type, line.status
        );
        page.good("logged ", &done);
    }
}

impl Report for SessionsReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        if self.sessions.is_empty() {
            return page.line("No sessions yet.");
        }
        sessions_table(&self.sessions, page);
        page.newest(self.sessions.len(), self.total);
    }
}

impl Report for SessionReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        head(page, &self.session);
        if self.logs.is_empty() {
            return;
        }
        page.line("");
        actions_table(&self.logs, page);
        if self.has_older_logs {
            page.dim(format!(
                "the newest {}",
                plural(self.logs.len() as u64, "action")
            ));
        }
    }
}

/// Adds the fields of a session to a page.
fn head(page: &mut Page, session: &Session) {
    page.styled(&[(Style::Strong, &session.session_id)]);
    page.styled(&[
        (Style::Dim, "status:       "),
        (style(&session.status), session.status.as_str()),
    ]);
    for (label, value) in [
        ("user", session.user_id.as_deref()),
        ("step", session.current_step.as_deref()),
        ("error", session.error_message.as_deref()),
    ] {
        if let Some(value) = value {
            page.field(label, value);
        }
    }
    page.field("progress", &progress(session));
    if !session.completed_steps.is_empty() {
        page.field("done", &session.completed_steps.join(", "));
    }
    let began = page.age(&session.started_at);
    page.field("began", &began);
    if let Some(at) = &session.completed_at {
        let completed = page.age(at);
        page.field("completed", &completed);
    }
    let data: Value = serde_json::from_str(session.session_data.get()).unwrap_or_default();
    let Some(data) = data.as_object() else {
        return;
    };
    let fields = data.iter().filter(|(name, _)| *name != "pitfalls");
    let fields: Vec<String> = fields
        .map(|(name, value)| {
            let text = words(value);
            // One line is one field here, so a value must not contain line breaks.
            let flat: Vec<&str> = text.split_whitespace().collect();
            format!("{}: {}", name.escape_debug(), flat.join(" "))
        })
        .collect();
    if !fields.is_empty() {
        page.field("data", &fields.join("\n"));
    }
    let pitfalls = data.get("pitfalls").cloned().unwrap_or_default();
    let pitfalls: Vec<Pitfall> = serde_json::from_value(pitfalls).unwrap_or_default();
    for (i, pitfall) in pitfalls.iter().take(MAX_RULES).enumerate() {
        let label = if i == 0 { "pitfalls" } else { "" };
        page.field(label, &format!("{}: {}", pitfall.error, pitfall.rule));
    }
}

/// Returns a value for people: texts without quotation marks, also in a list.
fn words(value: &Value) -> String {
    let texts = value
        .as_array()
        .map(|values| values.iter().map(Value::as_str));
    match texts.and_then(Iterator::collect::<Option<Vec<&str>>>) {
        Some(texts) => texts.join(", "),
        None => value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
    }
}

/// Adds a table of sessions.
fn sessions_table(sessions: &[Session], page: &mut Page) {
    let mut table = Table::new("ID|Status|~Step|>Progress|>Began|>Changed", &[2, 0]);
    for session in sessions {
        table.styled_row(vec![
            (Style::Plain, session.session_id.clone()),
            (style(&session.status), session.status.to_string()),
            (
                Style::Plain,
                session.current_step.clone().unwrap_or_default(),
            ),
            (Style::Plain, percent(session)),
            (Style::Dim, page.age(&session.started_at)),
            (Style::Dim, page.age(&session.updated_at)),
        ]);
    }
    page.table(&table);
}

/// Adds a table of actions.
fn actions_table(lines: &[ExecutionLog], page: &mut Page) {
    let mut table = Table::new(
        ">Age|~Step|Action|Tool|Status|>Took|>Sure|~What",
        &[7, 1, 3],
    );
    for line in lines {
        table.styled_row(action(line, &page.age(&line.created_at)));
    }
    page.table(&table);
}

/// Returns the cells of an action.
pub(super) fn action(line: &ExecutionLog, time: &str) -> Vec<(Style, String)> {
    let unknown = || "–".to_owned();
    let took = |ms: u64| latency(u32::try_from(ms).unwrap_or(u32::MAX).into());
    let status = match line.status {
        LogStatus::Success => Style::Good,
        LogStatus::Error => Style::Bad,
        LogStatus::Pending | LogStatus::Running => Style::Plain,
        LogStatus::Other(_) => Style::Warn,
    };
    // The most informative text comes first: error, reason, output, input.
    let data = [&line.output_data, &line.input_data].into_iter().flatten();
    let said = [&line.error_message, &line.reasoning]
        .into_iter()
        .flatten()
        .cloned();
    let what = said.chain(data.map(|data| data.get().to_owned())).next();
    vec![
        (Style::Dim, time.to_owned()),
        (Style::Plain, line.step_name.clone()),
        (Style::Plain, line.action_type.to_string()),
        (Style::Plain, line.tool_name.clone().unwrap_or_else(unknown)),
        (status, line.status.to_string()),
        (
            Style::Plain,
            line.execution_time_ms.map_or_else(unknown, took),
        ),
        (
            Style::Plain,
            line.confidence_score
                .map_or_else(unknown, |score| format!("{score:.2}")),
        ),
        (Style::Plain, what.unwrap_or_default()),
    ]
}

/// Returns the style of a state.
pub(super) fn style(status: &SessionState) -> Style {
    match status {
        SessionState::Completed => Style::Good,
        SessionState::Error => Style::Bad,
        SessionState::Cancelled => Style::Dim,
        SessionState::AwaitingApproval => Style::Warn,
        known if known.is_known() => Style::Plain,
        _ => Style::Warn,
    }
}

/// Returns the progress as `38%`.
pub(super) fn percent(session: &Session) -> String {
    let percent = session.progress_percentage;
    percent.map_or_else(|| "–".to_owned(), |percent| format!("{percent:.0}%"))
}

/// Returns the progress as `38%, 3 of 8 steps`.
fn progress(session: &Session) -> String {
    let done = session.completed_steps.len() as u64;
    match session.total_steps {
        Some(total) => format!("{}, {done} of {}", percent(session), plural(total, "step")),
        None => percent(session),
    }
}
