//! Ids: resolution of what a user types, or what an old log names; and removed records.
//!
//! A removed id is taken for every caller; removed content is visible only to its user. A tombstone
//! does not name a skill, so a limited scope sees little.

use std::borrow::Cow;

use memctl_files::json;

use crate::model::{Kind, LOCAL_ID, Scope, SkillPath, local_number, numbered};
use crate::store::files::tombstones;
use crate::store::{Error, ForgottenRecords, Scoped, Selection, Tombstone};

/// Number of ids searched for suggestions.
const SUGGEST_AMONG: usize = 2_000;

impl Scoped {
    /// Returns the id that a record has now: one that was approved has another than before.
    pub fn current_id(&self, kind: Kind, id: &str) -> Result<String, Error> {
        let Some(number) = local_number(kind, id) else {
            return Ok(id.to_owned());
        };
        let snapshots = self.snapshots(kind)?;
        for snapshot in &snapshots {
            if snapshot.holds(id)? {
                return Ok(id.to_owned());
            }
        }
        let was = |text: &[u8]| json::string_field(text, LOCAL_ID).is_some_and(|own| own == id);
        let Some(shared) = snapshots.first() else {
            return Ok(id.to_owned());
        };
        // An approval keeps the number where it can.
        let likely = numbered(kind, number);
        if let Some((_, entry)) = self.find_in(shared, &likely)?
            && was(&entry.text)
        {
            return Ok(likely);
        }
        for row in shared.rows() {
            let text = shared.read(&row)?;
            if memchr::memmem::find(&text, id.as_bytes()).is_some()
                && was(&text)
                && let Some(now) = json::string_field(&text, kind.id_field())
            {
                return Ok(now.into_owned());
            }
        }
        Ok(id.to_owned())
    }

    /// Returns the ids that a record has had, whichever of them is given.
    pub fn both_ids(&self, id: &str) -> Result<Vec<String>, Error> {
        let mut ids = vec![id.to_owned()];
        if let Some(kind) = Kind::of_id(id)
            && let Some(entry) = self
                .find(kind, &id.to_uppercase())?
                .or(self.find(kind, id)?)
        {
            ids.extend(json::string_field(&entry.text, LOCAL_ID).map(Cow::into_owned));
            ids.push(entry.id);
        }
        Ok(ids)
    }

    /// Resolves an id, an id prefix, or `latest` to a full id, optionally within one skill.
    pub fn resolve(
        &self,
        kind: Kind,
        selector: &str,
        skill: Option<&SkillPath>,
    ) -> Result<String, Error> {
        let not_found = |similar| Error::NotFound {
            kind: Some(kind),
            id: selector.to_owned(),
            similar,
        };
        if selector == "latest" {
            let newest = Selection {
                skill,
                newest: Some(1),
            };
            let mut id = None;
            self.each_entry(kind, &newest, &mut |entry| id = Some(entry.id))?;
            return id.ok_or_else(|| not_found(Vec::new()));
        }
        if let Some(entry) = self.find(kind, selector)? {
            return Ok(entry.id);
        }
        let wanted = selector.to_uppercase();
        let mut starting = Vec::new();
        let mut others = Vec::new();
        let selection = Selection::of(skill);
        let selected = self.select_all(kind, &selection)?;
        for (file, row) in selected.rows() {
            let id = String::from_utf8_lossy(row.id()).into_owned();
            if !wanted.is_empty() && id.to_uppercase().starts_with(&wanted) {
                starting.push((file, row));
            } else if others.len() < SUGGEST_AMONG {
                others.push(id);
            }
        }
        let mut ids = Vec::new();
        for (file, row) in starting {
            let entry = file.entry(row)?;
            if self.access().sees(kind, &entry.text) {
                ids.push(entry.id);
            }
        }
        match ids.len() {
            0 => Err(not_found(similar(selector, others))),
            1 => Ok(ids.remove(0)),
            count => {
                ids.truncate(5);
                Err(Error::Ambiguous {
                    id: selector.to_owned(),
                    count,
                    examples: ids,
                })
            }
        }
    }
}

/// Returns the ids most similar to the typed text.
fn similar(typed: &str, ids: Vec<String>) -> Vec<String> {
    let mut scored: Vec<(f64, String)> = ids
        .into_iter()
        .map(|id| (strsim::jaro_winkler(typed, &id), id))
        .filter(|(score, _)| *score > 0.85)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, id)| id).collect()
}

impl Scoped {
    /// Returns the tombstone of a record of this kind with this content.
    pub fn tombstone_of(&self, kind: Kind, content: &str) -> Result<Option<Tombstone>, Error> {
        let key = self.identity().map(|identity| identity.tombstone_key);
        let digest = key.map(|key| tombstones::digest(&key, kind, content));
        let is_it = |t: &Tombstone| Some(&t.digest) == digest.as_ref() && self.is_own_removal(t);
        let found = tombstones::of_kind(self.directory(), kind)?;
        Ok(found.rev().find(is_it))
    }

    /// Returns `true` if the viewer was allowed to see the removed record.
    fn is_own_removal(&self, tombstone: &Tombstone) -> bool {
        !tombstone.kind.has_user() || self.viewer().sees(tombstone.user_id.as_deref())
    }

    /// Returns the ids of removed records of a kind with their tombstone lines. Empty for callers
    /// with limited access.
    pub fn tombstone_lines(&self, kind: Kind) -> Result<Vec<(String, String)>, Error> {
        if !self.sees_all() {
            return Ok(Vec::new());
        }
        let lines = tombstones::of_kind(self.directory(), kind)?;
        let lines = lines.map(|t| Ok((t.id.clone(), serde_json::to_string(&t)?)));
        lines.collect()
    }

    /// Returns all removed records.
    pub fn all_forgotten(&self) -> Result<ForgottenRecords, Error> {
        ForgottenRecords::read(self.directory(), &|t| self.is_own_removal(t))
    }

    /// Returns the tombstone of the record with this id. Always `None` in a limited scope, because
    /// a tombstone does not name the skill.
    pub fn tombstone(&self, kind: Kind, id: &str) -> Result<Option<Tombstone>, Error> {
        let mut found = tombstones::of_kind(self.directory(), kind)?.rev();
        let found = found.find(|tombstone| tombstone.id.eq_ignore_ascii_case(id));
        let is_seen = |found: &Tombstone| *self.scope() == Scope::All && self.is_own_removal(found);
        Ok(found.filter(is_seen))
    }
}
