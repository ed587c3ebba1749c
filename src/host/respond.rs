//! From an event to what the agent is told.

use crate::engine::{Adviser, Error, HintOptions};
use crate::guard::fence;
use crate::learn::hint::{Hint, MAX_HINTS, STATEMENT, render_blocks};
use crate::model::Trust;

use super::{Event, EventKind, Host};

/// What is told at the start of a session, in characters.
const BRIEFING: usize = 2_000;

/// Takes in an event, and answers what the host is to print; `None` for nothing.
pub fn respond(host: Host, event: &Event, adviser: &Adviser<'_>) -> Result<Option<String>, Error> {
    let session = host.session(event);
    let text = match event.kind {
        EventKind::ToolFailed => {
            let options = HintOptions {
                error: event.output.clone(),
                tool: event.tool.clone(),
                command: Some(event.input.clone()),
                session: Some(session),
                max_hints: MAX_HINTS,
            };
            told(adviser.hint(&options)?.hints, &(adviser.random)())
        }
        EventKind::ToolSucceeded => {
            adviser.succeeded(&session, event.tool.as_deref(), &event.input)?;
            String::new()
        }
        EventKind::SessionStart => {
            let briefing = adviser.briefing(&session, BRIEFING)?;
            let mut text = briefing.rules;
            if !briefing.observed.is_empty() {
                text.push_str(&fence(&[briefing.observed], &(adviser.random)()));
            }
            text
        }
        EventKind::SessionEnd => {
            adviser.ended(&session)?;
            String::new()
        }
        EventKind::Prompt => String::new(),
    };
    Ok((!text.is_empty()).then(|| host.answer(event, &text)))
}

/// The hints as a model is told of them: as a fact, and what nobody has approved as data.
fn told(hints: Vec<Hint>, nonce: &str) -> String {
    let (observed, approved): (Vec<Hint>, Vec<Hint>) = hints
        .into_iter()
        .partition(|hint| hint.trust == Trust::Observed);
    let mut text = String::new();
    if !approved.is_empty() || !observed.is_empty() {
        text.push_str(STATEMENT);
        text.push_str(&render_blocks(&approved));
    }
    if !observed.is_empty() {
        text.push_str(&fence(&[render_blocks(&observed)], nonce));
    }
    text
}
