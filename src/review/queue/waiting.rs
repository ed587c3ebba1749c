//! Entries of the queue: data for any display.

use std::cmp::Ordering;

use serde::Serialize;

use crate::model::{CallPattern, Evidence, Judgement, Kind, Verdict};
use crate::review::Replay;
use crate::rules::SimilarRule;

/// Reason for an entry. The order is that of the queue.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum WaitingKind {
    /// Two rules in use that cannot both be obeyed.
    Contradiction,
    /// Rule that an agent proposed, that was heard in a chat, or that came with the files of others.
    Candidate,
    /// Procedure that looks like a prompt injection, and is not told.
    Quarantined,
    /// Lesson or pattern from a session, or from another program.
    Procedure,
    /// Imported memory.
    Memory,
    /// Two rules in use that may say the same.
    Similar,
    /// Approved record with evidence against it.
    Doubtful,
    /// Rule that makes a regression test fail.
    Test,
}

impl WaitingKind {
    /// Returns the name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Contradiction => "contradiction",
            Self::Candidate => "candidate",
            Self::Quarantined => "quarantined",
            Self::Procedure => "procedure",
            Self::Memory => "memory",
            Self::Similar => "similar",
            Self::Doubtful => "doubtful",
            Self::Test => "test",
        }
    }
}

/// Text of an entry with its name, such as `quote`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Part {
    /// Name of the text.
    pub name: &'static str,
    /// Text as stored: callers sanitize it.
    pub text: String,
}

/// Origin of a record. Empty texts are unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Provenance {
    /// Source of a rule: `correction`, `agent`, `chat`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Session of the newest observation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// Project: name of the working directory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// Tool of the failing call.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// Time of the last observation, else of creation: RFC 3339, UTC.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub at: String,
}

/// Use of a record, and how often it was observed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Backing {
    /// Uses and their outcomes.
    #[serde(flatten)]
    pub uses: Evidence,
    /// Number of observations.
    pub times: u64,
    /// Number of sessions with an observation.
    pub sessions: u64,
    /// Confidence of a rule, from 0 to 1; `None` for other records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// One entry of the queue.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Waiting {
    /// Reason for the entry.
    pub kind: WaitingKind,
    /// Id of the record; of a pair, that of the older rule.
    pub id: String,
    /// Kind of the record.
    pub record: Kind,
    /// Id of the newer rule of a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// Skill; `None` if the record has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Record on one line.
    pub title: String,
    /// Reason in words; empty if the kind says all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Reason why a text of the record looks like a prompt injection; `None` if none does, or if
    /// nobody has looked yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspicious: Option<String>,
    /// Texts of the record.
    pub parts: Vec<Part>,
    /// Origin of the record.
    pub origin: Provenance,
    /// Evidence for the record.
    pub evidence: Backing,
    /// Judgement of a model or of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Judgement>,
    /// Nearest rule in use, for a candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<SimilarRule>,
    /// Command that decides about the entry.
    pub command: String,
    /// Replay of the rule over past calls; `None` before it is tried, and for other records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Patterns of a rule.
    #[serde(skip)]
    pub patterns: Vec<CallPattern>,
    /// Order within a kind: the greatest comes first.
    #[serde(skip)]
    pub(super) weight: [f64; 3],
}

impl Waiting {
    /// Entry about one record.
    pub(crate) fn about(kind: WaitingKind, record: Kind, id: &str, command: String) -> Self {
        Self {
            kind,
            id: id.to_owned(),
            record,
            other: None,
            skill: None,
            title: String::new(),
            reason: String::new(),
            suspicious: None,
            parts: Vec::new(),
            origin: Provenance::default(),
            evidence: Backing::default(),
            advice: None,
            near: None,
            command,
            replay: None,
            patterns: Vec::new(),
            weight: [0.0; 3],
        }
    }

    /// Adds a text, unless it is blank.
    pub(crate) fn part(&mut self, name: &'static str, text: &str) {
        if !text.trim().is_empty() {
            self.parts.push(Part {
                name,
                text: text.to_owned(),
            });
        }
    }

    /// Returns the text of this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        let part = self.parts.iter().find(|part| part.name == name)?;
        Some(&part.text)
    }

    /// Looks for prompt injection in the texts, unless that is done. Screening takes some time, and a
    /// screen shows few entries.
    pub fn screen(&mut self) {
        if self.suspicious.is_none() && self.waits_for_approval() {
            self.suspicious = self.suspicions().into_iter().next();
        }
    }

    /// Returns the reasons why texts of the record look like a prompt injection, without duplicates.
    pub(crate) fn suspicions(&self) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        for part in &self.parts {
            let reason = memctl_redact::admit(&part.text).quarantine;
            reasons.extend(reason.filter(|reason| !reasons.contains(reason)));
        }
        reasons
    }

    /// Returns `true` if an approval decides about the entry.
    pub fn waits_for_approval(&self) -> bool {
        use WaitingKind as Of;
        matches!(
            self.kind,
            Of::Candidate | Of::Quarantined | Of::Procedure | Of::Memory
        )
    }

    /// Returns `true` if the entry is about this record.
    pub fn names(&self, id: &str) -> bool {
        self.id == id || self.other.as_deref() == Some(id)
    }

    /// Compares two entries by their place in the queue: by kind, what a model or the program advises against
    /// last, then surest first, then newest first.
    pub(crate) fn place(&self, other: &Self) -> Ordering {
        let is_discarded = |advice: &Judgement| advice.verdict == Verdict::Discard;
        let against = |waiting: &Self| waiting.advice.as_ref().is_some_and(is_discarded);
        let mut weights = other
            .weight
            .iter()
            .zip(&self.weight)
            .map(|(b, a)| b.total_cmp(a));
        let by_kind = self.kind.cmp(&other.kind);
        by_kind
            .then(against(self).cmp(&against(other)))
            .then(
                weights
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal),
            )
            .then_with(|| other.origin.at.cmp(&self.origin.at))
            .then_with(|| self.id.cmp(&other.id))
    }
}
