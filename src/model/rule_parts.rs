//! Parts of a rule: the calls that break it and the answer to them, the messages that it was heard in, its
//! relations to other rules, and the judgement before a review.
//!
//! Data only: claims of a file. Patterns act only if this user confirmed exactly these patterns of
//! exactly this rule (`store::trust`); `rules::acting::patterns` checks and matches them.
//!
//! - A relation is stored with the newer rule, so that a pair that was judged once is not compared by its
//!   words again.
//! - A judgement is advice for the person who reviews, and never raises the trust of a record.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::lenient;
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
    #[serde(rename = "match", deserialize_with = "lenient::text")]
    pub matches: String,
    /// Matches where it is not broken after all.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "String::is_empty")]
    pub unless: String,
    /// Matches a command that makes the call fine once it succeeded earlier in the session.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "String::is_empty")]
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
    let mut patterns: Vec<CallPattern> = lenient::list(deserializer)?;
    patterns.retain(|pattern| !pattern.matches.is_empty());
    Ok(patterns)
}

/// Message that a rule was heard in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    /// Words of the person, redacted.
    #[serde(deserialize_with = "lenient::text")]
    pub quote: String,
    /// The agent host's session id, or the file name of a session without one.
    #[serde(deserialize_with = "lenient::text")]
    pub session: String,
    /// Project: name of the working directory that the session began in. The rule is told only
    /// there; empty means everywhere.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "String::is_empty")]
    pub workspace: String,
    /// Ordinal of the message among those of the person in the session, from 1; 0 until the session
    /// file is read.
    pub turn: u64,
    /// Last call of the agent before the message, shortened; empty if there was none.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "String::is_empty")]
    pub after: String,
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

names! {
    /// Verdict on a record.
    #[derive(JsonSchema)]
    Verdict {
        /// Worth the time of the person who reviews.
        Keep = "keep",
        /// Of no use to anybody.
        Discard = "discard",
        /// Says the same as another record.
        Merge = "merge",
    }
}

/// Verdict of a model, or of the program itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// Verdict.
    pub verdict: Verdict,
    /// Id of the record that says the same; empty unless the verdict is [`Verdict::Merge`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub into: String,
    /// Reason, one sentence.
    #[serde(default)]
    pub reason: String,
    /// Author: `offline`, or `provider/model`.
    #[serde(default)]
    pub by: String,
    /// RFC 3339, UTC.
    #[serde(default)]
    pub at: String,
}

impl Judgement {
    /// Returns `true` if the record is of no use, or says the same as another.
    pub fn is_against(&self) -> bool {
        self.verdict != Verdict::Keep
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
