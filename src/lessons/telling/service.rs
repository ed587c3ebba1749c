//! Looks up lessons when a call fails, and tracks the outcome of hints.
//!
//! This is the hot path: an agent host calls it at every failing tool call. It reads a derived
//! table, the few entries that the table names, and the session scratch; no model, no network, no
//! runtime. A failing call writes only the session scratch. Evidence is written once an outcome is known,
//! which is rare. If another process holds the lock, it waits for a later event of the session; answers
//! do not.
//!
//! The evidence of a lesson is the only count of what agents were told, and to what effect.
//!
//! Programs without hooks report failures and successes themselves. A failure waits in the log of its session until a
//! success answers it; the two become the pattern of a procedure.

use std::time::Instant;

use crate::lessons::failure::error_line::error_line;
use crate::lessons::failure::{Failure, normalised, without_people};
use crate::lessons::session::calls::{
    Marks, NewestCalls, SessionCall, SessionHead, append_call, recovered,
};
use crate::lessons::storage::new_lesson::is_demoted;
use crate::lessons::storage::patterns::{self, Stored, store_unless};
use crate::lessons::storage::table::prepare;
use crate::lessons::telling::hint::{Hint, HintOutcome, MAX_RULES, Pitfall};
use crate::lessons::telling::scratch::{Credit, LessonScratch};
use crate::lessons::telling::{self, matching};
use crate::model::text::{of_commands, one_line};
use crate::model::{ActionType, ExecutionLog, Kind, Pattern, Procedure, Trust};
use crate::store::workspace::{Error, Scribe, data, milliseconds, stamp};
use crate::store::{Here, Scoped, Writer};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};

/// Number of equal failures that an agent is told of.
const REPEATED: u64 = 3;
/// Maximum length of the output that a pattern keeps, in characters.
const OUTPUT: usize = 500;
/// Maximum number of failures that a success answers.
const WAITING: usize = 16;
/// Minimum similarity of an earlier failure to the working code that answers it too.
const SAME_GOAL: f64 = 0.5;

/// Looks up hints in a store, and tracks their outcome.
#[derive(Debug)]
pub struct HintService<'a> {
    /// Store with the lessons.
    pub store: &'a Scoped,
    /// Current time.
    pub now: DateTime<Utc>,
    /// Source of random names.
    pub random: fn() -> String,
    /// Says whether a rule of a person forbids what a lesson advises: its working call and its words.
    pub forbids: fn(&Scoped, &str, &str) -> bool,
    /// Place that the calls are made in.
    pub here: Here<'a>,
}

/// Failing call.
#[derive(Debug, Clone, Default)]
pub struct HintOptions {
    /// Output of the call.
    pub error: String,
    /// Tool name of the agent host; `None` for code that an agent runs itself.
    pub tool: Option<String>,
    /// Command or code that failed.
    pub command: Option<String>,
    /// Session of the call; `None` records nothing and tracks no outcome.
    pub session: Option<String>,
    /// Maximum number of hints.
    pub max_hints: usize,
}

/// Hints for a failing call.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct HintReport {
    /// Error key; `None` if the text contains no error.
    pub error_key: Option<String>,
    /// Lessons, best first, then patterns and procedures without a lesson.
    pub hints: Vec<Hint>,
    /// Rules for the error classes met so far, at most eight.
    pub pitfalls: Vec<String>,
    /// Line about a failure that came several times in the same way; empty if it did not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repeated: String,
    /// Duration in milliseconds.
    pub took_ms: f64,
}

/// Outcome of recording a success.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct RecordReport {
    /// Ids of new procedures.
    pub learned: Vec<String>,
    /// Ids of known ones that were counted up.
    pub merged: Vec<String>,
    /// Ids of procedures that were shown as hints and helped.
    pub helped: Vec<String>,
    /// Reason why nothing was learned; `None` if something was.
    pub not_learned: Option<&'static str>,
}

/// Session of failures and successes that name none: those of every day, so that a hint is shown again.
pub const NO_SESSION: &str = "default";

impl HintService<'_> {
    /// Looks up hints for a failure. With a session, the failure is recorded there, earlier hints
    /// get credit or blame, and no hint is shown twice.
    pub fn hint(&self, options: &HintOptions) -> Result<HintReport, Error> {
        let start = Instant::now();
        // The whole text is redacted before a line of it becomes a key or a note.
        let error = memctl_redact::redact(&options.error).text;
        let code = memctl_redact::redact(options.command.as_deref().unwrap_or_default()).text;
        let tool = options
            .tool
            .as_deref()
            .map(|tool| memctl_redact::redact(tool).text);
        let tool = tool.as_deref();
        let mut report = HintReport::default();
        let session = options.session.as_deref();
        // A locked session scratch does not hold back a hint.
        if let Some(session) = session {
            self.append_call(session, &SessionCall::new(tool, &code, &error, true));
        }
        let opened = session.map(|session| self.store.scratch_if_free(session));
        let opened = opened.transpose()?;
        let scratch = session.map(|session| self.store.scratch_of::<LessonScratch>(session));
        let mut scratch = scratch.unwrap_or_default();
        let mut pending = std::mem::take(&mut scratch.pending);
        if let Some(failure) = Failure::of_redacted(&error, tool, &code) {
            let key = failure.key().to_owned();
            let times = scratch.times(&key, &code);
            if times == REPEATED {
                report.repeated = telling::repeated(times);
            }
            pending.extend(scratch.failed(&key, &error, &code, tool));
            let is_common = session.is_some_and(|name| name.rsplit('/').next() == Some(NO_SESSION));
            let delivered = if is_common {
                Vec::new()
            } else {
                scratch.not_again()
            };
            let hints = matching::at_failure(
                self.store, &failure, &self.here, &delivered, options.max_hints,
            )?;
            report.hints = self.without_forbidden(hints);
            scratch.showed(&key, &report.hints, &code, false);
            report.error_key = Some(key);
        }
        if let (Some(opened), Some(session)) = (opened.flatten(), session) {
            opened.save(&serde_json::to_vec(&scratch)?)?;
            drop(opened);
            let is_free = self.store_evidence(session, pending)?;
            if is_free && !report.hints.is_empty() {
                let ids: Vec<&str> = report.hints.iter().map(|hint| hint.id.as_str()).collect();
                let input = json!({ "error_key": report.error_key });
                self.log(session, "hint", tool, [input, json!({ "hints": ids })]);
            }
        }
        let pitfalls = scratch.pitfalls.into_iter().map(|pitfall| pitfall.rule);
        report.pitfalls = pitfalls.take(MAX_RULES).collect();
        report.took_ms = milliseconds(start.elapsed());
        Ok(report)
    }

    /// Records a successful call in a session, and credits the hints that it followed. Its texts are redacted
    /// already. Returns the patterns of the failures that it recovered.
    pub fn succeeded(
        &self,
        session: &str,
        tool: Option<&str>,
        code: &str,
        output: &str,
    ) -> Result<Vec<Pattern>, Error> {
        if self.store.directory().is_read_only() {
            return Ok(Vec::new());
        }
        let call = SessionCall::new(tool, code, output, false);
        self.append_call(session, &call);
        // Most successes follow no hint, and must not wait for the lock.
        if self
            .store
            .scratch_of::<LessonScratch>(session)
            .is_watching()
        {
            self.change_scratch(session, |scratch| scratch.succeeded(code))?;
        }
        if !Marks::of(self.store, session).has_failed {
            return Ok(Vec::new());
        }
        Ok(recovered(self.store, session, &call))
    }

    /// Appends a call to the log of its session, if the session works in the project of this memory. Without it
    /// no recovery is seen and no lesson is borne out; nothing else depends on it.
    pub(crate) fn append_call(&self, session: &str, call: &SessionCall) {
        if self.here.is_of_user || self.store.directory().is_read_only() {
            return;
        }
        let head = SessionHead {
            session: memctl_redact::redact(session).text.into_owned(),
            project: self.here.project_name().unwrap_or_default(),
        };
        drop(append_call(self.store, &head, call));
    }

    /// Records the end of a session.
    pub fn ended(&self, session: &str) -> Result<(), Error> {
        let scratch: LessonScratch = self.store.scratch_of(session);
        let is_idle = scratch.shown.is_empty() && scratch.pending.is_empty();
        if is_idle || self.store.directory().is_read_only() {
            return Ok(());
        }
        self.change_scratch(session, LessonScratch::ended)
    }

    /// Pitfalls that a session has met so far.
    pub fn pitfalls(&self, session: &str) -> Vec<Pitfall> {
        self.store.scratch_of::<LessonScratch>(session).pitfalls
    }

    /// Returns the hints that no rule in force forbids.
    pub(crate) fn without_forbidden(&self, mut hints: Vec<Hint>) -> Vec<Hint> {
        hints.retain(|hint| !(self.forbids)(self.store, &hint.working_code, &hint.lesson));
        hints
    }

    /// Changes the session scratch, and stores the evidence.
    pub(crate) fn change_scratch(
        &self,
        session: &str,
        change: impl FnOnce(&mut LessonScratch) -> Vec<Credit>,
    ) -> Result<(), Error> {
        let credits = self
            .store
            .change_scratch(session, |scratch: &mut LessonScratch| {
                let mut credits = std::mem::take(&mut scratch.pending);
                credits.extend(change(scratch));
                credits
            })?;
        self.store_evidence(session, credits)?;
        Ok(())
    }

    /// Returns the lessons for a call, as text, and records that they are told. `code` need not be
    /// redacted: it is compared, and not stored.
    pub fn lessons_before(
        &self,
        code: &str,
        session: &str,
        tool: Option<&str>,
    ) -> Result<String, Error> {
        if code.trim().is_empty() {
            return Ok(String::new());
        }
        let lessons = matching::before_call(self.store, code, &self.here)?;
        let lessons = self.without_forbidden(lessons);
        if lessons.is_empty() {
            return Ok(String::new());
        }
        let scratch: LessonScratch = self.store.scratch_of(session);
        let delivered = scratch.shown_ids();
        let lessons: Vec<_> = lessons
            .into_iter()
            .filter(|lesson| !delivered.contains(&lesson.id))
            .collect();
        let (text, count) = telling::before_call(&lessons, &(self.random)());
        if count > 0 {
            let call = memctl_redact::redact(code).text;
            self.store
                .try_change_scratch(session, |scratch: &mut LessonScratch| {
                    scratch.showed("", &lessons[..count], &call, true);
                })?;
            let ids: Vec<&str> = lessons[..count].iter().map(|one| one.id.as_str()).collect();
            self.log_delivered(session, "call", tool, &ids);
        }
        Ok(text)
    }

    /// Adds the records that an agent was told to the action log. `at` is `start`, or `call` of a tool, if it has a name.
    pub(crate) fn log_delivered(&self, session: &str, at: &str, tool: Option<&str>, ids: &[&str]) {
        let delivered = [json!({ "at": at }), json!({ "told": ids })];
        self.log(session, "told", tool, delivered);
    }

    /// Adds a line to the action log. No agent waits for a sync to disk, and a failed write keeps nothing back
    /// that it is told.
    fn log(&self, session: &str, step: &str, tool: Option<&str>, [input, output]: [Value; 2]) {
        let scribe = Scribe::new(self.now, self.random, Some(session));
        let line = ExecutionLog {
            tool_name: tool.map(str::to_owned),
            input_data: data(&input),
            output_data: data(&output),
            ..scribe.line(step, ActionType::MemoryRead)
        };
        let writer = self.store.impatient().write_logs(&mut || (self.random)());
        drop(writer.and_then(|mut writer| writer.note_execution_logs(vec![line])));
    }

    /// Writes outcomes into the evidence of lessons. A lesson that failed too often is retired: it stays
    /// in its file and is never shown again. An approved one is not retired, because nobody has reviewed
    /// these sessions. Returns `false` if the lock is held for too long; the next event of the session
    /// writes instead.
    fn store_evidence(&self, session: &str, credits: Vec<Credit>) -> Result<bool, Error> {
        // Without a connection to the database of the lessons, nothing can be counted.
        if credits.is_empty() || self.store.is_apart()? {
            return Ok(true);
        }
        let opened = self.store.impatient().write(&mut || (self.random)());
        if let Err(Error::Locked { .. }) = opened {
            let postpone = |scratch: &mut LessonScratch| scratch.postpone(credits);
            self.store.change_scratch(session, postpone)?;
            return Ok(false);
        }
        let mut writer = opened?;
        let trust_snapshot = writer.store().trust_snapshot();
        for credit in &credits {
            let Some(entry) = writer.store().find(Kind::Procedure, &credit.id)? else {
                // The procedure was deleted in the meantime.
                continue;
            };
            let Ok(procedure) = entry.parse::<Procedure>() else {
                continue;
            };
            let mut evidence = procedure.evidence();
            evidence.shown += u64::from(credit.shown);
            match credit.outcome {
                Some(HintOutcome::Helped) => evidence.helped += 1,
                Some(HintOutcome::Harmed) => evidence.harmed += 1,
                Some(HintOutcome::Needless) | None => {}
            }
            let mut changes = vec![
                ("shown", json!(evidence.shown)),
                ("helped", json!(evidence.helped)),
                ("harmed", json!(evidence.harmed)),
            ];
            if credit.outcome == Some(HintOutcome::Needless) {
                changes.push(("needless", json!(procedure.needless_count() + 1)));
            }
            if is_demoted(evidence) && trust_snapshot.level(&procedure) == Trust::Observed {
                changes.push(("state", json!("retired")));
            }
            writer.update(Kind::Procedure, &credit.id, &changes)?;
        }
        // The table is rebuilt here, so that no later lookup has to.
        prepare(writer.store()).map(|()| true)
    }

    /// Records a failure in its session, and returns hints for it.
    pub fn record_failure(&self, failure: &HintOptions) -> Result<HintReport, Error> {
        // Recording a failure creates a missing memory; asking for a hint does not.
        if !self.store.directory().is_there() {
            drop(self.store.write(&mut || (self.random)())?);
        }
        self.hint(failure)
    }

    /// Records that code worked, with its output. Each failure that it answers becomes a procedure.
    pub fn record_success(
        &self,
        session: &str,
        code: &str,
        output: &str,
    ) -> Result<RecordReport, Error> {
        let (code, output) = (memctl_redact::admit(code), memctl_redact::admit(output));
        let suspicious = code.quarantine.is_some() || output.quarantine.is_some();
        let (code, output) = (code.text, output.text);
        let mut report = RecordReport::default();
        let answered = answered(self.store, session, &code);
        if answered.is_empty() {
            report.not_learned = Some("no failure waits for it in this session");
        }
        let mut writer = self.store.write(&mut || (self.random)())?;
        for failure in &answered {
            if suspicious {
                report.not_learned = Some("it speaks to a model, or hides something");
                continue;
            }
            if same_code(&failure.failing_code, &code) {
                report.not_learned = Some("the code that works is the code that failed");
                continue;
            }
            match self.keep(&mut writer, failure, &code, &output)? {
                Stored::New(id) => report.learned.push(id),
                Stored::Again(id) => report.merged.push(id),
                Stored::Counted(_) => {}
                Stored::Forgotten(_) => {
                    report.not_learned = Some("it was forgotten on purpose");
                }
            }
        }
        drop(writer);
        // From now on the failures wait no longer.
        let call = SessionCall::new(None, &code, &output, false);
        self.append_call(session, &call);
        self.change_scratch(session, |scratch| {
            let credits = scratch.succeeded(&code);
            report.helped = credits.iter().map(|credit| credit.id.clone()).collect();
            credits
        })?;
        if !report.learned.is_empty() || !report.merged.is_empty() {
            report.not_learned = None;
        }
        Ok(report)
    }

    /// Stores the pattern of a failure and its success, or counts up the procedure with an equal one.
    fn keep(
        &self,
        writer: &mut Writer,
        failure: &Pattern,
        code: &str,
        output: &str,
    ) -> Result<Stored, Error> {
        let is_equal = |existing: &Procedure| {
            existing.pattern.as_ref().is_some_and(|pattern| {
                pattern.error_key == failure.error_key && same_code(&pattern.working_code, code)
            })
        };
        let pattern = Pattern {
            working_code: code.to_owned(),
            success_output: memctl_redact::beginning(output, OUTPUT).into_owned(),
            ..failure.clone()
        };
        let procedure = Procedure {
            worded_by: "agent".to_owned(),
            ..patterns::procedure(pattern, &stamp(self.now))?
        };
        let mut existing = patterns::existing(writer)?;
        store_unless(writer, &mut existing, procedure, &is_equal, self.now)
    }
}

/// Failures since the last success that this one answers, as patterns without its code: the last one, and earlier ones
/// with a similar goal, one per error.
fn answered(store: &Scoped, session: &str, code: &str) -> Vec<Pattern> {
    let newest = NewestCalls::of_session(store, session, WAITING).calls;
    let failures = newest.iter().rev().take_while(|call| call.failed);
    let mut answered: Vec<Pattern> = Vec::new();
    for (i, failure) in failures.enumerate() {
        let line = without_people(&error_line(&failure.output).unwrap_or_default());
        let key = normalised(&line);
        let is_new = answered.iter().all(|other| other.error_key != key);
        if is_new && (i == 0 || of_commands(&failure.call, code) >= SAME_GOAL) {
            answered.push(Pattern {
                error_key: key,
                error_line: line,
                failing_code: failure.call.clone(),
                ..Pattern::default()
            });
        }
    }
    answered
}

/// Returns `true` if two pieces of code differ only in white space.
fn same_code(a: &str, b: &str) -> bool {
    one_line(a) == one_line(b)
}

#[cfg(test)]
mod tests_of_reports {
    use super::*;
    use crate::model::{Record as _, Scope};
    use crate::store::RemovalMode;
    use serde_json::json;

    const ERROR: &str = "TypeError: string indices must be integers";
    const WRONG: &str = "print(drugs[\"mechanism\"])";
    const RIGHT: &str = "for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])";

    fn with(test: impl FnOnce(&HintService<'_>)) {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path().join(".agentura"), Scope::All);
        test(&HintService {
            store: &store,
            now: DateTime::UNIX_EPOCH,
            random: || "r".to_owned(),
            forbids: |_, _, _| false,
            here: Here::default(),
        });
    }

    fn failure(
        service: &HintService<'_>,
        code: &str,
        error: &str,
        session: &str,
    ) -> Result<HintReport, Error> {
        service.record_failure(&HintOptions {
            error: error.to_owned(),
            command: Some(code.to_owned()),
            session: Some(session.to_owned()),
            max_hints: 5,
            ..HintOptions::default()
        })
    }

    fn success(service: &HintService<'_>, code: &str, session: &str) -> RecordReport {
        let output = "ALK inhibitor\n".repeat(100);
        service.record_success(session, code, &output).unwrap()
    }

    #[test]
    fn a_failure_and_its_success_become_a_hint_for_the_next_session() {
        with(|service| {
            let first = failure(service, WRONG, ERROR, "a").unwrap();
            assert!(first.hints.is_empty());
            assert_eq!(success(service, RIGHT, "a").learned, ["PROC-001-r00000"]);
            let second = failure(service, WRONG, ERROR, "b").unwrap();
            assert_eq!(second.hints.len(), 1);
            assert_eq!(second.hints[0].working_code, RIGHT);
            assert!(second.hints[0].success_output.chars().count() <= OUTPUT + 1);
            let again = success(service, RIGHT, "b");
            assert_eq!(
                (again.merged, again.helped),
                (
                    vec!["PROC-001-r00000".to_owned()],
                    vec!["PROC-001-r00000".to_owned()]
                )
            );
            let entry = service
                .store
                .find(Kind::Procedure, "PROC-001-r00000")
                .unwrap()
                .unwrap();
            let entry: Value = serde_json::from_slice(&entry.text).unwrap();
            assert_eq!(
                (&entry["occurrences"], &entry["helped"]),
                (&json!(2.0), &json!(1))
            );
        });
    }

    #[test]
    fn success_without_a_failure_is_not_learned() {
        with(|service| {
            assert!(success(service, RIGHT, "a").not_learned.is_some());
            failure(service, WRONG, ERROR, "a").unwrap();
            // Another session has no failure to answer; a plain retry answers it without a fix.
            assert!(success(service, RIGHT, "b").learned.is_empty());
            assert!(success(service, WRONG, "a").learned.is_empty());
            assert!(success(service, RIGHT, "a").learned.is_empty());
        });
    }

    #[test]
    fn retries_in_between_belong_to_the_same_success() {
        with(|service| {
            let error = |text: &str, code: &str| {
                failure(service, code, text, "a").unwrap();
            };
            error("error: quota exceeded", "git push origin main");
            error("ValueError: bad thing", "python3 x.py --fast");
            error("OSError: worse thing", "python3 x.py --slow");
            error("OSError: worse thing", "python3 x.py --slower");
            let report = success(service, "python3 x.py", "a");
            assert_eq!(report.learned.len(), 2, "{report:?}");
        });
    }

    #[test]
    fn forgotten_pattern_is_not_learned_again() {
        with(|service| {
            failure(service, WRONG, ERROR, "a").unwrap();
            success(service, RIGHT, "a");
            let procedure: Procedure = service.store.get("PROC-001-r00000").unwrap();
            let mut writer = service.store.write(&mut || "r".to_owned()).unwrap();
            writer
                .remove(
                    Kind::Procedure,
                    &[("PROC-001-r00000", &procedure.content())],
                    service.now,
                    RemovalMode::Undoable,
                )
                .unwrap();
            drop(writer);
            failure(service, WRONG, ERROR, "b").unwrap();
            assert!(success(service, RIGHT, "b").learned.is_empty());
        });
    }
}
