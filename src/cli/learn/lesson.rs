//! `lesson`, `hint` and `record`: lessons in the words of an agent or a person; and for agents without
//! hooks, hints and the recording of failures and recoveries.
//!
//! An agent's lesson is checked against the calls of its session, and a refusal says what would pass.
//! A person needs no session: at a terminal their word counts, through a pipe it waits for approval.

use std::io::Read as _;

use clap::{Args, Subcommand};

use crate::cli::context::{Context, random};
use crate::cli::memory::list::{ListArgs, list};
use crate::cli::output::{Done, Page, Report, Style, clean};
use crate::lessons::telling::hint::render_hints;
use crate::lessons::{
    Asking, HintOptions, HintReport, HintService, LessonArgs, PROMPT, RecordReport, StoredLesson,
};
use crate::model::error::UserError;
use crate::model::{Kind, LessonScope, Trust};
use crate::rules::forbids_advice;
use crate::serve::arguments::{HINTS, HINTS_OF_RECORDED, SESSION};
use crate::store::Project;
use crate::store::workspace::Error;

/// Add and list lessons: what sessions found out, a line each
///
/// ```console
/// $ memctl lesson add 'Build with `make web`' --command 'make web'
/// $ memctl lesson list
/// ```
#[derive(Debug, Subcommand)]
pub(crate) enum LessonCommand {
    Add(Box<LessonAddArgs>),
    /// List the lessons of this memory, as `memctl list lessons`
    ///
    /// ```console
    /// $ memctl lesson list
    /// $ memctl lesson list --json
    /// ```
    List,
}

/// Add a lesson: one imperative line with the exact command, and when to tell it
///
/// A lesson of an agent is checked against the calls of its session before it is stored: its commands
/// ran there, its errors were seen there or stand with a command, and it holds no secret and nothing of
/// the person. It is observed until a person approves it. A person needs no session; what they add at a
/// terminal is approved.
///
/// ```console
/// $ memctl lesson add '{"lesson": "Build with `make web`", "commands": ["make web"]}'
/// $ memctl lesson add 'Build with `make web`' --command 'make web' --error 'no rule'
/// $ memctl lesson add --same PROC-003 'Build with `make web`'
/// ```
#[derive(Debug, Args)]
pub(crate) struct LessonAddArgs {
    /// One imperative line of at most 240 characters; or JSON with the fields of the tool `lesson`; `-`
    /// reads it from stdin
    #[arg(value_name = "LESSON")]
    given: Option<String>,
    /// Phrase of an error by which it is told
    #[arg(long = "error", value_name = "PHRASE")]
    errors: Vec<String>,
    /// Beginning of a command by which it is told; `<…>` stands for anything
    #[arg(long = "command", value_name = "COMMAND")]
    commands: Vec<String>,
    /// Phrase that rules it out
    #[arg(long, value_name = "PHRASE")]
    not: Vec<String>,
    /// True of a tool in any project, not only here: `memory promote` then takes it into your other projects
    #[arg(long)]
    everywhere: bool,
    /// File of the project that it was read from
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<String>,
    /// Id of a lesson that says the same
    #[arg(long, value_name = "ID")]
    same: Option<String>,
    /// Id of a lesson that it replaces
    #[arg(long, value_name = "ID", conflicts_with = "same")]
    replaces: Option<String>,
    /// Session of an agent, as the question named it; the newest by default
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

pub(crate) fn lesson(context: &Context, command: LessonCommand) -> Done {
    match command {
        LessonCommand::Add(args) => Ok(Box::new(add(context, *args)?)),
        LessonCommand::List => list(context, &ListArgs::of(Kind::Procedure)),
    }
}

fn add(context: &Context, args: LessonAddArgs) -> Result<StoredLesson, UserError> {
    // The form that an agent is told to answer in.
    let is_form = args
        .given
        .as_deref()
        .is_some_and(|words| words.trim_start().starts_with(['{', '-']));
    let given = given(context, args)?;
    let workspace = context.workspace(None)?;
    let person = context.environment.person();
    let asking = Asking {
        records: workspace.records(),
        words: PROMPT,
        person: &person,
        root: Some(context.project()),
    };
    let is_agent = context.environment.is_of_agent();
    let of_person = |trust| {
        let project = context.project_name().unwrap_or_default();
        asking.add_of_person(&project, trust, &given)
    };
    let is_at_terminal = context.is_interactive();
    let stored = if given.session.is_none() && !is_agent && (is_at_terminal || !is_form) {
        // Through a pipe nobody is seen who could approve it.
        of_person(if is_at_terminal {
            Trust::User
        } else {
            Trust::Observed
        })
    } else {
        let own = context.environment.var("CLAUDE_CODE_SESSION_ID");
        let own = own.map(|id| format!("claude-code/{id}"));
        match asking.session(given.session.as_deref(), own.as_deref()) {
            Some(session) => asking.add(&session, &given),
            None if !is_agent => of_person(Trust::Observed),
            None => {
                return Err(UserError::input(
                    "no session of an agent is known here, and its calls are what a lesson is checked against",
                    "memctl setup, then name the session: memctl lesson add --session claude-code/ID …",
                ));
            }
        }
    };
    Ok(stored?)
}

fn given(context: &Context, args: LessonAddArgs) -> Result<LessonArgs, UserError> {
    let text = context.text(&args.given.unwrap_or_default())?;
    let mut given = LessonArgs::default();
    if text.trim_start().starts_with('{') {
        given = serde_json::from_str(&text).map_err(|error| {
            UserError::input(
                format!("the lesson cannot be read: {error}"),
                "give {\"lesson\": \"…\", \"commands\": [\"…\"], \"errors\": [\"…\"], \"not\": [], \"scope\": \"project\"}",
            )
        })?;
    } else {
        needs_all_words(&text)?;
        given.lesson = text;
    }
    given.errors.extend(args.errors);
    given.commands.extend(args.commands);
    given.not.extend(args.not);
    given.files.extend(args.files);
    if args.everywhere {
        given.scope = LessonScope::Everywhere;
    }
    given.same = args.same.or(given.same);
    given.replaces = args.replaces.or(given.replaces);
    given.session = args.session.or(given.session);
    Ok(given)
}

/// Fails for a line that lacks words: between double quotes a shell runs what stands between
/// backquotes, and puts in what that printed, often nothing.
fn needs_all_words(line: &str) -> Result<(), UserError> {
    let is_gap = |(at, _): (usize, &str)| line[..at].ends_with(char::is_alphanumeric);
    let is_whole = !line.match_indices("  ").any(is_gap) && !line.ends_with(' ');
    if is_whole {
        return Ok(());
    }
    Err(UserError::input(
        format!("words are missing in the lesson: `{}`", line.escape_debug()),
        "single quotes keep backquotes from the shell: memctl lesson add 'Build with `make web`'",
    ))
}

/// Says how a record that holds everywhere reaches other projects: what is stored here is told here.
pub(crate) fn in_other_projects(id: &str) -> String {
    format!("it is told in this project; in your others, too: memctl memory promote {id}")
}

impl Report for StoredLesson {
    fn page(&self, page: &mut Page) {
        let what = if self.added { "stored" } else { "seen again" };
        page.styled(&[
            (Style::Strong, &self.id),
            (
                Style::Plain,
                &format!(" {what}, {}: {}", self.trust, self.lesson),
            ),
        ]);
        if let Some(old) = &self.replaced {
            page.line(format!("it replaces {old}"));
        }
        if self.applies.scope == LessonScope::Everywhere {
            page.dim(in_other_projects(&self.id));
        }
        for near in &self.near {
            page.styled(&[
                (Style::Dim, "near: "),
                (Style::Strong, &near.id),
                (Style::Plain, &format!(" {}", near.lesson)),
            ]);
        }
        if let Some(near) = self.near.first() {
            let id = &near.id;
            page.dim(format!("if one says the same: add it again with --same {id}; if it is outdated: --replaces {id}"));
        }
    }
}

/// Maximum length of a call's output: its last 256 KiB, where the error is.
const MAX_OUTPUT: usize = 256 << 10;

/// Show lessons for an error
///
/// Prints lessons whose error phrase is in the output, then what worked at the same failure here.
/// What an agent recorded for a similar error follows. Without `--session` nothing is recorded.
///
/// ```console
/// $ memctl hint --error "KeyError: 'mechanism'" --command "python3 report.py"
/// $ make 2>&1 | memctl hint --error -
/// ```
#[derive(Debug, Args)]
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
    let config = context.config()?;
    let store = config.with_user_store(context.store(&config)?, &context.environment);
    let project = context.git_project();
    let report = hint_service(context, &store, project.as_ref()).hint(&HintOptions {
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
    let mut tail: Vec<u8> = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        let read = input.read(&mut chunk).map_err(unreadable)?;
        if read == 0 {
            break;
        }
        tail.extend_from_slice(&chunk[..read]);
        if tail.len() > 2 * MAX_OUTPUT {
            tail.drain(..tail.len() - MAX_OUTPUT);
        }
    }
    let start = tail.len().saturating_sub(MAX_OUTPUT);
    Ok(String::from_utf8_lossy(&tail[start..]).into_owned())
}

/// Record failures and recoveries, for agents without hooks
///
/// ```console
/// $ memctl record failure --code "pip install x" --error "externally-managed-environment"
/// $ memctl record success --code "pip install --user x" --output "Successfully installed x"
/// ```
#[derive(Debug, Subcommand)]
pub(crate) enum RecordCommand {
    Failure(FailureArgs),
    Success(SuccessArgs),
}

/// Record code that failed, and show what worked before
///
/// Use the same `--session` for a failure and its success, so that they become a pattern.
///
/// ```console
/// $ memctl record failure --code "pip install x" --error "externally-managed-environment"
/// $ make 2>&1 | memctl record failure --code make --error -
/// ```
#[derive(Debug, Args)]
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
///
/// ```console
/// $ memctl record success --code "pip install --user x" --output "Successfully installed x"
/// $ make -j1 | memctl record success --code "make -j1" --output -
/// ```
#[derive(Debug, Args)]
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
    let config = context.config()?;
    let store = config.with_user_store(context.store(&config)?, &context.environment);
    let project = context.git_project();
    let hint_service = hint_service(context, &store, project.as_ref());
    match command {
        RecordCommand::Failure(args) => {
            Context::one_from_input([
                ("--code", Some(&args.code)),
                ("--error", Some(&args.error)),
            ])?;
            let failure = HintOptions {
                command: Some(context.text(&args.code)?),
                error: context.text(&args.error)?,
                session: Some(args.session),
                max_hints: args.limit as usize,
                ..HintOptions::default()
            };
            Ok(Box::new(hint_service.record_failure(&failure)?))
        }
        RecordCommand::Success(args) => {
            Context::one_from_input([
                ("--code", Some(&args.code)),
                ("--output", Some(&args.output)),
            ])?;
            let (code, output) = (context.text(&args.code)?, context.text(&args.output)?);
            let report = hint_service.record_success(&args.session, &code, &output)?;
            Ok(Box::new(report))
        }
    }
}

fn hint_service<'a>(
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
            let (of, id, why) = (hint.evidence, &hint.id, &hint.why);
            let (shown, helped, harmed) = (of.shown, of.helped, of.harmed);
            page.dim(format!(
                "{id}: {why}, told {shown}, helped {helped}, harmed {harmed}"
            ));
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

impl Report for RecordReport {}
