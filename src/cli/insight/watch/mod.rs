//! `watch`: live view of executions, hints, lessons and rules.
//!
//! On a terminal, a full screen that redraws in place; through a pipe, one line per event. File
//! system events trigger each read, whichever program writes.

mod event;
mod feed;
mod screen;

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum as _};

use crate::cli::context::Context;
use crate::cli::follow::{Event, Follower};
use crate::cli::{live, primary};
use crate::model::SkillPath;
use crate::model::error::{self, UserError};
use crate::serve::arguments::TYPED;
use memctl_files::json::compact;

use event::WatchEvent;
use feed::{Feed, What};
use screen::{Screen, cells, said};

pub(crate) use event::Other;

/// Show executions, hints, lessons and rules as they happen
///
/// On a terminal, a full screen; `q` quits. Through a pipe, one line for each event. With `--json`,
/// an execution is its record, and other events are named: `{"hint": …}`, `{"lesson": …}` and
/// `{"rule": …}`. Hints and lessons belong to no skill, so `--skill` leaves them out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl watch\n  memctl watch --kind hints,lessons\n  \
    memctl watch --skill hr/triage --kind executions --json | jq .outcome")]
pub(crate) struct WatchArgs {
    /// Show only executions and rules of this skill
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// Kinds of events, with commas between them; default: all
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',')]
    kinds: Vec<What>,
    /// Maximum number of rows, and of past events at the start
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(TYPED), value_name = "N")]
    limit: u32,
}

pub(crate) fn watch(context: &Context, args: &WatchArgs) -> Result<u8, UserError> {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let workspace = context.workspace(None)?;
    primary::follow(&context.environment, &workspace)?;
    let kinds = if args.kinds.is_empty() {
        What::value_variants().to_vec()
    } else {
        args.kinds.clone()
    };
    if skill.is_some() && !kinds.iter().any(|what| what.has_skill()) {
        return Err(UserError::usage(
            "hints and lessons belong to no skill",
            "memctl watch --kind hints,lessons",
        ));
    }
    let files: Vec<&'static str> = kinds.iter().flat_map(|what| what.files()).collect();
    let mut follower = Follower::new(&context.places.memory, &files)?;
    let mut feed = Feed::new(&workspace, skill.as_ref(), kinds, args.limit as usize);
    if std::io::stdout().is_terminal() && !context.printer.is_json() {
        live::redraw(context, &mut follower, &mut Screen::new(context, feed))
    } else {
        lines(context, &mut feed, &mut follower)
    }
}

/// Prints one line per event until interrupted, or until the reader closes the pipe.
fn lines(context: &Context, feed: &mut Feed<'_>, follower: &mut Follower) -> Result<u8, UserError> {
    let mut next = feed.start();
    loop {
        for event in next {
            if !context.printer.line(&one_line(context, &event)?) {
                return Ok(0);
            }
        }
        match follower.next(None)? {
            Event::Changed | Event::Nothing => {}
            Event::Quit => return Ok(0),
            Event::Interrupted => return Ok(error::Kind::Interrupted.code()),
            Event::Failed(reason) => context.printer.warn(&reason),
        }
        next = feed.updates();
    }
}

fn one_line(context: &Context, event: &WatchEvent) -> Result<String, UserError> {
    if context.printer.is_json() {
        let document = match event {
            WatchEvent::Execution(execution) => serde_json::to_string(execution)?,
            WatchEvent::Other(other) => serde_json::to_string(other)?,
        };
        return Ok(compact(&document) + "\n");
    }
    let second = |time: &str| time.chars().take(19).collect::<String>();
    let cells: Vec<String> = match event {
        WatchEvent::Execution(execution) => cells(execution, &second(&execution.timestamp))
            .into_iter()
            .map(|(_, text)| text)
            .collect(),
        WatchEvent::Other(other) => {
            let (name, id, text) = said(other, usize::MAX);
            vec![id, name.to_owned(), text, second(other.at())]
        }
    };
    let flat: Vec<&str> = cells.iter().flat_map(|text| text.lines().take(1)).collect();
    let mut page = context.printer.page();
    page.line(flat.join("  "));
    Ok(page.into_text())
}
