//! Records of an import that are new here, with their text.
//!
//! A record that exists here is not imported twice, even under another id. A record whose id belongs to
//! another one gets a new id and keeps the old one in `imported_from`. So does a record that nobody has
//! approved, unless a clone cannot give its id. References among the imported records follow.
//! Tombstones stay in force unless a restore is requested. A record that has changed here since the
//! export stays as it is.

use std::collections::{BTreeMap, HashMap, HashSet};

use memctl_files::json::{with_fields, with_other_strings};
use serde_json::{Value, json};

use super::{ImportOptions, ImportReport, Opened, Ready, Skipped};
use crate::model::{
    CANDIDATE, Kind, Memory, OBSERVED, Procedure, Record, Reflexion, Trust, local_number,
};
use crate::store::files::log;
use crate::store::renaming::{
    IMPORTED_FROM, NewId, NewIds, Taken, created, digest, is_exact, rename, with_new_ids,
};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, document_of, remembered};
use crate::store::{
    DataFile, Entry, ForgottenRecords, RawEntry, Role, Tombstone, TrustSnapshot, foreign_entries,
    logs, redact, text_field,
};
use crate::upkeep::export::Of;

const FORGOTTEN: &str = "it was forgotten here on purpose; `--restore` takes it in";

/// Record to import.
struct Incoming {
    kind: Kind,
    id: String,
    text: String,
    /// Text without the approval that it claims; `None` if this user has given it.
    observed: Option<String>,
    created: String,
    /// New id of a renamed record.
    renamed: Option<String>,
}

impl Incoming {
    fn what(&self) -> String {
        format!("{} {}", self.kind, self.id).trim_end().to_owned()
    }
}

/// Outcome for a record.
enum Decision {
    /// It is here, under this id if it has one.
    Known(Option<String>),
    Skip(&'static str),
    /// It is new, and keeps its id.
    Keep,
    /// It is new, and gets another id.
    Rename,
}

/// Returns the records and the lines of logs that are new here.
pub(super) fn ready(
    workspace: &Workspace,
    options: &ImportOptions,
    export: Opened,
    report: &mut ImportReport,
) -> Result<Ready, Error> {
    let identity = workspace.store.identity().map(|identity| identity.origin);
    let is_ours = export.workspace.is_some() && export.workspace == identity;
    let mut import = Import {
        workspace,
        own: workspace.store.approvals().own_words(),
        options,
        is_at_primary: workspace.store.primary_name()?.is_some(),
        is_ours,
        source: export.workspace.unwrap_or_default(),
        existing: Existing::read(workspace)?,
        renames: NewIds::new(),
        added: HashSet::new(),
        left_out: Vec::new(),
    };
    let (mut new, mut clashing) = (Vec::new(), Vec::new());
    let mut log_lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in export.lines {
        let kind = match line.of {
            Of::Record(kind, _) => kind,
            Of::Log(name) => {
                log_lines.entry(name).or_default().push(line.text);
                continue;
            }
        };
        let entry = import.redacted(kind, &line.text);
        match import.decide(&entry) {
            Decision::Known(id) => {
                report.count_duplicate();
                let is_claimed = options.trust && entry.observed.is_some();
                report.approved.extend(id.filter(|_| is_claimed));
            }
            Decision::Skip(reason) => report.skip(Skipped::one(entry.what(), reason)),
            Decision::Keep => new.push(entry),
            Decision::Rename => {
                clashing.push(new.len());
                new.push(entry);
            }
        }
    }
    // By now every id that stays is known.
    for at in clashing {
        let (kind, from, to) = (new[at].kind, new[at].id.clone(), import.rename(&new[at]));
        new[at].renamed = Some(to.clone());
        report.renamed.push(NewId { kind, from, to });
    }
    let mut ready = Ready::default();
    for entry in new {
        report.take(entry.kind.plural());
        report.observed += u64::from(entry.observed.is_some() && !options.trust);
        let of_kind = ready.records.entry(entry.kind).or_default();
        of_kind.push(import.text_of(entry, report.source));
    }
    ready.lines = import.log_lines(log_lines, report)?;
    report.warnings.extend(redaction_warning(import.left_out));
    Ok(ready)
}

struct Import<'a> {
    workspace: &'a Workspace,
    /// Texts that this user has said or approved.
    own: TrustSnapshot,
    options: &'a ImportOptions,
    /// True if the records here are those of a database.
    is_at_primary: bool,
    /// True if the records come from this workspace.
    is_ours: bool,
    /// Origin of the workspace that wrote the export; empty if unknown.
    source: String,
    existing: Existing,
    /// New ids of the renamed records, by old id.
    renames: NewIds,
    /// Ids that this import has added.
    added: HashSet<(Kind, String)>,
    left_out: Vec<&'static str>,
}

impl Import<'_> {
    fn redacted(&mut self, kind: Kind, text: &str) -> Incoming {
        let filtered = redact(text);
        self.left_out.extend(&filtered.found);
        let text = filtered.text.into_owned();
        Incoming {
            kind,
            id: text_field(text.as_bytes(), kind.id_field()).unwrap_or_default(),
            created: created(kind, &text),
            renamed: None,
            observed: observed(&self.own, kind, &text),
            text,
        }
    }

    fn decide(&mut self, entry: &Incoming) -> Decision {
        if !self
            .workspace
            .store
            .covers(entry.kind, entry.text.as_bytes())
        {
            return Decision::Skip("it is outside the scope, or another user's");
        }
        let incoming = digest(&entry.text);
        if entry.id.is_empty() {
            let is_new = self.existing.bare.insert((entry.kind, incoming));
            return if is_new {
                Decision::Keep
            } else {
                Decision::Known(None)
            };
        }
        let key = (entry.kind, entry.id.clone());
        if let Some(version) = self.existing.records.get(&key) {
            let observed = entry.observed.as_deref().map(digest);
            if version.digest == incoming || Some(version.digest) == observed {
                return Decision::Known(Some(entry.id.clone()));
            }
            let is_exact = self.is_ours || is_exact(&entry.created);
            if is_exact && !entry.created.is_empty() && version.created == entry.created {
                return Decision::Skip(
                    "it is here already, and has changed since; what is here stays",
                );
            }
        }
        let origin = (entry.kind, self.origin(entry));
        if let Some(id) = self.existing.origins.get(&origin).cloned() {
            let id = self.renames.entry(entry.id.clone()).or_insert(id);
            return Decision::Known(Some(id.clone()));
        }
        let was_forgotten = self.was_forgotten(entry);
        if was_forgotten && !self.options.restore {
            return Decision::Skip(FORGOTTEN);
        }
        let is_free = !self.existing.taken.holds(&entry.id)
            || (was_forgotten && self.is_ours && !self.existing.records.contains_key(&key));
        if is_free && !self.needs_local_id(entry) && self.added.insert(key) {
            self.existing.taken.take(entry.kind, &entry.id);
            Decision::Keep
        } else {
            Decision::Rename
        }
    }

    /// Returns a new id for a record.
    fn rename(&mut self, entry: &Incoming) -> String {
        let needs_local = self.needs_local_id(entry);
        let taken = &mut self.existing.taken;
        let id = if needs_local {
            taken.free_local(entry.kind, &entry.id, &(self.workspace.random)())
        } else {
            taken.free(entry.kind, &entry.created, self.workspace.now)
        };
        // References mean this record only if no other imported record has kept the id.
        let is_meant = !self.added.contains(&(entry.kind, entry.id.clone()));
        if is_meant {
            rename(&mut self.renames, entry.kind, &entry.id, &id);
        }
        id
    }

    /// Returns the text to store, under the final id.
    fn text_of(&self, entry: Incoming, source: &str) -> RawEntry {
        let origin = self.origin(&entry);
        let observed = entry.observed.filter(|_| !self.options.trust);
        let mut text = observed.unwrap_or(entry.text);
        if let Some(renamed) = with_new_ids(&text, &self.renames) {
            text = renamed;
        }
        let Some(id) = entry.renamed else {
            return RawEntry::new(entry.kind, entry.id, text);
        };
        // The origin is set last, because it names the old id.
        let (workspace, old, created) = origin;
        let from = json!({"source": source, "workspace": workspace, "id": old, "created": created});
        let id_text = Value::from(id.as_str()).to_string();
        let changes = [
            (entry.kind.id_field(), id_text),
            (IMPORTED_FROM, from.to_string()),
        ];
        let text = with_fields(&text, &changes, 6);
        RawEntry::new(entry.kind, id, text)
    }

    /// Returns true if only this machine will have the record, under an id that clones give, too. A
    /// primary database sees every id.
    fn needs_local_id(&self, entry: &Incoming) -> bool {
        let observed = entry.observed.as_ref().filter(|_| !self.options.trust);
        let text = observed.unwrap_or(&entry.text);
        !self.is_at_primary
            && DataFile::for_record(entry.kind, text.as_bytes()).is_local
            && local_number(entry.kind, &entry.id).is_none()
    }

    fn origin(&self, entry: &Incoming) -> Origin {
        (self.source.clone(), entry.id.clone(), entry.created.clone())
    }

    fn was_forgotten(&self, entry: &Incoming) -> bool {
        let forgotten = &self.existing.forgotten;
        if self.is_ours && forgotten.has_id(entry.kind, &entry.id) {
            return true;
        }
        document_of(entry.kind, entry.text.as_bytes())
            .is_some_and(|one| forgotten.has_content(entry.kind, remembered(&one)))
    }

    /// Returns the new lines by log. Tombstones come last: after a crash, a retry would take tombstones
    /// without records for deletions.
    fn log_lines(
        &mut self,
        given: BTreeMap<String, Vec<String>>,
        report: &mut ImportReport,
    ) -> Result<Vec<(&'static str, Vec<String>)>, Error> {
        let mut new = Vec::new();
        for (name, texts) in given {
            let Some((name, role)) = logs().find(|(log, _)| *log == name) else {
                let what = format!("a line of `{name}`");
                let reason = "memctl has no such log";
                report.skip(Skipped::some(texts.len() as u64, what, reason));
                continue;
            };
            if role == Role::Account {
                report.warnings.push(format!(
                    "{} lines of the audit log were not taken in: they tell what was done elsewhere, or before",
                    texts.len()
                ));
                continue;
            }
            let here = log::lines(self.workspace.store.directory(), name)?;
            let here: HashSet<Vec<u8>> = here.into_iter().collect();
            let mut lines = Vec::new();
            for text in &texts {
                match self.log_line(role, text, &here) {
                    Ok(Some(line)) => {
                        report.take(name);
                        lines.push(line);
                    }
                    Ok(None) => report.count_duplicate(),
                    Err(reason) => {
                        report.skip(Skipped::one(format!("lines of `{name}`"), reason));
                    }
                }
            }
            new.push((role, name, lines));
        }
        new.sort_by_key(|(role, ..)| *role == Role::Tombstones);
        Ok(new
            .into_iter()
            .map(|(_, name, lines)| (name, lines))
            .collect())
    }

    /// Returns the line to store, `None` if it exists here, or the reason to skip it.
    fn log_line(
        &mut self,
        role: Role,
        text: &str,
        here: &HashSet<Vec<u8>>,
    ) -> Result<Option<String>, &'static str> {
        if !self.workspace.store.sees_all() {
            return Err("only who sees everything may write it");
        }
        if role != Role::Tombstones {
            let filtered = redact(text);
            self.left_out.extend(&filtered.found);
            let line = with_other_strings(&filtered.text, &self.renames)
                .unwrap_or_else(|| filtered.text.into_owned());
            return Ok((!here.contains(line.as_bytes())).then_some(line));
        }
        if here.contains(text.as_bytes()) {
            return Ok(None);
        }
        if !self.is_ours {
            return Err("its hash is under the key of another workspace, and says nothing here");
        }
        let tombstone: Tombstone = serde_json::from_str(text).map_err(|_| "it cannot be read")?;
        let key = (tombstone.kind, tombstone.id);
        if self.existing.records.contains_key(&key) {
            return Err("what was forgotten there is remembered here");
        }
        Ok(Some(text.to_owned()))
    }
}

/// Existing record.
struct Version {
    digest: u128,
    created: String,
}

/// Origin of a record: workspace, id and creation time there.
type Origin = (String, String, String);

/// Existing records that the caller may see, and tombstones.
#[derive(Default)]
struct Existing {
    records: HashMap<(Kind, String), Version>,
    /// Records without an id.
    bare: HashSet<(Kind, u128)>,
    /// Current ids of renamed records, by origin.
    origins: HashMap<(Kind, Origin), String>,
    taken: Taken,
    forgotten: ForgottenRecords,
}

impl Existing {
    fn read(workspace: &Workspace) -> Result<Self, Error> {
        let store = &workspace.store;
        let mut existing = Self {
            forgotten: store.all_forgotten()?,
            ..Self::default()
        };
        for kind in Kind::ALL {
            for entry in foreign_entries(store.directory(), kind)?.0 {
                // An id is taken even if the caller may not see its record.
                existing.taken.take(kind, &entry.id);
                if store.covers(kind, &entry.text) {
                    existing.add(kind, &entry);
                }
            }
            for id in existing.forgotten.ids(kind) {
                existing.taken.take(kind, id);
            }
        }
        Ok(existing)
    }

    fn add(&mut self, kind: Kind, entry: &Entry) {
        let text = String::from_utf8_lossy(&entry.text);
        let digest = digest(&text);
        if entry.id.is_empty() {
            self.bare.insert((kind, digest));
            return;
        }
        if let Some(origin) = origin_of(&text) {
            self.origins.insert((kind, origin), entry.id.clone());
        }
        let created = created(kind, &text);
        let version = Version { digest, created };
        self.records.insert((kind, entry.id.clone()), version);
    }
}

/// Reads the origin of a renamed record.
fn origin_of(text: &str) -> Option<Origin> {
    // Most records have no such field and need no parsing.
    if !text.contains(IMPORTED_FROM) {
        return None;
    }
    let entry: Value = serde_json::from_str(text).ok()?;
    let part = |name: &str| Some(entry.get(IMPORTED_FROM)?.get(name)?.as_str()?.to_owned());
    Some((part("workspace")?, part("id")?, part("created")?))
}

/// Returns the text without its claimed approval; `None` if it claims none that needs this user.
fn observed(own: &TrustSnapshot, kind: Kind, text: &str) -> Option<String> {
    let trust = ("trust", OBSERVED);
    let (field, value) = match kind {
        Kind::Procedure => lacks::<Procedure>(own, text).map(|_| trust),
        Kind::Memory => lacks::<Memory>(own, text).map(|_| trust),
        Kind::Reflexion => lacks::<Reflexion>(own, text)
            .filter(Reflexion::is_in_use)
            .map(|_| ("status", CANDIDATE)),
        // These are only ever shown as data.
        Kind::Execution | Kind::Correction | Kind::Session => None,
    }?;
    Some(with_fields(text, &[(field, format!("\"{value}\""))], 6))
}

/// Returns the record if its file claims an approval that this user has not given.
fn lacks<R: Record>(own: &TrustSnapshot, text: &str) -> Option<R> {
    let record: R = serde_json::from_str(text).ok()?;
    let is_claimed = record.trust() != Trust::Observed;
    (is_claimed && own.level(&record) == Trust::Observed).then_some(record)
}
