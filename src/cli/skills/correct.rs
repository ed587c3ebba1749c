//! `correct`: a rule from a correction.

use std::path::PathBuf;

use clap::Args;
use dialoguer::{Confirm, Editor, FuzzySelect, Input, Select};

use crate::cli::context::Context;
use crate::cli::interrupt::wait;
use crate::cli::output::{Page, Report, Style, middle, when};
use crate::cli::progress::follow;
use crate::cli::question::ask;
use crate::engine::{self, CorrectOptions, CorrectReport};
use crate::error::UserError;
use crate::model::{Execution, SkillPath};
use crate::review;
use crate::workspace::Workspace;

/// Correct an execution and learn a rule from it
///
/// Stores the correction first, then the rule, the guardrail and the regression test. The next run
/// of the skill has the rule in its prompt. On a terminal, missing arguments are asked for.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl correct hr/resume-screen --execution-id latest \\\n    \
    --correction \"When screening for senior roles, weigh system design separately.\"\n  \
    memctl correct hr/resume-screen --execution-id EXEC-20260220124341 \\\n    \
    --correction - --expected right.json\n  \
    memctl correct"
)]
pub(in crate::cli) struct CorrectArgs {
    /// The skill, as `domain/skill`
    skill: Option<String>,
    /// Execution id, a prefix of one, or `latest`
    #[arg(long, value_name = "ID")]
    execution_id: Option<String>,
    /// Text of the correction: the mistake and the change; `-` reads standard input
    #[arg(long, value_name = "TEXT")]
    correction: Option<String>,
    /// JSON file with the output as it should have been
    #[arg(long, value_name = "FILE")]
    expected: Option<PathBuf>,
    /// Keep the correction as a rule even if it reads like a remark about one output
    #[arg(long)]
    as_rule: bool,
    /// Replace the rules that the new rule contradicts
    #[arg(long)]
    supersede: bool,
    /// Model for rules: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

pub(in crate::cli) fn correct(
    context: &Context,
    args: CorrectArgs,
) -> Result<Box<dyn Report>, UserError> {
    let expected = args
        .expected
        .as_deref()
        .map(|path| context.json(path))
        .transpose()?;
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let workspace = context.workspace(args.model.as_deref())?;
    let options = match (skill, args.execution_id, args.correction) {
        (Some(skill), Some(execution), Some(correction)) => CorrectOptions {
            skill,
            execution,
            correction: context.text(&correction)?,
            expected,
            is_rule: args.as_rule,
            supersede: args.supersede,
            by_agent: false,
        },
        (skill, execution, correction) => {
            if !context.is_interactive() {
                return Err(missing(skill.as_ref(), execution.as_deref()));
            }
            let execution = pick(context, &workspace, skill.as_ref(), execution)?;
            let correction = match correction {
                Some(correction) => context.text(&correction)?,
                None => write(&execution)?,
            };
            CorrectOptions {
                skill: execution.skill.parse()?,
                execution: execution.execution_id,
                correction,
                expected,
                is_rule: args.as_rule,
                supersede: args.supersede,
                by_agent: false,
            }
        }
    };
    let learn = |options: CorrectOptions| -> Result<CorrectReport, UserError> {
        let spinner = context.printer.spinner("learning");
        let report = wait(engine::correct(&workspace, options, &mut follow(&spinner)))?;
        drop(spinner);
        Ok(report?)
    };
    let again = options.clone();
    let mut report = learn(options)?;
    let reason = report
        .not_learned
        .clone()
        .or(report.doubt.map(str::to_owned));
    if let Some(reason) = reason
        && context.is_interactive()
        && !again.is_rule
        && keep_anyway(&reason)?
    {
        report = learn(CorrectOptions {
            is_rule: true,
            ..again
        })?;
    }
    if context.is_interactive()
        && let Some(id) = report.reflexion_id.clone()
    {
        relate(&workspace, &id, &mut report)?;
    }
    Ok(Box::new(report))
}

/// Asks how a new rule relates to the rules near it, and does what the answer says.
fn relate(workspace: &Workspace, id: &str, report: &mut CorrectReport) -> Result<(), UserError> {
    if report.similar.is_empty() || report.doubt.is_some() {
        return Ok(());
    }
    let mut answers = vec!["neither: keep all".to_owned()];
    for other in &report.similar {
        answers.push(format!("the same as {}: {}", other.id, other.rule));
        answers.push(format!("replaces {}: {}", other.id, other.rule));
    }
    let prompt = format!(
        "Similar rules exist. The new one, \"{}\", is",
        report.rule.as_deref().unwrap_or_default()
    );
    let question = Select::new().with_prompt(prompt).items(&answers).default(0);
    let answer = ask(|| question.interact_opt())?.unwrap_or(0);
    let Some(at) = answer.checked_sub(1) else {
        report.similar.clear();
        return Ok(());
    };
    let other = report.similar.swap_remove(at / 2);
    report.similar.clear();
    if at.is_multiple_of(2) {
        let merged = review::merge(workspace, &other.id, id)?;
        report.warnings.extend(merged.warnings);
        report.reflexion_id = Some(merged.kept.clone());
        report.rule = Some(merged.rule);
        report.duplicate_of = Some(merged.kept);
    } else {
        engine::replace_rule(workspace, id, &other.id)?;
        report.conflicts.push(engine::Conflict {
            id: other.id,
            reason: "replaced by you".to_owned(),
            rule: other.rule,
            superseded: true,
        });
    }
    Ok(())
}

/// Asks if a correction that is in doubt is a lasting rule.
fn keep_anyway(reason: &str) -> Result<bool, UserError> {
    let prompt = format!("Not a rule yet: {reason}. Should it hold from now on?");
    let question = Confirm::new().with_prompt(prompt).default(false);
    Ok(ask(|| question.interact_opt())?.unwrap_or(false))
}

fn missing(skill: Option<&SkillPath>, execution: Option<&str>) -> UserError {
    let message = match (skill, execution) {
        (None, _) => "a skill is required",
        (Some(_), None) => "an execution id is required",
        _ => "the text of the correction is required",
    };
    let skill = skill.map_or("<skill>".to_owned(), ToString::to_string);
    let execution = execution.unwrap_or("latest");
    UserError::usage(
        message,
        format!("memctl correct {skill} --execution-id {execution} --correction \"…\""),
    )
}

/// Asks the user for one of the newest executions.
fn pick(
    context: &Context,
    workspace: &Workspace,
    skill: Option<&SkillPath>,
    given: Option<String>,
) -> Result<Execution, UserError> {
    if let Some(given) = given {
        let id = workspace
            .store
            .resolve(crate::model::Kind::Execution, &given, skill)?;
        return Ok(workspace.store.get(&id)?);
    }
    let (mut executions, _) = engine::recent_executions(&workspace.store, skill, 30)?;
    executions.reverse();
    if executions.is_empty() {
        return Err(UserError::usage(
            "no executions to correct",
            "memctl run <skill>",
        ));
    }
    let width = context.printer.page().width().saturating_sub(4);
    let items: Vec<String> = executions
        .iter()
        .map(|e| {
            let age = when(&e.timestamp, context.environment.now);
            middle(
                &format!(
                    "{}  {}  {age}  {}",
                    e.execution_id, e.skill, e.output_summary
                ),
                width,
            )
        })
        .collect();
    let question = FuzzySelect::new()
        .with_prompt("Which execution was wrong?")
        .items(&items)
        .default(0);
    let chosen = ask(|| question.interact_opt())?.ok_or_else(UserError::interrupted)?;
    Ok(executions.swap_remove(chosen))
}

/// Opens the editor for the correction, with the output below it.
fn write(execution: &Execution) -> Result<String, UserError> {
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
    let written = match Editor::new().extension(".md").edit(&template) {
        Ok(Some(text)) => text
            .split(RULER)
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned(),
        Ok(None) => String::new(),
        // Without an editor, one line is enough.
        Err(_) => Input::new()
            .with_prompt("What was wrong, and what should change?")
            .interact_text()?,
    };
    Ok(written)
}

impl Report for CorrectReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        let stored = format!("{} (corrects {})", self.correction_id, self.execution_id);
        page.field("correction", &stored);
        if let Some(reason) = &self.not_learned {
            page.styled(&[
                (Style::Warn, "No rule was learnt: "),
                (Style::Plain, reason),
            ]);
            page.styled(&[(
                Style::Dim,
                "to keep it as a rule, run the same command with --as-rule",
            )]);
            return;
        }
        if let Some(id) = &self.reflexion_id {
            let made = match &self.duplicate_of {
                Some(_) => format!("{id} already says the same"),
                None if self.was_candidate => {
                    format!("{id}, proposed by an agent, is now a rule")
                }
                None => format!("{id}, worded by {}", self.distilled_by),
            };
            page.field("rule", &made);
        }
        if let Some(rule) = &self.rule {
            page.field("", rule);
        }
        if let (Some(reason), Some(id)) = (self.doubt, &self.reflexion_id) {
            page.styled(&[(Style::Warn, "Not in force yet: "), (Style::Plain, reason)]);
            page.styled(&[(
                Style::Dim,
                &format!("if it should hold from now on: memctl memory approve {id}"),
            )]);
            return;
        }
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        page.field(
            "applies",
            &said(&self.applies_when).unwrap_or_else(|| "always".to_owned()),
        );
        if let Some(cause) = said(&self.root_cause) {
            page.field("cause", &cause);
        }
        let why = match self.confidence {
            ..0.65 => "vague: say when it applies and what exactly should change",
            0.65..0.8 => "clear; a condition, a number or a name would raise the confidence",
            _ => "clear and specific",
        };
        page.field(
            "confidence",
            &format!("{:.0}% ({why})", self.confidence * 100.0),
        );
        page.field(
            "guardrail",
            &match self.guardrails.as_slice() {
                [] => "none changed".to_owned(),
                files => files.join(", "),
            },
        );
        page.field(
            "tests",
            &match self.tests.as_slice() {
                [] => "none".to_owned(),
                files => files.join(", "),
            },
        );
        for conflict in &self.conflicts {
            let what = format!("{}: {} ({})", conflict.id, conflict.rule, conflict.reason);
            let how = if conflict.superseded {
                "replaces"
            } else {
                "conflict"
            };
            page.styled(&[(Style::Warn, &format!("{how} ")), (Style::Plain, &what)]);
        }
        for other in &self.similar {
            let what = format!("{}: {}", other.id, other.rule);
            page.styled(&[(Style::Warn, "similar "), (Style::Plain, &what)]);
        }
        if let (Some(other), Some(id)) = (self.similar.first(), &self.reflexion_id) {
            let merge = format!(
                "if one says the same: memctl memory conflicts --merge {} {id}",
                other.id
            );
            page.styled(&[(Style::Dim, &merge)]);
        }
        if self.conflicts.iter().any(|conflict| !conflict.superseded) {
            page.styled(&[(
                Style::Dim,
                "both stay active; run the same command with --supersede to replace the older rule",
            )]);
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
