//! Lessons of a memory, for people.

use serde::Serialize;

use crate::model::{LessonScope, Procedure};
use crate::store::workspace::Error;
use crate::store::{Here, Scoped, Selection, shown_project};

use super::new_lesson::is_in_use;

/// Lesson in a list.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct LessonRow {
    /// Id.
    pub id: String,
    /// The lesson.
    pub lesson: String,
    /// Reach.
    pub scope: LessonScope,
    /// Author: `agent:HOST`, `model:NAME`, `person` or `program`.
    pub worded_by: String,
    /// Trust level.
    pub trust: &'static str,
    /// Names of the projects that it is from.
    pub projects: Vec<String>,
    /// Number of sessions that said it.
    pub sessions: usize,
}

/// Lists the lessons in use, oldest first. With a place, only those that hold there or everywhere.
pub fn list(store: &Scoped, here: Option<&Here<'_>>) -> Result<Vec<LessonRow>, Error> {
    let trust = store.trust_snapshot();
    let all = store.list::<Procedure>(&Selection::default())?.records;
    let is_here =
        |one: &&Procedure| here.is_none_or(|here| one.is_of(&|name: &str| here.has_project(name)));
    let in_use = all.iter().filter(|one| is_in_use(one)).filter(is_here);
    let rows = in_use.map(|one| {
        let names = one.origins.iter().map(|o| shown_project(&o.workspace));
        let mut projects: Vec<String> = names.map(str::to_owned).collect();
        projects.sort();
        projects.dedup();
        projects.retain(|name| !name.is_empty());
        LessonRow {
            id: one.procedure_id.clone(),
            lesson: one.lesson.clone(),
            scope: one
                .applies
                .as_ref()
                .map(|applies| applies.scope)
                .unwrap_or_default(),
            worded_by: one.worded_by.clone(),
            trust: trust.level(one).name(),
            projects,
            sessions: one.origins.len(),
        }
    });
    Ok(rows.collect())
}
