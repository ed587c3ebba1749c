//! `stats`: benefit of the memory, as a page for a terminal or a browser.
//!
//! A figure without data is left out, never shown as a number.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use memctl_files::named;
use serde::Serialize;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::learn::repeats;
use crate::cli::output::{Done, Page, Report, Style};
use crate::model::error::UserError;
use crate::review::Repeats;
use crate::store::workspace::{Error, redacting_writer};
use crate::upkeep::{self, StatsReport};

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

/// Maximum number of weeks on the page, the newest.
const WEEKS: usize = 12;

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
        redacting_writer::create(&path, &html(&page.into_text()))?;
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

/// Fails for a file that is there and no page.
fn refuse(path: &Path) -> Result<(), UserError> {
    match named::link_metadata(path) {
        Ok(found) if found.is_file() && is_page(path) => return Ok(()),
        Ok(_) => {}
        Err(_) if path.parent().is_some_and(named::is_dir) => return Ok(()),
        Err(_) => return Err(Error::no_parent(path).into()),
    }
    let message = format!("cannot write `{}`: it is no page of memctl", path.display());
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
        let sessions = &report.sessions;
        if sessions.told.sessions + sessions.not_told.sessions > 0 {
            page.section("Sessions of agents, on average", sessions);
        }
        let weeks = &report.weeks[report.weeks.len().saturating_sub(WEEKS)..];
        if weeks.len() > 1 {
            page.section("Weeks", &json!({ "weeks": weeks }));
        }
        if !report.is_empty() {
            if report.executions.total > 0 {
                page.section("Runs", &report.executions);
            }
            if report.hints.precision.of > 0 {
                // Most calls of a session are about something else.
                page.section("Lessons told: a later call followed one", &report.hints);
            }
            page.section("Learned", &report.learning);
            let (rules, lessons) = (&report.rules, &report.lessons);
            page.document(&json!({ "rules": rules, "lessons": lessons }), &[]);
            if !report.at_calls.is_empty() {
                page.dim("what became of rules at calls: memctl list rules");
            }
        }
        if let Some(path) = &self.page {
            page.good("wrote ", path.display().to_string());
        }
    }
}
