//! Output for installations in agent hosts' settings, of hooks or of the MCP server.

use std::path::Path;

use crate::cli::output::{Page, Style};
use crate::host::InstallationStatus;

/// Prints the change to a settings file.
pub(crate) fn done(page: &mut Page, settings: &Path, installing: bool, changed: bool) {
    let (style, said) = match (installing, changed) {
        (true, true) => (Style::Good, "installed in "),
        (true, false) => (Style::Dim, "already installed in "),
        (false, true) => (Style::Good, "removed from "),
        (false, false) => (Style::Dim, "not installed in "),
    };
    let path = settings.display().to_string();
    page.styled(&[(style, said), (Style::Plain, &path)]);
}

/// Prints the installation status of an agent host. `outdated` is the text for an outdated one.
pub(crate) fn status_line(
    page: &mut Page,
    host: &str,
    status: InstallationStatus,
    outdated: &str,
    settings: &Path,
) {
    let (style, said) = match status {
        InstallationStatus::Installed => (Style::Good, "installed"),
        InstallationStatus::Outdated => (Style::Warn, outdated),
        InstallationStatus::Absent => (Style::Dim, "not installed"),
        InstallationStatus::Broken => (Style::Bad, "settings cannot be read"),
    };
    let name = format!("{host}: ");
    let path = format!(" ({})", settings.display());
    page.styled(&[(Style::Plain, &name), (style, said), (Style::Dim, &path)]);
}

/// Prints notes, one per line.
pub(crate) fn notes(page: &mut Page, said: &str, notes: &[String]) {
    for note in notes {
        page.warn(said, note);
    }
}

/// Prints the reason why an agent host's settings cannot be read.
pub(crate) fn problem(page: &mut Page, problem: Option<&str>) {
    if let Some(problem) = problem {
        page.bad("  error: ", problem);
    }
}
