//! Corrections that a person gives an agent in the chat, detected in their message.
//!
//! - `gate`: cheap tests of a message, made for recall. `own_words`: what of it the person says. `forms`: the forms
//!   of speech of a demand (`cues.txt`).
//! - `messages`: the newest messages, as the witness of a quote.
//! - `heard`: the rule as the agent gives it, checked, with its `patterns`. `record`: the candidate that it becomes.
//!
//! The program notices and checks, the agent words, a person approves. An agent's report never removes a rule
//! of the user.

mod forms;
mod gate;
mod heard;
mod messages;
mod own_words;
mod patterns;
mod record;

pub(crate) use gate::{demands, may_be_lasting};
pub use heard::{Earlier, HeardArgs};
pub(crate) use messages::{MadeCall, Message, retain};
pub use patterns::SeeArg;
pub use record::{EarlierRule, EarlierState, HeardReport, record_heard, record_said};

/// Question to an agent when a message may be lasting.
pub(crate) const QUESTION: &str = "memctl: if this message says something that is to hold in later \
    sessions too (a correction, a standing wish, or the end of one), record it now with the tool \
    `correct`, or: memctl correct --heard '{\"rule\": one line with both halves, \"when\", \"not\", \
    \"do\", \"scope\": \"project|everywhere\", \"quote\": the user's exact words, \"commands\": \
    [\"^regex of a command that breaks it\"], \"paths\": [of a changed file], \"content\": [of new text; \
    with paths: in these files only], \"replaces\": true if it changes an earlier one}'. \"Commit only \
    after make check\" has no \"commands\", but \"see\": [{\"match\": \"^git commit\", \"after\": \
    \"^make check\"}], so that a commit after it is fine. If it is about this task only, record nothing \
    and do not mention it.";
