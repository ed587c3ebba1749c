//! `hint`: what worked when an error came before.
//!
//! It only reads. The hooks of a host know what came of a hint and keep count of it; who asks here does
//! not say what he did next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{Adviser, Engine, HintOptions};
use crate::error::Explained;
use crate::learn::hint::{Hint, MAX_HINTS, STATEMENT, render_block};
use crate::model::{Kind, Trust};

use super::fenced::{apart, is_data};
use super::search::is_zero;
use super::{NOTICE, Report, room, told};

/// The shortest that a piece of code is cut to, in characters.
const LEAST: usize = 40;

/// What failed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HintArgs {
    /// What the failing call printed
    pub error: String,
    /// The command or code that failed
    #[serde(default)]
    pub command: Option<String>,
    /// Longest answer, 1500 if not given
    #[serde(default)]
    pub max_tokens: Option<u32>,
}

/// What is known about it.
#[derive(Debug, Serialize)]
pub struct Hints {
    /// What the hints that are observed are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// The key of the error; `None` where the text names none.
    pub error_key: Option<String>,
    /// What worked before, best first.
    pub hints: Vec<Hinted>,
    /// The rules of the class of error that this is.
    pub pitfalls: Vec<String>,
    /// How many more were found and had no room.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

/// What worked before.
#[derive(Debug, Serialize)]
pub struct Hinted {
    /// The fix.
    pub id: String,
    /// How far it may be believed.
    pub trust: Trust,
    /// The key of the error that it is about.
    pub error_key: String,
    /// What failed then.
    pub wrong: String,
    /// What worked then.
    pub correct: String,
    /// What that printed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub printed: String,
    /// How well it fits, from 0 to 1.
    pub score: f64,
    /// Why it is shown.
    pub why: String,
}

pub(super) fn hint(engine: &Engine, args: HintArgs) -> Result<Hints, Explained> {
    if args.error.trim().is_empty() {
        return Err(Explained::usage(
            "`error` is empty",
            "give in `error` what the failing call printed",
        ));
    }
    let adviser = adviser(engine);
    let report = adviser
        .hint(&HintOptions {
            error: args.error,
            command: args.command,
            max_hints: MAX_HINTS,
            ..HintOptions::default()
        })
        .map_err(told)?;
    let hints = Hints {
        notice: None,
        error_key: report.error_key.as_deref().map(room::name),
        hints: report.hints.into_iter().map(hinted).collect(),
        pitfalls: report.pitfalls,
        left_out: 0,
    };
    Ok(hints.within(room::of(args.max_tokens)))
}

/// Who gives hints for an engine.
pub(super) fn adviser(engine: &Engine) -> Adviser<'_> {
    Adviser {
        store: &engine.store,
        now: engine.now,
        random: engine.random,
        withhold: engine.settings.withhold,
    }
}

fn hinted(hint: Hint) -> Hinted {
    Hinted {
        id: room::name(&hint.id),
        trust: hint.trust,
        error_key: room::name(&hint.error_key),
        wrong: room::outward(&hint.failing_code),
        correct: room::outward(&hint.working_code),
        printed: room::outward(&hint.success_output),
        score: hint.score,
        why: hint.why,
    }
}

impl Hinted {
    fn is_data(&self) -> bool {
        is_data(Kind::Fix, self.trust)
    }
}

impl Hints {
    /// As much of it as there is room for. What was printed goes first, then the last hints; the best
    /// one is cut, and goes only where not even its beginning has room.
    fn within(mut self, room: usize) -> Self {
        let mut most = usize::MAX;
        loop {
            self.notice = self.hints.iter().any(Hinted::is_data).then_some(NOTICE);
            if room::fits(&self, room) {
                return self;
            }
            if let Some(hint) = self.hints.iter_mut().find(|hint| !hint.printed.is_empty()) {
                hint.printed.clear();
            } else if self.hints.len() > 1 {
                self.hints.pop();
                self.left_out += 1;
            } else if let Some(hint) = self.hints.first_mut().filter(|_| most > LEAST) {
                let longest = hint.wrong.len().max(hint.correct.len());
                most = (longest.max(hint.error_key.len()).min(most) / 2).max(LEAST);
                for text in [&mut hint.wrong, &mut hint.correct, &mut hint.error_key] {
                    *text = room::beginning(text, most).into_owned();
                }
            } else if self.pitfalls.pop().is_none() {
                if self.hints.pop().is_none() {
                    // The key of the error is what remains.
                    let key = self.error_key.take();
                    self.error_key = key.map(|key| room::beginning(&key, LEAST).into_owned());
                    return self;
                }
                self.left_out += 1;
            }
        }
    }
}

impl Report for Hints {
    fn text(&self, nonce: &str) -> String {
        let mut text = String::new();
        if self.hints.is_empty() && self.pitfalls.is_empty() && self.left_out == 0 {
            text.push_str("Nothing is known about this.\n");
        }
        if !self.hints.is_empty() {
            text.push_str(STATEMENT);
        }
        text.push_str(&apart(&self.hints, Hinted::is_data, blocks, nonce));
        for rule in &self.pitfalls {
            text.extend(["Pitfall: ", rule, "\n"]);
        }
        if self.left_out > 0 {
            let more = self.left_out.to_string();
            text.extend([&more, " more had no room: give a larger `max_tokens`.\n"]);
        }
        text
    }
}

/// Each hint in the form of the hooks, under its id.
fn blocks(hints: &[&Hinted]) -> String {
    let mut text = String::new();
    for hint in hints {
        text.extend(["\n", &hint.id, " (", &hint.why, ")"]);
        text.push_str(&render_block(&hint.error_key, &hint.wrong, &hint.correct));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hints_fit_their_budget_in_closed_fences(
            texts in proptest::collection::vec((room::tests::text(), room::tests::text(), any::<bool>()), 0..4),
            budget in 200_usize..2_000,
        ) {
            let hinted = |(wrong, right, said): &(String, String, bool)| Hinted {
                id: room::name(right),
                trust: if *said { Trust::Approved } else { Trust::Observed },
                error_key: room::name(wrong),
                wrong: room::outward(wrong),
                correct: room::outward(right),
                printed: room::outward(wrong),
                score: 1.0,
                why: "the same error".to_owned(),
            };
            let hints = Hints {
                notice: None,
                error_key: texts.first().map(|(wrong, ..)| room::name(wrong)),
                hints: texts.iter().map(hinted).collect(),
                pitfalls: vec!["Check the key first.".to_owned()],
                left_out: 0,
            };
            room::tests::check(&hints.within(budget), budget);
        }
    }
}
