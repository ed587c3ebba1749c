//! Session files as arguments, for the commands that read them.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::cli::context::Context;
use crate::cli::output::{Page, Style};
use crate::learning::OnBytes;
use crate::transcript::Format;

/// Session files and their format.
#[derive(Debug, Args)]
pub(super) struct SessionFiles {
    /// Session files, or folders of them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Format of the files, if it cannot be detected from the content
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(Format::ALL.map(Format::name)))]
    format: Option<String>,
}

impl SessionFiles {
    /// Returns the absolute paths.
    pub(super) fn paths(&self, context: &Context) -> Vec<PathBuf> {
        let paths = self.paths.iter();
        paths
            .map(|path| context.environment.absolute(path))
            .collect()
    }

    /// Returns the format; `None` if it is to be detected.
    pub(super) fn format(&self) -> Option<Format> {
        self.format.as_deref().and_then(Format::from_name)
    }
}

/// Shows a progress bar while session files are read.
pub(in crate::cli) fn reading<T>(context: &Context, read: impl FnOnce(OnBytes<'_>) -> T) -> T {
    let bar = context.printer.bar("reading");
    // Progress is counted in kilobytes, because reading takes most of the time.
    read(&mut |done, of| {
        let count = |bytes: u64| usize::try_from(bytes >> 10).unwrap_or(usize::MAX);
        bar.reach(count(done), count(of));
    })
}

/// Prints a line of a session file that could not be read.
pub(super) fn show_problem(page: &mut Page, path: &str, line: u64, message: &str) {
    let place = format!("{path}:{line}");
    page.styled(&[
        (Style::Dim, &place),
        (Style::Plain, &format!(": {message}")),
    ]);
}
