//! Records failures and successes for agents without hooks: the loop of the source document.
//!
//! A failure stays in the session's scratch file until a success answers it; the two become the
//! pattern of a procedure. A known pattern is counted up instead of added.

use serde::Serialize;

use super::patterns::{self, Stored};
use crate::lessons::telling::service::HintService;
use crate::lessons::telling::session_state::{Pending, PendingOutcomes, SessionNotes};
use crate::lessons::{HintOptions, HintReport};
use crate::model::text::of_commands;
use crate::model::{Pattern, Procedure};
use crate::store::Writer;
use crate::store::workspace::{Error, stamp};

/// Maximum length of the output that a pattern keeps, in characters.
const OUTPUT: usize = 500;
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
#[derive(Debug, Serialize, schemars::JsonSchema)]
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
        let mut report = RecordReport {
            learned: Vec::new(),
            merged: Vec::new(),
            helped: Vec::new(),
            not_learned: None,
        };
        let known = SessionNotes::read(&self.store.read_notes(&success.session));
        let answered = answered(&known.pending, &success.code);
        if answered.is_empty() {
            report.not_learned = Some("no failure waits for it in this session");
        }
        let mut writer = self.store.write(&mut || (self.random)())?;
        for failure in &answered {
            if suspicious {
                report.not_learned = Some("it speaks to a model, or hides something");
                continue;
            }
            if same_code(&failure.code, &success.code) {
                report.not_learned = Some("the code that works is the code that failed");
                continue;
            }
            match self.keep(&mut writer, failure, success)? {
                Stored::New(id) => report.learned.push(id),
                Stored::Again(id) => report.merged.push(id),
                Stored::Counted => {}
                Stored::Forgotten => {
                    report.not_learned = Some("it was forgotten on purpose");
                }
            }
        }
        drop(writer);
        // Clear the pending failures only after their patterns are stored.
        let notes = self.store.notes(&success.session)?;
        let mut known = SessionNotes::read(&notes.read());
        known.pending.clear();
        let owed = std::mem::take(&mut known.owed);
        let credits = known.succeeded(&success.code);
        let helped: Vec<String> = credits.iter().map(|credit| credit.id.clone()).collect();
        let keys: Vec<&str> = answered.iter().map(|a| a.error_key.as_str()).collect();
        let trials = known.trials.overcame(&keys, &helped);
        notes.save(&serde_json::to_vec(&known).map_err(crate::store::Error::from)?)?;
        drop(notes);
        self.store_outcomes(
            &success.session,
            owed.and(PendingOutcomes { credits, trials }),
        )?;
        report.helped = helped;
        if !report.learned.is_empty() || !report.merged.is_empty() {
            report.not_learned = None;
        }
        Ok(report)
    }

    /// Stores the pattern of a failure and its success, or counts up the procedure with an equal one.
    fn keep(
        &self,
        writer: &mut Writer,
        failure: &Pending,
        success: &Success,
    ) -> Result<Stored, Error> {
        let is_equal = |pattern: &Pattern| {
            pattern.error_key == failure.error_key
                && same_code(&pattern.working_code, &success.code)
        };
        let pattern = Pattern {
            error_key: failure.error_key.clone(),
            error_line: failure.error_line.clone(),
            failing_code: failure.code.clone(),
            working_code: success.code.clone(),
            success_output: cut(&success.output),
            tool: String::new(),
        };
        let procedure = Procedure {
            worded_by: "agent".to_owned(),
            ..patterns::procedure(pattern, &stamp(self.now))?
        };
        let mut known = patterns::known(writer)?;
        patterns::store_unless(writer, &mut known, procedure, &is_equal, self.now)
    }
}

/// Failures that a success answers: the last one, and earlier ones with a similar goal, one per
/// error.
fn answered(pending: &[Pending], code: &str) -> Vec<Pending> {
    let mut answered: Vec<Pending> = Vec::new();
    for (i, failure) in pending.iter().rev().enumerate() {
        let is_new = answered.iter().all(|a| a.error_key != failure.error_key);
        if is_new && (i == 0 || of_commands(&failure.code, code) >= SAME_GOAL) {
            answered.push(failure.clone());
        }
    }
    answered
}

/// Returns `true` if two pieces of code differ only in white space around lines and in empty lines.
fn same_code(a: &str, b: &str) -> bool {
    let lines = |code: &str| -> Vec<String> {
        let lines = code.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    lines(a) == lines(b)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(OUTPUT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, Record as _, Scope};
    use crate::store::Scoped;
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
        adviser: &HintService<'_>,
        code: &str,
        error: &str,
        session: &str,
    ) -> Result<HintReport, Error> {
        adviser.record_failure(&HintOptions {
            error: error.to_owned(),
            command: Some(code.to_owned()),
            session: Some(session.to_owned()),
            max_hints: 5,
            ..HintOptions::default()
        })
    }

    fn success(adviser: &HintService<'_>, code: &str, session: &str) -> RecordReport {
        let success = Success {
            code: code.to_owned(),
            output: "ALK inhibitor\n".repeat(100),
            session: session.to_owned(),
        };
        adviser.record_success(&success).unwrap()
    }

    #[test]
    fn a_failure_and_its_success_become_a_hint_for_the_next_session() {
        with(|adviser| {
            let first = failure(adviser, WRONG, ERROR, "a").unwrap();
            assert!(first.hints.is_empty());
            assert_eq!(success(adviser, RIGHT, "a").learned, ["PROC-001-r00000"]);
            let second = failure(adviser, WRONG, ERROR, "b").unwrap();
            assert_eq!(second.hints.len(), 1);
            assert_eq!(second.hints[0].working_code, RIGHT);
            assert!(second.hints[0].success_output.chars().count() <= OUTPUT + 1);
            let again = success(adviser, RIGHT, "b");
            assert_eq!(
                (again.merged, again.helped),
                (
                    vec!["PROC-001-r00000".to_owned()],
                    vec!["PROC-001-r00000".to_owned()]
                )
            );
            let entry = adviser
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
    fn what_answers_no_failure_is_not_learnt() {
        with(|adviser| {
            assert!(success(adviser, RIGHT, "a").not_learned.is_some());
            failure(adviser, WRONG, ERROR, "a").unwrap();
            // Another session has no failure to answer; a plain retry answers it without a fix.
            assert!(success(adviser, RIGHT, "b").learned.is_empty());
            assert!(success(adviser, WRONG, "a").learned.is_empty());
            assert!(success(adviser, RIGHT, "a").learned.is_empty());
        });
    }

    #[test]
    fn retries_in_between_belong_to_the_same_success() {
        with(|adviser| {
            let error = |text: &str, code: &str| {
                failure(adviser, code, text, "a").unwrap();
            };
            error("error: quota exceeded", "git push origin main");
            error("ValueError: bad thing", "python3 x.py --fast");
            error("OSError: worse thing", "python3 x.py --slow");
            error("OSError: worse thing", "python3 x.py --slower");
            let report = success(adviser, "python3 x.py", "a");
            assert_eq!(report.learned.len(), 2, "{report:?}");
        });
    }

    #[test]
    fn what_was_forgotten_is_not_relearnt() {
        with(|adviser| {
            failure(adviser, WRONG, ERROR, "a").unwrap();
            success(adviser, RIGHT, "a");
            let procedure: Procedure = adviser.store.get("PROC-001-r00000").unwrap();
            let mut writer = adviser.store.write(&mut || "r".to_owned()).unwrap();
            writer
                .remove(
                    Kind::Procedure,
                    "PROC-001-r00000",
                    &procedure.content(),
                    adviser.now,
                )
                .unwrap();
            drop(writer);
            failure(adviser, WRONG, ERROR, "b").unwrap();
            assert!(success(adviser, RIGHT, "b").learned.is_empty());
        });
    }
}
