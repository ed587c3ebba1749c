//! `watch`: live view of executions, hints, lessons and rules.
//!
//! On a terminal, a full screen that redraws in place; through a pipe, one line per event. File
//! system events trigger each read, whichever program writes. A file that cannot be read yet, or that
//! another program is rewriting, is read again at its next event.

pub(crate) mod event;
mod follow;

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use console::Term;
use memctl_files::json::compact;

use crate::cli::connections;
use crate::cli::context::Context;
use crate::cli::ending::restore_at_termination;
use crate::cli::review::watch::event::{Screen, WatchEvent, cells, said};
use crate::cli::review::watch::follow::{Event, Follower};
use crate::cli::screen;
use crate::cli::screen::FullScreen;
use crate::model::error::UserError;
use crate::model::{Execution, Kind, Procedure, Record, Reflexion, SkillPath, error};
use crate::serve::arguments::TYPED;
use crate::store::workspace::Workspace;
use crate::store::{DataFile, Scoped, Selection};

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
    connections::follow(&context.environment, &workspace)?;
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
        redraw(context, &mut follower, &mut Screen::new(context, feed))
    } else {
        lines(context, &mut feed, &mut follower)
    }
}

/// Interval at which ages are updated on a quiet screen.
const TICK: Duration = Duration::from_secs(5);

/// Redraws in place until the user quits or interrupts.
fn redraw(
    context: &Context,
    follower: &mut Follower,
    screen: &mut Screen<'_>,
) -> Result<u8, UserError> {
    let mut terminal = Term::stdout();
    let start = Instant::now();
    screen.look();
    restore_at_termination(|| screen::leave(&mut Term::stdout()))?;
    let full = FullScreen::enter(&terminal)?;
    follower.read_keys();
    let mut warnings = Vec::new();
    let code = loop {
        let (rows, columns) = terminal.size();
        let columns = usize::from(columns);
        let frame = screen.frame(usize::from(rows), columns, start.elapsed());
        let frame = memctl_redact::redact(&frame).text;
        let lines = frame.lines();
        let lines: Vec<_> = lines
            .map(|line| console::truncate_str(line, columns, "…"))
            .collect();
        screen::draw(&mut terminal, &lines)?;
        match follower.next(Some(TICK))? {
            Event::Changed => screen.look(),
            Event::Nothing => {}
            Event::Quit => break 0,
            Event::Interrupted => break error::Kind::Interrupted.code(),
            Event::Failed(reason) => warnings.push(reason),
        }
    };
    drop(full);
    warnings.dedup();
    for reason in warnings {
        context.printer.warn(&reason);
    }
    Ok(code)
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

/// Step of the action log that tells of shown hints.
const HINT_STEP: &str = "hint";

/// Kind of event; at one time, in the order of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub(crate) enum What {
    /// Executions, as they are recorded
    Executions,
    /// Rules, as they are made or proposed
    Rules,
    /// Lessons, as they are learned
    Lessons,
    /// Hints, as agents get them
    Hints,
}

impl What {
    /// Files that tell of the events.
    pub(crate) fn files(self) -> Vec<&'static str> {
        let of_kind = |kind| DataFile::of(kind).map(DataFile::name).collect();
        match self {
            Self::Executions => of_kind(Kind::Execution),
            Self::Hints => vec![Scoped::EXECUTION_LOGS],
            Self::Lessons => of_kind(Kind::Procedure),
            Self::Rules => of_kind(Kind::Reflexion),
        }
    }

    /// Returns `true` if the events belong to skills.
    pub(crate) const fn has_skill(self) -> bool {
        matches!(self, Self::Executions | Self::Rules)
    }
}

/// Reader of events.
pub(crate) struct Feed<'a> {
    workspace: &'a Workspace,
    skill: Option<&'a SkillPath>,
    kinds: Vec<What>,
    limit: usize,
    /// Ids of each kind that were returned, or are older than those at the start.
    known: HashMap<What, HashSet<String>>,
    /// Number of records of each kind at the last read.
    totals: HashMap<What, u64>,
}

/// Events of one kind, oldest first.
struct Read {
    events: Vec<WatchEvent>,
    /// Number of all records; `None` for the log, which is never rewritten.
    total: Option<u64>,
    has_older: bool,
}

impl<'a> Feed<'a> {
    /// Feed of the kinds; hints and lessons belong to no skill, and a skill leaves them out.
    pub(crate) fn new(
        workspace: &'a Workspace,
        skill: Option<&'a SkillPath>,
        mut kinds: Vec<What>,
        limit: usize,
    ) -> Self {
        kinds.retain(|what| skill.is_none() || what.has_skill());
        kinds.sort_unstable();
        kinds.dedup();
        Self {
            workspace,
            skill,
            kinds,
            limit,
            known: HashMap::new(),
            totals: HashMap::new(),
        }
    }

    /// Returns `true` if the feed has events of this kind.
    pub(crate) fn has(&self, what: What) -> bool {
        self.kinds.contains(&what)
    }

    /// Returns the newest events of each kind, oldest first, and the number of all executions.
    pub(crate) fn newest(&self) -> (Vec<WatchEvent>, u64) {
        let (mut newest, mut executions) = (Vec::new(), 0);
        for what in &self.kinds {
            let Some(read) = self.read(*what, self.limit) else {
                continue;
            };
            if *what == What::Executions {
                executions = read.total.unwrap_or_default();
            }
            newest = merge(newest, read.events);
        }
        (newest, executions)
    }

    /// Returns the newest events at the start, oldest first.
    pub(crate) fn start(&mut self) -> Vec<WatchEvent> {
        let events = self.updates();
        let surplus = events.len().saturating_sub(self.limit);
        events.into_iter().skip(surplus).collect()
    }

    /// Returns the events since the last call, in the order of each file and by time between
    /// files.
    pub(crate) fn updates(&mut self) -> Vec<WatchEvent> {
        let kinds = self.kinds.clone();
        let new = kinds.into_iter().map(|what| self.updates_of(what));
        new.reduce(merge).unwrap_or_default()
    }

    fn updates_of(&mut self, what: What) -> Vec<WatchEvent> {
        let mut limit = self.limit;
        loop {
            let Some(mut read) = self.read(what, limit) else {
                return Vec::new();
            };
            if let Some(total) = read.total {
                let before = self.totals.get(&what).copied().unwrap_or_default();
                if total == 0 || (total < before && self.is_torn(what)) {
                    // Another program is rewriting the file; its next event brings the rest.
                    return Vec::new();
                }
            }
            let known = self.known.entry(what).or_default();
            let last = read
                .events
                .iter()
                .rposition(|event| known.contains(event.id()));
            if last.is_none() && read.has_older && !known.is_empty() {
                limit *= 2;
                continue;
            }
            self.totals.extend(read.total.map(|total| (what, total)));
            let mut new = read.events.split_off(last.map_or(0, |last| last + 1));
            new.retain(|event| known.insert(event.id().to_owned()));
            return new;
        }
    }

    fn is_torn(&self, what: What) -> bool {
        let kind = match what {
            What::Executions => Kind::Execution,
            What::Lessons => Kind::Procedure,
            What::Rules => Kind::Reflexion,
            What::Hints => return false,
        };
        let damaged = self.workspace.store.damaged_files(kind);
        damaged.map_or(true, |files| !files.is_empty())
    }

    /// Returns the newest events of a kind; `None` if the file cannot be read.
    fn read(&self, what: What, limit: usize) -> Option<Read> {
        match what {
            What::Executions => self.records::<Execution>(limit),
            What::Lessons => self.records::<Procedure>(limit),
            What::Rules => self.records::<Reflexion>(limit),
            What::Hints => {
                let store = &self.workspace.store;
                let listing = store.logs_of_step(HINT_STEP, limit).ok()?;
                Some(Read {
                    events: listing.lines.into_iter().map(WatchEvent::from).collect(),
                    total: None,
                    has_older: listing.has_older,
                })
            }
        }
    }

    fn records<R: Record + Into<WatchEvent>>(&self, limit: usize) -> Option<Read> {
        let store = &self.workspace.store;
        let selection = Selection {
            skill: self.skill,
            newest: Some(limit),
        };
        let records = store.list::<R>(&selection).ok()?.records;
        let total = store.count(R::KIND).ok()?;
        Some(Read {
            events: records.into_iter().map(Into::into).collect(),
            total: Some(total),
            has_older: limit as u64 <= total,
        })
    }
}

/// Merges two lists by time, and keeps the order of each.
fn merge(first: Vec<WatchEvent>, second: Vec<WatchEvent>) -> Vec<WatchEvent> {
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let mut second = second.into_iter().peekable();
    for event in first {
        let at = event.at();
        while let Some(earlier) = second.next_if(|other| other.at() < at) {
            merged.push(earlier);
        }
        merged.push(event);
    }
    merged.extend(second);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lesson(id: &str, at: &str) -> WatchEvent {
        WatchEvent::from(Procedure {
            procedure_id: id.to_owned(),
            created_at: at.to_owned(),
            ..Procedure::default()
        })
    }

    #[test]
    fn lists_are_merged_by_time_and_keep_their_own_order() {
        let at = |second: u32| format!("2026-02-20T12:43:{second:02}Z");
        let first = vec![
            lesson("a", &at(3)),
            lesson("b", &at(1)),
            lesson("c", &at(5)),
        ];
        let second = vec![
            lesson("x", &at(2)),
            lesson("y", &at(4)),
            lesson("z", &at(9)),
        ];
        let merged = merge(first, second);
        let ids: Vec<&str> = merged.iter().map(WatchEvent::id).collect();
        assert_eq!(ids, ["x", "a", "b", "y", "c", "z"]);
    }
}
