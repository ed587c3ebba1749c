//! Keeps executions that ran elsewhere, and answers with those that are kept, whole.
//!
//! What another program ran is taken as it says; only that its skill is within the scope, and that the
//! rules which it names are rules of that skill, is looked at. Then it counts for those rules as a run of
//! ours does, but that a rejection by a program does not speak against what a person has said.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{Execution, Kind, Outcome, Record, Reflexion, SkillPath, Usage};
use crate::store::{self, Selection};

use super::door::kept_out;
use super::evidence::{AGENT, Witness};
use super::{Engine, Error, evidence, mended};

/// An execution that ran elsewhere.
#[derive(Debug)]
pub struct ExecutionOptions {
    /// The skill; it need not be among the files here.
    pub skill: SkillPath,
    /// What it got.
    pub input: Box<RawValue>,
    /// What came out.
    pub output: Box<RawValue>,
    /// What became of it.
    pub outcome: Outcome,
    /// US dollars; `None` where nobody knows.
    pub cost_usd: Option<f64>,
    /// Wall-clock milliseconds.
    pub latency_ms: Option<f64>,
    /// `provider/model`.
    pub model_used: String,
    /// Tokens, where they were counted.
    pub usage: Option<Usage>,
    /// The rules that stood in its prompt.
    pub reflexions_injected: Vec<String>,
}

/// An execution that is kept now.
#[derive(Debug, Serialize)]
pub struct LoggedExecution {
    /// Its id.
    pub execution_id: String,
    /// Its skill.
    pub skill: String,
    /// When it was kept: RFC 3339, UTC.
    pub timestamp: String,
    /// What became of it.
    pub outcome: Outcome,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// Records of one kind, whole.
#[derive(Debug)]
pub struct Records<R> {
    /// The newest, newest first.
    pub records: Vec<R>,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Keeps an execution that ran elsewhere.
    pub fn log_execution(&self, options: ExecutionOptions) -> Result<LoggedExecution, Error> {
        self.permit(&options.skill)?;
        let skill = options.skill.to_string();
        let is_judged = matches!(options.outcome, Outcome::Accepted | Outcome::Rejected);
        let judged_by = if is_judged { AGENT } else { "" }.to_owned();
        let mut writer = self.writer()?;
        for id in &options.reflexions_injected {
            let rule = writer.store().get::<Reflexion>(id)?;
            if rule.skill != skill {
                let kind = Some(Kind::Reflexion);
                let (id, similar) = (id.clone(), Vec::new());
                return Err(store::Error::NotFound { kind, id, similar }.into());
            }
        }
        let stored = writer.append(
            Execution {
                execution_id: String::new(),
                skill,
                timestamp: self.timestamp(),
                input_summary: options.input,
                output_summary: options.output,
                outcome: options.outcome,
                cost_usd: options.cost_usd,
                latency_ms: options.latency_ms,
                model_used: options.model_used,
                reflexions_injected: options.reflexions_injected,
                reflexions_withheld: Vec::new(),
                experiment_withhold: None,
                usage: options.usage,
                nearest_case: None,
                reviewer_notes: String::new(),
                judged_by,
            },
            self.now,
        )?;
        // A count that cannot be kept is no reason to lose an execution.
        let counted = evidence::count_shown(&mut writer, &stored).and_then(|()| {
            let before = Outcome::PendingReview;
            evidence::count_verdict(
                &mut writer,
                &stored,
                (&before, Witness::Person),
                (&stored.outcome, Witness::Agent),
            )
        });
        let mut warnings: Vec<String> = mended(writer.take_mended()).collect();
        warnings.extend(kept_out(writer.take_left_out()));
        warnings.extend(counted.err().map(|error| evidence::uncounted(&error)));
        Ok(LoggedExecution {
            execution_id: stored.execution_id,
            skill: stored.skill,
            timestamp: stored.timestamp,
            outcome: stored.outcome,
            warnings,
        })
    }

    /// The newest records of a kind, whole, as the scope and the viewer may see them.
    pub fn records<R: Record>(
        &self,
        skill: Option<&SkillPath>,
        limit: usize,
    ) -> Result<Records<R>, Error> {
        let selection = Selection {
            skill,
            newest: Some(limit),
        };
        let found = self.store.list::<R>(&selection)?;
        let mut records = found.records;
        records.reverse();
        let read = records
            .iter()
            .map(|record| (R::KIND, (record.id(), record.user_id())));
        let unnoted = self.note_read(read);
        let warnings = found.problems.iter().map(ToString::to_string);
        Ok(Records {
            warnings: warnings.chain(unnoted).collect(),
            records,
        })
    }
}
