//! `correct`: a rule from a correction.

mod heard;
mod page;
mod questions;

use std::path::PathBuf;

use clap::Args;

use crate::cli::context::Context;
use crate::cli::interrupt::wait;
use crate::cli::output::Done;
use crate::cli::progress::follow;
use crate::model::error::UserError;
use crate::model::{Execution, Kind, SkillPath};
use crate::review;
use crate::rules::regression::assertion;
use crate::rules::{self, CorrectOptions, CorrectReport};
use crate::store::workspace::Workspace;

use questions::{execution_of, holds_for_every_run, pick, relate, use_draft, write};

/// Correct an execution and learn a rule from it
///
/// Stores the correction first, then the rule, the guardrail and the regression test. The next run
/// of the skill has the rule in its prompt. Without an execution, the rule has no example and no
/// test. On a terminal, missing arguments are asked for, and what was typed is offered again if the
/// command fails.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl correct hr/resume-screen --execution-id latest \\\n    \
    --correction \"When screening for senior roles, weigh system design separately.\"\n  \
    memctl correct hr/resume-screen --execution-id EXEC-20260220124341 \\\n    \
    --correction - --expected right.json\n  \
    memctl correct hr/resume-screen \"Keep the summary under 120 words.\" --dry-run\n  \
    memctl correct --heard '{\"rule\": \"Search with rg, not grep.\", \"quote\": \"use rg, not grep\"}'\n  \
    memctl correct"
)]
pub(crate) struct CorrectArgs {
    /// Skill, as `domain/skill`
    skill: Option<String>,
    /// Text of the correction: the mistake and the change; `-` reads standard input
    #[arg(value_name = "TEXT", conflicts_with = "correction")]
    text: Option<String>,
    /// Execution id, a prefix of one, or `latest`; without it, the rule has no example
    #[arg(long, value_name = "ID")]
    execution_id: Option<String>,
    /// Text of the correction, as an option
    #[arg(long, value_name = "TEXT")]
    correction: Option<String>,
    /// JSON file with the output as it should have been
    #[arg(long, value_name = "FILE")]
    expected: Option<PathBuf>,
    /// Check of the output for the regression test: `$.overall_score < 60` (can be repeated)
    #[arg(long = "assert", value_name = "CHECK")]
    assertions: Vec<String>,
    /// Existing rule whose place the new one takes (can be repeated)
    #[arg(long, value_name = "ID")]
    replaces: Vec<String>,
    /// Keep the correction as a rule even if it reads like a remark about one output
    #[arg(long)]
    as_rule: bool,
    /// Replace the rules that the new rule contradicts
    #[arg(long)]
    supersede: bool,
    /// Show the request to the model, and the rule without one; write nothing
    #[arg(long)]
    dry_run: bool,
    /// Record what the user said in the chat, as JSON (for agents); `-` reads standard input
    ///
    /// Fields: `rule` (one line), `when`, `not`, `do`, `scope` (`project` or `everywhere`), and `quote`,
    /// the user's exact words. `commands`, `paths` and `content` are regular expressions over a single
    /// command, a path or new text that breaks the rule. `see` has them as objects with `in`, `match`,
    /// `unless`, `after`. `replaces` and `withdraws` are an id, or true for the nearest rule. The rule
    /// is a candidate until a person approves it.
    #[arg(long, value_name = "JSON", conflicts_with_all = [
        "skill", "text", "execution_id", "correction", "expected", "as_rule", "supersede", "dry_run", "model", "assertions", "replaces"
    ])]
    heard: Option<String>,
    /// Model for rules: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

pub(crate) fn correct(context: &Context, args: CorrectArgs) -> Done {
    if let Some(json) = &args.heard {
        return heard::record(context, json);
    }
    let expected = args
        .expected
        .as_deref()
        .map(|path| context.json(path))
        .transpose()?;
    for text in &args.assertions {
        assertion::read(text).map_err(|error| {
            UserError::usage(error, "memctl correct … --assert '$.overall_score < 60'")
        })?;
    }
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let workspace = context.workspace(args.model.as_deref())?;
    let is_interactive = context.is_interactive();
    let options = match (skill, args.execution_id, args.correction.or(args.text)) {
        (Some(skill), execution, Some(correction)) => CorrectOptions {
            skill,
            execution,
            correction: context.text(&correction)?,
            expected,
            assertions: args.assertions,
            is_rule: args.as_rule,
            supersede: args.supersede,
            by_agent: false,
        },
        (skill, execution, correction) => {
            if !is_interactive {
                return Err(missing(skill.as_ref(), execution.as_deref()));
            }
            let (execution, correction) = if let Some(correction) = correction {
                let execution = pick(context, &workspace, skill.as_ref(), execution)?;
                (execution, context.text(&correction)?)
            } else {
                typed(context, &workspace, skill.as_ref(), execution)?
            };
            CorrectOptions {
                skill: execution.skill.parse()?,
                execution: Some(execution.execution_id),
                correction,
                expected,
                assertions: args.assertions,
                is_rule: args.as_rule,
                supersede: args.supersede,
                by_agent: false,
            }
        }
    };
    if args.dry_run {
        let preview = wait(rules::preview_correction(&workspace, options))?;
        return Ok(Box::new(preview?));
    }
    let learn = |options: CorrectOptions| -> Result<CorrectReport, UserError> {
        let spinner = context.printer.spinner("learning");
        let report = wait(rules::correct(&workspace, options, &mut follow(&spinner)))?;
        drop(spinner);
        Ok(report?)
    };
    let again = options.clone();
    let learnt = learn(options);
    if learnt.is_err() && workspace.is_draft(&again.correction) {
        context
            .printer
            .note("your words are kept: `memctl correct` offers them again");
    }
    let mut report = learnt?;
    workspace.remove_draft(&again.correction);
    let reason = report.not_learned.clone();
    let candidate = report
        .reflexion_id
        .clone()
        .filter(|_| report.doubt.is_some());
    let asks = is_interactive && !again.is_rule && (reason.is_some() || candidate.is_some());
    if asks {
        if holds_for_every_run(reason.as_deref())? {
            report = learn(CorrectOptions {
                is_rule: true,
                ..again
            })?;
        } else if let Some(id) = candidate {
            review::reject(&workspace, &id, "about one output only")?;
        }
    }
    if let Some(id) = &report.reflexion_id {
        for other in &args.replaces {
            let other = workspace.store.resolve(Kind::Reflexion, other, None)?;
            rules::replace_rule(&workspace, id, &other, &mut report.warnings)?;
        }
    }
    if is_interactive && let Some(id) = report.reflexion_id.clone() {
        relate(&workspace, &id, &mut report)?;
    }
    Ok(Box::new(report))
}

/// Returns an execution and what the person types about it, or has typed before: their draft is
/// kept until a correction holds its words.
fn typed(
    context: &Context,
    workspace: &Workspace,
    skill: Option<&SkillPath>,
    given: Option<String>,
) -> Result<(Execution, String), UserError> {
    let drafts = workspace.drafts();
    let known = drafts.iter().rev().find_map(|draft| {
        let execution = execution_of(workspace, draft, skill, given.as_deref())?;
        Some((draft, execution))
    });
    if let Some((draft, execution)) = &known
        && use_draft(context, draft)?
    {
        return Ok((execution.clone(), draft.text.clone()));
    }
    let execution = pick(context, workspace, skill, given)?;
    let id = &execution.execution_id;
    let known = drafts.iter().find(|draft| draft.execution == *id);
    let known = known.map_or("", |draft| draft.text.as_str());
    let correction = write(context, &execution, known)?;
    if !correction.is_empty() {
        let kept = workspace.keep_draft(&execution.skill, &execution.execution_id, &correction);
        // Words can be corrected without a draft, too.
        if let Err(error) = kept {
            context
                .printer
                .warn(&format!("cannot keep a draft: {error}"));
        }
    }
    Ok((execution, correction))
}

fn missing(skill: Option<&SkillPath>, execution: Option<&str>) -> UserError {
    let message = match skill {
        None => "a skill is required",
        Some(_) => "the text of the correction is required",
    };
    let skill = skill.map_or("<skill>".to_owned(), ToString::to_string);
    let execution = execution.unwrap_or("latest");
    UserError::usage(
        message,
        format!("memctl correct {skill} \"…\" --execution-id {execution}"),
    )
}
