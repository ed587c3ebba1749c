//! How a rule is seen at an agent's call: pairs of regular expressions, and the answer to a call.
//!
//! Data only: claims of a file. Patterns act only if this user confirmed exactly these patterns of
//! exactly this rule (`store::trust`); `rules::acting::patterns` checks and matches them.

use serde::{Deserialize, Deserializer, Serialize};

use super::lenient;

/// Part of a call that a pattern is matched with.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum CallPart {
    /// Each simple command of a command line, and the whole line.
    #[default]
    Command,
    /// Each path that the call changes, relative to the project and absolute.
    Path,
    /// The new content of an edit.
    Content,
}

impl CallPart {
    /// Every part.
    pub const ALL: [Self; 3] = [Self::Command, Self::Path, Self::Content];

    /// Returns the word as written in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Path => "path",
            Self::Content => "content",
        }
    }
}

/// Calls that break a rule, as regular expressions over one part of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallPattern {
    /// Part of the call.
    #[serde(default)]
    pub on: CallPart,
    /// Matches where the rule is broken: `^npm\b`.
    #[serde(rename = "match", deserialize_with = "lenient::text")]
    pub matches: String,
    /// Matches where it is not broken after all.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub unless: String,
    /// Matches a command that makes the call fine once it succeeded earlier in the session.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub after: String,
}

impl CallPattern {
    /// Returns the texts that an approval covers.
    pub fn claims(&self) -> [&str; 4] {
        [self.on.name(), &self.matches, &self.unless, &self.after]
    }
}

/// Answer to a call that breaks a rule. No answer ever permits a call.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum CallAction {
    /// The rule acts on no call.
    Off,
    /// The agent gets the rule as context, and the call runs.
    #[default]
    Note,
    /// The agent host asks the person.
    Ask,
    /// The agent host refuses the call.
    Deny,
}

impl CallAction {
    /// Every action, weakest first.
    pub const ALL: [Self; 4] = [Self::Off, Self::Note, Self::Ask, Self::Deny];

    /// Returns the word as written in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Note => "note",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Returns `true` for the action of a rule that says nothing else.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn is_note(&self) -> bool {
        *self == Self::Note
    }
}

/// Reads an action; an unknown word is a note.
pub(super) fn action<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CallAction, D::Error> {
    let word = lenient::text(deserializer)?;
    let found = CallAction::ALL.into_iter().find(|a| a.name() == word);
    Ok(found.unwrap_or_default())
}

/// Reads patterns; one in another form is skipped, and does not hide the rule.
pub(super) fn patterns<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<CallPattern>, D::Error> {
    let mut patterns: Vec<CallPattern> = lenient::list(deserializer)?;
    patterns.retain(|pattern| !pattern.matches.is_empty());
    Ok(patterns)
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
