//! One question, one answer; and vectors of texts ([`Embeddings`]). Knows nothing of memory.
//!
//! [`Llm`] is whoever answers: Anthropic, a server that speaks `OpenAI`'s chat protocol, a program,
//! or a file of recorded replies. All of them keep the same promises:
//!
//! - a question ends: there is a time limit over retries and repair together;
//! - passing troubles are retried, spending limits and refused keys never are (`retry`);
//! - with a [`Schema`] the reply is a JSON object of that form, asked for by the provider's own
//!   mechanism, checked here, and repaired once where it does not fit;
//! - a paid answer is never lost: what came back stands in the reply or in the [`Error`];
//! - a key stands in one header and nowhere else ([`Secret`]).
//!
//! Deliberately absent: conversations, tools, sampling parameters (providers refuse them by now),
//! the environment (configuration comes as structs), and an offline model: answering from memory
//! is the memory's affair.
//!
//! Futures need a tokio runtime with time and I/O enabled.

mod anthropic;
mod ask;
mod body;
mod client;
mod document;
mod embeddings;
mod error;
mod exec;
mod fault;
mod http;
mod models;
mod openai;
mod price;
mod retry;
mod schema;
mod scripted;
mod secret;
mod sse;
mod structure;
mod tally;
mod words;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use anthropic::{Anthropic, AnthropicConfig};
pub use document::get_json;
pub use embeddings::{Embeddings, EmbeddingsConfig, EmbeddingsProtocol, SENT};
pub use error::Error;
pub use exec::{Exec, ExecConfig};
pub use http::Limits;
pub use models::list_models;
pub use openai::{OpenAi, OpenAiConfig};
pub use price::Pricing;
pub use retry::Policy;
pub use scripted::Scripted;
pub use secret::Secret;
pub use structure::json_object;
pub use words::words;

use ask::in_words;
use price::Tokens;
use tally::{Draft, Stop, Tally};

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What holds for every question of this kind; providers cache it. May be empty.
    pub system: String,
    /// The question.
    pub user: String,
    /// The form of the answer; `None` takes any text.
    pub schema: Option<Schema>,
    /// Longest answer, in tokens. Programs and recorded replies do not know it.
    pub max_tokens: u32,
}

/// The form of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Letters, digits, `_` and `-`, at most 64: providers ask for a name.
    pub name: String,
    /// JSON Schema of an object.
    pub json: Value,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The answer. With a schema: the JSON object alone, as the model wrote it.
    pub text: String,
    /// `provider/model`.
    pub model: String,
    /// Tokens, where they were counted; those of the repair are included.
    pub usage: Option<Usage>,
    /// US dollars; `None` where the price is not known, never 0 for it.
    pub cost_usd: Option<f64>,
    /// Wall-clock time from the question to the end of the answer.
    pub latency: Duration,
    /// Requests that were sent; 1 where all went well.
    pub attempts: u32,
    /// Whether the first answer had not the asked form.
    pub repaired: bool,
}

/// Tokens of a question and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, those from a cache included.
    pub input_tokens: u64,
    /// Tokens written, those of hidden reasoning included.
    pub output_tokens: u64,
}

/// What a provider delivered although there is no [`Reply`].
#[derive(Debug, Clone, PartialEq)]
pub struct Paid {
    /// The text as it came.
    pub text: String,
    /// `provider/model`.
    pub model: String,
    /// Tokens, as far as they were counted.
    pub usage: Option<Usage>,
    /// US dollars, if known.
    pub cost_usd: Option<f64>,
}

/// What happens while one waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The next piece of the answer.
    Text(&'a str),
    /// The request failed and is sent again; pieces of an answer that came before are void.
    Retry {
        /// The pause before it.
        after: Duration,
        /// What went wrong.
        reason: &'a str,
    },
    /// The answer has not the asked form and is asked for again; its pieces are void.
    Repair {
        /// What is wrong with it.
        reason: &'a str,
    },
}

/// Receives [`Progress`]; `&mut |_| {}` where nobody looks.
pub type OnProgress<'a> = &'a mut (dyn FnMut(Progress<'_>) + Send);

/// Whoever answers.
#[derive(Debug)]
pub enum Llm {
    /// The Anthropic Messages protocol.
    Anthropic(Anthropic),
    /// The chat protocol of `OpenAI`, which many servers speak.
    OpenAi(OpenAi),
    /// A program.
    Exec(Exec),
    /// Recorded replies.
    Scripted(Scripted),
}

impl Llm {
    /// `provider/model`, as replies show it.
    pub fn model(&self) -> &str {
        match self {
            Self::Anthropic(anthropic) => anthropic.connection.shown(),
            Self::OpenAi(openai) => openai.connection.shown(),
            Self::Exec(exec) => exec.model(),
            Self::Scripted(scripted) => scripted.model(),
        }
    }

    /// What so many tokens would cost, in US dollars; `None` where the price is not known.
    pub fn estimate(&self, input_tokens: u64, output_tokens: u64) -> Option<f64> {
        let draft = Draft {
            tokens: Some(Tokens {
                input: input_tokens,
                output: output_tokens,
                ..Tokens::default()
            }),
            ..Draft::default()
        };
        self.bill(&draft).cost_usd
    }
}
