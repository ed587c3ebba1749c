//! `watch`: executions as they come in.
//!
//! On a terminal a table that redraws in place; piped, a line an execution. The file system says
//! when to look, so that waiting costs nothing; what is seen does not depend on who wrote it.

use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use clap::Args;
use console::Term;
use notify::{RecursiveMode, Watcher as _};

use crate::engine::Engine;
use crate::model::{Execution, Kind, Outcome, SkillPath};
use crate::store::compact;

use super::context::Context;
use super::error::{self, CliError};
use super::output::{Align, Style, Table, plural, when};
use super::run::latency;

/// How often ages are counted anew on a quiet screen.
const TICK: Duration = Duration::from_secs(5);
/// Events that follow each other within this time are one.
const SETTLE: Duration = Duration::from_millis(15);
/// What goes on for longer than this is looked at while it goes on.
const LONGEST_BURST: Duration = Duration::from_millis(100);

/// Show executions as they come in
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl watch\n  memctl watch --skill hr/triage --json | jq .outcome"
)]
pub(super) struct WatchArgs {
    /// Executions of this skill only
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// How many rows, and how many past executions to start with
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    limit: u32,
}

/// What wakes a watcher up.
enum Event {
    Changed,
    Interrupted,
    Failed(String),
}

pub(super) fn watch(context: &Context, args: &WatchArgs) -> Result<u8, CliError> {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let engine = context.engine(None)?;
    let (sender, events) = mpsc::channel();
    interrupts(sender.clone())?;
    let _watcher = follow(&context.places.memory, sender)?;
    let watch = Watch {
        context,
        engine,
        skill,
        limit: args.limit as usize,
    };
    if std::io::stdout().is_terminal() && !context.printer.is_json() {
        watch.table(&events)
    } else {
        watch.lines(&events)
    }
}

/// Turns an interrupt into an event, so that the screen can be left as it was found.
fn interrupts(sender: mpsc::Sender<Event>) -> Result<(), CliError> {
    let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT])?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            drop(sender.send(Event::Interrupted));
        }
    });
    Ok(())
}

/// Has the file system say when the file of executions may have changed. The directory is watched,
/// not the file: that is replaced on a rewrite, and may not exist yet.
fn follow(
    memory: &Path,
    sender: mpsc::Sender<Event>,
) -> Result<notify::RecommendedWatcher, CliError> {
    let mut existing = memory;
    while !existing.is_dir() {
        existing = existing
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
    }
    // Until the memory directory exists, everything below its nearest ancestor may be its birth.
    let mode = if existing == memory {
        RecursiveMode::NonRecursive
    } else {
        RecursiveMode::Recursive
    };
    let file = Kind::Execution.file();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let event = match event {
            Ok(event) if event.kind.is_access() => return,
            Ok(event) if event.need_rescan() => Event::Changed,
            Ok(event) if event.paths.iter().any(|path| path.ends_with(file)) => Event::Changed,
            Ok(_) => return,
            Err(error) => Event::Failed(error.to_string()),
        };
        drop(sender.send(event));
    })?;
    watcher.watch(existing, mode)?;
    Ok(watcher)
}

struct Watch<'a> {
    context: &'a Context,
    engine: Engine,
    skill: Option<SkillPath>,
    limit: usize,
}

impl Watch<'_> {
    /// Redraws a table in place until interrupted.
    fn table(&self, events: &Receiver<Event>) -> Result<u8, CliError> {
        let terminal = Term::stdout();
        let start = Instant::now();
        let mut drawn = 0;
        let mut seen = self.recent();
        terminal.hide_cursor()?;
        let code = loop {
            let frame = self.frame(&terminal, &seen, start.elapsed());
            terminal.clear_last_lines(drawn)?;
            terminal.write_str(&frame)?;
            drawn = frame.lines().count();
            let event = match events.recv_timeout(TICK) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break 0,
            };
            let changed = matches!(event, Event::Changed);
            let event = if changed { settle(events) } else { Some(event) };
            if changed {
                seen = self.recent();
            }
            match event {
                Some(Event::Interrupted) => break error::Kind::Interrupted.code(),
                Some(Event::Failed(reason)) => self.context.printer.warn(&reason),
                Some(Event::Changed) | None => {}
            }
        };
        terminal.show_cursor()?;
        Ok(code)
    }

    /// Prints a line an execution until interrupted, or until nobody reads them any more.
    fn lines(&self, events: &Receiver<Event>) -> Result<u8, CliError> {
        let (mut next, mut total) = self.recent();
        let mut shown: HashSet<String> = HashSet::new();
        loop {
            for execution in next {
                if shown.insert(execution.execution_id.clone())
                    && !self.context.printer.write(&self.one_line(&execution)?)
                {
                    return Ok(0);
                }
            }
            let event = match events.recv() {
                Ok(Event::Changed) => settle(events),
                Ok(event) => Some(event),
                Err(_) => return Ok(0),
            };
            match event {
                Some(Event::Interrupted) => return Ok(error::Kind::Interrupted.code()),
                Some(Event::Failed(reason)) => self.context.printer.warn(&reason),
                Some(Event::Changed) | None => {}
            }
            next = self.news(&shown, &mut total);
        }
    }

    /// The executions behind the last one that was shown, however many they are.
    fn news(&self, shown: &HashSet<String>, total: &mut u64) -> Vec<Execution> {
        let mut limit = self.limit;
        loop {
            let Ok((mut executions, now)) =
                self.engine.recent_executions(self.skill.as_ref(), limit)
            else {
                return Vec::new();
            };
            let torn = self.engine.store.has_problems(Kind::Execution);
            if now == 0 || (now < *total && torn.unwrap_or(true)) {
                // Another program is just writing the file anew: the rest comes with its next event.
                return Vec::new();
            }
            let last = executions
                .iter()
                .rposition(|execution| shown.contains(&execution.execution_id));
            if last.is_none() && limit as u64 <= now && !shown.is_empty() {
                limit *= 2;
                continue;
            }
            *total = now;
            return executions.split_off(last.map_or(0, |last| last + 1));
        }
    }

    /// The newest executions, oldest first, and how many there are. A file that another program is
    /// just writing is looked at again at the next event.
    fn recent(&self) -> (Vec<Execution>, u64) {
        self.engine
            .recent_executions(self.skill.as_ref(), self.limit)
            .unwrap_or_default()
    }

    fn one_line(&self, execution: &Execution) -> Result<String, CliError> {
        if self.context.printer.is_json() {
            return Ok(compact(&serde_json::to_string(execution)?) + "\n");
        }
        let cells = cells(
            execution,
            &execution.timestamp.chars().take(19).collect::<String>(),
        );
        let cells: Vec<String> = cells.into_iter().map(|(_, text)| text).collect();
        let mut page = self.context.printer.page();
        page.line(cells.join("  "));
        Ok(page.into_text())
    }

    fn frame(
        &self,
        terminal: &Term,
        (executions, total): &(Vec<Execution>, u64),
        since: Duration,
    ) -> String {
        let (rows, columns) = terminal.size();
        // Heading, sums, and the line on which the cursor rests.
        let room = usize::from(rows).saturating_sub(4).max(1).min(self.limit);
        let now = self.context.environment.now + since;
        let names = [
            ("ID", Align::Left),
            ("Skill", Align::Left),
            ("Outcome", Align::Left),
            ("Cost", Align::Right),
            ("Latency", Align::Right),
            ("Model", Align::Left),
            ("Age", Align::Right),
        ];
        let mut table = Table::new(&names, &[1, 5, 0]);
        for execution in executions.iter().rev().take(room) {
            table.styled_row(cells(execution, &when(&execution.timestamp, now)));
        }
        // The sum of nothing is a negative zero, which nobody wants to see.
        let cost = executions.iter().filter_map(|e| e.cost_usd).sum::<f64>() + 0.0;
        let known: Vec<f64> = executions.iter().filter_map(|e| e.latency_ms).collect();
        #[expect(clippy::cast_precision_loss, reason = "a screen holds few rows")]
        let mean = known.iter().sum::<f64>() / (known.len().max(1) as f64);
        let sums = format!(
            "{} shown of {total}  |  ${cost:.4}  |  {} on average",
            plural(executions.len() as u64, "execution"),
            latency(mean),
        );
        let colour = self.context.printer.page_has_colour();
        let sums = if colour {
            Style::Dim.paint(&sums)
        } else {
            sums
        };
        let columns = usize::from(columns);
        let frame = format!("{}\n\n{sums}", table.render(columns, colour));
        // A line that wraps would be two lines on the screen, and the next frame would miss one.
        let lines = frame
            .lines()
            .map(|line| console::truncate_str(line, columns, "…") + "\n");
        lines.collect()
    }
}

fn cells(execution: &Execution, time: &str) -> Vec<(Style, String)> {
    let style = match execution.outcome {
        Outcome::Accepted => Style::Good,
        Outcome::Rejected | Outcome::Error => Style::Bad,
        Outcome::PendingReview => Style::Plain,
        Outcome::Other(_) => Style::Warn,
    };
    let model = execution.model_used.rsplit('/').next().unwrap_or_default();
    let unknown = || "–".to_owned();
    vec![
        (Style::Plain, execution.execution_id.clone()),
        (Style::Plain, execution.skill.clone()),
        (style, execution.outcome.as_str().to_owned()),
        (
            Style::Plain,
            execution
                .cost_usd
                .map_or_else(unknown, |cost| format!("${cost:.4}")),
        ),
        (
            Style::Plain,
            execution.latency_ms.map_or_else(unknown, latency),
        ),
        (Style::Dim, model.to_owned()),
        (Style::Dim, time.to_owned()),
    ]
}

/// Waits until a burst of events is over: one write is several of them. Answers what else came.
fn settle(events: &Receiver<Event>) -> Option<Event> {
    let start = Instant::now();
    // In a crowd of writers it is never over.
    while start.elapsed() < LONGEST_BURST {
        match events.recv_timeout(SETTLE) {
            Ok(Event::Changed) => {}
            Ok(other) => return Some(other),
            Err(_) => return None,
        }
    }
    None
}
