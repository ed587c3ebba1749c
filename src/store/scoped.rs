//! Reading records, within a scope, for a viewer, at a time.
//!
//! What lies outside the scope, is another user's or has expired does not exist for the reader: it is
//! not listed, not counted, not found by its id. The saved table only pre-selects by hash; what is
//! shown has been compared.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::model::{Kind, Record, Scope, SkillPath, Viewer};
use crate::platform::Directory;

use super::act::Act;
use super::directory::{self, Identity};
use super::error::{Error, Problem, ProblemKind};
use super::json_file::{JsonFile, Snapshot};
use super::json_text;
use super::offsets::Row;
use super::primary::Primary;
use super::scan::Lines;
use super::sight::Sight;
use super::trust::{Approvals, Standing};
use super::writer::{Redaction, Writer};

/// How long a writer waits for another one before it gives up.
const LOCK_LIMIT: Duration = Duration::from_secs(30);
/// How many ids a suggestion is looked for among.
const SUGGEST_AMONG: usize = 2_000;

/// The records of one memory directory that a caller may see.
#[derive(Debug, Clone)]
pub struct Scoped {
    directory: Directory,
    sight: Sight,
    lock_limit: Duration,
    /// A writer reads through this, and holds the lock.
    held: bool,
    /// What everything that is written passes through.
    redaction: Option<Redaction>,
    /// Who reads and writes, and why.
    act: Arc<Act>,
    /// The database that the memory lies in, if it does.
    pub(super) primary: Option<Arc<dyn Primary>>,
    /// What this user has said about trust in these files.
    approvals: Approvals,
    /// Writes even where the memory is switched off.
    pub(super) regardless: bool,
}

/// One entry, as the text that it is in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its kind.
    pub kind: Kind,
    /// Its id; empty where it has none.
    pub id: String,
    /// Its JSON text.
    pub text: Vec<u8>,
    /// Where it starts in the file.
    pub offset: u64,
}

impl Entry {
    /// Whose it is, if it says so.
    pub fn user_id(&self) -> Option<std::borrow::Cow<'_, str>> {
        json_text::string_field(&self.text, "user_id").filter(|_| self.kind.has_user())
    }

    /// The same with those fields alone that say whose it is, who may see it, and of which type it is.
    #[must_use]
    pub fn outline(&self) -> Self {
        let names = ["skill", "user_id", "expires_at", "memory_type"];
        let fields = names.into_iter().filter_map(|name| {
            let value = json_text::field(&self.text, name)?;
            Some(format!("\"{name}\": {}", String::from_utf8_lossy(value)))
        });
        let fields: Vec<String> = fields.collect();
        Self {
            kind: self.kind,
            id: self.id.clone(),
            text: format!("{{{}}}", fields.join(", ")).into_bytes(),
            offset: self.offset,
        }
    }

    /// The entry as a record of its kind.
    pub fn parse<R: Record>(&self) -> Result<R, serde_json::Error> {
        serde_json::from_slice(&self.text)
    }
}

/// Which records of a kind are wanted.
#[derive(Debug, Clone, Default)]
pub struct Selection<'a> {
    /// Those of this skill only.
    pub skill: Option<&'a SkillPath>,
    /// The newest so many only.
    pub newest: Option<usize>,
}

/// The records that could be read, oldest first, and what is wrong with the others.
#[derive(Debug)]
pub struct Listing<R> {
    /// The records.
    pub records: Vec<R>,
    /// The entries, and the parts of the file, that are none.
    pub problems: Vec<Problem>,
}

impl Scoped {
    /// The records under this directory, which need not exist yet, for the owner of the files. What
    /// has an end is not there before [`Self::at`] has said what time it is.
    pub fn new(directory: impl Into<Directory>, scope: Scope) -> Self {
        Self {
            directory: directory.into(),
            sight: Sight {
                scope,
                viewer: Viewer::Owner,
                now: None,
            },
            lock_limit: LOCK_LIMIT,
            held: false,
            redaction: None,
            act: Arc::default(),
            primary: None,
            approvals: Approvals::default(),
            regardless: false,
        }
    }

    /// The same, for a user who has said this about trust. Without it every record is `observed`.
    #[must_use]
    pub fn trusting(mut self, approvals: Approvals) -> Self {
        self.approvals = approvals;
        self
    }

    /// The user's notes about trust in these files.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// What counts as this user's own word in these files, at this moment.
    pub fn standing(&self) -> Standing {
        self.approvals.standing()
    }

    /// The same, at this time: what has expired by then is not there.
    #[must_use]
    pub fn at(mut self, now: DateTime<Utc>) -> Self {
        self.sight.now = Some(now);
        self
    }

    /// The same, for this viewer.
    #[must_use]
    pub fn seen_by(mut self, viewer: Viewer) -> Self {
        self.sight.viewer = viewer;
        self
    }

    /// The same, for a writer who holds the lock.
    pub(super) fn held(&self) -> Self {
        Self {
            held: true,
            ..self.clone()
        }
    }

    /// The same, of another directory: that of the records of another workspace.
    pub(super) fn moved_to(&self, directory: Directory, origin: &str) -> Self {
        Self {
            directory,
            primary: None,
            approvals: self.approvals.of_origin(origin),
            ..self.clone()
        }
    }

    /// The same, but waiting for other writers at most so long.
    #[must_use]
    pub fn with_lock_limit(mut self, limit: Duration) -> Self {
        self.lock_limit = limit;
        self
    }

    /// How long a writer waits for another one.
    pub fn lock_limit(&self) -> Duration {
        self.lock_limit
    }

    /// The same, but with a redaction that everything which is written passes through.
    #[must_use]
    pub fn with_redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = Some(redaction);
        self
    }

    /// The same, for this act of somebody.
    #[must_use]
    pub fn acting(mut self, act: Act) -> Self {
        self.act = Arc::new(act);
        self
    }

    /// For whom and what for it is read and written.
    pub fn act(&self) -> &Act {
        &self.act
    }

    pub(super) fn redaction(&self) -> Option<Redaction> {
        self.redaction
    }

    /// A JSON text as it may be stored, and may leave.
    pub fn redacted<'t>(&self, json: &'t str) -> std::borrow::Cow<'t, str> {
        match self.redaction {
            Some(redact) => redact(json).text,
            None => json.into(),
        }
    }

    /// Whether the caller may see this entry.
    pub fn admits(&self, entry: &Entry) -> bool {
        self.sight.sees(entry.kind, &entry.text)
    }

    /// The memory directory.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The scope that reads and writes are held to.
    pub fn scope(&self) -> &Scope {
        &self.sight.scope
    }

    /// Whom reads and writes are for.
    pub fn viewer(&self) -> &Viewer {
        &self.sight.viewer
    }

    /// Whether the caller may see everything that the files hold: the owner, and no scope. What
    /// looks a file over as a whole, or tells of what is in it as a whole, asks for this.
    pub fn sees_all(&self) -> bool {
        self.sight.is_whole()
    }

    pub(super) fn sight(&self) -> &Sight {
        &self.sight
    }

    /// Who the workspace is, if it has been said.
    pub fn identity(&self) -> Option<Identity> {
        directory::identity(&self.directory)
    }

    /// Waits for the lock and opens the directory for writing. `random` makes the identity of a
    /// workspace that has none.
    pub fn write(&self, random: &mut dyn FnMut() -> String) -> Result<Writer, Error> {
        Writer::open(self, self.lock_limit, random)
    }

    /// The same for somebody who writes nothing but logs: where the memory lies in a database, that is not
    /// asked.
    pub fn write_logs(&self, random: &mut dyn FnMut() -> String) -> Result<Writer, Error> {
        Writer::open_for_logs(self, self.lock_limit, random)
    }

    /// The number of records of a kind.
    pub fn count(&self, kind: Kind) -> Result<u64, Error> {
        let snapshot = self.file(kind).snapshot()?;
        if self.sight.asks_the_text(kind) {
            let all = Selection::default();
            return Ok(self.select(&snapshot, kind, &all)?.len() as u64);
        }
        match &self.sight.scope {
            Scope::All => Ok(snapshot.table.header.count),
            Scope::Domains(domains) => {
                let mut count = 0;
                snapshot.each(false, &mut |row| {
                    count += u64::from(domains.iter().any(|domain| row.may_be_of_domain(domain)));
                    true
                })?;
                Ok(count)
            }
        }
    }

    /// The size of all data files, in bytes. Part of it belongs to others where not everything may
    /// be seen, so that it is then not told.
    pub fn bytes(&self) -> Option<u64> {
        let size = |kind: Kind| {
            let file = self.directory.open(kind.file()).ok()??;
            Some(file.metadata().ok()?.len())
        };
        self.sees_all()
            .then(|| Kind::ALL.into_iter().filter_map(size).sum())
    }

    /// The records of a type, oldest first.
    pub fn list<R: Record>(&self, selection: &Selection<'_>) -> Result<Listing<R>, Error> {
        let mut records = Vec::new();
        let mut others = Vec::new();
        let mut problems =
            self.each_entry(R::KIND, selection, &mut |entry| match entry.parse() {
                Ok(record) => records.push(record),
                Err(error) => others.push((entry.offset, entry.id, error)),
            })?;
        if others.is_empty() {
            return Ok(Listing { records, problems });
        }
        let (path, file) = self.data_file(R::KIND)?;
        let mut lines = Lines::of(&file);
        for (offset, id, error) in others {
            let line = lines.at(offset).map_err(Error::io("read", &path))?;
            problems.push(Problem {
                path: path.clone(),
                offset,
                line,
                kind: ProblemKind::Unreadable,
                message: unreadable(R::KIND, &id, &error),
            });
        }
        Ok(Listing { records, problems })
    }

    /// Shows the entries of a kind, oldest first, and answers what is wrong with the file.
    pub fn each_entry(
        &self,
        kind: Kind,
        selection: &Selection<'_>,
        visit: &mut dyn FnMut(Entry),
    ) -> Result<Vec<Problem>, Error> {
        let snapshot = self.file(kind).snapshot()?;
        let rows = self.select(&snapshot, kind, selection)?;
        let wanted = selection.skill.map(ToString::to_string);
        for row in rows {
            let entry = Self::read(&snapshot, kind, &row)?;
            let of_skill =
                |w: &str| json_text::string_field(&entry.text, "skill").is_some_and(|s| s == w);
            let is_wanted = wanted.as_deref().is_none_or(of_skill);
            if is_wanted && self.sight.sees(kind, &entry.text) {
                visit(entry);
            }
        }
        Ok(snapshot.problems)
    }

    /// The rows that may be of the selection, oldest first.
    fn select(
        &self,
        snapshot: &Snapshot,
        kind: Kind,
        selection: &Selection<'_>,
    ) -> Result<Vec<Row>, Error> {
        let skill = selection.skill.map(ToString::to_string);
        let limit = selection.newest.unwrap_or(usize::MAX);
        let mut rows = Vec::new();
        if limit == 0 {
            return Ok(rows);
        }
        // What is not seen must not take the place of what is.
        let asks = self.sight.asks_the_text(kind);
        let mut trouble = None;
        snapshot.each(true, &mut |row| {
            let of_skill = skill
                .as_deref()
                .is_none_or(|skill| row.may_be_of_skill(skill));
            let in_scope = match &self.sight.scope {
                Scope::All => true,
                Scope::Domains(_) if self.sight.is_in_every_domain(kind) => true,
                Scope::Domains(domains) => domains.iter().any(|d| row.may_be_of_domain(d)),
            };
            if of_skill && in_scope {
                match asks.then(|| snapshot.read(row)).transpose() {
                    Ok(Some(text)) if !self.sight.sees(kind, &text) => {}
                    Ok(_) => rows.push(row.clone()),
                    Err(error) => trouble = Some(error),
                }
            }
            rows.len() < limit && trouble.is_none()
        })?;
        rows.reverse();
        trouble.map_or(Ok(rows), Err)
    }

    pub(super) fn read(snapshot: &Snapshot, kind: Kind, row: &Row) -> Result<Entry, Error> {
        let text = snapshot.read(row)?;
        let id = if row.id_is_cut() {
            json_text::string_field(&text, kind.id_field())
                .unwrap_or_default()
                .into_owned()
        } else {
            String::from_utf8_lossy(row.id()).into_owned()
        };
        Ok(Entry {
            kind,
            id,
            text,
            offset: row.at,
        })
    }

    /// The entry with exactly this id.
    pub fn find(&self, kind: Kind, id: &str) -> Result<Option<Entry>, Error> {
        let snapshot = self.file(kind).snapshot()?;
        Ok(self.find_in(&snapshot, kind, id)?.map(|(_, entry)| entry))
    }

    /// Shows the entries with exactly these ids, each once, in the order in which they stand: one look
    /// at where all lie, however many are asked for.
    pub fn each_of(
        &self,
        kind: Kind,
        ids: &HashSet<&str>,
        visit: &mut dyn FnMut(Entry),
    ) -> Result<(), Error> {
        let snapshot = self.file(kind).snapshot()?;
        self.each_of_in(&snapshot, kind, ids, &mut |_, entry| visit(entry))
    }

    /// The same in a snapshot, and where they lie.
    pub(super) fn each_of_in(
        &self,
        snapshot: &Snapshot,
        kind: Kind,
        ids: &HashSet<&str>,
        visit: &mut dyn FnMut(Row, Entry),
    ) -> Result<(), Error> {
        let known: HashSet<&[u8]> = ids.iter().map(|id| id.as_bytes()).collect();
        let mut candidates = Vec::new();
        snapshot.each(false, &mut |row| {
            // Of long ids the table holds the beginning: the entry itself says the rest.
            if row.id_is_cut() || known.contains(row.id()) {
                candidates.push(row.clone());
            }
            true
        })?;
        let mut shown = HashSet::new();
        for row in candidates {
            let entry = Self::read(snapshot, kind, &row)?;
            let is_asked = !entry.id.is_empty() && ids.contains(entry.id.as_str());
            if is_asked && !shown.contains(&entry.id) && self.sight.sees(kind, &entry.text) {
                shown.insert(entry.id.clone());
                visit(row, entry);
            }
        }
        Ok(())
    }

    /// The entry with exactly this id in a snapshot, and where it lies.
    pub(super) fn find_in(
        &self,
        snapshot: &Snapshot,
        kind: Kind,
        id: &str,
    ) -> Result<Option<(Row, Entry)>, Error> {
        let seen = |entry: &Entry| self.sight.sees(kind, &entry.text);
        Self::find_among(snapshot, kind, id, &seen)
    }

    /// Whether an id is taken in a snapshot, whoever may see what has it.
    pub(super) fn holds(snapshot: &Snapshot, kind: Kind, id: &str) -> Result<bool, Error> {
        Ok(Self::find_among(snapshot, kind, id, &|_| true)?.is_some())
    }

    fn find_among(
        snapshot: &Snapshot,
        kind: Kind,
        id: &str,
        counts: &dyn Fn(&Entry) -> bool,
    ) -> Result<Option<(Row, Entry)>, Error> {
        let mut candidates = Vec::new();
        snapshot.each(false, &mut |row| {
            let same = if row.id_is_cut() {
                id.as_bytes().starts_with(row.id())
            } else {
                row.id() == id.as_bytes()
            };
            if same && !id.is_empty() {
                candidates.push(row.clone());
            }
            true
        })?;
        for row in candidates {
            let entry = Self::read(snapshot, kind, &row)?;
            if entry.id == id && counts(&entry) {
                return Ok(Some((row, entry)));
            }
        }
        Ok(None)
    }

    /// The record with exactly this id.
    pub fn get<R: Record>(&self, id: &str) -> Result<R, Error> {
        let not_found = || Error::NotFound {
            kind: Some(R::KIND),
            id: id.to_owned(),
            similar: Vec::new(),
        };
        let entry = self.find(R::KIND, id)?.ok_or_else(not_found)?;
        entry.parse().map_err(|error| {
            let problem = || {
                let (path, file) = self.data_file(R::KIND)?;
                let line = Lines::of(&file).at(entry.offset);
                let line = line.map_err(Error::io("read", &path))?;
                Ok(Problem {
                    path,
                    offset: entry.offset,
                    line,
                    kind: ProblemKind::Unreadable,
                    message: unreadable(R::KIND, id, &error),
                })
            };
            problem().map_or_else(|error| error, Error::Damaged)
        })
    }

    /// The full id that a person means by an id, the beginning of one, or `latest`; of this skill
    /// where one is given.
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
        let selection = Selection {
            skill,
            newest: None,
        };
        let snapshot = self.file(kind).snapshot()?;
        for row in self.select(&snapshot, kind, &selection)? {
            let id = String::from_utf8_lossy(row.id()).into_owned();
            if !wanted.is_empty() && id.to_uppercase().starts_with(&wanted) {
                starting.push(row);
            } else if others.len() < SUGGEST_AMONG {
                others.push(id);
            }
        }
        let mut ids = Vec::new();
        for row in starting {
            let entry = Self::read(&snapshot, kind, &row)?;
            if self.sight.sees(kind, &entry.text) {
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

    /// Whether the last scan of any file found problems, without scanning where that is known.
    pub fn has_problems(&self, kind: Kind) -> Result<bool, Error> {
        Ok(self.file(kind).snapshot()?.table.header.problems > 0)
    }

    pub(super) fn file(&self, kind: Kind) -> JsonFile<'_> {
        JsonFile::new(&self.directory, kind, self.held)
    }

    /// The file of a kind, for those who want to say where something stands in it.
    pub(super) fn data_file(&self, kind: Kind) -> Result<(PathBuf, File), Error> {
        let path = self.directory.join(kind.file());
        let opened = self.directory.open(&path);
        let file = opened.and_then(|file| file.ok_or_else(|| io::ErrorKind::NotFound.into()));
        Ok((path.clone(), file.map_err(Error::io("read", &path))?))
    }
}

/// What is said of an entry that is no record of its kind.
pub(super) fn unreadable(kind: Kind, id: &str, error: &serde_json::Error) -> String {
    let name = if id.is_empty() {
        "an entry without an id"
    } else {
        id
    };
    format!("{name} is kept, but is no readable {kind}: {error}")
}

/// The ids that look most like what was typed.
fn similar(typed: &str, ids: Vec<String>) -> Vec<String> {
    let mut scored: Vec<(f64, String)> = ids
        .into_iter()
        .map(|id| (strsim::jaro_winkler(typed, &id), id))
        .filter(|(score, _)| *score > 0.85)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, id)| id).collect()
}
