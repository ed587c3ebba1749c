//! Requests to language models: one question, one answer; and vectors of texts ([`Embeddings`]).
//! Independent of the memory.
//!
//! [`Llm`] is the model: a server with Anthropic's or `OpenAI`'s chat protocol, a program, or a file of
//! recorded replies. All of them give the same guarantees:
//!
//! - a question ends: one time limit covers retries and repair;
//! - transient failures are retried, spending limits and rejected keys are not (`error`);
//! - with a [`Schema`] the reply is a JSON object that matches it. The provider's own mechanism
//!   requests it, this module checks it, and an invalid answer is repaired once;
//! - a paid answer is never lost: the reply or the [`Error`] holds the received text;
//! - a key is sent in one header and appears nowhere else ([`Secret`]).
//!
//! Deliberately absent: conversations, tools, streams, sampling parameters (providers reject them by now),
//! environment variables (configuration comes as structs), and an offline model.
//!
//! Futures need a tokio runtime with time and I/O enabled.
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "unit tests make and read the files that the code must cope with"
    )
)]

mod ask;
mod chat;
mod embeddings;
mod error;
mod exec;
mod http;
mod request;
mod scripted;
mod structure;

pub use ask::Llm;
pub use chat::Chat;
pub use embeddings::{Embeddings, SENT};
pub use error::{Error, ErrorKind};
pub use exec::{Exec, in_directory};
pub use http::{Endpoint, Secret, get_json, is_loopback, list_models};
pub use request::{Limits, OnProgress, Paid, Progress, Reply, Request, Schema, Usage};
pub use scripted::Scripted;
pub use structure::json_object;
