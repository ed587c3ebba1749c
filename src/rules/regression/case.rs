//! Regression case: the demands of a correction in repeatable form.
//!
//! Each case is a JSON file beside its skill, for people to read, review and edit. It contains the input, the
//! assertions and a rubric for a judge. The rubric is absent only if the author calls the assertions
//! sufficient, and one of them fails on the wrong output. The `seal` is a hash of the other fields. A matching
//! seal means that nobody edited the file, and only such files are overwritten.

use memctl_files::hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::model::{Correction, Execution, Kind, Reflexion};
use crate::rules::vocabulary::WORDS;
use crate::store::{Error, Scoped};

use super::assertion::{self, Assertion, Check, Path, same, whole};

/// Regression case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    /// File name without extension: `test_correction_3`.
    #[serde(default)]
    pub id: String,
    /// `domain/skill`.
    pub skill: String,
    /// Correction that the case comes from.
    pub correction_id: String,
    /// Rule that should make the case pass.
    pub reflexion_id: String,
    /// Execution with the wrong output.
    #[serde(default)]
    pub execution_id: String,
    /// Creation time: RFC 3339, UTC.
    #[serde(default)]
    pub created_at: String,
    /// Text of the correction.
    #[serde(default)]
    pub correction: String,
    /// Input of the skill.
    pub input: Box<RawValue>,
    /// Assertions, all of which must hold.
    #[serde(default)]
    pub assertions: Vec<Assertion>,
    /// Instruction for a judge; `None` if the assertions decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// Hash of all other fields at the time of writing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub seal: String,
}

impl Case {
    /// Case for a correction; `None` if the correction's id has no number.
    pub fn new(correction: &Correction, execution: &Execution, rule: &Reflexion) -> Option<Self> {
        let parsed = |json: &RawValue| serde_json::from_str::<Value>(json.get()).ok();
        let output = parsed(&correction.original_output).unwrap_or(Value::Null);
        let expected = correction.expected_output.as_deref().and_then(parsed);
        let given = correction.assertions.iter();
        let mut assertions: Vec<Assertion> = given
            .filter_map(|text| assertion::read(text).ok())
            .collect();
        if let Some(expected) = &expected {
            let covered: Vec<_> = assertions.iter().map(|a| a.path.clone()).collect();
            assertions.extend(of_expected(&output, expected, &covered));
        }
        // An assertion that the wrong output passes does not test the mistake.
        let decides = assertions
            .iter()
            .any(|assertion| assertion.check(&output).is_err());
        Some(Self {
            id: id(&correction.correction_id)?,
            skill: correction.skill.clone(),
            correction_id: correction.correction_id.clone(),
            reflexion_id: rule.reflexion_id.clone(),
            execution_id: correction.execution_id.clone(),
            created_at: correction.timestamp.clone(),
            correction: correction.user_correction.clone(),
            input: execution.input_summary.clone(),
            assertions,
            rubric: (!decides || !correction.assertions_suffice).then(|| rule.rule.clone()),
            seal: String::new(),
        })
    }

    /// Returns true if the case comes from this correction. One of another memory may have its id, and was made at
    /// another time.
    pub fn is_of(&self, id: &str, said: &str) -> bool {
        self.correction_id == id && (self.created_at.is_empty() || self.created_at == said)
    }

    /// Returns true if the case tests this rule of a store: both ids of the case are those of the rule and of its
    /// correction. A skill folder that is copied brings cases whose ids belong to others here.
    pub(crate) fn tests(&self, rule: &Reflexion, store: &Scoped) -> Result<bool, Error> {
        let mut own = std::iter::once(&rule.correction_id).chain(&rule.also_corrected_by);
        let is_named = own.any(|id| *id == self.correction_id);
        if self.reflexion_id != rule.reflexion_id || !is_named {
            return Ok(false);
        }
        let found = store.find(Kind::Correction, &self.correction_id)?;
        let correction = found.and_then(|entry| entry.parse::<Correction>().ok());
        Ok(correction.is_none_or(|one| self.is_of(&one.correction_id, &one.timestamp)))
    }

    /// Parses a case file.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem.
    pub fn parse(id: &str, text: &str) -> Result<Self, String> {
        let mut case: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        id.clone_into(&mut case.id);
        case.assertions.iter().try_for_each(Assertion::usable)?;
        if case.assertions.is_empty() && case.rubric.is_none() {
            return Err("it has neither assertions nor a rubric".to_owned());
        }
        Ok(case)
    }

    /// Serializes the case, with its seal.
    ///
    /// # Errors
    ///
    /// Returns the serialization error; no known case causes one.
    pub fn render(&self) -> Result<String, serde_json::Error> {
        let mut value = serde_json::to_value(self)?;
        let seal = seal_of(&mut value)?;
        value["seal"] = Value::String(seal);
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }

    /// Messages of the assertions that an output fails.
    pub fn wrong(&self, output: &Value) -> Vec<String> {
        let all = self.assertions.iter();
        all.filter_map(|assertion| assertion.check(output).err())
            .collect()
    }
}

/// Assertions from an expected output: only added fields and changed decisions count (a truth value, a
/// label, a computed number). Two good answers differ in prose and in numbers that are judgements. Skips the
/// paths in `covered`, which other assertions check.
fn of_expected(output: &Value, expected: &Value, covered: &[Path]) -> Vec<Assertion> {
    let (output, expected) = (whole(output), whole(expected));
    let mut assertions = Vec::new();
    compare(output, expected, &Path::root(), false, &mut assertions);
    assertions.retain(|assertion| !covered.contains(&assertion.path));
    assertions
}

fn compare(
    output: &Value,
    expected: &Value,
    path: &Path,
    judged: bool,
    assertions: &mut Vec<Assertion>,
) {
    let demand = |path: Path, check: Check| Assertion {
        path,
        check,
        said: "--expected".to_owned(),
    };
    let equals = |value: &Value| Check::Equals {
        value: value.clone(),
    };
    match (output, expected) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in after {
                let path = path.field(name);
                let judged = judged || is_judgement(name);
                let check = match before.get(name) {
                    Some(old) => {
                        compare(old, value, &path, judged, assertions);
                        continue;
                    }
                    None if value.is_null() => continue,
                    None if is_decision(value, judged) => equals(value),
                    None => Check::Required,
                };
                assertions.push(demand(path, check));
            }
        }
        _ if same(output, expected) || !is_decision(expected, judged) => {}
        _ => assertions.push(demand(path.clone(), equals(expected))),
    }
}

/// Returns true if a field's name has a word for a judgement: `overallScores`.
fn is_judgement(name: &str) -> bool {
    WORDS.judgements.occur_in(&name.to_lowercase())
}

fn is_decision(value: &Value, judged: bool) -> bool {
    match value {
        Value::Bool(_) => true,
        Value::Number(_) => !judged,
        // Label without white space.
        Value::String(text) => {
            !text.is_empty() && text.len() <= 40 && !text.contains(char::is_whitespace)
        }
        _ => false,
    }
}

/// Case id of a correction: `CORR-003` gives `test_correction_3`.
pub fn id(correction_id: &str) -> Option<String> {
    let digits = correction_id.strip_prefix("CORR-")?;
    let number: u64 = digits.parse().ok()?;
    Some(format!("test_correction_{number}"))
}

/// Returns true if the seal of a case file matches its content.
pub fn is_untouched(text: &str) -> bool {
    let mut value: Value = serde_json::from_str(text).unwrap_or_default();
    let seal = value.get("seal").cloned();
    seal_of(&mut value).is_ok_and(|found| seal == Some(found.into()))
}

fn seal_of(value: &mut Value) -> Result<String, serde_json::Error> {
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove("seal");
    }
    Ok(hash(&serde_json::to_string(value)?))
}

/// Short hash of a text, to detect manual edits.
pub fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..8])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case(assertions: &[&str], suffice: bool) -> Case {
        let correction: Correction = serde_json::from_value(json!({
            "correction_id": "CORR-003", "execution_id": "EXEC-1", "skill": "hr/x", "timestamp": "t",
            "original_output": {"overall_score": 72}, "user_correction": "too high",
            "assertions": assertions, "assertions_suffice": suffice,
        }))
        .unwrap();
        let execution: Execution = serde_json::from_value(json!({
            "execution_id": "EXEC-1", "skill": "hr/x", "input_summary": {"name": "Ana"},
        }))
        .unwrap();
        let rule: Reflexion =
            serde_json::from_value(json!({"reflexion_id": "REFL-003", "rule": "The rule."}))
                .unwrap();
        Case::new(&correction, &execution, &rule).unwrap()
    }

    fn below_60() -> Case {
        case(&["$.overall_score < 60"], true)
    }

    #[test]
    fn demands_outside_the_assertions_are_judged() {
        let check = |assertions: &[&str], suffice: bool, is_judged: bool| {
            let case = case(assertions, suffice);
            assert_eq!(case.assertions.len(), assertions.len());
            assert_eq!(case.rubric.is_some(), is_judged, "{assertions:?}");
        };
        check(&["$.overall_score < 60"], true, false);
        check(&["$.overall_score < 60"], false, true);
        check(&[], false, true);
        // The wrong output passes it.
        check(&["$.overall_score < 80"], true, true);
    }

    #[test]
    fn a_case_is_read_as_it_was_written_and_a_change_is_seen() {
        let text = below_60().render().unwrap();
        assert!(is_untouched(&text));
        let read = Case::parse("test_correction_3", &text).unwrap();
        assert_eq!(read.render().unwrap(), text);
        assert_eq!(read.wrong(&json!({"overall_score": 60})).len(), 1);
        assert!(!is_untouched(&text.replace("60", "61")));
        assert!(!is_untouched("{}"));
        assert!(!is_untouched("not JSON"));
    }

    #[test]
    fn a_case_that_cannot_be_decided_is_refused() {
        let check = |from: &str, to: &str| {
            let text = below_60().render().unwrap();
            assert!(text.contains(from));
            Case::parse("x", &text.replace(from, to)).unwrap_err()
        };
        check("\"<\"", "\"is\"");
        check("$.overall_score", "overall_score");
        check("\"compare\"", "\"compares\"");
        let empty = json!({"skill": "a/b", "correction_id": "c", "reflexion_id": "r", "input": 1});
        assert!(
            Case::parse("x", &empty.to_string())
                .unwrap_err()
                .contains("neither")
        );
    }

    #[test]
    fn cases_are_named_after_their_corrections() {
        assert_eq!(id("CORR-003").as_deref(), Some("test_correction_3"));
        assert_eq!(id("CORR-1000").as_deref(), Some("test_correction_1000"));
        assert_eq!(id("weird"), None);
        assert_eq!(id("CORR-../x"), None);
    }

    #[test]
    fn decisions_are_demanded_and_judgements_are_not() {
        let before = json!({"total": 117, "overall_score": 72, "scores": {"skills": 80}, "status": "open", "note": "a b",
            "ok": false, "same": 1, "list": [1]});
        let after = json!({"total": 118.5, "overall_score": 54, "scores": {"skills": 60}, "status": "on_hold", "note": "c d",
            "ok": true, "same": 1.0, "list": [2], "reason": "because of it", "tag": "x"});
        let found: Vec<Value> = of_expected(&before, &after, &[Path::root().field("tag")])
            .iter()
            .map(|assertion| json!(assertion))
            .collect();
        assert_eq!(
            found,
            [
                json!({"said": "--expected", "type": "equals", "path": "$.total", "value": 118.5}),
                json!({"said": "--expected", "type": "equals", "path": "$.status", "value": "on_hold"}),
                json!({"said": "--expected", "type": "equals", "path": "$.ok", "value": true}),
                json!({"said": "--expected", "type": "required", "path": "$.reason"}),
            ]
        );
        assert_eq!(of_expected(&json!("spam"), &json!("ham"), &[]).len(), 1);
        assert_eq!(
            of_expected(&json!("spam"), &json!("a whole sentence"), &[]),
            []
        );
    }
}
