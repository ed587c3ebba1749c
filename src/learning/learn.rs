//! Learns fixes and procedures from the recovered failures in session files.
//!
//! The session trace is the only source. A known pattern gains one occurrence for each session and
//! step that showed it. A pattern with a tombstone is not learned again. A session without a
//! pattern is only marked as processed.
//!
//! A fix and its procedure are two writes, procedure first. If the process ends between them, the
//! next read of the session finds the procedure without a fix and completes the pair.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use crate::guard::{self, Clean};
use crate::learn::distil::{self, FixText, Lesson};
use crate::model::{
    ActionType, BrokenLine, ExecutionLog, Fix, Kind, Origin, Procedure, Record as _,
};
use crate::store::{ForgottenRecords, Selection, Source, Writer};
use crate::transcript::Format;

use super::session_files::{self, Found, OnStep, SessionFile, SessionTrace};
use crate::sessions::{self, HostSession};
use crate::workspace::Error;
use crate::workspace::execution_log_lines::{Scribe, data, raw};
use crate::workspace::{Workspace, repair_warnings};

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
}

/// Outcome of [`learn()`].
#[derive(Debug, Default, Serialize)]
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
    /// Number of patterns skipped because their record was deleted on purpose.
    pub buried: usize,
    /// Number of files unchanged since they were processed.
    pub unchanged: usize,
    /// Number of files in the folders that are not session files.
    pub skipped: usize,
    /// Ids of the procedures that a model put into words.
    pub analysed: Vec<String>,
    /// Cost of the model calls in US dollars; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
    /// `true` if nothing was written.
    pub dry_run: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Result for one session file.
#[derive(Debug, Serialize)]
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
#[derive(Debug, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the definition: docs/transcripts.md lists them"
)]
pub struct EpisodeReport {
    pub transcript: String,
    pub fail_step: usize,
    pub success_step: usize,
    pub also_fail_steps: Vec<usize>,
    pub fail_native_id: Option<String>,
    pub success_native_id: Option<String>,
    pub tool: String,
    pub error_key: String,
    pub root_cause: String,
    pub fix: Option<FixText>,
    pub steps_wasted: usize,
}

/// Progress callback: bytes read so far, and the total.
pub type OnBytes<'a> = &'a mut dyn FnMut(u64, u64);

/// Redacts a session text and strips the hints that this program showed the agent. Every text of a
/// session passes here before it is stored or cut.
pub(crate) fn clean(text: &str) -> Clean<'static> {
    Clean::of_owned(guard::strip_fenced(text).into_owned())
}

/// Redacts a session text, uncut.
pub(crate) fn kept(text: &str) -> String {
    clean(text).into_string()
}

/// Status of a new fix: `quarantined` if a text looks like prompt injection, else `active`.
fn status(lesson: &Lesson) -> &'static str {
    let fix = &lesson.fix;
    let said = [&lesson.error_key, &fix.failing_code, &fix.working_code];
    let suspicious = |text: &&String| guard::admit(text).quarantine.is_some();
    if said.iter().any(suspicious) {
        "quarantined"
    } else {
        "active"
    }
}

/// Learns from session files. An unreadable file yields a warning and does not stop the rest.
pub fn learn(
    workspace: &Workspace,
    options: &LearnOptions,
    progress: OnBytes<'_>,
) -> Result<LearnReport, Error> {
    let session = options.session.as_deref();
    let session = session
        .map(|id| sessions::find(&workspace.store, id))
        .transpose()?;
    let options = &LearnOptions {
        session: session.map(|session| session.session_id),
        ..options.clone()
    };
    let files = session_files::files(&options.paths)?;
    let total: u64 = files.iter().map(|file| file.size).sum();
    let mut report = LearnReport {
        dry_run: options.dry_run,
        cost_usd: Some(0.0),
        ..LearnReport::default()
    };
    let mut sources = workspace.store.sources();
    let mut done = 0;
    for file in &files {
        let path = file.path.display().to_string();
        if !options.dry_run && sources.knows(&path, file.size, file.mtime) {
            report.unchanged += 1;
        } else if let Some(session) = read(
            file,
            options.format,
            (&mut report.skipped, &mut report.warnings),
            &mut |_, _| {},
            &mut |at| progress((done + at).min(total), total),
        ) {
            let steps = session.steps as u64;
            let ended = options.host_session.as_deref().map(|name| HostSession {
                name,
                steps: session.steps,
                failures: session.failures,
                began: session.began,
                ended: session.ended,
                learned: Vec::new(),
            });
            let learned = take(workspace, &path, session, options, &mut report)?;
            if let Some(ended) = ended {
                sessions::record_host_session(workspace, HostSession { learned, ..ended })?;
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
    workspace: &Workspace,
    path: &str,
    session: SessionTrace,
    options: &LearnOptions,
    report: &mut LearnReport,
) -> Result<Vec<String>, Error> {
    let learned = session.found.iter().any(|found| found.lesson.is_some());
    let before = (report.learned.len(), report.merged.len());
    report.transcripts.push(TranscriptReport {
        path: path.to_owned(),
        format: session.format,
        steps: session.steps,
        failures: session.failures,
        status: if learned {
            distil::LEARNED
        } else {
            distil::NOTHING
        },
        problems: session.broken,
    });
    if learned && !report.dry_run {
        let name = Path::new(path)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let session_id = session.id.or(name).unwrap_or_default();
        let mut writer = workspace.writer()?;
        // Read once: nothing is removed while the lock is held.
        let mut known = Known::read(&writer)?;
        for found in &session.found {
            if let Some(lesson) = &found.lesson {
                let origin = Origin {
                    session: kept(&session_id),
                    workspace: found.workspace.clone(),
                    step: found.episode.fail_step as u64,
                };
                store_lesson(workspace, &mut writer, &mut known, lesson, origin, report)?;
            }
        }
        known.write_counts(&mut writer, &workspace.timestamp())?;
        note_learned(
            workspace,
            &mut writer,
            (&session_id, session.format),
            options,
            (&report.learned[before.0..], &report.merged[before.1..]),
        );
        report
            .warnings
            .extend(repair_warnings(writer.take_repairs()));
    }
    report
        .episodes
        .extend(session.found.into_iter().map(|found| episode(path, found)));
    let new = report.learned[before.0..].iter();
    Ok(new.chain(&report.merged[before.1..]).cloned().collect())
}

/// Writes the learned ids to the execution log. A failed log write does not stop learning.
fn note_learned(
    workspace: &Workspace,
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
            kept(session)
        )
    };
    let named = options
        .session
        .clone()
        .or_else(|| options.host_session.clone());
    let scribe = Scribe::new(
        workspace.now,
        workspace.random,
        Some(&named.unwrap_or_else(own)),
    );
    drop(writer.note_execution_logs(vec![ExecutionLog {
        tool_name: Some("learn".to_owned()),
        output_data: data(&json!({ "learned": learned, "merged": merged })),
        ..scribe.line("learn", ActionType::MemoryWrite)
    }]));
}

/// Stores a lesson, or counts up the fix that matches it.
fn store_lesson(
    workspace: &Workspace,
    writer: &mut Writer,
    known: &mut Known,
    lesson: &Lesson,
    origin: Origin,
    report: &mut LearnReport,
) -> Result<(), Error> {
    let seen = workspace.timestamp();
    if let Some(place) = known.same(lesson) {
        let fix = &mut known.fixes[place];
        let is_new = count_up(fix, origin);
        if is_new {
            report.merged.push(fix.fix_id.clone());
        }
        *known.seen.entry(place).or_default() |= is_new;
        return Ok(());
    }
    let mut fix = fix_of(lesson, origin.clone(), &seen);
    if known.buried.has_content(Kind::Fix, &fix.content()) {
        report.buried += 1;
        return Ok(());
    }
    let procedure = Procedure {
        procedure_id: String::new(),
        skill: None,
        created_at: seen.clone(),
        status: distil::LEARNED.to_owned(),
        data: raw(&lesson.procedure)?,
        distilled_by: "offline".to_owned(),
        occurrences: Some(1.0),
        last_seen: seen,
        origins: vec![origin],
        trust: "observed".to_owned(),
    };
    // The procedure of a fix that stays may have been removed alone.
    if !known
        .buried
        .has_content(Kind::Procedure, &procedure.content())
    {
        let id = match known.alone(writer, &procedure)? {
            Some(id) => id,
            None => writer.append(procedure, workspace.now)?.procedure_id,
        };
        fix.procedure_id.clone_from(&id);
        report.learned.push(id);
    }
    let fix = writer.append(fix, workspace.now)?;
    report.learned.push(fix.fix_id.clone());
    known.add(fix);
    Ok(())
}

/// Maximum number of fixes of one error compared for similarity: the newest.
const SIMILAR: usize = 16;

/// Records known when a session is processed.
struct Known {
    fixes: Vec<Fix>,
    /// Indexes into `fixes` by error key and tool, each with its normalised working code.
    of_error: HashMap<(String, String), Vec<(usize, String)>>,
    /// Fixes seen again in this session, and whether to count them up.
    seen: BTreeMap<usize, bool>,
    buried: ForgottenRecords,
    /// Procedures without a fix; read at the first new lesson.
    alone: Option<Vec<Procedure>>,
}

impl Known {
    fn read(writer: &Writer) -> Result<Self, Error> {
        let mut known = Self {
            fixes: Vec::new(),
            of_error: HashMap::new(),
            seen: BTreeMap::new(),
            buried: writer.store().all_forgotten()?,
            alone: None,
        };
        let all = writer.store().list::<Fix>(&Selection::default())?;
        all.records.into_iter().for_each(|fix| known.add(fix));
        Ok(known)
    }

    fn add(&mut self, fix: Fix) {
        let error = (fix.error_key.clone(), fix.tool.clone());
        let one = (self.fixes.len(), plain(&fix.working_code));
        self.of_error.entry(error).or_default().push(one);
        self.fixes.push(fix);
    }

    /// Returns the index of the fix that matches a lesson: equal working code first, then similar.
    /// Only the newest fixes are compared for similarity, so that thousands of failures stay cheap.
    fn same(&self, lesson: &Lesson) -> Option<usize> {
        let error = (lesson.error_key.clone(), lesson.tool.clone());
        let candidates = self.of_error.get(&error)?;
        let wanted = plain(&lesson.fix.working_code);
        let newest = candidates.iter().rev().take(SIMILAR).rev();
        let mut similar = newest.filter(|(_, plain)| is_similar(plain, &wanted));
        let mut equal = candidates.iter().filter(|(_, plain)| *plain == wanted);
        equal
            .next()
            .or_else(|| similar.next())
            .map(|(place, _)| *place)
    }

    /// Counts up the fixes seen again and their procedures, and writes each file once. A procedure
    /// that an interrupted run left behind gets the counts of its fix.
    fn write_counts(&self, writer: &mut Writer, seen: &str) -> Result<(), Error> {
        let counts = |fix: &Fix| -> Result<_, Error> {
            Ok(vec![
                ("occurrences", raw(&fix.occurrences)?),
                ("origins", raw(&fix.origins)?),
                ("last_seen", raw(&seen)?),
            ])
        };
        let (mut fixes, mut procedures) = (Vec::new(), HashMap::new());
        for (place, is_counted) in &self.seen {
            let fix = &self.fixes[*place];
            if *is_counted {
                fixes.push((fix.fix_id.clone(), counts(fix)?));
            }
            procedures.insert(fix.procedure_id.as_str(), fix);
        }
        writer.update_all(Kind::Fix, &fixes)?;
        let mut behind = Vec::new();
        let ids = procedures.keys().copied().collect();
        writer
            .store()
            .each_of(Kind::Procedure, &ids, &mut |entry| {
                let fix = procedures.get(entry.id.as_str());
                let procedure = entry.parse::<Procedure>().ok();
                if let (Some(fix), Some(procedure)) = (fix, procedure)
                    && procedure.origins.len() < fix.origins.len()
                {
                    behind.push((entry.id, *fix));
                }
            })?;
        let behind = behind.into_iter().map(|(id, fix)| Ok((id, counts(fix)?)));
        let behind = behind.collect::<Result<Vec<_>, Error>>()?;
        Ok(writer.update_all(Kind::Procedure, &behind)?)
    }

    /// Takes the procedure that an interrupted run stored without its fix. Returns its id.
    fn alone(&mut self, writer: &Writer, wanted: &Procedure) -> Result<Option<String>, Error> {
        if self.alone.is_none() {
            let used: HashSet<&str> = self.fixes.iter().map(|f| f.procedure_id.as_str()).collect();
            let all = writer.store().list::<Procedure>(&Selection::default())?;
            let mut all = all.records;
            all.retain(|procedure| !used.contains(procedure.procedure_id.as_str()));
            self.alone = Some(all);
        }
        let alone = self.alone.get_or_insert_default();
        let is_wanted = |procedure: &Procedure| {
            procedure.origins == wanted.origins && procedure.content() == wanted.content()
        };
        let found = alone.iter().position(is_wanted);
        Ok(found.map(|at| alone.swap_remove(at).procedure_id))
    }
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

/// Builds the fix of a lesson.
pub(crate) fn fix_of(lesson: &Lesson, origin: Origin, seen: &str) -> Fix {
    Fix {
        created_at: seen.to_owned(),
        error_key: lesson.error_key.clone(),
        failing_code: lesson.fix.failing_code.clone(),
        working_code: lesson.fix.working_code.clone(),
        success_output: lesson.fix.success_output.clone(),
        tool: lesson.tool.clone(),
        occurrences: Some(1.0),
        origins: vec![origin],
        last_seen: seen.to_owned(),
        status: status(lesson).to_owned(),
        trust: "observed".to_owned(),
        ..Fix::default()
    }
}

/// Counts up a fix seen again; returns `false` if this occurrence is already counted.
pub(crate) fn count_up(fix: &mut Fix, origin: Origin) -> bool {
    let again = |o: &Origin| o.session == origin.session && o.step == origin.step;
    if fix.origins.iter().any(again) {
        return false;
    }
    fix.origins.push(origin);
    fix.occurrences = Some(fix.occurrences.unwrap_or(1.0) + 1.0);
    true
}

/// Returns `true` if a lesson matches a fix: same error key and tool, similar working code.
pub(crate) fn is_same(fix: &Fix, lesson: &Lesson) -> bool {
    fix.error_key == lesson.error_key
        && fix.tool == lesson.tool
        && same_way(&fix.working_code, &lesson.fix.working_code)
}

/// Returns `true` if two pieces of working code are similar, ignoring file names and numbers.
pub(crate) fn same_way(a: &str, b: &str) -> bool {
    let (old, new) = (plain(a), plain(b));
    old == new || is_similar(&old, &new)
}

/// Normalises working code: its first 400 characters, without file names and numbers.
fn plain(code: &str) -> String {
    let clipped: String = code.chars().take(400).collect();
    clipped
        .lines()
        .map(crate::learn::error_key::normalised)
        .collect::<Vec<_>>()
        .join("\n")
}

fn is_similar(a: &str, b: &str) -> bool {
    strsim::normalized_levenshtein(a, b) >= 0.8
}

fn episode(path: &str, found: Found) -> EpisodeReport {
    let (root_cause, fix) = match found.lesson {
        Some(lesson) => (lesson.procedure.identified_root_cause, Some(lesson.fix)),
        None => (String::new(), None),
    };
    EpisodeReport {
        transcript: path.to_owned(),
        fail_step: found.episode.fail_step,
        success_step: found.episode.success_step,
        steps_wasted: found.episode.success_step - found.episode.fail_step,
        also_fail_steps: found.episode.also_fail_steps,
        fail_native_id: found.fail_native_id,
        success_native_id: found.success_native_id,
        tool: found.tool,
        error_key: kept(&found.episode.error_key),
        root_cause,
        fix,
    }
}
