//! Output for people and programs.
//!
//! A command returns a [`Report`]: data that prints as one JSON document or as a page of text. No
//! other module of the program prints. [`Page`] collects the warnings and the exit code too, so that
//! a report needs nothing but its fields and its page.

mod change;
mod page;
mod printer;
mod style;
mod table;
mod text;
mod verbatim;

pub(super) use change::change;
pub(super) use page::Page;
pub(super) use printer::{Bar, Printer, Spinner};
pub(super) use style::Style;
pub(super) use table::Table;
pub(super) use text::{clean, end, middle, plural, product, when};
pub(super) use verbatim::Verbatim;

use crate::model::error::UserError;

/// Result of a command.
pub(super) trait Report: Document {
    /// Adds the text for people to a page, with the warnings and the exit code.
    fn page(&self, page: &mut Page);

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

/// Outcome of a command.
pub(super) type Done = Result<Box<dyn Report>, UserError>;

/// Data that `--json` prints as one document.
pub(super) trait Document {
    /// Returns the document.
    fn json(&self) -> serde_json::Result<String>;
}

impl<T: serde::Serialize> Document for T {
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}
