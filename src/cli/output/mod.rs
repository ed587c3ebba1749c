//! Output for people and programs.
//!
//! A command returns a [`Report`]: data that prints as one JSON document or as a page of text. No
//! other module of the program prints. [`Page`] collects the warnings and the exit code too, so that
//! a report needs nothing but its fields and its page.

mod page;
pub(crate) mod printer;
mod text;

use serde::Serialize;

pub(crate) use crate::cli::output::page::Page;
pub(crate) use crate::cli::output::printer::Printer;
pub(crate) use crate::cli::output::text::{
    Table, change, clean, day, end, ms, plural, product, when,
};
use crate::model::error::UserError;

/// Result of a command.
pub(crate) trait Report: Document {
    /// Adds the text for people to a page, with the exit code: the fields of the document, where a command has
    /// no words of its own. The `warnings` of the document are printed without it.
    fn page(&self, page: &mut Page) {
        page.document(self, &[]);
        if page.is_empty() {
            page.line("Nothing to do.");
        }
    }

    /// Returns the answer that a program reads from standard output; the page then goes to standard
    /// error. `None` if the page is the answer.
    fn answer(&self) -> Option<String> {
        None
    }

    /// Returns `true` if the output contains requested secrets, such as a token or a login URL. All
    /// other output is redacted.
    fn reveals(&self) -> bool {
        false
    }
}

/// Outcome of a command: its report, which is one of several if none is named.
pub(crate) type Done<R = Box<dyn Report>> = Result<R, UserError>;

/// Data that `--json` prints as one document.
pub(crate) trait Document {
    /// Returns the document.
    fn json(&self) -> serde_json::Result<String>;
}

impl<T: Serialize> Document for T {
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// Meaning of a piece of text. Colours follow from it, and are left out where they are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Running text.
    Plain,
    /// A name or a heading.
    Strong,
    /// Less important than the text around it.
    Dim,
    /// Correct or successful.
    Good,
    /// Needs attention.
    Warn,
    /// Wrong or failed.
    Bad,
}

impl Style {
    /// Returns the text with this style's colour.
    pub(crate) fn paint(self, text: &str) -> String {
        let style = console::Style::new().force_styling(true);
        let style = match self {
            Self::Plain => return text.to_owned(),
            Self::Strong => style.bold(),
            Self::Dim => style.dim(),
            Self::Good => style.green(),
            Self::Warn => style.yellow(),
            Self::Bad => style.red(),
        };
        style.apply_to(text).to_string()
    }
}

/// Text that is printed unchanged.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Verbatim {
    /// Whole text.
    pub(crate) text: String,
}

impl Report for Verbatim {
    fn page(&self, page: &mut Page) {
        page.verbatim(&self.text);
    }
}
