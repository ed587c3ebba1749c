//! `test`: regression tests of the rules.

use std::path::Path;

use clap::Args;
use serde::Serialize;

use crate::cli::ask::Spending;
use crate::cli::context::Context;
use crate::cli::ending::wait;
use crate::cli::output::{Done, Page, Report};
use crate::model::SkillPath;
use crate::model::error::{Kind, UserError};
use crate::skills::{self, OutputVerdict, Status, TestExportReport, TestPlan, TestReport};
use crate::store::workspace::Workspace;

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
    let report = run(context, &workspace, plan)?;
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
        page.exits_with(match status {
            Status::Failed => 1,
            Status::Skipped if !self.allow_skipped => SKIPPED,
            _ => 0,
        });
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

fn run(context: &Context, workspace: &Workspace, plan: TestPlan) -> Result<TestReport, UserError> {
    let mut report = context.printer.counting("testing", |on_case| {
        wait(skills::test(workspace, plan, on_case))
    })??;
    let ran = report.cases.len() - report.skipped;
    if report.cases.is_empty() {
        report.warnings.push(NO_TESTS.to_owned());
    } else if ran == 0 {
        report.warnings.push(
            "no test could run, for the reasons given; --allow-skipped accepts that".to_owned(),
        );
    }
    Ok(report)
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
        page.exits_with(self.exit_code());
    }
}

impl Tested<TestReport> {
    fn exit_code(&self) -> u8 {
        // A CI gate must not pass because the model did not answer.
        let report = &self.report;
        let is_skipped = !report.cases.is_empty() && report.skipped == report.cases.len();
        match (report.failed > 0, report.unanswered) {
            (true, _) => 1,
            (false, 0) if is_skipped && !self.allow_skipped => SKIPPED,
            (false, 0) => 0,
            (false, _) => Kind::Model.code(),
        }
    }
}
