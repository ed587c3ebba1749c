//! Says where a record came from, and what came of it.
//!
//! The chain is a tree, told from the record that is asked for: first what it came from, then what
//! came of it. Upwards only causes are followed and downwards only effects, so that a chain stays
//! one and does not become the whole store; executions begin and end it.
//!
//! A link whose end was removed is said. Within a scope it is not: what was forgotten and what
//! belongs to others look alike there, and neither is told.
//!
//! Deliberately absent: guesses. Only what records say of each other is a link, never likeness.

mod walk;

use serde::Serialize;

use crate::model::{Evidence, Kind, Trust};

use super::{Engine, Error};

/// Where a record came from, and what came of it.
#[derive(Debug, Serialize)]
pub struct WhyReport {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// The record, and after each record those that it leads to.
    pub chain: Vec<Link>,
    /// What use has shown of it; of an execution, a correction or a procedure, what it has shown of
    /// the rules and fixes that came of it.
    pub evidence: Evidence,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// One record, or test, or session, in a chain.
#[derive(Debug, Serialize)]
pub struct Link {
    /// Its id; of a session its host's id, of a test its name.
    pub id: String,
    /// The kind of record, or `test`, or `transcript`.
    pub kind: &'static str,
    /// What it is to `to`.
    pub relation: Relation,
    /// The id of the link that led here; `None` for the record that was asked for.
    pub to: Option<String>,
    /// When it was made, or forgotten: RFC 3339, UTC. Empty where nobody knows.
    pub at: String,
    /// Its words, on one line.
    pub summary: String,
    /// How it stands: the outcome of an execution; `candidate`, `superseded`, `retired`, `quarantined` or
    /// `approved`; `forgotten`, or `missing` where it was removed by other means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// How far it may be believed, if it is a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Of a rule or a fix: how it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Who brought it, where the record says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Of a rule: in how many executions it was injected, of which the newest follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executions: Option<u64>,
    /// Of a fix or a procedure: at how many places it was seen, of which the newest follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origins: Option<u64>,
    /// How many links lie between it and the record that was asked for.
    #[serde(skip)]
    pub depth: usize,
}

/// What one link is to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the definition")]
pub enum Relation {
    /// The record that was asked for.
    Asked,
    HadRule,
    Repeats,
    CorrectedBy,
    Corrects,
    Became,
    Strengthened,
    DistilledFrom,
    StrengthenedBy,
    Supersedes,
    SupersededBy,
    ValidatedBy,
    Breaks,
    InjectedInto,
    ExplainedBy,
    Explains,
    SeenIn,
}

impl Relation {
    /// The relation in words, to be followed by the id.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Asked => "",
            Self::HadRule => "had the rule",
            Self::Repeats => "repeats",
            Self::CorrectedBy => "corrected by",
            Self::Corrects => "corrects",
            Self::Became => "became",
            Self::Strengthened => "strengthened",
            Self::DistilledFrom => "distilled from",
            Self::StrengthenedBy => "strengthened by",
            Self::Supersedes => "supersedes",
            Self::SupersededBy => "superseded by",
            Self::ValidatedBy => "validated by",
            Self::Breaks => "breaks",
            Self::InjectedInto => "injected into",
            Self::ExplainedBy => "explained by",
            Self::Explains => "explains",
            Self::SeenIn => "seen in",
        }
    }

    /// Whether what use has shown of such a link speaks for the record that was asked for.
    const fn counts(self) -> bool {
        matches!(
            self,
            Self::Asked | Self::Became | Self::Strengthened | Self::Explains
        )
    }
}

impl Engine {
    /// Where a record came from, and what came of it. `id` may be the beginning of one, or `latest`.
    pub fn why(&self, id: &str) -> Result<WhyReport, Error> {
        let (kind, id) = self.locate(id)?;
        let chain = walk::chain(&self.store, kind, &id)?;
        let read = chain.read.iter();
        let unnoted =
            self.note_read(read.map(|(kind, id, user)| (*kind, (id.as_str(), user.as_deref()))));
        let warnings = Kind::ALL.into_iter().filter_map(|kind| {
            let damaged = self.store.has_problems(kind).unwrap_or(false);
            let file = kind.file();
            damaged.then(|| format!("`{file}` has damaged parts; see `memctl doctor`"))
        });
        Ok(WhyReport {
            id,
            kind,
            warnings: warnings.chain(unnoted).collect(),
            chain: chain.links,
            evidence: chain.evidence,
        })
    }
}
