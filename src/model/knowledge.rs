//! What was learnt from people: rules, and typed notes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::evidence::Evidence;
use super::kind::{Kind, Record, Trust, one_line};
use super::lenient;

/// Rules whose utility has sunk below this are no longer shown; the reference's limit.
pub const UTILITY_FLOOR: f64 = 0.3;

/// The `source` of what an agent has passed on.
pub const AGENT: &str = "agent";

/// The `status` of a rule that waits for a person.
pub const CANDIDATE: &str = "candidate";

/// A rule is not retired before it had so many outcomes.
const OUTCOMES: f64 = 5.0;

/// A rule learnt from a correction: an entry of `reflexion_entries.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reflexion {
    /// `REFL-{NNN}`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub reflexion_id: String,
    /// `domain/skill`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub skill: String,
    /// RFC 3339, UTC.
    #[serde(default, deserialize_with = "lenient::text")]
    pub created_at: String,
    /// The correction that it came from.
    #[serde(default, deserialize_with = "lenient::text")]
    pub correction_id: String,
    /// What went wrong.
    #[serde(default, deserialize_with = "lenient::text")]
    pub mistake: String,
    /// Why it went wrong.
    #[serde(default, deserialize_with = "lenient::text")]
    pub root_cause: String,
    /// The guidance that is put into the prompt.
    #[serde(default, deserialize_with = "lenient::text")]
    pub rule: String,
    /// When it matters.
    #[serde(default, deserialize_with = "lenient::text")]
    pub applies_when: String,
    /// Between 0 and 1: how specific and actionable the correction was, moved by every outcome that
    /// was counted since.
    #[serde(default, deserialize_with = "lenient::number")]
    pub confidence: Option<f64>,
    /// Whether a test failed without the rule and passed with it.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub validated_by_test: bool,
    /// The tests that showed it.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub generated_test_ids: Vec<String>,
    /// The tests that fail because of it. Ours; the reference has no such list.
    #[serde(
        default,
        deserialize_with = "lenient::texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub breaks_test_ids: Vec<String>,
    /// What made the rule's words: `offline`, or `provider/model`.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub distilled_by: String,
    /// The reference's posterior of use; 0.5 where it is missing.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        skip_serializing_if = "Option::is_none"
    )]
    pub utility_score: Option<f64>,
    /// How often it was put into a prompt.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        skip_serializing_if = "Option::is_none"
    )]
    pub times_injected: Option<f64>,
    /// How often the outcome then spoke for it.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        skip_serializing_if = "Option::is_none"
    )]
    pub times_helped: Option<f64>,
    /// How often the outcome then spoke against it. Ours; the reference has no such count.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        skip_serializing_if = "Option::is_none"
    )]
    pub times_harmed: Option<f64>,
    /// The reference's `correction` or `synthesis`; `agent` where an agent has passed on the correction.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub source: String,
    /// Later corrections that said the same.
    #[serde(
        default,
        deserialize_with = "lenient::texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub also_corrected_by: Vec<String>,
    /// The rule that a person has put in its place.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub superseded_by: String,
    /// `candidate` where an agent has passed it on and no person has approved it, `active` where one has.
    /// Empty: active.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub status: String,
    /// The guardrail files, below the skills directory, that could not be written and are tried again.
    #[serde(
        default,
        deserialize_with = "lenient::texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub guardrails_pending: Vec<String>,
    /// Whether nobody here stands behind it: a prompt shows it as data. No field of the file; whoever
    /// reads rules for an agent sets it.
    #[serde(skip)]
    pub observed: bool,
}

impl Reflexion {
    /// Whether prompts may still show it.
    pub fn is_in_use(&self) -> bool {
        self.state() == "active" && !self.rule.trim().is_empty()
    }

    /// Whether an agent has passed it on and no person has approved it: it is found and shown as what it
    /// is, and acts nowhere.
    pub fn is_candidate(&self) -> bool {
        self.status == CANDIDATE
    }

    /// How it stands: `superseded`, `candidate`, `retired` or `active`.
    pub fn state(&self) -> &'static str {
        if !self.superseded_by.is_empty() {
            "superseded"
        } else if self.is_candidate() {
            CANDIDATE
        } else if self.is_retired() {
            "retired"
        } else {
            "active"
        }
    }

    /// Whether use has shown that it does more harm than good. Two or three bad outcomes are chance; where
    /// a count of harm is missing, another program or a person has set the utility, and that holds.
    pub fn is_retired(&self) -> bool {
        let helped = self.times_helped.unwrap_or(0.0);
        let enough = self
            .times_harmed
            .is_none_or(|harmed| harmed + helped >= OUTCOMES);
        self.utility() < UTILITY_FLOOR && enough
    }

    /// The reference's utility, 0.5 where nothing is known.
    pub fn utility(&self) -> f64 {
        self.utility_score.unwrap_or(0.5)
    }

    /// The counts of use, whichever program kept them.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast to an integer saturates, and a count below zero is none"
    )]
    pub fn evidence(&self) -> Evidence {
        let count = |field: Option<f64>| field.unwrap_or(0.0) as u64;
        Evidence {
            shown: count(self.times_injected),
            helped: count(self.times_helped),
            harmed: count(self.times_harmed),
        }
    }
}

impl Record for Reflexion {
    const KIND: Kind = Kind::Reflexion;

    fn id(&self) -> &str {
        &self.reflexion_id
    }

    fn set_id(&mut self, id: String) {
        self.reflexion_id = id;
    }

    fn skill(&self) -> Option<&str> {
        (!self.skill.is_empty()).then_some(&self.skill)
    }

    fn content(&self) -> String {
        // The condition that names nothing but the skill and its input would make all rules of a
        // skill alike.
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

    fn created(&self) -> &str {
        &self.created_at
    }

    /// What an agent has passed on is observed until a person approves it.
    fn trust(&self) -> Trust {
        match (self.source == AGENT, self.status.as_str()) {
            (_, CANDIDATE) | (true, "") => Trust::Observed,
            (true, _) => Trust::Approved,
            (false, _) => Trust::User,
        }
    }

    fn status(&self) -> Option<&str> {
        Some(self.state())
    }

    fn source(&self) -> Option<&str> {
        (!self.source.is_empty()).then_some(&self.source)
    }
}

/// The five types of note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the names are the definition: they are the source document's"
)]
pub enum MemoryType {
    BrandMemory,
    UserPreferences,
    CompetitiveMemory,
    TaskMemory,
    PerformanceMemory,
}

impl MemoryType {
    /// Every type, in the order of the source document.
    pub const ALL: [Self; 5] = [
        Self::BrandMemory,
        Self::UserPreferences,
        Self::CompetitiveMemory,
        Self::TaskMemory,
        Self::PerformanceMemory,
    ];

    /// Its name, as in `--type task_memory` and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BrandMemory => "brand_memory",
            Self::UserPreferences => "user_preferences",
            Self::CompetitiveMemory => "competitive_memory",
            Self::TaskMemory => "task_memory",
            Self::PerformanceMemory => "performance_memory",
        }
    }
}

/// A typed note: an entry of `memories.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Memory {
    /// `MEM-{NNN}`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub id: String,
    /// Whose it is; `None` where it is the owner's.
    #[serde(
        default,
        deserialize_with = "lenient::name",
        skip_serializing_if = "Option::is_none"
    )]
    pub user_id: Option<String>,
    /// One of the five types.
    pub memory_type: MemoryType,
    /// The note.
    #[serde(default, deserialize_with = "lenient::text")]
    pub content: String,
    /// What the type asks for, and whatever else was given.
    #[serde(default = "lenient::null")]
    pub metadata: Box<RawValue>,
    /// RFC 3339, UTC.
    #[serde(default, deserialize_with = "lenient::text")]
    pub created_at: String,
    /// RFC 3339, UTC.
    #[serde(default, deserialize_with = "lenient::text")]
    pub updated_at: String,
    /// RFC 3339, UTC; `None` is kept for good.
    #[serde(default, deserialize_with = "lenient::text_or_none")]
    pub expires_at: Option<String>,
    /// `observed` where it was imported from another memory, `approved` where a person has approved that;
    /// empty where a person has said it here.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub trust: String,
}

impl Record for Memory {
    const KIND: Kind = Kind::Memory;

    fn id(&self) -> &str {
        &self.id
    }

    fn set_id(&mut self, id: String) {
        self.id = id;
    }

    fn skill(&self) -> Option<&str> {
        None
    }

    fn content(&self) -> String {
        self.content.clone()
    }

    fn created(&self) -> &str {
        &self.created_at
    }

    fn trust(&self) -> Trust {
        match self.trust.as_str() {
            "" | "user" => Trust::User,
            "approved" => Trust::Approved,
            // A word of nobody's making is no reason to believe.
            _ => Trust::Observed,
        }
    }

    fn claims(&self) -> Vec<String> {
        let metadata = super::kind::one_layout(&self.metadata);
        let kind = self.memory_type.name().to_owned();
        vec![kind, self.content.clone(), metadata]
    }

    fn expires(&self) -> Option<&str> {
        self.expires_at.as_deref()
    }

    fn memory_type(&self) -> Option<MemoryType> {
        Some(self.memory_type)
    }

    fn user_id(&self) -> Option<&str> {
        self.user_id.as_deref()
    }

    fn set_user_id(&mut self, id: &str) {
        self.user_id = Some(id.to_owned());
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
