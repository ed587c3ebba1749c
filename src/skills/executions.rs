//! Stores executions of other programs, and lists stored executions.
//!
//! The report of another program is accepted as given; only the skill must be in scope, and the
//! rules that it names must belong to that skill. It counts as evidence like a run of this program,
//! except that a rejection by a program does not count against rules from people.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{Execution, Kind, Outcome, Record, Reflexion, SkillPath, Usage};
use crate::store::{self, Selection};

use crate::rules::evidence;
use crate::rules::evidence::{AGENT, VerdictSource};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings};

/// Execution of another program.
#[derive(Debug)]
pub struct ExecutionOptions {
    /// Path of the skill; it need not exist here.
    pub skill: SkillPath,
    /// Input of the execution.
    pub input: Box<RawValue>,
    /// Output of the execution.
    pub output: Box<RawValue>,
    /// Verdict on the output.
    pub outcome: Outcome,
    /// Price in US dollars; `None` if not known.
    pub cost_usd: Option<f64>,
    /// Wall-clock time in milliseconds.
    pub latency_ms: Option<f64>,
    /// Model, as `provider/model`.
    pub model_used: String,
    /// Token counts; `None` if not counted.
    pub usage: Option<Usage>,
    /// Ids of the rules in its prompt.
    pub reflexions_injected: Vec<String>,
}

/// Stored execution.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct LoggedExecution {
    /// Id of the execution.
    pub execution_id: String,
    /// Path of the skill.
    pub skill: String,
    /// Time of storage: RFC 3339, UTC.
    pub timestamp: String,
    /// Verdict on the output.
    pub outcome: Outcome,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

impl LoggedExecution {
    fn of(stored: Execution, warnings: Vec<String>) -> Self {
        Self {
            execution_id: stored.execution_id,
            skill: stored.skill,
            timestamp: stored.timestamp,
            outcome: stored.outcome,
            warnings,
        }
    }
}

/// Complete records of one kind.
#[derive(Debug)]
pub struct Records<R> {
    /// Newest records, newest first.
    pub records: Vec<R>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Stores an execution of another program.
pub fn log_execution(
    workspace: &Workspace,
    options: ExecutionOptions,
) -> Result<LoggedExecution, Error> {
    workspace.permit(&options.skill)?;
    let skill = options.skill.to_string();
    let is_judged = matches!(options.outcome, Outcome::Accepted | Outcome::Rejected);
    let judged_by = if is_judged { AGENT } else { "" }.to_owned();
    let execution = Execution {
        execution_id: String::new(),
        skill,
        timestamp: workspace.timestamp(),
        input_summary: options.input,
        output_summary: options.output,
        outcome: options.outcome,
        cost_usd: options.cost_usd,
        latency_ms: options.latency_ms,
        model_used: options.model_used,
        reflexions_injected: options.reflexions_injected,
        procedures_injected: Vec::new(),
        usage: options.usage,
        nearest_case: None,
        reviewer_notes: String::new(),
        rules_blamed: None,
        judged_by,
    };
    if !execution.reflexions_injected.is_empty() {
        return log_with_rules(workspace, execution);
    }
    let added = workspace.add(execution, None)?;
    let stored = added.record.ok_or(store::Error::Abandoned)?;
    let repaired = repair_warnings(added.repairs);
    let warnings = repaired.chain(redaction_warning(added.left_out)).collect();
    Ok(LoggedExecution::of(stored, warnings))
}

/// Stores an execution, and counts it as evidence for the rules in its prompt.
fn log_with_rules(
    workspace: &Workspace,
    mut execution: Execution,
) -> Result<LoggedExecution, Error> {
    let mut writer = workspace.writer()?;
    for id in &execution.reflexions_injected {
        let rule = writer.store().get::<Reflexion>(id)?;
        if rule.skill != execution.skill {
            let kind = Some(Kind::Reflexion);
            let (id, similar) = (id.clone(), Vec::new());
            return Err(store::Error::NotFound { kind, id, similar }.into());
        }
    }
    // A program gives no reason, so only a rule that was alone in the prompt is blamed.
    let mut blamed = Vec::new();
    if execution.outcome == Outcome::Rejected {
        match &evidence::concerned(writer.store(), &execution)?[..] {
            [] => {}
            [only] => blamed.push(only.reflexion_id.clone()),
            _ => execution.rules_blamed = Some(Vec::new()),
        }
    }
    let stored = writer.append(execution, workspace.now)?;
    // An execution is stored even if its evidence cannot be counted.
    let counted = evidence::count_shown(&mut writer, &stored).and_then(|()| {
        let before = Outcome::PendingReview;
        evidence::count_verdict(
            &mut writer,
            &stored,
            (&before, VerdictSource::Person),
            (&stored.outcome, VerdictSource::Agent),
            &blamed,
        )
    });
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    warnings.extend(redaction_warning(writer.take_left_out()));
    warnings.extend(counted.err().map(|error| evidence::uncounted(&error)));
    Ok(LoggedExecution::of(stored, warnings))
}

/// Returns the newest records of a kind that the caller may see.
pub fn records<R: Record>(
    workspace: &Workspace,
    skill: Option<&SkillPath>,
    limit: usize,
) -> Result<Records<R>, Error> {
    let selection = Selection {
        skill,
        newest: Some(limit),
    };
    let found = workspace.store.list::<R>(&selection)?;
    let mut records = found.records;
    records.reverse();
    let read = records
        .iter()
        .map(|record| (R::KIND, (record.id(), record.user_id())));
    let unnoted = workspace.note_read(read);
    let warnings = found.problems.iter().map(ToString::to_string);
    Ok(Records {
        warnings: warnings.chain(unnoted).collect(),
        records,
    })
}
