//! Command line: parses the arguments, calls an operation, and prints its report as text or JSON.
//!
//! One file per group of functions, each with its argument structs (their doc comments are the help),
//! its commands and their pages. Decisions about memory belong to the operations.
//!
//! - `start`, `skills`, `learn`, `review`, `memory`, `share`, `care`: commands, by the groups of the
//!   help. `help`: the groups, pages and messages of the parser. `schema`: for programs.
//! - `context`: the workspace of a command, and the switches that turn memory off. `connections`: its database.
//!   `config`: its settings, prompts and models. `arguments`: values of options, texts and documents.
//! - `output`: pages, tables and JSON. `ask`: questions and prices.
//!   `ending`: interrupts, crashes and deadlines.

/// Makes an enum of commands, and the function that does one: `Name(args: Arguments) => what it does;`.
macro_rules! commands {
    ($(#[$docs:meta])* $enum:ident, $perform:ident, |$context:ident|
        $($(#[$of:meta])* $name:ident($args:ident: $type:ty) => $does:expr;)+) => {
        $(#[$docs])*
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum $enum {
            $($(#[$of])* $name($type)),+
        }

        pub(crate) fn $perform(
            $context: &$crate::cli::context::Context,
            command: $enum,
        ) -> Result<u8, $crate::model::error::UserError> {
            use $crate::cli::Ended as _;
            let printer = &$context.printer;
            match command {
                $($enum::$name($args) => $does.ended(printer)),+
            }
        }
    };
}

pub(crate) mod arguments;
pub(crate) mod ask;
pub(crate) mod care;
pub mod config;
pub(crate) mod connections;
pub(crate) mod context;
pub(crate) mod ending;
pub(crate) mod help;
pub(crate) mod input;
pub(crate) mod memory;
pub(crate) mod opening;
pub(crate) mod output;
pub(crate) mod review;
pub(crate) mod schema;
pub(crate) mod session;

/// Commands that learn from sessions of agents: `learn`, `lesson`, `hint`, `record`.
pub(crate) mod learn {
    pub(crate) mod lesson;
    pub(crate) mod repeats;
    pub(crate) mod sessions;
}

/// Commands that share a memory: `sync`, `remote`, `serve`, `mcp`, `token`.
pub(crate) mod share {
    pub(crate) mod remote;
    pub(crate) mod serve;
}

/// Commands about skills: `run`, `correct`, `accept`, `reject`, `test`.
pub(crate) mod skills {
    pub(crate) mod correct;
    pub(crate) mod run;
}

/// Commands that begin a memory and connect agents: `setup`, `init`, `hooks`, `hook`, `statusline`, `merge-driver`.
pub(crate) mod start {
    pub(crate) mod hook;
    pub(crate) mod hooks;
    pub(crate) mod init;
    pub(crate) mod places;
    pub(crate) mod setup;
}

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser};
use memctl_files::named;
use memctl_files::process::{exit_at_interrupt, keep_file_size_limit_an_error};

use crate::cli::arguments::{Global, NoArgs, with_one_name};
use crate::cli::config::Environment;
use crate::cli::connections::Connection;
use crate::cli::context::Context;
use crate::cli::help::grouped;
use crate::cli::output::{Done, Printer, Report};
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

commands! {
    Command, perform, |context|
    Setup(args: start::setup::SetupArgs) => start::setup::setup(context, &args);
    Init(args: start::init::InitArgs) => start::init::init(context, &args);
    Run(args: skills::run::RunArgs) => skills::run::run(context, &args);
    Correct(args: skills::correct::CorrectArgs) => skills::correct::correct(context, args);
    Accept(args: skills::run::AcceptArgs) => skills::run::accept(context, &args);
    Reject(args: skills::run::RejectArgs) => skills::run::reject(context, args);
    Test(args: skills::run::TestArgs) => skills::run::test(context, &args);
    Watch(args: review::watch::WatchArgs) => review::watch::watch(context, &args);
    Hint(args: learn::lesson::HintArgs) => learn::lesson::hint(context, args);
    #[command(subcommand)]
    Record(args: learn::lesson::RecordCommand) => learn::lesson::record(context, args);
    Hook(args: start::hook::HookArgs) => hook(context, &args);
    #[command(subcommand)]
    Hooks(args: start::hooks::HooksCommand) => start::hooks::hooks(context, &args);
    Learn(args: learn::sessions::LearnArgs) => learn::sessions::learn(context, &args);
    #[command(subcommand)]
    Lesson(args: learn::lesson::LessonCommand) => learn::lesson::lesson(context, args);
    Stats(args: review::stats::StatsArgs) => review::stats::stats(context, &args);
    /// Print a status line for Claude Code: rules and lessons told, candidates
    ///
    /// Claude Code calls it after each message, with the session as JSON on stdin. `memctl setup` installs it
    /// in `settings.json` if there is no status line yet. It only reads, and prints nothing if it cannot.
    /// To show it beside your own status line, call both from one script that passes the input to each.
    ///
    /// ```console
    /// $ memctl statusline
    /// $ memctl statusline < session.json
    /// ```
    Statusline(_args: NoArgs) => statusline(context);
    Review(args: review::ReviewArgs) => review::review(context, &args);
    Approve(args: review::decisions::ApproveArgs) => review::decisions::approve(context, &args);
    Why(args: review::decisions::WhyArgs) => review::decisions::why(context, &args);
    Undo(args: review::decisions::UndoArgs) => review::decisions::undo(context, &args);
    Search(args: memory::search::SearchArgs) => memory::search::search(context, &args);
    List(args: memory::list::ListArgs) => memory::list::list(context, &args);
    Show(args: memory::list::ShowArgs) => memory::list::show(context, &args);
    Edit(args: memory::change::EditArgs) => memory::change::edit(context, &args);
    Forget(args: memory::change::ForgetArgs) => memory::change::forget(context, &args);
    #[command(subcommand)]
    Memory(args: memory::MemoryCommand) => memory::memory(context, args);
    #[command(subcommand)]
    Session(args: session::SessionCommand) => session::session(context, args);
    #[command(subcommand)]
    Remote(args: share::remote::RemoteCommand) => share::remote::remote(context, args);
    Sync(args: share::remote::SyncArgs) => share::remote::sync(context, &args);
    Mcp(args: share::serve::McpArgs) => share::serve::mcp(context, &args);
    Serve(args: share::serve::ServeArgs) => share::serve::serve(context, &args);
    Token(args: share::serve::TokenArgs) => share::serve::token(context, &args);
    #[command(subcommand)]
    Config(args: care::ConfigCommand) => care::config(context, &args);
    Index(args: memory::search::IndexArgs) => memory::search::index(context, &args);
    Trust(args: care::TrustArgs) => care::trust(context, &args);
    Doctor(args: care::DoctorArgs) => care::doctor(context, &args);
    MergeDriver(args: start::init::MergeDriverArgs) => start::init::merge_driver(context, &args);
    Schema(args: schema::SchemaArgs) => schema::schema(&args);
    Completions(args: schema::CompletionsArgs) => schema::completions(&args, Cli::command());
    Man(args: schema::ManArgs) => schema::man(&args, &grouped(Cli::command(), true));
    Help(args: help::HelpArgs) => help::help(&args, Cli::command());
}

/// Result of a command: a report, which is printed, or its exit code.
pub(crate) trait Ended {
    fn ended(self, printer: &Printer) -> Result<u8, UserError>;
}

impl<R: Report> Ended for Result<R, UserError> {
    fn ended(self, printer: &Printer) -> Result<u8, UserError> {
        printer.show(&self?)
    }
}

impl Ended for Done {
    fn ended(self, printer: &Printer) -> Result<u8, UserError> {
        printer.show(self?.as_ref())
    }
}

impl Ended for Result<u8, UserError> {
    fn ended(self, _: &Printer) -> Self {
        self
    }
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
    let connection = Connection::default();
    let hook =
        |host, read_only| start::hook::hook(&environment, &connection, host, read_only, None);
    // Hosts wait for these, which need no other command.
    let answer = match words[..] {
        ["hook", host] if is_hook => Some(hook(host, false)),
        ["hook", host, "--read-only"] if is_hook => Some(hook(host, true)),
        ["statusline"] => Some(Ok(start::hook::statusline(&environment, None))),
        _ => None,
    };
    if let Some(answer) = answer {
        connection.share_rest();
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
        Err(error) => return help::refuse(&error, &arguments, plain, Cli::command),
    };
    let Cli { global, command } = cli;
    let plain = plain || global.no_color;
    let printer = Printer::new(global.json, global.quiet, plain).of(&environment);
    let context = Context::new(
        environment,
        global,
        printer.clone(),
        why,
        connection.clone(),
    );
    signals(matches!(command, Command::Watch(_) | Command::Serve(_)));
    let code = dispatch(&context, command).unwrap_or_else(|error| {
        printer.error(&error);
        error.kind.code()
    });
    connection.share_rest();
    ExitCode::from(printer.written().unwrap_or(code))
}

/// An error of a hook still exits with 0.
#[expect(clippy::unnecessary_wraps, reason = "a command like any other")]
fn hook(context: &Context, args: &start::hook::HookArgs) -> Result<u8, UserError> {
    let root = context.global.root.as_deref();
    let (environment, connection) = (&context.environment, &context.connection);
    let answer = start::hook::hook(environment, connection, &args.host, args.read_only, root);
    Ok(tell_host(&context.printer, answer))
}

#[expect(clippy::unnecessary_wraps, reason = "a command like any other")]
fn statusline(context: &Context) -> Result<u8, UserError> {
    let root = context.global.root.as_deref();
    let line = start::hook::statusline(&context.environment, root);
    Ok(tell_host(&context.printer, Ok(line)))
}

/// Prints the answer to an agent host, which takes standard output; what is wrong goes to standard error.
fn tell_host(printer: &Printer, answer: Result<Option<String>, String>) -> u8 {
    match answer {
        Ok(answer) => drop(printer.write(&answer.unwrap_or_default())),
        Err(wrong) => printer.warn(&wrong),
    }
    0
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
    "memory disable", "memory audit", "memory export", "setup", // Use no memory.
    "hooks", "remote", "token", "config", "trust", "schema", "completions", "man", "help",
    // Read the files as files; the store refuses their repairs.
    "merge-driver", "doctor",
];
/// Commands that show what the memory of this project has.
const READS_MEMORY: &[&str] = &[
    "list", "search", "review", "stats", "doctor", "memory status",
];
/// Commands on single records, of this project or of the user store.
const ON_RECORDS: &[&str] = &[
    "approve", "why", "show", "edit", "forget", "accept", "reject", "memory promote",
];
/// Commands that take a directory which does not exist.
const WITHOUT_ROOT: &[&str] = &["setup", "init", "hook", "statusline", "mcp"];

/// Runs a command. One that reads the memory says first if memory is off, or at the end if there is none.
fn dispatch(context: &Context, command: Command) -> Result<u8, UserError> {
    let reads = context.is_one_of(READS_MEMORY);
    let off = context
        .off
        .as_ref()
        .filter(|_| reads && context.is_one_of(WITHOUT_MEMORY));
    if let Some(off) = off {
        context.printer.warn(&format!("{off}: {}", off.hint()));
    }
    let begins = context.begins_memory() || context.is_one_of(&["setup", "init"]);
    let is_new = begins && !context.has_memory();
    let memory = context.places.memory.display();
    let home = context.environment.home.as_deref();
    if is_new && Some(context.project()) == home {
        let warning = format!(
            "`{memory}` is for work in the home directory itself: projects below it have their own"
        );
        context.printer.warn(&warning);
    }
    let done = carry_out(context, command);
    // The output of `mcp` is for a program.
    let is_said = context.begins_memory() && !context.is_one_of(&["mcp"]);
    if is_new && is_said && context.has_memory() {
        context.printer.note(&format!("created {memory}"));
    }
    let says_so = context.is_one_of(if done.is_err() {
        ON_RECORDS
    } else {
        READS_MEMORY
    });
    if says_so && let Err(missing) = context.needs_memory() {
        let (message, way) = (missing.message, missing.hint.unwrap_or_default());
        context.printer.warn(&format!("{message}: {way}"));
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
    perform(context, command)
}

/// Returns `true` for an event of an agent host. A person asks for help, or calls from a terminal.
fn is_hook_call(arguments: &[OsString]) -> bool {
    use std::io::IsTerminal as _;
    let asks = |a: &OsString| a == "--help" || a == "-h" || a == "--version" || a == "-V";
    arguments.get(1).is_some_and(|a| a == "hook")
        && !arguments.iter().any(asks)
        && !std::io::stdin().is_terminal()
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
