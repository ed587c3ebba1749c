//! Finds the record that a user means by an id, a part of one or an old one, and that an old log names.

use memctl_files::json;

use crate::model::{Kind, LOCAL_ID, SkillPath, local_number, split_origin};
use crate::store::renaming;
use crate::store::{Entry, Error, Scoped, Selection, Tombstone};

impl Scoped {
    /// Returns the record that had an id, and was created at this time: a merge may have given it another id, and its
    /// own to another record. An empty time is not compared.
    pub(crate) fn find_created(
        &self,
        kind: Kind,
        id: &str,
        created: &str,
    ) -> Result<Option<Entry>, Error> {
        let is_it = |entry: &Entry| {
            let text = String::from_utf8_lossy(&entry.text);
            created.is_empty() || renaming::created(kind, &text) == created
        };
        if let Some(entry) = self.find(kind, id)?.filter(is_it) {
            return Ok(Some(entry));
        }
        let mut found = None;
        let quoted = format!("\"{id}\"");
        self.each_entry(kind, &Selection::default(), &mut |entry| {
            let names = memchr::memmem::find(&entry.text, quoted.as_bytes()).is_some();
            if names
                && renaming::former_ids(&entry.text)
                    .iter()
                    .any(|was| was == id)
                && is_it(&entry)
            {
                found = Some(entry);
            }
        })?;
        Ok(found.filter(|_| !created.is_empty()))
    }

    /// Returns the id that a record has now: one that was approved has another than before.
    pub fn current_id(&self, kind: Kind, id: &str) -> Result<String, Error> {
        if local_number(kind, id).is_none() {
            return Ok(id.to_owned());
        }
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

    /// Resolves an id, an id prefix, or `latest` to a full id, optionally within one skill. Fails with
    /// [`Error::Forgotten`] for a deleted record.
    pub fn resolve(
        &self,
        kind: Kind,
        selector: &str,
        skill: Option<&SkillPath>,
    ) -> Result<String, Error> {
        let not_found = || {
            let elsewhere = self.of_another_workspace(kind, selector);
            let known = elsewhere.or_else(|| self.forgotten(kind, selector));
            known.unwrap_or_else(|| Error::not_found(kind, selector))
        };
        if selector == "latest" {
            let newest = Selection::newest(skill, 1);
            let mut id = None;
            self.each_entry(kind, &newest, &mut |entry| id = Some(entry.id))?;
            return id.ok_or_else(not_found);
        }
        if let Some(entry) = self.find(kind, selector)? {
            return Ok(entry.id);
        }
        let wanted = selector.to_uppercase();
        let mut ids = Vec::new();
        self.each_row(kind, &Selection::of(skill), &mut |file, row| {
            let id = String::from_utf8_lossy(row.id());
            if !wanted.is_empty() && id.to_uppercase().starts_with(&wanted) {
                let entry = file.entry(row)?;
                ids.extend(self.admits(&entry).then_some(entry.id));
            }
            Ok(())
        })?;
        match ids.len() {
            0 => Err(not_found()),
            1 => Ok(ids.remove(0)),
            count => {
                ids.truncate(5);
                Err(Error::input(
                    format!("`{}` is a prefix of {count} ids", selector.escape_debug()),
                    format!("give a longer prefix: {}", ids.join(", ")),
                ))
            }
        }
    }

    /// Says when a deleted record was removed.
    fn forgotten(&self, kind: Kind, id: &str) -> Option<Error> {
        let Tombstone { id, at, .. } = self.tombstone(kind, id).ok()??;
        let day = at.split('T').next().unwrap_or_default().to_owned();
        Some(Error::Forgotten { id, kind, day })
    }

    /// Refuses to change a pulled record: only the workspace that it comes from can.
    fn of_another_workspace(&self, kind: Kind, given: &str) -> Option<Error> {
        let (id, Some(origin)) = split_origin(given) else {
            return None;
        };
        self.pulled_as(origin).ok()?.store.find(kind, id).ok()??;
        Some(Error::usage(
            format!("`{}` belongs to another workspace", given.escape_debug()),
            format!(
                "type it there as `{id}`, then `memctl sync` there and here; to let all of it count: \
                 memctl trust --origin {origin}"
            ),
        ))
    }
}
