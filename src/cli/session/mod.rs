//! `session …`: what an agent does, from start to end. How it looks is in `pages`, how it is followed in
//! `follow`.

mod follow;
mod pages;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde_json::value::RawValue;

use crate::engine::{NewAction, NewSession, SessionChange};
use crate::model::{ActionType, LogStatus, SessionState};

use super::context::Context;
use super::error::CliError;
use super::output::Report;

/// What an agent does, from start to end
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  memctl session start --step research\n  \
    memctl session progress latest --status analyzing_trends --completed research\n  \
    memctl session end latest")]
pub(super) enum SessionCommand {
    Start(StartArgs),
    Log(LogArgs),
    Progress(ProgressArgs),
    End(EndArgs),
    List(ListArgs),
    Show(ShowArgs),
}

impl SessionCommand {
    /// Whether it goes on until it is interrupted.
    pub(super) const fn follows(&self) -> bool {
        match self {
            Self::List(args) => args.follow,
            Self::Show(args) => args.follow,
            _ => false,
        }
    }
}

pub(super) fn session(context: &Context, command: SessionCommand) -> Result<u8, CliError> {
    let report: Box<dyn Report> = match command {
        SessionCommand::Start(args) => start(context, args)?,
        SessionCommand::Log(args) => log(context, args)?,
        SessionCommand::Progress(args) => progress(context, args)?,
        SessionCommand::End(args) => end(context, args)?,
        SessionCommand::List(args) if args.follow => return follow::list(context, &args),
        SessionCommand::List(args) => pages::list(context, &args)?,
        SessionCommand::Show(args) if args.follow => return follow::show(context, &args),
        SessionCommand::Show(args) => pages::show(context, &args)?,
    };
    context.printer.show(report.as_ref())
}

/// Begin a session
///
/// Prints its id. A program that runs skills in it sets the variable `MEMCTL_SESSION` to that, and what
/// `run` and `learn` do stands in its log.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl session start\n  \
    memctl session start --total-steps 3 --step research --data '{\"campaign\": \"spring\"}'")]
pub(super) struct StartArgs {
    /// Whatever is to be kept with it: a JSON object; `-` reads standard input
    #[arg(long, value_name = "JSON|-")]
    data: Option<String>,
    /// How many steps there will be
    #[arg(long, value_name = "N", default_value_t = crate::model::TOTAL_STEPS, allow_negative_numbers = true)]
    total_steps: u64,
    /// What it does first
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
}

fn start(context: &Context, args: StartArgs) -> Result<Box<dyn Report>, CliError> {
    let data = json(context, "--data", args.data.as_deref())?;
    let session = context.engine(None)?.start_session(NewSession {
        data,
        total_steps: Some(args.total_steps),
        step: args.step,
    })?;
    Ok(Box::new(pages::Changed {
        done: "started",
        session,
    }))
}

/// Write down what was done in a session
///
/// One line of `execution_logs.jsonl`, which is never changed again. Secrets are left out.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  memctl session log latest --step research --action tool_call --status success \\\n    \
    --tool web_search --input '{\"query\": \"hooks\"}' --output '{\"found\": 12}' --ms 840 \\\n    \
    --reasoning \"the brief names no competitor\" --confidence 0.8"
)]
pub(super) struct LogArgs {
    /// The session: its id, the beginning of one, or `latest`
    session: String,
    /// The step that it was part of
    #[arg(long, value_name = "NAME")]
    step: String,
    /// What kind of action it was
    #[arg(long, value_name = "TYPE", value_parser = PossibleValuesParser::new(ActionType::NAMES))]
    action: String,
    /// How it ended, or that it has not
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(LogStatus::NAMES))]
    status: String,
    /// The tool that acted
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// What went in, as JSON; `-` reads standard input
    #[arg(long, value_name = "JSON|-")]
    input: Option<String>,
    /// What came out, as JSON; `-` reads standard input
    #[arg(long, value_name = "JSON|-")]
    output: Option<String>,
    /// Why it was done
    #[arg(long, value_name = "TEXT")]
    reasoning: Option<String>,
    /// How sure the agent was, from 0 to 1
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    confidence: Option<f64>,
    /// How long it took, in milliseconds
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    ms: Option<u64>,
    /// What went wrong
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

fn log(context: &Context, args: LogArgs) -> Result<Box<dyn Report>, CliError> {
    if args.input.as_deref() == Some("-") && args.output.as_deref() == Some("-") {
        return Err(CliError::usage(
            "`--input` and `--output` cannot both be standard input",
            "give one of them as JSON",
        ));
    }
    let action = NewAction {
        step: args.step,
        tool: args.tool,
        action: ActionType::from(args.action.as_str()),
        status: LogStatus::from(args.status.as_str()),
        input: json(context, "--input", args.input.as_deref())?,
        output: json(context, "--output", args.output.as_deref())?,
        reasoning: args.reasoning,
        confidence: args.confidence,
        took_ms: args.ms,
        error: args.error,
    };
    let report = context.engine(None)?.log_action(&args.session, action)?;
    Ok(Box::new(report))
}

/// Move a session on
///
/// States go forward in the order in which they are listed below, and may be skipped. A person who does
/// not approve may send a session from `awaiting_approval` back to `generating_concepts` or
/// `generating_scripts`. Steps that are done raise the percentage; it falls only when a session is sent
/// back.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl session progress latest --status analyzing_trends --completed research\n  \
    memctl session progress latest --step \"cutting scenes\" --percent 70"
)]
pub(super) struct ProgressArgs {
    /// The session: its id, the beginning of one, or `latest`
    session: String,
    /// Its state
    #[arg(long, value_name = "STATE", value_parser = states(&SessionState::NAMES))]
    status: Option<SessionState>,
    /// What it is doing now
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
    /// How far it is, from 0 to 100
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    percent: Option<i64>,
    /// A step that is done; may be given more than once
    #[arg(long, value_name = "STEP")]
    completed: Vec<String>,
    /// Fields to set in what is kept with it: a JSON object; `-` reads standard input
    #[arg(long, value_name = "JSON|-")]
    data: Option<String>,
    /// What went wrong, for the state `error`
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

fn progress(context: &Context, args: ProgressArgs) -> Result<Box<dyn Report>, CliError> {
    let change = SessionChange {
        status: args.status,
        step: args.step,
        percent: args.percent,
        completed: args.completed,
        data: json(context, "--data", args.data.as_deref())?,
        error: args.error,
    };
    if change.is_empty() {
        let example = format!("memctl session progress {} --percent 50", args.session);
        return Err(CliError::usage("there is nothing to change", example));
    }
    let session = context
        .engine(None)?
        .change_session(&args.session, change)?;
    Ok(Box::new(pages::Changed {
        done: "moved on",
        session,
    }))
}

/// End a session
///
/// It stays as it is from then on; only its log may still get lines.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl session end latest\n  \
    memctl session end latest --status error --error \"the video service answered 503\"")]
pub(super) struct EndArgs {
    /// The session: its id, the beginning of one, or `latest`
    session: String,
    /// How it ended: `error` where `--error` is given, else `completed`
    #[arg(long, value_name = "STATE", value_parser = states(&["completed", "error", "cancelled"]))]
    status: Option<SessionState>,
    /// What went wrong
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

fn end(context: &Context, args: EndArgs) -> Result<Box<dyn Report>, CliError> {
    let meant = match args.error {
        Some(_) => SessionState::Error,
        None => SessionState::Completed,
    };
    let change = SessionChange {
        status: Some(args.status.unwrap_or(meant)),
        error: args.error,
        ..SessionChange::default()
    };
    let session = context
        .engine(None)?
        .change_session(&args.session, change)?;
    Ok(Box::new(pages::Changed {
        done: "ended",
        session,
    }))
}

/// List the newest sessions
///
/// With `--follow` on a terminal, a table that redraws in place; piped, a line whenever a session has
/// changed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl session list --status awaiting_approval\n  \
    memctl session list --follow"
)]
pub(super) struct ListArgs {
    /// Sessions in this state only
    #[arg(long, value_name = "STATE", value_parser = states(&SessionState::NAMES))]
    status: Option<SessionState>,
    /// How many at most
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    limit: u32,
    /// Go on until interrupted
    #[arg(long, short)]
    follow: bool,
}

/// Show a session and what was done in it
///
/// With `--follow` until the session ends: on a terminal a page that redraws in place; piped, a line
/// for every action and every change.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl session show latest\n  \
    memctl session show latest --follow --json | jq .log.tool_name")]
pub(super) struct ShowArgs {
    /// The session: its id, the beginning of one, or `latest`
    session: String,
    /// How many actions at most, the newest
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    limit: u32,
    /// Go on until it has ended, or until interrupted
    #[arg(long, short)]
    follow: bool,
}

/// One of these states.
fn states(names: &'static [&'static str]) -> impl TypedValueParser<Value = SessionState> {
    PossibleValuesParser::new(names).map(|name| name.parse().unwrap_or_default())
}

/// JSON that was given as it is, or as `-` for standard input.
fn json(
    context: &Context,
    flag: &str,
    given: Option<&str>,
) -> Result<Option<Box<RawValue>>, CliError> {
    let Some(given) = given else {
        return Ok(None);
    };
    let text = context.text(given)?;
    match serde_json::from_str(text.trim()) {
        Ok(value) => Ok(Some(value)),
        Err(error) => Err(CliError::usage(
            format!("`{flag}` is not JSON: {error}"),
            format!(
                "give JSON, as in `{flag} '{{\"query\": \"…\"}}'`; texts stand in quotation marks"
            ),
        )),
    }
}
