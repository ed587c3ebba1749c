//! Calls in past sessions on which a check would have fired.
//!
//! Sessions are found and read with the functions of `learn`. Only calls of this project count. A
//! call that a resumed session repeats in its file counts once. Nothing is written.

use std::collections::HashSet;
use std::path::PathBuf;

use serde::Serialize;

use crate::learn::check::Call;
use crate::learn::people::without_people;
use crate::learning::learn::{clean, read};
use crate::learning::session_files::is_below;
use crate::learning::{OnBytes, session_files};
use crate::model::Check;
use crate::transcript::Format;
use crate::workspace::Error;

/// Maximum length of a call in a report, in bytes.
const LONGEST: usize = 300;

/// Input of a dry run.
#[derive(Debug, Clone, Default)]
pub struct DryRunOptions {
    /// Session files, and folders to search for them.
    pub paths: Vec<PathBuf>,
    /// Format of all files; `None` detects it from their content.
    pub format: Option<Format>,
    /// Directory of the project.
    pub project: String,
    /// `true` if calls in any directory count: the caller named the files.
    pub anywhere: bool,
}

/// Result of a dry run.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct DryRunReport {
    /// Number of sessions with calls in this project.
    pub sessions: usize,
    /// Number of calls in them.
    pub calls: usize,
    /// Calls on which the check would have fired, in the order of the files.
    pub fired: Vec<FiredCall>,
    /// Files that could not be read.
    pub warnings: Vec<String>,
}

/// Call on which a check would have fired.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FiredCall {
    /// Path of the session file.
    pub transcript: String,
    /// Ordinal of the call, from 0.
    pub step: usize,
    /// Name of the tool.
    pub tool: String,
    /// Command or input, redacted and cut.
    pub call: String,
    /// `true` if the call failed.
    pub failed: bool,
}

/// Replays session files. A file that cannot be read becomes a warning.
pub fn dry_run(
    check: &Check,
    options: &DryRunOptions,
    progress: OnBytes<'_>,
) -> Result<DryRunReport, Error> {
    let files = session_files::files(&options.paths)?;
    let total: u64 = files.iter().map(|file| file.size).sum();
    let mut report = DryRunReport::default();
    let (mut done, mut skipped) = (0, 0);
    let mut seen = HashSet::new();
    let is_here = |cwd: Option<&str>| {
        options.anywhere || cwd.is_some_and(|cwd| is_below(cwd, &options.project))
    };
    for file in &files {
        let path = file.path.display().to_string();
        let before = report.calls;
        let DryRunReport {
            calls,
            fired,
            warnings,
            ..
        } = &mut report;
        read(
            file,
            options.format,
            (&mut skipped, warnings),
            &mut |step, failed| {
                let native = step.native_id.clone();
                if !is_here(step.cwd.as_deref()) || native.is_some_and(|id| !seen.insert(id)) {
                    return;
                }
                *calls += 1;
                if Call::of(step, options.project.trim_end_matches('/')).matches(check) {
                    let call = step.call_text();
                    fired.push(FiredCall {
                        transcript: path.clone(),
                        step: step.index,
                        tool: clean(&step.tool).into_string(),
                        call: clean(&without_people(&call)).cut(LONGEST),
                        failed,
                    });
                }
            },
            &mut |at| progress((done + at).min(total), total),
        );
        report.sessions += usize::from(report.calls > before);
        done += file.size;
        progress(done, total);
    }
    Ok(report)
}
