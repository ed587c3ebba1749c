//! Single point of access to standard output and standard error.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::Report;
use super::page::Page;
use super::style::Style;
use super::text::clean;
use crate::error::UserError;
use crate::guard;
use crate::json::compact;

/// Width of a page without a terminal.
const PIPED_WIDTH: usize = 100;

/// Writer to standard output and standard error, with the output options.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    json: bool,
    quiet: bool,
    colour: bool,
    width: usize,
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
        }
    }

    /// Returns `true` if the output is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Returns `true` if pages have colours.
    pub(crate) fn page_has_colour(&self) -> bool {
        self.colour
    }

    /// Returns an empty page for this terminal.
    pub(crate) fn page(&self) -> Page {
        Page::new(self.width, self.colour)
    }

    /// Prints the result of a command and returns its exit code.
    pub(crate) fn show(&self, report: &dyn Report) -> Result<u8, UserError> {
        for warning in report.warnings() {
            self.warn(warning);
        }
        let text = if self.json {
            redacted(compact(&report.json()?), true, report.reveals()) + "\n"
        } else {
            let mut page = self.page();
            report.page(&mut page);
            redacted(page.into_text(), false, report.reveals())
        };
        self.write(&text);
        Ok(report.exit_code())
    }

    /// Writes to standard output. Returns `false` if the reader has closed it.
    #[expect(clippy::unused_self, reason = "a writer must own a printer")]
    pub(crate) fn write(&self, text: &str) -> bool {
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.is_ok()
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
        if self.json {
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

    /// Returns a progress bar on standard error, for work of a known size.
    pub(crate) fn bar(&self, message: &str) -> Bar {
        if self.quiet || !io::stderr().is_terminal() {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(0).with_message(message.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} ({eta})") {
            bar.set_style(style);
        }
        Bar(bar)
    }

    /// Returns a spinner on standard error, for work of an unknown size.
    pub(crate) fn spinner(&self, message: &str) -> Spinner {
        if self.quiet || !io::stderr().is_terminal() {
            return Spinner(ProgressBar::hidden());
        }
        let bar = ProgressBar::new_spinner().with_message(message.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Spinner(bar)
    }
}

/// Progress bar; disappears on drop.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Sets the progress and the total.
    pub(crate) fn reach(&self, done: usize, of: usize) {
        self.0.set_length(of as u64);
        self.0.set_position(done as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Spinner; disappears on drop.
#[derive(Debug)]
pub(crate) struct Spinner(ProgressBar);

impl Spinner {
    /// Sets the message.
    pub(crate) fn say(&self, message: String) {
        self.0.set_message(message);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Redacts output unless it reveals secrets on purpose. Stored records are redacted already, but
/// files of other programs and typed text may not be.
fn redacted(text: String, is_json: bool, reveals: bool) -> String {
    if reveals {
        return text;
    }
    let cleaned = if is_json {
        guard::redact_json(&text)
    } else {
        guard::redact(&text)
    };
    match cleaned.text {
        Cow::Borrowed(_) => text,
        Cow::Owned(cleaned) => cleaned,
    }
}

/// Redacts and sanitizes a message.
fn said(text: &str) -> String {
    clean(&guard::redact(text).text)
}

fn eprint(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}
