//! Imports records in this program's own format, byte for byte.
//!
//! A record that exists here is not imported twice, even under another id. A record whose id belongs to
//! another one gets a new id and keeps the old one in `imported_from`. So does a record that nobody has
//! approved, unless a clone cannot give its id. References among the imported records follow.
//! Tombstones stay in force unless a restore is requested. A record that has changed here since the
//! export stays as it is.

use std::collections::{HashMap, HashSet};

use memctl_files::json::{with_fields, with_other_strings};
use serde_json::json;

use super::detect::ParsedExport;
use super::existing::{FROM, Here, Known, Origin, created, digest, tests};
use super::{ImportOptions, ImportReport, Renamed};
use crate::model::{Kind, local_number};
use crate::store::workspace::records::{document, remembered};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings};
use crate::store::{
    DataFile, Entry, Frame, RawEntry as Text, Role, Tombstone, TrustSnapshot, foreign_lines, logs,
    redact, text_field,
};
use crate::upkeep::exchange::Skipped;
use crate::upkeep::exchange::import::existing;
use crate::upkeep::exchange::lines::Line;

/// Record to import.
struct Incoming {
    kind: Kind,
    id: String,
    text: String,
    /// Text without the approval that it claims; `None` if the approval counts.
    observed: Option<String>,
    created: String,
    /// New id of a renamed record, and its origin as JSON.
    renamed: Option<(String, String)>,
}

impl Incoming {
    fn what(&self) -> String {
        match self.id.as_str() {
            "" => format!("a {} without an id", self.kind),
            id => format!("{} {id}", self.kind),
        }
    }
}

pub(crate) fn import(
    workspace: &Workspace,
    options: &ImportOptions,
    carried: &ParsedExport,
    report: &mut ImportReport,
) -> Result<(), Error> {
    for skipped in &carried.skipped {
        report.skip(skipped.clone());
    }
    // The lock is held from here on, so decisions stay valid until they are written.
    let mut writer = if options.dry_run {
        None
    } else {
        Some(workspace.writer()?)
    };
    let identity = workspace.store.identity().map(|identity| identity.origin);
    let is_ours = carried.workspace.is_some() && carried.workspace == identity;
    let own = (!options.trust).then(|| workspace.store.approvals().own_words());
    let mut import = Import {
        workspace,
        own,
        restore: options.restore,
        is_at_primary: workspace.store.primary_name()?.is_some(),
        is_ours,
        source: carried.workspace.clone().unwrap_or_default(),
        here: Here::read(workspace)?,
        renames: HashMap::new(),
        kept: HashSet::new(),
        left_out: Vec::new(),
    };
    let (incoming, frames) = import.incoming(carried, report);
    let mut ready = import.decide(incoming, report);
    for entry in &mut ready {
        if let Some(text) = entry.observed.take() {
            entry.text = text;
            report.observed += 1;
        }
        if let Some(text) = with_other_strings(&entry.text, &import.renames) {
            entry.text = text;
        }
        // The origin is set last, because it names the old id.
        if let Some((id, from)) = entry.renamed.take() {
            let id_text = serde_json::Value::from(id.as_str()).to_string();
            let changes = [(entry.kind.id_field(), id_text), (FROM, from)];
            entry.text = with_fields(&entry.text, &changes, 6);
            entry.id = id;
        }
    }
    let lines = import.lines(carried, report)?;
    report
        .warnings
        .extend(redaction_warning(std::mem::take(&mut import.left_out)));
    let Some(writer) = &mut writer else {
        return Ok(());
    };
    for kind in Kind::ALL {
        let texts: Vec<Text> = ready
            .iter()
            .filter(|entry| entry.kind == kind)
            .map(|entry| Text {
                id: entry.id.clone(),
                text: entry.text.clone(),
            })
            .collect();
        writer.restore(kind, &texts, frames.get(&kind))?;
    }
    // Tombstones come last: after a crash, a retry would take tombstones without records for
    // deletions.
    for (name, lines) in lines {
        writer.restore_lines(name, &lines)?;
    }
    report
        .warnings
        .extend(repair_warnings(writer.take_repairs()));
    Ok(())
}

struct Import<'a> {
    workspace: &'a Workspace,
    /// Texts that this user has said or approved; `None` if the claims of the file count.
    own: Option<TrustSnapshot>,
    restore: bool,
    /// True if the records here are those of a database.
    is_at_primary: bool,
    /// True if the records come from this workspace.
    is_ours: bool,
    /// Origin of the workspace that wrote the export; empty if unknown.
    source: String,
    here: Here,
    /// New ids of the renamed records, by old id.
    renames: HashMap<String, String>,
    /// Ids that this import has added.
    kept: HashSet<(Kind, String)>,
    left_out: Vec<&'static str>,
}

impl Import<'_> {
    /// Returns the records that may be imported, redacted, and the text around them.
    fn incoming(
        &mut self,
        carried: &ParsedExport,
        report: &mut ImportReport,
    ) -> (Vec<Incoming>, HashMap<Kind, Frame>) {
        let mut incoming = Vec::new();
        let mut frames = HashMap::new();
        for line in &carried.lines {
            match line {
                Line::Entry { kind, id, text } => {
                    let what = || format!("{kind} {id}");
                    let Ok(text) = std::str::from_utf8(text) else {
                        report.skip(Skipped::one(what(), "it is not UTF-8"));
                        continue;
                    };
                    let filtered = redact(text);
                    self.left_out.extend(&filtered.found);
                    let text = filtered.text.into_owned();
                    if !self.workspace.store.covers(*kind, text.as_bytes()) {
                        let reason = "it is outside the scope, or another user's";
                        report.skip(Skipped::one(what(), reason));
                        continue;
                    }
                    incoming.push(Incoming {
                        kind: *kind,
                        id: text_field(text.as_bytes(), kind.id_field()).unwrap_or_default(),
                        created: created(*kind, &text),
                        renamed: None,
                        observed: self
                            .own
                            .as_ref()
                            .and_then(|own| existing::observed(own, *kind, &text)),
                        text,
                    });
                }
                Line::Frame { kind, frame } => {
                    frames.insert(*kind, frame.clone());
                }
                Line::Log { .. } => {}
            }
        }
        (incoming, frames)
    }

    /// Selects the new records and assigns their ids.
    fn decide(&mut self, incoming: Vec<Incoming>, report: &mut ImportReport) -> Vec<Incoming> {
        let mut ready: Vec<Incoming> = Vec::new();
        let mut clashing: Vec<(usize, bool)> = Vec::new();
        for entry in incoming {
            let key = (entry.kind, entry.id.clone());
            let digest = digest(&entry.text);
            if entry.id.is_empty() {
                if self.here.bare.insert((entry.kind, digest)) {
                    ready.push(entry);
                } else {
                    report.known();
                }
                continue;
            }
            let known = self.here.known.get(&key).filter(|known| known.is_visible);
            let observed = entry.observed.as_deref().map(super::digest);
            if known.is_some_and(|known| known.digest == digest || Some(known.digest) == observed) {
                report.known();
                continue;
            }
            if known.is_some_and(|known| self.is_same(known, &entry)) {
                let reason = "it is here already, and has changed since; what is here stays";
                report.skip(Skipped::one(entry.what(), reason));
                continue;
            }
            let origin = (entry.kind, self.origin(&entry));
            if let Some(id) = self.here.origins.get(&origin) {
                self.renames
                    .entry(entry.id.clone())
                    .or_insert_with(|| id.clone());
                report.known();
                continue;
            }
            let was_forgotten = self.was_forgotten(&entry);
            if was_forgotten && !self.restore {
                let reason = "it was forgotten here on purpose; `--restore` takes it in";
                report.skip(Skipped::one(entry.what(), reason));
                continue;
            }
            let is_free = !self.here.taken.holds(&entry.id)
                || (was_forgotten && self.is_ours && !self.here.known.contains_key(&key));
            if is_free && !self.needs_local_id(&entry) && self.kept.insert(key) {
                self.here.taken.take(entry.kind, &entry.id);
            } else {
                // References mean this record only if no other imported record has kept the id.
                let is_meant = !self.kept.contains(&(entry.kind, entry.id.clone()));
                clashing.push((ready.len(), is_meant));
            }
            ready.push(entry);
        }
        // By now every id that stays is known.
        for (at, is_meant) in clashing {
            let origin = self.origin(&ready[at]);
            let needs_local = self.needs_local_id(&ready[at]);
            let entry = &mut ready[at];
            let taken = &mut self.here.taken;
            let id = if needs_local {
                taken.free_local(entry.kind, &entry.id, &(self.workspace.random)())
            } else {
                taken.free(entry.kind, &entry.created, self.workspace.now)
            };
            report.renamed.push(Renamed {
                from: entry.id.clone(),
                to: id.clone(),
            });
            let from = json!({"source": report.source.name(), "workspace": origin.0, "id": origin.1, "created": origin.2});
            if is_meant && !self.renames.contains_key(&entry.id) {
                self.renames.extend(tests(entry.kind, &entry.id, &id));
                self.renames.insert(entry.id.clone(), id.clone());
            }
            entry.renamed = Some((id, from.to_string()));
        }
        for entry in &ready {
            report.take(entry.kind.plural());
        }
        ready
    }

    /// Returns true if only this machine will have the record, under an id that clones give, too. A
    /// primary database sees every id.
    fn needs_local_id(&self, entry: &Incoming) -> bool {
        let text = entry.observed.as_ref().unwrap_or(&entry.text);
        !self.is_at_primary
            && DataFile::for_record(entry.kind, text.as_bytes()).is_local
            && local_number(entry.kind, &entry.id).is_none()
    }

    /// Returns true if two records with one id are versions of the same record.
    fn is_same(&self, known: &Known, entry: &Incoming) -> bool {
        // No two records are created in one microsecond; whole seconds can coincide.
        let is_exact = entry.created.contains('.');
        !entry.created.is_empty() && known.created == entry.created && (self.is_ours || is_exact)
    }

    fn origin(&self, entry: &Incoming) -> Origin {
        (self.source.clone(), entry.id.clone(), entry.created.clone())
    }

    fn was_forgotten(&self, entry: &Incoming) -> bool {
        if self.is_ours && self.here.forgotten.has_id(entry.kind, &entry.id) {
            return true;
        }
        let read = Entry {
            kind: entry.kind,
            id: entry.id.clone(),
            text: entry.text.clone().into_bytes(),
            offset: 0,
        };
        document(&read).is_some_and(|document| {
            self.here
                .forgotten
                .has_content(entry.kind, remembered(&document))
        })
    }

    /// Returns the new log lines by log, tombstones last.
    fn lines(
        &mut self,
        carried: &ParsedExport,
        report: &mut ImportReport,
    ) -> Result<Vec<(&'static str, Vec<String>)>, Error> {
        let mut new = Vec::new();
        for line in &carried.lines {
            if let Line::Log { name, .. } = line
                && !logs().any(|(known, _)| known == name)
            {
                let what = format!("a line of `{name}`");
                report.skip(Skipped::one(what, "memctl has no such log"));
            }
        }
        for (name, role) in logs() {
            if role == Role::Account {
                // The audit log describes actions in another place or time, and is not imported.
                let is_of_it =
                    |line: &&Line| matches!(line, Line::Log { name: of, .. } if of == name);
                let count = carried.lines.iter().filter(is_of_it).count();
                if count > 0 {
                    report.warnings.push(format!(
                        "{count} lines of `{name}` were not taken in: they tell what was done elsewhere, or before"
                    ));
                }
                continue;
            }
            let here: HashSet<Vec<u8>> = foreign_lines(self.workspace.store.directory(), name)?
                .into_iter()
                .collect();
            let mut lines = Vec::new();
            for line in &carried.lines {
                let Line::Log { name: of, text } = line else {
                    continue;
                };
                if of != name {
                    continue;
                }
                match self.line(name, role, text, &here) {
                    Ok(Some(line)) => {
                        report.take(name);
                        lines.push(line);
                    }
                    Ok(None) => report.known(),
                    Err(reason) => {
                        report.skip(Skipped::one(format!("lines of `{name}`"), reason));
                    }
                }
            }
            if !lines.is_empty() {
                new.push((name, lines));
            }
        }
        new.sort_by_key(|(name, _)| {
            logs().any(|(known, role)| known == *name && role == Role::Tombstones)
        });
        Ok(new)
    }

    /// Returns the line to store, `None` if it exists here, or the reason to skip it.
    fn line(
        &mut self,
        name: &str,
        role: Role,
        text: &[u8],
        here: &HashSet<Vec<u8>>,
    ) -> Result<Option<String>, &'static str> {
        if !self.workspace.store.sees_all() {
            return Err("only who sees everything may write it");
        }
        let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8")?;
        let filtered = redact(text);
        self.left_out.extend(&filtered.found);
        if role == Role::Tombstones {
            if here.contains(text.as_bytes()) {
                return Ok(None);
            }
            if !self.is_ours {
                return Err(
                    "its hash is under the key of another workspace, and says nothing here",
                );
            }
            let tombstone: Tombstone =
                serde_json::from_str(text).map_err(|_| "it cannot be read")?;
            if self
                .here
                .known
                .contains_key(&(tombstone.kind, tombstone.id))
            {
                return Err("what was forgotten there is remembered here");
            }
            return Ok(Some(text.to_owned()));
        }
        debug_assert_eq!(role, Role::Log, "{name}");
        let line = with_other_strings(&filtered.text, &self.renames)
            .unwrap_or_else(|| filtered.text.into_owned());
        Ok((!here.contains(line.as_bytes())).then_some(line))
    }
}
