//! Options and report of a run.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{NearestCase, Outcome, SkillPath, Usage};
use crate::skills::prompt::{Injected, LayerSize, Omitted};

/// Options of [`run()`](crate::skills::run()).
#[derive(Debug)]
pub struct RunOptions {
    /// Skill to run.
    pub skill: SkillPath,
    /// Input; `None` uses the skill's sample.
    pub input: Option<Box<RawValue>>,
    /// Reads no rules and no procedures, and does not record the execution.
    pub without_memory: bool,
    /// Does not record the execution.
    pub without_record: bool,
    /// Stops before the model call.
    pub dry_run: bool,
    /// Session of the run, by id or id prefix.
    pub session: Option<String>,
    /// Reason why the memory is switched off; `None` if it is on. Without memory nothing is read or
    /// written, regardless of the other options. Skills and their examples are not memory.
    pub stateless: Option<String>,
}

/// Outcome of [`run()`](crate::skills::run()).
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RunReport {
    /// Id of the recorded execution; `None` if it is not recorded.
    pub execution_id: Option<String>,
    /// Skill that ran.
    pub skill: SkillPath,
    /// Outcome of the execution; `None` for a dry run.
    pub outcome: Option<Outcome>,
    /// Output; `null` for a dry run.
    pub output: Box<RawValue>,
    /// Model name: `provider/model`, or `offline/nearest-case`.
    pub model_used: String,
    /// Cost in US dollars; `None` if the price is unknown.
    pub cost_usd: Option<f64>,
    /// Wall-clock time of the answer, in milliseconds.
    pub latency_ms: f64,
    /// Token counts; `None` if the provider reports none.
    pub usage: Option<Usage>,
    /// Rules in the prompt, then procedures.
    pub injected: Vec<Injected>,
    /// Rules and procedures for the skill that are not in the prompt, with the reason.
    pub omitted: Vec<Omitted>,
    /// Layers of the prompt, with their sizes.
    pub layers: Vec<LayerSize>,
    /// Known case that an offline answer comes from.
    pub nearest_case: Option<NearestCase>,
    /// Path of the sample used as input; `None` if an input was given.
    pub sample_input: Option<String>,
    /// `true` if the memory is switched off, so that nothing was read from it or written to it.
    pub stateless: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}
