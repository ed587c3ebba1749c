//! Memory for AI agents: storage, search, and learning from corrections and failed tool calls.
//!
//! One program over plain JSON files in `.agentura/`. A user corrects the output of a skill; the
//! program derives a rule and a guardrail, and the next run has the rule in its prompt. This is the
//! library behind the `memctl` command; its API is not stable yet.
//!
//! # Layers
//!
//! A module imports from lower layers, and from its own layer only above 2 and never in a circle. A test
//! reads the `use` lines.
//!
//! | layer | modules | what they know |
//! |---|---|---|
//! | 0 | [`model`] | records: data, no files, no clock |
//! | 2 | [`store`], [`skill`] | data files, skills |
//! | 3 | [`learn`], [`prompt`], [`workspace`], [`lessons`], [`indexing`] | analysis of corrections and sessions, as pure functions; prompts; an opened workspace; lessons that agents and models word; the search index |
//! | 4 | [`rules`], [`hints`], [`engine`], [`learning`], [`review`], [`upkeep`], [`sessions`], [`remote`] | the rules of a skill; what an agent is told at its calls; the verbs: run, correct, remember; learning from sessions; decisions of people; reports, undo, repair, export and import, git branches; agents' sessions; the shared database |
//! | 5 | [`config`], [`error`], [`host`], [`arguments`], [`serve`], [`cli`] | the edge: environment, messages and exit codes, agent hosts, limits of arguments, HTTP and MCP, command line and terminal |
//!
//! A verb is a function over a [`store::workspace::Workspace`], such as [`skills::run()`] or
//! [`review::approve()`]. A function that needs only the records takes the store of the workspace.
//!
//! # Invariants
//!
//! - Nothing below layer 5 prints, exits, reads the environment or the clock; `now` and randomness
//!   are arguments.
//! - Only [`memctl_files`] opens files, and below a workspace it follows no link. Only [`store`] writes
//!   records. Only [`memctl_llm`], [`remote`] and [`serve`] open sockets.
//! - Every write is logged before it happens, in the audit log and in the undo journal.
//! - [`store`] redacts every record that it writes, and `store::workspace::redacting_writer` every other file.
//! - No field of a file grants trust: approvals by the user are stored outside the workspace.
//! - Input from a person or a paid model is stored before the next step can fail.
//! - An unchanged entry of a data file keeps every byte.
//! - Errors are typed inside; one file at the edge converts them to a message, a hint and an exit
//!   code.
//!
//! # Four control flows
//!
//! *A run.* `cli::skills` reads the input and calls [`skills::run()`]. The engine takes layers
//! 0, 1 and 3 of the prompt from [`skill`] and the learned rules from [`store`].
//! [`skills::prompt::assemble`] joins them. [`memctl_llm::Llm::ask`] answers, or the most similar known case does.
//! The execution is stored with the ids of the rules in its prompt.
//!
//! *A correction.* [`rules::correct()`] stores the correction **first**. Then
//! [`rules::reflect`] derives a rule, with or without a model. The rule is stored, the guardrail
//! files get a section, and [`rules::regression::case`] creates a regression test in the skill. The next run
//! includes the rule like any other.
//!
//! *A session.* [`lessons::learn()`] opens session files, and [`memctl_sessions`] parses them into
//! steps. [`lessons::recovery::recover`] finds failures with a recovery, and [`lessons::recovery::pattern`] decides which
//! of them are patterns. The store adds new records and updates the counts of known ones.
//!
//! *A failing call of an agent.* [`host`] parses the hook event of an agent host.
//! [`lessons::HintService`] looks up lessons and patterns in a derived table, and `lessons::telling::matching`
//! selects among them. The answer uses the agent host's format. Later calls show the outcome, which
//! is added to the evidence of the lesson. No model, network or async runtime is involved.
#![deny(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "unit tests make and read the files that the code must cope with"
    )
)]

// Fuzzing builds the parsers and their dependencies, without the command line and the network.
#[cfg(not(fuzzing))]
pub mod cli;
pub mod host;
pub mod lessons;
pub mod model;
pub mod notes;
#[cfg(not(fuzzing))]
pub mod remote;
pub mod review;
pub mod rules;
#[cfg(not(fuzzing))]
pub mod serve;
pub mod skills;
pub mod store;
pub mod upkeep;
