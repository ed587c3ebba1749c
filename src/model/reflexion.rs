//! Rules: learned from corrections, with the evidence for and against them.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::model::kind::{AGENT, CANDIDATE, CHAT, Document, Kind, REJECTED, Record, Trust, given};
use crate::model::rule_parts::{
    CallAction, CallPattern, Evidence, Judgement, Receipts, RelatedRule, Said, count, patterns,
};
use crate::model::text::one_line;
use crate::model::words::{lenient, plain_number};

/// Utility below which a rule is no longer shown, as in the reference implementation.
pub const UTILITY_FLOOR: f64 = 0.3;

/// Half-life of the recency of a rule, in days.
const HALF_LIFE_DAYS: f64 = 90.0;

/// Number of outcomes required before a rule can be retired.
const OUTCOMES: f64 = 5.0;

/// A rule learned from a correction: an entry of `reflexion_entries.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, remote = "Reflexion")]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the file")]
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
    /// Id of the candidate that the person's own words replace this rule with; until a person
    /// decides on it, the rule is not told. Empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub suspended_by: String,
    /// `candidate` if an agent relayed the rule, or it was heard in a chat, and no user has approved
    /// it; `active` if one has.
    /// Empty means active.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// Guardrail files below the skills directory that could not be written; the write is retried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails_pending: Vec<String>,
    /// `true` if a person keeps the rule from being retired by its evidence.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
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

    /// Returns the state: `superseded`, `rejected`, `candidate`, `withdrawal`, `suspended`, `retired`
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
        } else if self.is_suspended() {
            "suspended"
        } else if self.is_retired() {
            "retired"
        } else {
            "active"
        }
    }

    /// Returns `true` if the person took the rule back in a message, and has not decided in a review.
    /// A rule that asks or refuses goes on: only the person takes it away.
    fn is_suspended(&self) -> bool {
        !self.suspended_by.is_empty() && self.action <= CallAction::Note
    }

    /// Returns `true` if the utility is below [`UTILITY_FLOOR`] after at least five outcomes. If the
    /// count of harm is missing, another program or a user set the utility, and no minimum applies. A
    /// pinned rule is never retired.
    pub fn is_retired(&self) -> bool {
        let helped = self.times_helped.unwrap_or(0.0);
        let enough = self
            .times_harmed
            .is_none_or(|harmed| harmed + helped >= OUTCOMES);
        !self.pinned && self.utility() < UTILITY_FLOOR && enough
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

lenient!(Reflexion);

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
        let suspended = r#", "suspended_by": "REFL-002""#;
        check(suspended, "suspended", Trust::User);
        check(
            &format!(r#"{suspended}, "action": "deny""#),
            "active",
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
