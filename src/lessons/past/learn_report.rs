//! Report of [`learn()`](crate::lessons::learn()).

use serde::Serialize;

use super::learn::redacted;
use super::session_files::Found;
use crate::model::Pattern;
use memctl_sessions::{BrokenLine, Format};

/// Outcome of `learn()`.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct LearnReport {
    /// Session files read, in path order; files that are unchanged since they were processed are
    /// only counted.
    pub transcripts: Vec<TranscriptReport>,
    /// Failures with a recovery.
    pub episodes: Vec<EpisodeReport>,
    /// Ids of new procedures.
    pub learned: Vec<String>,
    /// Ids of known ones that were seen again.
    pub merged: Vec<String>,
    /// Number of patterns skipped because their record was deleted on purpose.
    pub buried: usize,
    /// Number of files unchanged since they were processed.
    pub unchanged: usize,
    /// Number of files in the folders that are not session files.
    pub skipped: usize,
    /// Number of files that the caller named and that are no session files.
    pub unread: usize,
    /// `true` if nothing was written.
    pub dry_run: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Result for one session file.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct TranscriptReport {
    /// Path of the file.
    pub path: String,
    /// Format of the file.
    pub format: Option<Format>,
    /// Number of tool calls.
    pub steps: usize,
    /// Number of tool calls that failed.
    pub failures: usize,
    /// `procedure_learned`, or `No_Failure_Detected`.
    pub status: &'static str,
    /// Lines that could not be read.
    pub problems: Vec<BrokenLine>,
}

/// One failure and its recovery. Steps are ordinals of tool calls, from 0.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct EpisodeReport {
    /// Path of the session file.
    pub transcript: String,
    /// Step of the failure.
    pub fail_step: usize,
    /// Step of the recovery.
    pub success_step: usize,
    /// Failing attempts in between.
    pub also_fail_steps: Vec<usize>,
    /// Id of the failing call at the agent host.
    pub fail_native_id: Option<String>,
    /// Id of the recovery at the agent host.
    pub success_native_id: Option<String>,
    /// Tool of the failing call.
    pub tool: String,
    /// Error line with names, paths and numbers replaced.
    pub error_key: String,
    /// Deciding line of the error.
    pub root_cause: String,
    /// Failing and working call; null if `no_fix` has a reason.
    pub fix: Option<FixText>,
    /// Reason why the recovery is no pattern: `no_error`, `retry`, `still_fails`, `dangerous` or
    /// `one_off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_fix: Option<&'static str>,
    /// Steps from the failure to the recovery.
    pub steps_wasted: usize,
}

impl EpisodeReport {
    /// Reports what was found in a session file.
    pub(crate) fn of(path: &str, found: Found) -> Self {
        let (fix, no_fix) = match found.pattern {
            Ok(pattern) => (Some(FixText::of(pattern)), None),
            Err(none) => (None, Some(none.name())),
        };
        Self {
            transcript: path.to_owned(),
            fail_step: found.episode.fail_step,
            success_step: found.episode.success_step,
            steps_wasted: found.episode.success_step - found.episode.fail_step,
            also_fail_steps: found.episode.also_fail_steps,
            fail_native_id: found.fail_native_id,
            success_native_id: found.success_native_id,
            tool: found.tool,
            error_key: redacted(&found.episode.error_key),
            root_cause: redacted(&found.episode.error_line),
            fix,
            no_fix,
        }
    }
}

/// Calls of a recovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FixText {
    /// Failing call.
    pub failing_code: String,
    /// Working call.
    pub working_code: String,
    /// Output of the working call, cut.
    pub success_output: String,
}

impl FixText {
    fn of(pattern: Pattern) -> Self {
        Self {
            failing_code: pattern.failing_code,
            working_code: pattern.working_code,
            success_output: pattern.success_output,
        }
    }
}
