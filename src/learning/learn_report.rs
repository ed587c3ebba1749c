//! Report of [`learn()`](super::learn()).

use serde::Serialize;

use super::learn::redacted;
use super::session_files::Found;
use crate::learn::distil::FixText;
use crate::model::BrokenLine;
use crate::transcript::Format;

/// Outcome of `learn()`.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct LearnReport {
    /// Session files read, in path order; files that are unchanged since they were processed are
    /// only counted.
    pub transcripts: Vec<TranscriptReport>,
    /// Failures with a recovery.
    pub episodes: Vec<EpisodeReport>,
    /// Ids of new fixes and procedures.
    pub learned: Vec<String>,
    /// Ids of known fixes that were seen again.
    pub merged: Vec<String>,
    /// Number of new episodes: recoveries that are no advice, kept for `memory why`.
    pub kept: usize,
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
    /// Cause in the words of the session.
    pub root_cause: String,
    /// Fix; null if `no_fix` has a reason.
    pub fix: Option<FixText>,
    /// Reason why there is no fix: `no_error`, `retry`, `still_fails`, `dangerous`, `one_off`,
    /// `no_project`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_fix: Option<&'static str>,
    /// Calls of a recovery that is no fix, for people.
    #[serde(skip)]
    pub episode: Option<FixText>,
    /// Steps from the failure to the recovery.
    pub steps_wasted: usize,
}

impl EpisodeReport {
    /// Reports what was found in a session file.
    pub(super) fn of(path: &str, found: Found) -> Self {
        let (root_cause, fix, none) = match found.lesson {
            Ok(lesson) => {
                let cause = lesson.procedure.identified_root_cause;
                (cause, Some(lesson.recovery.fix), None)
            }
            Err(none) => (String::new(), None, Some(none)),
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
            root_cause,
            fix,
            no_fix: none.as_ref().map(|none| none.reason.name()),
            episode: none
                .and_then(|none| none.recovery)
                .map(|recovery| recovery.fix),
        }
    }
}
