//! Learns the patterns of recovered failures from session files.
//!
//! The session trace is the only source. A known pattern gains one occurrence for each session and
//! step that showed it. A pattern with a tombstone is not learned again. A session without a
//! pattern is only marked as processed.

use std::path::{Path, PathBuf};

use memctl_redact::Clean;
use memctl_sessions::Format;
use serde_json::json;

use super::learn_report::{EpisodeReport, LearnReport, TranscriptReport};
use super::session_files::{self, OnStep, SessionFile, SessionTrace, is_below};
use crate::lessons::recovery::episodes::{self, Known, Stored, prune};
use crate::lessons::{self, HostSession};
use crate::model::{ActionType, ExecutionLog, Origin};
use crate::notes::sessions;
use crate::store::here::project_of;
use crate::store::workspace::records::{Scribe, data};
use crate::store::workspace::{Error, Records, repair_warnings};
use crate::store::{Source, Writer, same_project};

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
    /// Learns only from sessions with a call in this directory or below; `None` takes all.
    pub project: Option<String>,
    /// Name of the project here, with its root commit; sessions that began in it get this name.
    pub project_name: Option<String>,
}

/// Progress callback: bytes read so far, and the total.
pub type OnBytes<'a> = &'a mut dyn FnMut(u64, u64);

/// Redacts a session text and strips the hints that this program showed the agent. Every text of a
/// session passes here before it is stored or cut.
pub(crate) fn clean(text: &str) -> Clean<'static> {
    Clean::of_owned(memctl_redact::strip_fenced(text).into_owned())
}

/// Redacts a session text, uncut.
pub(crate) fn redacted(text: &str) -> String {
    clean(text).into_string()
}

/// Learns from session files. An unreadable file yields a warning and does not stop the rest.
pub fn learn(
    records: &Records<'_>,
    options: &LearnOptions,
    progress: OnBytes<'_>,
) -> Result<LearnReport, Error> {
    let session = options.session.as_deref();
    let session = session
        .map(|id| sessions::find(records.store, id))
        .transpose()?;
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
    let mut sources = records.store.sources();
    let mut done = 0;
    for file in &files {
        let path = file.path.display().to_string();
        if !options.dry_run && sources.knows(&path, file.size, file.mtime) {
            report.unchanged += 1;
        } else if let Some(session) = read_of_project(file, options, &mut report, &mut |at| {
            progress((done + at).min(total), total);
        }) {
            let mut session = session;
            for found in &mut session.found {
                // With the root commit, which the name of a directory lacks.
                if let Some(name) = &options.project_name
                    && same_project(name, &found.workspace)
                {
                    found.workspace.clone_from(name);
                }
            }
            let steps = session.steps as u64;
            let ended = options.host_session.as_deref().map(|name| HostSession {
                name,
                steps: session.steps,
                failures: session.failures,
                rules_at_calls: options.rules_at_calls,
                tokens: session.tokens,
                began: session.began,
                ended: session.ended,
                learned: Vec::new(),
            });
            let learned = take(records, &path, session, options, &mut report)?;
            if let Some(ended) = ended {
                lessons::record_host_session(records, HostSession { learned, ..ended })?;
            }
            if !options.dry_run {
                let source = Source {
                    size: file.size,
                    mtime: file.mtime,
                    steps,
                };
                sources.insert(path, source);
            }
        }
        done += file.size;
        progress(done, total);
    }
    sources.save();
    report.learned.sort_unstable();
    report.merged.sort_unstable();
    report.merged.dedup();
    let learned = &report.learned;
    report.merged.retain(|id| !learned.contains(id));
    Ok(report)
}

/// Reports a session and stores its lessons. Returns the ids of new and merged records.
fn take(
    records: &Records<'_>,
    path: &str,
    session: SessionTrace,
    options: &LearnOptions,
    report: &mut LearnReport,
) -> Result<Vec<String>, Error> {
    let learned = session.found.iter().any(|found| found.pattern.is_ok());
    let before = (report.learned.len(), report.merged.len());
    report.transcripts.push(TranscriptReport {
        path: path.to_owned(),
        format: session.format,
        steps: session.steps,
        failures: session.failures,
        status: if learned {
            episodes::LEARNED
        } else {
            episodes::NOTHING
        },
        problems: session.broken,
    });
    let name = Path::new(path)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let session_id = session.id.or(name).unwrap_or_default();
    if !report.dry_run && learned {
        let mut writer = records.writer()?;
        // Read once: nothing is removed while the lock is held.
        let mut known = Known::read(&writer)?;
        let mut stored = Stored::default();
        // A session that names no directory counts for the project of the memory.
        let root = records.store.directory().parent();
        let own = root.and_then(project_of).unwrap_or_default();
        for found in &session.found {
            let workspace = match found.workspace.as_str() {
                "" => &own,
                workspace => workspace,
            };
            let origin = Origin {
                session: redacted(&session_id),
                workspace: workspace.to_owned(),
                step: found.episode.fail_step as u64,
                live: false,
                call: found.call.clone(),
            };
            if let Ok(pattern) = &found.pattern {
                episodes::store(
                    &mut writer, &mut known, pattern, origin, records.now, &mut stored,
                )?;
            }
        }
        known.write_counts(&mut writer, &records.timestamp())?;
        prune(&mut writer, &known, records.now)?;
        report.learned.extend(stored.learned);
        report.merged.extend(stored.merged);
        report.buried += stored.forgotten;
        note_learned(
            records,
            &mut writer,
            (&session_id, session.format),
            options,
            (&report.learned[before.0..], &report.merged[before.1..]),
        );
        report
            .warnings
            .extend(repair_warnings(writer.take_repairs()));
    }
    report.episodes.extend(
        session
            .found
            .into_iter()
            .map(|found| EpisodeReport::of(path, found)),
    );
    let new = report.learned[before.0..].iter();
    Ok(new.chain(&report.merged[before.1..]).cloned().collect())
}

/// Writes the learned ids to the execution log. A failed log write does not stop learning.
fn note_learned(
    records: &Records<'_>,
    writer: &mut Writer,
    (session, format): (&str, Option<Format>),
    options: &LearnOptions,
    (learned, merged): (&[String], &[String]),
) {
    if learned.is_empty() && merged.is_empty() {
        return;
    }
    let own = || {
        format!(
            "{}/{}",
            format.map_or("session", Format::name),
            redacted(session)
        )
    };
    let named = options
        .session
        .clone()
        .or_else(|| options.host_session.clone());
    let scribe = Scribe::new(
        records.now,
        records.random,
        Some(&named.unwrap_or_else(own)),
    );
    drop(writer.note_execution_logs(vec![ExecutionLog {
        tool_name: Some("learn".to_owned()),
        output_data: data(&json!({ "learned": learned, "merged": merged })),
        ..scribe.line("learn", ActionType::MemoryWrite)
    }]));
}

/// Reads a session file; `None` if the session has no call in the project.
fn read_of_project(
    file: &SessionFile,
    options: &LearnOptions,
    report: &mut LearnReport,
    on_bytes: &mut dyn FnMut(u64),
) -> Option<SessionTrace> {
    let project = options.project.as_deref();
    // A history inside the project names no directory.
    let path = file.path.to_string_lossy();
    let mut is_here = project.is_none_or(|project| is_below(&path, project));
    let warned = report.warnings.len();
    let session = read(
        file,
        options.format,
        (&mut report.skipped, &mut report.warnings),
        &mut |step, _| {
            is_here |= step
                .cwd
                .as_deref()
                .zip(project)
                .is_some_and(|(cwd, project)| is_below(cwd, project));
        },
        on_bytes,
    );
    report.unread += usize::from(file.named && report.warnings.len() > warned);
    session.filter(|_| is_here)
}

/// Reads a session file; `None`, with a count or a warning, if it is unreadable or of no known
/// format.
pub(crate) fn read(
    file: &SessionFile,
    format: Option<Format>,
    (skipped, warnings): (&mut usize, &mut Vec<String>),
    on_step: OnStep<'_>,
    on_bytes: &mut dyn FnMut(u64),
) -> Option<SessionTrace> {
    match session_files::read(&file.path, format, &clean, on_step, on_bytes) {
        // A named format is no proof.
        Ok(session) if session.is_empty() && format.is_some() => warnings.push(format!(
            "`{}` holds no call and no message in the format {}",
            file.path.display(),
            format.map_or("", Format::name)
        )),
        Ok(session) if session.is_empty() && !file.named => *skipped += 1,
        Ok(session) if session.format.is_some() => return Some(session),
        // A folder may hold files of any kind.
        Ok(_) if !file.named => *skipped += 1,
        Ok(_) => warnings.push(format!(
            "`{}` is no session file of a known format",
            file.path.display()
        )),
        Err(error) => warnings.push(format!("cannot read `{}`: {error}", file.path.display())),
    }
    None
}
