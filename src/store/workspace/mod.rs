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
pub use records::AuditReads;

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::model::{Scope, SkillPath, Viewer, split_origin};
use crate::store::skill::{Skill, Skills};
pub use crate::store::{Error, Refusal};
use crate::store::{GroupCommit, Problem, Scoped, SeenEntries, Writer};

/// A workspace, opened, and what the verbs need from outside.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The records.
    pub store: Scoped,
    /// Where skills are; the directory need not exist.
    pub skills_dir: std::path::PathBuf,
    /// Settings of the verbs.
    pub settings: Settings,
    /// Whose models may be asked.
    pub providers: Providers,
    /// Where a paid answer is kept when the memory directory takes nothing.
    pub spare_dir: std::path::PathBuf,
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
        Ok(self.store.write(&mut || (self.random)())?)
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
        Ok(Skills::open(&self.skills_dir)?)
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
