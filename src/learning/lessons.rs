//! Stores the lessons of a session: new fixes with their procedures, and counts of known ones.
//! Episodes that are no advice are in `episodes`.
//!
//! A fix and its procedure are two writes, procedure first. If the process ends between them, the
//! next read of the session finds the procedure without a fix and completes the pair.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::guard;
use crate::learn::distil::{self, Lesson, Recovery};
use crate::learn::fix::difference::Difference;
use crate::model::{Fix, Kind, Origin, PROJECT_SCOPE, Procedure, Record as _, Verdict};
use crate::store::{ForgottenRecords, Selection, Writer};
use crate::workspace::execution_log_lines::raw;
use crate::workspace::{Error, stamp};

/// Ids of stored records.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// New fixes and procedures.
    pub(crate) learned: Vec<String>,
    /// Known fixes that were seen again.
    pub(crate) merged: Vec<String>,
    /// Number of lessons whose record was deleted on purpose.
    pub(crate) forgotten: usize,
    /// Number of new episodes.
    pub(crate) kept: usize,
}

/// Stores a lesson, or counts up the fix that matches it.
pub(crate) fn store_lesson(
    writer: &mut Writer,
    known: &mut Known,
    lesson: &Lesson,
    origin: Origin,
    now: DateTime<Utc>,
    stored: &mut Stored,
) -> Result<(), Error> {
    let seen = stamp(now);
    if let Some(place) = known.same(&lesson.recovery) {
        if known.count_up(place, origin) {
            stored.merged.push(known.fixes[place].fix_id.clone());
        }
        return Ok(());
    }
    let mut fix = fix_of(&lesson.recovery, origin.clone(), &seen);
    if known.forgotten.has_content(Kind::Fix, &fix.content()) {
        stored.forgotten += 1;
        return Ok(());
    }
    let procedure = Procedure {
        created_at: seen.clone(),
        status: distil::LEARNED.to_owned(),
        data: raw(&lesson.procedure)?,
        distilled_by: "offline".to_owned(),
        occurrences: Some(1.0),
        last_seen: seen,
        origins: vec![origin],
        trust: "observed".to_owned(),
        ..Procedure::default()
    };
    // The procedure of a fix that stays may have been removed alone.
    if !known
        .forgotten
        .has_content(Kind::Procedure, &procedure.content())
    {
        let id = match known.alone(writer, &procedure)? {
            Some(id) => id,
            None => writer.append(procedure, now)?.procedure_id,
        };
        fix.procedure_id.clone_from(&id);
        stored.learned.push(id);
    }
    let fix = writer.append(fix, now)?;
    stored.learned.push(fix.fix_id.clone());
    known.add(fix);
    Ok(())
}

/// Maximum number of fixes of one error compared for similarity: the newest.
const SIMILAR: usize = 16;

/// Records known when a session is processed.
pub(crate) struct Known {
    pub(super) fixes: Vec<Fix>,
    /// Indexes into `fixes` by error key and tool, each with its normalised working code.
    of_error: HashMap<(String, String), Vec<(usize, String)>>,
    /// Fixes seen again in this session, and whether to count them up.
    seen: BTreeMap<usize, bool>,
    pub(super) forgotten: ForgottenRecords,
    /// Procedures without a fix; read at the first new lesson.
    alone: Option<Vec<Procedure>>,
}

impl Known {
    pub(crate) fn read(writer: &Writer) -> Result<Self, Error> {
        let mut known = Self {
            fixes: Vec::new(),
            of_error: HashMap::new(),
            seen: BTreeMap::new(),
            forgotten: writer.store().all_forgotten()?,
            alone: None,
        };
        let all = writer.store().list::<Fix>(&Selection::default())?;
        all.records.into_iter().for_each(|fix| known.add(fix));
        Ok(known)
    }

    pub(super) fn add(&mut self, fix: Fix) {
        let error = (fix.error_key.clone(), fix.tool.clone());
        let one = (self.fixes.len(), plain(&fix.working_code));
        self.of_error.entry(error).or_default().push(one);
        self.fixes.push(fix);
    }

    /// Fixes of one error, oldest first: their indexes and their normalised working code.
    fn of_error(&self, recovery: &Recovery) -> &[(usize, String)] {
        let error = (recovery.error_key.clone(), recovery.tool.clone());
        self.of_error.get(&error).map_or(&[], Vec::as_slice)
    }

    /// Returns the index of the fix that matches a lesson: equal working code first, then similar.
    /// Only the newest fixes are compared for similarity, so that thousands of failures stay cheap.
    fn same(&self, recovery: &Recovery) -> Option<usize> {
        // An episode is no fix, although the same code is one here.
        let is_fix = |(place, _): &&(usize, String)| !self.fixes[*place].is_episode();
        let candidates = self.of_error(recovery).iter().filter(is_fix);
        let fix = &recovery.fix;
        let wanted = plain(&fix.working_code);
        let difference = Difference::between(&fix.failing_code, &fix.working_code);
        let newest: Vec<_> = candidates.clone().rev().take(SIMILAR).collect();
        let mut similar = newest.into_iter().rev().filter(|(place, plain)| {
            let fix = &self.fixes[*place];
            is_similar(plain, &wanted) || has_difference(fix, &difference, &recovery.subject)
        });
        let mut equal = candidates.filter(|(_, plain)| *plain == wanted);
        let found = equal.next().or_else(|| similar.next());
        found.map(|(place, _)| self.merge_target(*place))
    }

    /// Index of the fix that a merged one has become part of, else the index itself.
    fn merge_target(&self, place: usize) -> usize {
        let Some(judgement) = &self.fixes[place].judgement else {
            return place;
        };
        let is_it = |fix: &Fix| fix.is_active() && fix.fix_id == judgement.into;
        let into = self.fixes.iter().position(is_it);
        into.filter(|_| judgement.verdict == Verdict::Merge)
            .unwrap_or(place)
    }

    /// Returns the index of the fix or episode with equal working code.
    pub(super) fn equal(&self, recovery: &Recovery) -> Option<usize> {
        let wanted = plain(&recovery.fix.working_code);
        let mut all = self.of_error(recovery).iter();
        all.find(|(_, plain)| *plain == wanted)
            .map(|(place, _)| *place)
    }

    /// Counts up a fix seen again, unless this occurrence is counted already. Returns `true` if it
    /// was counted.
    pub(super) fn count_up(&mut self, place: usize, origin: Origin) -> bool {
        let is_new = count_up(&mut self.fixes[place], origin);
        *self.seen.entry(place).or_default() |= is_new;
        is_new
    }

    /// Counts up the fixes seen again and their procedures, and writes each file once. A procedure
    /// that an interrupted run left behind gets the counts of its fix.
    pub(crate) fn write_counts(&self, writer: &mut Writer, seen: &str) -> Result<(), Error> {
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

/// Status of a new fix: `quarantined` if a text looks like prompt injection, else `active`.
fn status(recovery: &Recovery) -> &'static str {
    let fix = &recovery.fix;
    let said = [&recovery.error_key, &fix.failing_code, &fix.working_code];
    let suspicious = |text: &&String| guard::admit(text).quarantine.is_some();
    if said.iter().any(suspicious) {
        "quarantined"
    } else {
        "active"
    }
}

/// Builds the fix of a lesson.
pub(crate) fn fix_of(recovery: &Recovery, origin: Origin, seen: &str) -> Fix {
    let scope = if recovery.is_local { PROJECT_SCOPE } else { "" };
    Fix {
        created_at: seen.to_owned(),
        error_key: recovery.error_key.clone(),
        failing_code: recovery.fix.failing_code.clone(),
        working_code: recovery.fix.working_code.clone(),
        success_output: recovery.fix.success_output.clone(),
        tool: recovery.tool.clone(),
        occurrences: Some(1.0),
        origins: vec![origin],
        last_seen: seen.to_owned(),
        status: status(recovery).to_owned(),
        trust: "observed".to_owned(),
        error_line: recovery.error_line.clone(),
        subject: recovery.subject.clone(),
        scope: scope.to_owned(),
        ..Fix::default()
    }
}

/// Counts up a fix seen again; returns `false` if this occurrence is already counted.
pub(crate) fn count_up(fix: &mut Fix, origin: Origin) -> bool {
    if fix.origins.iter().any(|known| known.is_same(&origin)) {
        return false;
    }
    fix.origins.push(origin);
    fix.occurrences = Some(fix.occurrences.unwrap_or(1.0) + 1.0);
    true
}

/// Returns `true` if a lesson matches a fix: same error key and tool, similar working code or the
/// same difference.
pub(crate) fn is_same(fix: &Fix, lesson: &Lesson) -> bool {
    let recovery = &lesson.recovery;
    let text = &recovery.fix;
    let difference = Difference::between(&text.failing_code, &text.working_code);
    fix.error_key == recovery.error_key
        && fix.tool == recovery.tool
        && (same_way(&fix.working_code, &text.working_code)
            || has_difference(fix, &difference, &recovery.subject))
}

/// Returns `true` if two pieces of working code are similar, ignoring file names and numbers.
pub(crate) fn same_way(a: &str, b: &str) -> bool {
    let (old, new) = (plain(a), plain(b));
    old == new || is_similar(&old, &new)
}

/// Returns `true` if a fix makes this difference, in any call, and depends on these names.
fn has_difference(fix: &Fix, difference: &Difference, subject: &[String]) -> bool {
    !difference.is_empty()
        && fix.subject == subject
        && Difference::between(&fix.failing_code, &fix.working_code) == *difference
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
