//! `watch`: one line for each execution, hint, lesson and rule, as it comes.
//!
//! File system events trigger each read, whichever program writes. The watch is on the directory, not
//! on the files: a rewrite replaces them, and they may not exist yet. It starts before the first read,
//! so that no change is missed.

pub(crate) mod feed;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use clap::{Args, ValueEnum as _};
use memctl_files::{named, process};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::cli::connections;
use crate::cli::context::Context;
use crate::cli::review::watch::feed::{Feed, What};
use crate::model::SkillPath;
use crate::model::error::{Explain, Explanation, Kind, UserError};
use crate::serve::arguments::TYPED;

/// Show executions, hints, lessons and rules as they happen
///
/// One line for each event, until Ctrl-C. With `--json`, an execution is its record, and other events
/// are named: `{"hint": …}`, `{"lesson": …}` and `{"rule": …}`. Hints and lessons belong to no skill,
/// so `--skill` leaves them out.
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
    /// Maximum number of past events at the start
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(TYPED), value_name = "N")]
    limit: u32,
}

/// Prints a line for each event until interrupted, or until the reader closes the pipe.
pub(crate) fn watch(context: &Context, args: &WatchArgs) -> Result<u8, UserError> {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let workspace = context.workspace(None)?;
    connections::follow(&context.environment, &workspace)?;
    let mut kinds = if args.kinds.is_empty() {
        What::value_variants().to_vec()
    } else {
        args.kinds.clone()
    };
    kinds.retain(|what| skill.is_none() || what.has_skill());
    if kinds.is_empty() {
        return Err(UserError::usage(
            "hints and lessons belong to no skill",
            "memctl watch --kind hints,lessons",
        ));
    }
    let files: Vec<&'static str> = kinds.iter().flat_map(|what| what.files()).collect();
    let mut follower = Follower::new(&context.places.memory, files)?;
    let mut feed = Feed::new(&workspace, skill.as_ref(), kinds);
    let mut next = feed.start(args.limit as usize);
    loop {
        for event in next {
            let line = if context.printer.is_json() {
                event.json()?
            } else {
                let mut page = context.printer.page();
                event.line(&mut page);
                page.into_text()
            };
            if !context.printer.line(&line) {
                return Ok(0);
            }
        }
        match follower.next()? {
            Signal::OtherPath | Signal::File => {}
            Signal::Failed(reason) => context.printer.warn(&reason),
            Signal::Interrupted => return Ok(Kind::Interrupted.code()),
        }
        next = feed.updates();
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
        (Kind::Io, Some(hint.to_owned()))
    }
}
