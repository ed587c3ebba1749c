//! Check of a rule: the calls of an agent that the rule is about.
//!
//! A check acts only if this user confirmed exactly this check of exactly this rule; the store
//! decides about that (`store::trust`). The fields are patterns; `learn::check` matches them.

use serde::{Deserialize, Deserializer, Serialize};

use super::lenient;

/// Patterns for calls, and the answer to a call that matches all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Check {
    /// Pattern for the tool name; empty matches every tool.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub tool: String,
    /// Pattern for a command of the call; empty matches every call.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub command: String,
    /// Pattern for a path of the call; empty matches every call.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub path: String,
    /// Answer to a matching call. No answer ever permits a call.
    pub action: CheckAction,
}

/// Answer to a call that matches a check.
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
pub enum CheckAction {
    /// The agent gets the rule as context, and the call runs.
    #[default]
    Note,
    /// The agent host asks the person.
    Ask,
    /// The agent host refuses the call.
    Deny,
}

impl CheckAction {
    /// Every action, weakest first.
    pub const ALL: [Self; 3] = [Self::Note, Self::Ask, Self::Deny];

    /// Returns the word as written in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl Check {
    /// Returns `true` if no pattern is given. Such a check matches no call.
    pub fn is_blank(&self) -> bool {
        self.tool.is_empty() && self.command.is_empty() && self.path.is_empty()
    }

    /// Returns the patterns with their names, without empty ones.
    pub fn patterns(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("tool", self.tool.as_str()),
            ("command", &self.command),
            ("path", &self.path),
        ];
        all.into_iter().filter(|(_, pattern)| !pattern.is_empty())
    }

    /// Returns the texts that an approval covers.
    pub fn claims(&self) -> [&str; 4] {
        [&self.tool, &self.command, &self.path, self.action.name()]
    }
}

/// Counts of a check: each session counts at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct CheckUse {
    /// Sessions in which the check fired.
    pub fired: u64,
    /// Sessions in which a matching call ran all the same: after a note, the next one.
    pub overridden: u64,
    /// Sessions in which such a call then succeeded.
    pub needless: u64,
}

impl CheckUse {
    /// Minimum number of overridden firings before a check counts as doubtful.
    const OFTEN: u64 = 3;

    /// Returns `true` if the check is overridden in more than half of the sessions, and often.
    pub fn is_doubtful(self) -> bool {
        self.overridden >= Self::OFTEN && self.overridden * 2 > self.fired
    }
}

/// Reads a check; one in another form counts as none, and does not hide the rule.
pub(super) fn lenient<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Check>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value)
        .ok()
        .filter(|check: &Check| !check.is_blank()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reflexion;

    #[test]
    fn a_check_in_another_form_is_none_and_hides_no_rule() {
        let check = |json: &str, expected: Option<(&str, CheckAction)>| {
            let text = format!(r#"{{"rule": "r", "check": {json}}}"#);
            let rule: Reflexion = serde_json::from_str(&text).unwrap();
            let found = rule.check.as_ref().map(|c| (c.command.as_str(), c.action));
            assert_eq!(found, expected, "{json}");
        };
        check(
            r#"{"command": "npm", "action": "note"}"#,
            Some(("npm", CheckAction::Note)),
        );
        check(
            r#"{"command": "npm", "action": "deny", "since": 1}"#,
            Some(("npm", CheckAction::Deny)),
        );
        // An unknown action is not weakened to a known one.
        check(r#"{"command": "npm", "action": "allow"}"#, None);
        check(r#"{"command": "npm"}"#, None);
        check(r#"{"action": "deny"}"#, None);
        check("null", None);
        check(r#""npm""#, None);
    }

    #[test]
    fn a_check_is_doubtful_if_most_sessions_override_it() {
        let check = |fired, overridden, expected| {
            let used = CheckUse {
                fired,
                overridden,
                needless: 0,
            };
            assert_eq!(used.is_doubtful(), expected, "{used:?}");
        };
        check(0, 0, false);
        check(2, 2, false);
        check(3, 3, true);
        check(5, 3, true);
        check(6, 3, false);
    }
}
