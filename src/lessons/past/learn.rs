//! Learns the patterns of recovered failures from session files.
//!
//! The session trace is the only source. A known pattern gains one occurrence for each session and
//! step that showed it. A pattern with a tombstone is not learned again. A session without a
//! pattern is only marked as processed.

use std::path::{Path, PathBuf};

use memctl_sessions::{BrokenLine, Format, Session, Step};
use serde::Serialize;
use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use super::of_host::{HostSession, record_host_session};
use super::session_files::{self, SessionFile, microseconds, of_project};
use crate::lessons::failure::redacted;
use crate::lessons::recovery::episodes::{Analysis, Episode, analyse};
use crate::lessons::recovery::pattern::of_episode;
use crate::lessons::storage::patterns::{self, LEARNED, NO_FAILURE, NOTHING, Stored};
use crate::model::{ActionType, ExecutionLog, Origin, Pattern};
use crate::notes::sessions;
use crate::store::files::directory::project_of;
use crate::store::workspace::{Error, Records, Scribe, data, repair_warnings};
use crate::store::{ProcessedFile, Writer, project_of_session, same_project};

/// Minimum length of a call's id that no other session has, in bytes.
const LEAST_ID: usize = 20;

/// Options of [`learn()`].
#[derive(Debug, Clone, Default)]
pub struct LearnOptions {
    /// Session files, and folders to walk.
    pub paths: Vec<PathBuf>,
    /// Format of all files; `None` detects it from their content.
    pub format: Option<Format>,
    /// Writes nothing, and reads unchanged files too.
    pub dry_run: bool,
    /// Session that learns, by id or id prefix, for the execution log; `None` uses `host_session`,
    /// then the session that is read.
    pub session: Option<String>,
    /// Name that the agent host gives the session that just ended; the session becomes a record.
    pub host_session: Option<String>,
    /// Number of rules that the session that just ended was told at calls.
    pub rules_at_calls: usize,
    /// Number of these rules that no later call of the host's session has broken.
    pub rules_heeded: usize,
    /// Learns only from sessions with a call in this directory or below; `None` takes all.
    pub project: Option<String>,
    /// Name of the project here, with its root commit; sessions that began in it get this name.
    pub project_name: Option<String>,
}

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
    /// `procedure_learned`; `No_Failure_Detected`; or `nothing_learned` of failures that nothing repaired.
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
    pub fix: Option<Pattern>,
    /// Reason why the recovery is no pattern: `no_error`, `retry`, `still_fails`, `dangerous` or
    /// `one_off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_fix: Option<&'static str>,
    /// The reason in words: which part of a `one_off` holds only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// Steps from the failure to the recovery.
    pub steps_wasted: usize,
}

impl EpisodeReport {
    /// Reports what was found in the steps of a session file.
    fn of(path: &str, steps: &[Step], episode: &Episode) -> Self {
        let fix = of_episode(episode, steps);
        let failed = steps.get(episode.fail_step);
        let worked = steps.get(episode.success_step);
        Self {
            transcript: path.to_owned(),
            fail_step: episode.fail_step,
            success_step: episode.success_step,
            steps_wasted: episode.success_step - episode.fail_step,
            also_fail_steps: episode.also_fail_steps.clone(),
            fail_native_id: failed.and_then(|step| step.native_id.clone()),
            success_native_id: worked.and_then(|step| step.native_id.clone()),
            tool: failed.map(|step| step.tool.clone()).unwrap_or_default(),
            error_key: redacted(&episode.error_key),
            root_cause: redacted(&episode.error_line),
            no_fix: fix.as_ref().err().map(|none| none.reason),
            why: fix.as_ref().err().map(|none| none.why),
            fix: fix.ok(),
        }
    }
}

/// Progress callback: bytes read so far, and the total.
pub type OnBytes<'a> = &'a mut dyn FnMut(u64, u64);

/// Learns from session files. An unreadable file yields a warning and does not stop the rest.
pub fn learn(
    records: &Records<'_>,
    options: &LearnOptions,
    progress: OnBytes<'_>,
) -> Result<LearnReport, Error> {
    let session = options.session.as_deref();
    let session = session.map(|id| sessions::find(records.store, id));
    let session = session.transpose()?;
    let options = &LearnOptions {
        session: session.map(|session| session.session_id),
        ..options.clone()
    };
    let files = session_files::files(&options.paths)?;
    let total: u64 = files.iter().map(|file| file.size).sum();
    let mut report = LearnReport {
        dry_run: options.dry_run,
        ..LearnReport::default()
    };
    let mut processed = records.store.processed_files();
    let mut done = 0;
    for file in &files {
        let path = file.path.display().to_string();
        if !options.dry_run && processed.contains(&path, file.size, file.mtime) {
            report.unchanged += 1;
        } else if let Some(session) = read(file, options, &mut report) {
            let analysis = analyse(&session.steps, &session.remarks);
            let learned = take(records, &path, &session, &analysis, options, &mut report)?;
            if let Some(name) = &options.host_session {
                let ended = HostSession {
                    name,
                    steps: &session.steps,
                    failures: analysis.failures.len(),
                    rules_at_calls: options.rules_at_calls,
                    rules_heeded: options.rules_heeded,
                    learned,
                };
                record_host_session(records, ended)?;
            }
            if !options.dry_run {
                let processed_file = ProcessedFile {
                    size: file.size,
                    mtime: file.mtime,
                    steps: session.steps.len() as u64,
                };
                processed.insert(path, processed_file);
            }
        }
        done += file.size;
        progress(done, total);
    }
    processed.save();
    report.learned.sort_unstable();
    report.merged.sort_unstable();
    report.merged.dedup();
    let learned = &report.learned;
    report.merged.retain(|id| !learned.contains(id));
    Ok(report)
}

/// Reports a session and stores its patterns. Returns the ids of new and merged records.
fn take(
    records: &Records<'_>,
    path: &str,
    session: &Session,
    analysis: &Analysis,
    options: &LearnOptions,
    report: &mut LearnReport,
) -> Result<Vec<String>, Error> {
    let steps = &session.steps;
    let found = analysis.episodes.iter();
    let found = found.map(|one| EpisodeReport::of(path, steps, one));
    let found: Vec<EpisodeReport> = found.collect();
    let has_pattern = found.iter().any(|episode| episode.fix.is_some());
    let (mut learned, mut merged) = (Vec::new(), Vec::new());
    report.transcripts.push(TranscriptReport {
        path: path.to_owned(),
        format: session.format,
        steps: steps.len(),
        failures: analysis.failures.len(),
        status: match analysis.failures.len() {
            _ if has_pattern => LEARNED,
            0 => NO_FAILURE,
            _ => NOTHING,
        },
        problems: session.broken.clone(),
    });
    if !report.dry_run && has_pattern {
        let mut writer = records.writer()?;
        let workspace = workspace(records.store.directory().parent(), session, options);
        let mut existing = patterns::existing(&writer)?;
        for episode in &found {
            let Some(pattern) = &episode.fix else {
                continue;
            };
            let origin = Origin {
                session: redacted(&session.id),
                workspace: workspace.clone(),
                step: episode.fail_step as u64,
                live: false,
                call: steps
                    .get(episode.fail_step)
                    .map(call_hash)
                    .unwrap_or_default(),
            };
            match patterns::store(&mut writer, &mut existing, pattern, &origin, records.now)? {
                Stored::New(id) => learned.push(id),
                Stored::Again(id) => merged.push(id),
                Stored::Counted(_) => {}
                Stored::Forgotten(_) => report.buried += 1,
            }
        }
        note_learned(records, &mut writer, session, options, &learned, &merged);
        report
            .warnings
            .extend(repair_warnings(writer.take_repairs()));
    }
    report.episodes.extend(found);
    let new = [learned.as_slice(), &merged].concat();
    report.learned.append(&mut learned);
    report.merged.append(&mut merged);
    Ok(new)
}

/// Name of the project that a session began in: the agent may have changed directories since. A session
/// that names no directory counts for the project of the memory.
pub(super) fn workspace(root: Option<&Path>, session: &Session, options: &LearnOptions) -> String {
    let named = redacted(&project_of_session(session.directory()));
    // With the root commit, which the name of a directory lacks.
    let here = options.project_name.as_ref();
    match here.filter(|here| same_project(here, &named)) {
        Some(here) => here.clone(),
        None if named.is_empty() => root.and_then(project_of).unwrap_or_default(),
        None => named,
    }
}

/// Returns the hash of a call, which only a copy of its session shares, also one with new times;
/// empty without a long id and without a time.
fn call_hash(step: &Step) -> String {
    let id = step.native_id.as_deref().unwrap_or_default();
    let time = step.time.as_deref().and_then(microseconds);
    let mark = match time {
        _ if id.len() >= LEAST_ID => id.to_owned(),
        Some(time) => format!("{id}\n{time}"),
        None => return String::new(),
    };
    let text = format!("{mark}\n{}\n{}", step.call_text(), step.output);
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

/// Writes the learned ids to the execution log. A failed log write does not stop learning.
fn note_learned(
    records: &Records<'_>,
    writer: &mut Writer,
    session: &Session,
    options: &LearnOptions,
    learned: &[String],
    merged: &[String],
) {
    if learned.is_empty() && merged.is_empty() {
        return;
    }
    let format = session.format.map_or("session", Format::name);
    let own = format!("{format}/{}", redacted(&session.id));
    let named = options.session.as_ref().or(options.host_session.as_ref());
    let scribe = Scribe::new(records.now, records.random, Some(named.unwrap_or(&own)));
    drop(writer.note_execution_logs(vec![ExecutionLog {
        tool_name: Some("learn".to_owned()),
        output_data: data(&json!({ "learned": learned, "merged": merged })),
        ..scribe.line("learn", ActionType::MemoryWrite)
    }]));
}

/// Reads a session file; `None`, with a count or a warning, if it is unreadable or of no known
/// format, or if no call of it ran in the project.
fn read(file: &SessionFile, options: &LearnOptions, report: &mut LearnReport) -> Option<Session> {
    let (path, format) = (file.path.display(), options.format);
    let problem = match session_files::read(&file.path, format) {
        // A named format is no proof.
        Ok(session) if session.is_empty() && format.is_some() => format!(
            "`{path}` holds no call and no message in the format {}",
            format.map_or("", Format::name)
        ),
        Ok(session) if session.format.is_some() && (file.named || !session.is_empty()) => {
            return of_project(session, &file.path, options.project.as_deref());
        }
        // A folder may hold files of any kind.
        Ok(_) if !file.named => {
            report.skipped += 1;
            return None;
        }
        Ok(_) => format!("`{path}` is no session file of a known format"),
        Err(error) => format!("cannot read `{path}`: {error}"),
    };
    report.warnings.push(problem);
    report.unread += usize::from(file.named);
    None
}
