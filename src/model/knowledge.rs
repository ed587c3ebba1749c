//! What was learnt from people: rules, and typed notes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::evidence::Evidence;
use super::kind::{Kind, Record, one_line};
use super::lenient;

/// Rules whose utility has sunk below this are no longer shown; the reference's limit.
pub const UTILITY_FLOOR: f64 = 0.3;

/// A rule is not retired before it had so many outcomes.
const OUTCOMES: f64 = 5.0;

/// What its words promise weighs as much as so many outcomes.
const PROMISE: f64 = 4.0;

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
    /// The reference's `correction` or `synthesis`.
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
}

impl Reflexion {
    /// Whether prompts may still show it.
    pub fn is_in_use(&self) -> bool {
        self.superseded_by.is_empty() && !self.is_retired() && !self.rule.trim().is_empty()
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

    /// Counts that it was put into a prompt.
    pub fn count_shown(&mut self) {
        self.times_injected = Some(self.times_injected.unwrap_or(0.0) + 1.0);
    }

    /// Counts an outcome for it or against it. The confidence is what its words promised, moved by
    /// every outcome since: the mean of a Beta posterior, told one outcome at a time, so that what
    /// stands in the file is always all there is to know.
    pub fn count_outcome(&mut self, helped: bool) {
        let weight = PROMISE + self.outcomes();
        let confidence = self.confidence.unwrap_or(0.5);
        self.confidence = Some(share(
            (confidence * weight + f64::from(helped)) / (weight + 1.0),
        ));
        self.move_count(helped, 1.0);
    }

    /// Takes back an outcome that was counted; one that is not there is none. Where only the
    /// reference has counted, which moves no confidence, the confidence is left as it is.
    pub fn take_back_outcome(&mut self, helped: bool) {
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

    /// The confidence without what use has shown: what its words promised.
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

    /// How many outcomes have been counted.
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
        self.times_harmed.get_or_insert(0.0);
        if self.superseded_by.is_empty() {
            self.utility_score = Some((self.evidence().posterior() * 1000.0).round() / 1000.0);
        }
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

/// A share as it is stored: between 0 and 1, with four decimals.
fn share(figure: f64) -> f64 {
    (figure.clamp(0.0, 1.0) * 1e4).round() / 1e4
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

    fn created(&self) -> &str {
        &self.created_at
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
            let told = |rule: &Reflexion| rule.confidence.unwrap_or(-1.0);
            // Four decimals a time, so that the last one may be off.
            assert!((told(&rule) - expected).abs() < 2e-4, "{json} {rule:?}");
            if before.times_harmed.is_some() || before.times_helped.is_none() {
                let found = rule.promised().unwrap() - promised.unwrap_or(0.5);
                assert!(found.abs() < 5e-4, "{json}: {found}");
            }
            for helped in outcomes {
                rule.take_back_outcome(*helped);
            }
            let off = told(&rule) - before.confidence.unwrap_or(0.5);
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
        // What the reference has counted weighs, and is not told a second time.
        check(r#""confidence": 0.9, "times_helped": 6"#, &[false], 0.8182);
        check(r#""confidence": 0.9, "times_helped": 6"#, &[], 0.9);

        let mut theirs = rule(r#""confidence": 0.9, "times_helped": 6"#);
        assert_eq!(theirs.promised(), Some(0.9));
        theirs.take_back_outcome(true);
        assert_eq!(
            (theirs.confidence, theirs.times_helped),
            (Some(0.9), Some(5.0))
        );
        let mut none = rule(r#""confidence": 0.9"#);
        none.take_back_outcome(false);
        assert_eq!((none.confidence, none.times_harmed), (Some(0.9), None));
    }
}
