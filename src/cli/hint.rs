//! `hint` and `record`: what worked before when something fails, and keeping what works now.

use clap::{Args, Subcommand};

use crate::engine::{Adviser, HintOptions, HintReport, RecordReport, Success};
use crate::learn::hint::render_hints;

use super::context::{Context, random};
use super::error::CliError;
use super::output::{Page, Report, Style, clean};
use crate::config::Config;

/// The session of a caller that names none.
const SESSION: &str = "default";

/// Say what worked before when this error came
///
/// Finds by the error itself first, then by likeness; prints nothing that does not fit. Without
/// `--session` nothing is written.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl hint --error \"KeyError: 'mechanism'\" --command \"python3 report.py\"\n  \
        make 2>&1 | memctl hint --error -"
)]
pub(super) struct HintArgs {
    /// What the failing call printed; `-` reads standard input
    #[arg(long, value_name = "TEXT|-")]
    error: String,
    /// The tool that failed, as its host names it, e.g. `Bash`
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// The command or code that failed
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    command: Option<String>,
    /// The session: notes the failure there, and shows no hint twice that was not taken up
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// How many hints at most
    #[arg(short = 'n', long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20), value_name = "N")]
    limit: u32,
}

pub(super) fn hint(context: &Context, args: HintArgs) -> Result<Box<dyn Report>, CliError> {
    if let Some(off) = &context.off {
        // Who asks for help is not told off: there is none, and this is why.
        context.printer.note(&off.to_string());
        return Ok(Box::new(HintReport::default()));
    }
    let config = context.config(&[])?;
    let store = context.store(&config)?;
    let report = adviser(context, &config, &store)?.hint(&HintOptions {
        error: context.text(&args.error)?,
        tool: args.tool,
        command: args.command,
        session: args.session,
        max_hints: args.limit as usize,
    })?;
    Ok(Box::new(report))
}

/// Record what failed and what worked, for agents without hooks
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Example:\n  memctl record failure --code \"pip install x\" --error \"externally-managed-environment\"\n  \
        memctl record success --code \"pip install --user x\" --output \"Successfully installed x\""
)]
pub(super) enum RecordCommand {
    Failure(FailureArgs),
    Success(SuccessArgs),
}

/// Record that code failed, and say what worked before
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  memctl record failure --code \"pip install x\" --error \"externally-managed-environment\""
)]
pub(super) struct FailureArgs {
    /// The code or command; `-` reads standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    code: String,
    /// What it said; `-` reads standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    error: String,
    /// The session
    #[arg(long, default_value = SESSION, value_name = "ID")]
    session: String,
    /// How many hints at most
    #[arg(short = 'n', long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20), value_name = "N")]
    limit: u32,
}

/// Record that code works; with the failure before it, it becomes a fix
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  memctl record success --code \"pip install --user x\" --output \"Successfully installed x\""
)]
pub(super) struct SuccessArgs {
    /// The code or command; `-` reads standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    code: String,
    /// What it printed; `-` reads standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    output: String,
    /// The session
    #[arg(long, default_value = SESSION, value_name = "ID")]
    session: String,
}

pub(super) fn record(
    context: &Context,
    command: RecordCommand,
) -> Result<Box<dyn Report>, CliError> {
    let config = context.config(&[])?;
    let store = context.store(&config)?;
    let adviser = adviser(context, &config, &store)?;
    match command {
        RecordCommand::Failure(args) => {
            one_from_input(&args.code, &args.error)?;
            let (code, error) = (context.text(&args.code)?, context.text(&args.error)?);
            let limit = args.limit as usize;
            Ok(Box::new(
                adviser.record_failure(&code, &error, &args.session, limit)?,
            ))
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

/// Standard input can be read once.
fn one_from_input(a: &str, b: &str) -> Result<(), CliError> {
    if a == "-" && b == "-" {
        return Err(CliError::usage(
            "only one text can come from standard input",
            "give the other one as it is",
        ));
    }
    Ok(())
}

fn adviser<'a>(
    context: &Context,
    config: &Config,
    store: &'a crate::store::Scoped,
) -> Result<Adviser<'a>, CliError> {
    Ok(Adviser {
        store,
        now: context.environment.now,
        random,
        withhold: config.parsed("experiment.withhold")?,
    })
}

impl Report for HintReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        if !self.hints.is_empty() {
            page.verbatim(&clean(&render_hints(&self.hints)));
            page.line("");
        }
        for hint in &self.hints {
            let evidence = format!(
                "{}: {}, shown {}, helped {}, harmed {}",
                hint.id, hint.why, hint.evidence.shown, hint.evidence.helped, hint.evidence.harmed
            );
            page.styled(&[(Style::Dim, &evidence)]);
        }
        for rule in &self.pitfalls {
            page.styled(&[(Style::Warn, "pitfall: "), (Style::Plain, rule)]);
        }
        if !self.withheld.is_empty() {
            page.line("What is known about this is withheld at random (`experiment.withhold`).");
        } else if self.hints.is_empty() && self.pitfalls.is_empty() {
            page.line("Nothing is known about this.");
        }
    }
}

impl Report for RecordReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        let lines = [
            ("learned ", &self.learned),
            ("seen again ", &self.merged),
            ("helped ", &self.helped),
        ];
        for (label, ids) in lines {
            for id in ids {
                page.styled(&[(Style::Good, label), (Style::Plain, id)]);
            }
        }
        if let Some(reason) = self.not_learned {
            page.line(format!("Nothing was learnt: {reason}."));
        }
    }
}
