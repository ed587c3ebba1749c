//! Parts of a rule: the calls that break it and the answer to them, the messages that state it, its
//! relations to other rules, the judgement before a review, and its evidence and receipts.
//!
//! Data only: claims of a file. Patterns act only if this user confirmed exactly these patterns of
//! exactly this rule (`store::trust`); `rules::acting::patterns` checks and matches them.
//!
//! - A relation is stored with the newer rule, so that a judged pair is not compared by its words again.
//! - A judgement is advice for the person who reviews, and never raises the trust of a record.
//! - Evidence is a Beta distribution with prior (2, 2): an untried record has one half, and a few outcomes move
//!   it. It equals the reference implementation's `utility_score = (helped + 2) / (injected + 4)` if every
//!   injection that did not help counts against the rule.
//! - Receipts count what agents did after they were told a rule at a call.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::words::names;

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
    pub(super) fn is_note(&self) -> bool {
        *self == Self::Note
    }
}

/// Reads patterns; one in another form is skipped, and does not hide the rule.
pub(super) fn patterns<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<CallPattern>, D::Error> {
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
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
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
    use crate::model::Reflexion;

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
