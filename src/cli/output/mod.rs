//! What is shown to a person or a program.
//!
//! A command answers a [`Report`]: data that knows how it looks. Here it becomes either one JSON
//! document or a page of text, and is written once. Nothing else in the program prints.

mod page;
mod printer;
mod style;
mod table;
mod text;

pub(super) use page::Page;
pub(super) use printer::{Bar, Printer, Spinner};
pub(super) use style::Style;
pub(super) use table::{Align, Table};
pub(super) use text::{clean, end, middle, plural, product, when};

/// The result of a command.
pub(super) trait Report {
    /// The document that `--json` prints.
    fn json(&self) -> Result<String, serde_json::Error>;

    /// The page that a person reads.
    fn page(&self, page: &mut Page);

    /// What went wrong and did not stop the command; goes to standard error.
    fn warnings(&self) -> &[String] {
        &[]
    }

    /// Whether secrets are what the command is asked for, and so are shown: a token, an address to
    /// log in with. Everything else that is shown loses them.
    fn reveals(&self) -> bool {
        false
    }

    /// The exit code of a command that did its work: 1 where a check found something.
    fn exit_code(&self) -> u8 {
        0
    }
}
