//! `stats`: benefit of the memory, as a page for a terminal or a browser.
//!
//! A figure without data is left out, never shown as a number.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use memctl_files::named;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::learn::repeats;
use crate::cli::output::{Done, Page, Report, Style, Table, ms, number, plural, usd};
use crate::model::Evidence;
use crate::model::error::UserError;
use crate::review::Repeats;
use crate::store::workspace::Error;
use crate::upkeep::{self, AgentSessions, Part, SessionMeans, StatsReport, Used, Week};

/// Show the benefit of memory: correct runs, hints, cost, time
///
/// Reads the records of the store; figures without data are left out. `--html` writes the same page
/// for a browser.
///
/// ```console
/// $ memctl stats
/// $ memctl stats --html stats.html
/// ```
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Write a page for a browser to this file, replacing an older one
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Columns of the page for a browser, which breaks lines by itself: no text is cut.
const HTML_WIDTH: usize = 400;

/// Repetitions in past sessions, statistics, and the path of the written page.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Shown {
    #[serde(flatten)]
    report: StatsReport,
    /// Repetitions in past sessions of this project; absent if no host keeps sessions of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    past: Option<Repeats>,
    #[serde(skip)]
    page: Option<PathBuf>,
}

pub(crate) fn stats(context: &Context, args: &StatsArgs) -> Done {
    let workspace = context.workspace(None)?;
    let path = args
        .html
        .as_ref()
        .map(|path| context.environment.absolute(path));
    path.as_deref().map_or(Ok(()), refuse)?;
    let report = context
        .printer
        .during("counting", || upkeep::stats(&workspace))?;
    let past = repeats::of_project(context, &workspace)?;
    let mut shown = Shown {
        report,
        past: Some(past).filter(|past| past.sessions > 0),
        page: None,
    };
    if let Some(path) = path {
        let mut page = Page::new(HTML_WIDTH, false, workspace.now);
        shown.page(&mut page);
        upkeep::save_page(&path, &html(&page.into_text()))?;
        shown.page = Some(path);
    }
    Ok(Box::new(shown))
}

/// Returns a page for a browser with the text of the page for a terminal: one file, which forbids
/// scripts and requests, so that stored text cannot run.
fn html(text: &str) -> String {
    let text = memctl_redact::redact(text).text;
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let text = text.replace('>', "&gt;").replace('"', "&quot;");
    let text = text.replace('\'', "&#39;");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
        <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\
        <meta name=\"color-scheme\" content=\"light dark\"/>{TITLE}\
        <style>body{{max-width:70rem;margin:2rem auto;padding:0 1rem;font-family:system-ui}}\
        pre{{white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.5}}</style></head>\
        <body><h1>Benefit of memory</h1><pre>{text}</pre></body></html>\n"
    )
}

/// Title of the page, by which it is known.
const TITLE: &str = "<title>memctl: benefit of memory</title>";
/// Bytes at the beginning of a page that hold its title.
const START: u64 = 4 << 10;

/// Returns `true` for a file that is empty or an older page.
fn is_page(path: &Path) -> bool {
    let mut start = Vec::new();
    let file = named::open_plain(path);
    let read = file.and_then(|file| file.take(START).read_to_end(&mut start));
    read.is_ok() && (start.is_empty() || String::from_utf8_lossy(&start).contains(TITLE))
}

/// Fails early, with a hint, if the page cannot be written.
fn refuse(path: &Path) -> Result<(), UserError> {
    let why = if named::is_dir(path) {
        "it is a directory"
    } else if named::link_metadata(path).is_ok_and(|meta| !meta.is_file()) {
        "it is not a regular file"
    } else if named::exists(path) && !is_page(path) {
        "it is there, and no page of memctl"
    } else if path.parent().is_some_and(named::is_dir) {
        return Ok(());
    } else {
        return Err(Error::no_parent(path).into());
    };
    let message = format!("cannot write `{}`: {why}", path.display());
    Err(UserError::input(message, "memctl stats --html stats.html"))
}

impl Report for Shown {
    fn page(&self, page: &mut Page) {
        let report = &self.report;
        if let Some(past) = &self.past {
            repeats::show(past, page);
            page.line("");
        }
        match &report.days {
            Some([first, last]) if first == last => page.styled(&[(Style::Strong, first)]),
            Some([first, last]) => page.styled(&[(Style::Strong, &format!("{first} to {last}"))]),
            None if self.past.is_none() => {
                page.line("No data yet: run a skill, or learn from sessions.");
            }
            None => {}
        }
        sessions(&report.sessions, page);
        weeks(&report.weeks, page);
        if !report.is_empty() {
            runs(report, page);
            hints(report, page);
            learning(report, page);
            used("Rule|>Shown|>Helped|>Harmed|~Text", &report.rules, page);
            used("Lesson|>Shown|>Helped|>Harmed|~Text", &report.lessons, page);
            if !report.at_calls.is_empty() {
                page.dim("what became of rules at calls: memctl list rules");
            }
        }
        if let Some(path) = &self.page {
            page.good("wrote ", path.display().to_string());
        }
    }
}

/// Shows what a session costs with and without something told at a call.
fn sessions(sessions: &AgentSessions, page: &mut Page) {
    let means = |of: &SessionMeans| {
        let (calls, failed) = of.calls.zip(of.failed)?;
        let tokens = of.tokens.map(|mean| format!("; {} tokens", number(mean)));
        let tokens = tokens.unwrap_or_default();
        let (calls, failed) = (number(calls), number(failed));
        let all = plural(of.sessions, "session");
        let mean = if of.sessions == 1 { "" } else { "on average " };
        Some(format!(
            "in {all}, {mean}{calls} calls, of which {failed} failed{tokens}"
        ))
    };
    let [told, not_told] =
        [&sessions.told, &sessions.not_told].map(|of| means(of).unwrap_or_default());
    if told.is_empty() && not_told.is_empty() {
        return;
    }
    page.line("");
    page.styled(&[(Style::Strong, "Sessions of agents")]);
    page.fields([("told at calls", told), ("not told", not_told)]);
}

/// Shows what changed from week to week, from two weeks on. The table leaves out a column without data.
fn weeks(all: &[Week], page: &mut Page) {
    if all.len() < 2 {
        return;
    }
    let figure = |count: u64| match count {
        0 => String::new(),
        count => count.to_string(),
    };
    let of = |count: u64, all: u64| match all {
        0 => String::new(),
        all => format!("{count} of {all}"),
    };
    let heads = "Week of|>Sessions|>Calls|>Failed|>Heeded|>Helped|>Right|>Learned";
    let mut table = Table::new(heads);
    for week in all {
        table.row([
            week.week.clone(),
            figure(week.sessions),
            figure(week.calls),
            figure(week.failed),
            of(week.heeded, week.told),
            of(week.helped, week.hints),
            of(week.right, week.judged),
            figure(week.learned),
        ]);
    }
    page.line("");
    page.table(&table);
}

fn runs(report: &StatsReport, page: &mut Page) {
    let runs = &report.executions;
    if runs.total == 0 {
        return;
    }
    let all = plural(runs.total, "run");
    let more = format!(
        ": {} without an answer, {} not judged",
        runs.errors, runs.unjudged
    );
    page.line("");
    page.styled(&[(Style::Strong, &all), (Style::Plain, &more)]);
    let right = |of: &Part| part(of).map(|share| format!("right: {share}"));
    let of_rules = runs
        .tokens_with_rules
        .map(|mean| format!("with rules: {}", number(mean)));
    let without = runs
        .tokens_without_rules
        .map(|mean| format!("without: {}", number(mean)));
    let unknown = (runs.cost_unknown > 0).then(|| format!("{} of unknown cost", runs.cost_unknown));
    let latency = runs.latency_ms;
    let latency = latency.map(|l| format!("{} median, {} at 95 %", ms(l.p50), ms(l.p95)));
    page.some("with rules", right(&runs.right_with_rules));
    page.some("without", right(&runs.right_without_rules));
    page.fields([
        ("tokens/run", joined([of_rules, without])),
        ("cost", joined([runs.cost_usd.map(usd), unknown])),
        ("latency", latency.unwrap_or_default()),
    ]);
}

/// Joins the figures that have data.
fn joined(figures: [Option<String>; 2]) -> String {
    let there: Vec<String> = figures.into_iter().flatten().collect();
    there.join("; ")
}

fn hints(report: &StatsReport, page: &mut Page) {
    let hints = &report.hints;
    if hints.precision.of == 0 {
        return;
    }
    page.line("");
    page.styled(&[(Style::Strong, "Lessons told")]);
    let Evidence { shown, harmed, .. } = hints.evidence;
    let helped = part(&hints.precision);
    // Most calls of such a session are about something else.
    let helped = helped.map(|share| format!("{share}: a later call followed it and worked"));
    page.field("told", &plural(shown, "time"));
    page.some("helped", helped);
    let harmed = (harmed > 0).then(|| format!("{harmed}: a later call followed it and failed"));
    page.some("harmed", harmed);
}

fn learning(report: &StatsReport, page: &mut Page) {
    let learnt = &report.learning;
    page.line("");
    page.styled(&[(Style::Strong, "Learned")]);
    let validated = match learnt.validated {
        0 => String::new(),
        count => format!(" ({count} validated)"),
    };
    let counts = [
        plural(learnt.corrections, "correction"),
        plural(learnt.reflexions, "rule") + &validated,
        plural(learnt.procedures, "lesson"),
    ];
    page.field("all", &counts.join(", "));
    page.some("per week", learnt.a_week.map(number));
    let reused = Some(&learnt.reused).filter(|reused| reused.count > 0);
    page.some("used again", reused.and_then(part));
}

fn used(heads: &'static str, all: &[Used], page: &mut Page) {
    if all.is_empty() {
        return;
    }
    page.line("");
    let mut table = Table::new(heads).with_lines(3);
    for used in all.iter().take(8) {
        table.row([
            used.id.clone(),
            used.evidence.shown.to_string(),
            used.evidence.helped.to_string(),
            used.evidence.harmed.to_string(),
            used.text.clone(),
        ]);
    }
    page.table(&table);
}

/// Returns `75 % (3 of 4; 95 %: 30 to 95 %)`; `None` without data.
pub(crate) fn part(part: &Part) -> Option<String> {
    let (share, [low, high]) = (part.share? * 100.0, part.interval?.map(|of| of * 100.0));
    let basis = format!(
        "{} of {}; 95 %: {low:.0} to {high:.0} %",
        part.count, part.of
    );
    Some(format!("{share:.0} % ({basis})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_without_data_is_none() {
        assert_eq!(part(&Part::default()), None);
    }
}
