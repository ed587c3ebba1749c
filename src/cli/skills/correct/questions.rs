//! Questions of `correct` on a terminal: the execution and the words.

use chrono::{DateTime, Utc};
use dialoguer::{Input, Select};
use memctl_files::json::compact;

use crate::cli::ask::{ask, editor};
use crate::cli::context::Context;
use crate::cli::output::{clean, end, when};
use crate::model::error::UserError;
use crate::model::{Execution, Kind, SkillPath};
use crate::notes;
use crate::store::workspace::Workspace;

/// Asks the user for one of the newest executions.
pub(crate) fn pick(
    context: &Context,
    workspace: &Workspace,
    skill: Option<&SkillPath>,
    given: Option<String>,
) -> Result<Execution, UserError> {
    if let Some(given) = given {
        let id = workspace.store.resolve(Kind::Execution, &given, skill)?;
        return Ok(workspace.store.get(&id)?);
    }
    let (mut executions, _) = notes::recent_executions(&workspace.store, skill, 30)?;
    executions.reverse();
    if executions.is_empty() {
        return Err(UserError::usage(
            "no executions to correct",
            "memctl run <skill>",
        ));
    }
    let width = context.printer.page().width().saturating_sub(4);
    let now = context.environment.now;
    let items: Vec<String> = executions.iter().map(|e| choice(e, now, width)).collect();
    let question = Select::new()
        .with_prompt("Which execution was wrong?")
        .items(&items)
        .default(0);
    let chosen = ask(|| question.interact_opt())?.ok_or_else(UserError::interrupted)?;
    Ok(executions.swap_remove(chosen))
}

/// Returns an execution on one line: id, age, skill, outcome, and the beginning of the output.
fn choice(execution: &Execution, now: DateTime<Utc>, width: usize) -> String {
    let parts = [
        &execution.execution_id,
        &when(&execution.timestamp, now),
        &execution.skill,
        execution.outcome.as_str(),
        &output_line(execution),
    ];
    end(
        &clean(&memctl_redact::redact(&parts.join(" · ")).text),
        width,
    )
}

/// Output of an execution on one line: the text of a model without JSON, or the JSON.
fn output_line(execution: &Execution) -> String {
    let output = execution.output_summary.get();
    let fields: Option<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(output).ok();
    let text = fields.as_ref().and_then(|fields| {
        let only = fields.values().next().filter(|_| fields.len() == 1)?;
        only.as_str()
    });
    let line = text.map_or_else(|| compact(output), str::to_owned);
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Opens the editor for the correction, with the output below it.
pub(crate) fn write(context: &Context, execution: &Execution) -> Result<String, UserError> {
    const RULER: &str = "# ----- text below this line is not part of the correction -----";
    let show = |json: &serde_json::value::RawValue| {
        serde_json::from_str::<serde_json::Value>(json.get())
            .and_then(|value| serde_json::to_string_pretty(&value))
            .unwrap_or_default()
    };
    let template = format!(
        "\n\n{RULER}\n# Say what was wrong and what should be different from now on, e.g.\n\
         # \"When …, always …\". Leave the text empty to cancel.\n\nThe output of {}:\n{}\n\nIts input:\n{}\n",
        execution.execution_id,
        show(&execution.output_summary),
        show(&execution.input_summary),
    );
    let written = match editor(&context.environment)
        .extension(".md")
        .edit(&template)
    {
        Ok(Some(text)) => text
            .split(RULER)
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned(),
        Ok(None) => String::new(),
        // Without an editor, one line is enough.
        Err(_) => {
            let question = Input::new().with_prompt("What was wrong, and what should change?");
            ask(|| question.interact_text())?
        }
    };
    Ok(written)
}
