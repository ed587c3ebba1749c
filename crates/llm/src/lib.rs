//! Requests to language models: one question, one answer; and vectors of texts ([`Embeddings`]).
//! Independent of the memory.
//!
//! [`Llm`] is the model: Anthropic, a server with `OpenAI`'s chat protocol, a program, or a file of
//! recorded replies. All of them give the same guarantees:
//!
//! - a question ends: one time limit covers retries and repair;
//! - transient failures are retried, spending limits and rejected keys are not (`retry`);
//! - with a [`Schema`] the reply is a JSON object that matches it. The provider's own mechanism
//!   requests it, this module checks it, and an invalid answer is repaired once;
//! - a paid answer is never lost: the reply or the [`Error`] holds the received text;
//! - a key is sent in one header and appears nowhere else ([`Secret`]).
//!
//! Deliberately absent: conversations, tools, sampling parameters (providers reject them by now),
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

mod anthropic;
mod ask;
mod attempt_error;
mod attempt_log;
mod body;
mod client;
mod document;
mod embeddings;
mod error;
mod exec;
mod http;
mod model;
mod models;
mod openai;
mod price;
mod protocol;
mod reply;
mod request;
mod retry;
mod schema;
mod scripted;
mod secret;
mod sse;
mod structure;
mod words;

pub use anthropic::{Anthropic, AnthropicConfig};
pub use document::get_json;
pub use embeddings::{Embeddings, EmbeddingsConfig, EmbeddingsProtocol, SENT};
pub use error::Error;
pub use exec::{Exec, ExecConfig};
pub use model::Llm;
pub use models::list_models;
pub use openai::{OpenAi, OpenAiConfig};
pub use price::Pricing;
pub use protocol::Limits;
pub use reply::{Paid, Reply, Usage};
pub use request::{OnProgress, Progress, Request, Schema};
pub use retry::Policy;
pub use scripted::Scripted;
pub use secret::Secret;
pub use structure::json_object;
pub use words::words;
