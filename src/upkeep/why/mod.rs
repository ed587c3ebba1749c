//! Explains a record: its origin and its effects.
//!
//! The chain is a tree from the requested record: first its causes, then its effects. Upward steps follow only
//! causes and downward steps only effects, so that a chain does not become the whole store. Executions are its
//! ends.
//!
//! A link to a removed record is shown. Within a scope it is hidden, because a removed record and a
//! record of others look alike there.
//!
//! Out of scope: guesses. A link is a reference between records, never a similarity.

mod walk;

use serde::Serialize;

use crate::model::words::names;
use crate::model::{Evidence, Kind, Trust};
use crate::store::workspace::{Error, Workspace, locate};
use crate::upkeep::status::damage;

/// Outcome of [`why()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct WhyReport {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Links in tree order: the record, and after each link those that it leads to.
    pub chain: Vec<Link>,
    /// Evidence of the record. For an execution or a correction: evidence of the rules that came from it.
    pub evidence: Evidence,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Record, test or session in a chain.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Link {
    /// Id of the record, host id of the session, or name of the test.
    pub id: String,
    /// Kind of the record, or `test`, or `transcript`.
    pub kind: &'static str,
    /// Relation to the link `to`.
    pub relation: Relation,
    /// Id of the link that led here; `None` for the requested record.
    pub to: Option<String>,
    /// Time of creation or removal: RFC 3339, UTC. Empty if unknown.
    pub at: String,
    /// Text on one line.
    pub summary: String,
    /// State: the outcome of an execution; `candidate`, `superseded`, `retired`, `quarantined`,
    /// `episode` or `approved`; `forgotten` with a tombstone, or `missing` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Trust level of a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Status of a rule or a procedure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Source, if the record names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Number of executions with a rule in their prompt; the newest follow as links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executions: Option<u64>,
    /// Number of places where a procedure was seen; the newest follow as links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origins: Option<u64>,
    /// Number of links between this one and the requested record.
    #[serde(skip)]
    pub depth: usize,
}

names! {
    /// Relation of one link to another.
    #[derive(Default, schemars::JsonSchema)]
    #[expect(missing_docs, reason = "the names are the definition")]
    Relation {
        /// Requested record.
        #[default]
        Asked = "asked",
        HadRule = "had_rule",
        HadProcedure = "had_procedure",
        Repeats = "repeats",
        CorrectedBy = "corrected_by",
        Corrects = "corrects",
        Became = "became",
        Strengthened = "strengthened",
        DistilledFrom = "distilled_from",
        StrengthenedBy = "strengthened_by",
        Supersedes = "supersedes",
        SupersededBy = "superseded_by",
        SuspendedBy = "suspended_by",
        ValidatedBy = "validated_by",
        InjectedInto = "injected_into",
        SeenIn = "seen_in",
        /// Session in which an agent was told it.
        ToldIn = "told_in",
        /// Message of a person that a rule was heard in.
        SaidIn = "said_in",
    }
}

impl Relation {
    /// Returns the relation in words, to be followed by the id.
    pub fn words(self) -> String {
        match self {
            Self::Asked => String::new(),
            Self::HadRule => "had the rule".to_owned(),
            Self::HadProcedure => "had the lesson".to_owned(),
            other => other.name().replace('_', " "),
        }
    }

    /// Returns `true` if the evidence of such a link counts for the requested record.
    const fn counts(self) -> bool {
        matches!(self, Self::Asked | Self::Became | Self::Strengthened)
    }
}

/// Explains the origin and the effects of a record. `id` is an id, also of a pulled record, an id
/// prefix, or `latest`.
pub fn why(workspace: &Workspace, id: &str) -> Result<WhyReport, Error> {
    let (workspace, id) = &workspace.of_id(id)?;
    let (kind, id) = locate(&workspace.store, id)?;
    let chain = walk::chain(&workspace.store, kind, &id)?;
    let read = chain.read.iter();
    let unnoted =
        workspace.note_read(read.map(|(kind, id, user)| (*kind, (id.as_str(), user.as_deref()))));
    let warnings = damage(&workspace.store).unwrap_or_default().into_iter();
    Ok(WhyReport {
        id,
        kind,
        warnings: warnings.chain(unnoted).collect(),
        chain: chain.chain,
        evidence: chain.evidence,
    })
}
