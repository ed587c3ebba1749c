//! An open workspace: its records, its skills, its settings, and helpers that operations share.
//!
//! - [`Workspace`]: context of every operation, which is a function over it, such as `skills::run`.
//! - [`Records`]: its records alone, for operations that need nothing else.
//! - [`Settings`], [`Providers`]: the configuration.
//! - `redacting_writer`: every write of user text, without its secrets.
//! - Here too: the record for an id, an id prefix or `latest`, records of any kind in one form, lines of the
//!   execution log, and audit events of reads.
//!
//! Writers audit themselves. Operations that return records audit the read: of kinds that belong to a user
//! (memories, sessions).
//!
//! Deliberately absent: the operations themselves.

pub(crate) mod providers;
pub(crate) mod redacting_writer;

use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use memctl_files::named;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::error::message as chain;
use crate::model::{
    ActionType, Document, Execution, ExecutionLog, Kind, LogStatus, Record, Scope, SkillPath,
    Trust, Viewer, by_kind, split_origin,
};
use crate::store::skill::{Skill, Skills};
use crate::store::{
    Added, AuditAction, Entry, GroupCommit, Problem, Scoped, SeenTexts, Touched, Writer,
};

pub use providers::{Chosen, Providers};

pub use crate::store::{Error, Refusal};

/// A workspace, opened, and what the verbs need from outside.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The records.
    pub store: Scoped,
    /// Directory of the skills; it need not exist.
    pub skills_dir: PathBuf,
    /// Settings of the verbs.
    pub settings: Settings,
    /// Whose models may be asked.
    pub providers: Providers,
    /// Place for a paid answer if the memory directory is not writable.
    pub spare_dir: PathBuf,
    /// Now.
    pub now: DateTime<Utc>,
    /// Makes a random name.
    pub random: fn() -> String,
    /// Writes that requests of this process share; a program with one request shares with nobody.
    pub group_commit: Arc<GroupCommit>,
    /// Digests of the notes, for all requests of this process.
    pub seen_notes: Arc<SeenTexts>,
}

/// Records of a workspace with the clock: enough for verbs that use no skill, setting or model.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    /// The records.
    pub store: &'a Scoped,
    /// Current time.
    pub now: DateTime<Utc>,
    /// Source of random names.
    pub random: fn() -> String,
}

impl Records<'_> {
    pub(crate) fn writer(&self) -> Result<Writer, Error> {
        self.store.write(&mut || (self.random)())
    }

    /// The time as records carry it.
    pub(crate) fn timestamp(&self) -> String {
        stamp(self.now)
    }
}

/// Settings of the verbs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The room for learned rules in a prompt, in tokens.
    pub rules_tokens: usize,
    /// Token budget for learned procedures in a prompt.
    pub procedures_tokens: usize,
    /// The longest answer of a model, in tokens.
    pub max_output_tokens: u32,
    /// How like the input a known case must be to answer for it, from 0 to 1.
    pub min_similarity: f64,
    /// The prompt for turning corrections into rules, where a user has put one in place of ours.
    pub reflect_prompt: Option<String>,
    /// The instructions for wording the lessons of past sessions, where a user has replaced ours.
    pub past_session_prompt: Option<String>,
    /// The person at this machine; no lesson contains their data.
    pub person: memctl_redact::Person,
    /// The prompt for judging outputs, likewise.
    pub judge_prompt: Option<String>,
    /// Also writes the tests of corrections for `DeepEval` and Promptfoo.
    pub export_tests: bool,
    /// After how many days a task memory expires where nobody says otherwise; 0 is never.
    pub task_days: u32,
}

impl Workspace {
    /// Returns the records alone.
    pub fn records(&self) -> Records<'_> {
        Records {
            store: &self.store,
            now: self.now,
            random: self.random,
        }
    }

    /// The skills directory.
    pub(crate) fn skills(&self) -> Result<Skills, Error> {
        Skills::open(&self.skills_dir)
    }

    /// A skill that the scope covers.
    pub(crate) fn skill(&self, path: &SkillPath) -> Result<(Skills, Skill), Error> {
        self.permit(path)?;
        let skills = self.skills()?;
        let skill = skills.load(path)?;
        Ok((skills, skill))
    }

    /// Returns the id of the calling user, if they see all of their own records.
    pub(crate) fn whole_user(&self) -> Result<String, Error> {
        match self.store.viewer() {
            Viewer::User(user) if *self.store.scope() == Scope::All => Ok(user.to_string()),
            _ => Err(Error::OutOfScope("everything of a user".to_owned())),
        }
    }

    pub(crate) fn permit(&self, path: &SkillPath) -> Result<(), Error> {
        let name = path.to_string();
        if self.store.scope().allows(Some(&name)) {
            Ok(())
        } else {
            Err(Error::OutOfScope(name))
        }
    }

    /// The time as records carry it: RFC 3339 with microseconds and `+00:00`.
    pub(crate) fn timestamp(&self) -> String {
        stamp(self.now)
    }

    /// Creates the memory if it does not exist, so that its changes can be followed.
    pub fn begin(&self) -> Result<(), Error> {
        if !self.store.directory().is_there() {
            drop(self.writer()?);
        }
        Ok(())
    }

    pub(crate) fn writer(&self) -> Result<Writer, Error> {
        self.records().writer()
    }

    /// Adds an execution, in one write with those of other requests of this process.
    pub(crate) fn add(&self, execution: &Execution) -> Result<Added, Error> {
        let group = &self.group_commit;
        group.add(&self.store, execution, self.now, self.random)
    }

    /// Stores a paid result that has no other place in its own file, next to the data files or in
    /// the temporary directory. Returns its path.
    pub(crate) fn set_aside(&self, name: &str, text: &str) -> Option<PathBuf> {
        let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let redacted = if json {
            memctl_redact::redact_json(text)
        } else {
            memctl_redact::redact(text)
        };
        let beside = self.store.directory().below("recovered");
        let spare = named::directory(&self.spare_dir);
        [beside, spare].into_iter().find_map(|directory| {
            directory.create().ok()?;
            directory
                .replace_file(name, redacted.text.as_bytes())
                .ok()?;
            Some(directory.join(name))
        })
    }
}

/// Formats a time for a record: RFC 3339, UTC, microseconds.
pub(crate) fn stamp(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// Warnings about the damage that a writer has repaired.
pub(crate) fn repair_warnings(problems: Vec<Problem>) -> impl Iterator<Item = String> {
    problems.into_iter().map(|problem| {
        format!("repaired after a crash: {problem}; the removed bytes are kept in `recovered/`")
    })
}

/// Warnings of a writer: about repaired files and redacted secrets.
pub(crate) fn warnings_of(writer: &mut Writer) -> impl Iterator<Item = String> + use<> {
    let redacted = redacting_writer::redaction_warning(writer.take_left_out());
    repair_warnings(writer.take_repairs()).chain(redacted)
}

/// A duration as reports show it: milliseconds, to a tenth.
pub(crate) fn milliseconds(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

/// An amount as records carry it: to a billionth of a dollar, which is less than any token costs.
pub(crate) fn dollars(amount: f64) -> f64 {
    (amount * 1e9).round() / 1e9
}

impl Workspace {
    /// Returns the workspace and the id that somebody means: `CORR-003@3f2a` is a record of another
    /// workspace, and is looked up there.
    pub fn of_id(&self, id: &str) -> Result<(Self, String), Error> {
        let (id, origin) = split_origin(id);
        let mut workspace = self.clone();
        if let Some(origin) = origin {
            workspace.store = self.store.pulled_as(origin)?.store;
        }
        Ok((workspace, id.to_owned()))
    }
}

/// Resolves an id, an id prefix or `latest` to a record. Fails with [`Error::Forgotten`] for a
/// deleted record.
pub(crate) fn locate(store: &Scoped, id: &str) -> Result<(Kind, String), Error> {
    let kind = match Kind::of_id(id) {
        Some(kind) => kind,
        None if id == "latest" => Kind::Execution,
        None => return Err(Error::NoId(id.to_owned())),
    };
    Ok((kind, store.resolve(kind, id, None)?))
}

/// Returns the entry of a record with exactly this id.
pub(crate) fn entry(store: &Scoped, kind: Kind, id: &str) -> Result<Entry, Error> {
    let found = store.find(kind, id)?;
    found.ok_or_else(|| Error::not_found(kind, id))
}

/// An entry as a document; `None` where it is no readable record.
pub(crate) fn document(entry: &Entry) -> Option<Document> {
    document_of(entry.kind, &entry.text)
}

/// Returns the document of a record with this JSON text; `None` if it cannot be read.
pub(crate) fn document_of(kind: Kind, text: &[u8]) -> Option<Document> {
    fn of<R: Record>(text: &[u8]) -> Option<Document> {
        let record = serde_json::from_slice::<R>(text).ok()?;
        Some(record.document())
    }
    by_kind!(kind, of(text))
}

/// The level of trust of an entry: `observed` where this user does not stand behind it.
pub(crate) fn level(store: &Scoped, entry: &Entry) -> Trust {
    let own = document(entry).map_or(Trust::Observed, |document| document.trust);
    store.trust_snapshot().of_entry(entry, own)
}

/// Text of a record that its tombstone hashes. For a rule this is the rule alone: the same correction yields
/// it again word for word, under other circumstances.
pub(crate) fn remembered(document: &Document) -> &str {
    if document.kind == Kind::Reflexion {
        &document.summary
    } else {
        &document.content
    }
}

/// Common fields of the lines of one writer.
#[derive(Debug)]
pub(crate) struct Scribe {
    now: DateTime<Utc>,
    random: fn() -> String,
    session: Option<String>,
}

impl Scribe {
    /// Creates the fields; `session` is the id of a session, or the id that an agent host gave it.
    pub(crate) fn new(now: DateTime<Utc>, random: fn() -> String, session: Option<&str>) -> Self {
        Self {
            now,
            random,
            session: session.map(|name| memctl_redact::redact(name).text.into_owned()),
        }
    }

    /// Returns a line for a successful step, with the optional fields empty.
    pub(crate) fn line(&self, step: &str, action: ActionType) -> ExecutionLog {
        ExecutionLog {
            id: (self.random)(),
            session_id: self.session.clone(),
            step_name: step.to_owned(),
            action_type: action,
            status: LogStatus::Success,
            created_at: stamp(self.now),
            ..ExecutionLog::default()
        }
    }
}

/// A value that a line carries.
pub(crate) fn data(value: &Value) -> Option<Box<RawValue>> {
    raw(value).ok()
}

/// JSON text of a value, as records carry it.
pub(crate) fn raw(value: &impl Serialize) -> Result<Box<RawValue>, Error> {
    Ok(serde_json::value::to_raw_value(value)?)
}

impl Workspace {
    /// Audits a read of records that belong to users. Returns a warning if that fails, and the read goes on: a
    /// memory that is only read may be where nobody can write.
    pub(crate) fn note_read<'a>(
        &self,
        records: impl IntoIterator<Item = (Kind, Touched<'a>)>,
    ) -> Option<String> {
        let noted = records
            .into_iter()
            .filter(|(kind, (id, _))| kind.has_user() && !id.is_empty());
        let noted: Vec<Touched<'_>> = noted.map(|(_, touched)| touched).collect();
        let done = self.store.audit(AuditAction::Read, &noted);
        done.err()
            .map(|error| format!("this read is not in the audit: {}", chain(&error)))
    }

    /// Audits an export: records of users by id, others by number and kind. Returns a warning if the event
    /// cannot be written.
    pub(crate) fn note_exported(&self, entries: &[Entry]) -> Option<String> {
        let mut numbers: Vec<String> = Vec::new();
        for kind in Kind::ALL.into_iter().filter(|kind| !kind.has_user()) {
            let count = entries.iter().filter(|entry| entry.kind == kind).count();
            if count > 0 {
                numbers.push(format!("{count} {}", kind.plural()));
            }
        }
        let owned = entries.iter().filter(|entry| entry.kind.has_user());
        let owned: Vec<_> = owned.map(|e| (e.id.as_str(), e.user_id())).collect();
        let mut touched: Vec<Touched<'_>> = owned
            .iter()
            .map(|(id, user)| (*id, user.as_deref()))
            .collect();
        touched.extend(numbers.iter().map(|number| (number.as_str(), None)));
        let done = self.store.audit(AuditAction::Exported, &touched);
        done.err()
            .map(|error| format!("this export is not in the audit: {}", chain(&error)))
    }
}
