//! Failures and successes that programs without hooks report.
//!
//! A failure waits in the log of its session until a success answers it; the two become the pattern of a procedure.
//! An existing pattern is counted up instead of added.

use serde::Serialize;

use crate::lessons::failure::error_line::error_line;
use crate::lessons::failure::normalised;
use crate::lessons::failure::without_people;
use crate::lessons::session::calls::{NewestCalls, SessionCall};
use crate::lessons::storage::patterns::{self, Stored, store_unless};
use crate::lessons::telling::service::HintService;
use crate::lessons::{HintOptions, HintReport};
use crate::model::text::{of_commands, one_line};
use crate::model::{Pattern, Procedure};
use crate::store::workspace::{Error, stamp};
use crate::store::{Scoped, Writer};

/// Maximum length of the output that a pattern keeps, in characters.
const OUTPUT: usize = 500;
/// Maximum number of failures that a success answers.
const WAITING: usize = 16;
/// Minimum similarity of an earlier failure to the working code that answers it too.
const SAME_GOAL: f64 = 0.5;

/// A success to record.
#[derive(Debug, Clone)]
pub struct Success {
    /// Code that worked.
    pub code: String,
    /// Output of the code.
    pub output: String,
    /// Session id.
    pub session: String,
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

impl HintService<'_> {
    /// Records a failure in its session, and returns hints for it.
    pub fn record_failure(&self, failure: &HintOptions) -> Result<HintReport, Error> {
        // Recording a failure creates a missing memory; asking for a hint does not.
        if !self.store.directory().is_there() {
            drop(self.store.write(&mut || (self.random)())?);
        }
        self.hint(failure)
    }

    /// Records a success. Each failure that it answers becomes a procedure.
    pub fn record_success(&self, success: &Success) -> Result<RecordReport, Error> {
        let (code, output) = (
            memctl_redact::admit(&success.code),
            memctl_redact::admit(&success.output),
        );
        let suspicious = code.quarantine.is_some() || output.quarantine.is_some();
        let success = &Success {
            code: code.text,
            output: output.text,
            session: success.session.clone(),
        };
        let mut report = RecordReport::default();
        let answered = answered(self.store, &success.session, &success.code);
        if answered.is_empty() {
            report.not_learned = Some("no failure waits for it in this session");
        }
        let mut writer = self.store.write(&mut || (self.random)())?;
        for failure in &answered {
            if suspicious {
                report.not_learned = Some("it speaks to a model, or hides something");
                continue;
            }
            if same_code(&failure.failing_code, &success.code) {
                report.not_learned = Some("the code that works is the code that failed");
                continue;
            }
            match self.keep(&mut writer, failure, success)? {
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
        let call = SessionCall::new(None, &success.code, &success.output, false);
        self.append_call(&success.session, &call);
        self.change_scratch(&success.session, |scratch| {
            let credits = scratch.succeeded(&success.code);
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
        success: &Success,
    ) -> Result<Stored, Error> {
        let is_equal = |existing: &Procedure| {
            existing.pattern.as_ref().is_some_and(|pattern| {
                pattern.error_key == failure.error_key
                    && same_code(&pattern.working_code, &success.code)
            })
        };
        let pattern = Pattern {
            working_code: success.code.clone(),
            success_output: memctl_redact::beginning(&success.output, OUTPUT).into_owned(),
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
mod tests {
    use super::*;
    use crate::model::{Kind, Record as _, Scope};
    use crate::store::RemovalMode;
    use chrono::DateTime;
    use serde_json::Value;
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
            here: crate::store::Here::default(),
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
        let success = Success {
            code: code.to_owned(),
            output: "ALK inhibitor\n".repeat(100),
            session: session.to_owned(),
        };
        service.record_success(&success).unwrap()
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
