//! The only door to standard output and standard error.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::Report;
use super::page::Page;
use super::style::Style;
use super::text::clean;
use crate::cli::error::CliError;
use crate::guard;
use crate::store::compact;

/// The width of a page where there is no terminal to fit.
const PIPED_WIDTH: usize = 100;

/// Knows what is wanted on the two streams.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Printer {
    json: bool,
    quiet: bool,
    colour: bool,
    width: usize,
}

impl Printer {
    /// Looks at the terminal. `plain` switches colours off, as `NO_COLOR` and a pipe do.
    pub(in crate::cli) fn new(json: bool, quiet: bool, plain: bool) -> Self {
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

    /// Whether documents are wanted instead of pages.
    pub(in crate::cli) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether pages have colours.
    pub(in crate::cli) fn page_has_colour(&self) -> bool {
        self.colour
    }

    /// An empty page for this terminal.
    pub(in crate::cli) fn page(&self) -> Page {
        Page::new(self.width, self.colour)
    }

    /// Shows the result of a command and answers its exit code.
    pub(in crate::cli) fn show(&self, report: &dyn Report) -> Result<u8, CliError> {
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

    /// Writes to standard output. A reader that has gone away has seen enough, and `false` says so.
    #[expect(clippy::unused_self, reason = "whoever writes has to hold the printer")]
    pub(in crate::cli) fn write(&self, text: &str) -> bool {
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.is_ok()
    }

    /// Writes a line, or some, to standard output before a command has ended.
    pub(in crate::cli) fn line(&self, text: &str) -> bool {
        self.write(&redacted(text.to_owned(), self.json, false))
    }

    /// Says something on standard error that is neither a result nor a trouble.
    pub(in crate::cli) fn note(&self, text: &str) {
        if !self.quiet {
            eprint(&format!("{}\n", said(text)));
        }
    }

    /// Says on standard error what went wrong and did not stop the command.
    pub(in crate::cli) fn warn(&self, text: &str) {
        let label = self.label(Style::Warn, "warning:");
        eprint(&format!("{label} {}\n", said(text)));
    }

    /// Says what stopped the command.
    pub(in crate::cli) fn error(&self, error: &CliError) {
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

    /// A bar on standard error, for work whose end is known.
    pub(in crate::cli) fn bar(&self, message: &str) -> Bar {
        if self.quiet || !io::stderr().is_terminal() {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(0).with_message(message.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} ({eta})") {
            bar.set_style(style);
        }
        Bar(bar)
    }

    /// A spinner on standard error, for work that may take longer than a moment.
    pub(in crate::cli) fn spinner(&self, message: &str) -> Spinner {
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

/// Shows how much is done, until it is dropped.
#[derive(Debug)]
pub(in crate::cli) struct Bar(ProgressBar);

impl Bar {
    /// Says how much is done, and of how much.
    pub(in crate::cli) fn reach(&self, done: usize, of: usize) {
        self.0.set_length(of as u64);
        self.0.set_position(done as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Shows that something is going on, until it is dropped.
#[derive(Debug)]
pub(in crate::cli) struct Spinner(ProgressBar);

impl Spinner {
    /// Says what is going on now.
    pub(in crate::cli) fn say(&self, message: String) {
        self.0.set_message(message);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// What may be shown of a text or a document. What is stored is clean; files that another program
/// has written, and what somebody has just typed, need not be.
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

/// A message without secrets and without what would steer a terminal.
fn said(text: &str) -> String {
    clean(&guard::redact(text).text)
}

fn eprint(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}
