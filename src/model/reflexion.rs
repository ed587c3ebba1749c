//! Rules: learned from corrections, with the evidence for and against them, and the effect of outcomes on their
//! counts, confidence and utility.
//!
//! The confidence starts at the score of the rule's text and moves with every counted outcome. It
//! is the mean of a Beta posterior, updated one outcome at a time, so the stored value is the whole
//! state. The utility is the posterior of the counts alone, as in the reference implementation.
//!
//! Its parts: the calls that break it and the answer to them, the messages that state it, its relations to other
//! rules, the judgement before a review, and its evidence and receipts. All are claims of a file. Patterns act only if
//! this user confirmed exactly these patterns of exactly this rule (`store::trust`); `rules::acting::patterns`
//! checks and matches them.
//!
//! - A relation is stored with the newer rule, so that a judged pair is not compared by its words again.
//! - A judgement is advice for the person who reviews, and never raises the trust of a record.
//! - Evidence is a Beta distribution with prior (2, 2): an untried record has one half, and a few outcomes move
//!   it. It equals the reference implementation's `utility_score = (helped + 2) / (injected + 4)` if every
//!   injection that did not help counts against the rule.
//! - Receipts count what agents did after they were told a rule at a call.
//!
//! Deliberately absent: the mapping from outcomes to rules.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::model::kind::{AGENT, CANDIDATE, CHAT, Document, Kind, REJECTED, Record, Trust, given};
use crate::model::text::one_line;
use crate::model::words::{lenient, names, plain_number};

/// Utility below which a rule is no longer shown, as in the reference implementation.
pub const UTILITY_FLOOR: f64 = 0.3;

/// Half-life of the recency of a rule, in days.
const HALF_LIFE_DAYS: f64 = 90.0;

/// Number of outcomes required before a rule can be retired.
const OUTCOMES: f64 = 5.0;

/// A rule learned from a correction: an entry of `reflexion_entries.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, remote = "Reflexion")]
pub struct Reflexion {
    /// `REFL-{NNN}`.
    pub reflexion_id: String,
    /// `domain/skill`.
    pub skill: String,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// Id of the correction that the rule comes from.
    pub correction_id: String,
    /// The mistake.
    pub mistake: String,
    /// Cause of the mistake.
    pub root_cause: String,
    /// Guidance for the prompt.
    pub rule: String,
    /// Condition under which the rule applies.
    pub applies_when: String,
    /// From 0 to 1: how specific and actionable the correction was, moved by every outcome counted
    /// since.
    pub confidence: Option<f64>,
    /// `true` if a test failed without the rule and passed with it.
    pub validated_by_test: bool,
    /// Ids of the tests that validated the rule.
    pub generated_test_ids: Vec<String>,
    /// Author of the text: `offline`, or `provider/model`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub distilled_by: String,
    /// Posterior of use, as in the reference implementation; `None` counts as 0.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utility_score: Option<f64>,
    /// Number of injections into a prompt.
    #[serde(serialize_with = "plain_number", skip_serializing_if = "Option::is_none")]
    pub times_injected: Option<f64>,
    /// Number of outcomes in favour.
    #[serde(serialize_with = "plain_number", skip_serializing_if = "Option::is_none")]
    pub times_helped: Option<f64>,
    /// Number of outcomes against. Absent from the reference implementation.
    #[serde(serialize_with = "plain_number", skip_serializing_if = "Option::is_none")]
    pub times_harmed: Option<f64>,
    /// `correction` or `synthesis`, as in the reference implementation; `agent` if an agent relayed
    /// the correction; `chat` if the rule was heard in a person's messages to an agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Messages of a person to an agent that the rule was heard in, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Said>,
    /// Ids that the rule had before merges of git.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged_from: Vec<String>,
    /// Ids of later corrections with the same meaning.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_corrected_by: Vec<String>,
    /// Id of the rule that replaces this one; empty if none does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub superseded_by: String,
    /// Ids of the rules whose place this one takes once a person approves it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<String>,
    /// `true` if it only takes back those rules: it is never told.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub withdraws: bool,
    /// `candidate` if an agent relayed the rule, or it was heard in a chat, and no user has approved
    /// it; `active` if one has.
    /// Empty means active.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// Relations to older rules of the skill, as a model or a person judged them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<RelatedRule>,
    /// Judgement of a model or of the program, until a person reviews; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Judgement>,
    /// Calls of an agent that break the rule; empty if no call can be seen to.
    #[serde(deserialize_with = "patterns", skip_serializing_if = "Vec::is_empty")]
    pub seen_by: Vec<CallPattern>,
    /// Answer to such a call, once this user approved the rule with these patterns.
    #[serde(skip_serializing_if = "CallAction::is_note")]
    pub action: CallAction,
    /// Number of sessions in which an agent was told the rule at a call.
    #[serde(serialize_with = "plain_number", skip_serializing_if = "Option::is_none")]
    pub times_told: Option<f64>,
    /// Number of these in which no later call broke it.
    #[serde(serialize_with = "plain_number", skip_serializing_if = "Option::is_none")]
    pub times_heeded: Option<f64>,
    /// Number of these in which a later call broke it.
    #[serde(serialize_with = "plain_number", skip_serializing_if = "Option::is_none")]
    pub times_recurred: Option<f64>,
    /// Number of sessions in which the person was asked about a call, and it ran.
    #[serde(serialize_with = "plain_number", skip_serializing_if = "Option::is_none")]
    pub times_overridden: Option<f64>,
    /// `true` if no user of this workspace vouches for the rule: a prompt shows it as data. Not
    /// stored; set by the code that reads rules for an agent.
    #[serde(skip)]
    pub observed: bool,
}

impl Reflexion {
    /// Returns `true` if prompts may show the rule.
    pub fn is_in_use(&self) -> bool {
        self.state() == "active" && !self.rule.trim().is_empty()
    }

    /// Returns `true` if nobody has said the rule to this memory, and no user has approved it. Searches show a
    /// candidate, labelled; it has no effect elsewhere.
    pub fn is_candidate(&self) -> bool {
        self.status == CANDIDATE
    }

    /// Returns `true` for a candidate that a person has rejected.
    fn is_rejected(&self) -> bool {
        self.is_candidate() && self.judgement.is_some()
    }

    /// Returns the state: `superseded`, `rejected`, `candidate`, `withdrawal`, `retired`
    /// or `active`.
    pub fn state(&self) -> &'static str {
        if !self.superseded_by.is_empty() {
            "superseded"
        } else if self.is_rejected() {
            REJECTED
        } else if self.is_candidate() {
            CANDIDATE
        } else if self.withdraws {
            "withdrawal"
        } else if self.is_retired() {
            "retired"
        } else {
            "active"
        }
    }

    /// Returns `true` if the utility is below [`UTILITY_FLOOR`] after at least five outcomes. If the
    /// count of harm is missing, another program or a user set the utility, and no minimum applies.
    pub fn is_retired(&self) -> bool {
        let helped = self.times_helped.unwrap_or(0.0);
        let enough = self
            .times_harmed
            .is_none_or(|harmed| harmed + helped >= OUTCOMES);
        self.utility() < UTILITY_FLOOR && enough
    }

    /// Returns the number of sessions that the rule was heard in.
    pub fn sessions(&self) -> usize {
        let sessions = self.said.iter().map(|source| source.session.as_str());
        sessions.collect::<HashSet<_>>().len()
    }

    /// Returns the projects that people said the rule in; empty if it is of every project.
    pub fn projects(&self) -> Vec<&str> {
        let names = self.said.iter().map(|source| source.workspace.as_str());
        names.filter(|name| !name.is_empty()).collect()
    }

    /// Returns the recency: from 0.5 (old, or unknown) to 1 (now).
    #[expect(clippy::cast_precision_loss, reason = "seconds of centuries stay far below 2^52")]
    pub fn newness(&self, now: DateTime<Utc>) -> f64 {
        let Some(born) = self.born() else {
            return 0.5;
        };
        let days = (now - born).num_seconds().max(0) as f64 / 86_400.0;
        0.5 + 0.5 * (-days / HALF_LIFE_DAYS).exp2()
    }

    /// Returns the time of creation; `None` if it cannot be read.
    pub fn born(&self) -> Option<DateTime<Utc>> {
        let born = DateTime::parse_from_rfc3339(&self.created_at);
        born.ok().map(|at| at.to_utc())
    }

    /// Returns the utility, 0.5 if unknown.
    pub fn utility(&self) -> f64 {
        self.utility_score.unwrap_or(0.5)
    }

    /// Returns the counts of use, from any program.
    pub fn evidence(&self) -> Evidence {
        Evidence {
            shown: count(self.times_injected),
            helped: count(self.times_helped),
            harmed: count(self.times_harmed),
        }
    }

    /// Returns what agents did after they were told the rule at a call.
    pub fn receipts(&self) -> Receipts {
        Receipts {
            told: count(self.times_told),
            heeded: count(self.times_heeded),
            recurred: count(self.times_recurred),
            overridden: count(self.times_overridden),
        }
    }
}

impl Record for Reflexion {
    const KIND: Kind = Kind::Reflexion;

    fn labels(&self) -> Document {
        Document {
            skill: given(&self.skill),
            status: Some(self.state().to_owned()),
            source: given(&self.source),
            ..Document::new(Self::KIND, &self.reflexion_id, &self.created_at)
        }
    }

    fn content(&self) -> String {
        // A condition that only names the skill and its input would make all rules of a skill look
        // alike.
        let generic = self
            .applies_when
            .starts_with(&format!("When executing {}", self.skill));
        let condition = if generic { "" } else { &self.applies_when };
        format!("{}\n{condition}", self.rule)
    }

    fn summary(&self) -> String {
        one_line(&self.rule)
    }

    fn claims(&self) -> Vec<String> {
        vec![
            self.skill.clone(),
            self.rule.clone(),
            self.applies_when.clone(),
        ]
    }

    /// A relayed or overheard rule is observed until a user approves it.
    fn trust(&self) -> Trust {
        let is_heard = self.source == AGENT || self.source == CHAT;
        match (is_heard, self.status.as_str()) {
            (_, CANDIDATE) | (true, "") => Trust::Observed,
            (true, _) => Trust::Approved,
            (false, _) => Trust::User,
        }
    }
}

/// Weight of the initial confidence, in outcomes.
const PROMISE: f64 = 4.0;

impl Reflexion {
    /// Counts one injection of the rule into a prompt.
    pub fn count_shown(&mut self) {
        self.times_injected = Some(self.times_injected.unwrap_or(0.0) + 1.0);
    }

    /// Counts one outcome for or against the rule.
    pub fn count_outcome(&mut self, helped: bool) {
        let weight = PROMISE + self.outcomes();
        let confidence = self.confidence.unwrap_or(0.5);
        self.confidence = Some(share(
            (confidence * weight + f64::from(helped)) / (weight + 1.0),
        ));
        self.move_count(helped, 1.0);
    }

    /// Reverts one counted outcome; does nothing if the count is zero. Leaves the confidence
    /// unchanged if only the reference implementation has counted, because its counts do not move
    /// the confidence.
    pub fn revert_outcome(&mut self, helped: bool) {
        let counted = if helped {
            self.times_helped
        } else {
            self.times_harmed
        };
        if counted.unwrap_or(0.0) < 1.0 {
            return;
        }
        if let (Some(_), Some(confidence)) = (self.times_harmed, self.confidence) {
            let weight = PROMISE + self.outcomes();
            self.confidence = Some(share(
                (confidence * weight - f64::from(helped)) / (weight - 1.0),
            ));
        }
        self.move_count(helped, -1.0);
    }

    /// Returns the initial confidence, with the effect of counted outcomes removed.
    pub fn promised(&self) -> Option<f64> {
        let confidence = self.confidence?;
        if self.times_harmed.is_none() || self.outcomes() == 0.0 {
            return Some(confidence);
        }
        let helped = self.times_helped.unwrap_or(0.0).max(0.0);
        Some(share(
            (confidence * (PROMISE + self.outcomes()) - helped) / PROMISE,
        ))
    }

    /// Takes over the evidence and the tests of another rule with the same meaning. Of two counts the larger
    /// stays: rules with the same meaning are mostly in the same prompts, and a run counts once.
    pub fn take_over(&mut self, other: &Self) {
        let before = (self.outcomes(), self.times_helped.unwrap_or(0.0).max(0.0));
        for (own, others) in [
            (&mut self.times_injected, other.times_injected),
            (&mut self.times_helped, other.times_helped),
            (&mut self.times_harmed, other.times_harmed),
        ] {
            if let Some(count) = others {
                *own = Some(own.unwrap_or(0.0).max(count));
            }
        }
        let outcomes = self.outcomes() - before.0;
        if outcomes > 0.0 {
            let helped = self.times_helped.unwrap_or(0.0).max(0.0) - before.1;
            let weight = PROMISE + before.0;
            let confidence = self.confidence.unwrap_or(0.5);
            self.confidence = Some(share((confidence * weight + helped) / (weight + outcomes)));
            self.weigh();
        }
        for test in &other.generated_test_ids {
            if !self.generated_test_ids.contains(test) {
                self.generated_test_ids.push(test.clone());
            }
        }
        self.validated_by_test |= !self.generated_test_ids.is_empty();
    }

    /// Returns `true` if `other` was merged into this rule: this rule supersedes it and covers its
    /// correction. A rule that only supersedes another does not cover its correction.
    pub fn has_taken_over(&self, other: &Self) -> bool {
        let correction = &other.correction_id;
        !self.reflexion_id.is_empty()
            && !correction.is_empty()
            && other.superseded_by == self.reflexion_id
            && (self.correction_id == *correction || self.also_corrected_by.contains(correction))
    }

    /// Number of outcomes counted.
    fn outcomes(&self) -> f64 {
        let count = |field: Option<f64>| field.unwrap_or(0.0).max(0.0);
        count(self.times_helped) + count(self.times_harmed)
    }

    fn move_count(&mut self, helped: bool, by: f64) {
        let count = if helped {
            &mut self.times_helped
        } else {
            &mut self.times_harmed
        };
        *count = Some((count.unwrap_or(0.0) + by).max(0.0));
        self.weigh();
    }

    /// Recomputes the utility from the counts.
    pub fn weigh(&mut self) {
        self.times_harmed.get_or_insert(0.0);
        if self.superseded_by.is_empty() {
            self.utility_score = Some((self.evidence().posterior() * 1000.0).round() / 1000.0);
        }
    }
}

/// Rounds a share for storage: between 0 and 1, with four decimals.
fn share(figure: f64) -> f64 {
    (figure.clamp(0.0, 1.0) * 1e4).round() / 1e4
}

lenient!(Reflexion);

names! {
    /// Part of a call that a pattern is matched with.
    #[derive(Default, JsonSchema)]
    CallPart {
        /// Each simple command of a command line, and the whole line.
        #[default]
        Command = "command",
        /// Each path that the call changes, relative to the project and absolute.
        Path = "path",
        /// The new content of an edit.
        Content = "content",
    }
}

/// Calls that break a rule, as regular expressions over one part of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallPattern {
    /// Part of the call.
    pub on: CallPart,
    /// Matches where the rule is broken: `^npm\b`.
    #[serde(rename = "match")]
    pub matches: String,
    /// Matches where it is not broken after all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unless: String,
    /// Matches a command that makes the call fine once it succeeded earlier in the session.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// Match the files that new content is in; empty: any file. Another form of it hides the pattern, which
    /// would act in every file without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<String>,
}

impl CallPattern {
    /// Returns the texts that an approval covers. No part of a call is named `within`, so that two lists
    /// of patterns never have the same claims.
    pub fn claims(&self) -> Vec<&str> {
        let own = [self.on.name(), &self.matches, &self.unless, &self.after];
        let places = self
            .within
            .iter()
            .flat_map(|place| ["within", place.as_str()]);
        own.into_iter().chain(places).collect()
    }
}

names! {
    /// Answer to a call that breaks a rule, weakest first. No answer ever permits a call.
    #[derive(Default, JsonSchema)]
    CallAction {
        /// The rule acts on no call.
        Off = "off",
        /// The agent gets the rule as context, and the call runs.
        #[default]
        Note = "note",
        /// The agent host asks the person.
        Ask = "ask",
        /// The agent host refuses the call.
        Deny = "deny",
    }
}

impl CallAction {
    /// Returns `true` for the action of a rule that says nothing else.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_note(&self) -> bool {
        *self == Self::Note
    }
}

/// Reads patterns; one in another form is skipped, and does not hide the rule.
fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<CallPattern>, D::Error> {
    let mut patterns: Vec<CallPattern> = Vec::deserialize(deserializer)?;
    patterns.retain(|pattern| !pattern.matches.is_empty());
    Ok(patterns)
}

/// Message that a rule was heard in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    /// Words of the person, redacted.
    pub quote: String,
    /// The agent host's session id, or the file name of a session without one.
    pub session: String,
    /// Project: name of the working directory that the session began in. The rule is told only
    /// there; empty means everywhere.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workspace: String,
}

names! {
    /// Relation of a rule to another.
    #[derive(JsonSchema)]
    RuleRelation {
        /// One of the two can replace the other, and nothing is lost.
        Same = "same",
        /// Both cannot be obeyed in the same case.
        Contradicts = "contradicts",
        /// One of the two holds in fewer cases than the other, or is an exception to it.
        Narrows = "narrows",
        /// Neither of these.
        Unrelated = "unrelated",
    }
}

/// Judgement on the relation of a rule to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelatedRule {
    /// Id of the other rule.
    pub id: String,
    /// Relation to it.
    pub relation: RuleRelation,
    /// Reason, on one line; empty if a person judged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Author: `provider/model`, or `user`.
    #[serde(default)]
    pub by: String,
}

/// Rejection of a proposal by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// `discard`.
    #[serde(default)]
    pub verdict: String,
    /// Reason, one sentence.
    #[serde(default)]
    pub reason: String,
    /// Author: `user`.
    #[serde(default)]
    pub by: String,
    /// RFC 3339, UTC.
    #[serde(default)]
    pub at: String,
}

/// Counts of uses and their outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Number of times shown to a model or an agent.
    pub shown: u64,
    /// Number of outcomes in favour.
    pub helped: u64,
    /// Number of outcomes against.
    pub harmed: u64,
}

impl Evidence {
    /// Returns the mean of the posterior, from 0 to 1. A showing without an outcome does not count.
    #[expect(clippy::cast_precision_loss, reason = "counts of uses stay far below 2^52")]
    pub fn posterior(self) -> f64 {
        (self.helped as f64 + 2.0) / ((self.helped + self.harmed) as f64 + 4.0)
    }
}

/// Reads a count that a file gives as any number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast to an integer saturates, and a count below zero is none"
)]
pub(super) fn count(field: Option<f64>) -> u64 {
    field.unwrap_or(0.0) as u64
}

/// Number of sessions: each counts at most once for each of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Receipts {
    /// An agent was told the rule at a call.
    pub told: u64,
    /// After it was told, no call broke the rule any more.
    pub heeded: u64,
    /// After it was told, another call broke the rule.
    pub recurred: u64,
    /// The person was asked about such a call, and it ran.
    pub overridden: u64,
}

impl Receipts {
    /// Minimum number of sessions before a rule counts as ignored.
    const OFTEN: u64 = 3;

    /// Returns `true` if agents break the rule in more than half of the sessions that they are told
    /// it in.
    pub fn is_ignored(self) -> bool {
        self.told >= Self::OFTEN && self.recurred * 2 > self.told
    }

    /// Returns the counts in words; empty if it was never told.
    pub fn words(self) -> String {
        if self.told == 0 {
            return String::new();
        }
        let mut words = format!("told in {}, heeded in {}", self.told, self.heeded);
        for (count, name) in [(self.recurred, "recurred"), (self.overridden, "overridden")] {
            if count > 0 {
                words.extend([", ", name, " in ", &count.to_string()]);
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_of_any_type_does_not_hide_the_rule() {
        let check = |json: &str, expected: Option<f64>| {
            let text = format!(r#"{{"reflexion_id": "REFL-1", "rule": "r"{json}}}"#);
            let rule: Reflexion = serde_json::from_str(&text).unwrap();
            assert_eq!(rule.confidence, expected, "{json}");
        };
        check(r#", "confidence": 0.9"#, Some(0.9));
        check(r#", "confidence": "0.9""#, Some(0.9));
        check(r#", "confidence": null"#, None);
        check(r#", "confidence": {"a": 1}"#, None);
        check("", None);
    }

    #[test]
    fn a_rule_counts_by_its_status_and_whoever_brought_it() {
        let check = |json: &str, state: &str, trust: Trust| {
            let rule: Reflexion =
                serde_json::from_str(&format!(r#"{{"rule": "r"{json}}}"#)).unwrap();
            assert_eq!((rule.state(), rule.trust()), (state, trust), "{json}");
            assert_eq!(rule.is_in_use(), state == "active", "{json}");
        };
        check("", "active", Trust::User);
        check(r#", "status": "active""#, "active", Trust::User);
        check(r#", "source": "correction""#, "active", Trust::User);
        check(r#", "source": "agent""#, "active", Trust::Observed);
        check(
            r#", "source": "agent", "status": "active""#,
            "active",
            Trust::Approved,
        );
        check(r#", "status": "candidate""#, "candidate", Trust::Observed);
        let candidate = r#", "source": "agent", "status": "candidate", "utility_score": 0.0"#;
        check(candidate, "candidate", Trust::Observed);
        let by = r#""judgement": {"verdict": "discard", "by": "user"}"#;
        check(&format!("{candidate}, {by}"), "rejected", Trust::Observed);
        check(r#", "utility_score": 0.0"#, "retired", Trust::User);
        check(
            r#", "superseded_by": "REFL-002""#,
            "superseded",
            Trust::User,
        );
    }

    #[test]
    fn counters_of_the_reference_are_evidence() {
        let json =
            r#"{"rule": "r", "times_injected": 7, "times_helped": 3, "utility_score": 0.45}"#;
        let rule: Reflexion = serde_json::from_str(json).unwrap();
        assert_eq!(
            rule.evidence(),
            Evidence {
                shown: 7,
                helped: 3,
                harmed: 0
            }
        );
        assert!((rule.utility() - 0.45).abs() < 1e-9);
    }
}

#[cfg(test)]
mod tests_of_outcomes {
    use super::*;

    #[test]
    fn every_outcome_moves_the_confidence_once_and_can_be_taken_back() {
        let rule = |json: &str| -> Reflexion {
            serde_json::from_str(&format!(r#"{{"rule": "r", {json}}}"#)).unwrap()
        };
        let check = |json: &str, outcomes: &[bool], expected: f64| {
            let mut rule = rule(json);
            let (before, promised) = (rule.clone(), rule.promised());
            for helped in outcomes {
                rule.count_outcome(*helped);
            }
            let confidence = |rule: &Reflexion| rule.confidence.unwrap_or(-1.0);
            // Each step rounds to four decimals, so the last one may differ.
            assert!(
                (confidence(&rule) - expected).abs() < 2e-4,
                "{json} {rule:?}"
            );
            if before.times_harmed.is_some() || before.times_helped.is_none() {
                let found = rule.promised().unwrap() - promised.unwrap_or(0.5);
                assert!(found.abs() < 5e-4, "{json}: {found}");
            }
            for helped in outcomes {
                rule.revert_outcome(*helped);
            }
            let off = confidence(&rule) - before.confidence.unwrap_or(0.5);
            assert!(off.abs() < 5e-4, "{json}: {off}");
            assert_eq!(rule.evidence(), before.evidence(), "{json}");
        };
        check(r#""confidence": 0.9"#, &[], 0.9);
        check(r#""confidence": 0.9"#, &[true], 0.92);
        check(r#""confidence": 0.9"#, &[false], 0.72);
        check(r#""confidence": 0.9"#, &[false, true, false], 0.6571);
        check(r#""x": 0"#, &[true], 0.6);
        check(r#""confidence": 1"#, &[true, true], 1.0);
        check(r#""confidence": 0"#, &[false], 0.0);
        // Counts of the reference implementation carry weight, and are not applied twice.
        check(r#""confidence": 0.9, "times_helped": 6"#, &[false], 0.8182);
        check(r#""confidence": 0.9, "times_helped": 6"#, &[], 0.9);

        let mut theirs = rule(r#""confidence": 0.9, "times_helped": 6"#);
        assert_eq!(theirs.promised(), Some(0.9));
        theirs.revert_outcome(true);
        assert_eq!(
            (theirs.confidence, theirs.times_helped),
            (Some(0.9), Some(5.0))
        );
        let mut none = rule(r#""confidence": 0.9"#);
        none.revert_outcome(false);
        assert_eq!((none.confidence, none.times_harmed), (Some(0.9), None));
    }

    #[test]
    fn only_what_stands_for_the_same_correction_has_taken_over() {
        let check = |one: &str, other: &str, expected: bool| {
            let rule = |json: &str| -> Reflexion { serde_json::from_str(json).unwrap() };
            assert_eq!(
                rule(one).has_taken_over(&rule(other)),
                expected,
                "{one} {other}"
            );
        };
        let other = r#"{"correction_id": "CORR-002", "superseded_by": "REFL-001"}"#;
        let merged = r#"{"reflexion_id": "REFL-001", "also_corrected_by": ["CORR-002"]}"#;
        check(merged, other, true);
        check(merged, r#"{"correction_id": "CORR-002"}"#, false);
        check(r#"{"reflexion_id": "REFL-001"}"#, other, false);
        check(
            r#"{"reflexion_id": "REFL-001"}"#,
            r#"{"superseded_by": "REFL-001"}"#,
            false,
        );
    }
}

#[cfg(test)]
mod tests_of_parts {
    use super::*;

    #[test]
    fn patterns_in_another_form_are_skipped_and_hide_no_rule() {
        let check = |json: &str, expected: &[(CallPart, &str)]| {
            let text = format!(r#"{{"rule": "r", "seen_by": {json}}}"#);
            let rule: Reflexion = serde_json::from_str(&text).unwrap();
            let found: Vec<_> = rule.seen_by.iter().map(|p| (p.on, &*p.matches)).collect();
            assert_eq!(found, expected, "{json}");
        };
        check(
            r#"[{"on": "command", "match": "^npm\\b"}, {"on": "path", "match": "x", "new": 1}]"#,
            &[(CallPart::Command, r"^npm\b"), (CallPart::Path, "x")],
        );
        check(r#"[{"match": "^npm"}]"#, &[(CallPart::Command, "^npm")]);
        // Without its place it would act everywhere.
        check(
            r#"[{"on": "content", "match": "x", "within": "y"}, {"on": "content", "match": "x", "within": [3]}]"#,
            &[],
        );
        // An unknown part is not taken for a known one.
        check(r#"[{"on": "output", "match": "x"}]"#, &[]);
        check(r#"[{"on": "path"}, {"on": "path", "match": ""}, 3]"#, &[]);
        check(r#""npm""#, &[]);
        check("null", &[]);
    }

    #[test]
    fn an_unknown_action_is_a_note() {
        let check = |json: &str, expected: CallAction| {
            let text = format!(r#"{{"rule": "r"{json}}}"#);
            let rule: Reflexion = serde_json::from_str(&text).unwrap();
            assert_eq!(rule.action, expected, "{json}");
        };
        check("", CallAction::Note);
        check(r#", "action": "ask""#, CallAction::Ask);
        check(r#", "action": "deny""#, CallAction::Deny);
        check(r#", "action": "off""#, CallAction::Off);
        check(r#", "action": "allow""#, CallAction::Note);
        check(r#", "action": {}"#, CallAction::Note);
    }
}

#[cfg(test)]
mod tests_of_evidence {
    use super::*;

    #[test]
    fn outcomes_move_the_posterior_and_mere_showing_does_not() {
        let posterior = |shown, helped, harmed| {
            Evidence {
                shown,
                helped,
                harmed,
            }
            .posterior()
        };
        assert!((posterior(0, 0, 0) - 0.5).abs() < 1e-9);
        assert!((posterior(50, 0, 0) - 0.5).abs() < 1e-9);
        assert!(posterior(5, 5, 0) > 0.7);
        assert!(posterior(5, 0, 5) < 0.3);
    }
}

#[cfg(test)]
mod tests_of_receipts {
    use super::*;

    #[test]
    fn a_rule_that_most_sessions_break_again_is_ignored() {
        let check = |told, recurred, expected| {
            let receipts = Receipts {
                told,
                recurred,
                ..Receipts::default()
            };
            assert_eq!(receipts.is_ignored(), expected, "{receipts:?}");
        };
        check(0, 0, false);
        check(2, 2, false);
        check(3, 2, true);
        check(4, 2, false);
    }
}
