//! Reads session files.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::Path;

use chrono::DateTime;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::lessons::recovery::pattern::{self, NoPattern};
use crate::lessons::recovery::recover::{self, Episode};
use crate::model::Pattern;
use crate::store::project_of_session;
use memctl_files::named;
use memctl_redact::Clean;
use memctl_sessions::{BrokenLine, Event, Format, Remark, Step};

use crate::lessons::past::files::by_name;
pub(crate) use crate::lessons::past::files::{SessionFile, files, is_below};

/// Number of steps analysed together. A longer session is analysed in windows that overlap by half,
/// so that memory does not grow with it.
const WINDOW: usize = 2_000;
/// Minimum length of a call's id that no other session has, in bytes.
const LEAST_ID: usize = 20;
/// Maximum number of broken lines reported per file.
const MAX_BROKEN: usize = 100;

/// Maximum size of a manifest beside a session, in bytes.
const LARGEST_MANIFEST: u64 = 1 << 20;

/// Returns the working directory of a session whose file names none: that in the manifest of Cline beside it.
fn directory_beside(path: &Path) -> Option<String> {
    let session = path.file_name()?.to_str()?.strip_suffix(".messages.json")?;
    let manifest = path.with_file_name(format!("{session}.json"));
    let manifest = named::read(&manifest, LARGEST_MANIFEST).ok()?;
    let manifest: Value = serde_json::from_slice(&manifest).ok()?;
    manifest["cwd"].as_str().map(str::to_owned)
}

/// Content of a session file.
#[derive(Debug, Default)]
pub(crate) struct SessionTrace {
    pub(crate) format: Option<Format>,
    pub(crate) id: Option<String>,
    pub(crate) steps: usize,
    pub(crate) failures: usize,
    /// Tokens of the turns; `None` if the host does not say.
    pub(crate) tokens: Option<u64>,
    /// Number of messages.
    pub(crate) remarks: usize,
    /// Times of the first and the last step, in microseconds since 1970.
    pub(crate) began: Option<i64>,
    pub(crate) ended: Option<i64>,
    pub(crate) broken: Vec<BrokenLine>,
    pub(crate) found: Vec<Found>,
}

impl SessionTrace {
    /// Returns `true` if the file holds no call, no message, and nothing that may have been one.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps + self.remarks + self.broken.len() == 0
    }
}

/// Failure with its recovery, and the pattern of both.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) episode: Episode,
    pub(crate) tool: String,
    pub(crate) fail_native_id: Option<String>,
    pub(crate) success_native_id: Option<String>,
    pub(crate) workspace: String,
    /// Hash of the failing call with its time; see [`Origin`](crate::model::Origin).
    pub(crate) call: String,
    pub(crate) pattern: Result<Pattern, NoPattern>,
}

/// A session with all its calls and messages, in memory.
#[derive(Debug, Default)]
pub(crate) struct WholeSession {
    pub(crate) format: Option<Format>,
    /// Id at the agent host; the name of the file for a format without ids.
    pub(crate) id: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) remarks: Vec<Remark>,
}

impl WholeSession {
    /// Reads a session; `None` if the file is none, or no call of it ran in the project.
    pub(crate) fn read(
        file: &SessionFile,
        format: Option<Format>,
        project: Option<&str>,
    ) -> Option<Self> {
        let mut input = named::open(&file.path).ok()?;
        let mut session = Self::default();
        let mut id = None;
        let beside = directory_beside(&file.path);
        let format = memctl_sessions::read(format, &mut input, &mut |event| match event {
            Event::Step(step) => session.steps.push(Step {
                cwd: step.cwd.clone().or_else(|| beside.clone()),
                ..*step
            }),
            Event::Remark(remark) => session.remarks.push(remark),
            Event::Session(named) => id = Some(named),
            Event::Broken(_) => {}
        });
        session.format = Some(format.ok().flatten()?);
        let name = || Some(file.path.file_name()?.to_string_lossy().into_owned());
        session.id = id.or_else(name).unwrap_or_default();
        // A history inside the project names no directory.
        if let Some(project) = project
            && session.steps.iter().all(|step| step.cwd.is_none())
            && is_below(&file.path.to_string_lossy(), project)
        {
            for step in &mut session.steps {
                step.cwd = Some(project.to_owned());
            }
        }
        let is_here = |step: &Step| is_in(step, project);
        (project.is_none() || session.steps.iter().any(is_here)).then_some(session)
    }
}

/// Returns `true` if a call ran in a project; `None` takes all.
pub(crate) fn is_in(step: &Step, project: Option<&str>) -> bool {
    let cwd = step.cwd.as_deref();
    project.is_none_or(|project| cwd.is_some_and(|cwd| is_below(cwd, project)))
}

/// Callback for each step in order, with `true` if the step failed.
pub(crate) type OnStep<'a> = &'a mut dyn FnMut(&Step, bool);

/// Reads a session file. `on_bytes` receives the number of bytes read so far.
pub(crate) fn read(
    path: &Path,
    format: Option<Format>,
    keep: &dyn Fn(&str) -> Clean<'static>,
    on_step: OnStep<'_>,
    on_bytes: &mut dyn FnMut(u64),
) -> io::Result<SessionTrace> {
    let counted = Counted {
        file: named::open(path)?,
        read: 0,
        on_bytes,
    };
    let mut counted = counted;
    let mut session = SessionTrace::default();
    let mut window = Window::default();
    let beside = directory_beside(path);
    session.format = memctl_sessions::read(
        format.or_else(|| by_name(path)),
        &mut counted,
        &mut |event| match event {
            Event::Step(mut step) => {
                if step.cwd.is_none() {
                    step.cwd.clone_from(&beside);
                }
                session.steps += 1;
                if let Some(tokens) = step.tokens {
                    let sum = session.tokens.get_or_insert_default();
                    *sum = sum.saturating_add(tokens);
                }
                if let Some(time) = step.time.as_deref().and_then(microseconds) {
                    session.began.get_or_insert(time);
                    session.ended = session.ended.max(Some(time));
                }
                window.steps.push(*step);
                if window.steps.len() >= WINDOW {
                    window.look(&mut session, keep, on_step, false);
                }
            }
            Event::Remark(remark) => {
                session.remarks += 1;
                window.remarks.push_back(remark);
            }
            Event::Broken(line) => {
                if session.broken.len() < MAX_BROKEN {
                    session.broken.push(line);
                }
            }
            Event::Session(id) => session.id = Some(id),
        },
    )?;
    window.look(&mut session, keep, on_step, true);
    Ok(session)
}

/// Parses a time of an agent host: RFC 3339, or seconds or milliseconds since 1970. Returns
/// microseconds.
pub(crate) fn microseconds(text: &str) -> Option<i64> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_micros());
    }
    let number: f64 = text.parse().ok().filter(|n: &f64| n.is_finite())?;
    let scale = if number.abs() > 1e11 { 1e3 } else { 1e6 };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float cast to an integer saturates, and then the time is only far away"
    )]
    let micros = (number * scale) as i64;
    Some(micros)
}

/// Steps that are analysed together.
#[derive(Debug, Default)]
struct Window {
    steps: Vec<Step>,
    remarks: VecDeque<Remark>,
    /// Failures before this ordinal are analysed; those in `taken` belong to episodes.
    judged: usize,
    taken: Vec<usize>,
}

impl Window {
    /// Finds recoveries. Before the last pass, only failures of the older half are analysed, with
    /// the newer half in view; then the older half is dropped.
    fn look(
        &mut self,
        session: &mut SessionTrace,
        keep: &dyn Fn(&str) -> Clean<'static>,
        on_step: OnStep<'_>,
        last: bool,
    ) {
        let half = self.steps.len() / 2;
        let until = match self.steps.get(half) {
            Some(step) if !last => step.index,
            _ => usize::MAX,
        };
        let remarks = self.remarks.make_contiguous();
        let analysis = recover::analyse(&self.steps, remarks);
        let range = self.judged..until;
        for step in self.steps.iter().filter(|step| range.contains(&step.index)) {
            let failed = analysis.failures.binary_search(&step.index).is_ok();
            session.failures += usize::from(failed);
            on_step(step, failed);
        }
        for episode in analysis.episodes {
            let known = self.taken.contains(&episode.fail_step);
            if range.contains(&episode.fail_step) && !known {
                self.taken.extend(&episode.also_fail_steps);
                session.found.push(self.found(episode, keep));
            }
        }
        if !last {
            self.judged = until;
            self.steps.drain(..half);
            self.remarks.retain(|remark| remark.before >= until);
            self.taken.retain(|step| *step >= until);
        }
    }

    fn found(&self, episode: Episode, keep: &dyn Fn(&str) -> Clean<'static>) -> Found {
        let step = |index: usize| {
            let at = self
                .steps
                .binary_search_by_key(&index, |step| step.index)
                .ok()?;
            self.steps.get(at)
        };
        let id = |index: usize| step(index)?.native_id.clone();
        let failed = step(episode.fail_step);
        // The agent may have changed directories since; its project stays.
        let began = self.steps.iter().find_map(|step| step.cwd.as_deref());
        let workspace = project_of_session(began.unwrap_or_default());
        Found {
            tool: failed.map(|step| step.tool.clone()).unwrap_or_default(),
            fail_native_id: id(episode.fail_step),
            success_native_id: id(episode.success_step),
            workspace: keep(&workspace).into_string(),
            call: failed.map(call_hash).unwrap_or_default(),
            pattern: pattern::of_episode(&episode, &self.steps, keep),
            episode,
        }
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

/// Reader that reports the number of bytes read.
struct Counted<'a> {
    file: File,
    read: u64,
    on_bytes: &'a mut dyn FnMut(u64),
}

impl io::Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read += read as u64;
        (self.on_bytes)(self.read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::session_files::*;

    #[test]
    fn times_are_read_as_hosts_write_them() {
        let check = |text: &str, expected| assert_eq!(microseconds(text), expected, "{text}");
        check("1970-01-01T00:00:01.5Z", Some(1_500_000));
        check("1970-01-01T01:00:01+01:00", Some(1_000_000));
        check("1700000000", Some(1_700_000_000_000_000));
        check("1700000000000", Some(1_700_000_000_000_000));
        check("yesterday", None);
        check("NaN", None);
    }

    #[test]
    fn a_long_session_is_looked_at_in_windows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let mut text = String::new();
        for n in 0..5_000 {
            // Each failure has its recovery at once; the names keep the pairs apart.
            let (output, ok) = if n % 2 == 0 {
                ("error: no", false)
            } else {
                ("fine", true)
            };
            let line = format!(
                r#"{{"tool":"bash","input":"tool{} build","output":"{output}","ok":{ok}}}"#,
                n / 2
            );
            text.push_str(&line);
            text.push('\n');
        }
        named::replace(&path, text.as_bytes()).unwrap();
        let mut last = 0;
        let mut judged = Vec::new();
        let mut on_step = |step: &Step, failed: bool| judged.push((step.index, failed));
        let session = read(
            &path,
            None,
            &|text| Clean::of_owned(text.to_owned()),
            &mut on_step,
            &mut |at| {
                last = at;
            },
        )
        .unwrap();
        let each_once: Vec<_> = (0..5_000).map(|n| (n, n % 2 == 0)).collect();
        assert_eq!(judged, each_once);
        assert_eq!((session.steps, session.failures), (5_000, 2_500));
        let steps: Vec<usize> = session.found.iter().map(|f| f.episode.fail_step).collect();
        assert_eq!(steps, (0..2_500).map(|n| n * 2).collect::<Vec<_>>());
        assert_eq!(last, named::metadata(&path).unwrap().len());
    }

    #[test]
    fn folders_are_walked_in_order_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "b/2.jsonl", "a.traj", "b/1.json", "b/c.txt", "node_modules/x.json",
        ] {
            let path = dir.path().join(name);
            named::create_dir(path.parent().unwrap()).unwrap();
            named::replace(&path, b"").unwrap();
        }
        memctl_files::make_link(dir.path(), dir.path().join("b/loop")).unwrap();
        let root = dir.path().to_owned();
        let found = files(&[root.clone(), root.join("b/c.txt"), root.join("a.traj")]).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|f| {
                (
                    named::relative(&f.path, &root).display().to_string(),
                    f.named,
                )
            })
            .collect();
        assert_eq!(
            names,
            [
                ("a.traj", true),
                ("b/1.json", false),
                ("b/2.jsonl", false),
                ("b/c.txt", true)
            ]
            .map(|(name, named)| (name.to_owned(), named))
        );
        assert!(files(&[root.join("none")]).is_err());
    }
}
