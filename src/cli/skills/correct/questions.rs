//! Questions of `correct` on a terminal: the execution, the words, and what the new rule means for
//! those that exist.

use chrono::{DateTime, Utc};
use dialoguer::{Confirm, Input, Select};
use memctl_files::json::compact;

use crate::cli::ask::{ask, editor};
use crate::cli::context::Context;
use crate::cli::output::text::{clean, end, when};
use crate::model::error::UserError;
use crate::model::{Execution, Kind, SkillPath};
use crate::rules::{CorrectReport, CorrectionDraft};
use crate::store::workspace::Workspace;
use crate::{notes, rules};

/// Asks how a new rule relates to the rules near it and to those that it contradicts, and does what
/// the answer says.
pub(crate) fn relate(
    workspace: &Workspace,
    id: &str,
    report: &mut CorrectReport,
) -> Result<(), UserError> {
    if report.doubt.is_some() {
        return Ok(());
    }
    let open = report.conflicts.iter().filter(|other| !other.superseded);
    let mut others: Vec<(String, String)> = open
        .map(|other| (other.id.clone(), format!("contradicts it? {}", other.rule)))
        .collect();
    let similar = report.similar.iter();
    others.extend(similar.map(|other| (other.id.clone(), other.rule.clone())));
    if others.is_empty() {
        return Ok(());
    }
    let mut answers = vec!["neither: keep all".to_owned()];
    for (id, rule) in &others {
        answers.push(format!("the same as {id}: {rule}"));
        answers.push(format!("replaces {id}: {rule}"));
    }
    let prompt = format!(
        "Similar rules exist. The new one, \"{}\", is",
        report.rule.as_deref().unwrap_or_default()
    );
    let question = Select::new().with_prompt(prompt).items(&answers).default(0);
    let Some(answer) = ask(|| question.interact_opt())? else {
        return Ok(());
    };
    report.similar.clear();
    let Some(at) = answer.checked_sub(1) else {
        for (other, _) in &others {
            rules::keep_both(workspace, id, other)?;
        }
        report.conflicts.retain(|other| other.superseded);
        return Ok(());
    };
    let (other, rule) = others.swap_remove(at / 2);
    report.conflicts.retain(|conflict| conflict.id != other);
    if at.is_multiple_of(2) {
        let merged = rules::merge(workspace, &other, id)?;
        report.warnings.extend(merged.warnings);
        report.reflexion_id = Some(merged.kept.clone());
        report.rule = Some(merged.rule);
        report.duplicate_of = Some(merged.kept);
    } else {
        let guardrails = rules::replace_rule(workspace, id, &other, &mut report.warnings)?;
        report.conflicts.push(rules::Conflict {
            id: other,
            reason: "replaced by you".to_owned(),
            rule,
            superseded: true,
            guardrails,
        });
    }
    Ok(())
}

/// Asks if a correction holds for every run. `reason` says why a model made no rule of it.
pub(crate) fn holds_for_every_run(reason: Option<&str>) -> Result<bool, UserError> {
    let prompt = match reason {
        Some(reason) => format!("No rule yet: {reason}. Does it hold"),
        None => "Does it hold".to_owned(),
    };
    let answers = ["for this run only", "for every run"];
    let question = Select::new().with_prompt(prompt).items(answers).default(0);
    Ok(ask(|| question.interact_opt())? == Some(1))
}

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

/// Returns the execution of a draft; `None` if it is gone, or if the person named another one or
/// another skill.
pub(crate) fn execution_of(
    workspace: &Workspace,
    draft: &CorrectionDraft,
    skill: Option<&SkillPath>,
    given: Option<&str>,
) -> Option<Execution> {
    let of_skill: SkillPath = draft.skill.parse().ok()?;
    if skill.is_some_and(|skill| *skill != of_skill) {
        return None;
    }
    let named = given.unwrap_or(&draft.execution);
    let store = &workspace.store;
    let id = store.resolve(Kind::Execution, named, skill).ok()?;
    let execution: Execution = store.get(&id).ok()?;
    let is_same = execution.execution_id == draft.execution && execution.skill == draft.skill;
    is_same.then_some(execution)
}

/// Shows a draft, and asks if it is to be used.
pub(crate) fn use_draft(context: &Context, draft: &CorrectionDraft) -> Result<bool, UserError> {
    let age = when(&draft.at, context.environment.now);
    let age = match age.as_str() {
        "now" => "just now".to_owned(),
        date if date.contains('-') => format!("of {date}"),
        age => format!("{age} ago"),
    };
    // The whole text, because the answer stands for it.
    let text = clean(&memctl_redact::redact(&draft.text).text);
    let about = format!("{} ({})", draft.execution, draft.skill);
    context
        .printer
        .note(&format!("Draft from {age} about {about}:\n\n{text}\n"));
    let question = Confirm::new().with_prompt("Use it?").default(true);
    ask(|| question.interact_opt())?.ok_or_else(UserError::interrupted)
}

/// Opens the editor for the correction, after the words that are known, with the output below it.
pub(crate) fn write(
    context: &Context,
    execution: &Execution,
    known: &str,
) -> Result<String, UserError> {
    const RULER: &str = "# ----- text below this line is not part of the correction -----";
    let show = |json: &serde_json::value::RawValue| {
        serde_json::from_str::<serde_json::Value>(json.get())
            .and_then(|value| serde_json::to_string_pretty(&value))
            .unwrap_or_default()
    };
    let template = format!(
        "{known}\n\n{RULER}\n# Say what was wrong and what should be different from now on, e.g.\n\
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
            let question = Input::new()
                .with_prompt("What was wrong, and what should change?")
                .with_initial_text(known);
            ask(|| question.interact_text())?
        }
    };
    Ok(written)
}
