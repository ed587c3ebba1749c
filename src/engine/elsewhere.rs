//! What another store has found, as results of this one's form: within what the caller may see, and with
//! the excerpt that fits the words.

use std::time::Instant;

use crate::guard;
use crate::model::{Kind, Trust};
use crate::search::{snippet, words};
use crate::store::{Entry, text_field};

use super::find::{FindReport, Found, Ranks, SNIPPET, document, rounded};
use super::{Engine, milliseconds};

/// Something that was found elsewhere.
#[derive(Debug)]
pub struct Elsewhere {
    /// Its kind.
    pub kind: Kind,
    /// Its id there.
    pub id: String,
    /// The workspace that it is of, if it is of one.
    pub origin: Option<String>,
    /// The record, if it is of a workspace.
    pub entry: Option<String>,
    /// Its text.
    pub content: String,
    /// Higher is better.
    pub score: f64,
    /// Its ranks.
    pub ranks: Ranks,
}

impl Engine {
    /// The results of a search elsewhere, best first, as far as the caller may see them.
    pub fn found_elsewhere(
        &self,
        query: &str,
        found: Vec<Elsewhere>,
        start: Instant,
    ) -> FindReport {
        let own = self.store.identity().map(|identity| identity.origin);
        let asked = words(query);
        let results = found.into_iter().filter_map(|found| {
            let entry = found.entry.as_deref().unwrap_or("{}").as_bytes();
            // A row of another program says neither whose nor which skill's it is.
            let is_seen = self.store.sees_all() || self.store.covers(found.kind, entry);
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
            let content = guard::redact(&found.content).text.into_owned();
            is_seen.then(|| Found {
                skill: text_field(entry, "skill"),
                user_id: document.as_ref().and_then(|d| d.user_id.clone()),
                memory_type: document.as_ref().and_then(|d| d.memory_type),
                score: rounded(found.score),
                snippet: snippet(&content, &asked, SNIPPET),
                content,
                ranks: found.ranks,
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
        let read = results.iter().map(|found| {
            let touched = (found.id.as_str(), found.user_id.as_deref());
            (found.kind, touched)
        });
        let warnings = self.note_read(read).into_iter().collect();
        FindReport {
            query: query.to_owned(),
            rewritten: None,
            results,
            asked: None,
            took_ms: milliseconds(start.elapsed()),
            warnings,
        }
    }
}
