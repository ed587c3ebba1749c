//! `stats`: benefit of the memory, as a page for a terminal or a browser.
//!
//! - `html`: page for a browser, one self-contained file. `figures`, `chart`: its charts.
//! - `words`: number formats of both pages.

mod chart;
mod escape;
mod figures;
mod html;
mod words;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::context::Context;
use crate::cli::output::{Align, Page, Report, Style, Table, plural};
use crate::error::UserError;
use crate::insight::{self, Part, RuleAtCalls, StatsReport, Used};
use crate::workspace::Error;
use memctl_files::named;

use words::{ms, number, part, usd};

/// Show the benefit of memory: correct runs, hints, cost, time
///
/// Reads the records of the store; missing figures are shown as `no data yet`. `--html` writes one
/// page with charts that needs no network.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl stats\n  memctl stats --html stats.html")]
pub(in crate::cli) struct StatsArgs {
    /// Write a page for a browser to this file, replacing an older one
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Statistics, and the path of the written page.
struct Shown {
    report: StatsReport,
    page: Option<PathBuf>,
}

pub(in crate::cli) fn stats(
    context: &Context,
    args: &StatsArgs,
) -> Result<Box<dyn Report>, UserError> {
    let workspace = context.workspace(None)?;
    let path = args
        .html
        .as_ref()
        .map(|path| context.environment.absolute(path));
    if let Some(path) = &path {
        refuse(path)?;
    }
    let spinner = context.printer.spinner("counting");
    let report = insight::stats(&workspace);
    drop(spinner);
    let report = report?;
    if let Some(path) = &path {
        insight::save_page(path, &html::page(&report, workspace.now))?;
    }
    Ok(Box::new(Shown { report, page: path }))
}

/// Fails early, with a hint, if the page cannot be written.
fn refuse(path: &Path) -> Result<(), UserError> {
    let shown = path.display();
    let refused = |why: &str| {
        let message = format!("cannot write `{shown}`: {why}");
        Err(UserError::input(message, "memctl stats --html stats.html"))
    };
    if named::is_dir(path) {
        return refused("it is a directory");
    }
    if named::link_metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return refused("it is not a regular file");
    }
    if path.parent().is_some_and(named::is_dir) {
        return Ok(());
    }
    Err(Error::NoParent {
        path: path.to_owned(),
    }
    .into())
}

impl Report for Shown {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.report)
    }

    fn page(&self, page: &mut Page) {
        let report = &self.report;
        match &report.days {
            Some([first, last]) => page.styled(&[(Style::Strong, &format!("{first} to {last}"))]),
            None => page.line("No data yet: run a skill, or learn from sessions."),
        }
        if !report.is_empty() {
            runs(report, page);
            hints(report, page);
            learning(report, page);
            used("Rule", &report.rules, page);
            used("Lesson", &report.lessons, page);
            at_calls(&report.at_calls, page);
        }
        if let Some(path) = &self.page {
            page.styled(&[
                (Style::Good, "wrote "),
                (Style::Plain, &path.display().to_string()),
            ]);
        }
    }

    fn warnings(&self) -> &[String] {
        &self.report.warnings
    }
}

/// Returns a value, or the text for missing data.
fn or_none(value: Option<String>) -> String {
    value.unwrap_or_else(|| words::NONE.to_owned())
}

fn shown(of: &Part) -> String {
    or_none(part(of))
}

fn runs(report: &StatsReport, page: &mut Page) {
    let runs = &report.executions;
    if runs.total == 0 {
        return;
    }
    page.line("");
    let all = plural(runs.total, "run");
    let more = format!(
        ": {} without an answer, {} not judged",
        runs.errors, runs.unjudged
    );
    page.styled(&[(Style::Strong, &all), (Style::Plain, &more)]);
    page.field(
        "with rules",
        &format!("right: {}", shown(&runs.right_with_rules)),
    );
    page.field(
        "without",
        &format!("right: {}", shown(&runs.right_without_rules)),
    );
    let tokens = |mean: Option<f64>| or_none(mean.map(number));
    page.field(
        "tokens/run",
        &format!(
            "with rules: {}; without: {}",
            tokens(runs.tokens_with_rules),
            tokens(runs.tokens_without_rules)
        ),
    );
    let unknown = match runs.cost_unknown {
        0 => String::new(),
        count => format!("; {count} of unknown cost"),
    };
    page.field("cost", &(or_none(runs.cost_usd.map(usd)) + &unknown));
    let latency = runs
        .latency_ms
        .map(|l| format!("{} median, {} at 95 %", ms(l.p50), ms(l.p95)));
    page.field("latency", &or_none(latency));
}

fn hints(report: &StatsReport, page: &mut Page) {
    let hints = &report.hints;
    page.line("");
    page.styled(&[(Style::Strong, "Hints at failing calls")]);
    if hints.shown == 0 && hints.evidence.shown == 0 {
        page.field("shown", words::NONE);
    } else {
        page.field("shown", &hints.shown.to_string());
        page.field("helped", &shown(&hints.precision));
        page.field("recovered", &shown(&hints.overcome));
        page.field("repeated", &shown(&hints.repeated));
        let steps = |mean: Option<f64>| or_none(mean.map(number));
        let steps = format!(
            "{} until recovery or the end of the attempt",
            steps(hints.steps_shown)
        );
        page.field("calls", &steps);
        let e = hints.evidence;
        let all = format!(
            "{} shown, {} helped, {} harmed",
            e.shown, e.helped, e.harmed
        );
        page.field("all lessons", &all);
    }
}

fn learning(report: &StatsReport, page: &mut Page) {
    let learnt = &report.learning;
    page.line("");
    page.styled(&[(Style::Strong, "Learned")]);
    let counts = [
        plural(learnt.corrections, "correction"),
        format!(
            "{} ({} validated)",
            plural(learnt.reflexions, "rule"),
            learnt.validated
        ),
        plural(learnt.procedures, "procedure"),
    ];
    page.field("all", &counts.join(", "));
    page.field("per week", &or_none(learnt.a_week.map(number)));
    page.field("used again", &shown(&learnt.reused));
    if learnt.procedures_retrieved > 0 {
        let times = plural(learnt.procedures_retrieved, "time");
        page.field("retrieved", &format!("procedures {times}"));
    }
}

fn used(name: &'static str, all: &[Used], page: &mut Page) {
    if all.is_empty() {
        return;
    }
    page.line("");
    let mut table = Table::new(
        &[
            (name, Align::Left),
            ("Shown", Align::Right),
            ("Helped", Align::Right),
            ("Harmed", Align::Right),
            ("Confidence", Align::Right),
            ("About", Align::Left),
            ("Text", Align::Prose),
        ],
        &[6, 5],
    );
    for used in all.iter().take(8) {
        table.row([
            used.id.clone(),
            used.evidence.shown.to_string(),
            used.evidence.helped.to_string(),
            used.evidence.harmed.to_string(),
            format!("{:.2}", used.confidence),
            used.about.clone(),
            used.text.clone(),
        ]);
    }
    page.table(&table);
}

/// Shows the rules that act on calls.
fn at_calls(all: &[RuleAtCalls], page: &mut Page) {
    if all.is_empty() {
        return;
    }
    page.line("");
    let mut table = Table::new(
        &[
            ("At calls", Align::Left),
            ("Told", Align::Right),
            ("Heeded", Align::Right),
            ("Recurred", Align::Right),
            ("Overridden", Align::Right),
            ("Action", Align::Left),
            ("Rule", Align::Prose),
        ],
        &[6],
    );
    for rule in all.iter().take(8) {
        let action = if rule.active {
            rule.action.name()
        } else {
            "off"
        };
        table.row([
            rule.id.clone(),
            rule.receipts.told.to_string(),
            rule.receipts.heeded.to_string(),
            rule.receipts.recurred.to_string(),
            rule.receipts.overridden.to_string(),
            action.to_owned(),
            rule.rule.clone(),
        ]);
    }
    page.table(&table);
}
