//! `hint` and `record`: hints for failures, and recording of failures and recoveries.

use std::io::Read as _;

use clap::{Args, Subcommand};

use crate::cli::context::{Context, random};
use crate::cli::output::{Done, Page, Report, clean};
use crate::lessons::telling::hint::render_hints;
use crate::lessons::{HintOptions, HintReport, HintService, RecordReport, Success};
use crate::model::Evidence;
use crate::model::error::UserError;
use crate::rules::forbids_advice;
use crate::serve::arguments::{HINTS, HINTS_OF_RECORDED, SESSION};
use crate::store::Project;
use crate::store::workspace::Error;

/// Maximum length of a call's output: its last 256 KiB, where the error is.
const MAX_OUTPUT: usize = 256 << 10;

/// Show lessons for an error
///
/// Prints lessons whose error phrase is in the output, then what worked at the same failure here.
/// What an agent recorded for a similar error follows. Without `--session` only the retrieval is
/// counted.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl hint --error \"KeyError: 'mechanism'\" --command \"python3 report.py\"\n  \
        make 2>&1 | memctl hint --error -"
)]
pub(crate) struct HintArgs {
    /// Output of the failing call; `-` reads standard input
    #[arg(long, value_name = "TEXT|-")]
    error: String,
    /// Tool that failed, by its name in the agent host, e.g. `Bash`
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Command or code that failed
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    command: Option<String>,
    /// Session that records the failure, and does not repeat ignored hints
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Maximum number of hints
    #[arg(short = 'n', long, default_value_t = HINTS.usual, value_parser = clap::value_parser!(u32).range(HINTS.range()), value_name = "N")]
    limit: u32,
}

pub(crate) fn hint(context: &Context, args: HintArgs) -> Done {
    if let Some(off) = &context.off {
        // `hint` does not fail while memory is off: it prints the reason and no hints.
        context.printer.note(&off.to_string());
        return Ok(Box::new(HintReport::default()));
    }
    let config = context.config(&[])?;
    let store = config.with_user_store(context.store(&config)?, &context.environment);
    let project = context.git_project();
    let report = adviser(context, &store, project.as_ref()).hint(&HintOptions {
        error: output_of_call(&args.error)?,
        tool: args.tool,
        command: args.command,
        session: args.session,
        max_hints: args.limit as usize,
    })?;
    Ok(Box::new(report))
}

/// Returns the output of a call as given, or for `-` the end of standard input. Bytes that are no
/// text are replaced: a program may print anything before it fails.
fn output_of_call(given: &str) -> Result<String, UserError> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let unreadable = |source| Error::Unreadable {
        path: given.into(),
        source,
    };
    let mut input = std::io::stdin().lock();
    let mut kept: Vec<u8> = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        let read = input.read(&mut chunk).map_err(unreadable)?;
        if read == 0 {
            break;
        }
        kept.extend_from_slice(&chunk[..read]);
        if kept.len() > 2 * MAX_OUTPUT {
            kept.drain(..kept.len() - MAX_OUTPUT);
        }
    }
    let start = kept.len().saturating_sub(MAX_OUTPUT);
    Ok(String::from_utf8_lossy(&kept[start..]).into_owned())
}

/// Record failures and recoveries, for agents without hooks
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  memctl record failure --code \"pip install x\" --error \"externally-managed-environment\"\n  \
        memctl record success --code \"pip install --user x\" --output \"Successfully installed x\""
)]
pub(crate) enum RecordCommand {
    Failure(FailureArgs),
    Success(SuccessArgs),
}

/// Record code that failed, and show what worked before
///
/// Use the same `--session` for a failure and its success, so that they become a pattern.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl record failure --code \"pip install x\" --error \"externally-managed-environment\"\n  \
        make 2>&1 | memctl record failure --code make --error -"
)]
pub(crate) struct FailureArgs {
    /// Code or command; `-` reads standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    code: String,
    /// Error output; `-` reads standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    error: String,
    /// Session id
    #[arg(long, default_value = SESSION, value_name = "ID")]
    session: String,
    /// Maximum number of hints
    #[arg(short = 'n', long, default_value_t = HINTS_OF_RECORDED.usual, value_parser = clap::value_parser!(u32).range(HINTS_OF_RECORDED.range()), value_name = "N")]
    limit: u32,
}

/// Record code that works; with the failure before it, it becomes a pattern
///
/// The newest failure of the same `--session` is the one that it fixes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl record success --code \"pip install --user x\" --output \"Successfully installed x\"\n  \
        make -j1 | memctl record success --code \"make -j1\" --output -"
)]
pub(crate) struct SuccessArgs {
    /// Code or command; `-` reads standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    code: String,
    /// Output of the code; `-` reads standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    output: String,
    /// Session id
    #[arg(long, default_value = SESSION, value_name = "ID")]
    session: String,
}

pub(crate) fn record(context: &Context, command: RecordCommand) -> Done {
    let config = context.config(&[])?;
    let store = config.with_user_store(context.store(&config)?, &context.environment);
    let project = context.git_project();
    let adviser = adviser(context, &store, project.as_ref());
    match command {
        RecordCommand::Failure(args) => {
            one_from_input(&args.code, &args.error)?;
            let failure = HintOptions {
                command: Some(context.text(&args.code)?),
                error: context.text(&args.error)?,
                session: Some(args.session),
                max_hints: args.limit as usize,
                ..HintOptions::default()
            };
            Ok(Box::new(adviser.record_failure(&failure)?))
        }
        RecordCommand::Success(args) => {
            one_from_input(&args.code, &args.output)?;
            let success = Success {
                code: context.text(&args.code)?,
                output: context.text(&args.output)?,
                session: args.session,
            };
            Ok(Box::new(adviser.record_success(&success)?))
        }
    }
}

/// Fails if both texts come from standard input, which can be read only once.
fn one_from_input(a: &str, b: &str) -> Result<(), UserError> {
    if a == "-" && b == "-" {
        return Err(UserError::usage(
            "only one option can read standard input",
            "pass the other text as an argument",
        ));
    }
    Ok(())
}

fn adviser<'a>(
    context: &'a Context,
    store: &'a crate::store::Scoped,
    project: Option<&'a Project>,
) -> HintService<'a> {
    HintService {
        store,
        here: context.here(project),
        now: context.environment.now,
        random,
        forbids: forbids_advice,
    }
}

impl Report for HintReport {
    fn page(&self, page: &mut Page) {
        if !self.hints.is_empty() {
            page.verbatim(&clean(&render_hints(&self.hints)));
            page.line("");
        }
        for hint in &self.hints {
            let mut evidence = format!("{}: {}", hint.id, hint.why);
            let Evidence {
                shown,
                helped,
                harmed,
            } = hint.evidence;
            let counts = format!(", told {shown}, helped {helped}, harmed {harmed}");
            evidence.push_str(&counts);
            page.dim(&evidence);
        }
        self.pitfalls
            .iter()
            .for_each(|rule| page.warn("pitfall: ", rule));
        if !self.repeated.is_empty() {
            page.line(self.repeated.trim_end());
        } else if self.hints.is_empty() && self.pitfalls.is_empty() {
            page.line("No hints for this error.");
        }
    }
}

impl Report for RecordReport {
    fn page(&self, page: &mut Page) {
        let lines = [
            ("learned ", &self.learned),
            ("seen again ", &self.merged),
            ("helped ", &self.helped),
        ];
        for (label, ids) in lines {
            for id in ids {
                page.good(label, id);
            }
        }
        if let Some(reason) = self.not_learned {
            page.line(format!("Nothing was learned: {reason}."));
        }
    }
}
