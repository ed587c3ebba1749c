//! Memory for AI agents: rules from corrections, lessons of sessions, notes.
//!
//! One program over plain JSON files in `.agentura/`. This is the library behind the `memctl` command;
//! its API is not stable yet.
//!
//! # Layers
//!
//! A room imports from lower layers, and from its own layer never in a circle. A test reads the `use` lines.
//!
//! | layer | rooms | what they know |
//! |---|---|---|
//! | 0 | [`model`] | records as data, errors with their hints: no files, no clock |
//! | 1 | [`store`] | data files, access, trust, undo journal, audit log, an opened workspace |
//! | 2 | [`rules`], [`lessons`], [`skills`], [`notes`] | one concept each, from its birth to what it is told at |
//! | 3 | [`review`], [`upkeep`], [`remote`] | decisions of people; undo, reports, repair, exchange; the shared database |
//! | 4 | [`host`], [`serve`], [`cli`] | the edge: agent hosts, HTTP and MCP, command line and terminal |
//!
//! Below them are crates that know nothing of memories: [`memctl_files`], [`memctl_redact`],
//! [`memctl_llm`], [`memctl_sessions`], [`memctl_search`].
//!
//! A verb is a function over a [`store::workspace::Workspace`], such as [`skills::run()`] or
//! [`review::approve()`]. A function that needs only the records takes the store of the workspace.
//! `docs/architecture.md` walks through the house.
//!
//! # Invariants
//!
//! - Nothing below the edge prints, exits, reads the environment or the clock; `now` and randomness
//!   are arguments.
//! - Only [`memctl_files`] opens files, and below a workspace it follows no link. Only [`store`] writes
//!   records. Only [`memctl_llm`], [`remote`] and [`serve`] open sockets.
//! - Every write is logged before it happens, in the audit log and in the undo journal.
//! - [`store`] redacts every record that it writes, and its `redacting_writer` every other file.
//! - No field of a file grants trust: approvals by the user are stored outside the workspace.
//! - Input from a person or a paid model is stored before the next step can fail.
//! - An unchanged entry of a data file keeps every byte.
//! - Errors are typed, and say their kind and their hint where they are defined.
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
