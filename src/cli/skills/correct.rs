//! `correct`: a correction, and the rule that it becomes. On a terminal it asks for the execution and the words.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::Args;
use memctl_files::json::compact;

use crate::cli::ask::{answer, editor};
use crate::cli::context::Context;
use crate::cli::ending::wait;
use crate::cli::learn::lesson::in_other_projects;
use crate::cli::output::printer::follow;
use crate::cli::output::{Done, Page, Report, end, when};
use crate::cli::skills::run::raw_output;
use crate::model::error::UserError;
use crate::model::{Execution, InvalidSkillPath, Kind, RuleRelation, SkillPath};
use crate::notes;
use crate::rules::hearing::{
    Earlier, EarlierState, HeardArgs, HeardReport, record_heard, record_said,
};
use crate::rules::regression::assertion;
use crate::rules::{self, CorrectOptions, CorrectReport};
use crate::store::workspace::Workspace;

/// Correct a skill or the coding agents: it becomes a rule
///
/// A text alone is a rule for the coding agents of this project; `memctl approve` puts it in force. With
/// a skill: stores the correction first, then the rule, the guardrail and the regression test. The next run
/// of the skill has the rule in its prompt. Without an execution, the rule has no example and no
/// test. On a terminal, missing arguments are asked for.
///
/// ```console
/// $ memctl correct hr/resume-screen --execution-id latest \
///     --correction "When screening for senior roles, weigh system design separately."
/// $ memctl correct hr/resume-screen --execution-id EXEC-20260220124341 \
///     --correction - --expected right.json
/// $ memctl correct hr/resume-screen "Keep the summary under 120 words."
/// $ memctl correct "Use pnpm here, never npm." --command '^npm\b'
/// $ memctl correct "Never edit web/dist by hand." --path '^web/dist/'
/// $ memctl correct --heard '{"rule": "Search with rg, not grep.", "quote": "use rg, not grep"}'
/// $ memctl correct
/// ```
#[derive(Debug, Args)]
pub(crate) struct CorrectArgs {
    /// Skill, as `domain/skill`; or the text of a rule for coding agents
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
    /// Regular expression of a command that breaks the rule for coding agents: `^npm\b` (can be repeated)
    #[arg(long = "command", value_name = "REGEX", allow_hyphen_values = true)]
    commands: Vec<String>,
    /// Regular expression of the path of a file whose change breaks the rule: `^web/dist/` (can be repeated)
    #[arg(long = "path", value_name = "REGEX")]
    paths: Vec<String>,
    /// Keep the correction as a rule even if it reads like a remark about one output
    #[arg(long)]
    as_rule: bool,
    /// Record what the user said in the chat, as JSON (for agents); `-` reads standard input
    ///
    /// Fields: `rule` (one line), `when`, `not`, `do`, `scope` (`project`, or `everywhere`, which
    /// `memctl memory promote` takes into other projects), and `quote`, the user's exact words. `commands`, `paths` and `content` are regular expressions over a single
    /// command, a changed path or new text that breaks the rule; with both `paths` and `content`, such text
    /// in such files. `see` has patterns that stand for themselves, as objects with `in`, `match`, `unless`,
    /// `after`. `replaces` and `withdraws` are an id, or true for the nearest rule. The rule
    /// is a candidate until a person approves it.
    #[arg(long, value_name = "JSON", conflicts_with_all = [
        "skill", "text", "execution_id", "correction", "expected", "as_rule", "model", "assertions", "replaces",
        "commands", "paths"
    ])]
    heard: Option<String>,
    /// Model for rules: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

pub(crate) fn correct(context: &Context, args: CorrectArgs) -> Done {
    if let Some(json) = &args.heard {
        return record(context, json);
    }
    if let Some(words) = args.words_to_agents() {
        return say(context, words, &args);
    }
    args.check()?;
    if args.skill.is_none()
        && context.is_interactive()
        && context.workspace(None)?.store.count(Kind::Execution)? == 0
    {
        let words = answer("What should the agents of this project do from now on? ")?;
        let words = words.ok_or_else(UserError::interrupted)?;
        return say(context, &words, &args);
    }
    let expected = args.expected.as_deref().map(|path| context.json(path));
    let expected = expected.transpose()?;
    let skill = args.skill()?;
    let workspace = context.workspace(args.model.as_deref())?;
    let (skill, execution, correction) =
        match (skill, args.execution_id, args.correction.or(args.text)) {
            (Some(skill), execution, Some(correction)) => {
                (skill, execution, context.text(&correction)?)
            }
            (skill, execution, correction) => {
                if !context.is_interactive() {
                    return Err(missing(skill.as_ref(), execution.as_deref()));
                }
                let execution = pick(context, &workspace, skill.as_ref(), execution)?;
                let correction = match correction {
                    Some(correction) => context.text(&correction)?,
                    None => write(context, &execution)?,
                };
                let skill = execution.skill.parse()?;
                (skill, Some(execution.execution_id), correction)
            }
        };
    let options = CorrectOptions {
        skill,
        execution,
        correction,
        expected,
        assertions: args.assertions,
        is_rule: args.as_rule,
        by_agent: false,
    };
    let words = options.correction.clone();
    let has_check = !options.assertions.is_empty();
    let spinner = context.printer.work("learning");
    let report = wait(rules::correct(&workspace, options, &mut follow(&spinner)));
    drop(spinner);
    let report = report.and_then(|report| Ok(report?));
    if report.is_err() && context.is_interactive() && !words.trim().is_empty() {
        // An editor has closed the file with them.
        context
            .printer
            .note(&format!("Your words were:\n\n{words}\n"));
    }
    let mut report = report?;
    if has_check && report.needs_judge {
        report.needs_judge = false;
        let useless = "the wrong output passes the check, too, so that it proves nothing";
        report.warnings.push(useless.to_owned());
    }
    if let Some(id) = &report.reflexion_id {
        for other in &args.replaces {
            let other = workspace.store.resolve(Kind::Reflexion, other, None)?;
            rules::replace_rule(&workspace, id, &other, &mut report.warnings)?;
            report.similar.retain(|similar| similar.id != other);
        }
    }
    Ok(Box::new(report))
}

impl CorrectArgs {
    /// Returns the skill. Words that are none may be a rule without its quotes.
    fn skill(&self) -> Result<Option<SkillPath>, UserError> {
        let is_rule = self.execution_id.is_none() && self.correction.is_none();
        let parsed = self.skill.as_deref().map(str::parse).transpose();
        parsed.map_err(|error: InvalidSkillPath| match UserError::from(error) {
            error if is_rule => error.with_hint(format!(
                "a rule for coding agents is a sentence between straight quotes: {TO_AGENTS}"
            )),
            error => error,
        })
    }

    /// Checks the options of a correction of a skill.
    fn check(&self) -> Result<(), UserError> {
        if !self.commands.is_empty() || !self.paths.is_empty() {
            return Err(UserError::usage(
                "`--command` and `--path` are for a rule of coding agents, which has no skill",
                format!("{TO_AGENTS} --command '^npm\\b'"),
            ));
        }
        for text in &self.assertions {
            assertion::read(text).map_err(|error| {
                UserError::usage(error, "memctl correct … --assert '$.overall_score < 60'")
            })?;
        }
        Ok(())
    }

    /// Returns the text alone, where no skill is named. The path of a skill has no space.
    fn words_to_agents(&self) -> Option<&str> {
        let others = [&self.text, &self.execution_id, &self.correction];
        let words = self.skill.as_deref().map(str::trim)?;
        (words.contains(char::is_whitespace) && others.iter().all(|one| one.is_none()))
            .then_some(words)
    }
}

/// Records a person's words to the coding agents of this project.
fn say(context: &Context, words: &str, args: &CorrectArgs) -> Done {
    let heard = HeardArgs {
        rule: words.to_owned(),
        quote: words.to_owned(),
        commands: args.commands.clone(),
        paths: args.paths.clone(),
        replaces: args.replaces.first().cloned().map(Earlier::Id),
        ..HeardArgs::default()
    };
    let workspace = context.workspace(None)?;
    let project = context.project_name().unwrap_or_default();
    Ok(Box::new(record_said(&workspace, heard, project)?))
}

/// Example of a rule for coding agents.
const TO_AGENTS: &str = "memctl correct \"Use pnpm here, never npm.\"";

fn missing(skill: Option<&SkillPath>, execution: Option<&str>) -> UserError {
    let Some(skill) = skill else {
        return UserError::usage("a text is required, or a skill with one", TO_AGENTS);
    };
    let execution = execution.unwrap_or("latest");
    let hint = format!("memctl correct {skill} \"…\" --execution-id {execution}");
    UserError::usage("the text of the correction is required", hint)
}

/// Shows the existing rules that a new one contradicts, repeats or narrows.
fn show_others(report: &CorrectReport, page: &mut Page) {
    let conflicts = report.conflicts.iter();
    let conflicts = conflicts.map(|one| ("conflict ", &one.id, &one.rule, one.reason.as_str()));
    let related = report.related.iter().filter_map(|one| {
        let how = match one.relation {
            RuleRelation::Same => "the same as ",
            RuleRelation::Narrows => "beside ",
            // A contradiction is a conflict.
            RuleRelation::Contradicts | RuleRelation::Unrelated => return None,
        };
        Some((how, &one.id, &one.rule, one.reason.as_str()))
    });
    let similar = report.similar.iter();
    let similar = similar.map(|one| ("similar ", &one.id, &one.rule, ""));
    for (how, id, rule, reason) in conflicts.chain(related).chain(similar) {
        let reason = match reason {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        page.warn(how, format!("{id}: {rule}{reason}"));
    }
    if let (Some(other), Some(id)) = (report.similar.first(), &report.reflexion_id) {
        let merge = format!("memctl memory conflicts --merge {} {id}", other.id);
        page.dim(format!("if one says the same: {merge}"));
    }
    if let Some(conflict) = report.conflicts.first() {
        let id = &conflict.id;
        page.dim(format!(
            "to replace the older rule, the same with --replaces {id}"
        ));
    }
}

impl Report for CorrectReport {
    fn page(&self, page: &mut Page) {
        let of = self
            .execution_id
            .as_ref()
            .map(|id| format!("corrects {id}"));
        let of = of.unwrap_or_else(|| "without an example".to_owned());
        page.field("correction", &format!("{} ({of})", self.correction_id));
        if let Some(reason) = &self.not_learned {
            page.warn("No rule was learned: ", reason);
            page.dim("to keep it as a rule, run the same command with --as-rule");
            return;
        }
        if let Some(id) = &self.reflexion_id {
            let made = match &self.duplicate_of {
                Some(_) => " already says the same".to_owned(),
                None if self.was_candidate => ", proposed by an agent, is now a rule".to_owned(),
                None => format!(", worded by {}", self.distilled_by),
            };
            page.field("rule", &format!("{id}{made}"));
        }
        page.some("", self.rule.as_deref());
        if let (Some(reason), Some(id)) = (self.doubt, &self.reflexion_id) {
            page.warn("Not in force yet: ", reason);
            page.dim(format!(
                "if it should hold from now on: memctl approve {id}"
            ));
            return show_others(self, page);
        }
        let why = match self.confidence {
            ..0.65 => "vague: say when it applies and what exactly should change",
            0.65..0.8 => "clear; saying more exactly when it applies would raise it",
            _ => "clear and specific",
        };
        let applies = self.applies_when.as_deref().filter(|when| !when.is_empty());
        page.fields([
            ("applies", applies.unwrap_or("always")),
            ("cause", self.root_cause.as_deref().unwrap_or_default()),
        ]);
        page.field(
            "confidence",
            &format!("{:.0}% ({why})", self.confidence * 100.0),
        );
        page.list("guardrail", &self.guardrails);
        page.list("tests", &self.tests);
        if self.execution_id.is_none() {
            page.dim("no test, since no execution was named: --execution-id latest");
        }
        if self.needs_judge {
            page.field("", UNJUDGED);
        }
        show_others(self, page);
    }
}

/// Hint for a test without a check of its own.
const UNJUDGED: &str = "not tested without a judge: memctl test --model MODEL; or give a check: --assert '$.score < 60'";

const FIELDS: &str = r#"memctl correct --heard '{"rule": "…", "quote": "…"}'; memctl correct --help lists all fields"#;

pub(crate) fn record(context: &Context, json: &str) -> Done {
    let json = context.text(json)?;
    let args: HeardArgs = serde_json::from_str(&json)
        .map_err(|error| UserError::usage(format!("`--heard` cannot be read: {error}"), FIELDS))?;
    let workspace = context.workspace(None)?;
    Ok(Box::new(record_heard(&workspace, args)?))
}

/// Says where a rule without patterns is told, and what changes that.
pub(crate) fn at_calls_too(id: &str) -> String {
    format!(
        "told at the start of sessions; at calls, too:\nmemctl correct \"…\" --command REGEX --replaces {id}"
    )
}

impl Report for HeardReport {
    fn page(&self, page: &mut Page) {
        page.result("candidate", &self.id, self);
        let old = self.earlier.as_ref();
        if let Some(old) = old.filter(|old| old.now == EarlierState::InForce) {
            page.dim(format!("until then, {} stays in force", old.id));
        }
        if self.is_silent_at_calls {
            page.dim(at_calls_too(&self.id));
        }
        if self.project.is_empty() {
            page.dim(format!("once approved, {}", in_other_projects(&self.id)));
        }
        if !self.nearest.is_empty() {
            page.dim("if it changes one of these: the same with --replaces ID");
        }
    }
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
    let mut executions = notes::recent_executions(&workspace.store, skill, 9)?;
    executions.reverse();
    if executions.is_empty() {
        return Err(UserError::usage(
            "no executions to correct",
            "memctl run <skill>",
        ));
    }
    let now = context.environment.now;
    // Also shown with `--quiet`, as every question is.
    let mut page = context.printer.page();
    page.line("Which execution was wrong?");
    for (number, execution) in (1..).zip(&executions) {
        let width = page.width.saturating_sub(4);
        page.line(format!("{number}  {}", choice(execution, now, width)));
    }
    console::Term::stderr().write_str(&page.into_text())?;
    let line = answer("number (Enter: 1): ")?.ok_or_else(UserError::interrupted)?;
    let number: usize = match line.as_str() {
        "" => 1,
        line => line.parse().unwrap_or(0),
    };
    if !(1..=executions.len()).contains(&number) {
        let message = format!("`{line}` is no number of an execution here");
        return Err(UserError::usage(message, "memctl list executions"));
    }
    Ok(executions.swap_remove(number - 1))
}

/// Returns an execution on one line: id, age, skill, outcome, and the beginning of the output.
fn choice(execution: &Execution, now: DateTime<Utc>, width: usize) -> String {
    let output = execution.output_summary.get();
    let parts = [
        &execution.execution_id,
        &when(&execution.timestamp, now),
        &execution.skill,
        execution.outcome.as_str(),
        &raw_output(output).unwrap_or_else(|| compact(output)),
    ];
    end(&parts.join(" · "), width)
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
    let edited = editor(&context.environment)
        .extension(".md")
        .edit(&template);
    let Ok(text) = edited else {
        // Without an editor, one line is enough.
        let written = answer("What was wrong, and what should change? ")?;
        return written.ok_or_else(UserError::interrupted);
    };
    let text = text.unwrap_or_default();
    let written = text.split(RULER).next().unwrap_or_default();
    Ok(written.trim().to_owned())
}
