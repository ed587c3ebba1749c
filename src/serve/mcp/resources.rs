//! Resources: what a person attaches to a conversation, read and never changed.
//!
//! ```text
//! memctl://memories        newest memories, one line each
//! memctl://sessions        newest sessions
//! memctl://sessions/ID     session with the end of its log
//! memctl://records/ID      record of any kind
//! ```
//!
//! A host puts the text of a resource before a model as it is. So what no person approved, and all
//! that executions and sessions say, is fenced, without secrets and hidden characters.
//!
//! Deliberately absent: subscriptions and notifications, because no process watches the memory for a
//! server on standard input.

use rmcp::ErrorData;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde::Serialize;

use crate::model::Kind;
use crate::model::error::{Kind as ErrorKind, UserError};
use crate::notes::sessions;
use crate::store::workspace::Workspace;
use crate::{notes, store};

use super::super::operations::{apart, is_data, sanitize};

const MEMORIES: &str = "memctl://memories";
const SESSIONS: &str = "memctl://sessions";
const RECORDS: &str = "memctl://records";
const TEXT: &str = "text/plain";

/// Maximum number of memories, sessions, and log lines of a session.
const MEMORIES_LISTED: usize = 50;
const SESSIONS_LISTED: usize = 20;
const LOG_LINES: usize = 100;

/// Resource that a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResourceUri {
    /// The newest memories.
    Memories,
    /// The newest sessions.
    Sessions,
    /// One session, by id.
    Session(String),
    /// One record, by id.
    Record(String),
}

impl ResourceUri {
    /// Returns what a URI names; `None` if it names nothing here.
    pub(super) fn from_uri(uri: &str) -> Option<Self> {
        let of = |prefix: &str| {
            let id = uri.strip_prefix(prefix)?.strip_prefix('/')?;
            (!id.is_empty()).then(|| id.to_owned())
        };
        match uri {
            MEMORIES => Some(Self::Memories),
            SESSIONS => Some(Self::Sessions),
            _ => of(SESSIONS)
                .map(Self::Session)
                .or_else(|| of(RECORDS).map(Self::Record)),
        }
    }

    /// Reads it as text for a model.
    pub(super) fn read(&self, workspace: &Workspace) -> Result<String, UserError> {
        let nonce = (workspace.random)();
        match self {
            Self::Memories => memories(workspace, &nonce),
            Self::Sessions => {
                let found = sessions::list(workspace, None, SESSIONS_LISTED)?;
                fenced(&found, &nonce)
            }
            Self::Session(id) => fenced(&sessions::show(workspace, id, LOG_LINES)?, &nonce),
            Self::Record(id) => record(workspace, id, &nonce),
        }
    }
}

/// Returns the resources that are always there.
pub(super) fn resources() -> Vec<Resource> {
    vec![
        Resource::new(MEMORIES, "memories")
            .with_title("Newest memories")
            .with_description("Notes that people and agents left for later work")
            .with_mime_type(TEXT),
        Resource::new(SESSIONS, "sessions")
            .with_title("Newest sessions")
            .with_description("What agents worked on, with state and progress")
            .with_mime_type(TEXT),
    ]
}

/// Returns the forms of the URIs with an id.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{SESSIONS}/{{id}}"), "session")
            .with_title("Session with its log")
            .with_mime_type(TEXT),
        ResourceTemplate::new(format!("{RECORDS}/{{id}}"), "record")
            .with_title("Record")
            .with_description("Rule, procedure, memory or execution, by id such as REFL-003")
            .with_mime_type(TEXT),
    ]
}

/// Returns the text as the content of a resource.
pub(super) fn contents(uri: &str, text: String) -> ResourceContents {
    ResourceContents::text(text, uri)
}

/// Error about a URI that names nothing here.
pub(super) fn unknown(uri: &str) -> ErrorData {
    let message = format!(
        "unknown resource `{}`; available: {MEMORIES}, {SESSIONS}, {SESSIONS}/ID, {RECORDS}/ID",
        uri.escape_debug()
    );
    ErrorData::resource_not_found(message, None)
}

/// Error about a resource that cannot be read.
pub(super) fn failed(error: &UserError) -> ErrorData {
    let text = super::words(error);
    if error.kind == ErrorKind::NotFound {
        ErrorData::resource_not_found(text, Some(error.json()))
    } else {
        ErrorData::internal_error(text, Some(error.json()))
    }
}

/// Memories, one line each: those that a person stands behind, then the others in a fence.
fn memories(workspace: &Workspace, nonce: &str) -> Result<String, UserError> {
    let found = notes::list_memories(workspace, None, &[], MEMORIES_LISTED)?;
    let line = |of: &&notes::Listed| {
        let kind = of.memory_type.map_or("", |kind| kind.name());
        let summary = sanitize(&of.summary);
        format!("{} {kind} {}: {summary}\n", sanitize(&of.id), of.created)
    };
    let is_data = |of: &notes::Listed| of.trust.is_none_or(|trust| is_data(Kind::Memory, trust));
    let lines = |of: &[&notes::Listed]| of.iter().map(line).collect();
    let text = apart(&found.records, is_data, lines, nonce);
    let more = found.total.saturating_sub(found.records.len() as u64);
    Ok(match more {
        0 => text,
        _ => text + &format!("{more} older memories are not listed\n"),
    })
}

/// Record as it is stored; in a fence if it is data.
fn record(workspace: &Workspace, id: &str, nonce: &str) -> Result<String, UserError> {
    let found = notes::show(workspace, id)?;
    if found.trust.is_none_or(|trust| is_data(found.kind, trust)) {
        return fenced(&found.record, nonce);
    }
    let json = memctl_redact::redact_json(found.record.get()).text;
    Ok(sanitize(&without_separators(&json)) + "\n")
}

/// JSON in a fence.
fn fenced(value: &impl Serialize, nonce: &str) -> Result<String, UserError> {
    let json = serde_json::to_string_pretty(value).map_err(store::Error::from)?;
    let json = memctl_redact::redact_json(&json).text;
    Ok(memctl_redact::fence(&[without_separators(&json)], nonce))
}

/// Escapes the line separators that JSON allows in a string: as line breaks they would end it, and what
/// follows would stand at the beginning of a line.
fn without_separators(json: &str) -> String {
    json.replace('\u{85}', "\\u0085")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_name_what_there_is() {
        let check = |uri: &str, expected: Option<ResourceUri>| {
            assert_eq!(ResourceUri::from_uri(uri), expected, "{uri}");
        };
        check("memctl://memories", Some(ResourceUri::Memories));
        check("memctl://sessions", Some(ResourceUri::Sessions));
        let session = ResourceUri::Session("claude-code/3f2a".to_owned());
        check("memctl://sessions/claude-code/3f2a", Some(session));
        let record = ResourceUri::Record("REFL-001@user".to_owned());
        check("memctl://records/REFL-001@user", Some(record));
        for uri in [
            "",
            "memctl://",
            "memctl://memories/",
            "memctl://sessions/",
            "memctl://records",
            "memctl://recordsREFL-001",
            "file:///etc/passwd",
            "MEMCTL://memories",
        ] {
            check(uri, None);
        }
    }
}
