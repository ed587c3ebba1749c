//! A workspace, opened: its records, its skills, its settings, and what verbs share.
//!
//! - [`Workspace`]: context of every verb; a verb is a function over it, such as `skills::run`.
//! - [`Records`]: its records alone, for verbs that need nothing else.
//! - [`Settings`], [`Providers`]: what the configuration says.
//! - `redacting_writer`: every write of user text, without its secrets.
//! - `records`: the record that an id means, records of any kind in one form, lines of the execution log, audit
//!   events of reads.
//!
//! Deliberately absent: the verbs themselves.

pub(crate) mod providers;
pub(crate) mod records;
pub(crate) mod redacting_writer;

pub use providers::{Chosen, Providers};

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use memctl_files::named;

use crate::model::{Record, Scope, SkillPath, Viewer, split_origin};
use crate::store::skill::{Skill, Skills};
use crate::store::{
    Added, GroupCommit, Problem, Scoped, SeenEntries, SkipCondition, Writer, atomic,
};
pub use crate::store::{Error, Refusal};

/// A workspace, opened, and what the verbs need from outside.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The records.
    pub store: Scoped,
    /// Where skills are; the directory need not exist.
    pub skills_dir: PathBuf,
    /// Settings of the verbs.
    pub settings: Settings,
    /// Whose models may be asked.
    pub providers: Providers,
    /// Where a paid answer is kept when the memory directory takes nothing.
    pub spare_dir: PathBuf,
    /// Now.
    pub now: DateTime<Utc>,
    /// Makes a random name.
    pub random: fn() -> String,
    /// Writes that requests of this process share; a program with one request shares with nobody.
    pub group_commit: Arc<GroupCommit>,
    /// Digests of the memories, for all requests of this process.
    pub seen_memories: Arc<SeenEntries>,
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
    /// Which reads are noted in the audit.
    pub audit_reads: AuditReads,
    /// Also writes the tests of corrections for `DeepEval` and Promptfoo.
    pub export_tests: bool,
    /// After how many days a task memory expires where nobody says otherwise; 0 is never.
    pub task_days: u32,
}

/// Which reads are noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditReads {
    /// Reads of memories and sessions.
    #[default]
    Personal,
    /// All.
    All,
}

impl FromStr for AuditReads {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "personal" => Ok(Self::Personal),
            "all" => Ok(Self::All),
            _ => Err("it is `personal` or `all`"),
        }
    }
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
}

impl Workspace {
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

    /// Adds a record, in one write with the records of other requests of this process.
    pub(crate) fn add<R: Record + Send + 'static>(
        &self,
        record: R,
        unless: Option<SkipCondition>,
    ) -> Result<Added<R>, Error> {
        let group = &self.group_commit;
        group.add(&self.store, record, unless, self.now, self.random)
    }

    /// Copies a text file unredacted before its secrets are removed. Returns the path of the copy.
    pub(crate) fn copy_aside(&self, path: &Path, text: &str) -> Result<PathBuf, Error> {
        let aside = self.store.directory().below("recovered");
        atomic::create_dir(&aside)?;
        // The last path components tell the files of two skills apart.
        let mut names: Vec<String> = path
            .components()
            .rev()
            .take(3)
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        names.reverse();
        let stamp = self.now.format("%Y%m%d%H%M%S%6f");
        let copy = format!("{}.{stamp}.txt", names.join("-"));
        atomic::replace(&aside, &copy, text.as_bytes())?;
        Ok(aside.join(copy))
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
