//! Session files as arguments, for the commands that read them.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::cli::context::Context;
use crate::cli::learning::hooks::directory;
use crate::cli::output::Page;
use crate::host::Host;
use crate::lessons::OnBytes;
use crate::model::error::UserError;
use memctl_files::named;
use memctl_sessions::Format;

/// Session files and their format.
#[derive(Debug, Args)]
pub(super) struct SessionFiles {
    /// Session files, or folders of them
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Format of the files, if it cannot be detected from the content
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(Format::ALL.map(Format::name)))]
    format: Option<String>,
}

impl SessionFiles {
    fn absolute(&self, context: &Context) -> Vec<PathBuf> {
        let paths = self.paths.iter();
        paths
            .map(|path| context.environment.absolute(path))
            .collect()
    }

    /// Returns the absolute paths. Without any, those in which agent hosts keep the sessions of this
    /// project, with the directory that sessions must have run in.
    pub(super) fn given_or_of_project(
        &self,
        context: &Context,
    ) -> Result<(Vec<PathBuf>, Option<String>), UserError> {
        let paths = self.absolute(context);
        if !paths.is_empty() {
            return Ok((paths, None));
        }
        let project = context.project().display().to_string();
        let found = project_sessions(context);
        if found.is_empty() {
            return Err(UserError::usage(
                format!("no sessions of `{project}` found"),
                "name the files or a folder: memctl learn ~/.claude/projects",
            ));
        }
        Ok((found, Some(project)))
    }

    /// Returns the format; `None` if it is to be detected.
    pub(super) fn format(&self) -> Option<Format> {
        self.format.as_deref().and_then(Format::from_name)
    }
}

/// Folders in which agent hosts keep the sessions of all projects.
pub(crate) fn all_sessions(context: &Context) -> Vec<PathBuf> {
    let folders = [
        (Host::ClaudeCode, "projects"),
        (Host::Codex, "sessions"),
        (Host::Gemini, "tmp"),
        (Host::Cline, "data/sessions"),
    ];
    let all = folders
        .into_iter()
        .filter_map(|(host, folder)| Some(directory(context, host)?.join(folder)));
    all.filter(|path| named::is_dir(path)).collect()
}

/// Folders in which agent hosts keep the sessions of this project. That of Codex holds those of all
/// projects.
pub(crate) fn project_sessions(context: &Context) -> Vec<PathBuf> {
    let project = context.project();
    // Claude Code names the folder after the path of the project.
    let name: String = project
        .display()
        .to_string()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let claude = directory(context, Host::ClaudeCode).map(|dir| dir.join("projects").join(name));
    let codex = directory(context, Host::Codex).map(|dir| dir.join("sessions"));
    let all = claude.into_iter().chain(codex);
    all.filter(|path| named::is_dir(path)).collect()
}

/// Shows a progress bar while session files are read.
pub(crate) fn reading<T>(context: &Context, read: impl FnOnce(OnBytes<'_>) -> T) -> T {
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
    page.note(&place, format!(": {message}"));
}
