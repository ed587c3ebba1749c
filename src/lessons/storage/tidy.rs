//! Joins lessons with the same words and retires those that stopped working, without a model.
//!
//! An observed lesson gives its origins to the approved one, which stays. One run is one change, which
//! `memctl undo` reverts.

use serde::Serialize;

use super::new_lesson::{is_in_use, is_same, supersede};
use super::table::prepare;
use crate::model::{Evidence, Kind, LessonScope, Procedure, Trust};
use crate::store::Selection;
use crate::store::workspace::{Error, Records, raw};

/// Minimum mean of the posterior of a lesson that is told.
const LEAST: f64 = 0.3;

/// Outcome of [`tidy()`].
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct TidyReport {
    /// Lessons that were merged, each with the one that stays.
    pub merged: Vec<Merged>,
    /// Ids of lessons that retired, because following them did not help.
    pub retired: Vec<String>,
    /// `true` if nothing was written.
    pub dry_run: bool,
}

/// A lesson that became part of another.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Merged {
    /// Id of the lesson that went.
    pub id: String,
    /// Id of the lesson that stays.
    pub into: String,
}

/// Merges equal lessons and retires those that stopped working.
pub fn tidy(records: &Records<'_>, dry_run: bool) -> Result<TidyReport, Error> {
    let mut writer = records.writer()?;
    let trust = writer.store().trust_snapshot();
    let all = writer
        .store()
        .list::<Procedure>(&Selection::default())?
        .records;
    let mut report = TidyReport {
        dry_run,
        ..TidyReport::default()
    };
    let mut distinct: Vec<Procedure> = Vec::new();
    // Approved ones first, so that the others merge into them.
    let mut lessons: Vec<Procedure> = all.into_iter().filter(is_in_use).collect();
    lessons.sort_by_key(|one| trust.level(one) == Trust::Observed);
    for lesson in lessons {
        let is_observed = trust.level(&lesson) == Trust::Observed;
        if is_observed && is_demoted(lesson.evidence()) {
            let retired = [("state", raw(&"retired")?)];
            if !dry_run {
                writer.update(Kind::Procedure, &lesson.procedure_id, &retired)?;
            }
            report.retired.push(lesson.procedure_id);
            continue;
        }
        let twin = distinct
            .iter_mut()
            .find(|existing| is_observed && is_twin(existing, &lesson));
        let Some(twin) = twin else {
            distinct.push(lesson);
            continue;
        };
        for origin in &lesson.origins {
            if !twin.origins.contains(origin) {
                twin.origins.push(origin.clone());
            }
        }
        twin.occurrences =
            Some(twin.occurrences.unwrap_or(1.0) + lesson.occurrences.unwrap_or(1.0));
        let seen = [
            ("origins", raw(&twin.origins)?),
            ("occurrences", raw(&twin.occurrences)?),
        ];
        if !dry_run {
            writer.update(Kind::Procedure, &twin.procedure_id, &seen)?;
            supersede(&mut writer, &lesson, &twin.procedure_id)?;
        }
        report.merged.push(Merged {
            id: lesson.procedure_id,
            into: twin.procedure_id.clone(),
        });
    }
    if !dry_run {
        prepare(writer.store())?;
    }
    Ok(report)
}

/// Returns `true` if two lessons say the same of the same reach.
fn is_twin(a: &Procedure, b: &Procedure) -> bool {
    let scope = |one: &Procedure| one.applies.as_ref().map(|of| of.scope).unwrap_or_default();
    let of_one_project = || {
        let mut projects = a.origins.iter().map(|origin| &origin.workspace);
        projects.any(|name| b.origins.iter().any(|origin| origin.workspace == *name))
    };
    is_same(&a.lesson, &b.lesson)
        && scope(a) == scope(b)
        && (scope(a) == LessonScope::Everywhere || of_one_project())
}

/// Returns `true` if a lesson has failed too often to be told.
pub(crate) fn is_demoted(evidence: Evidence) -> bool {
    evidence.posterior() < LEAST
}
