//! Entries of the queue, as data for any display: candidate rules, rules of others, rules with evidence
//! against them, and unapproved procedures and memories.

use std::cmp::Ordering;
use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::lessons::storage::patterns::LEARNED;
use crate::lessons::telling::scratch::doubt;
use crate::model::words::names;
use crate::model::{
    CallAction, CallPattern, Evidence, Kind, Memory, Procedure, QUARANTINED, Record as _,
    Reflexion, Trust, utc,
};
use crate::review::Replay;
use crate::rules::acting;
use crate::store::TrustSnapshot;

names! {
    /// Reason for an entry. The order is that of the queue.
    #[derive(JsonSchema)]
    WaitingKind {
        /// Two rules in use that cannot both be obeyed.
        Contradiction = "contradiction",
        /// Rule that an agent proposed, that was heard in a chat, or that came with the files of others.
        Candidate = "candidate",
        /// Procedure that looks like a prompt injection, and is not told.
        Quarantined = "quarantined",
        /// Lesson or pattern from a session, or from another program.
        Procedure = "procedure",
        /// Imported memory.
        Memory = "memory",
        /// Two rules in use that may say the same.
        Similar = "similar",
        /// Approved record with evidence against it.
        Doubtful = "doubtful",
    }
}

/// Text of an entry with its name, such as `quote`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Part {
    /// Name of the text.
    pub name: &'static str,
    /// Text as stored: callers sanitize it.
    pub text: String,
}

/// Origin of a record. Empty texts are unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    /// Command that decides about the entry.
    pub command: String,
    /// Replay of the rule over past calls; `None` before it is tried, and for other records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Patterns of a rule.
    #[serde(skip)]
    pub patterns: Vec<CallPattern>,
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
            command,
            replay: None,
            patterns: Vec::new(),
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

    /// Returns `true` if the record is a proposal. A rule of others is none, and stays theirs.
    pub fn may_be_rejected(&self) -> bool {
        let is_rule = self.kind == WaitingKind::Candidate;
        self.waits_for_approval()
            && self.kind != WaitingKind::Memory
            && !(is_rule && self.reason == OF_OTHERS)
    }

    /// Returns `true` if the entry is about this record.
    pub fn names(&self, id: &str) -> bool {
        self.id == id || self.other.as_deref() == Some(id)
    }

    /// Compares two entries by their place in the queue: by kind, then surest first, then newest first.
    pub(crate) fn place(&self, other: &Self) -> Ordering {
        let (own, others) = (&self.evidence, &other.evidence);
        let surest = others.uses.posterior().total_cmp(&own.uses.posterior());
        let by_kind = self.kind.cmp(&other.kind).then(surest);
        by_kind
            .then((others.sessions, others.times).cmp(&(own.sessions, own.times)))
            .then_with(|| other.origin.at.cmp(&self.origin.at))
            .then_with(|| self.id.cmp(&other.id))
    }
}

/// Reason of a rule that others count as theirs.
const OF_OTHERS: &str = "came with the files of others, and nobody has approved it here";
/// Reason of a rule whose words or patterns are others than those that the person approved.
const ACTS_AT_NO_CALL: &str =
    "acts at no call: you have not approved its words and patterns as they are now";

/// Returns the entries about a rule.
pub(super) fn of_rule(
    rule: &Reflexion,
    trust_snapshot: &TrustSnapshot,
    own_words: &TrustSnapshot,
) -> Vec<Waiting> {
    let id = &rule.reflexion_id;
    let candidate = |reason| {
        let command = format!("memctl approve {id}");
        vec![about(rule, WaitingKind::Candidate, command, reason)]
    };
    if rule.is_candidate() && rule.superseded_by.is_empty() {
        // A person may have rejected it.
        return if rule.judgement.is_some() {
            Vec::new()
        } else {
            candidate("")
        };
    }
    if !rule.is_in_use() {
        return Vec::new();
    }
    if trust_snapshot.level(rule) == Trust::Observed {
        return candidate(OF_OTHERS);
    }
    if !rule.seen_by.is_empty() && rule.action != CallAction::Off && !own_words.lets_act(rule) {
        return candidate(ACTS_AT_NO_CALL);
    }
    let mut found = Vec::new();
    let mut after = rule.clone();
    after.count_outcome(false);
    if after.is_retired() {
        let reason = "the next outcome against it takes it out of prompts";
        let command = format!("memctl edit {id}");
        found.push(about(rule, WaitingKind::Doubtful, command, reason));
    }
    if let Some(reason) = acting::ignored(rule) {
        let command = format!("memctl approve {id} --action ask");
        found.push(about(rule, WaitingKind::Doubtful, command, &reason));
    }
    found
}

/// The patterns of a rule, one per line.
fn patterns(patterns: &[CallPattern]) -> String {
    let line = |pattern: &CallPattern| {
        let mut line = format!("{}: {}", pattern.on.name(), pattern.matches);
        let places = pattern.within.join("  or: ");
        let conditions = [
            ("within", &places),
            ("unless", &pattern.unless),
            ("after", &pattern.after),
        ];
        for (name, text) in conditions {
            if !text.is_empty() {
                line.extend(["  ", name, ": ", text]);
            }
        }
        line
    };
    let lines: Vec<String> = patterns.iter().map(line).collect();
    lines.join("\n")
}

/// Entry about a rule, with its texts.
pub(super) fn about(rule: &Reflexion, kind: WaitingKind, command: String, reason: &str) -> Waiting {
    let mut waiting = Waiting::about(kind, Kind::Reflexion, &rule.reflexion_id, command);
    waiting.skill = rule.labels().skill;
    waiting.title = rule.summary();
    reason.clone_into(&mut waiting.reason);
    waiting.add_rule(rule);
    waiting.patterns.clone_from(&rule.seen_by);
    let newest = rule.said.last().cloned().unwrap_or_default();
    waiting.origin = Provenance {
        source: rule.source.clone(),
        session: newest.session,
        project: newest.workspace,
        at: utc(&rule.created_at),
        ..Provenance::default()
    };
    let times = rule.said.len().max(1 + rule.also_corrected_by.len());
    waiting.evidence = Backing {
        uses: rule.evidence(),
        times: times as u64,
        sessions: rule.sessions() as u64,
        confidence: rule.confidence,
    };
    waiting
}

/// Returns the entry about a procedure, if it waits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of uses stay far below 2^52, and a count below zero is none"
)]
pub(super) fn of_procedure(
    procedure: &Procedure,
    trust_snapshot: &TrustSnapshot,
) -> Option<Waiting> {
    let id = &procedure.procedure_id;
    let trust = trust_snapshot.level(procedure);
    let approve = format!("memctl approve {id}");
    let is_learned = procedure.status == LEARNED;
    let (kind, command, reason) = if trust != Trust::Observed {
        let reason = doubt(&procedure.clone().with_trust(trust))?;
        (WaitingKind::Doubtful, format!("memctl forget {id}"), reason)
    } else if procedure.state == QUARANTINED && is_learned {
        let reason = "quarantined when it was learned; nothing in it is suspicious today";
        (WaitingKind::Quarantined, approve, reason.to_owned())
    } else if procedure.is_active() && is_learned {
        (WaitingKind::Procedure, approve, String::new())
    } else {
        return None;
    };
    let mut waiting = Waiting::about(kind, Kind::Procedure, id, command);
    waiting.skill.clone_from(&procedure.skill);
    waiting.title = procedure.summary();
    waiting.add_procedure(procedure);
    waiting.reason = match kind {
        WaitingKind::Quarantined => waiting.suspicions().pop().unwrap_or(reason),
        _ => reason,
    };
    let newest = procedure.origins.last().cloned().unwrap_or_default();
    let mut at = [&procedure.last_seen, &procedure.created_at].into_iter();
    let at = at.find(|at| !at.is_empty()).map(|at| utc(at));
    waiting.origin = Provenance {
        session: newest.session,
        project: newest.workspace,
        tool: procedure.pattern.clone().unwrap_or_default().tool,
        at: at.unwrap_or_default(),
        ..Provenance::default()
    };
    let sessions: HashSet<&str> = procedure
        .origins
        .iter()
        .map(|at| at.session.as_str())
        .collect();
    waiting.evidence = Backing {
        uses: procedure.evidence(),
        times: procedure.occurrences.unwrap_or(1.0) as u64,
        sessions: sessions.len() as u64,
        confidence: None,
    };
    Some(waiting)
}

/// Returns the entry about a memory, if it waits.
pub(super) fn of_memory(memory: &Memory, trust_snapshot: &TrustSnapshot) -> Option<Waiting> {
    if trust_snapshot.level(memory) != Trust::Observed {
        return None;
    }
    let command = format!("memctl approve {}", memory.id);
    let mut waiting = Waiting::about(WaitingKind::Memory, Kind::Memory, &memory.id, command);
    waiting.title = memory.summary();
    waiting.add_memory(memory);
    waiting.origin.at = utc(&memory.created_at);
    waiting.evidence.times = 1;
    Some(waiting)
}

/// Texts of records, as people decide about them.
impl Waiting {
    pub(crate) fn add_rule(&mut self, rule: &Reflexion) {
        if let Some(newest) = rule.said.last() {
            self.part("quote", &newest.quote);
        }
        self.part("rule", &rule.rule);
        self.part("applies when", &rule.applies_when);
        self.part("mistake", &rule.mistake);
        self.part("seen by", &patterns(&rule.seen_by));
        self.part("receipts", &rule.receipts().words());
    }

    pub(crate) fn add_procedure(&mut self, procedure: &Procedure) {
        self.part("lesson", &procedure.lesson);
        if let Some(applies) = &procedure.applies {
            self.part("errors", &applies.errors.join("\n"));
            self.part("commands", &applies.commands.join("\n"));
            self.part("not", &applies.not.join("\n"));
            self.part("scope", applies.scope.name());
        }
        if let Some(pattern) = &procedure.pattern {
            let error = pattern.line();
            self.part("error", error);
            self.part("failed", &pattern.failing_code);
            self.part("worked", &pattern.working_code);
            self.part("printed", &pattern.success_output);
        } else {
            // The fields of a lesson repeat its line and its conditions.
            let fields = procedure.fields();
            let above = self.parts.clone();
            let is_new = |text: &str| !above.iter().any(|part| part.text.contains(text.trim()));
            for (name, text) in [("failure", &fields.failure), ("cause", &fields.root_cause)] {
                if is_new(text) {
                    self.part(name, text);
                }
            }
            let steps = (1..).zip(fields.steps().filter(|step| is_new(step)));
            let steps: Vec<String> = steps.map(|(n, step)| format!("{n}. {step}")).collect();
            self.part("steps", &steps.join("\n"));
        }
    }

    pub(crate) fn add_memory(&mut self, memory: &Memory) {
        self.part("memory", &memory.content);
        self.part("type", memory.memory_type.name());
    }
}
