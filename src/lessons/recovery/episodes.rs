//! Stores the patterns of recoveries as procedures that nobody has worded yet.
//!
//! A known pattern gains one occurrence for each session and step that showed it; one with a
//! tombstone is not stored again. The newest [`MOST`] that nobody has worded or approved stay. An
//! older one is removed for good; its tombstone keeps it from coming back when its session is read
//! again.
//!
//! Deliberately absent: recoveries that are no pattern. The session file has them.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use serde_json::json;
use serde_json::value::RawValue;

use super::change::Change;
use super::pattern::plain;
use crate::lessons::recovery::episodes;
use crate::lessons::telling::table::prepare;
use crate::model::{EPISODE, Kind, OBSERVED, Origin, Pattern, Procedure, QUARANTINED, Record as _};
use crate::store::Error::Locked;
use crate::store::workspace::records::raw;
use crate::store::workspace::{Error, stamp};
use crate::store::{ForgottenRecords, RemovalMode, Scoped, Selection, Writer};

/// Status of a procedure in the source document.
pub(crate) const LEARNED: &str = "procedure_learned";
/// Status of a session without a pattern in the source document.
pub(crate) const NOTHING: &str = "No_Failure_Detected";
/// Maximum number of patterns that nobody has worded or approved.
pub(crate) const MOST: usize = 200;

/// Ids of stored records.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// New procedures.
    pub(crate) learned: Vec<String>,
    /// Known ones that were seen again.
    pub(crate) merged: Vec<String>,
    /// Number of patterns whose record was deleted on purpose.
    pub(crate) forgotten: usize,
}

/// Procedures with a pattern, when a session is processed.
pub(crate) struct Known {
    procedures: Vec<Procedure>,
    /// Indexes into `procedures` by error line.
    of_error: HashMap<String, Vec<usize>>,
    /// Procedures seen again in this session.
    seen: BTreeMap<usize, bool>,
    forgotten: ForgottenRecords,
}

impl Known {
    pub(crate) fn read(writer: &Writer) -> Result<Self, Error> {
        let mut known = Self {
            procedures: Vec::new(),
            of_error: HashMap::new(),
            seen: BTreeMap::new(),
            forgotten: writer.store().all_forgotten()?,
        };
        let all = writer.store().list::<Procedure>(&Selection::default())?;
        let all = all.records.into_iter();
        all.for_each(|procedure| known.add(procedure));
        Ok(known)
    }

    fn add(&mut self, procedure: Procedure) {
        if let Some(pattern) = &procedure.pattern {
            let place = self.procedures.len();
            let line = plain(&pattern.error_line);
            self.of_error.entry(line).or_default().push(place);
        }
        self.procedures.push(procedure);
    }

    /// Returns the index of the procedure with the same failure and the same change.
    fn same(&self, wanted: &Pattern) -> Option<usize> {
        let change = Change::of(wanted);
        let places = self.of_error.get(&plain(&wanted.error_line))?;
        places.iter().copied().find(|place| {
            let own = self.procedures[*place].pattern.as_ref();
            own.is_some_and(|own| {
                let is_equal = plain(&own.failing_code) == plain(&wanted.failing_code)
                    && plain(&own.working_code) == plain(&wanted.working_code);
                is_equal || change.is_some() && Change::of(own) == change
            })
        })
    }

    /// Counts up a procedure seen again. Returns `false` if this occurrence is counted already.
    fn count_up(&mut self, place: usize, origin: Origin) -> bool {
        let is_new = count_up(&mut self.procedures[place], origin);
        *self.seen.entry(place).or_default() |= is_new;
        is_new
    }

    /// Writes the counts of procedures seen again: the file once.
    pub(crate) fn write_counts(&self, writer: &mut Writer, seen: &str) -> Result<(), Error> {
        let counted = self.seen.iter().filter(|(_, is_counted)| **is_counted);
        let changes = counted.map(|(place, _)| {
            let procedure = &self.procedures[*place];
            let fields = vec![
                ("occurrences", raw(&procedure.occurrences)?),
                ("origins", raw(&procedure.origins)?),
                ("last_seen", raw(&seen)?),
            ];
            Ok((procedure.procedure_id.clone(), fields))
        });
        let changes = changes.collect::<Result<Vec<_>, Error>>()?;
        Ok(writer.update_all(Kind::Procedure, &changes)?)
    }
}

/// Stores a pattern, or counts up the procedure that has it.
pub(crate) fn store(
    writer: &mut Writer,
    known: &mut Known,
    pattern: &Pattern,
    origin: Origin,
    now: DateTime<Utc>,
    stored: &mut Stored,
) -> Result<(), Error> {
    if let Some(place) = known.same(pattern) {
        if known.count_up(place, origin) {
            let id = &known.procedures[place].procedure_id;
            stored.merged.push(id.clone());
        }
        return Ok(());
    }
    let new = procedure(pattern.clone(), &stamp(now))?;
    let procedure = Procedure {
        state: state(pattern).to_owned(),
        origins: vec![origin],
        ..new
    };
    let content = procedure.content();
    let is_forgotten = |content: &str| known.forgotten.has_content(Kind::Procedure, content);
    if is_forgotten(&content) || is_forgotten(&marked(&content)) {
        stored.forgotten += 1;
        return Ok(());
    }
    let procedure = writer.append(procedure, now)?;
    stored.learned.push(procedure.procedure_id.clone());
    known.add(procedure);
    Ok(())
}

/// Procedure of a pattern, in the words of the calls.
pub(crate) fn procedure(pattern: Pattern, seen: &str) -> Result<Procedure, Error> {
    Ok(Procedure {
        created_at: seen.to_owned(),
        status: LEARNED.to_owned(),
        data: document(&pattern)?,
        distilled_by: "offline".to_owned(),
        worded_by: "program".to_owned(),
        occurrences: Some(1.0),
        last_seen: seen.to_owned(),
        trust: OBSERVED.to_owned(),
        pattern: Some(pattern),
        ..Procedure::default()
    })
}

/// The eight fields of the source document, in the words of the calls. Nobody has named the cause.
fn document(pattern: &Pattern) -> Result<Box<RawValue>, Error> {
    let error = match pattern.error_line.as_str() {
        "" => &pattern.error_key,
        line => line,
    };
    raw(&json!({
        "procedure_name": pattern.error_key,
        "semantic_description": format!("{} failed: {error}", pattern.tool),
        "initial_failure_summary": format!("{}\n{error}", pattern.failing_code),
        "identified_root_cause": error,
        "successful_intervention": pattern.working_code,
        "learned_procedure_steps": [pattern.working_code],
        "critical_contextual_cues": [error],
        "example_scenario_abstract": "",
    }))
}

/// State of a new pattern: quarantined if a text looks like prompt injection.
fn state(pattern: &Pattern) -> &'static str {
    let texts = [
        &pattern.error_line, &pattern.failing_code, &pattern.working_code,
    ];
    let is_suspicious = |text: &&String| memctl_redact::admit(text).quarantine.is_some();
    if texts.iter().any(is_suspicious) {
        QUARANTINED
    } else {
        EPISODE
    }
}

/// Counts up a procedure seen again; returns `false` if this occurrence is already counted.
pub(crate) fn count_up(procedure: &mut Procedure, origin: Origin) -> bool {
    if procedure.origins.iter().any(|known| known.is_same(&origin)) {
        return false;
    }
    procedure.origins.push(origin);
    procedure.occurrences = Some(procedure.occurrences.unwrap_or(1.0) + 1.0);
    true
}

/// Removes the episodes beyond the newest [`MOST`] for good. The order of the file is the order of
/// their age.
pub(crate) fn prune(writer: &mut Writer, known: &Known, now: DateTime<Utc>) -> Result<(), Error> {
    let is_episode = |one: &&Procedure| one.is_episode() && one.lesson.is_empty();
    let mut episodes: Vec<&Procedure> = known.procedures.iter().filter(is_episode).collect();
    episodes.truncate(episodes.len().saturating_sub(MOST));
    let contents: Vec<String> = episodes.iter().map(|one| marked(&one.content())).collect();
    let ids = episodes.iter().map(|one| one.procedure_id.as_str());
    let removals: Vec<(&str, &str)> = ids.zip(contents.iter().map(String::as_str)).collect();
    if !removals.is_empty() {
        writer.remove_several(Kind::Procedure, &removals, now, RemovalMode::Permanent)?;
    }
    Ok(())
}

/// Content for the tombstone of a removed episode. It differs from that of a lesson that a person
/// deleted.
fn marked(content: &str) -> String {
    format!("{EPISODE}\n{content}")
}

/// Stores the pattern of a running session. Does nothing if another process holds the lock; the end
/// of the session learns it then.
pub(crate) fn learn_at_once(
    store: &Scoped,
    pattern: &Pattern,
    (session, project): (&str, &str),
    now: DateTime<Utc>,
    random: fn() -> String,
) -> Result<(), Error> {
    let Some(mut writer) = writer(store, random)? else {
        return Ok(());
    };
    let mut known = Known::read(&writer)?;
    let origin = Origin {
        session: session.to_owned(),
        workspace: project.to_owned(),
        step: 0,
        live: true,
        call: String::new(),
    };
    let mut stored = Stored::default();
    episodes::store(&mut writer, &mut known, pattern, origin, now, &mut stored)?;
    known.write_counts(&mut writer, &stamp(now))?;
    prepare(writer.store())
}

/// Opens the store for a hook. `None` if the records are elsewhere, or another process writes.
fn writer(store: &Scoped, random: fn() -> String) -> Result<Option<Writer>, Error> {
    if store.is_apart()? {
        return Ok(None);
    }
    match store.write(&mut || random()) {
        Err(Locked { .. }) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}
