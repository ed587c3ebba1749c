//! `run`, and the verdicts on executions: `accept`, `reject`.

use std::path::PathBuf;

use clap::Args;
use memctl_files::json;
use serde_json::{Map, Value};

use crate::cli::context::Context;
use crate::cli::ending::wait;
use crate::cli::output::printer::follow;
use crate::cli::output::{Done, Page, Report, Style, plural};
use crate::model::error::UserError;
use crate::model::{Correction, Execution, Kind, Outcome, SkillPath};
use crate::review::Rejected;
use crate::rules::ReviewReport;
use crate::skills::prompt::ids_of;
use crate::skills::{RunOptions, RunReport};
use crate::store::Selection;
use crate::store::workspace::Workspace;
use crate::{review, rules, skills};

/// Run a skill and record the result
///
/// Without a model, `--model offline` answers with the most similar known case: an example of the
/// skill, or an execution that was accepted or corrected. Without that flag only a case with nearly
/// the same input answers (90% alike); else the exit code is 4, and the ways to get a model are listed.
///
/// ```console
/// $ memctl run hr/resume-screen --input fixtures/sample_input.json
/// $ echo '{"diff": "…"}' | memctl run dev/code-review --input - --model 'exec:claude -p'
/// ```
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Skill, as `domain/skill`
    skill: String,
    /// Input, as JSON or text; `-` for stdin; default: the skill's `fixtures/sample_input.json`
    #[arg(long, short, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Model: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Leave learned rules out, and do not record the run
    #[arg(long)]
    no_memory: bool,
    /// Do not record the run: for tests
    #[arg(long)]
    no_record: bool,
    /// Show the prompt layers and the model, and call nothing
    #[arg(long)]
    dry_run: bool,
    /// Session that logs the run; default: the variable `MEMCTL_SESSION`
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

pub(crate) fn run(context: &Context, args: &RunArgs) -> Done<RunReport> {
    let skill = context.skill(&args.skill)?;
    let input = args
        .input
        .as_deref()
        .map(|path| context.input(path))
        .transpose()?;
    let workspace = context.workspace_of_user(args.model.as_deref())?;
    let spinner = context.printer.work(&format!("running {skill}"));
    let options = RunOptions {
        skill,
        input,
        without_memory: args.no_memory,
        without_record: args.no_record,
        dry_run: args.dry_run,
        session: context.session(args.session.clone()),
        stateless: context.off.as_ref().map(ToString::to_string),
    };
    let report = wait(skills::run(&workspace, options, &mut follow(&spinner)))??;
    drop(spinner);
    if let Some(sample) = &report.sample_input {
        context
            .printer
            .note(&format!("using {sample} (no --input given)"));
    }
    Ok(report)
}

impl Report for RunReport {
    /// Pretty-printed JSON, or the text of an answer that consists of text only.
    fn answer(&self) -> Option<String> {
        self.outcome.as_ref()?;
        let output = self.output.get();
        // The layout alone changes: a reader of values would round a long number.
        raw_output(output).or_else(|| Some(json::pretty(output, 0)))
    }

    fn page(&self, page: &mut Page) {
        if self.outcome.is_none() {
            let dry = "Dry run: no model was called, nothing was recorded.";
            page.styled(&[(Style::Strong, dry)]);
        }
        let execution = match (&self.execution_id, self.stateless) {
            (Some(id), _) => id,
            (None, true) => "not recorded: memory is disabled",
            (None, false) => "not recorded",
        };
        let nearest = self.nearest_case.as_ref().map(|nearest| {
            let (source, percent) = (&nearest.source, nearest.similarity * 100.0);
            format!("{source} ({percent:.0}% similar); no model was called")
        });
        let layers = self.layers.iter();
        let layers = layers.map(|of| format!("{} {} ({} tokens)", of.layer, of.source, of.tokens));
        let rules = match ids_of(&self.injected, Kind::Reflexion).join(", ") {
            none if none.is_empty() => "none".to_owned(),
            rules => rules,
        };
        let ran = |text: String| self.outcome.as_ref().map(|_| text).unwrap_or_default();
        let cost = self.cost_usd.map(|cost| format!("${cost:.4}"));
        let cost = cost.unwrap_or_else(|| "unknown".to_owned());
        let usage = self.usage.as_ref();
        let usage = usage.map(|of| (plural(of.input_tokens, "token"), of.output_tokens));
        let usage = usage.map(|(input, output)| format!("{input} in, {output} out"));
        let outcome = self.outcome.as_ref();
        page.fields([
            ("execution", execution.to_owned()),
            ("model", self.model_used.clone()),
            ("answered by", nearest.unwrap_or_default()),
            ("layers", layers.collect::<Vec<_>>().join(", ")),
            ("rules", rules),
            (
                "lessons",
                ids_of(&self.injected, Kind::Procedure).join(", "),
            ),
            (
                "outcome",
                outcome.map(|of| of.as_str().to_owned()).unwrap_or_default(),
            ),
            ("latency", ran(latency(self.latency_ms))),
            ("cost", ran(cost)),
            ("usage", usage.unwrap_or_default()),
        ]);
        if let Some(id) = &self.execution_id {
            page.line("");
            page.note("Right? ", format!("memctl accept {id}"));
            let options = format!("--execution-id {id} --correction \"…\"");
            page.note(
                "Wrong? ",
                format!("memctl correct {} {options}", self.skill),
            );
        }
    }
}

/// Returns the text of an answer that consists of text only.
pub(crate) fn raw_output(json: &str) -> Option<String> {
    let fields: Map<String, Value> = serde_json::from_str(json).ok()?;
    let text = fields.get("raw_output").filter(|_| fields.len() == 1)?;
    text.as_str().map(str::to_owned)
}

/// Returns a duration as `850ms` or `1.1s`, the form of the source documents.
pub(crate) fn latency(ms: f64) -> String {
    if ms < 1000.0 {
        format!("{ms:.0}ms")
    } else {
        format!("{:.1}s", ms / 1000.0)
    }
}

/// Mark an execution as right
///
/// Without a model, an accepted execution answers similar inputs.
///
/// ```console
/// $ memctl accept latest
/// $ memctl accept EXEC-20260220124341 --json
/// ```
#[derive(Debug, Args)]
pub(crate) struct AcceptArgs {
    /// Execution id, a prefix of one, or `latest`
    id: String,
}

pub(crate) fn accept(context: &Context, args: &AcceptArgs) -> Done<ReviewReport> {
    if let Some(kind) = Kind::of_id(&args.id).filter(|kind| *kind != Kind::Execution) {
        let message = format!("`{}` is a {}, and no execution", args.id, kind.noun());
        return Err(UserError::usage(
            message,
            format!("memctl approve {}", args.id),
        ));
    }
    let workspace = context.workspace(None)?;
    let accepted = Outcome::Accepted;
    let mut report = rules::give_verdict(&workspace, &args.id, accepted, None, &[])?;
    let id = &report.execution_id;
    if report.warnings.is_empty()
        && let Some(correction) = known_wrong(&workspace, id)
    {
        report.warnings.push(format!(
            "{correction} has corrected this output: if it is still wrong, memctl reject {id}"
        ));
    }
    Ok(report)
}

/// Returns the correction of the known case that an execution repeats, if it says nothing of the right output.
fn known_wrong(workspace: &Workspace, id: &str) -> Option<String> {
    let get = |id: &str| workspace.store.get::<Execution>(id).ok();
    let source = |of: Execution| Some(of.nearest_case?.source);
    let skill: SkillPath = get(id)?.skill.parse().ok()?;
    let repeated = source(get(id)?)?;
    let corrections = workspace.store.list::<Correction>(&Selection::of(&skill));
    let mut corrections = corrections.ok()?.records.into_iter();
    let found = corrections.find(|one| {
        let of = || source(get(&one.execution_id)?);
        one.expected_output.is_none() && of().is_some_and(|of| of == repeated)
    });
    found.map(|found| found.correction_id)
}

/// Mark an execution as wrong, or a learned record as useless
///
/// A candidate rule or an unapproved lesson stays in its file with the reason, and is not proposed
/// again; a lesson is not told any more.
///
/// ```console
/// $ memctl reject EXEC-20260220124341 --reason "made-up employer"
/// $ memctl reject latest --rule REFL-003
/// $ memctl reject PROC-007 --reason "only in this branch"
/// ```
#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    /// Id of an execution, a candidate rule or a lesson, a prefix of one, or `latest`
    id: String,
    /// Reason of the rejection
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Rule that was at fault; default: the one that the reason is clearly about, or none
    #[arg(long = "rule", value_name = "ID")]
    rules: Vec<String>,
}

pub(crate) fn reject(context: &Context, args: RejectArgs) -> Done {
    let workspace = context.workspace(None)?;
    if Kind::of_id(&args.id).is_some_and(|kind| kind != Kind::Execution) {
        let reason = args.reason.as_deref().unwrap_or_default();
        return Ok(Box::new(review::reject(&workspace, &args.id, reason)?));
    }
    let (reason, named) = (args.reason, &args.rules);
    let report = rules::give_verdict(&workspace, &args.id, Outcome::Rejected, reason, named)?;
    Ok(Box::new(report))
}

impl Report for Rejected {
    fn page(&self, page: &mut Page) {
        page.result("rejected", &self.id, self);
    }
}

impl Report for ReviewReport {
    fn page(&self, page: &mut Page) {
        let (before, outcome) = (self.before.as_str(), self.outcome.as_str());
        page.line(format!("{} {before} → {outcome}", self.execution_id));
        page.document(self, &[&self.execution_id, before, outcome]);
    }
}
