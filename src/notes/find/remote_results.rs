//! Converts the search results of another store: applies the access filter and adds excerpts.

use std::time::Instant;

use memctl_search::{snippet, words};

use super::{FindReport, Found, Ranks, SNIPPET, rounded};
use crate::model::{Kind, Procedure, Trust};
use crate::notes::find::report;
use crate::store::workspace::records::document;
use crate::store::workspace::{Workspace, milliseconds};
use crate::store::{Entry, text_field};

/// Search result from another store.
#[derive(Debug)]
pub struct RemoteResult {
    /// Kind of the record.
    pub kind: Kind,
    /// Id of the record in that store.
    pub id: String,
    /// Workspace of the record; `None` if it belongs to none.
    pub origin: Option<String>,
    /// Stored entry as JSON; `None` for a row of another program.
    pub entry: Option<String>,
    /// Full text.
    pub content: String,
    /// Score; higher is better, comparable within one answer only.
    pub score: f64,
    /// Ranks of the result.
    pub ranks: Ranks,
}

/// Returns the results that the caller may see, in the given order.
pub fn remote_results(
    workspace: &Workspace,
    query: &str,
    found: Vec<RemoteResult>,
    start: Instant,
) -> FindReport {
    let own = workspace.store.identity().map(|identity| identity.origin);
    let asked = words(query);
    let results = found.into_iter().filter_map(|found| {
        let entry = found.entry.as_deref().unwrap_or("{}").as_bytes();
        // A row of another program names no user and no skill, so only unrestricted callers see
        // it.
        let is_seen = workspace.store.sees_all() || workspace.store.covers(found.kind, entry);
        let document = document(&Entry {
            kind: found.kind,
            id: found.id.clone(),
            text: entry.to_vec(),
            offset: 0,
        });
        let trust = found
            .entry
            .is_some()
            .then(|| document.as_ref().map(|d| d.trust));
        let is_procedure = found.kind == Kind::Procedure;
        let procedure = is_procedure.then(|| serde_json::from_slice::<Procedure>(entry).ok());
        let procedure = procedure.flatten();
        let content = memctl_redact::redact(&found.content).text.into_owned();
        is_seen.then(|| Found {
            skill: text_field(entry, "skill"),
            user_id: document.as_ref().and_then(|d| d.user_id.clone()),
            memory_type: document.as_ref().and_then(|d| d.memory_type),
            score: rounded(found.score),
            snippet: snippet(&content, &asked, SNIPPET),
            content,
            steps: procedure
                .map(|procedure| report::of(&procedure.fields()))
                .unwrap_or_default(),
            ranks: found.ranks,
            weak: false,
            explain: None,
            pulled: found.origin.is_some() && found.origin != own,
            trust: trust.flatten().unwrap_or(Trust::Observed),
            status: document.as_ref().and_then(|d| d.status.clone()),
            source: document.as_ref().and_then(|d| d.source.clone()),
            origin: found.origin,
            kind: found.kind,
            id: found.id,
        })
    });
    let results: Vec<Found> = results.collect();
    report::count(&workspace.store, &results);
    let read = results.iter().map(|found| {
        let touched = (found.id.as_str(), found.user_id.as_deref());
        (found.kind, touched)
    });
    let warnings = workspace.note_read(read).into_iter().collect();
    FindReport {
        query: query.to_owned(),
        rewritten: None,
        results,
        asked: None,
        took_ms: milliseconds(start.elapsed()),
        warnings,
    }
}
