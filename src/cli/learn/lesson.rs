//! `lesson add` and `lesson list`: lessons that an agent or a person words.
//!
//! An agent's lesson is checked against the calls of its session, and a refusal says what would pass.
//! A person needs no session: at a terminal their word counts, through a pipe it waits for approval.

use std::io::Read as _;

use clap::{Args, Subcommand};

use crate::cli::arguments::person;
use crate::cli::context::Context;
use crate::cli::memory::list::{ListArgs, list};
use crate::cli::output::{Done, Page, Report, Style};
use crate::lessons::{Asking, LessonArgs, PROMPT, Refusal, StoredLesson};
use crate::model::error::UserError;
use crate::model::{Kind, LessonScope, Trust};

/// Maximum size of a lesson on standard input.
const LARGEST: u64 = 64 << 10;

/// Add and list lessons: what sessions found out, a line each
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  memctl lesson add 'Build with `make web`' --command 'make web'\n  memctl lesson list"
)]
pub(crate) enum LessonCommand {
    Add(Box<LessonAddArgs>),
    /// List the lessons of this memory, as `memctl list lessons`
    #[command(after_help = "Examples:\n  memctl lesson list\n  memctl lesson list --json")]
    List,
}

/// Add a lesson: one imperative line with the exact command, and when to tell it
///
/// A lesson of an agent is checked against the calls of its session before it is stored: its commands
/// ran there, its errors were seen there or stand with a command, and it holds no secret and nothing of
/// the person. It is observed until a person approves it. A person needs no session; what they add at a
/// terminal is approved.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    memctl lesson add '{\"lesson\": \"Build with `make web`\", \"commands\": [\"make web\"]}'\n  \
    memctl lesson add 'Build with `make web`' --command 'make web' --error 'no rule'\n  \
    memctl lesson add --same PROC-003 'Build with `make web`'")]
pub(crate) struct LessonAddArgs {
    /// One imperative line of at most 240 characters; or JSON with the fields of the tool `lesson`; `-`
    /// reads it from stdin
    #[arg(value_name = "LESSON", conflicts_with = "lesson")]
    given: Option<String>,
    /// The line, as an option
    #[arg(long)]
    lesson: Option<String>,
    /// Phrase of an error by which it is told
    #[arg(long = "error", value_name = "PHRASE")]
    errors: Vec<String>,
    /// Beginning of a command by which it is told; `<…>` stands for anything
    #[arg(long = "command", value_name = "COMMAND")]
    commands: Vec<String>,
    /// Phrase that rules it out
    #[arg(long, value_name = "PHRASE")]
    not: Vec<String>,
    /// Reach
    #[arg(long, value_enum)]
    scope: Option<LessonScope>,
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
    let given = given(args)?;
    let workspace = context.workspace(None)?;
    let person = person(&context.environment);
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
    let stored = if given.session.is_none() && !is_agent && context.is_interactive() {
        of_person(Trust::User)
    } else {
        let own = context.environment.var("CLAUDE_CODE_SESSION_ID");
        let own = own.map(|id| format!("claude-code/{id}"));
        match asking.session(given.session.as_deref(), own.as_deref()) {
            Some(session) => asking.add(&session, &given),
            // A person, or a script of theirs: nobody is seen who could approve it.
            None if !is_agent => of_person(Trust::Observed),
            None => return Err(no_session()),
        }
    };
    stored?.map_err(|refusal| refused(&refusal))
}

fn given(args: LessonAddArgs) -> Result<LessonArgs, UserError> {
    let mut text = args.given.or(args.lesson).unwrap_or_default();
    if text == "-" {
        text.clear();
        std::io::stdin()
            .lock()
            .take(LARGEST)
            .read_to_string(&mut text)?;
    }
    let mut given = if text.trim_start().starts_with('{') {
        read(&text)?
    } else {
        LessonArgs {
            lesson: text,
            ..LessonArgs::default()
        }
    };
    given.errors.extend(args.errors);
    given.commands.extend(args.commands);
    given.not.extend(args.not);
    given.files.extend(args.files);
    given.scope = args.scope.unwrap_or(given.scope);
    given.same = args.same.or(given.same);
    given.replaces = args.replaces.or(given.replaces);
    given.session = args.session.or(given.session);
    Ok(given)
}

fn read(json: &str) -> Result<LessonArgs, UserError> {
    serde_json::from_str(json).map_err(|error| {
        UserError::input(
            format!("the lesson cannot be read: {error}"),
            "give {\"lesson\": \"…\", \"commands\": [\"…\"], \"errors\": [\"…\"], \"not\": [], \"scope\": \"project\"}",
        )
    })
}

fn no_session() -> UserError {
    UserError::input(
        "no session of an agent is known here, and its calls are what a lesson is checked against",
        "memctl setup, then name the session: memctl lesson add --session claude-code/ID …",
    )
}

/// Converts a refusal: the message has the field and the reason, the hint what would pass.
pub(crate) fn refused(refusal: &Refusal) -> UserError {
    UserError::input(
        format!("`{}`: {}", refusal.field, refusal.reason),
        refusal.passes.clone(),
    )
}

impl Report for StoredLesson {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
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
