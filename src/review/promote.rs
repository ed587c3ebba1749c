//! Promotes a rule or a lesson to the user store, so that it counts in every project of the user.
//!
//! The copy belongs to no project: it has none of the places where the original was observed, and names
//! the original instead. The original stays in use, since others may share its memory, and names its copy.
//!
//! Invariants: the copy has the trust that this user gives the original here; the claim of its
//! file does not count. A text is promoted once. The two writes are one change, in two undo journals.

use serde::Serialize;
use serde_json::json;

use crate::lessons::storage::table::prepare;
use crate::model::text::plain_words;
use crate::model::{
    Kind, PROMOTED_TO, Procedure, Record, Reflexion, Trust, USER_STORE, with_origin,
};
use crate::store::Selection;
use crate::store::workspace::{Error, Workspace, locate, repair_warnings};

/// Field of the copy that names the original.
const FROM: &str = "promoted_from";

/// Promoted record.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Promoted {
    /// Id of the original.
    pub id: String,
    /// Id of the copy: `REFL-001@user`.
    pub user_id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Content on one line.
    pub summary: String,
    /// `false` if the user store has the same text already.
    pub created: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Copies a rule or a lesson, named by id or id prefix, to the user store.
pub fn promote(workspace: &Workspace, user: &Workspace, id: &str) -> Result<Promoted, Error> {
    let (kind, id) = locate(&workspace.store, id)?;
    let refused = |reason: &str| {
        let message = format!("{} `{id}` cannot be promoted: {reason}", kind.noun());
        Err(Error::input(message, format!("memctl show {id}")))
    };
    let trust_snapshot = workspace.store.trust_snapshot();
    match kind {
        Kind::Reflexion => {
            let rule: Reflexion = workspace.store.get(&id)?;
            if !rule.is_in_use() {
                return refused("it is not in use");
            }
            if trust_snapshot.level(&rule) == Trust::Observed {
                return refused("nobody has approved it here");
            }
            copied(workspace, user, &rule, rule_copy(&rule))
        }
        Kind::Procedure => {
            let procedure: Procedure = workspace.store.get(&id)?;
            if !procedure.is_active() || procedure.is_episode() {
                return refused("nobody has worded or approved it");
            }
            let level = trust_snapshot.level(&procedure);
            copied(workspace, user, &procedure, lesson_copy(&procedure, level))
        }
        _ => refused("only rules and lessons are of use in every project"),
    }
}

/// Appends the copy, unless the user store has its text, and then marks the original. If the mark
/// fails, a second call completes it.
fn copied<R: Record>(
    workspace: &Workspace,
    user: &Workspace,
    record: &R,
    copy: R,
) -> Result<Promoted, Error> {
    let id = record.labels().id;
    let mut writer = user.writer()?;
    let text = |record: &R| plain_words(&record.content());
    let of = |record: &R| {
        let labels = record.labels();
        (labels.skill, labels.status)
    };
    let is_same = |other: &R| of(other) == of(&copy) && text(other) == text(&copy);
    let existing = writer.store().list::<R>(&Selection::default())?.records;
    let existing = existing
        .iter()
        .find(|other| is_same(other))
        .map(|existing| existing.labels().id);
    let created = existing.is_none();
    let own = if let Some(existing) = existing {
        existing
    } else {
        let added = writer.append(copy, user.now)?.labels().id;
        let directory = workspace.store.directory();
        let project = directory.parent().and_then(|path| path.file_name());
        let from = json!({
            "workspace": workspace.store.identity().map(|identity| identity.origin),
            "project": project.map(|name| name.to_string_lossy()),
            "id": id,
        });
        writer.update(R::KIND, &added, &[(FROM, from)])?;
        added
    };
    if R::KIND == Kind::Procedure {
        prepare(writer.store())?;
    }
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    drop(writer);
    let user_id = with_origin(&own, USER_STORE);
    let mut writer = workspace.writer()?;
    writer.update(R::KIND, &id, &[(PROMOTED_TO, &user_id)])?;
    if R::KIND == Kind::Procedure {
        prepare(writer.store())?;
    }
    warnings.extend(repair_warnings(writer.take_repairs()));
    Ok(Promoted {
        id,
        user_id,
        kind: R::KIND,
        summary: record.summary(),
        created,
        warnings,
    })
}

/// Rule of every project: without the messages that bind it to some, and without links to records
/// that only its own memory has.
fn rule_copy(rule: &Reflexion) -> Reflexion {
    Reflexion {
        reflexion_id: String::new(),
        correction_id: String::new(),
        generated_test_ids: Vec::new(),
        validated_by_test: false,
        said: Vec::new(),
        also_corrected_by: Vec::new(),
        times_told: None,
        times_heeded: None,
        times_recurred: None,
        times_overridden: None,
        ..rule.clone()
    }
}

/// Lesson of every project, with the trust that this user gives it here.
fn lesson_copy(procedure: &Procedure, level: Trust) -> Procedure {
    Procedure {
        procedure_id: String::new(),
        origins: Vec::new(),
        files: Vec::new(),
        trust: match level {
            Trust::Observed => String::new(),
            level => level.name().to_owned(),
        },
        ..procedure.clone()
    }
}
