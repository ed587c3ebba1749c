//! A session file as a model is asked about it: its calls, and the messages between them, redacted.

use crate::lessons::asking::found_out::found_out;
use crate::lessons::asking::session_calls::{SessionCall, SessionCalls, SessionHead};
use crate::lessons::recovery::recover::analyse;
use crate::store::{project_of_session, same_project};
use memctl_redact::Clean;
use memctl_sessions::{Format, Remark, Speaker, Step};

use super::digest::Item;
use super::past_sessions::PastOptions;
use super::session_files::{SessionFile, WholeSession};

/// Content of a session file.
#[derive(Debug, Default)]
pub(super) struct ReadSession {
    /// Detected format.
    pub(super) format: Option<Format>,
    /// Calls.
    pub(super) calls: SessionCalls,
    /// Calls and messages.
    pub(super) items: Vec<Item>,
}

impl ReadSession {
    /// Returns `true` if nothing failed and nothing was found out.
    pub(super) fn is_dull(&self) -> bool {
        let calls = &self.calls.calls;
        calls.len() < 2
            || (!calls.iter().any(|call| call.failed) && found_out(&self.calls).is_empty())
    }
}

/// Reads a session; `None` if the file is none, or is of another project.
pub(super) fn read(file: &SessionFile, options: &PastOptions) -> Option<ReadSession> {
    let session = WholeSession::read(file, options.format, options.project.as_deref())?;
    let WholeSession {
        format,
        id,
        steps,
        remarks,
    } = session;
    let cwd = |step: &Step| step.cwd.clone();
    let directory = steps.iter().find_map(cwd).unwrap_or_default();
    let project = project_of_session(&directory);
    let own = options.project_name.as_deref();
    let own = own.filter(|name| same_project(name, &project));
    let head = SessionHead {
        session: clean(&id),
        project: clean(own.unwrap_or(&project)),
    };
    let items = items(&steps, &remarks);
    let calls = items.iter().filter_map(|item| match item {
        Item::Call(call) => Some(call.clone()),
        _ => None,
    });
    let calls = SessionCalls {
        calls: calls.collect(),
        head,
    };
    Some(ReadSession {
        format,
        calls,
        items,
    })
}

/// Calls and messages in their order, redacted.
fn items(steps: &[Step], remarks: &[Remark]) -> Vec<Item> {
    let failures = analyse(steps, remarks).failures;
    let mut items = Vec::new();
    let mut remarks = remarks.iter().peekable();
    for (place, step) in steps.iter().enumerate() {
        while let Some(remark) = remarks.next_if(|remark| remark.before <= place) {
            items.extend(message(remark));
        }
        items.push(Item::Call(SessionCall {
            tool: step.tool.clone(),
            call: clean(&step.call_text()),
            failed: failures.binary_search(&step.index).is_ok(),
            output: clean(&step.output),
        }));
    }
    items.extend(remarks.filter_map(message));
    items
}

fn message(remark: &Remark) -> Option<Item> {
    let text = clean(&remark.text);
    match remark.by {
        Speaker::User => Some(Item::Person(text)),
        Speaker::Agent => Some(Item::Agent(text)),
        Speaker::Other => None,
    }
}

/// Redacts a text and strips what this program showed the agent.
fn clean(text: &str) -> String {
    Clean::of_owned(memctl_redact::strip_fenced(text).into_owned()).into_string()
}
