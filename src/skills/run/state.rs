//! Working state of a run, from its prompt to its report.

use crate::model::{Outcome, SkillPath};
use crate::skills::prompt::{Assembly, Injected, LayerSize, Omitted};

use super::RunReport;
use super::answer::Answer;

/// Facts about a run that are known before its answer.
pub(super) struct RunState {
    pub(super) skill: SkillPath,
    /// Rules and procedures in the prompt.
    pub(super) injected: Vec<Injected>,
    /// Rules and procedures for the skill that are not in the prompt.
    pub(super) omitted: Vec<Omitted>,
    layers: Vec<LayerSize>,
    sample_input: Option<String>,
    /// `true` if the memory is switched off.
    pub(super) stateless: bool,
    /// Non-fatal problems so far.
    pub(super) warnings: Vec<String>,
}

impl RunState {
    /// Returns the state of a run with this prompt.
    pub(super) fn new(
        skill: SkillPath,
        assembly: &Assembly,
        sample_input: Option<String>,
        stateless: bool,
        warnings: Vec<String>,
    ) -> Self {
        Self {
            skill,
            injected: assembly.injected.clone(),
            omitted: assembly.omitted.clone(),
            layers: assembly.layers.clone(),
            sample_input,
            stateless,
            warnings,
        }
    }

    /// Returns the report. `outcome` is `None` for a dry run, `execution_id` if nothing is recorded.
    pub(super) fn report(
        self,
        answer: Answer,
        outcome: Option<Outcome>,
        execution_id: Option<String>,
    ) -> RunReport {
        RunReport {
            execution_id,
            skill: self.skill,
            outcome,
            output: answer.output,
            model_used: answer.model,
            cost_usd: answer.cost_usd,
            latency_ms: answer.latency_ms,
            usage: answer.usage,
            injected: self.injected,
            omitted: self.omitted,
            layers: self.layers,
            nearest_case: answer.nearest_case,
            sample_input: self.sample_input,
            stateless: self.stateless,
            warnings: self.warnings,
        }
    }
}
