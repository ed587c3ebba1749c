//! `consolidate`: keeps, discards or merges what was learned and nobody has reviewed.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::interrupt::wait;
use crate::cli::output::{Page, Report, Style, plural};
use crate::cli::price::{Spending, price};
use crate::error::{Kind, UserError};
use crate::learning::{
    self, ConsolidateOptions, ConsolidatePlan, ConsolidateReport, Judged, Question,
};
use crate::model::Verdict;
use crate::workspace::Workspace;

/// Keep, discard or merge learned records that nobody has reviewed
///
/// Merges duplicate fixes and procedures, and retires fixes that are of no use. If a model is
/// configured, it judges the remaining fixes, procedures and candidate rules in batches, with a
/// reason for each, and shortens what it keeps. Prints the calls and the estimated cost first.
/// Approves nothing, and leaves approved records as they are. `memctl memory undo` reverts a run.
/// Exits with 4 if a model call fails.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl consolidate --dry-run\n  \
    memctl consolidate --model 'exec:claude -p'\n  \
    memctl consolidate --model anthropic/claude-haiku-4-5 --max-cost 0.05")]
pub(in crate::cli) struct ConsolidateArgs {
    /// Model: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Maximum number of model calls, each about ten records
    #[arg(long, value_name = "N", default_value_t = 20)]
    max_calls: usize,
    /// Maximum estimated cost of the calls, in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_cost: Option<f64>,
    /// Call the model without a question about the cost
    #[arg(long)]
    yes: bool,
    /// Show the verdicts of this program and the questions to the model; write and send nothing
    #[arg(long)]
    dry_run: bool,
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if amount.is_finite() && amount >= 0.0 {
        Ok(amount)
    } else {
        Err("not an amount of money".to_owned())
    }
}

pub(in crate::cli) fn consolidate(
    context: &Context,
    args: &ConsolidateArgs,
) -> Result<Box<dyn Report>, UserError> {
    let workspace = context.workspace(args.model.as_deref())?;
    let mut report = learning::tidy(&workspace, args.dry_run)?;
    let options = ConsolidateOptions {
        max_calls: args.max_calls,
        max_cost: args.max_cost,
        session: context.session(None),
        settled: report.judged.iter().map(|one| one.id.clone()).collect(),
    };
    let Some(plan) = wait(learning::plan_consolidation(&workspace, &options))?? else {
        return Ok(Box::new(report));
    };
    if args.dry_run {
        report.model = Some(plan.model.clone());
        report.left_out = plan.left_out;
        report.cost_usd = plan.cost_usd;
        report.requests = plan.questions();
    } else if plan.calls() > 0 {
        ask(context, &workspace, plan, args.yes, &mut report)?;
    } else {
        report.left_out = plan.left_out;
    }
    Ok(Box::new(report))
}

fn ask(
    context: &Context,
    workspace: &Workspace,
    plan: ConsolidatePlan,
    yes: bool,
    report: &mut ConsolidateReport,
) -> Result<(), UserError> {
    let spending = Spending {
        models: std::slice::from_ref(&plan.model),
        calls: plan.calls(),
        cost_usd: plan.cost_usd,
        about: format!(" about {}", plural(plan.records as u64, "record")),
        also: String::new(),
    };
    if !spending.announce(context, yes)? {
        report.left_out = plan.left_out + plan.records;
        return Ok(());
    }
    let bar = context.printer.bar("consolidating");
    let mut on_batch = |done: usize, of: usize| bar.reach(done, of);
    Ok(wait(learning::consolidate(
        workspace,
        plan,
        report,
        &mut on_batch,
        &mut |_| {},
    ))??)
}

impl Report for ConsolidateReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        for judged in &self.judged {
            show(page, judged);
        }
        for undecided in &self.undecided {
            page.styled(&[
                (Style::Warn, "undecided "),
                (Style::Strong, &undecided.id),
                (Style::Plain, &format!(": {}", undecided.reason)),
            ]);
        }
        if !self.requests.is_empty() {
            show_requests(page, &self.requests);
        }
        let mut ends: Vec<String> = [
            (Verdict::Keep, "kept"),
            (Verdict::Discard, "discarded"),
            (Verdict::Merge, "merged"),
        ]
        .into_iter()
        .map(|(verdict, name)| format!("{} {name}", self.count(verdict)))
        .collect();
        if self.left_out > 0 {
            ends.push(format!("{} left for another run", self.left_out));
        }
        match &self.model {
            None => ends.push("no model asked".to_owned()),
            Some(model) if self.dry_run => ends.push(format!(
                "{} to `{model}`, about {}",
                plural(self.requests.len() as u64, "call"),
                price(self.cost_usd)
            )),
            Some(_) => ends.push(format!(
                "{}, {}",
                plural(self.calls as u64, "call"),
                price(self.cost_usd)
            )),
        }
        if self.dry_run {
            ends.push("nothing was written".to_owned());
        }
        page.styled(&[(Style::Dim, &ends.join(" · "))]);
        if !self.dry_run && self.count(Verdict::Keep) > 0 {
            page.styled(&[(
                Style::Dim,
                "approve what is right: memctl memory approve ID…; revert: memctl memory undo",
            )]);
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn exit_code(&self) -> u8 {
        if self.failed_calls > 0 {
            Kind::Model.code()
        } else {
            0
        }
    }
}

fn show(page: &mut Page, judged: &Judged) {
    let style = match judged.verdict {
        Verdict::Keep => Style::Good,
        Verdict::Discard => Style::Bad,
        Verdict::Merge => Style::Warn,
    };
    let into = judged.into.as_ref();
    let into = into.map_or(String::new(), |into| format!(" into {into}"));
    page.styled(&[
        (style, &judged.verdict.to_string()),
        (Style::Plain, " "),
        (Style::Strong, &judged.id),
        (Style::Plain, &format!("{into}: {}", judged.reason)),
    ]);
    page.styled(&[(Style::Dim, &format!("  {}", judged.summary))]);
}

/// Shows what would be sent: the instructions once, then the records.
fn show_requests(page: &mut Page, requests: &[Question]) {
    for (place, request) in requests.iter().enumerate() {
        let title = format!("question {} of {}", place + 1, requests.len());
        page.styled(&[(Style::Strong, &title)]);
        if place == 0 {
            request.system.lines().for_each(|line| page.line(line));
        }
        request.user.lines().for_each(|line| page.line(line));
    }
}
