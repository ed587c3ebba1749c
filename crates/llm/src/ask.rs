//! One question from the first attempt to the answer: overall time limit, schema check, and one
//! repair of an invalid answer.
//!
//! The state of a question outlives the future that fills it, so that a time limit does not lose an
//! answer. It never drops paid text. A sum with an unknown part is unknown.

use std::time::Duration;

use super::error::after_colon;
use super::request::{Attempts, Tokens, in_words};
use super::structure;
use super::{
    Chat, Error, ErrorKind, Exec, OnProgress, Paid, Progress, Reply, Request, Schema, Scripted,
    Usage,
};

/// Language model.
#[derive(Debug)]
pub enum Llm {
    /// Server with a chat protocol.
    Chat(Chat),
    /// Program.
    Exec(Exec),
    /// Recorded replies.
    Scripted(Scripted),
}

/// Answer of one attempt.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    pub(super) text: String,
    pub(super) stop: Stop,
    pub(super) tokens: Option<Tokens>,
    /// Cost reported by the provider, in US dollars.
    pub(super) cost_usd: Option<f64>,
}

/// Reason why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stop {
    #[default]
    End,
    Length,
    Refusal,
}

/// State of a question.
struct Question<'a> {
    attempts: Attempts<'a>,
    draft: Draft,
    /// Earlier answer that is being repaired.
    earlier: Option<Paid>,
}

impl Llm {
    /// `provider/model`, as in replies.
    pub fn model(&self) -> &str {
        match self {
            Self::Chat(chat) => &chat.connection.shown,
            Self::Exec(exec) => &exec.model,
            Self::Scripted(scripted) => &scripted.model,
        }
    }

    /// Estimated cost in US dollars; `None` if the price is unknown.
    pub fn estimate(&self, input_tokens: u64, output_tokens: u64) -> Option<f64> {
        self.price(Tokens {
            input: input_tokens,
            output: output_tokens,
            ..Tokens::default()
        })
    }

    fn price(&self, tokens: Tokens) -> Option<f64> {
        match self {
            Self::Chat(chat) => chat.connection.price(tokens),
            Self::Exec(_) | Self::Scripted(_) => None,
        }
    }

    /// Asks and waits for the answer. Dropping the future cancels the request and kills its
    /// program.
    ///
    /// # Errors
    ///
    /// See [`Error`]. [`Error::paid`] and [`Error::raw_text`] return what was received before the
    /// error.
    pub async fn ask(&self, request: &Request, progress: OnProgress<'_>) -> Result<Reply, Error> {
        self.answer(request, true, progress).await
    }

    /// As [`ask`](Self::ask), without the second question about an answer that does not match the schema.
    ///
    /// # Errors
    ///
    /// As for [`ask`](Self::ask).
    pub async fn ask_once(&self, request: &Request) -> Result<Reply, Error> {
        self.answer(request, false, &mut |_| {}).await
    }

    async fn answer(
        &self,
        request: &Request,
        may_repair: bool,
        progress: OnProgress<'_>,
    ) -> Result<Reply, Error> {
        let limit = match self {
            Self::Chat(chat) => chat.connection.endpoint.limits.answer_within,
            Self::Exec(exec) => exec.answer_within,
            Self::Scripted(_) => Duration::MAX,
        };
        let mut question = Question {
            attempts: Attempts::new(limit, progress),
            draft: Draft::default(),
            earlier: None,
        };
        let answer =
            tokio::time::timeout(limit, self.converse(request, may_repair, &mut question)).await;
        let bill = self.bill(&question);
        let text = answer.map_err(|_| {
            let error = timed_out(self.model(), limit);
            if bill.text.is_empty() {
                error
            } else {
                error.after(bill.clone())
            }
        })??;
        Ok(Reply {
            text,
            model: self.model().to_owned(),
            usage: bill.usage,
            cost_usd: bill.cost_usd,
            latency: question.attempts.start.elapsed(),
        })
    }

    /// Asks, checks the answer against the schema, and asks once more if it does not match.
    async fn converse(
        &self,
        request: &Request,
        may_repair: bool,
        question: &mut Question<'_>,
    ) -> Result<String, Error> {
        self.once(request, question).await?;
        let Some(schema) = &request.schema else {
            return Ok(question.draft.text.clone());
        };
        let reason = match structure::fitting(&question.draft.text, schema) {
            Ok(object) => return Ok(object.to_owned()),
            Err(reason) => reason,
        };
        let unfit = |reason: &str| {
            let message = format!(
                "the answer of `{}` does not match the requested schema: {reason}",
                self.model()
            );
            Error::new(ErrorKind::InvalidStructure, message)
        };
        if !may_repair {
            return Err(unfit(&reason).after(self.bill(question)));
        }
        (question.attempts.progress)(Progress::Repair { reason: &reason });
        let again = repair(request, schema, &question.draft.text, &reason);
        let first = self.bill(question);
        question.earlier = Some(first.clone());
        question.draft = Draft::default();
        let outcome = self.once(&again, question).await;
        let (reason, paid) = match outcome {
            Ok(()) => match structure::fitting(&question.draft.text, schema) {
                Ok(object) => return Ok(object.to_owned()),
                Err(reason) => (reason, self.bill(question)),
            },
            // The first answer was paid for and may still be useful.
            Err(error) => {
                let paid = Paid {
                    text: first.text,
                    ..self.bill(question)
                };
                (format!("{reason}; asking again failed: {error}"), paid)
            }
        };
        Err(unfit(&reason).after(paid))
    }

    /// Reads one complete answer into the draft.
    async fn once(&self, request: &Request, question: &mut Question<'_>) -> Result<(), Error> {
        let Question {
            attempts, draft, ..
        } = question;
        match self {
            Self::Chat(chat) => *draft = chat.answer(request, attempts).await?,
            Self::Exec(exec) => exec.answer(&in_words(request), &mut draft.text).await?,
            Self::Scripted(scripted) => *draft = scripted.answer(request)?,
        }
        let (model, most) = (self.model(), request.max_tokens);
        let (kind, message) = match question.draft.stop {
            Stop::End => return Ok(()),
            Stop::Length => (
                ErrorKind::Truncated,
                format!("the answer of `{model}` was cut at {most} tokens"),
            ),
            Stop::Refusal => {
                let reason = after_colon(&question.draft.text);
                let message = format!("`{model}` declined to answer{reason}");
                (ErrorKind::Refused, message)
            }
        };
        Err(Error::new(kind, message).after(self.bill(question)))
    }

    /// Usage and cost of the draft plus those of the earlier answer.
    fn bill(&self, question: &Question<'_>) -> Paid {
        let draft = &question.draft;
        let draft = Paid {
            text: draft.text.clone(),
            usage: draft.tokens.map(Usage::from),
            cost_usd: draft.cost_usd.or_else(|| self.price(draft.tokens?)),
        };
        let Some(earlier) = &question.earlier else {
            return draft;
        };
        if draft.text.is_empty() && draft.usage.is_none() {
            return earlier.clone();
        }
        Paid {
            usage: earlier.usage.zip(draft.usage).map(|(a, b)| Usage {
                input_tokens: a.input_tokens.saturating_add(b.input_tokens),
                output_tokens: a.output_tokens.saturating_add(b.output_tokens),
            }),
            cost_usd: earlier.cost_usd.zip(draft.cost_usd).map(|(a, b)| a + b),
            ..draft
        }
    }
}

/// Error of a model that does not answer within its time limit.
pub(super) fn timed_out(model: &str, limit: Duration) -> Error {
    let seconds = limit.as_secs_f64();
    let message = format!("`{model}` did not answer within {seconds} s");
    Error::new(ErrorKind::TimedOut, message)
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
        assert_eq!(reply.cost_usd, Some(0.5));
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

    #[test]
    fn token_counts_of_two_answers_saturate() {
        let most = u64::MAX;
        let script = format!(
            r#"{{"when": {{"contains": ["was not accepted"]}}, "reply": {{"rule": 1}},
                 "usage": {{"input_tokens": {most}, "output_tokens": {most}}}}}"#
        )
        .replace('\n', " ");
        let script = format!(
            "{script}\n{}",
            r#"{"reply": "no", "usage": {"input_tokens": 7, "output_tokens": 2}}"#
        );
        let usage = ask(&script, Some(form())).unwrap().usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (most, most));
    }
}
