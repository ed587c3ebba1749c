//! `correct`: a correction, and the rule that it becomes.

pub(crate) mod questions;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::context::Context;
use crate::cli::ending::wait;
use crate::cli::output::progress::follow;
use crate::cli::output::{Done, Page, Report, Style};
use crate::cli::review::past_sessions;
use crate::cli::skills::correct::questions::{pick, write};
use crate::model::error::UserError;
use crate::model::{Kind, Reflexion, RuleRelation, SkillPath};
use crate::review::{PastSessions, replay};
use crate::rules;
use crate::rules::hearing::{
    Earlier, EarlierState, HeardArgs, HeardReport, PatternArg, record_heard, record_said,
};
use crate::rules::regression::assertion;
use crate::rules::{CorrectOptions, CorrectPreview, CorrectReport};
use crate::store::workspace::Workspace;

/// Maximum time to try a recorded rule on past calls: an agent waits for it.
const TRIED: Duration = Duration::from_millis(300);

/// Correct a skill or the coding agents: it becomes a rule
///
/// A text alone is a rule for the coding agents of this project; `memctl approve` puts it in force. With
/// a skill: stores the correction first, then the rule, the guardrail and the regression test. The next run
/// of the skill has the rule in its prompt. Without an execution, the rule has no example and no
/// test. On a terminal, missing arguments are asked for.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl correct hr/resume-screen --execution-id latest \\\n    \
    --correction \"When screening for senior roles, weigh system design separately.\"\n  \
    memctl correct hr/resume-screen --execution-id EXEC-20260220124341 \\\n    \
    --correction - --expected right.json\n  \
    memctl correct hr/resume-screen \"Keep the summary under 120 words.\" --dry-run\n  \
    memctl correct \"Use pnpm here, never npm.\" --command '^npm\\b'\n  \
    memctl correct --heard '{\"rule\": \"Search with rg, not grep.\", \"quote\": \"use rg, not grep\"}'\n  \
    memctl correct"
)]
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
    #[arg(long = "command", value_name = "REGEX")]
    commands: Vec<String>,
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
    /// command, a changed path or new text that breaks the rule; with both `paths` and `content`, such text
    /// in such files. `see` has patterns that stand for themselves, as objects with `in`, `match`, `unless`,
    /// `after`. `replaces` and `withdraws` are an id, or true for the nearest rule. The rule
    /// is a candidate until a person approves it.
    #[arg(long, value_name = "JSON", conflicts_with_all = [
        "skill", "text", "execution_id", "correction", "expected", "as_rule", "supersede", "dry_run", "model", "assertions", "replaces",
        "commands"
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
    let expected = args
        .expected
        .as_deref()
        .map(|path| context.json(path))
        .transpose()?;
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
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
        supersede: args.supersede,
        by_agent: false,
    };
    if args.dry_run {
        let preview = wait(rules::preview_correction(&workspace, options))?;
        return Ok(Box::new(preview?));
    }
    let words = options.correction.clone();
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
    if let Some(id) = &report.reflexion_id {
        for other in &args.replaces {
            let other = workspace.store.resolve(Kind::Reflexion, other, None)?;
            rules::replace_rule(&workspace, id, &other, &mut report.warnings)?;
        }
    }
    Ok(Box::new(report))
}

impl CorrectArgs {
    /// Checks the options of a correction of a skill.
    fn check(&self) -> Result<(), UserError> {
        if !self.commands.is_empty() {
            return Err(UserError::usage(
                "`--command` is for a rule of coding agents, which has no skill",
                "memctl correct \"Use pnpm here, never npm.\" --command '^npm\\b'",
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
        commands: args
            .commands
            .iter()
            .cloned()
            .map(PatternArg::Plain)
            .collect(),
        replaces: args.replaces.first().cloned().map(Earlier::Id),
        ..HeardArgs::default()
    };
    let workspace = context.workspace(None)?;
    let project = context.project_name().unwrap_or_default();
    let report = record_said(&workspace, heard, project)?;
    Ok(Box::new(with_past(context, &workspace, report)))
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

impl CorrectReport {
    /// Shows the existing rules that the new one contradicts, repeats or narrows.
    fn show_others(&self, page: &mut Page) {
        for conflict in &self.conflicts {
            let what = format!("{}: {} ({})", conflict.id, conflict.rule, conflict.reason);
            let how = if conflict.superseded {
                "replaces"
            } else {
                "conflict"
            };
            page.warn(format!("{how} "), &what);
        }
        for other in &self.related {
            let how = match other.relation {
                RuleRelation::Same => "the same as ",
                RuleRelation::Narrows => "beside ",
                // A contradiction is listed above.
                RuleRelation::Contradicts | RuleRelation::Unrelated => continue,
            };
            let what = format!("{}: {} ({})", other.id, other.rule, other.reason);
            page.note(how, &what);
        }
        for other in &self.similar {
            let what = format!("{}: {}", other.id, other.rule);
            page.warn("similar ", &what);
        }
        if let (Some(other), Some(id)) = (self.similar.first(), &self.reflexion_id) {
            let merge = format!(
                "if one says the same: memctl memory conflicts --merge {} {id}",
                other.id
            );
            page.dim(&merge);
        }
        if self.doubt.is_none() && self.conflicts.iter().any(|conflict| !conflict.superseded) {
            page.dim(
                "both stay active; run the same command with --supersede to replace the older rule",
            );
        }
    }
}

impl Report for CorrectReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let stored = match &self.execution_id {
            Some(id) => format!("{} (corrects {id})", self.correction_id),
            None => format!("{} (without an example)", self.correction_id),
        };
        page.field("correction", &stored);
        if let Some(reason) = &self.not_learned {
            page.warn("No rule was learned: ", reason);
            page.dim("to keep it as a rule, run the same command with --as-rule");
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
        page.some("", self.rule.as_deref());
        if let (Some(reason), Some(id)) = (self.doubt, &self.reflexion_id) {
            page.warn("Not in force yet: ", reason);
            page.dim(format!(
                "if it should hold from now on: memctl approve {id}"
            ));
            self.show_others(page);
            return;
        }
        let why = match self.confidence {
            ..0.65 => "vague: say when it applies and what exactly should change",
            0.65..0.8 => {
                "clear; saying more exactly when it applies, or what changes, would raise it"
            }
            _ => "clear and specific",
        };
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let files = |files: &[String], none: &str| match files {
            [] => none.to_owned(),
            files => files.join(", "),
        };
        let no_tests = match self.execution_id {
            None => "none, since no execution was named: --execution-id latest",
            Some(_) => "none",
        };
        page.fields([
            (
                "applies",
                said(&self.applies_when).unwrap_or_else(|| "always".to_owned()),
            ),
            ("cause", said(&self.root_cause).unwrap_or_default()),
            (
                "confidence",
                format!("{:.0}% ({why})", self.confidence * 100.0),
            ),
            ("guardrail", files(&self.guardrails, "none changed")),
            ("tests", files(&self.tests, no_tests)),
        ]);
        self.show_others(page);
    }
}

impl Report for CorrectPreview {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.styled(&[(Style::Strong, "instructions")]);
        self.request.system.lines().for_each(|line| page.line(line));
        page.line("");
        page.styled(&[(Style::Strong, "question")]);
        self.request.user.lines().for_each(|line| page.line(line));
        page.line("");
        let price = match (self.model.as_str(), self.cost_usd) {
            ("offline", _) => "no model is configured, so nothing would be sent".to_owned(),
            (model, Some(cost)) => format!("1 call to `{model}`, about ${cost:.4}"),
            (model, None) => format!("1 call to `{model}`, price not known"),
        };
        let own = &self.without_model;
        match (&own.rule, &own.not_learned) {
            (Some(rule), _) => page.field("offline", rule),
            (None, Some(reason)) => page.field("offline", &format!("no rule: {reason}")),
            (None, None) => {}
        }
        if let Some(doubt) = own.doubt {
            page.field("", &format!("only proposed: {doubt}"));
        }
        page.dim(format!("{price} · nothing was written"));
    }
}

const FIELDS: &str = r#"memctl correct --heard '{"rule": "…", "quote": "…"}'; memctl correct --help lists all fields"#;

pub(crate) fn record(context: &Context, json: &str) -> Done {
    let json = context.text(json)?;
    let args: HeardArgs = serde_json::from_str(&json)
        .map_err(|error| UserError::usage(format!("`--heard` cannot be read: {error}"), FIELDS))?;
    let workspace = context.workspace(None)?;
    let report = record_heard(&workspace, args)?;
    Ok(Box::new(with_past(context, &workspace, report)))
}

/// Adds what the patterns of a recorded rule match in past calls. Nothing is lost without it.
fn with_past(context: &Context, workspace: &Workspace, mut report: HeardReport) -> HeardReport {
    let rule: Option<Reflexion> = workspace.store.get(&report.id).ok();
    let patterns = rule.map(|rule| rule.seen_by).unwrap_or_default();
    let past = PastSessions {
        limit: TRIED,
        ..past_sessions(context)
    };
    if !patterns.is_empty()
        && let Ok(mut tried) = replay(&[patterns], &past)
    {
        let tried = tried.pop().filter(|tried| tried.calls > 0);
        report.past = tried.map(|tried| tried.words());
    }
    report
}

impl Report for HeardReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.field("candidate", &self.id);
        page.field("rule", &self.rule);
        let project = match self.project.as_str() {
            "" => "everywhere",
            name => name,
        };
        page.field("for", project);
        if let Some(old) = &self.earlier {
            let (label, note) = match old.now {
                EarlierState::Superseded => ("replaces", "which was a candidate"),
                EarlierState::Suspended => ("suspends", "until a person decides"),
                EarlierState::InForce => ("beside", "which stays in force until a person decides"),
            };
            page.field(label, &format!("{}: {} ({note})", old.id, old.rule));
        }
        for other in &self.nearest {
            page.field("near", &format!("{}: {}", other.id, other.rule));
        }
        for call in self.seen.iter().flatten() {
            page.field("matches", call);
        }
        for line in self.past.iter().flat_map(|past| past.lines()) {
            page.field("replay", line);
        }
        if !self.nearest.is_empty() {
            page.dim(
                "if it changes one of these: the same with --replaces ID (in JSON: `replaces`)",
            );
        }
        page.dim(format!("a person approves it: {}", self.approve));
    }
}
