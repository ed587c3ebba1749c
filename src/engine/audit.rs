//! The audit: what is noted of reads, and what is told of all of it.
//!
//! Every write is noted by the writer itself. Reads are noted here, by the verbs that answer with
//! records: always where they are somebody's (memories, sessions), and of every kind where a person
//! wants it. Rules and fixes belong to the work and are read all the time.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::model::Kind;
use crate::store::{AuditLine, Did, Entry, Touched};

use super::error::chain;
use super::{Engine, Error};

/// Which reads are noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditReads {
    /// Those of memories and sessions.
    #[default]
    Personal,
    /// All.
    All,
}

/// Which lines are wanted.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Those of what this user or program did.
    pub who: Option<String>,
    /// Those about this record.
    pub record: Option<String>,
    /// Those where somebody saw or changed what belongs to another.
    pub foreign: bool,
    /// The newest so many.
    pub limit: usize,
}

/// Lines of the audit.
#[derive(Debug, Serialize)]
pub struct AuditReport {
    /// How many such lines there are.
    pub total: u64,
    /// The newest of them, newest first.
    pub lines: VecDeque<AuditLine>,
}

impl Engine {
    /// The newest lines of the audit.
    pub fn audit(&self, filter: &AuditFilter) -> Result<AuditReport, Error> {
        let mut report = AuditReport {
            total: 0,
            lines: VecDeque::new(),
        };
        self.store.audited(&mut |line| {
            let of = |wanted: &Option<String>, is: &dyn Fn(&str) -> bool| {
                wanted.as_deref().is_none_or(is)
            };
            let is_wanted = of(&filter.who, &|who| line.who == who)
                && of(&filter.record, &|id| {
                    line.records.iter().any(|r| r.eq_ignore_ascii_case(id))
                })
                && (!filter.foreign || line.is_foreign());
            if is_wanted {
                report.total += 1;
                report.lines.push_front(line);
                report.lines.truncate(filter.limit);
            }
        })?;
        Ok(report)
    }

    /// Notes that records were read, where such reads are noted. What was not noted is said: the answer
    /// is given all the same, since a memory that is only read may lie where nobody can write.
    pub(super) fn note_read<'a>(
        &self,
        records: impl IntoIterator<Item = (Kind, Touched<'a>)>,
    ) -> Option<String> {
        let all = self.settings.audit_reads == AuditReads::All;
        let noted = records
            .into_iter()
            .filter(|(kind, (id, _))| (all || kind.has_user()) && !id.is_empty());
        let noted: Vec<Touched<'_>> = noted.map(|(_, touched)| touched).collect();
        if noted.is_empty() {
            return None;
        }
        let done = self.store.audit(Did::Read, &noted);
        done.err().map(|error| unnoted(&error))
    }
}

impl Engine {
    /// Notes that all records of some kinds were read for a sum, by how many they are; where reads of all
    /// kinds are noted. What was not noted is said.
    pub(super) fn note_counted(&self, read: &[(Kind, u64)]) -> Option<String> {
        if self.settings.audit_reads != AuditReads::All {
            return None;
        }
        let read = read.iter().filter(|(_, count)| *count > 0);
        let numbers: Vec<String> = read.map(|(kind, count)| number(*kind, *count)).collect();
        if numbers.is_empty() {
            return None;
        }
        let touched: Vec<Touched<'_>> = numbers.iter().map(|n| (n.as_str(), None)).collect();
        let done = self.store.audit(Did::Read, &touched);
        done.err().map(|error| unnoted(&error))
    }

    /// Notes that records went out: those that are somebody's by their ids, the others by how many they
    /// are of their kind. What was not noted is said.
    pub(super) fn note_exported(&self, entries: &[Entry]) -> Option<String> {
        let mut numbers: Vec<String> = Vec::new();
        for kind in Kind::ALL.into_iter().filter(|kind| !kind.has_user()) {
            let count = entries.iter().filter(|entry| entry.kind == kind).count();
            if count > 0 {
                numbers.push(number(kind, count as u64));
            }
        }
        let owned = entries.iter().filter(|entry| entry.kind.has_user());
        let owned: Vec<_> = owned.map(|e| (e.id.as_str(), e.user_id())).collect();
        let mut touched: Vec<Touched<'_>> = owned
            .iter()
            .map(|(id, user)| (*id, user.as_deref()))
            .collect();
        touched.extend(numbers.iter().map(|number| (number.as_str(), None)));
        let done = self.store.audit(Did::Exported, &touched);
        done.err()
            .map(|error| format!("this export is not in the audit: {}", chain(&error)))
    }
}

/// Records that are noted by how many they are.
fn number(kind: Kind, count: u64) -> String {
    format!("{count} {}", kind.plural())
}

fn unnoted(error: &crate::store::Error) -> String {
    format!("this read is not in the audit: {}", chain(error))
}

impl FromStr for AuditReads {
    type Err = InvalidReads;

    fn from_str(text: &str) -> Result<Self, InvalidReads> {
        match text {
            "personal" => Ok(Self::Personal),
            "all" => Ok(Self::All),
            _ => Err(InvalidReads),
        }
    }
}

/// No name of reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidReads;

impl fmt::Display for InvalidReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is `personal` or `all`")
    }
}

impl std::error::Error for InvalidReads {}
