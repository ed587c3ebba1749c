//! The memory that agents learn with.
//!
//! One program over plain JSON files in `.agentura/`. A person corrects what a skill got wrong; a
//! rule and a guardrail come out, and the next run has the rule in its prompt. This is the library
//! behind the `memctl` command; it makes no promise of stability to other programs yet.
//!
//! # Layers
//!
//! A module imports only from lower layers, and never sideways within layer 2. A test reads the
//! `use` lines and keeps it so.
//!
//! | layer | modules | what they know |
//! |---|---|---|
//! | 0 | [`model`] | what is remembered: data, no files, no clock |
//! | 1 | [`platform`], [`guard`] | the operating system: files below a workspace, and files that a user names; text: secrets, injections, the fence |
//! | 2 | [`store`], [`search`], [`llm`], [`skill`], [`git`] | one outside thing each: the files, ranking, a model, the skills, version control |
//! | 3 | [`transcript`], [`learn`], [`prompt`], [`exchange`] | thinking: pure functions from session files to steps, from what happened to what is learnt, and to a prompt; the forms in which memories come and go |
//! | 4 | [`engine`], [`remote`] | the verbs: the only place where the layers below meet; the shared store |
//! | 5 | [`config`], [`error`], [`host`], [`serve`], [`cli`] | the edge: environment, what is said of errors, coding-agent hosts, the operations for other programs, arguments, terminal |
//!
//! # Invariants
//!
//! - Nothing below layer 5 prints, exits, reads the environment or asks for the time; `now` and
//!   randomness are arguments.
//! - Only [`platform`] opens files, and below a workspace it follows no link. Only [`store`] writes
//!   what is remembered. Only [`llm`], [`remote`] and [`serve`] open sockets.
//! - Every write is noted before it happens, in the audit and in the journal by which it is taken back.
//! - What the verbs write goes through one door, `engine::door`, that keeps secrets out of it.
//! - No field of a file grants trust: what counts as the user's own word is noted outside of the workspace.
//! - What a person or a paid model gave is stored before the next step can fail.
//! - An entry of a data file that is not changed keeps every byte.
//! - Errors are typed inside and become a message, a hint and an exit code in one file at the edge.
//!
//! # Four walks
//!
//! *A run.* `cli::run` reads the input and calls [`engine::Engine::run`]. That asks [`skill`] for
//! layers 0, 1 and 3 and [`store`] for the learned rules; [`prompt::assemble`] puts them together;
//! [`llm::Llm::ask`] answers, or the nearest known case does; the execution is stored with the ids
//! of the rules that stood in the prompt.
//!
//! *A correction.* [`engine::Engine::correct`] stores the correction **first**. Then
//! [`learn::reflect`] makes a rule of it, with a model or without, the rule is stored, the guardrail
//! files get a section, and [`learn::case`] makes a regression test that the skill keeps. The next
//! run is the first walk unchanged: the rule is simply there.
//!
//! *A session.* [`engine::Engine::learn`] opens session files and has [`transcript`] read them as
//! steps; [`learn::recover`] finds the failures that were overcome, [`learn::distil`] makes a fix
//! and a procedure of each, and the store takes what is new and counts up what is known.
//!
//! *A failing call of an agent.* [`host`] reads what a coding agent's host tells its hook.
//! [`engine::Adviser`] finds the fixes of that error through a derived table, [`learn::hint`] judges
//! them, and the answer goes back in the host's form. The next calls are watched, and what comes of
//! the hint is added to the fix's evidence. No model, no network, no runtime.
#![deny(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "unit tests make and read the files that the code must cope with"
    )
)]

// Fuzzing builds the readers and what they stand on, not the half that talks to people and networks.
#[cfg(not(fuzzing))]
pub mod cli;
#[cfg(not(fuzzing))]
pub mod config;
pub mod engine;
#[cfg(not(fuzzing))]
pub mod error;
pub mod exchange;
pub mod git;
pub mod guard;
pub mod host;
pub mod learn;
pub mod llm;
pub mod model;
pub mod platform;
pub mod prompt;
#[cfg(not(fuzzing))]
pub mod remote;
pub mod search;
#[cfg(not(fuzzing))]
pub mod serve;
pub mod skill;
pub mod store;
pub mod transcript;
