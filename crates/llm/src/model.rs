//! Language models by protocol.

use super::attempt_log::Draft;
use super::price::Tokens;
use super::{Anthropic, Exec, OpenAi, Paid, Scripted, Usage};

/// Language model.
#[derive(Debug)]
pub enum Llm {
    /// Anthropic Messages protocol.
    Anthropic(Anthropic),
    /// `OpenAI`'s chat protocol, which many servers support.
    OpenAi(OpenAi),
    /// Program.
    Exec(Exec),
    /// Recorded replies.
    Scripted(Scripted),
}

impl Llm {
    /// `provider/model`, as in replies.
    pub fn model(&self) -> &str {
        match self {
            Self::Anthropic(anthropic) => anthropic.connection.shown(),
            Self::OpenAi(openai) => openai.connection.shown(),
            Self::Exec(exec) => exec.model(),
            Self::Scripted(scripted) => scripted.model(),
        }
    }

    /// Estimated cost in US dollars; `None` if the price is unknown.
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

    /// Usage and cost of the draft.
    pub(super) fn bill(&self, draft: &Draft) -> Paid {
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
