//! Single point of access to standard output and standard error.

use std::borrow::Cow;
use std::io;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use memctl_files::json::compact;
use serde::de::IgnoredAny;

use crate::cli::output::page::Page;
use crate::cli::output::progress::{Line, Work};
use crate::cli::output::text::{clean, escape_json};
use crate::cli::output::{Report, Style};
use crate::model::error::{Kind, UserError};

/// Width of a page without a terminal.
const PIPED_WIDTH: usize = 100;

/// Writer to standard output and standard error, with the output options.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    json: bool,
    quiet: bool,
    colour: bool,
    width: usize,
    /// Time that the ages on pages are relative to.
    now: DateTime<Utc>,
    /// Reason why standard output could not be written, shared by all copies.
    failure: Arc<OnceLock<String>>,
}

impl Printer {
    /// Reads the width of the terminal. `plain` switches colours off, as does a pipe.
    pub(crate) fn new(json: bool, quiet: bool, plain: bool) -> Self {
        let terminal = console::Term::stdout();
        let is_terminal = io::stdout().is_terminal();
        let columns = terminal
            .size_checked()
            .map(|(_, columns)| usize::from(columns));
        Self {
            json,
            quiet,
            colour: is_terminal && !plain,
            width: columns.filter(|_| is_terminal).unwrap_or(PIPED_WIDTH),
            now: DateTime::UNIX_EPOCH,
            failure: Arc::default(),
        }
    }

    /// Sets the time that the ages on pages are relative to.
    pub(crate) fn at(mut self, now: DateTime<Utc>) -> Self {
        self.now = now;
        self
    }

    /// Returns `true` if the output is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Returns an empty page for this terminal.
    pub(crate) fn page(&self) -> Page {
        Page::new(self.width, self.colour, self.now).quietly(self.quiet)
    }

    /// Prints the result of a command and returns its exit code.
    pub(crate) fn show(&self, report: &dyn Report) -> Result<u8, UserError> {
        let page = self.page_of(report, self.colour);
        for warning in &page.warnings {
            self.warn(warning);
        }
        let exit_code = page.exit_code;
        let text = if self.json {
            redacted(compact(&report.json()?), true, report.reveals()) + "\n"
        } else if let Some(answer) = report.answer() {
            let is_json = serde_json::from_str::<IgnoredAny>(&answer).is_ok();
            clean(&redacted(answer, is_json, report.reveals())) + "\n"
        } else {
            redacted(page.into_text(), false, report.reveals())
        };
        self.write(&text);
        if !self.json && !self.quiet && report.answer().is_some() {
            let has_colour = self.colour && io::stderr().is_terminal();
            let page = self.page_of(report, has_colour);
            eprint(&redacted(page.into_text(), false, report.reveals()));
        }
        Ok(exit_code)
    }

    /// Returns the page of a report.
    fn page_of(&self, report: &dyn Report, colour: bool) -> Page {
        let mut page = Page::new(self.width, colour, self.now).quietly(self.quiet);
        report.page(&mut page);
        page
    }

    /// Writes to standard output. Returns `false` if that failed. A reader that has closed its end
    /// has what it wanted; every other failure is kept for [`Self::failure`].
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

    /// Returns the error of the first write to standard output that failed.
    pub(crate) fn failure(&self) -> Option<UserError> {
        let reason = self.failure.get()?;
        Some(UserError {
            kind: Kind::Io,
            message: format!("cannot write to standard output: {reason}"),
            hint: Some("the command itself is done; nothing stored is lost".to_owned()),
        })
    }

    /// Writes one or more lines to standard output while a command runs.
    pub(crate) fn line(&self, text: &str) -> bool {
        self.write(&redacted(text.to_owned(), self.json, false))
    }

    /// Prints a note to standard error, unless output is quiet.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            eprint(&format!("{}\n", said(text)));
        }
    }

    /// Prints a warning to standard error.
    pub(crate) fn warn(&self, text: &str) {
        let label = self.label(Style::Warn, "warning:");
        eprint(&format!("{label} {}\n", said(text)));
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
        eprint(&format!("{label} {}\n", said(&error.message)));
        if let Some(hint) = &error.hint {
            let label = self.label(Style::Dim, "hint:");
            eprint(&format!("{label} {}\n", said(hint)));
        }
    }

    fn label(&self, style: Style, label: &str) -> String {
        let colour = io::stderr().is_terminal() && (self.colour || !io::stdout().is_terminal());
        if colour && self.width > 0 {
            style.paint(label)
        } else {
            label.to_owned()
        }
    }

    /// Returns a line on standard error about work under way.
    pub(crate) fn work(&self, message: &str) -> Work {
        let is_shown = !self.quiet && io::stderr().is_terminal();
        Work {
            message: message.to_owned(),
            line: is_shown.then(|| Line::begin(message)).flatten(),
        }
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

/// Redacts output unless it reveals secrets on purpose, and escapes JSON for a terminal. Stored records are redacted already, but
/// files of other programs and typed text may not be.
fn redacted(text: String, is_json: bool, reveals: bool) -> String {
    let text = without_secrets(text, is_json, reveals);
    if is_json { escape_json(text) } else { text }
}

fn without_secrets(text: String, is_json: bool, reveals: bool) -> String {
    if reveals {
        return text;
    }
    let cleaned = if is_json {
        memctl_redact::redact_json(&text)
    } else {
        memctl_redact::redact(&text)
    };
    match cleaned.text {
        Cow::Borrowed(_) => text,
        Cow::Owned(cleaned) => cleaned,
    }
}

/// Redacts and sanitizes a message.
fn said(text: &str) -> String {
    clean(&memctl_redact::redact(text).text)
}

fn eprint(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}
