//! `session …`: commands on agent sessions.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style, Table, plural};
use crate::cli::skills::run::latency;
use crate::model::error::UserError;
use crate::model::{ActionType, ExecutionLog, LogStatus, SessionState};
use crate::notes::sessions::{
    self, ActionReport, ChangedSession, NewAction, NewSession, SessionChange, SessionReport,
    SessionsReport,
};
use crate::serve::arguments::TYPED;

commands! {
    /// Start, log, show and end agent sessions
    ///
    /// A session has a state, steps, progress and data. With hooks installed, a session of an agent host
    /// becomes a record when it ends.
    ///
    /// ```console
    /// $ memctl session start --step research
    /// $ memctl session progress latest --status awaiting_approval --completed research
    /// $ memctl session end latest
    /// ```
    SessionCommand, session, |context|
    Start(args: StartArgs) => start(context, args);
    Log(args: LogArgs) => log(context, args);
    Progress(args: ProgressArgs) => progress(context, args);
    End(args: EndArgs) => end(context, args);
    List(args: ListArgs) => list(context, &args);
    Show(args: ShowArgs) => show(context, &args);
}

/// Start a session
///
/// Prints its id. A program that runs skills in the session sets the variable `MEMCTL_SESSION` to
/// the id, so that `run` and `learn` add to its log.
///
/// ```console
/// $ memctl session start
/// $ memctl session start --total-steps 3 --step research --data '{"campaign": "spring"}'
/// ```
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// Data of the session: a JSON object; `-` reads standard input
    #[arg(long, value_name = "JSON|-")]
    data: Option<String>,
    /// Total number of steps
    #[arg(long, value_name = "N", default_value_t = crate::model::TOTAL_STEPS, allow_negative_numbers = true)]
    total_steps: u64,
    /// Name of the first step
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
}

fn start(context: &Context, args: StartArgs) -> Done<Changed> {
    let new = NewSession {
        data: context.json_of("--data", args.data.as_deref())?,
        total_steps: args.total_steps,
        step: args.step,
    };
    Ok(Changed {
        done: "started",
        session: sessions::start(&context.workspace(None)?, new)?,
    })
}

/// Log an action in a session
///
/// Appends one line to `execution_logs.jsonl`, which never changes later. Secrets are redacted.
///
/// ```console
/// $ memctl session log latest --step research --action decision --status success
/// $ memctl session log latest --step research --action tool_call --status success \
///     --tool web_search --input '{"query": "hooks"}' --output '{"found": 12}' --ms 840 \
///     --reasoning "the brief names no competitor" --confidence 0.8
/// ```
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Session id, a prefix of one, or `latest`
    session: String,
    /// Step that the action belongs to
    #[arg(long, value_name = "NAME")]
    step: String,
    /// Type of the action
    #[arg(long, value_name = "TYPE", value_parser = PossibleValuesParser::new(ActionType::NAMES))]
    action: String,
    /// Status of the action
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(LogStatus::NAMES))]
    status: String,
    /// Tool that was used
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Input as JSON; `-` reads standard input
    #[arg(long, value_name = "JSON|-")]
    input: Option<String>,
    /// Output as JSON; `-` reads standard input
    #[arg(long, value_name = "JSON|-")]
    output: Option<String>,
    /// Reason for the action
    #[arg(long, value_name = "TEXT")]
    reasoning: Option<String>,
    /// Confidence of the agent, from 0 to 1
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    confidence: Option<f64>,
    /// Duration in milliseconds
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    ms: Option<u64>,
    /// Error message
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

fn log(context: &Context, args: LogArgs) -> Done<ActionReport> {
    let (input, output) = (args.input.as_deref(), args.output.as_deref());
    Context::one_from_input([("--input", input), ("--output", output)])?;
    let action = NewAction {
        step: args.step,
        tool: args.tool,
        action: ActionType::from(args.action.as_str()),
        status: LogStatus::from(args.status.as_str()),
        input: context.json_of("--input", input)?,
        output: context.json_of("--output", output)?,
        reasoning: args.reasoning,
        confidence: args.confidence,
        took_ms: args.ms,
        error: args.error,
    };
    let workspace = context.workspace(None)?;
    Ok(sessions::log_action(&workspace, &args.session, action)?)
}

/// Update the progress of a session
///
/// Every state may follow every other until a final one: `completed`, `error` and `cancelled`. Completed
/// steps raise the percentage; it falls only when a reviewer sends the session back. Also accepted:
/// `analyzing_brand`, `researching_competitors`, `analyzing_trends`, `generating_concepts`,
/// `generating_scripts` and `generating_videos`.
///
/// ```console
/// $ memctl session progress latest --status awaiting_approval --completed research
/// $ memctl session progress latest --step "writing the report" --percent 70
/// ```
#[derive(Debug, Args)]
pub(crate) struct ProgressArgs {
    /// Session id, a prefix of one, or `latest`
    session: String,
    /// New state
    #[arg(long, value_name = "STATE", value_parser = states(false))]
    status: Option<SessionState>,
    /// Name of the current step
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
    /// Progress from 0 to 100
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    percent: Option<i64>,
    /// Completed step; repeatable
    #[arg(long, value_name = "STEP")]
    completed: Vec<String>,
    /// Fields to set in the session's data: a JSON object; `-` reads standard input
    #[arg(long, value_name = "JSON|-")]
    data: Option<String>,
    /// Error message, for the state `error`
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

fn progress(context: &Context, args: ProgressArgs) -> Done<Changed> {
    let change = SessionChange {
        status: args.status,
        step: args.step,
        percent: args.percent,
        completed: args.completed,
        data: context.json_of("--data", args.data.as_deref())?,
        error: args.error,
    };
    if change.is_empty() {
        let example = format!("memctl session progress {} --percent 50", args.session);
        return Err(UserError::usage("nothing to change", example));
    }
    changed(context, &args.session, change, "updated")
}

fn changed(
    context: &Context,
    id: &str,
    change: SessionChange,
    done: &'static str,
) -> Done<Changed> {
    let session = sessions::change(&context.workspace(None)?, id, change)?;
    Ok(Changed { done, session })
}

/// End a session
///
/// An ended session does not change; only its log may grow.
///
/// ```console
/// $ memctl session end latest
/// $ memctl session end latest --status error --error "the service answered 503"
/// ```
#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    /// Session id, a prefix of one, or `latest`
    session: String,
    /// Final state; default: `error` with `--error`, else `completed`
    #[arg(long, value_name = "STATE", value_parser = states(true))]
    status: Option<SessionState>,
    /// Error message
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

fn end(context: &Context, args: EndArgs) -> Done<Changed> {
    let meant = match args.error {
        Some(_) => SessionState::Error,
        None => SessionState::Completed,
    };
    let change = SessionChange {
        status: Some(args.status.unwrap_or(meant)),
        error: args.error,
        ..SessionChange::default()
    };
    changed(context, &args.session, change, "ended")
}

/// List the newest sessions
///
/// ```console
/// $ memctl session list --status awaiting_approval
/// $ memctl session list -n 5
/// ```
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// List only sessions in this state
    #[arg(long, value_name = "STATE", value_parser = states(false))]
    status: Option<SessionState>,
    /// Maximum number of sessions
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(TYPED), value_name = "N")]
    limit: u32,
}

fn list(context: &Context, args: &ListArgs) -> Done<SessionsReport> {
    let workspace = context.workspace(None)?;
    let found = sessions::list(&workspace, args.status.as_ref(), args.limit as usize)?;
    Ok(found)
}

/// Show a session and its actions
///
/// ```console
/// $ memctl session show latest
/// $ memctl session show latest --json | jq '.logs[].tool_name'
/// ```
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Session id, a prefix of one, or `latest`
    session: String,
    /// Show at most N actions, the newest
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(TYPED), value_name = "N")]
    limit: u32,
}

fn show(context: &Context, args: &ShowArgs) -> Done<SessionReport> {
    let workspace = context.workspace(None)?;
    Ok(sessions::show(
        &workspace, &args.session, args.limit as usize,
    )?)
}

/// Returns a parser for the known states, or for the final ones only.
fn states(is_final: bool) -> impl TypedValueParser<Value = SessionState> {
    let names = SessionState::NAMES.iter().copied();
    let names = names.filter(move |name| !is_final || SessionState::from(*name).is_final());
    PossibleValuesParser::new(names).map(|name| SessionState::from(name.as_str()))
}

/// Result of a change to a session.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Changed {
    #[serde(skip)]
    pub(crate) done: &'static str,
    pub(crate) session: ChangedSession,
}

impl Report for Changed {
    fn page(&self, page: &mut Page) {
        page.result(self.done, &self.session.session.session_id, self);
    }
}

impl Report for ActionReport {
    fn page(&self, page: &mut Page) {
        page.result("logged", &self.line.step_name, &self.line);
    }
}

impl Report for SessionsReport {
    fn page(&self, page: &mut Page) {
        if self.sessions.is_empty() {
            return page.line("No sessions yet.");
        }
        let mut table = Table::new("ID|Status|~Step|>Progress|>Began|>Changed");
        for session in &self.sessions {
            let percent = session.progress_percentage;
            let percent = percent.map(|percent| format!("{percent:.0}%"));
            table.row([
                session.session_id.clone(),
                session.status.to_string(),
                session.current_step.clone().unwrap_or_default(),
                percent.unwrap_or_else(|| "–".to_owned()),
                page.age(&session.started_at),
                page.age(&session.updated_at),
            ]);
        }
        page.table(&table);
        page.newest(self.sessions.len(), self.total);
    }
}

impl Report for SessionReport {
    fn page(&self, page: &mut Page) {
        let session = &self.session;
        page.styled(&[(Style::Strong, &session.session_id)]);
        page.document(&self.record, &[&session.session_id]);
        if self.logs.is_empty() {
            return;
        }
        page.line("");
        let mut table = Table::new(">Age|~Step|Action|Tool|Status|>Took|~What");
        for line in &self.logs {
            table.row(action(line, page.age(&line.created_at)));
        }
        page.table(&table);
        if self.has_older_logs {
            let shown = plural(self.logs.len() as u64, "action");
            page.dim(format!("the newest {shown}"));
        }
    }
}

/// Returns the cells of an action.
fn action(line: &ExecutionLog, age: String) -> [String; 7] {
    let unknown = || "–".to_owned();
    let took = line.execution_time_ms.and_then(|ms| u32::try_from(ms).ok());
    // The most informative text comes first: error, reason, output, input.
    let data = [&line.output_data, &line.input_data].into_iter().flatten();
    let texts = [&line.error_message, &line.reasoning].into_iter().flatten();
    let mut texts = texts.cloned().chain(data.map(|data| data.get().to_owned()));
    [
        age,
        line.step_name.clone(),
        line.action_type.to_string(),
        line.tool_name.clone().unwrap_or_else(unknown),
        line.status.to_string(),
        took.map_or_else(unknown, |ms| latency(ms.into())),
        texts.next().unwrap_or_default(),
    ]
}
