//! Stores executions of other programs.
//!
//! The report of another program is accepted as given; only the skill must be in scope, and the
//! rules that it names must belong to that skill. It counts as evidence like a run of this program,
//! except that a rejection by a program does not count against rules from people.

use serde::Serialize;

use crate::model::{AGENT, Execution, Kind, Outcome, Reflexion};
use crate::rules::evidence::{self, Verdict, VerdictSource};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings, warnings_of};

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

/// Stores an execution of another program; its skill need not exist here.
pub fn log_execution(
    workspace: &Workspace,
    mut execution: Execution,
) -> Result<LoggedExecution, Error> {
    workspace.permit(&execution.skill.parse()?)?;
    execution.timestamp = workspace.timestamp();
    if matches!(execution.outcome, Outcome::Accepted | Outcome::Rejected) {
        AGENT.clone_into(&mut execution.judged_by);
    }
    if !execution.reflexions_injected.is_empty() {
        return log_with_rules(workspace, execution);
    }
    let added = workspace.add(&execution)?;
    let repaired = repair_warnings(added.repairs);
    let warnings = repaired.chain(redaction_warning(added.left_out)).collect();
    Ok(LoggedExecution::of(added.execution, warnings))
}

/// Stores an execution, and counts it as evidence for the rules in its prompt.
fn log_with_rules(
    workspace: &Workspace,
    mut execution: Execution,
) -> Result<LoggedExecution, Error> {
    let mut writer = workspace.writer()?;
    execution.injected_created_at.clear();
    for id in &execution.reflexions_injected {
        let rule = writer.store().get::<Reflexion>(id)?;
        if rule.skill != execution.skill {
            return Err(Error::not_found(Kind::Reflexion, id));
        }
        execution.injected_created_at.push(rule.created_at);
    }
    // A program gives no reason, so only a rule that was alone in the prompt is blamed.
    let mut blamed = Vec::new();
    if execution.outcome == Outcome::Rejected {
        let concerned = evidence::concerned(writer.store(), &execution)?;
        if let [only] = &concerned[..] {
            blamed.push(only.reflexion_id.clone());
        }
        execution.rules_blamed = (!concerned.is_empty()).then(|| blamed.clone());
    }
    let stored = writer.append(execution, workspace.now)?;
    // An execution is stored even if its evidence cannot be counted.
    let counted = evidence::count_shown(&mut writer, &stored).and_then(|()| {
        let before = Verdict {
            outcome: &Outcome::PendingReview,
            by: VerdictSource::Person,
        };
        let now = Verdict {
            outcome: &stored.outcome,
            by: VerdictSource::Agent,
        };
        evidence::count_verdict(&mut writer, &stored, before, now, &blamed)
    });
    let mut warnings: Vec<String> = warnings_of(&mut writer).collect();
    warnings.extend(counted.err().map(|error| evidence::uncounted(&error)));
    Ok(LoggedExecution::of(stored, warnings))
}
