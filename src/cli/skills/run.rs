//! `run`, `test`, and the verdicts on executions: `accept`, `reject`.

use std::path::{Path, PathBuf};

use clap::Args;
use memctl_files::json;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::ask::Spending;
use crate::cli::context::Context;
use crate::cli::ending::wait;
use crate::cli::output::printer::follow;
use crate::cli::output::{Done, Page, Report, Style, plural};
use crate::model::error::{self, UserError};
use crate::model::{Correction, Execution, Kind, Outcome, SkillPath};
use crate::review::Rejected;
use crate::rules::ReviewReport;
use crate::skills::prompt::ids_of;
use crate::skills::{
    self, OutputVerdict, RunOptions, RunReport, Status, TestExportReport, TestPlan, TestReport,
};
use crate::store::Selection;
use crate::store::workspace::Workspace;
use crate::{review, rules};

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
    let input = context.input(args.input.as_deref())?;
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

const NO_TESTS: &str = "no regression tests; `memctl correct` creates one for each correction";

/// Run the regression tests of corrections with and without rules
///
/// A test that fails without the rule and passes with it validates the rule. A test that passes
/// without the rule proves nothing. Any other test fails, and names the demands that the output
/// fails. Exits with 1 if a test fails, with 4 if the model fails, and with 7 if no test could run.
/// `--export` writes the tests for DeepEval and Promptfoo instead, and calls no model; they decide
/// with `--case`. A judge is the model, or the program in `MEMCTL_JUDGE`.
///
/// ```console
/// $ memctl test
/// $ memctl test hr/resume-screen --model 'exec:claude -p'
/// $ memctl test --max-calls 40
/// $ memctl test hr/resume-screen --export
/// ```
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Skill, as `domain/skill`; default: all skills
    skill: Option<String>,
    /// Model: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Maximum number of model calls
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_calls: usize,
    /// Call the model without a question about the cost
    #[arg(long)]
    yes: bool,
    /// Decide one output by this case: `test_correction_3`
    #[arg(long, value_name = "CASE", requires_all = ["output", "skill"], conflicts_with_all = ["max_calls", "yes"])]
    case: Option<String>,
    /// File with the output to decide; `-` reads standard input
    #[arg(long, value_name = "FILE", requires = "case")]
    output: Option<String>,
    /// Exit with 0 even if no test could run
    #[arg(long)]
    allow_skipped: bool,
    /// Write the tests as files of DeepEval and Promptfoo, beside the cases of each skill
    #[arg(long, conflicts_with_all = ["model", "max_calls", "yes", "case"])]
    export: bool,
}

pub(crate) fn test(context: &Context, args: &TestArgs) -> Done {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let workspace = context.workspace(args.model.as_deref())?;
    if args.export {
        let mut report = skills::export_tests(&workspace, skill.as_ref())?;
        if report.cases == 0 {
            report.warnings.push(NO_TESTS.to_owned());
        }
        return Ok(Box::new(report));
    }
    if let (Some(case), Some(output), Some(skill)) = (&args.case, &args.output, &skill) {
        return decide(context, args, skill, case, output);
    }
    let plan = wait(skills::plan_tests(
        &workspace,
        skill.as_ref(),
        args.max_calls,
    ))??;
    announce(context, &plan, args.yes)?;
    let mut report = context.printer.counting("testing", |on_case| {
        wait(skills::test(&workspace, plan, on_case))
    })??;
    if report.cases.is_empty() {
        report.warnings.push(NO_TESTS.to_owned());
    } else if report.cases.len() == report.skipped {
        report.warnings.push(
            "no test could run, for the reasons given; --allow-skipped accepts that".to_owned(),
        );
    }
    Ok(Box::new(Tested {
        report,
        allow_skipped: args.allow_skipped,
    }))
}

/// Decides one output. The judge is the model of `--model`, else the program in `MEMCTL_JUDGE`.
fn decide(context: &Context, args: &TestArgs, skill: &SkillPath, case: &str, output: &str) -> Done {
    let text = context.read(Path::new(output))?;
    let program = context.environment.var("MEMCTL_JUDGE");
    let program = program.map(|program| format!("exec:{program}"));
    let judge = args.model.clone().or(program);
    let workspace = context.workspace(judge.as_deref())?;
    let has_judge = judge.is_some();
    let deciding = skills::decide_output(&workspace, skill, case, &text, has_judge);
    Ok(Box::new(Tested {
        report: wait(deciding)??,
        allow_skipped: args.allow_skipped,
    }))
}

/// Exit code if no test could run.
const SKIPPED: u8 = 7;

/// Report of a test run or of one output, with the meaning of a skipped test.
#[derive(Serialize)]
#[serde(transparent)]
struct Tested<R> {
    report: R,
    #[serde(skip)]
    allow_skipped: bool,
}

impl Report for Tested<OutputVerdict> {
    fn page(&self, page: &mut Page) {
        let OutputVerdict { status, reason, .. } = &self.report;
        page.note(format!("{} ", status.name()), reason);
        page.exit_code = match status {
            Status::Failed => 1,
            Status::Skipped if !self.allow_skipped => SKIPPED,
            _ => 0,
        };
    }
}

/// Prints the models, the calls and the cost before the first call, and asks if that is much.
fn announce(context: &Context, plan: &TestPlan, yes: bool) -> Result<(), UserError> {
    let spending = Spending {
        models: &plan.models,
        calls: plan.calls,
        cost_usd: plan.cost_usd,
        ..Spending::default()
    };
    if plan.calls == 0 || spending.announce(context, yes)? {
        return Ok(());
    }
    Err(UserError::usage(
        "no model was called, so nothing was tested",
        "memctl test --yes",
    ))
}

impl Report for TestExportReport {}

impl Report for Tested<TestReport> {
    fn page(&self, page: &mut Page) {
        page.document(&self.report, &[]);
        let cases = self.report.cases.iter();
        for case in cases.filter(|case| case.status != Status::Passed) {
            let title = format!("{} {} ({}): ", case.status.name(), case.id, case.skill);
            page.warn(title, &case.reason);
        }
        // A CI gate must not pass because the model did not answer.
        let report = &self.report;
        let is_skipped = !report.cases.is_empty() && report.skipped == report.cases.len();
        page.exit_code = match (report.failed > 0, report.unanswered) {
            (true, _) => 1,
            (false, 0) if is_skipped && !self.allow_skipped => SKIPPED,
            (false, 0) => 0,
            (false, _) => error::Kind::Model.code(),
        };
    }
}
