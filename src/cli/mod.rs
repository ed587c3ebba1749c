//! Command line: parses the arguments, calls a verb, and prints its report as text or JSON.
//!
//! One file per group of functions, each with its argument structs (their doc comments are the help),
//! its commands and their pages. Decisions about memory belong to the verbs.
//!
//! - `start`, `skills`, `learn`, `review`, `memory`, `share`, `care`: commands, by the groups of the
//!   help. `help`: the groups, pages and messages of the parser. `schema`: for programs.
//! - `context`: the workspace that a command works on, and what the user gives. `connections`: its
//!   models, prompts and database. `arguments`: values of options.
//! - `output`: pages, tables and JSON. `ask`: questions and prices.
//!   `ending`: interrupts, crashes and deadlines.

pub(crate) mod arguments;
pub(crate) mod ask;
pub mod config;
pub(crate) mod connections;
pub(crate) mod context;
pub(crate) mod ending;
pub(crate) mod help;
pub(crate) mod memory;
pub(crate) mod output;
pub(crate) mod review;
pub(crate) mod schema;
pub(crate) mod session;

/// Commands for upkeep: `doctor`, `trust`, `config`, `index`, `eval`, `merge-driver`.
pub(crate) mod care {
    pub(crate) mod doctor;
    pub(crate) mod git;
    pub(crate) mod search;
    pub(crate) mod settings;
}

/// Commands that learn from sessions of agents: `learn`, `lesson`, `hint`, `record`.
pub(crate) mod learn {
    pub(crate) mod lesson;
    pub(crate) mod repeats;
    pub(crate) mod sessions;
}

/// Commands that share a memory: `sync`, `remote`, `serve`, `mcp`, `token`.
pub(crate) mod share {
    pub(crate) mod mcp;
    pub(crate) mod remote;
    pub(crate) mod serve;
}

/// Commands about skills: `run`, `correct`, `accept`, `reject`, `test`.
pub(crate) mod skills {
    pub(crate) mod correct;
    pub(crate) mod run;
    pub(crate) mod test;
}

/// Commands that begin a memory and connect agents: `setup`, `init`, `hooks`, `hook`, `statusline`.
pub(crate) mod start {
    pub(crate) mod hook;
    pub(crate) mod hooks;
    pub(crate) mod init;
    pub(crate) mod setup;
    pub(crate) mod statusline;
}

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
///
/// ```console
/// $ memctl setup
/// $ memctl correct hr/resume-screen "Keep the summary under 120 words."
/// ```
#[derive(Debug, Parser)]
#[command(name = "memctl",
    // Not the name of the file, which has an ending on Windows.
    bin_name = "memctl",
    version,
    propagate_version = true,
    max_term_width = 100,
    disable_help_subcommand = true)]
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
    Hint(learn::lesson::HintArgs),
    #[command(subcommand)]
    Record(learn::lesson::RecordCommand),
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
    Why(review::history::WhyArgs),
    Undo(review::history::UndoArgs),
    Search(memory::search::SearchArgs),
    List(memory::list::ListArgs),
    Show(memory::list::ShowArgs),
    Edit(memory::change::EditArgs),
    Forget(memory::change::ForgetArgs),
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    #[command(subcommand)]
    Session(session::SessionCommand),
    #[command(subcommand)]
    Remote(share::remote::RemoteCommand),
    Sync(share::remote::SyncArgs),
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
    Completions(schema::CompletionsArgs),
    Man(schema::ManArgs),
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
    let words: Vec<_> = arguments
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .collect();
    // Hosts wait for these, which need no other command.
    let answer = match words[..] {
        ["hook", host] if is_hook => Some(start::hook::hook(&environment, host, false, None)),
        ["hook", host, "--read-only"] if is_hook => {
            Some(start::hook::hook(&environment, host, true, None))
        }
        ["statusline"] => Some(Ok(start::statusline::statusline(&environment, None))),
        _ => None,
    };
    if let Some(answer) = answer {
        connections::share_rest();
        tell_host(&Printer::new(false, true, true), answer);
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
    let (cli, why) = match parsed {
        Ok(parsed) => parsed,
        // An agent host may stop its agent at any other exit code.
        Err(_) if is_hook => return ExitCode::SUCCESS,
        Err(error) => return help::refuse(&error, &arguments, plain),
    };
    let Cli { global, command } = cli;
    let plain = plain || global.no_color;
    let printer = Printer::new(global.json, global.quiet, plain).at(environment.now);
    let context = Context::new(environment, global, printer.clone(), why);
    signals(matches!(command, Command::Watch(_) | Command::Serve(_)));
    let code = dispatch(&context, command).unwrap_or_else(|error| {
        printer.error(&error);
        error.kind.code()
    });
    connections::share_rest();
    ExitCode::from(written(&printer).unwrap_or(code))
}

/// Prints the answer to an agent host, which takes standard output; what is wrong goes to standard error.
fn tell_host(printer: &Printer, answer: Result<Option<String>, String>) -> u8 {
    match answer {
        Ok(answer) => drop(printer.write(&answer.unwrap_or_default())),
        Err(wrong) => printer.warn(&wrong),
    }
    0
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
    if let Ok(Some(skills)) = at.try_get_raw("skill") {
        words.extend(
            skills
                .take(1)
                .map(|skill| skill.to_string_lossy().into_owned()),
        );
    }
    words.join(" ")
}

/// Commands that work while memory is off: because they use none, handle the case themselves, or manage the
/// data files. A command that is not listed here is refused, so that a new command cannot miss the check.
const WITHOUT_MEMORY: &[&str] = &[
    // Handle the case themselves.
    "run", "hint", "hook", "statusline", "mcp", "memory status", "memory purge", "memory enable",
    "memory disable", "memory audit", "memory export", // Use no memory.
    "hooks", "remote", "token", "eval", "config", "trust", "schema", "completions", "man", "help",
    // Read the files as files; the store refuses their repairs.
    "merge-driver", "doctor",
];
/// Commands that show what the memory of this project has.
const READS_MEMORY: &[&str] = &[
    "list", "search", "review", "stats", "doctor", "memory status",
];
/// Commands that take a directory which does not exist.
const WITHOUT_ROOT: &[&str] = &["setup", "init", "hook", "statusline", "mcp"];

/// Does a command. One that reads the memory says first that it is off, or at the end that there is none.
fn dispatch(context: &Context, command: Command) -> Result<u8, UserError> {
    let reads = context.is_one_of(READS_MEMORY);
    let off = context
        .off
        .as_ref()
        .filter(|_| reads && context.is_one_of(WITHOUT_MEMORY));
    if let Some(off) = off {
        context.printer.warn(&format!("{off}: {}", off.hint()));
    }
    let done = carry_out(context, command);
    if reads && !context.has_memory() {
        let (missing, way) = context.no_memory();
        context.printer.warn(&format!("{missing}: {way}"));
    }
    done
}

fn carry_out(context: &Context, command: Command) -> Result<u8, UserError> {
    if let Some(off) = &context.off
        && !context.is_one_of(WITHOUT_MEMORY)
    {
        return Err(off.clone().into());
    }
    let root = context.global.root.as_deref();
    if let Some(root) = root
        && !context.is_one_of(WITHOUT_ROOT)
        && !named::is_dir(&context.environment.absolute(root))
    {
        return Err(UserError::usage(
            format!("`{}` is not a directory", root.display()),
            format!("memctl init --root {}", root.display()),
        ));
    }
    let environment = &context.environment;
    let report: Box<dyn Report> = match command {
        Command::Setup(args) => start::setup::setup(context, &args)?,
        Command::Init(args) => start::init::init(context, &args)?,
        Command::Run(args) => skills::run::run(context, &args)?,
        Command::Correct(args) => skills::correct::correct(context, args)?,
        Command::Accept(args) => skills::run::accept(context, &args)?,
        Command::Reject(args) => skills::run::reject(context, args)?,
        Command::Test(args) => skills::test::test(context, &args)?,
        Command::Watch(args) => return review::watch::watch(context, &args),
        Command::Hint(args) => learn::lesson::hint(context, args)?,
        Command::Record(command) => learn::lesson::record(context, command)?,
        // An error still exits with 0.
        Command::Hook(args) => {
            let answer = start::hook::hook(environment, &args.host, args.read_only, root);
            return Ok(tell_host(&context.printer, answer));
        }
        Command::Hooks(command) => start::hooks::hooks(context, &command)?,
        Command::Lesson(command) => learn::lesson::lesson(context, command)?,
        Command::Learn(args) => learn::sessions::learn(context, &args)?,
        Command::Review(args) => return review::review(context, &args),
        Command::Stats(args) => review::stats::stats(context, &args)?,
        Command::Statusline(_) => {
            let line = start::statusline::statusline(environment, root);
            return Ok(tell_host(&context.printer, Ok(line)));
        }
        Command::Approve(args) => review::approve::approve(context, &args)?,
        Command::Why(args) => review::history::why(context, &args)?,
        Command::Undo(args) => review::history::undo(context, &args)?,
        Command::Search(args) => memory::search::search(context, &args)?,
        Command::List(args) => memory::list::list(context, &args)?,
        Command::Show(args) => memory::list::show(context, &args)?,
        Command::Edit(args) => memory::change::edit(context, &args)?,
        Command::Forget(args) => memory::change::forget(context, &args)?,
        Command::Memory(command) => memory::memory(context, command)?,
        Command::Session(command) => session::session(context, command)?,
        Command::Remote(command) => share::remote::remote(context, command)?,
        Command::Sync(args) => share::remote::sync(context, &args)?,
        Command::Mcp(args) => return share::mcp::mcp(context, &args),
        Command::Serve(args) => return share::serve::serve(context, &args),
        Command::Token(args) => share::serve::token(context, &args)?,
        Command::Config(command) => care::settings::config(context, &command)?,
        Command::Index(args) => care::search::index(context, &args)?,
        Command::Eval(command) => care::search::eval(context, &command)?,
        Command::Trust(args) => care::settings::trust(context, &args)?,
        Command::Doctor(args) => care::doctor::doctor(context, &args)?,
        Command::MergeDriver(args) => care::git::merge_driver(context, &args)?,
        Command::Schema(args) => schema::schema(&args)?,
        Command::Completions(args) => Box::new(schema::completions(&args, Cli::command())),
        Command::Man(args) => schema::man(&args, &grouped(Cli::command(), true))?,
        Command::Help(args) => Box::new(help::help(&args, Cli::command())),
    };
    context.printer.show(report.as_ref())
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
