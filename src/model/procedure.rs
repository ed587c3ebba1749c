//! Procedure: the record of a recovery or a detour, with the eight fields of its `data`, and its lesson:
//! one line, the conditions for telling it to an agent, and its error pattern.
//!
//! Data only. Every text is a claim of a file: readers redact and screen it. A field of another type counts as
//! missing and does not hide the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::episode;
use crate::model::kind::{Document, Kind, Record, Trust, one_layout};
use crate::model::reflexion::{Evidence, Judgement, count};
use crate::model::text::one_line;
use crate::model::words::{lenient, names};

/// Place where a record was observed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, remote = "Origin")]
pub struct Origin {
    /// The agent host's session id, or the file name of a session without one.
    pub session: String,
    /// Name of the working directory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workspace: String,
    /// Ordinal of the failing step.
    pub step: u64,
    /// Observed while the session ran, when the step had no ordinal yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
    /// Hash of the failing call with its time. A copy of a session under another name has the same.
    /// Empty if the host says neither a time nor an id of its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub call: String,
}

impl Origin {
    /// Returns `true` if both are one observation: of one step, or of one call in two copies of a
    /// session. A session file repeats what was observed while the session ran.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_step = self.step == other.step || self.live || other.live;
        let is_call = !self.call.is_empty() && self.call == other.call;
        is_call || self.session == other.session && is_step
    }
}

/// A procedure learned from a recovered failure: an entry of `procedural_memory.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, remote = "Procedure")]
pub struct Procedure {
    /// `PROC-{NNN}`.
    pub procedure_id: String,
    /// `domain/skill`; `None` if learned outside a skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// Ids that the procedure had before merges of git.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged_from: Vec<String>,
    /// `procedure_learned` if a pattern was found.
    pub status: String,
    /// The eight fields of the procedural-memory document.
    pub data: Box<RawValue>,
    /// Author of the text: `offline`, or `provider/model`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub distilled_by: String,
    /// Number of times observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurrences: Option<f64>,
    /// Time of the last observation: RFC 3339, UTC.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_seen: String,
    /// Trajectories that the steps come from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<Origin>,
    /// `approved` if a user has approved the procedure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trust: String,
    /// One imperative line of at most 240 characters; empty until somebody has worded it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lesson: String,
    /// Conditions under which the lesson is told; `None` until somebody has named them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applies: Option<Applies>,
    /// Failing call and the call that worked; `None` if no failure taught the procedure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// Files that the lesson was read from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<LessonFile>,
    /// Author of the lesson: `agent:HOST`, `model:NAME`, `person` or `program`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub worded_by: String,
    /// `retired` if it no longer works, `quarantined` until a person has reviewed it, `episode` if only
    /// the same failure in the same project may show it; `active` or empty otherwise.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Id of the procedure that replaces this one; empty if none does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub superseded_by: String,
    /// Number of times told to an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<f64>,
    /// Number of times an agent followed it and the failure went away or did not come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helped: Option<f64>,
    /// Number of times an agent followed it and the same failure recurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harmed: Option<f64>,
    /// Number of sessions in which the call that it warns of worked as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needless: Option<f64>,
    /// Judgement of a model or of the program, until a person reviews; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Judgement>,
}

impl Record for Procedure {
    const KIND: Kind = Kind::Procedure;

    fn labels(&self) -> Document {
        let state = match self.state.as_str() {
            "" => "active",
            state => state,
        };
        Document {
            skill: self.skill.clone(),
            status: Some(state.to_owned()),
            ..Document::new(Self::KIND, &self.procedure_id, &self.created_at)
        }
    }

    fn content(&self) -> String {
        let mut words = self.lesson.clone();
        episode::push_values(&self.data, &mut words);
        let pattern = self.pattern.iter();
        for text in pattern.flat_map(|p| [&p.error_key, &p.failing_code, &p.working_code]) {
            if !words.contains(text.as_str()) {
                words.extend(["\n", text]);
            }
        }
        words
    }

    fn summary(&self) -> String {
        let named = [
            Some(self.lesson.as_str()),
            self.pattern.as_ref().map(Pattern::line),
        ];
        let named = named.into_iter().flatten().find(|text| !text.is_empty());
        named.map_or_else(|| one_line(&self.content()), one_line)
    }

    /// A procedure that was learned from a session is observed until a user approves it; a person's own
    /// counts as their word.
    fn trust(&self) -> Trust {
        Trust::stored(&self.trust)
    }

    fn claims(&self) -> Vec<String> {
        let skill = self.skill.clone().unwrap_or_default();
        let mut claims = vec![skill, one_layout(&self.data)];
        // A procedure without a lesson is approved by the words of its document alone.
        if !self.lesson.is_empty() || self.applies.is_some() || self.pattern.is_some() {
            claims.push(self.lesson.clone());
            claims.push(one_layout_of(self.applies.as_ref()));
            claims.push(one_layout_of(self.pattern.as_ref()));
        }
        claims
    }
}

/// Value of [`Procedure::state`] for a recovery that nobody has worded or reviewed: it is told only
/// at the same failure in the same project.
pub const EPISODE: &str = "episode";

/// Value of [`Procedure::state`] for a procedure that a person has to review first.
pub const QUARANTINED: &str = "quarantined";

impl Procedure {
    /// Returns the fields of `data`; empty ones if it is no object.
    pub fn fields(&self) -> ProcedureFields {
        serde_json::from_str(self.data.get()).unwrap_or_default()
    }

    /// Returns the counts of use.
    pub fn evidence(&self) -> Evidence {
        Evidence {
            shown: count(self.shown),
            helped: count(self.helped),
            harmed: count(self.harmed),
        }
    }

    /// Returns the number of sessions that did not need the lesson.
    pub fn needless_count(&self) -> u64 {
        count(self.needless)
    }

    /// Returns the procedure with another level of trust than its file gives.
    #[must_use]
    pub fn with_trust(self, trust: Trust) -> Self {
        let trust = trust.name().to_owned();
        Self { trust, ..self }
    }

    /// Returns the content for readers: without the empty line in the place of a missing lesson.
    /// Digests of forgotten procedures are over the content as it is.
    pub fn shown_content(&self) -> String {
        self.content().trim_start_matches('\n').to_owned()
    }

    /// Returns `true` if an agent may be told the procedure.
    pub fn is_active(&self) -> bool {
        self.superseded_by.is_empty() && self.state != "retired" && self.state != QUARANTINED
    }

    /// Returns `true` for a recovery that nobody has worded or reviewed.
    pub fn is_episode(&self) -> bool {
        self.state == EPISODE
    }

    /// Returns `true` if the procedure was observed in a project, or holds in every one.
    pub fn is_of(&self, is_here: &dyn Fn(&str) -> bool) -> bool {
        let scope = self.applies.as_ref().map(|applies| applies.scope);
        let mut origins = self.origins.iter();
        scope == Some(LessonScope::Everywhere)
            || self.origins.is_empty()
            || origins.any(|origin| is_here(&origin.workspace))
    }
}

/// Returns a part as JSON text; empty if it is missing.
fn one_layout_of<T: Serialize>(part: Option<&T>) -> String {
    let text = part.map(serde_json::to_string);
    text.and_then(Result::ok).unwrap_or_default()
}

/// Fields of the procedural-memory document; empty if missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, remote = "ProcedureFields")]
pub struct ProcedureFields {
    /// Name.
    #[serde(rename = "procedure_name")]
    pub name: String,
    /// One sentence about the purpose.
    #[serde(rename = "semantic_description")]
    pub description: String,
    /// Failing call and its error.
    #[serde(rename = "initial_failure_summary")]
    pub failure: String,
    /// Cause of the failure.
    #[serde(rename = "identified_root_cause")]
    pub root_cause: String,
    /// Change that made the call work.
    #[serde(rename = "successful_intervention")]
    pub intervention: String,
    /// Steps in order.
    #[serde(rename = "learned_procedure_steps")]
    pub steps: Vec<String>,
    /// Signs that the procedure applies.
    #[serde(rename = "critical_contextual_cues")]
    pub cues: Vec<String>,
    /// Example.
    #[serde(rename = "example_scenario_abstract")]
    pub example: String,
}

impl ProcedureFields {
    /// Returns the condition: the root cause, else the cues, else the failure.
    pub fn when(&self) -> String {
        let has_text = |text: &&String| !text.trim().is_empty();
        let cues = self.cues.join("; ");
        [&self.root_cause, &cues, &self.failure]
            .into_iter()
            .find(has_text)
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the steps that contain text.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        let steps = self.steps.iter().map(|step| step.trim());
        steps.filter(|step| !step.is_empty())
    }
}

/// Maximum length of a lesson, in characters: its author is asked for 240, and miscounts.
pub const LONGEST_LESSON: usize = 280;

names! {
    /// Reach of a lesson.
    #[derive(Default, JsonSchema)]
    LessonScope {
        /// True in the projects of its origins.
        #[default]
        Project = "project",
        /// True wherever the same tool is used.
        Everywhere = "everywhere",
    }
}

/// Conditions under which a lesson is told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Applies {
    /// Phrases of an error; one of them in the output of a failing call is enough.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Phrases of an error that nobody has seen here; one counts only together with one of `commands`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<String>,
    /// Beginnings of a command, without wrappers, assignments and `cd`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Phrases of a command or an output that rule the lesson out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not: Vec<String>,
    /// Reach; `project` if missing.
    pub scope: LessonScope,
}

/// Error pattern: a failing call, its error, and the call that worked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pattern {
    /// The error line without its variable parts.
    pub error_key: String,
    /// The deciding line of the error, with its names and numbers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error_line: String,
    /// The failing code or command.
    pub failing_code: String,
    /// The code or command that worked.
    pub working_code: String,
    /// Output of the successful run.
    pub success_output: String,
    /// Tool that was used: `cargo test`, `Edit`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
}

impl Pattern {
    /// Line of the error as it came, or its key where another program has stored no line.
    pub fn line(&self) -> &str {
        match self.error_line.as_str() {
            "" => &self.error_key,
            line => line,
        }
    }
}

/// File that a lesson was read from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LessonFile {
    /// Path, relative to the project.
    pub path: String,
    /// Hash of the content when the lesson was stored; empty if the file could not be read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

lenient!(Origin, Procedure, ProcedureFields);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fields_stay_missing() {
        let json = r#"{"procedure_id":"PROC-001","created_at":"t","status":"s","data":{"a":1}}"#;
        let procedure: Procedure = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&procedure).unwrap(), json);
        assert!(procedure.is_active());
        assert_eq!(procedure.trust(), Trust::Observed);
    }

    #[test]
    fn shown_content_begins_with_words() {
        let check = |json: &str, content: &str, shown: &str| {
            let procedure: Procedure = serde_json::from_str(json).unwrap();
            assert_eq!(procedure.content(), content);
            assert_eq!(procedure.shown_content(), shown);
        };
        let json = r#"{"procedure_id":"PROC-001","created_at":"t","status":"s","data":{"a":"x"}}"#;
        check(json, "\nx", "x");
        let json = json.replace("\"data\"", "\"lesson\":\"Do y.\",\"data\"");
        check(&json, "Do y.\nx", "Do y.\nx");
    }

    #[test]
    fn fields_of_other_types_do_not_hide_it() {
        let json = r#"{"procedure_id":"PROC-001","origins":[{"session":"s","step":3},7,{"session":null}],
            "occurrences":"2","shown":{},"state":"retired","trust":"approved","pattern":7}"#;
        let procedure: Procedure = serde_json::from_str(json).unwrap();
        assert_eq!(procedure.origins.len(), 2);
        assert_eq!((procedure.occurrences, procedure.shown), (Some(2.0), None));
        assert!(!procedure.is_active() && procedure.pattern.is_none());
        assert_eq!(procedure.trust(), Trust::Approved);
        let own = procedure.with_trust(Trust::User);
        assert_eq!(own.trust(), Trust::User);
    }

    fn fields(json: &str) -> ProcedureFields {
        let text = format!(r#"{{"procedure_id": "PROC-001", "data": {json}}}"#);
        serde_json::from_str::<Procedure>(&text).unwrap().fields()
    }

    #[test]
    fn field_of_another_type_hides_no_other() {
        let read = fields(
            r#"{"procedure_name": "Add a column", "identified_root_cause": {"a": 1},
                "learned_procedure_steps": ["one", 2, " ", "three"],
                "critical_contextual_cues": "none"}"#,
        );
        assert_eq!(read.name, "Add a column");
        assert_eq!(read.steps().collect::<Vec<_>>(), ["one", "three"]);
        assert_eq!((read.root_cause.as_str(), read.cues.len()), ("", 0));
        assert_eq!(fields("null"), ProcedureFields::default());
        assert_eq!(fields("[]"), ProcedureFields::default());
    }

    #[test]
    fn condition_is_the_root_cause_or_else_the_next_best() {
        let check = |json: &str, expected: &str| assert_eq!(fields(json).when(), expected);
        check(
            r#"{"identified_root_cause": "No type.", "critical_contextual_cues": ["sql"]}"#,
            "No type.",
        );
        check(r#"{"critical_contextual_cues": ["a", "b"]}"#, "a; b");
        check(r#"{"initial_failure_summary": "It failed."}"#, "It failed.");
        check("{}", "");
    }
}
