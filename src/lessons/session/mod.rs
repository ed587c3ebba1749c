//! Calls of a session, of a running one or of a past one.
//!
//! - `calls`: each call with its result, in the log of a running session. `marks`: what became of the question to
//!   its agent.
//! - `recovered`: failures that the newest call has recovered.
//! - `call_match`: the calls that a written command occurs in.

pub(crate) mod call_match;
pub(crate) mod calls;
pub(crate) mod marks;
pub(crate) mod recovered;

use memctl_redact::Clean;

/// Redacts a session text and strips the hints that this program showed the agent. Every text of a
/// session passes here before it is stored or cut.
pub(crate) fn clean(text: &str) -> Clean<'static> {
    Clean::of_owned(memctl_redact::strip_fenced(text).into_owned())
}

/// Redacts a session text, uncut.
pub(crate) fn redacted(text: &str) -> String {
    clean(text).into_string()
}
