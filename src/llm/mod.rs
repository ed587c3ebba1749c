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
mod words;

use std::time::{Duration, Instant};

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

use price::Tokens;

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

    /// Asks and waits for the answer. Dropping the future gives the question up, and ends the
    /// program that was started for it.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::paid`] and [`Error::raw_text`] have what came back nevertheless.
    pub async fn ask(&self, request: &Request, progress: OnProgress<'_>) -> Result<Reply, Error> {
        let start = Instant::now();
        let limit = self.answer_within();
        let mut tally = Tally::new(start, limit);
        let answer =
            tokio::time::timeout(limit, self.converse(request, progress, &mut tally)).await;
        let bill = tally.bill(self.bill(&tally.draft));
        let text = answer.map_err(|_| Error::TimedOut {
            model: self.model().to_owned(),
            after: limit,
            paid: (!bill.text.is_empty() || bill.usage.is_some()).then(|| Box::new(bill.clone())),
        })??;
        Ok(Reply {
            text,
            model: bill.model,
            usage: bill.usage,
            cost_usd: bill.cost_usd,
            latency: start.elapsed(),
            attempts: tally.attempts,
            repaired: tally.earlier.is_some(),
        })
    }

    /// Asks, checks the form, and asks once more where it does not fit.
    async fn converse(
        &self,
        request: &Request,
        progress: OnProgress<'_>,
        tally: &mut Tally,
    ) -> Result<String, Error> {
        self.once(request, progress, tally).await?;
        let Some(schema) = &request.schema else {
            return Ok(tally.draft.text.clone());
        };
        let reason = match structure::fitting(&tally.draft.text, schema) {
            Ok(object) => return Ok(object.to_owned()),
            Err(reason) => reason,
        };
        progress(Progress::Repair { reason: &reason });
        let again = repair(request, schema, &tally.draft.text, &reason);
        let first = self.bill(&tally.draft);
        tally.earlier = Some(first.clone());
        tally.draft = Draft::default();
        if let Err(error) = self.once(&again, progress, tally).await {
            // The first answer was paid for, and somebody may still make use of it.
            let mut paid = tally.bill(self.bill(&tally.draft));
            paid.text = first.text;
            return Err(Error::InvalidStructure {
                reason: format!("{reason}; asking again failed: {error}"),
                paid: Box::new(paid),
            });
        }
        match structure::fitting(&tally.draft.text, schema) {
            Ok(object) => Ok(object.to_owned()),
            Err(reason) => Err(Error::InvalidStructure {
                reason,
                paid: Box::new(tally.bill(self.bill(&tally.draft))),
            }),
        }
    }

    /// Gets one answer, whole and meant as one, into the draft.
    async fn once(
        &self,
        request: &Request,
        progress: OnProgress<'_>,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        match self {
            Self::Anthropic(anthropic) => anthropic.answer(request, progress, tally).await?,
            Self::OpenAi(openai) => openai.answer(request, progress, tally).await?,
            Self::Exec(exec) => {
                tally.attempts += 1;
                let request = in_words(request);
                exec.answer(&request, &mut tally.draft).await?;
                progress(Progress::Text(&tally.draft.text));
            }
            Self::Scripted(scripted) => {
                tally.attempts += 1;
                let reply = scripted.answer(request)?;
                tally.draft = Draft {
                    text: reply.text(),
                    tokens: reply.usage.map(|usage| Tokens {
                        input: usage.input_tokens,
                        output: usage.output_tokens,
                        ..Tokens::default()
                    }),
                    cost_usd: reply.cost_usd,
                    ..Draft::default()
                };
                progress(Progress::Text(&tally.draft.text));
            }
        }
        let paid = || Box::new(tally.bill(self.bill(&tally.draft)));
        match tally.draft.stop {
            Stop::End => Ok(()),
            Stop::Length => Err(Error::Truncated {
                max_tokens: request.max_tokens,
                paid: paid(),
            }),
            Stop::Refusal => Err(Error::Refused { paid: paid() }),
        }
    }

    fn answer_within(&self) -> Duration {
        match self {
            Self::Anthropic(anthropic) => anthropic.connection.answer_within(),
            Self::OpenAi(openai) => openai.connection.answer_within(),
            Self::Exec(exec) => exec.config.answer_within,
            Self::Scripted(_) => Duration::MAX,
        }
    }

    /// What the draft cost.
    fn bill(&self, draft: &Draft) -> Paid {
        match self {
            Self::Anthropic(anthropic) => anthropic.connection.bill(draft),
            Self::OpenAi(openai) => openai.connection.bill(draft),
            Self::Exec(_) | Self::Scripted(_) => Paid {
                text: draft.text.clone(),
                model: self.model().to_owned(),
                usage: draft.tokens.map(Usage::from),
                cost_usd: draft.cost_usd,
            },
        }
    }
}

/// An answer in the making.
#[derive(Debug, Clone, Default)]
struct Draft {
    text: String,
    stop: Stop,
    /// The provider has said that nothing more of the text will come.
    complete: bool,
    tokens: Option<Tokens>,
    /// The provider's own figure.
    cost_usd: Option<f64>,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stop {
    #[default]
    End,
    Length,
    Refusal,
}

/// What a question has come to so far. It outlives the future that fills it, so that a time limit
/// does not lose an answer.
#[derive(Debug)]
struct Tally {
    start: Instant,
    limit: Duration,
    attempts: u32,
    draft: Draft,
    /// The answer that is being repaired.
    earlier: Option<Paid>,
}

impl Tally {
    fn new(start: Instant, limit: Duration) -> Self {
        Self {
            start,
            limit,
            attempts: 0,
            draft: Draft::default(),
            earlier: None,
        }
    }

    /// What remains of the time limit.
    fn left(&self) -> Duration {
        self.limit.saturating_sub(self.start.elapsed())
    }

    /// The bill of the draft, with that of the earlier answer added. A sum with an unknown part is
    /// unknown.
    fn bill(&self, draft: Paid) -> Paid {
        let Some(earlier) = &self.earlier else {
            return draft;
        };
        if draft.text.is_empty() && draft.usage.is_none() {
            return earlier.clone();
        }
        Paid {
            usage: earlier.usage.zip(draft.usage).map(|(a, b)| Usage {
                input_tokens: a.input_tokens + b.input_tokens,
                output_tokens: a.output_tokens + b.output_tokens,
            }),
            cost_usd: earlier.cost_usd.zip(draft.cost_usd).map(|(a, b)| a + b),
            ..draft
        }
    }
}

/// The request with its schema said in words, for whoever has no mechanism for it.
fn in_words(request: &Request) -> Request {
    let Some(schema) = &request.schema else {
        return request.clone();
    };
    let form = format!(
        "Answer with one JSON object and nothing else. It must fit this JSON Schema:\n{}",
        schema.json
    );
    let system = match request.system.as_str() {
        "" => form,
        system => format!("{system}\n\n{form}"),
    };
    Request {
        system,
        ..request.clone()
    }
}

/// The question again, with the answer that does not do and why.
///
/// One message instead of a conversation, so that programs and servers get the same; the system
/// text stays as it was, so that a provider's cache of it is used.
fn repair(request: &Request, schema: &Schema, answer: &str, reason: &str) -> Request {
    Request {
        user: format!(
            "{}\n\nYour previous answer was:\n{answer}\n\nIt was not accepted: {reason}. Answer \
             again with one JSON object and nothing else. It must fit this JSON Schema:\n{}",
            request.user, schema.json
        ),
        ..request.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use serde_json::json;

    use super::*;

    fn ask(script: &str, schema: Option<Value>) -> Result<Reply, Error> {
        let llm = Llm::Scripted(Scripted::parse("demo", script)?);
        let request = Request {
            system: String::new(),
            user: "why?".to_owned(),
            schema: schema.map(|json| Schema {
                name: "answer".to_owned(),
                json,
            }),
            max_tokens: 100,
        };
        let mut ignore = |_: Progress<'_>| {};
        // A server asks from several threads, so the future has to be `Send`.
        let answer: Pin<Box<dyn Future<Output = _> + Send>> =
            Box::pin(llm.ask(&request, &mut ignore));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(answer)
    }

    fn form() -> Value {
        json!({"type": "object", "required": ["rule"]})
    }

    #[test]
    fn recorded_replies_are_shown_as_such() {
        let script =
            r#"{"reply": "so", "cost_usd": 0.5, "usage": {"input_tokens": 7, "output_tokens": 2}}"#;
        let reply = ask(script, None).unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.model.as_str()),
            ("so", "scripted/demo")
        );
        assert_eq!((reply.cost_usd, reply.attempts), (Some(0.5), 1));
        assert_eq!(reply.usage.unwrap().input_tokens, 7);
        let reply = ask(r#"{"reply": "so"}"#, None).unwrap();
        assert_eq!((reply.usage, reply.cost_usd), (None, None));
    }

    #[test]
    fn the_form_holds_for_recorded_replies_too() {
        let script = r#"
            {"when": {"contains": ["was not accepted: the answer has no `rule`"]}, "reply": {"rule": 1.0}, "cost_usd": 0.25}
            {"reply": {"rul": 1}, "cost_usd": 0.5}
        "#;
        let reply = ask(script, Some(form())).unwrap();
        assert_eq!(reply.text, r#"{"rule": 1.0}"#);
        assert_eq!((reply.repaired, reply.attempts), (true, 2));
        assert_eq!(reply.cost_usd, Some(0.75));
        let error = ask(r#"{"reply": "no", "cost_usd": 0.5}"#, Some(form())).unwrap_err();
        assert_eq!(error.raw_text(), Some("no"));
        assert_eq!(error.paid().unwrap().cost_usd, Some(1.0));
    }

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        let script = r#"
            {"when": {"contains": ["was not accepted"]}, "reply": {"rule": 1}}
            {"reply": "no", "cost_usd": 0.5, "usage": {"input_tokens": 7, "output_tokens": 2}}
        "#;
        let reply = ask(script, Some(form())).unwrap();
        assert_eq!((reply.usage, reply.cost_usd), (None, None));
    }
}
