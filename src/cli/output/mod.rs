//! Output for people and programs.
//!
//! A command returns a [`Report`], which prints as one JSON document or as a page of text. No other
//! module of the program prints.

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
pub(super) use table::{Align, Table};
pub(super) use text::{clean, end, middle, plural, product, when};
pub(super) use verbatim::Verbatim;

/// Result of a command.
pub(super) trait Report {
    /// Returns the document that `--json` prints.
    fn json(&self) -> Result<String, serde_json::Error>;

    /// Adds the text for people to a page.
    fn page(&self, page: &mut Page);

    /// Returns the answer that a program reads from standard output; the page then goes to standard
    /// error. `None` if the page is the answer.
    fn answer(&self) -> Option<String> {
        None
    }

    /// Returns problems that did not stop the command; they go to standard error.
    fn warnings(&self) -> &[String] {
        &[]
    }

    /// Returns `true` if the output contains requested secrets, such as a token or a login URL. All
    /// other output is redacted.
    fn reveals(&self) -> bool {
        false
    }

    /// Returns the exit code of a completed command: 1 if a check found something.
    fn exit_code(&self) -> u8 {
        0
    }
}
