//! A failing call to find hints for: its error lines and keys, and its command.

pub mod error_key;
pub mod error_line;
pub(crate) mod line_rank;
pub(crate) mod people;
pub(crate) mod plain_output;

use crate::lessons::failure::error_key::normalised;
use crate::lessons::failure::error_line::error_lines;
use crate::lessons::failure::people::without_people;

/// Failure to look up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure<'a> {
    /// Lines that may say the error, most specific first. The first one gives the key.
    pub(crate) lines: Vec<ErrorLine>,
    /// Whole output: redacted, without hints of this program.
    pub(crate) output: String,
    /// Tool of the agent host, if known.
    pub(crate) tool: Option<&'a str>,
    /// Failing command or code, if known.
    pub(crate) code: Option<&'a str>,
}

/// Line of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ErrorLine {
    /// Error key of the line.
    pub(crate) key: String,
    /// The line with its names and numbers.
    pub(crate) text: String,
}

impl<'a> Failure<'a> {
    /// Reads the output of a failing call, whose secrets are redacted already. Hints of this program
    /// in it are ignored. `None` if the output has no error.
    pub(crate) fn of_redacted(
        error: &str,
        tool: Option<&'a str>,
        code: Option<&'a str>,
    ) -> Option<Self> {
        let error = memctl_redact::strip_fenced(error);
        let lines: Vec<ErrorLine> = error_lines(&error)
            .into_iter()
            .map(|text| without_people(&text))
            .map(|text| ErrorLine {
                key: normalised(&text),
                text,
            })
            .filter(|line| !line.key.is_empty())
            .collect();
        (!lines.is_empty()).then_some(Self {
            lines,
            output: error.into_owned(),
            tool,
            code: code.filter(|code| !code.trim().is_empty()),
        })
    }

    /// Error key: that of the most specific line.
    pub(crate) fn key(&self) -> &str {
        self.lines.first().map_or("", |line| &line.key)
    }
}
