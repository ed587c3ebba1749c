//! Checks the store, and repairs damage.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use serde::Serialize;

use crate::model::error::message as chain;
use crate::model::{Correction, Kind, Reflexion, SkillPath};
use crate::store::files::directory::{TOMBSTONES, unreadable_identity};
use crate::store::skill::Skills;
use crate::store::workspace::{Error, Workspace};
use crate::store::{
    DataFile, Entry, FORMAT, LateCalls, MERGE_AGAIN, Problem, ProblemKind, Repaired, Scoped,
    Selection,
};
use crate::upkeep::merge;
use crate::upkeep::merge::Conflict as MergeConflict;
use memctl_files::text::first_conflict;
use memctl_files::{Directory, named};

/// Result of the check and the repair.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct DoctorReport {
    /// `true` if nothing has to be repaired; the lists may still hold advice.
    pub healthy: bool,
    /// Problems of the data files.
    pub problems: Vec<Problem>,
    /// Data files that a newer program wrote: this one reads them, and writes nothing to them.
    pub newer: Vec<NewerFile>,
    /// References to records that do not exist.
    pub dangling: Vec<String>,
    /// Problems of the skills; a skill still works unless the problem says otherwise.
    pub skills: Vec<String>,
    /// Repaired files.
    pub repaired: Vec<Repaired>,
    /// Files with the conflict markers of a merge besides the data files, each with the way out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmerged: Vec<String>,
    /// Fields that two branches have set to different values.
    pub conflicts: Vec<MergeConflict>,
    /// Links, pipes and devices among the data and skill files, which are never opened, and what
    /// keeps this user from reading or writing.
    pub irregular: Vec<String>,
    /// Calls whose rules were not matched in time, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_calls: Option<String>,
    /// Problems of the version control setup; filled in by the caller.
    pub git: Vec<String>,
    /// Offer to install the merge driver; filled in by the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_offer: Option<String>,
}

impl DoctorReport {
    /// Returns `true` if a list names anything, were it advice.
    pub fn has_findings(&self) -> bool {
        !(self.healthy
            && self.problems.is_empty()
            && self.newer.is_empty()
            && self.skills.is_empty()
            && self.late_calls.is_none()
            && self.git.is_empty())
    }
}

/// Checks the store; with `repair`, repairs torn and damaged files first.
pub fn doctor(workspace: &Workspace, repair: bool) -> Result<DoctorReport, Error> {
    let store = &workspace.store;
    let mut report = DoctorReport::default();
    if repair {
        for file in DataFile::ALL {
            report.repaired.extend(store.repair(file, workspace.now)?);
        }
    }
    read_all(store, &mut report)?;
    report
        .problems
        .extend(unreadable_identity(store.directory()));
    report.unmerged.extend(unmerged_in(store.directory()));
    report.irregular = irregular(workspace);
    report.late_calls = LateCalls::of(store.directory()).sentence();
    let rules = store.list::<Reflexion>(&Selection::default())?.records;
    check_skills(&workspace.skills_dir, &rules, &mut report);
    let formats = store.formats()?.into_iter();
    let newer = formats.filter(|(_, format)| *format > FORMAT);
    report.newer.extend(newer.map(|(file, format)| NewerFile {
        file: file.name(),
        format,
    }));
    // A value that only Python can read is kept and does no harm.
    let harmless = |p: &Problem| p.kind == ProblemKind::Unreadable;
    report.healthy = report.problems.iter().all(harmless)
        && report.dangling.is_empty()
        && report.conflicts.is_empty()
        && report.irregular.is_empty()
        && report.unmerged.is_empty();
    Ok(report)
}

/// Returns the links, pipes and devices among the files, and what keeps this user from writing.
fn irregular(workspace: &Workspace) -> Vec<String> {
    let mut found = workspace.store.directory().irregular(true);
    found.extend(Directory::at(&workspace.skills_dir).irregular(false));
    let found = found.iter().map(ToString::to_string);
    let unwritable = workspace.store.unwritable().map(|error| {
        format!(
            "nothing can be written: {}; agents are still answered, and nothing is learned",
            chain(&error)
        )
    });
    found.chain(unwritable).collect()
}

/// Reads every record once: kinds that refer to others before those, so that only ids that are named are
/// kept. The lists of the report have the order of [`Kind::ALL`].
fn read_all(store: &Scoped, report: &mut DoctorReport) -> Result<(), Error> {
    let forgotten = store.all_forgotten()?;
    let mut referring: Vec<(String, String)> = Vec::new();
    for kind in Kind::ALL.into_iter().rev() {
        let named: HashSet<&str> = referring.iter().map(|(_, to)| to.as_str()).collect();
        // References to deleted records are intended.
        let mut there: HashSet<String> = forgotten.ids(kind).map(str::to_owned).collect();
        let (mut conflicts, mut refers) = (Vec::new(), Vec::new());
        let problems = store.inspect(kind, &mut |entry| {
            if store.admits(entry) {
                conflicts.extend(merge::conflicts_in(entry));
                refers.extend(refers_to(entry).map(|to| (entry.id.clone(), to)));
                there.extend(named.get(entry.id.as_str()).map(|id| (*id).to_owned()));
            }
        })?;
        referring.retain(|(_, to)| !there.contains(to));
        let relation = match kind {
            Kind::Execution => "corrects",
            _ => "comes from",
        };
        let missing = referring.iter();
        let missing = missing.map(|(id, to)| format!("{id} {relation} {to}, which is not there"));
        report.dangling.splice(0..0, missing);
        report.problems.splice(0..0, problems);
        report.conflicts.splice(0..0, conflicts);
        referring = refers;
    }
    Ok(())
}

/// Returns the id of the record that an entry comes from; `None` if it names none, as a rule written by hand.
fn refers_to(entry: &Entry) -> Option<String> {
    let to = match entry.kind {
        Kind::Reflexion => entry.parse().map(|rule: Reflexion| rule.correction_id),
        Kind::Correction => entry.parse().map(|one: Correction| one.execution_id),
        _ => return None,
    };
    to.ok().filter(|to| !to.is_empty())
}

/// Maximum size of a file of a skill that is searched for conflict markers, in bytes.
const SEARCHED: u64 = 16 << 20;

/// End of a sentence about a file that git could not merge.
const MARKED: &str = "has conflict markers of git";

/// Names the one shared file of the memory besides the data files, if it has conflict markers.
fn unmerged_in(memory: &Directory) -> Option<String> {
    let text = memory.read(TOMBSTONES, SEARCHED).ok()??;
    first_conflict(&text)?;
    let path = memory.join(TOMBSTONES);
    Some(format!("`{}` {MARKED}: {MERGE_AGAIN}", path.display()))
}

/// Reports the problems of the skills, and their files with the conflict markers of a merge.
fn check_skills(skills_dir: &Path, rules: &[Reflexion], report: &mut DoctorReport) {
    let Ok(skills) = Skills::open(skills_dir) else {
        return;
    };
    let found = &mut report.skills;
    let listing = match skills.list() {
        Ok(listing) => listing,
        Err(error) => return found.push(error.to_string()),
    };
    found.extend(listing.problems);
    let mut files = BTreeSet::new();
    for path in &listing.skills {
        match skills.load(path) {
            Ok(skill) => found.extend(skill.problems),
            Err(error) => found.push(error.to_string()),
        }
        if let Ok(examples) = skills.examples(path) {
            found.extend(examples.problems);
        }
        files.extend(skills.guardrail_files(path).unwrap_or_default());
        files.extend(skills.test_files(path).unwrap_or_default());
    }
    let is_marked = |text: String| first_conflict(text.as_bytes()).is_some();
    files.retain(|file| named::read_text(file, SEARCHED).is_ok_and(is_marked));
    report.unmerged.extend(files.iter().map(|file| {
        let is_written = file
            .extension()
            .is_some_and(|end| end == "py" || end == "yaml");
        let way = if is_written {
            "delete it, then: memctl test --export"
        } else {
            "edit it, then `git add` it"
        };
        format!("`{}` {MARKED}: {way}", file.display())
    }));
    let is_lost = |rule: &&Reflexion| {
        let skill = rule.skill.parse::<SkillPath>();
        rule.is_in_use() && skill.is_ok_and(|skill| !listing.skills.contains(&skill))
    };
    for rule in rules.iter().filter(is_lost) {
        let (id, skill) = (&rule.reflexion_id, &rule.skill);
        found.push(format!(
            "{id} is a rule of `{skill}`, which is not there; for another skill: memctl correct SKILL \"…\" --replaces {id}"
        ));
    }
}

/// Data file that a newer program wrote.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct NewerFile {
    /// Name of the file.
    pub file: &'static str,
    /// Number of its format.
    pub format: u64,
}
