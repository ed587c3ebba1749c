//! Stores a checked lesson: as a new procedure, as one more origin of an existing one, or as a replacement; and
//! reports similar lessons.
//!
//! The eight fields of the procedure are filled from the lesson's own words. A lesson of an agent is observed;
//! a lesson of a person counts as their word. An agent never replaces what a person approved: both stay, and
//! the person decides. Only equal words make two lessons the same without a decision by the agent or the
//! person. The search for similar lessons loads no model.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::patterns::{count_up, existing, learned};
use crate::lessons::storage::table::prepare;
use crate::lessons::storage::words::{CheckedLesson, LessonArgs, refuse};
use crate::model::text::{key_words, plain_words, similarity, weight};
use crate::model::{
    Applies, Evidence, Kind, LessonFile, LessonScope, Origin, Procedure, Record as _, Trust,
};
use crate::store::Writer;
use crate::store::workspace::{Error, Records, raw, repair_warnings};
use memctl_files::{hex, named};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// Maximum number of lessons of one session: more are noise.
const MOST_OF_SESSION: usize = 12;
/// Maximum length of a title, in characters.
const LONGEST_TITLE: usize = 80;

/// Author of a lesson, and the place where it was learned.
#[derive(Debug, Clone)]
pub(crate) struct LessonOrigin<'a> {
    /// `agent:HOST`, `model:NAME` or `person`.
    pub(crate) by: String,
    /// Trust in it: `User` for what a person says at a terminal, else `Observed`.
    pub(crate) trust: Trust,
    /// Session; empty for a person.
    pub(crate) session: String,
    /// Name of the project.
    pub(crate) project: String,
    /// Directory of the project.
    pub(crate) root: Option<&'a Path>,
}

/// Outcome for one lesson.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct StoredLesson {
    /// Id of the lesson.
    pub id: String,
    /// `true` if it is new, `false` if a known one was seen again.
    pub added: bool,
    /// The lesson.
    pub lesson: String,
    /// Conditions under which it is told.
    pub applies: Applies,
    /// Trust level: `observed`, or `user` for a person's own.
    pub trust: &'static str,
    /// Lessons that say nearly the same, nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Neighbour>,
    /// Id of the lesson that it replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
    /// Non-fatal problems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Stores a lesson. A refusal depends on what is stored: a tombstone, an unknown id, too many.
#[expect(clippy::too_many_lines, reason = "one decision after the other, under one lock")]
pub(crate) fn store_lesson(
    records: &Records<'_>,
    checked: &CheckedLesson,
    args: &LessonArgs,
    origin: &LessonOrigin<'_>,
) -> Result<StoredLesson, Error> {
    let files = hashed(&args.files, origin.root)?;
    let mut writer = records.writer()?;
    let all = existing(&writer)?;
    let lessons: Vec<&Procedure> = all.iter().filter(|existing| is_in_use(existing)).collect();
    let named = |field, id: &Option<String>| {
        let Some(id) = id else {
            return Ok::<_, Error>(None);
        };
        let whole = writer.store().resolve(Kind::Procedure, id.trim(), None);
        let is_it =
            |existing: &&Procedure| whole.as_ref().is_ok_and(|id| existing.procedure_id == *id);
        match all.iter().find(is_it) {
            None => refuse(
                field,
                format!("there is no lesson `{id}`"),
                "use an id that an answer named, such as PROC-003",
            ),
            found => Ok(found),
        }
    };
    let same = named("same", &args.same)?;
    let replaced = named("replaces", &args.replaces)?;
    let seen = Origin {
        session: memctl_redact::redact(&origin.session).text.into_owned(),
        workspace: origin.project.clone(),
        live: true,
        ..Origin::default()
    };
    let equal = || {
        let mut lessons = lessons.iter().copied();
        lessons.find(|existing| is_same(&existing.lesson, &checked.lesson))
    };
    if let Some(existing) = same.or_else(equal) {
        let mut report = seen_again(&mut writer, existing, &seen, records)?;
        report.warnings.clone_from(&checked.left_out);
        // The new one was stored before its author knew the other.
        let own = equal().filter(|own| own.procedure_id != existing.procedure_id);
        if let Some(own) = own.filter(|own| own.origins.contains(&seen)) {
            supersede(&mut writer, own, &existing.procedure_id)?;
        }
        report
            .warnings
            .extend(repair_warnings(writer.take_repairs()));
        return Ok(report);
    }
    let of_session = lessons.iter().filter(|existing| {
        !seen.session.is_empty() && existing.origins.iter().any(|o| o.session == seen.session)
    });
    if of_session.count() >= MOST_OF_SESSION {
        return refuse(
            "lesson",
            format!("this session has {MOST_OF_SESSION} lessons already"),
            "replace a weaker one with `replaces`",
        );
    }
    let is_person = origin.trust == Trust::User;
    let procedure = Procedure {
        origins: vec![seen],
        trust: origin.trust.name().to_owned(),
        lesson: checked.lesson.clone(),
        applies: Some(checked.applies.clone()),
        files,
        worded_by: origin.by.clone(),
        ..learned(raw(&document(checked))?, &origin.by, &records.timestamp())
    };
    let removed = writer
        .store()
        .tombstone_of(Kind::Procedure, &procedure.content())?;
    if let Some(removed) = removed.filter(|_| !is_person) {
        return refuse(
            "lesson",
            format!("the same was removed as `{}`", removed.id),
            "leave it out",
        );
    }
    let near = nearest(&checked.lesson, &checked.applies, &lessons);
    let procedure = writer.append(procedure, records.now)?;
    let id = procedure.procedure_id;
    if is_person {
        writer.vouch(Kind::Procedure, &id)?;
    }
    let mut report = StoredLesson {
        id: id.clone(),
        added: true,
        lesson: checked.lesson.clone(),
        applies: checked.applies.clone(),
        trust: origin.trust.name(),
        near,
        warnings: checked.left_out.clone(),
        ..StoredLesson::default()
    };
    if let Some(old) = replaced {
        report.near.retain(|near| near.id != old.procedure_id);
        if is_person || writer.store().trust_snapshot().level(old) == Trust::Observed {
            supersede(&mut writer, old, &id)?;
            report.replaced = Some(old.procedure_id.clone());
        } else {
            report.warnings.push(format!(
                "a person approved `{}`; both stay until they decide: memctl review",
                old.procedure_id
            ));
        }
    }
    report
        .warnings
        .extend(repair_warnings(writer.take_repairs()));
    prepare(writer.store())?;
    Ok(report)
}

/// Returns `true` for a procedure with a lesson that may be told.
pub(crate) fn is_in_use(procedure: &Procedure) -> bool {
    !procedure.lesson.is_empty()
        && procedure.superseded_by.is_empty()
        && !matches!(procedure.state.as_str(), "retired" | "quarantined")
}

/// Counts a session that says the same.
fn seen_again(
    writer: &mut Writer,
    existing: &Procedure,
    seen: &Origin,
    records: &Records<'_>,
) -> Result<StoredLesson, Error> {
    if !existing.origins.contains(seen) {
        count_up(writer, existing, Some(seen), &records.timestamp())?;
    }
    let trust = writer.store().trust_snapshot().level(existing);
    Ok(StoredLesson {
        id: existing.procedure_id.clone(),
        lesson: existing.lesson.clone(),
        applies: existing.applies.clone().unwrap_or_default(),
        trust: trust.name(),
        ..StoredLesson::default()
    })
}

/// Retires a procedure that another one replaces.
pub(super) fn supersede(writer: &mut Writer, old: &Procedure, by: &str) -> Result<(), Error> {
    let changes = [("superseded_by", raw(&by)?), ("state", raw(&"retired")?)];
    writer.update(Kind::Procedure, &old.procedure_id, &changes)?;
    Ok(())
}

/// The eight fields of the procedural-memory document, from what was said.
fn document(checked: &CheckedLesson) -> serde_json::Value {
    let CheckedLesson {
        lesson, applies, ..
    } = checked;
    let errors = || applies.errors.iter().chain(&applies.expected);
    let cues: Vec<&String> = errors().chain(&applies.commands).collect();
    let described: Vec<&str> = std::iter::once(lesson.as_str())
        .chain(errors().map(String::as_str))
        .collect();
    json!({
        "procedure_name": memctl_redact::beginning(lesson, LONGEST_TITLE),
        "semantic_description": described.join(" · "),
        "initial_failure_summary": errors().next().cloned().unwrap_or_default(),
        "identified_root_cause": "",
        "successful_intervention": lesson,
        "learned_procedure_steps": [lesson],
        "critical_contextual_cues": cues,
        "example_scenario_abstract": "",
    })
}

/// Files with the hash of their content.
fn hashed(files: &[String], root: Option<&Path>) -> Result<Vec<LessonFile>, Error> {
    let read = |path: &String| {
        let path = path.trim().to_owned();
        let hash = root.map(|root| file_hash(root, &path));
        match hash {
            Some(None) => refuse(
                "files",
                format!("`{path}` is not below the project, or cannot be read"),
                "name files of the project by their path from its root",
            ),
            hash => Ok(LessonFile {
                path,
                hash: hash.flatten().unwrap_or_default(),
            }),
        }
    };
    files.iter().map(read).collect()
}

/// Least likeness of a neighbour, from 0 to 1.
const NEAR: f64 = 0.3;
/// Maximum number of neighbours.
const MOST: usize = 3;

/// A lesson near a new one.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Neighbour {
    /// Id of the lesson.
    pub id: String,
    /// The lesson.
    pub lesson: String,
}

/// Returns the nearest of `all`, nearest first.
pub(crate) fn nearest(lesson: &str, applies: &Applies, all: &[&Procedure]) -> Vec<Neighbour> {
    let own = words(lesson, Some(applies));
    let likeness = |existing: &Procedure| {
        similarity(
            &own,
            &words(&existing.lesson, existing.applies.as_ref()),
            &weight,
        )
    };
    let mut near: Vec<(f64, &Procedure)> = all
        .iter()
        .map(|existing| (likeness(existing), *existing))
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    near.sort_by(|a, b| {
        b.0.total_cmp(&a.0)
            .then_with(|| a.1.procedure_id.cmp(&b.1.procedure_id))
    });
    let near = near.into_iter().take(MOST).map(|(_, existing)| Neighbour {
        id: existing.procedure_id.clone(),
        lesson: existing.lesson.clone(),
    });
    near.collect()
}

/// Returns `true` if two lessons have the same words.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    let plain = |text: &str| plain_words(&text.replace('\'', " "));
    plain(a) == plain(b)
}

/// Words of a lesson and of its conditions.
fn words(lesson: &str, applies: Option<&Applies>) -> BTreeSet<String> {
    let phrases = applies.into_iter().flat_map(|applies| {
        let errors = applies.errors.iter().chain(&applies.expected);
        applies.commands.iter().chain(errors)
    });
    let texts = phrases.map(String::as_str).chain([lesson]);
    texts.flat_map(key_words).collect()
}

/// Largest file that is compared, in bytes.
const LARGEST: u64 = 4 << 20;

/// Returns the path of a file that a lesson was read from and that has changed since.
pub(crate) fn changed_file(root: &Path, files: &[LessonFile]) -> Option<String> {
    let has_changed = |file: &&LessonFile| {
        !file.hash.is_empty() && file_hash(root, &file.path).as_deref() != Some(&file.hash)
    };
    files.iter().find(has_changed).map(|file| file.path.clone())
}

/// Hash of a file of a project, as a lesson stores it; `None` if it is outside of the project, behind
/// a link, too large or unreadable.
pub(crate) fn file_hash(root: &Path, path: &str) -> Option<String> {
    let path: PathBuf = Path::new(path.trim()).components().collect();
    let path = path.strip_prefix(".").unwrap_or(&path);
    let bytes = named::directory(root).read(path, LARGEST).ok()??;
    Some(hex(&Sha256::digest(&bytes)))
}

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

/// Merges equal lessons and retires those that stopped working, without a model. An observed lesson gives its origins to
/// the approved one, which stays. One run is one change, which `memctl undo` reverts.
pub fn tidy(records: &Records<'_>, dry_run: bool) -> Result<TidyReport, Error> {
    let mut writer = records.writer()?;
    let trust = writer.store().trust_snapshot();
    let all = existing(&writer)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_share_rare_words() {
        let of = |id: &str, lesson: &str| Procedure {
            procedure_id: id.to_owned(),
            lesson: lesson.to_owned(),
            ..Procedure::default()
        };
        let all = [
            of(
                "PROC-001",
                "Run the tests with `PYTHONPATH=src bin/py -m pytest`.",
            ),
            of("PROC-002", "Start the gateway with `make db-up` first."),
            of(
                "PROC-003",
                "Run the build with `BUILD_EPOCH=0 tools/build <bundle>`.",
            ),
        ];
        let all: Vec<&Procedure> = all.iter().collect();
        let near = nearest(
            "Use `PYTHONPATH=src bin/py -m pytest -q` for tests.",
            &Applies::default(),
            &all,
        );
        assert_eq!(near.len(), 1, "{near:?}");
        assert_eq!(near[0].id, "PROC-001");
        assert!(is_same("Run `make db-up`.", "run make db-up"));
        assert!(!is_same("Run `make db-up`.", "run make db-down"));
    }
}
