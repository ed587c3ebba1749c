//! The integration tests: one binary, with a module for each subject.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests make the files and environments that the program must cope with"
)]
#![allow(
    clippy::format_push_string,
    clippy::too_many_lines,
    reason = "a test reads from top to bottom"
)]

// Not on Windows: what needs a terminal, signals, links, a shell, other users, a database server or the
// agent hosts. Tests of modules that are there say in a comment what they need.
/// A procedure with a pattern, from flat fields.
macro_rules! pattern {
    ($($fields:tt)*) => {
        $crate::support::with_pattern(serde_json::json!($($fields)*))
    };
}

mod agents_md;
mod approve;
mod asked_clients;
mod audit;
mod bad_input;
mod book;
mod chat;
mod checks;
#[cfg(unix)]
mod clients;
mod completions;
mod conformance;
mod contract;
#[cfg(unix)]
mod crowd;
#[cfg(unix)]
mod demo;
mod disable;
mod edit;
mod embedders;
mod eval;
mod export_import;
#[cfg(unix)]
mod exports;
mod fake_model;
#[cfg(unix)]
mod first_minute;
mod found_faults;
mod garbage;
#[cfg(unix)]
mod git;
mod guard;
mod heed;
mod help;
mod hostile;
mod hosts;
mod index;
mod integrations;
mod json_documents;
mod layers;
mod learn;
mod learning;
mod lessons;
mod llm_wire;
mod local_files;
mod mcp;
#[cfg(unix)]
mod mcp_clients;
#[cfg(unix)]
mod mcp_conformance;
mod memories;
mod merge;
mod mistakes;
mod models;
#[cfg(unix)]
mod more_clients;
mod more_hosts;
#[cfg(unix)]
mod n8n;
#[cfg(unix)]
mod other_memories;
mod output;
mod own_hand;
mod own_rules;
#[cfg(unix)]
mod pictures;
mod plugin;
#[cfg(unix)]
mod postgres;
mod price;
mod procedures;
mod purge;
#[cfg(unix)]
mod readme;
mod reference;
mod regression;
mod released_stores;
mod review;
mod rule_files;
mod rule_relations;
mod rules;
mod schemas;
mod search;
mod serve;
mod session;
mod session_formats;
mod setup;
mod simulation;
mod stats;
mod statusline;
mod store;
mod support;
mod telling;
mod terminal;
#[cfg(unix)]
mod traces;
mod two_copies;
mod undo;
#[cfg(unix)]
mod unmerged;
mod user_store;
mod users;
mod verify;
#[cfg(unix)]
#[path = "../../benches/measure/wait.rs"]
mod wait;
#[cfg(unix)]
mod watch;
mod why;
mod workspace;
