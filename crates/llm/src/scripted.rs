//! Recorded replies, for tests and demonstrations.
//!
//! The format is JSON Lines:
//!
//! ```json
//! {"when": {"contains": ["resume"], "not_contains": ["skip gaps"]}, "reply": {"score": 7}}
//! {"reply": "any other question", "usage": {"input_tokens": 12, "output_tokens": 3}, "cost_usd": 0.01}
//! ```
//!
//! - `reply`: a string is returned verbatim, any other value as its JSON text;
//! - `when`: the system text or the question must contain all of `contains` and none of
//!   `not_contains`, case-sensitive; without it the reply always matches;
//! - `usage`, `cost_usd`: values that the answer reports; none by default.
//!
//! The first matching reply is always used: a script has no state, so only the question makes a
//! difference between two runs. An unknown field is an error.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ask::Draft;
use super::error::after_colon;
use super::request::{Tokens, shortened};
use super::{Error, ErrorKind, Request, Usage};

/// File of recorded replies.
#[derive(Debug)]
pub struct Scripted {
    /// `scripted/<name>`.
    pub(super) model: String,
    replies: Vec<Recorded>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    reply: Box<RawValue>,
    #[serde(default)]
    when: When,
    usage: Option<Usage>,
    cost_usd: Option<f64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct When {
    contains: Vec<String>,
    not_contains: Vec<String>,
}

impl Scripted {
    /// Parses recorded replies. `name` is the file stem, shown as `scripted/<name>`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] with the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let model = format!("scripted/{name}");
        let invalid = |line: usize, error: &serde_json::Error| {
            let message = format!("invalid recorded replies `{model}`: line {line}: {error}");
            Error::new(ErrorKind::Config, message)
        };
        let lines = (1..).zip(text.trim_start_matches('\u{feff}').lines());
        let replies = lines
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(number, line)| {
                serde_json::from_str(line).map_err(|error| invalid(number, &error))
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self { model, replies })
    }

    /// Returns the first matching reply.
    pub(super) fn answer(&self, request: &Request) -> Result<Draft, Error> {
        let mut missed = Vec::new();
        for (number, reply) in (1..).zip(&self.replies) {
            let Some(part) = reply.when.misses(request) else {
                return Ok(reply.draft());
            };
            missed.push(format!("reply {number} waits for {part}"));
        }
        let (replies, model) = (missed.len(), &self.model);
        let question = shortened(&request.user, 80).replace('\n', " ");
        let reasons = shortened(&missed.join("; "), 500);
        let message = format!(
            "none of the {replies} replies of `{model}` fits the question `{question}`{}",
            after_colon(&reasons)
        );
        Err(Error::new(ErrorKind::NoReply, message))
    }
}

impl Recorded {
    fn draft(&self) -> Draft {
        let reply = self.reply.get();
        Draft {
            text: serde_json::from_str(reply).unwrap_or_else(|_| reply.to_owned()),
            tokens: self.usage.map(|usage| Tokens {
                input: usage.input_tokens,
                output: usage.output_tokens,
                ..Tokens::default()
            }),
            cost_usd: self.cost_usd,
            ..Draft::default()
        }
    }
}

impl When {
    /// Describes the first condition that does not hold; `None` if all hold.
    fn misses(&self, request: &Request) -> Option<String> {
        let occurs = |part: &str| request.system.contains(part) || request.user.contains(part);
        let missing = self.contains.iter().find(|part| !occurs(part));
        let unwanted = || self.not_contains.iter().find(|part| occurs(part));
        missing
            .map(|part| format!("`{part}`"))
            .or_else(|| unwanted().map(|part| format!("a question without `{part}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(script: &str, system: &str, user: &str) -> Result<String, String> {
        let script = Scripted::parse("demo", script).map_err(|error| error.to_string())?;
        let request = Request {
            system: system.to_owned(),
            user: user.to_owned(),
            schema: None,
            max_tokens: 100,
        };
        script
            .answer(&request)
            .map(|draft| draft.text)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_reply_that_fits_is_given() {
        let lines = r#"
            {"when": {"contains": ["a", "b"]}, "reply": "both"}
            {"when": {"contains": ["a"], "not_contains": ["c"]}, "reply": {"x": 1.0, "big": 12345678901234567890123}}

            {"reply": "else"}
        "#;
        let check = |system, user, expected: &str| {
            assert_eq!(
                ask(lines, system, user),
                Ok(expected.to_owned()),
                "{system} {user}"
            );
        };
        check("a", "b", "both");
        check("", "a", r#"{"x": 1.0, "big": 12345678901234567890123}"#);
        check("c", "a", "else");
    }

    #[test]
    fn no_fitting_reply_is_explained() {
        let check = |script, expected: &str| {
            assert_eq!(ask(script, "", "why\nnot"), Err(expected.to_owned()));
        };
        check(
            "{\"reply\": 1, \"when\": {\"contains\": [\"x\"]}}\n{\"reply\": 2, \"when\": {\"not_contains\": [\"why\"]}}",
            "none of the 2 replies of `scripted/demo` fits the question `why not`: \
             reply 1 waits for `x`; reply 2 waits for a question without `why`",
        );
        check(
            "",
            "none of the 0 replies of `scripted/demo` fits the question `why not`",
        );
    }

    #[test]
    fn mistakes_in_the_file_are_named_by_their_place() {
        let fails = |script, place: &str| {
            let message = ask(script, "", "").unwrap_err();
            assert!(message.contains(place), "{message}");
        };
        fails("{\"reply\": 1}\n{\"reply\": }", "line 2");
        fails(
            "{\"reply\": 1}\n{\"repli\": 2}",
            "line 2: unknown field `repli`",
        );
        fails(
            r#"{"when": {"contain": ["x"]}, "reply": 1}"#,
            "unknown field `contain`",
        );
    }
}
