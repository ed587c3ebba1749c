//! A query in other words, before it is looked for.

use std::str::FromStr;

use crate::learn::rewrite;
use crate::llm::OnProgress;

use super::error::chain;
use super::model::Chosen;
use super::{Engine, Error};

/// Whether a query is rewritten, as it is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RewriteBy {
    /// It is looked for as it was typed.
    #[default]
    Off,
    /// By rules, and by the words of the index.
    Offline,
    /// By a model.
    Model,
}

impl FromStr for RewriteBy {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "off" => Ok(Self::Off),
            "offline" => Ok(Self::Offline),
            "model" => Ok(Self::Model),
            _ => Err("write off, offline or model"),
        }
    }
}

/// What is looked for instead of what was typed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Rewrite {
    /// Nothing else.
    #[default]
    Not,
    /// The query without its opening, and with what its mistyped words may have meant.
    Offline,
    /// These words of a model, among which are all of the query.
    To(String),
}

impl Rewrite {
    /// What is looked for, before the index has its say.
    pub(super) fn apply(&self, query: &str) -> Option<String> {
        match self {
            Self::Not => None,
            Self::Offline => rewrite::offline(query),
            Self::To(text) => (text != query).then(|| text.clone()),
        }
    }
}

impl Engine {
    /// Has a query rewritten by the model that is configured. A model that is not there or answers nonsense costs a warning, and the
    /// query is looked for as it was typed.
    ///
    /// # Errors
    ///
    /// Only those of a model that is named in a way that nobody understands.
    pub async fn rewrite(
        &self,
        query: &str,
        progress: OnProgress<'_>,
    ) -> Result<(Rewrite, Option<String>), Error> {
        let not = |why: String| {
            Ok((
                Rewrite::Not,
                Some(format!("the query was not rewritten: {why}")),
            ))
        };
        let Chosen::Model(llm) = self.providers.choose(None).await? else {
            return not("no model is configured".to_owned());
        };
        let system = self.settings.rewrite_prompt.as_deref();
        let request = rewrite::ask(query, system.unwrap_or(rewrite::PROMPT));
        match llm.ask(&request, progress).await {
            Err(error) => not(chain(&error)),
            Ok(reply) => match rewrite::accept(query, &reply.text) {
                Ok(text) => Ok((Rewrite::To(text), None)),
                Err(reason) => not(format!("the answer of `{}`: {reason}", reply.model)),
            },
        }
    }
}
