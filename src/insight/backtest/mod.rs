//! Replays past sessions to measure what memory would have saved in them.
//!
//! The memory starts empty and is never written to a file. Sessions are read with the functions of
//! `learn`, and their events are sorted by time. Each failing call queries the memory as a hook
//! does, and each recovered failure is learned. A session sees its own fixes at once, as an agent
//! that records them does. Other sessions see them after its end, when `learn` reads the session
//! file. So no fix is known before its time, even if sessions overlap.
//!
//! A replay cannot know whether the agent would have adopted a hint. No hint was shown, so fixes
//! neither gain nor lose evidence here.
//!
//! - `memory`: fixes in memory, as one session sees them.
//! - `history`: failures and recoveries of one session.

mod history;
mod memory;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use serde::Serialize;

use crate::hints::adoption::is_adopted;
use crate::hints::failure::Failure;
use crate::hints::hint::{Hint, MAX_HINTS};
use crate::hints::session_state::SessionNotes;
use crate::learn::distil::{FixText, Lesson};
use crate::learn::fix::people::without_people;
use crate::model::Origin;
use crate::transcript::Format;

use history::{Failed, History, Overcome, What};
use memory::Memory;

use crate::hints::fixes::known;
use crate::learning::learn::{clean, read, redacted};
use crate::learning::lessons::same_way;
use crate::learning::{OnBytes, session_files};
use crate::workspace::Error;

/// Maximum length of a call in a report, in bytes.
const LONGEST: usize = 600;

/// Input of a replay.
#[derive(Debug, Clone, Default)]
pub struct BacktestOptions {
    /// Session files, and folders to search for them.
    pub paths: Vec<PathBuf>,
    /// Format of all files; `None` detects it from their content.
    pub format: Option<Format>,
}

/// Result of a replay.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct BacktestReport {
    /// Number of session files read.
    pub transcripts: usize,
    /// Number of tool calls in them.
    pub steps: usize,
    /// Number of failed calls. A call that a resumed session repeats in its file counts once.
    pub failures: usize,
    /// Number of recovered failures; the retries in between belong to one episode.
    pub episodes: usize,
    /// Failures with an error key that had been recovered from before.
    pub repeated: usize,
    /// Failures at which a hint would have been shown.
    pub hinted: usize,
    /// Hinted failures with a recovery; only these show what worked.
    pub hinted_overcome: usize,
    /// Hinted failures where a hint named what then worked. The working code of the hint and of the
    /// episode are alike by the measure of `learn`, or the successful call follows the hint closely
    /// enough to credit the fix. A hint that repeats the failing call is never right.
    pub hinted_right: usize,
    /// Steps from failure to success, summed over the episodes, as `learn` counts them.
    pub steps_wasted: usize,
    /// Unneeded steps between a rightly hinted failure and its success, without both ends and
    /// without the changes that belong to what worked. An episode counts once.
    pub steps_saved: usize,
    /// Figures by error, highest saving first.
    pub by_error: Vec<ErrorReport>,
    /// Hinted failures in the order of time, with what the agent then did.
    pub shown: Vec<ShownReport>,
    /// Lines that could not be read.
    pub problems: Vec<ProblemReport>,
    /// Number of files in the folders that are not session files.
    pub skipped: usize,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Figures for one error key.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct ErrorReport {
    /// Error key.
    pub error_key: String,
    /// Number of failures with this error.
    pub times: usize,
    /// Number of episodes that began with it.
    pub overcome: usize,
    /// Failures at which a hint would have been shown.
    pub hinted: usize,
    /// Failures at which a hint named what then worked.
    pub hinted_right: usize,
    /// Steps from failure to success, summed over its episodes.
    pub steps_wasted: usize,
    /// Steps that a right hint would have saved.
    pub steps_saved: usize,
    /// Working fix: from the newest episode with a right hint, otherwise from the newest episode.
    pub example: Option<FixText>,
}

/// Failure at which hints would have been shown.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ShownReport {
    /// Path of the session file.
    pub transcript: String,
    /// Ordinal of the failing call, from 0.
    pub step: usize,
    /// Error key.
    pub error_key: String,
    /// Failing call.
    pub call: String,
    /// Hints, best first.
    pub hints: Vec<ShownHint>,
    /// Call that worked in the end; `None` if none did.
    pub worked: Option<String>,
    /// `true` if a hint named what then worked; `None` if nothing did.
    pub right: Option<bool>,
}

/// Hint that would have been shown.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ShownHint {
    /// Failing code.
    pub failing_code: String,
    /// Working code.
    pub working_code: String,
    /// Reason for the match.
    pub why: String,
}

/// Line of a session file that could not be read.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ProblemReport {
    /// Path of the session file.
    pub path: String,
    /// Line number, from 1.
    pub line: u64,
    /// Parse error.
    pub message: String,
}

/// Replays session files. A file that cannot be read becomes a warning; the others still count.
pub fn backtest(options: &BacktestOptions, progress: OnBytes<'_>) -> Result<BacktestReport, Error> {
    let files = session_files::files(&options.paths)?;
    let total: u64 = files.iter().map(|file| file.size).sum();
    let mut report = BacktestReport::default();
    let mut histories = Vec::new();
    let mut seen = HashSet::new();
    let mut done = 0;
    for file in &files {
        let mut reader = history::Reader::default();
        let session = read(
            file,
            options.format,
            (&mut report.skipped, &mut report.warnings),
            &mut |step, failed| reader.step(step, failed),
            &mut |at| progress((done + at).min(total), total),
        );
        if let Some(mut session) = session {
            let path = file.path.display().to_string();
            report.transcripts += 1;
            report.steps += session.steps;
            let broken = std::mem::take(&mut session.broken).into_iter();
            report.problems.extend(broken.map(|problem| ProblemReport {
                path: path.clone(),
                line: problem.line,
                message: problem.message,
            }));
            histories.push(reader.end(session, &path, &mut seen));
        }
        done += file.size;
        progress(done, total);
    }
    Ok(Replay::new(&histories, report).run())
}

/// State of a replay.
struct Replay<'a> {
    histories: &'a [History],
    memory: Memory,
    /// Hints shown so far in each running session.
    notes: HashMap<usize, SessionNotes>,
    errors: BTreeMap<&'a str, ErrorReport>,
    /// Errors whose example comes from an episode with a right hint.
    shown_right: HashSet<&'a str>,
    /// Episodes with a right hint, as (session, episode) numbers.
    right: HashSet<(usize, usize)>,
    report: BacktestReport,
}

impl<'a> Replay<'a> {
    fn new(histories: &'a [History], report: BacktestReport) -> Self {
        Self {
            histories,
            memory: Memory::default(),
            notes: HashMap::new(),
            errors: BTreeMap::new(),
            shown_right: HashSet::new(),
            right: HashSet::new(),
            report,
        }
    }

    fn run(mut self) -> BacktestReport {
        for (session, what) in history::in_time(self.histories) {
            let history = &self.histories[session];
            match what {
                What::Failed(at) => self.failed(session, &history.failures[at]),
                What::Overcome(at) => self.overcome(session, at),
                What::Ended => self.ended(session),
            }
        }
        let mut errors: Vec<ErrorReport> = self.errors.into_values().collect();
        // Key order breaks ties, so that two replays give the same report.
        errors
            .sort_by_key(|e| std::cmp::Reverse((e.steps_saved, e.hinted, e.steps_wasted, e.times)));
        self.report.by_error = errors;
        self.report
    }

    fn error(&mut self, key: &'a str) -> &mut ErrorReport {
        let error = self.errors.entry(key).or_default();
        if error.error_key.is_empty() {
            key.clone_into(&mut error.error_key);
        }
        error
    }

    /// Queries the memory at a failing call.
    fn failed(&mut self, session: usize, failed: &'a Failed) {
        self.report.failures += 1;
        let Some(key) = failed.key() else {
            return;
        };
        let seen = self.memory.seen_by(session);
        let repeated = seen.has(key);
        let notes = self.notes.entry(session).or_default();
        // Outcomes of earlier hints are dropped: nobody has seen those hints.
        drop(notes.failed(key, "", &failed.code, None));
        let failure = Failure {
            lines: failed.lines.clone(),
            code: Some(&failed.code),
            project: failed.project.as_deref(),
        };
        let hints = known(&seen, &failure, &notes.withheld(), MAX_HINTS);
        notes.showed(key, &hints);
        self.report.repeated += usize::from(repeated);
        let hinted = !hints.is_empty();
        self.report.hinted += usize::from(hinted);
        let error = self.error(key);
        error.times += 1;
        error.hinted += usize::from(hinted);
        if !hinted {
            return;
        }
        let history = &self.histories[session];
        let episode = failed.episode.map(|n| (n, &history.episodes[n]));
        let overcome = episode.map(|(_, overcome)| overcome);
        let right = overcome.map(|overcome| hints.iter().any(|hint| is_right(hint, overcome)));
        self.report.shown.push(ShownReport {
            transcript: history.path.clone(),
            step: failed.step,
            error_key: redacted(key),
            call: said(&failed.code),
            hints: hints.into_iter().map(ShownHint::of).collect(),
            worked: overcome.map(|overcome| said(&overcome.success_code)),
            right,
        });
        let Some((episode, overcome)) = episode else {
            return;
        };
        self.report.hinted_overcome += 1;
        if right != Some(true) {
            return;
        }
        self.report.hinted_right += 1;
        self.error(key).hinted_right += 1;
        if self.right.insert((session, episode)) {
            let saved = overcome.needless_after(failed.step);
            self.report.steps_saved += saved;
            self.error(&overcome.error_key).steps_saved += saved;
        }
    }

    /// Learns from a recovery, visible to its own session only.
    fn overcome(&mut self, session: usize, episode: usize) {
        let overcome = &self.histories[session].episodes[episode];
        self.report.episodes += 1;
        self.report.steps_wasted += overcome.wasted();
        let right = self.right.contains(&(session, episode));
        if !overcome.error_key.is_empty() {
            let shows_right = self.shown_right.contains(overcome.error_key.as_str());
            let error = self.error(&overcome.error_key);
            error.overcome += 1;
            error.steps_wasted += overcome.wasted();
            if let Some(lesson) = overcome.lesson.as_ref().filter(|_| right || !shows_right) {
                error.example = Some(lesson.recovery.fix.clone());
            }
            if right {
                self.shown_right.insert(&overcome.error_key);
            }
        }
        if let Some(notes) = self.notes.get_mut(&session) {
            drop(notes.succeeded(&overcome.success_code));
        }
        if let Some(lesson) = &overcome.lesson {
            self.memory.learn_alone(session, lesson);
        }
    }

    /// Makes the fixes of an ended session visible to all sessions.
    fn ended(&mut self, session: usize) {
        let history = &self.histories[session];
        self.notes.remove(&session);
        self.memory.forget_alone(session);
        for overcome in &history.episodes {
            if let Some(lesson) = &overcome.lesson {
                let origin = Origin {
                    session: redacted(&history.id),
                    workspace: overcome.workspace.clone(),
                    step: overcome.fail_step as u64,
                    live: false,
                    call: String::new(),
                };
                self.memory.learn(lesson, origin);
            }
        }
    }
}

impl ShownHint {
    fn of(hint: Hint) -> Self {
        Self {
            failing_code: hint.failing_code,
            working_code: hint.working_code,
            why: hint.why,
        }
    }
}

/// Call of a session as a report shows it: redacted, without people, and cut.
fn said(call: &str) -> String {
    clean(&without_people(call)).cut(LONGEST)
}

/// Returns true if the hint names what then worked and is more than a retry of the failing call.
/// The measure is that of a merge in `learn`, or of the credit for a shown hint.
fn is_right(hint: &Hint, overcome: &Overcome) -> bool {
    let (failing, working) = (&hint.failing_code, &hint.working_code);
    let merges = |lesson: &Lesson| same_way(working, &lesson.recovery.fix.working_code);
    working.trim() != failing.trim()
        && (overcome.lesson.as_ref().is_some_and(merges)
            || is_adopted(&overcome.success_code, working, failing, ""))
}
