//! Replays past sessions to say what memory would have saved on them.
//!
//! The memory begins empty and is never written to a file. Sessions are read with the functions of
//! `learn`, then all that happened in them is put into the order of time: at each failing call the
//! memory is asked as a hook asks it, and each failure that was overcome is learnt from. A session
//! knows at once what it has learnt itself, as an agent does that records; the others know it from
//! its end on, when `learn` reads it. So nothing is known before its time, also where sessions ran
//! side by side.
//!
//! What this cannot know: whether the agent would have taken a hint. Nobody saw the hints, so they
//! neither gain nor lose evidence here.
//!
//! - `memory`: fixes in memory, seen by one session.
//! - `history`: what is kept of a session while all are read.

mod history;
mod memory;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use serde::Serialize;

use crate::learn::distil::{FixText, Lesson};
use crate::learn::hint::{Failure, Hint, MAX_HINTS};
use crate::learn::likeness::follows;
use crate::learn::session_notes::SessionNotes;
use crate::model::Origin;
use crate::transcript::Format;

use history::{Failed, History, Overcome, What};
use memory::Memory;

use super::fixes::known;
use super::learn::{kept, read, same_way};
use super::{Error, OnBytes, session_files};

/// What is replayed.
#[derive(Debug, Clone, Default)]
pub struct BacktestOptions {
    /// Files, and folders that are walked.
    pub paths: Vec<PathBuf>,
    /// The format of all of them; `None` sees it from their content.
    pub format: Option<Format>,
}

/// What memory would have saved.
#[derive(Debug, Default, Serialize)]
pub struct BacktestReport {
    /// How many session files were read.
    pub transcripts: usize,
    /// How many calls of tools they hold.
    pub steps: usize,
    /// How many of them failed. A call that a resumed session has written a second time counts once.
    pub failures: usize,
    /// How many failures were overcome; the retries in between belong to one episode.
    pub episodes: usize,
    /// Failures whose very error (the same key) had been overcome before.
    pub repeated: usize,
    /// Failures at which a hint would have been shown.
    pub hinted: usize,
    /// Those of them that were overcome later: only there it is known what worked.
    pub hinted_overcome: usize,
    /// Those of them where a hint named what then worked: its working code and that of the episode
    /// are alike as `learn` judges when it merges, or the call that succeeded follows the hint as it
    /// must for the fix to be credited. A hint to do the failing call again is never right.
    pub hinted_right: usize,
    /// The steps from the failure to the success, summed over the episodes: as in `learn`.
    pub steps_wasted: usize,
    /// The steps between a rightly hinted failure and the success that would not have been needed:
    /// without the two ends, and without the changes that belong to what worked. An episode counts
    /// once.
    pub steps_saved: usize,
    /// The same by error, those that would have saved most first.
    pub by_error: Vec<ErrorReport>,
    /// The lines that could not be read.
    pub problems: Vec<ProblemReport>,
    /// How many files in the folders are no session files.
    pub skipped: usize,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// One error, by its key.
#[derive(Debug, Default, Serialize)]
pub struct ErrorReport {
    /// The key.
    pub error_key: String,
    /// How many failures said it.
    pub times: usize,
    /// How many episodes began with it.
    pub overcome: usize,
    /// Failures of it at which a hint would have been shown.
    pub hinted: usize,
    /// Those where a hint named what then worked.
    pub hinted_right: usize,
    /// The steps from the failure to the success, over its episodes.
    pub steps_wasted: usize,
    /// Those that a right hint would have made needless.
    pub steps_saved: usize,
    /// What worked: in the newest episode that a hint would have been right for, else in the newest.
    pub example: Option<FixText>,
}

/// A line that could not be read.
#[derive(Debug, Serialize)]
pub struct ProblemReport {
    /// The session file.
    pub path: String,
    /// Counted from 1.
    pub line: u64,
    /// Why.
    pub message: String,
}

/// Replays session files. A file that cannot be read is a warning, and the others count.
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

/// The replay as far as it has come.
struct Replay<'a> {
    histories: &'a [History],
    memory: Memory,
    /// What each session that has not ended has been shown.
    notes: HashMap<usize, SessionNotes>,
    errors: BTreeMap<&'a str, ErrorReport>,
    /// The errors whose example is one that a hint would have been right for.
    shown_right: HashSet<&'a str>,
    /// The episodes that a hint was right for: their session and number.
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
        // The order of keys decides where all else is equal, so that two replays say the same.
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

    /// Asks the memory at a failing call.
    fn failed(&mut self, session: usize, failed: &'a Failed) {
        self.report.failures += 1;
        let Some(key) = &failed.error_key else {
            return;
        };
        let seen = self.memory.seen_by(session);
        let repeated = seen.has(key);
        let notes = self.notes.entry(session).or_default();
        // What the outcome says of earlier hints is dropped: nobody has seen them.
        drop(notes.failed(key, "", &failed.code, None));
        let failure = Failure {
            error_key: key,
            code: Some(&failed.code),
        };
        let hints = known(&seen, &failure, &notes.withheld(), MAX_HINTS);
        notes.showed(key, &hints);
        self.report.repeated += usize::from(repeated);
        let hinted = !hints.is_empty();
        self.report.hinted += usize::from(hinted);
        let error = self.error(key);
        error.times += 1;
        error.hinted += usize::from(hinted);
        let Some(episode) = failed.episode.filter(|_| hinted) else {
            return;
        };
        self.report.hinted_overcome += 1;
        let overcome = &self.histories[session].episodes[episode];
        if !hints.iter().any(|hint| is_right(hint, overcome)) {
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

    /// Learns from a failure that has just been overcome.
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
                error.example = Some(lesson.fix.clone());
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

    /// From now on everybody knows what the session has learnt.
    fn ended(&mut self, session: usize) {
        let history = &self.histories[session];
        self.notes.remove(&session);
        self.memory.forget_alone(session);
        for overcome in &history.episodes {
            if let Some(lesson) = &overcome.lesson {
                let origin = Origin {
                    session: kept(&history.id),
                    workspace: overcome.workspace.clone(),
                    step: overcome.fail_step as u64,
                };
                self.memory.learn(lesson, origin);
            }
        }
    }
}

/// Whether a hint says what then worked, and not only to try again: as `learn` judges when it
/// merges, or as a hint that was shown is credited.
fn is_right(hint: &Hint, overcome: &Overcome) -> bool {
    let (failing, working) = (&hint.failing_code, &hint.working_code);
    let merges = |lesson: &Lesson| same_way(working, &lesson.fix.working_code);
    working.trim() != failing.trim()
        && (overcome.lesson.as_ref().is_some_and(merges)
            || follows(&overcome.success_code, working, failing))
}
