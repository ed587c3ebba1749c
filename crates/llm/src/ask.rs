//! One question from the first attempt to the answer: overall time limit, schema check, and one
//! repair of an invalid answer.
//!
//! The protocols retry transient failures.

use std::time::{Duration, Instant};

use super::attempt_log::{Draft, Stop, Tally};
use super::price::Tokens;
use super::request::in_words;
use super::structure;
use super::{Error, Llm, OnProgress, Progress, Reply, Request, Schema};

impl Llm {
    /// Asks and waits for the answer. Dropping the future cancels the request and kills its
    /// program.
    ///
    /// # Errors
    ///
    /// See [`Error`]. [`Error::paid`] and [`Error::raw_text`] return what was received before the
    /// error.
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

    /// Asks, checks the answer against the schema, and asks once more if it does not match.
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
            // The first answer was paid for and may still be useful.
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

    /// Reads one complete answer into the draft.
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
}

/// The question again, with the rejected answer and the reason.
///
/// It is one message and not a conversation, so that it works for programs and servers alike. The
/// system text is unchanged, so that the provider's cache applies.
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

    use serde_json::{Value, json};

    use super::super::Scripted;
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
        // Servers use several threads, so the future has to be `Send`.
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
