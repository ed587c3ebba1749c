//! Command line: parses the arguments, calls a verb, and prints its report as text or JSON.
//!
//! One file per group of functions, each with its argument structs (their doc comments are the help),
//! its commands and their pages. Decisions about memory belong to the verbs.
//!
//! - `start`, `skills`, `learn`, `review`, `memory`, `share`, `care`: commands, by the groups of the
//!   help. `help`: the groups, pages and messages of the parser. `shell`, `schema`: for programs.
//! - `context`: the workspace that a command works on, and what the user gives. `connections`: its
//!   models, prompts and database. `database`: files, or the database of `DATABASE_URL`. `arguments`: values of
//!   options. `off`: the switch.
//! - `output`: pages, tables and JSON. `ask`: questions and prices.
//!   `ending`: interrupts, crashes and deadlines.

pub(crate) mod arguments;
pub(crate) mod ask;
pub(crate) mod care;
pub mod config;
pub(crate) mod connections;
pub(crate) mod context;
pub(crate) mod database;
pub(crate) mod ending;
pub(crate) mod help;
pub(crate) mod learn;
pub(crate) mod memory;
pub(crate) mod off;
pub(crate) mod output;
pub(crate) mod review;
pub(crate) mod schema;
pub(crate) mod session;
pub(crate) mod share;
pub(crate) mod shell;
pub(crate) mod skills;
pub(crate) mod start;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use memctl_files::named;
use memctl_files::process::{exit_at_interrupt, keep_file_size_limit_an_error};

use crate::cli::arguments::{Global, with_one_name};
use crate::cli::config::Environment;
use crate::cli::context::Context;
use crate::cli::help::grouped;
use crate::cli::output::{Printer, Report};
use crate::model::error::{Kind, UserError};

/// Memory for AI agents that learns from corrections and failed tool calls
///
/// Run a skill, correct a mistake, and the next run follows the correction. Everything is stored in
/// plain JSON files under `.agentura/`; no key, server or network is needed.
#[derive(Debug, Parser)]
#[command(
    name = "memctl",
    // Not the name of the file, which has an ending on Windows.
    bin_name = "memctl",
    version,
    propagate_version = true,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "Examples:\n  memctl setup\n  \
        memctl correct hr/resume-screen \"Keep the summary under 120 words.\""
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Setup(start::setup::SetupArgs),
    Init(start::init::InitArgs),
    Run(skills::run::RunArgs),
    Correct(skills::correct::CorrectArgs),
    Accept(skills::run::AcceptArgs),
    Reject(skills::run::RejectArgs),
    Test(skills::test::TestArgs),
    Watch(review::watch::WatchArgs),
    Hint(learn::hint::HintArgs),
    #[command(subcommand)]
    Record(learn::hint::RecordCommand),
    Hook(start::hook::HookArgs),
    #[command(subcommand)]
    Hooks(start::hooks::HooksCommand),
    Learn(learn::sessions::LearnArgs),
    #[command(subcommand)]
    Lesson(learn::lesson::LessonCommand),
    Stats(review::stats::StatsArgs),
    Statusline(start::statusline::StatuslineArgs),
    Review(review::ReviewArgs),
    Approve(review::approve::ApproveArgs),
    Why(review::why::WhyArgs),
    Undo(review::undo::UndoArgs),
    Search(memory::search::SearchArgs),
    List(memory::list::ListArgs),
    Show(memory::list::ShowArgs),
    Edit(memory::edit::EditArgs),
    Forget(memory::edit::ForgetArgs),
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    #[command(subcommand)]
    Session(session::SessionCommand),
    #[command(subcommand)]
    Remote(share::remote::RemoteCommand),
    Sync(share::sync::SyncArgs),
    Mcp(share::mcp::McpArgs),
    Serve(share::serve::ServeArgs),
    Token(share::serve::TokenArgs),
    #[command(subcommand)]
    Config(care::settings::ConfigCommand),
    Index(care::search::IndexArgs),
    #[command(subcommand)]
    Eval(care::search::EvalCommand),
    Trust(care::settings::TrustArgs),
    Doctor(care::doctor::DoctorArgs),
    MergeDriver(care::git::MergeDriverArgs),
    Schema(schema::SchemaArgs),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
    Help(help::HelpArgs),
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    ending::guarded(&arguments, is_hook_call(&arguments), || {
        run(arguments.clone(), Environment::of_process())
    })
}

/// Runs the program. A process may call it more than once.
pub fn run(arguments: impl IntoIterator<Item = OsString>, environment: Environment) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let plain = environment.var("NO_COLOR").is_some();
    let is_hook = is_hook_call(&arguments);
    let read_only = arguments.get(3).is_some_and(|a| a == "--read-only");
    if let [_, _, host] | [_, _, host, _] = &arguments[..]
        && is_hook
        && (arguments.len() == 3 || read_only)
    {
        // Fast path for hook events, without building the other commands.
        let host = host.to_string_lossy();
        let answer = start::hook::hook(&environment, &host, read_only, None);
        connections::share_lines();
        Printer::new(false, true, true).write(&answer.unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    if let [_, command] = &arguments[..]
        && command == "statusline"
    {
        // As fast, for the same reason.
        let line = start::statusline::statusline(&environment, None);
        Printer::new(false, true, true).write(&line.unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    let arguments = with_one_name(arguments);
    let parse = |command: clap::Command| {
        let matches = command.try_get_matches_from(&arguments)?;
        Ok((Cli::from_arg_matches(&matches)?, named(&matches)))
    };
    // Only the help needs the groups.
    let parsed = parse(Cli::command()).or_else(|error: clap::Error| match error.kind() {
        ErrorKind::DisplayVersion => Err(error),
        _ => parse(grouped(Cli::command(), false)),
    });
    let (cli, command) = match parsed {
        Ok(parsed) => parsed,
        // An agent host may stop its agent at any other exit code.
        Err(_) if is_hook => return ExitCode::SUCCESS,
        Err(error) => return help::refuse(&error, &arguments, plain),
    };
    let printer = Printer::new(
        cli.global.json,
        cli.global.quiet,
        plain || cli.global.no_color,
    )
    .at(environment.now);
    let context = Context::new(environment, &cli.global, printer.clone(), command);
    signals(matches!(cli.command, Command::Watch(_) | Command::Serve(_)));
    let code = match dispatch(&context, cli.command, &cli.global) {
        Ok(code) => code,
        Err(error) => {
            printer.error(&error);
            error.kind.code()
        }
    };
    connections::share_lines();
    ExitCode::from(written(&printer).unwrap_or(code))
}

/// Returns the exit code of a failed write to standard output; `None` if all was written.
fn written(printer: &Printer) -> Option<u8> {
    let error = printer.failure()?;
    printer.error(&error);
    Some(error.kind.code())
}

/// Returns the command without its arguments, which may hold secrets; keeps the skill.
fn named(matches: &ArgMatches) -> String {
    let mut words = Vec::new();
    let mut at = matches;
    while let Some((name, below)) = at.subcommand() {
        words.push(name.to_owned());
        at = below;
    }
    if let Ok(Some(skill)) = at.try_get_one::<String>("skill") {
        words.push(skill.clone());
    }
    words.join(" ")
}

impl Command {
    /// Returns `true` if the command works while memory is off: because it uses none, handles the
    /// case itself, or manages the data files. A command that is not listed here is refused, so
    /// that a new command cannot miss the check.
    const fn works_without_memory(&self) -> bool {
        match self {
            // Handle the case themselves.
            Self::Run(_)
            | Self::Hint(_)
            | Self::Hook(_)
            | Self::Statusline(_)
            | Self::Mcp(_)
            // Use no memory.
            | Self::Hooks(_)
            | Self::Remote(_)
            | Self::Token(_)
            | Self::Eval(_)
            | Self::Config(_)
            | Self::Trust(_)
            | Self::Schema(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Help(_)
            // Read the files as files; the store refuses their repairs.
            | Self::MergeDriver(_)
            | Self::Doctor(_) => true,
            Self::Memory(command) => command.works_without_memory(),
            _ => false,
        }
    }
}

fn dispatch(context: &Context, command: Command, global: &Global) -> Result<u8, UserError> {
    if let Some(off) = &context.off
        && !command.works_without_memory()
    {
        return Err(UserError::usage(off.to_string(), off.hint()));
    }
    if let Some(root) = &global.root
        && !matches!(
            command,
            Command::Setup(_)
                | Command::Init(_)
                | Command::Hook(_)
                | Command::Statusline(_)
                | Command::Mcp(_)
        )
        && !named::is_dir(&context.environment.absolute(root))
    {
        return Err(UserError::usage(
            format!("`{}` is not a directory", root.display()),
            format!("memctl init --root {}", root.display()),
        ));
    }
    let report: Box<dyn Report> = match command {
        Command::Setup(args) => start::setup::setup(context, global, &args)?,
        Command::Init(args) => start::init::init(context, &args)?,
        Command::Run(args) => skills::run::run(context, &args)?,
        Command::Correct(args) => skills::correct::correct(context, args)?,
        Command::Accept(args) => skills::run::accept(context, &args)?,
        Command::Reject(args) => skills::run::reject(context, args)?,
        Command::Test(args) => skills::test::test(context, &args)?,
        Command::Watch(args) => return review::watch::watch(context, &args),
        Command::Hint(args) => learn::hint::hint(context, args)?,
        Command::Record(command) => learn::hint::record(context, command)?,
        Command::Hook(args) => return Ok(answer_host(context, &args, global.root.as_deref())),
        Command::Hooks(command) => start::hooks::hooks(context, &command)?,
        Command::Lesson(command) => learn::lesson::lesson(context, command)?,
        Command::Learn(args) => learn::sessions::learn(context, &args)?,
        Command::Review(args) => return review::review(context, &args),
        Command::Stats(args) => review::stats::stats(context, &args)?,
        Command::Statusline(_) => {
            let line = start::statusline::statusline(&context.environment, global.root.as_deref());
            context.printer.write(&line.unwrap_or_default());
            return Ok(0);
        }
        Command::Approve(args) => review::approve::approve(context, &args)?,
        Command::Why(args) => review::why::why(context, &args)?,
        Command::Undo(args) => review::undo::undo(context, &args)?,
        Command::Search(args) => memory::search::search(context, &args)?,
        Command::List(args) => memory::list::list(context, &args)?,
        Command::Show(args) => memory::list::show(context, &args)?,
        Command::Edit(args) => memory::edit::edit(context, &args)?,
        Command::Forget(args) => memory::edit::forget(context, &args)?,
        Command::Memory(command) => memory::memory(context, command)?,
        Command::Session(command) => return session::session(context, command),
        Command::Remote(command) => share::remote::remote(context, command)?,
        Command::Sync(args) => share::sync::sync(context, &args)?,
        Command::Mcp(args) => return share::mcp::mcp(context, global, &args),
        Command::Serve(args) => return share::serve::serve(context, &args),
        Command::Token(args) => share::serve::token(context, &args)?,
        Command::Config(command) => care::settings::config(context, &command)?,
        Command::Index(args) => care::search::index(context, &args)?,
        Command::Eval(command) => care::search::eval(context, &command)?,
        Command::Trust(args) => care::settings::trust(context, &args)?,
        Command::Doctor(args) => care::doctor::doctor(context, &args)?,
        Command::MergeDriver(args) => care::git::merge_driver(context, &args)?,
        Command::Schema(args) => schema::schema(&args)?,
        Command::Completions(args) => Box::new(shell::completions(&args, Cli::command())),
        Command::Man(args) => shell::man(&args, &grouped(Cli::command(), true))?,
        Command::Help(args) => help::help(&args, Cli::command())?,
    };
    context.printer.show(report.as_ref())
}

/// Answers an agent host. An error still exits with 0.
fn answer_host(
    context: &Context,
    args: &start::hook::HookArgs,
    root: Option<&std::path::Path>,
) -> u8 {
    let environment = &context.environment;
    let answer = start::hook::hook(environment, &args.host, args.read_only, root);
    context.printer.write(&answer.unwrap_or_default());
    0
}

/// Returns `true` for an event of an agent host.
fn is_hook_call(arguments: &[OsString]) -> bool {
    arguments.get(1).is_some_and(|a| a == "hook") && !is_typed(arguments)
}

/// Returns `true` if a person calls, not an agent host.
fn is_typed(arguments: &[OsString]) -> bool {
    use std::io::IsTerminal as _;
    let asks = |a: &OsString| a == "--help" || a == "-h" || a == "--version" || a == "-V";
    arguments.iter().any(asks) || std::io::stdin().is_terminal()
}

/// Sets the signal handlers. An interrupt ends the process at once with the exit code that shells
/// expect, unless the command handles it. A file size limit becomes an error instead of a crash.
/// The store repairs interrupted writes.
fn signals(sees_to_interrupts: bool) {
    let code = Kind::Interrupted.code();
    if !sees_to_interrupts {
        let is_on = std::sync::Arc::clone(&ending::END_AT_ONCE);
        drop(exit_at_interrupt(code, is_on));
    }
    drop(keep_file_size_limit_an_error());
}
