//! Answers to events, in the form that each agent host takes.
//!
//! Codex ignores answers with unknown keys, Copilot those in an envelope, and Cursor blocks a call after an
//! answer of another form. No answer permits a call, and a call that the host would ask about is still asked
//! about.

use serde_json::{Value, json};

use memctl_redact::shorten;

use super::respond::note;
use super::{Event, Host, LONGEST_ANSWER};
use crate::lessons::SessionCalls;
use crate::model::CallAction;
use crate::rules::hearing::{MadeCall, Message, QUESTION, retain};
use crate::store::Scoped;

/// Number of calls before a message that it may be about.
const HEARD_AFTER: usize = 3;

impl Host {
    /// Returns the answer that adds `text` to the model's context. A text above the limit is shortened
    /// here, with its fences kept closed.
    pub fn answer(self, event: &Event, text: &str) -> String {
        let text = shorten(text, LONGEST_ANSWER);
        match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini | Self::OpenCode => {
                let output = json!({"hookEventName": event.name, "additionalContext": text});
                json!({"hookSpecificOutput": output})
            }
            Self::Copilot => json!({"additionalContext": text}),
            Self::Cline => json!({"cancel": false, "contextModification": text}),
            Self::Cursor => json!({"additional_context": text}),
        }
        .to_string()
    }

    /// Returns the answer to an agent that is about to stop: it goes on with this text.
    pub fn answer_stop(self, text: &str) -> String {
        let decision = match self {
            Self::Gemini => "deny",
            _ => "block",
        };
        let reason = shorten(text, LONGEST_ANSWER);
        json!({"decision": decision, "reason": reason}).to_string()
    }

    /// Returns the answer to a call that rules act on.
    pub(super) fn answer_before(self, event: &Event, action: CallAction, rules: &str) -> String {
        let rules = shorten(rules, LONGEST_ANSWER - 200);
        match action {
            CallAction::Off | CallAction::Note => self.answer(event, &note(&rules)),
            CallAction::Ask => {
                let asked =
                    format!("The user wants to be asked about this call, by their rule: {rules}");
                match self {
                    // They cannot ask for a rule; Codex 0.169.0 discards the answer.
                    Self::Codex | Self::OpenCode | Self::Cline => self.answer(event, &asked),
                    _ => self.decision(event, "ask", &asked).to_string(),
                }
            }
            CallAction::Deny => {
                let refused = format!("A rule of the user refuses this call: {rules}");
                self.decision(event, "deny", &refused).to_string()
            }
        }
    }

    /// A decision about a call, with its reason.
    fn decision(self, event: &Event, decision: &str, reason: &str) -> Value {
        match self {
            Self::ClaudeCode | Self::Codex | Self::OpenCode => {
                let output = json!({"hookEventName": event.name, "permissionDecision": decision,
                    "permissionDecisionReason": reason});
                json!({"hookSpecificOutput": output})
            }
            Self::Copilot => {
                json!({"permissionDecision": decision, "permissionDecisionReason": reason})
            }
            Self::Cursor => {
                json!({"permission": decision, "user_message": reason, "agent_message": reason})
            }
            Self::Gemini if decision == "ask" => {
                json!({"decision": decision, "systemMessage": reason})
            }
            Self::Gemini => json!({"decision": decision, "reason": reason}),
            Self::Cline => json!({"cancel": true, "errorMessage": reason}),
        }
    }

    /// Returns the answer to a call whose rules could not be checked in time. The call runs; the user
    /// or the model learns that nothing was checked.
    pub fn late_answer(self, event: &Event) -> String {
        let message = "memctl had no time to check the user's rules about this call";
        match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini => {
                json!({"systemMessage": message}).to_string()
            }
            Self::Copilot | Self::OpenCode | Self::Cline | Self::Cursor => {
                self.answer(event, message)
            }
        }
    }

    /// Retains a message of the person. Returns the question to the agent if the message may state
    /// something lasting, and the host takes context with a prompt.
    pub(crate) fn hear(self, event: &Event, store: &Scoped, message: Message) -> Option<String> {
        let calls = SessionCalls::of_session(store, &self.session(event)).calls;
        let recent = calls.into_iter().rev().take(HEARD_AFTER);
        let recent = recent.map(|call| MadeCall {
            tool: call.tool,
            call: call.call,
        });
        let message = message.after(recent.collect());
        let asks = message.may_be_lasting && self.takes_context_at_prompt();
        retain(store, message).ok()?;
        asks.then(|| self.answer(event, QUESTION))
    }

    /// Returns the session id with the agent host's name, because two agent hosts may use the same
    /// id.
    pub fn session(self, event: &Event) -> String {
        format!("{}/{}", self.name(), event.session_id)
    }
}
