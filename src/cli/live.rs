//! Full screen that redraws in place until the user quits, and the changes that it follows.
//!
//! It redraws on changes of files and of its size; in between it only updates ages. The terminal is
//! restored at the end, on errors and on a panic. The watch is on the directory, not on the file: a
//! rewrite replaces the file, and it may not exist yet. Every watch starts before the caller reads,
//! so that no change is missed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use console::Term;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{Clear, ClearType};
use crossterm::{event, execute, queue, terminal};
use memctl_files::{named, process};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::cli::context::Context;
use crate::cli::ending::restore_at_termination;
use crate::model::error;
use crate::model::error::UserError;

/// Interval at which ages are updated on a quiet screen.
const TICK: Duration = Duration::from_secs(5);

/// Content of a live screen.
pub(crate) trait Live {
    /// Reads what may have changed.
    fn look(&mut self);

    /// Returns the text for a screen of `rows` × `columns`, `since` after the start. It has at most
    /// `rows - 1` lines: the cursor rests on the last row.
    fn frame(&self, rows: usize, columns: usize, since: Duration) -> String;
}

/// Redraws in place until the user quits or interrupts.
pub(crate) fn redraw(
    context: &Context,
    follower: &mut Follower,
    screen: &mut dyn Live,
) -> Result<u8, UserError> {
    let mut terminal = Term::stdout();
    let start = Instant::now();
    screen.look();
    restore_at_termination(|| leave(&mut Term::stdout()))?;
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
        draw(&mut terminal, &lines)?;
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

/// Draws lines over the ones before. Clearing each line, not the screen, avoids flicker.
pub(crate) fn draw<L: AsRef<str>>(terminal: &mut Term, lines: &[L]) -> std::io::Result<()> {
    let (rows, _) = terminal.size();
    let mut frame = Vec::new();
    for (row, line) in (0..rows).zip(lines) {
        queue!(frame, MoveTo(0, row), Clear(ClearType::UntilNewLine))?;
        frame.extend_from_slice(line.as_ref().as_bytes());
    }
    if let Some(below) = u16::try_from(lines.len())
        .ok()
        .filter(|below| *below < rows)
    {
        queue!(frame, MoveTo(0, below), Clear(ClearType::FromCursorDown))?;
    }
    terminal.write_all(&frame)?;
    terminal.flush()
}

/// Alternate screen without a cursor, with keys that are not echoed; ends when dropped.
pub(crate) struct FullScreen(Term);

impl FullScreen {
    pub(crate) fn enter(terminal: &Term) -> std::io::Result<Self> {
        let screen = Self(terminal.clone());
        // Without keys the screen still shows, and an interrupt ends it.
        drop(terminal::enable_raw_mode());
        execute!(&screen.0, terminal::EnterAlternateScreen, Hide)?;
        Ok(screen)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        leave(&mut self.0);
    }
}

pub(crate) fn leave(terminal: &mut Term) {
    drop(execute!(terminal, Show, terminal::LeaveAlternateScreen));
    drop(terminal::disable_raw_mode());
}

/// Time within which events count as one: a single write causes several.
const BURST_GAP: Duration = Duration::from_millis(15);
/// Maximum length of a burst: with many writers it never ends.
const LONGEST_BURST: Duration = Duration::from_millis(100);

/// Reason why a wait ended.
pub(crate) enum Event {
    /// A file may have changed.
    Changed,
    /// The time limit passed without a change.
    Nothing,
    /// The user interrupted.
    Interrupted,
    /// The user pressed a key that quits. Only after [`Follower::read_keys`].
    Quit,
    /// The file system cannot report changes any more.
    Failed(String),
}

/// Message of the watching threads.
enum Signal {
    File,
    OtherPath,
    Interrupted,
    Quit,
    Resized,
    Failed(String),
}

/// Watcher of files in a memory directory.
pub(crate) struct Follower {
    watcher: RecommendedWatcher,
    memory: PathBuf,
    watched: Option<PathBuf>,
    sender: Sender<Signal>,
    signals: Receiver<Signal>,
}

impl Follower {
    /// Starts to watch. From now on interrupts are events, so that the caller can restore the
    /// screen.
    pub(crate) fn new(memory: &Path, files: &[&'static str]) -> Result<Self, UserError> {
        let (sender, signals) = mpsc::channel();
        report_interrupts(sender.clone())?;
        let files = files.to_vec();
        let of_watcher = sender.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let is_followed = |path: &PathBuf| files.iter().any(|file| path.ends_with(file));
            let signal = match event {
                Ok(event) if event.kind.is_access() => return,
                Ok(event) if event.need_rescan() => Signal::File,
                Ok(event) if event.paths.iter().any(is_followed) => Signal::File,
                Ok(_) => Signal::OtherPath,
                Err(error) => Signal::Failed(error.to_string()),
            };
            drop(of_watcher.send(signal));
        })?;
        let mut follower = Self {
            watcher,
            memory: memory.to_owned(),
            watched: None,
            sender,
            signals,
        };
        follower.come_nearer()?;
        Ok(follower)
    }

    /// Starts to read keys and changes of the size. The terminal is in raw mode, where Ctrl-C is a
    /// key.
    pub(crate) fn read_keys(&self) {
        let sender = self.sender.clone();
        // Ends with the process, or when the terminal is gone.
        std::thread::spawn(move || {
            while let Ok(event) = event::read() {
                if let Some(signal) = signal_of(&event)
                    && sender.send(signal).is_err()
                {
                    return;
                }
            }
        });
    }

    /// Waits for the next event, without end if there is no limit.
    pub(crate) fn next(&mut self, limit: Option<Duration>) -> Result<Event, UserError> {
        loop {
            let signal = match limit {
                Some(limit) => self.signals.recv_timeout(limit),
                None => self
                    .signals
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
            };
            match signal {
                Ok(Signal::Interrupted) => return Ok(Event::Interrupted),
                Ok(Signal::Quit) => return Ok(Event::Quit),
                Ok(Signal::Failed(reason)) => return Ok(Event::Failed(reason)),
                Ok(Signal::Resized) | Err(RecvTimeoutError::Timeout) => return Ok(Event::Nothing),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(notify::Error::generic("the file watcher has stopped").into());
                }
                Ok(Signal::File) => return Ok(self.finish_burst().unwrap_or(Event::Changed)),
                // A new directory may already hold the file, so a closer watch counts as a change.
                Ok(Signal::OtherPath) if self.come_nearer()? => return Ok(Event::Changed),
                Ok(Signal::OtherPath) => {}
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

    /// Waits until a burst of changes is over. Returns the interrupt or failure that ended it
    /// early.
    fn finish_burst(&self) -> Option<Event> {
        let start = Instant::now();
        while start.elapsed() < LONGEST_BURST {
            match self.signals.recv_timeout(BURST_GAP) {
                Ok(Signal::File | Signal::OtherPath | Signal::Resized) => {}
                Ok(Signal::Interrupted) => return Some(Event::Interrupted),
                Ok(Signal::Quit) => return Some(Event::Quit),
                Ok(Signal::Failed(reason)) => return Some(Event::Failed(reason)),
                Err(_) => return None,
            }
        }
        None
    }
}

/// Meaning of a terminal event; `None` if it has none.
fn signal_of(event: &event::Event) -> Option<Signal> {
    match event {
        event::Event::Resize(..) => Some(Signal::Resized),
        event::Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
            KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                Some(Signal::Interrupted)
            }
            KeyCode::Char('q') | KeyCode::Esc => Some(Signal::Quit),
            _ => None,
        },
        _ => None,
    }
}

fn report_interrupts(sender: Sender<Signal>) -> Result<(), UserError> {
    let report = move || drop(sender.send(Signal::Interrupted));
    Ok(process::at_interrupt(report)?)
}
