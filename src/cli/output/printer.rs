//! Single point of access to standard output and standard error. Work under way is one line on standard error,
//! which is rewritten and disappears at the end. Nothing is written about work without a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use chrono::DateTime;
use console::Term;
use memctl_files::json::compact;
use memctl_llm::Progress;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::cli::config::Environment;
use crate::cli::output::page::Page;
use crate::cli::output::text::{clean, escape_json};
use crate::cli::output::{Report, Style};
use crate::model::error::{Kind, UserError};
use crate::remote::SyncStage;

/// Width of a page without a terminal.
const PIPED_WIDTH: usize = 100;

/// Writer to standard output and standard error, with the output options.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    json: bool,
    is_terminal: bool,
    /// Empty page for this terminal.
    blank: Page,
    /// Reason why standard output could not be written, shared by all copies.
    failure: Arc<OnceLock<String>>,
}

impl Printer {
    /// Reads the width of the terminal. `plain` switches colours off, as does a pipe.
    pub(crate) fn new(json: bool, quiet: bool, plain: bool) -> Self {
        let terminal = Term::stdout();
        let is_terminal = io::stdout().is_terminal();
        let columns = terminal
            .size_checked()
            .map(|(_, columns)| usize::from(columns));
        let width = columns.filter(|_| is_terminal).unwrap_or(PIPED_WIDTH);
        let mut blank = Page::new(width, is_terminal && !plain, DateTime::UNIX_EPOCH);
        blank.quiet = quiet;
        Self {
            json,
            is_terminal,
            blank,
            failure: Arc::default(),
        }
    }

    /// Sets the time that the ages on pages are relative to, and the home directory of the user.
    pub(crate) fn of(mut self, environment: &Environment) -> Self {
        self.blank.now = environment.now;
        let home = environment.home.as_ref();
        self.blank.home = home.map(|home| home.display().to_string());
        self
    }

    /// Returns `true` if the output is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Returns the width of the terminal; `None` through a pipe.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.is_terminal.then_some(self.blank.width)
    }

    /// Returns an empty page for this terminal.
    pub(crate) fn page(&self) -> Page {
        self.blank.clone()
    }

    /// Prints the result of a command and returns its exit code.
    pub(crate) fn show(&self, report: &dyn Report) -> Result<u8, UserError> {
        let document = report.json()?;
        let (answer, reveals) = (report.answer(), report.reveals());
        // The page of an answer goes to standard error.
        let has_colour = answer.is_none() || io::stderr().is_terminal();
        let mut page = self.page();
        page.colour &= has_colour;
        report.page(&mut page);
        let of_document: Warned = serde_json::from_str(&document).unwrap_or_default();
        for warning in of_document.warnings.iter().chain(&page.warnings) {
            self.warn(warning);
        }
        let exit_code = page.exit_code;
        let page = page.into_text();
        if self.json {
            self.write(&(redacted(compact(&document), true, reveals) + "\n"));
        } else if let Some(answer) = answer {
            let is_json = serde_json::from_str::<IgnoredAny>(&answer).is_ok();
            self.write(&(clean(&redacted(answer, is_json, reveals)) + "\n"));
            if !self.blank.quiet {
                eprint(&redacted(page, false, reveals));
            }
        } else {
            self.write(&redacted(page, false, reveals));
        }
        Ok(exit_code)
    }

    /// Writes to standard output. Returns `false` if that failed. A reader that has closed its end
    /// has what it wanted; every other failure is kept for [`Self::written`].
    pub(crate) fn write(&self, text: &str) -> bool {
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        if let Err(error) = &written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            drop(self.failure.set(error.to_string()));
        }
        written.is_ok()
    }

    /// Prints the error of the first write to standard output that failed, and returns its exit code; `None` if all was
    /// written.
    pub(crate) fn written(&self) -> Option<u8> {
        let reason = self.failure.get()?;
        let error = UserError {
            kind: Kind::Io,
            message: format!("cannot write to standard output: {reason}"),
            hint: Some("the command itself is done; nothing stored is lost".to_owned()),
        };
        self.error(&error);
        Some(error.kind.code())
    }

    /// Writes one or more lines to standard output while a command runs.
    pub(crate) fn line(&self, text: &str) -> bool {
        self.write(&redacted(text.to_owned(), self.json, false))
    }

    /// Prints a note to standard error, unless output is quiet.
    pub(crate) fn note(&self, text: &str) {
        if !self.blank.quiet {
            eprint(&format!("{}\n", safe(text)));
        }
    }

    /// Prints a page to standard error, unless output is quiet.
    pub(crate) fn note_page(&self, write: impl FnOnce(&mut Page)) {
        let mut page = self.page();
        write(&mut page);
        self.note(page.into_text().trim_end());
    }

    /// Prints a warning to standard error.
    pub(crate) fn warn(&self, text: &str) {
        let label = self.label(Style::Warn, "warning:");
        eprint(&format!("{label} {}\n", safe(text)));
    }

    /// Prints the error that stopped the command.
    pub(crate) fn error(&self, error: &UserError) {
        // Without standard output, the error has only one way left.
        if self.json && self.failure.get().is_none() {
            let document = error.json().to_string();
            self.write(&(redacted(document, true, false) + "\n"));
            return;
        }
        let label = self.label(Style::Bad, "error:");
        eprint(&format!("{label} {}\n", safe(&error.message)));
        if let Some(hint) = &error.hint {
            let label = self.label(Style::Dim, "hint:");
            eprint(&format!("{label} {}\n", safe(hint)));
        }
    }

    fn label(&self, style: Style, label: &str) -> String {
        let colour =
            io::stderr().is_terminal() && (self.blank.colour || !io::stdout().is_terminal());
        if colour && self.blank.width > 0 {
            style.paint(label)
        } else {
            label.to_owned()
        }
    }

    /// Returns a line on standard error about work under way.
    pub(crate) fn work(&self, message: &str) -> Work {
        Work::begin(message, !self.blank.quiet && io::stderr().is_terminal())
    }

    /// Does work of an unknown size below a line on standard error.
    pub(crate) fn during<T>(&self, message: &str, work: impl FnOnce() -> T) -> T {
        let _work = self.work(message);
        work()
    }

    /// Does work of a known size below a line on standard error. `work` gets the callback for its progress.
    pub(crate) fn counting<T>(
        &self,
        message: &str,
        work: impl FnOnce(&mut (dyn FnMut(usize, usize) + Send)) -> T,
    ) -> T {
        let line = self.work(message);
        work(&mut |done, of| line.reach(done, of))
    }
}

/// Problems that did not stop a command, as its document has them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Warned {
    warnings: Vec<String>,
}

/// Redacts output unless it reveals secrets on purpose, and escapes JSON for a terminal. Stored records are
/// redacted already, but files of other programs and typed text may not be.
fn redacted(text: String, is_json: bool, reveals: bool) -> String {
    let text = match (reveals, is_json) {
        (true, _) => text,
        (false, true) => memctl_redact::redact_json(&text).text.into_owned(),
        (false, false) => memctl_redact::redact(&text).text.into_owned(),
    };
    if is_json { escape_json(text) } else { text }
}

/// Redacts and sanitizes a message.
fn safe(text: &str) -> String {
    clean(&memctl_redact::redact(text).text)
}

fn eprint(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}

/// Time between two drawings.
const EACH: Duration = Duration::from_millis(150);

/// Work under way, as a line that disappears on drop.
#[derive(Debug)]
pub(crate) struct Work {
    message: String,
    /// Time of the last drawing of progress; `None` if nothing is shown.
    drawn: Option<Mutex<Instant>>,
}

impl Work {
    fn begin(message: &str, is_shown: bool) -> Self {
        let work = Self {
            message: message.to_owned(),
            drawn: is_shown.then(|| Mutex::new(Instant::now())),
        };
        work.say(message);
        work
    }

    /// Shows the progress and the total, unless they were shown just now.
    pub(crate) fn reach(&self, done: usize, of: usize) {
        let Some(drawn) = &self.drawn else {
            return;
        };
        let mut drawn = drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.elapsed() >= EACH {
            *drawn = Instant::now();
            self.say(&format!("{} {done}/{of}", self.message));
        }
    }

    /// Shows a message.
    pub(crate) fn say(&self, message: &str) {
        if self.drawn.is_some() {
            drop(draw(&Term::stderr(), message));
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            drop(Term::stderr().clear_line());
        }
    }
}

/// Writes the line over the one before, on one line of the terminal.
fn draw(term: &Term, line: &str) -> io::Result<()> {
    let width = usize::from(term.size().1).saturating_sub(1);
    term.clear_line()?;
    term.write_str(&console::truncate_str(line, width, "…"))
}

/// Returns a callback that shows the progress of an answer on a spinner.
pub(crate) fn follow(work: &Work) -> impl FnMut(Progress<'_>) + Send + use<'_> {
    |progress| match progress {
        Progress::Retry { after, reason } => {
            let after = after.as_secs_f64();
            work.say(&format!("retrying in {after:.1} s: {reason}"));
        }
        Progress::Repair { reason } => work.say(&format!("retrying: {reason}")),
    }
}

/// Returns a callback that shows the stages of a sync.
pub(crate) fn stages(printer: &Printer) -> impl FnMut(SyncStage) + use<> {
    let work = printer.work("connecting");
    move |stage| {
        let (name, done, of) = match stage {
            SyncStage::Compared(done, of) => ("comparing", done, of),
            SyncStage::Pushed(done, of) => ("pushing", done, of),
            SyncStage::Pulled(done, of) => ("pulling", done, of),
            SyncStage::Vectors(done, of) => ("vectors", done, of),
        };
        work.say(&format!("{name} {done}/{of}"));
    }
}
