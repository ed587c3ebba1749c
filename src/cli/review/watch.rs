//! `watch`: one line for each new execution, hint, note, lesson and rule.
//!
//! File system events trigger each read, whichever program writes. A file that is unreadable, or that another
//! program is rewriting, is read again at its next event. The watch is on the directory, not on the files: a rewrite
//! replaces them, and they may not exist yet. It starts before the first read, so that no change is missed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use clap::{Args, ValueEnum};
use console::truncate_str;
use memctl_files::json::compact;
use memctl_files::{named, process};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cli::context::Context;
use crate::cli::output::{Page, Style, change};
use crate::cli::skills::run::latency;
use crate::model::error::{self, Explain, Explanation, UserError};
use crate::model::{
    Execution, ExecutionLog, Kind, Outcome, Procedure, Record, Reflexion, SkillPath, Trust, utc,
};
use crate::serve::arguments::TYPED;
use crate::store::workspace::{Workspace, document};
use crate::store::{DataFile, Scoped, Selection};

/// Show runs, lessons, rules and what agents are told
///
/// One line for each event as it happens, until Ctrl-C. With `--json`, an execution is its record, and other events
/// are named: `{"hint": …}` at a failing call, `{"told": …}` at a start or before a call,
/// `{"lesson": …}` and `{"rule": …}`. Hints, notes and lessons belong to no skill, so `--skill`
/// leaves them out.
///
/// ```console
/// $ memctl watch
/// $ memctl watch --kind hints,lessons
/// $ memctl watch --skill hr/triage --kind executions --json | jq .outcome
/// ```
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Show only executions and rules of this skill
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// Kinds of events, with commas between them; default: all
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',')]
    kinds: Vec<What>,
    /// Maximum number of past events at the start
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(TYPED), value_name = "N")]
    limit: u32,
}

/// Prints a line for each event until interrupted, or until the reader closes the pipe.
pub(crate) fn watch(context: &Context, args: &WatchArgs) -> Result<u8, UserError> {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let workspace = context.workspace(None)?;
    context.connection.follow(&workspace)?;
    let mut kinds = if args.kinds.is_empty() {
        What::value_variants().to_vec()
    } else {
        args.kinds.clone()
    };
    kinds.retain(|what| skill.is_none() || what.has_skill());
    if kinds.is_empty() {
        return Err(UserError::usage(
            "hints, notes and lessons belong to no skill",
            "memctl watch --kind hints,lessons",
        ));
    }
    let files: Vec<&'static str> = kinds.iter().flat_map(|what| what.files()).collect();
    let mut follower = Follower::new(&context.places.memory, files)?;
    let mut feed = Feed::new(&workspace, skill.as_ref(), kinds);
    let mut next = feed.updates();
    next.drain(..next.len().saturating_sub(args.limit as usize));
    let columns = context.printer.columns();
    loop {
        for event in next {
            let line = if context.printer.is_json() {
                event.json
            } else {
                let mut page = context.printer.page();
                event.line(&mut page, columns);
                page.into_text()
            };
            if !context.printer.line(&line) {
                return Ok(0);
            }
        }
        match follower.next()? {
            Signal::OtherPath | Signal::File => {}
            Signal::Failed(reason) => context.printer.warn(&reason),
            Signal::Interrupted => return Ok(error::Kind::Interrupted.code()),
        }
        next = feed.updates();
    }
}

/// Kind of event; at one time, in the order of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum What {
    /// Executions, as they are recorded
    Executions,
    /// Rules, as they are made or proposed
    Rules,
    /// Lessons, as they are learned
    Lessons,
    /// Hints and notes, as agents get them
    Hints,
}

impl What {
    /// Files that tell of the events: of the records, and for hints and notes the action log.
    fn files(self) -> Vec<&'static str> {
        let kind = match self {
            Self::Executions => Kind::Execution,
            Self::Rules => Kind::Reflexion,
            Self::Lessons => Kind::Procedure,
            Self::Hints => return vec![Scoped::EXECUTION_LOGS],
        };
        DataFile::of(kind).map(DataFile::name).collect()
    }

    /// Returns `true` if the events belong to skills.
    const fn has_skill(self) -> bool {
        matches!(self, Self::Executions | Self::Rules)
    }
}

/// Text of a rule or a lesson on one line.
fn text_of(workspace: &Workspace, id: &str) -> Option<String> {
    let (workspace, id) = workspace.of_id(id).ok()?;
    let entry = workspace.store.find(Kind::of_id(&id)?, &id).ok()??;
    Some(document(&entry)?.summary)
}

/// Newest events of a kind that one read returns. More at once, as of an import, are not shown.
const WINDOW: usize = 1_000;

/// Reader of events.
struct Feed<'a> {
    workspace: &'a Workspace,
    skill: Option<&'a SkillPath>,
    /// Each kind, with the ids that were seen.
    sources: Vec<(What, HashSet<String>)>,
}

impl<'a> Feed<'a> {
    fn new(workspace: &'a Workspace, skill: Option<&'a SkillPath>, mut kinds: Vec<What>) -> Self {
        kinds.sort_unstable();
        kinds.dedup();
        let sources = kinds.into_iter().map(|what| (what, HashSet::new()));
        Self {
            workspace,
            skill,
            sources: sources.collect(),
        }
    }

    /// Returns the events since the last call, by time. Those of one time stay in the order of their file.
    fn updates(&mut self) -> Vec<Event> {
        let mut new = Vec::new();
        for (what, seen) in &mut self.sources {
            // A file that cannot be read now is read at its next event.
            let Some(mut events) = read(self.workspace, self.skill, *what, seen) else {
                continue;
            };
            // Events before a known one are older: they are in the window because another was removed.
            let last = events.iter().rposition(|event| seen.contains(&event.id));
            let after = events.split_off(last.map_or(0, |last| last + 1));
            // No known event is left of a file that is being rewritten, or that others have replaced.
            let is_shown = last.is_some() || seen.is_empty();
            for event in after {
                if seen.insert(event.id.clone()) && is_shown {
                    new.push(event);
                }
            }
        }
        new.sort_by_cached_key(|event| utc(&event.at));
        new
    }
}

/// Returns the newest events of a kind, oldest first; `None` if the file cannot be read. Those that are known
/// need no text.
fn read(
    workspace: &Workspace,
    skill: Option<&SkillPath>,
    what: What,
    known: &HashSet<String>,
) -> Option<Vec<Event>> {
    fn records<R: Record + Into<Event>>(
        workspace: &Workspace,
        skill: Option<&SkillPath>,
    ) -> Option<Vec<Event>> {
        let selection = Selection::newest(skill, WINDOW);
        let found = workspace.store.list::<R>(&selection).ok()?;
        Some(found.records.into_iter().map(Into::into).collect())
    }
    match what {
        What::Executions => records::<Execution>(workspace, skill),
        What::Lessons => records::<Procedure>(workspace, skill),
        What::Rules => records::<Reflexion>(workspace, skill),
        What::Hints => {
            let listing = workspace
                .store
                .logs_of_delivered(WINDOW, &mut |_| true)
                .ok()?;
            let lines = listing.lines.into_iter().map(|line| {
                let is_new = !known.contains(&line.id);
                told(line, &|id| is_new.then(|| text_of(workspace, id))?)
            });
            Some(lines.collect())
        }
    }
}

/// Time within which events count as one: a single write causes several.
const BURST: Duration = Duration::from_millis(15);

/// Message of the watching threads. Of several at once, the last in this order counts.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Signal {
    OtherPath,
    /// A file that is followed may have changed.
    File,
    /// The file system cannot report changes any more.
    Failed(String),
    Interrupted,
}

/// Watcher of files in a memory directory.
struct Follower {
    watcher: RecommendedWatcher,
    memory: PathBuf,
    watched: Option<PathBuf>,
    signals: Receiver<Signal>,
}

impl Follower {
    /// Starts to watch. From now on an interrupt is a signal.
    fn new(memory: &Path, files: Vec<&'static str>) -> Result<Self, UserError> {
        let (sender, signals): (Sender<Signal>, _) = mpsc::channel();
        let of_interrupt = sender.clone();
        process::at_interrupt(move || drop(of_interrupt.send(Signal::Interrupted)))?;
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let is_followed = |path: &PathBuf| files.iter().any(|file| path.ends_with(file));
            let signal = match event {
                Ok(event) if event.kind.is_access() => return,
                Ok(event) if event.need_rescan() => Signal::File,
                Ok(event) if event.paths.iter().any(is_followed) => Signal::File,
                Ok(_) => Signal::OtherPath,
                Err(error) => Signal::Failed(error.to_string()),
            };
            drop(sender.send(signal));
        })?;
        let mut follower = Self {
            watcher,
            memory: memory.to_owned(),
            watched: None,
            signals,
        };
        follower.come_nearer()?;
        Ok(follower)
    }

    /// Waits for the next signal, and for those of the same burst.
    fn next(&mut self) -> Result<Signal, UserError> {
        loop {
            let stopped = |_| notify::Error::generic("the file watcher has stopped");
            let mut signal = self.signals.recv().map_err(stopped)?;
            if signal <= Signal::File {
                std::thread::sleep(BURST);
                signal = self.signals.try_iter().fold(signal, Signal::max);
            }
            // A new directory may already hold the file, so a closer watch counts as a change.
            if self.come_nearer()? || signal != Signal::OtherPath {
                return Ok(signal);
            }
        }
    }

    /// Watches the memory directory, or its nearest existing ancestor. Returns `true` if the watch
    /// moved.
    fn come_nearer(&mut self) -> Result<bool, UserError> {
        let mut moved = false;
        loop {
            let nearest = self.memory.ancestors().find(|path| named::is_dir(path));
            let nearest = nearest.unwrap_or(Path::new(".")).to_owned();
            if self.watched.as_ref() == Some(&nearest) {
                return Ok(moved);
            }
            match self.watcher.watch(&nearest, RecursiveMode::NonRecursive) {
                Ok(()) => {}
                // The directory is gone again; the next round looks for another ancestor.
                Err(_) if !named::is_dir(&nearest) => continue,
                Err(error) => return Err(error.into()),
            }
            if let Some(before) = self.watched.replace(nearest) {
                drop(self.watcher.unwatch(&before));
            }
            moved = true;
        }
    }
}

impl Explain for notify::Error {
    fn explain(&self) -> Explanation {
        let hint = "check the limit of watched files: sysctl fs.inotify";
        (error::Kind::Io, Some(hint.to_owned()))
    }
}

/// Event, as it is printed.
#[derive(Debug)]
struct Event {
    /// Id, unique within its kind.
    id: String,
    /// Time as stored.
    at: String,
    /// Line of JSON.
    json: String,
    /// Its line for a person, before the time.
    text: String,
    style: Style,
}

/// Event that is no execution, as `--json` prints it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Other {
    /// Hints that an agent got at a failing call.
    Hint(Happened),
    /// Rules or lessons that an agent was told at a start or a call.
    Told(Happened),
    /// Lesson or pattern that was learned.
    Lesson(Happened),
    /// Rule that was made from a correction, or proposed.
    Rule(Happened),
}

/// What happened to records.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub(crate) struct Happened {
    /// Time: RFC 3339, UTC.
    at: String,
    /// Id of the record, or of the line of the log.
    id: String,
    /// What happened, in words, such as `told at a start` or `rule proposed`.
    what: &'static str,
    /// Text of the records; of a hint, the error without its variable parts.
    text: String,
    /// Ids of the records.
    records: Vec<String>,
    /// Session of the agent; `None` outside any session, and for records.
    session: Option<String>,
    /// Tool that failed or was about to be called; `None` if unknown, and for records.
    tool: Option<String>,
}

/// Line of JSON with a document.
fn json(document: &impl Serialize) -> String {
    compact(&serde_json::to_string(document).unwrap_or_default()) + "\n"
}

impl Event {
    /// Adds the event to a page as one line, which is cut at the width of a terminal.
    fn line(&self, page: &mut Page, columns: Option<usize>) {
        let at: String = self.at.chars().take(19).collect();
        let text = self.text.lines().next().unwrap_or_default();
        let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(at.len() + 2));
        let text = truncate_str(text, room, "…");
        page.styled(&[(self.style, &text), (Style::Dim, &format!("  {at}"))]);
    }
}

impl From<Execution> for Event {
    fn from(execution: Execution) -> Self {
        let style = match execution.outcome {
            Outcome::Accepted => Style::Good,
            Outcome::Rejected | Outcome::Error => Style::Bad,
            Outcome::PendingReview => Style::Plain,
            Outcome::Other(_) => Style::Warn,
        };
        let model = execution.model_used.rsplit('/').next().unwrap_or_default();
        let unknown = || "–".to_owned();
        let cost = execution.cost_usd.map(|cost| format!("${cost:.4}"));
        let cells = [
            execution.execution_id.as_str(),
            &execution.skill,
            execution.outcome.as_str(),
            &cost.unwrap_or_else(unknown),
            &execution.latency_ms.map_or_else(unknown, latency),
            model,
        ];
        Self {
            json: json(&execution),
            text: cells.join("  "),
            style,
            id: execution.execution_id,
            at: execution.timestamp,
        }
    }
}

impl From<Other> for Event {
    fn from(document: Other) -> Self {
        let json = json(&document);
        let (style, of) = match document {
            Other::Hint(of) | Other::Told(of) => (Style::Warn, of),
            Other::Lesson(of) | Other::Rule(of) => (Style::Good, of),
        };
        Self {
            id: of.id,
            at: of.at,
            json,
            text: [&in_short(&of.records), of.what, &of.text].join("  "),
            style,
        }
    }
}

impl From<Procedure> for Event {
    fn from(procedure: Procedure) -> Self {
        let pattern = procedure.pattern.clone().unwrap_or_default();
        let text = match pattern.working_code.as_str() {
            "" => procedure.summary(),
            working => change(&pattern.failing_code, working, usize::MAX),
        };
        Self::from(Other::Lesson(Happened {
            at: procedure.created_at,
            records: vec![procedure.procedure_id.clone()],
            id: procedure.procedure_id,
            what: "lesson learned",
            text,
            ..Happened::default()
        }))
    }
}

impl From<Reflexion> for Event {
    fn from(rule: Reflexion) -> Self {
        let what = if rule.trust() == Trust::Observed {
            "rule proposed"
        } else {
            "rule made"
        };
        Self::from(Other::Rule(Happened {
            at: rule.created_at,
            records: vec![rule.reflexion_id.clone()],
            id: rule.reflexion_id,
            what,
            text: rule.rule,
            ..Happened::default()
        }))
    }
}

/// Returns few ids as they are, and of many the first with their number: what happened stands behind them.
fn in_short(ids: &[String]) -> String {
    match ids {
        [first, _, _, rest @ ..] => format!("{first} and {} more", rest.len() + 2),
        few => few.join(","),
    }
}

/// Event of a line about what an agent was told. `text_of` returns the text of a record.
fn told(line: ExecutionLog, text_of: &dyn Fn(&str) -> Option<String>) -> Event {
    // Lines of other writers hold anything.
    let field = |data: &Option<Box<RawValue>>, name: &str| -> Value {
        let fields = data.as_ref().map(|data| serde_json::from_str(data.get()));
        let fields: Value = fields.and_then(Result::ok).unwrap_or_default();
        fields[name].clone()
    };
    let ids = |name: &str| -> Vec<String> {
        let ids = field(&line.output_data, name);
        let ids = ids.as_array().into_iter().flatten();
        ids.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let said = |name: &str| {
        let said = field(&line.input_data, name);
        said.as_str().unwrap_or_default().to_owned()
    };
    let is_told = line.step_name == "told";
    let (what, name) = match (is_told, &*said("at")) {
        (false, _) => ("hint shown", "hints"),
        (true, "start") => ("told at a start", "told"),
        (true, _) => ("told at a call", "told"),
    };
    let records = ids(name);
    let text = if is_told {
        let texts: Vec<String> = records.iter().filter_map(|id| text_of(id)).collect();
        texts.join(" · ")
    } else {
        said("error_key")
    };
    let happened = Happened {
        at: line.created_at,
        id: line.id,
        what,
        text,
        records,
        session: line.session_id,
        tool: line.tool_name,
    };
    let event = if is_told { Other::Told } else { Other::Hint };
    Event::from(event(happened))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_of_another_writer_is_a_hint_without_ids() {
        let line = ExecutionLog {
            id: "1".to_owned(),
            ..ExecutionLog::default()
        };
        let event = told(line, &|_| None);
        assert!(event.json.contains("\"records\":[]"), "{event:?}");
    }

    #[test]
    fn a_line_fits_a_terminal_and_keeps_its_time() {
        let rule = Reflexion {
            reflexion_id: "REFL-001".to_owned(),
            created_at: "2026-02-20T12:43:41.681444+00:00".to_owned(),
            rule: "Every score has to name its evidence in the input".to_owned(),
            ..Reflexion::default()
        };
        let event = Event::from(rule);
        let check = |columns, expected: &str| {
            let mut page = Page::new(100, false, chrono::DateTime::UNIX_EPOCH);
            event.line(&mut page, columns);
            assert_eq!(page.into_text().trim_end(), expected);
        };
        let whole = "REFL-001  rule made  Every score has to name its evidence in the input  2026-02-20T12:43:41";
        check(None, whole);
        check(
            Some(52),
            "REFL-001  rule made  Every sco…  2026-02-20T12:43:41",
        );
    }
}
