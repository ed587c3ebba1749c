//! Work under way, as one line on standard error that is written anew and disappears in the end.
//!
//! Nothing is written without a terminal. A thread draws the line, so that the seconds go on while work blocks.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use console::Term;
use memctl_llm::Progress;

use crate::cli::output::printer::Printer;
use crate::remote::SyncStage;

/// Time between two drawings.
const EACH: Duration = Duration::from_millis(150);

/// Line with the seconds since it began; disappears on drop.
#[derive(Debug)]
pub(crate) struct Line {
    text: Arc<Mutex<String>>,
    /// The thread that draws, and what ends it; `None` once it has ended.
    drawn: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Line {
    /// Begins a line. `None` if the system refuses a thread: the work goes on without.
    pub(crate) fn begin(text: &str) -> Option<Self> {
        let text = Arc::new(Mutex::new(text.to_owned()));
        let shown = Arc::clone(&text);
        let (end, ended) = channel();
        let until_the_end = move || {
            let (term, began) = (Term::stderr(), Instant::now());
            let mut is_drawn = false;
            while ended.recv_timeout(EACH) == Err(RecvTimeoutError::Timeout) {
                let text = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
                is_drawn |= draw(&term, &text, began.elapsed().as_secs()).is_ok();
            }
            if is_drawn {
                drop(term.clear_line());
            }
        };
        let thread = std::thread::Builder::new().spawn(until_the_end).ok()?;
        Some(Self {
            text,
            drawn: Some((end, thread)),
        })
    }

    fn say(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

/// Writes the line over the one before, on one line of the terminal.
fn draw(term: &Term, text: &str, seconds: u64) -> io::Result<()> {
    let line = format!("{text} ({seconds} s)");
    let width = usize::from(term.size().1).saturating_sub(1);
    term.clear_line()?;
    term.write_str(&console::truncate_str(&line, width, "…"))
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.drawn.take() {
            drop(end);
            // It has cleared the line, unless it panicked.
            drop(thread.join());
        }
    }
}

/// Work under way; nothing is shown without a line.
#[derive(Debug)]
pub(crate) struct Work {
    pub(super) message: String,
    pub(super) line: Option<Line>,
}

impl Work {
    /// Sets the progress and the total.
    pub(crate) fn reach(&self, done: usize, of: usize) {
        self.say(format!("{} {done}/{of}", self.message));
    }

    /// Sets the message.
    pub(crate) fn say(&self, message: String) {
        if let Some(line) = &self.line {
            line.say(message);
        }
    }
}

/// Returns a callback that shows the progress of an answer on a spinner.
pub(crate) fn follow(work: &Work) -> impl FnMut(Progress<'_>) + Send + use<'_> {
    |progress| match progress {
        Progress::Retry { after, reason } => work.say(format!(
            "retrying in {:.1} s: {reason}",
            after.as_secs_f64()
        )),
        Progress::Repair { reason } => work.say(format!("retrying: {reason}")),
    }
}

/// Returns a callback that shows the stages of a sync, each on a line of its own.
pub(crate) fn stages(printer: &Printer) -> impl FnMut(SyncStage) + use<'_> {
    let mut current: Option<(&'static str, Work)> = None;
    move |stage| {
        let (name, done, of) = match stage {
            SyncStage::Compared(done, of) => ("comparing", done, of),
            SyncStage::Pushed(done, of) => ("pushing", done, of),
            SyncStage::Pulled(done, of) => ("pulling", done, of),
            SyncStage::Vectors(done, of) => ("vectors", done, of),
        };
        // The line of the stage before ends before the new one starts.
        let same = current.take().filter(|(before, _)| *before == name);
        let (_, work) = current.insert(same.unwrap_or_else(|| (name, printer.work(name))));
        let number = |n| usize::try_from(n).unwrap_or(usize::MAX);
        work.reach(number(done), number(of));
    }
}
