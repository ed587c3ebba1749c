//! Lists records, and shows the stored entry of one record.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::value::RawValue;

use super::remember::misfits;
use crate::model::{
    Evidence, Execution, Kind, Memory, MemoryType, Procedure, Receipts, Reflexion, SkillPath,
    Trust, split_origin, utc, with_origin,
};
use crate::store::workspace::{Error, Workspace, document, entry, locate};
use crate::store::{Entry, Scoped, Selection, TrustSnapshot};

/// Records of one kind.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ListReport {
    /// Kind of the records.
    pub kind: Kind,
    /// Number of records visible in the scope, with the requested status.
    pub total: u64,
    /// Newest records, newest first.
    pub records: Vec<Listed>,
    /// `true` if only some records were asked for, by status or type.
    #[serde(skip)]
    pub is_filtered: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Record in a list.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Listed {
    /// Id of the record.
    pub id: String,
    /// Skill of the record; `None` if it has none.
    pub skill: Option<String>,
    /// Time of creation: RFC 3339, UTC.
    pub created: String,
    /// Content on one line.
    pub summary: String,
    /// Type of a memory; `None` for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_type: Option<MemoryType>,
    /// User of the record, for kinds that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Time of expiry; `None` if it never expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Trust level; `None` if the entry cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Status of a rule or a procedure; `None` for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Supplier of the record; `None` if the record does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Lesson, pattern and use of a procedure; `None` for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lesson: Option<ListedLesson>,
    /// Messages that a rule was heard in; `None` for other records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<ListedSaid>,
    /// Receipts of a rule: what agents did after they were told it; `None` if it was never told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts: Option<Receipts>,
}

/// Content of a procedure in a list, and how often it was told and to what effect.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ListedLesson {
    /// Lesson in one line; empty if nobody has worded it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lesson: String,
    /// Failing code; empty without a pattern.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failing_code: String,
    /// Working code; empty without a pattern.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub working_code: String,
    /// Author of the lesson; empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub worded_by: String,
    /// Number of times followed, with success or in vain.
    pub followed: u64,
    /// Number of times told, followed with success, and followed in vain.
    #[serde(flatten)]
    pub evidence: Evidence,
}

impl From<Procedure> for ListedLesson {
    fn from(procedure: Procedure) -> Self {
        let evidence = procedure.evidence();
        let pattern = procedure.pattern.unwrap_or_default();
        Self {
            lesson: procedure.lesson,
            failing_code: pattern.failing_code,
            working_code: pattern.working_code,
            worded_by: procedure.worded_by,
            followed: evidence.helped.saturating_add(evidence.harmed),
            evidence,
        }
    }
}

/// Messages that a rule was heard in.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ListedSaid {
    /// Words of the person in the newest message.
    pub quote: String,
    /// Session of the newest message.
    pub session: String,
    /// Number of messages.
    pub times: usize,
    /// Number of sessions.
    pub sessions: usize,
}

impl ListedSaid {
    fn of(rule: &Reflexion) -> Option<Self> {
        let newest = rule.said.last()?;
        Some(Self {
            quote: newest.quote.clone(),
            session: newest.session.clone(),
            times: rule.said.len(),
            sessions: rule.sessions(),
        })
    }
}

impl Listed {
    /// Converts an entry; one that cannot be read keeps only its id.
    pub(crate) fn of(entry: Entry, trust_snapshot: &TrustSnapshot) -> Self {
        let Some(document) = document(&entry) else {
            return Self {
                id: entry.id,
                ..Self::default()
            };
        };
        let trust = trust_snapshot.of_entry(&entry, document.trust);
        let mut listed = Self::default();
        match document.kind {
            Kind::Procedure => {
                let procedure = entry.parse::<Procedure>().ok();
                listed.lesson = procedure.map(ListedLesson::from);
            }
            Kind::Reflexion => {
                let rule = entry.parse::<Reflexion>().unwrap_or_default();
                listed.said = ListedSaid::of(&rule);
                listed.receipts = Some(rule.receipts()).filter(|receipts| receipts.told > 0);
            }
            _ => {}
        }
        Self {
            id: entry.id,
            skill: document.skill,
            created: utc(&document.created),
            summary: document.summary,
            memory_type: document.memory_type,
            user_id: document.user_id,
            expires_at: document.expires.as_deref().map(utc),
            trust: Some(trust),
            status: document.status,
            source: document.source,
            ..listed
        }
    }
}

/// Record with its stored entry.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ShowReport {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Trust level; `None` if the entry cannot be read.
    pub trust: Option<Trust>,
    /// Status of a rule or a procedure; `None` for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Supplier of the record; `None` if the record does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Stored entry, unchanged.
    pub record: Box<RawValue>,
    /// Misfits with the type of a memory (other programs and people edit the files too), and
    /// non-fatal problems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Returns the newest records of a kind, of one status if given.
pub fn list(
    workspace: &Workspace,
    kind: Kind,
    skill: Option<&SkillPath>,
    status: Option<&str>,
    limit: usize,
) -> Result<ListReport, Error> {
    let has_status = |entry: &Entry| document(entry).is_some_and(|d| d.status.as_deref() == status);
    let is_meant = status.map(|_| &has_status as &dyn Fn(&Entry) -> bool);
    newest(workspace, kind, skill, is_meant, limit)
}

/// Returns the newest memories of a type.
pub fn list_memories(
    workspace: &Workspace,
    memory_type: MemoryType,
    limit: usize,
) -> Result<ListReport, Error> {
    // An unreadable entry has no type; only an unfiltered list shows it.
    let is_meant = |entry: &Entry| {
        let memory = entry.parse::<Memory>();
        memory.is_ok_and(|memory| memory.memory_type == memory_type)
    };
    newest(workspace, Kind::Memory, None, Some(&is_meant), limit)
}

/// Returns the newest records of this workspace, of those that it has pulled and of the user store, of
/// those that are meant if not all are. The read is audited.
fn newest(
    workspace: &Workspace,
    kind: Kind,
    skill: Option<&SkillPath>,
    is_meant: Option<&dyn Fn(&Entry) -> bool>,
    limit: usize,
) -> Result<ListReport, Error> {
    let selection = Selection {
        skill,
        newest: is_meant.is_none().then_some(limit),
    };
    let (mut records, mut total, mut problems) = (Vec::new(), 0, Vec::new());
    let own = (None, workspace.store.clone());
    // A session belongs to the copy where it ran.
    let others = (kind != Kind::Session).then(|| workspace.store.others());
    let others = others.into_iter().flatten();
    for (origin, store) in
        std::iter::once(own).chain(others.map(|one| (Some(one.origin), one.store)))
    {
        let mut entries = VecDeque::new();
        let mut met = 0;
        problems.extend(store.each_entry(kind, &selection, &mut |entry| {
            if is_meant.is_none_or(|is_meant| is_meant(&entry)) {
                met += 1;
                entries.push_back(entry);
                if entries.len() > limit {
                    entries.pop_front();
                }
            }
        })?);
        total += if is_meant.is_none() {
            store.count(kind)?
        } else {
            met
        };
        let trust_snapshot = store.trust_snapshot();
        records.extend(entries.into_iter().rev().map(|entry| {
            let mut listed = Listed::of(entry, &trust_snapshot);
            if let Some(origin) = &origin {
                listed.id = with_origin(&listed.id, origin);
            }
            listed
        }));
    }
    if records
        .iter()
        .any(|record| split_origin(&record.id).1.is_some())
    {
        // The sort is stable: of two records of one time, the own one comes first.
        records.sort_by(|a, b| b.created.cmp(&a.created));
    }
    records.truncate(limit);
    let read = records.iter().map(|record| {
        let touched = (record.id.as_str(), record.user_id.as_deref());
        (kind, touched)
    });
    let unnoted = workspace.note_read(read);
    let warnings = problems.iter().map(|problem| {
        let repair = problem.kind.is_repairable();
        let hint = if repair { "; see `memctl doctor`" } else { "" };
        format!("{problem}{hint}")
    });
    let warnings = warnings.chain(unnoted);
    Ok(ListReport {
        kind,
        total,
        is_filtered: is_meant.is_some(),
        warnings: warnings.collect(),
        records,
    })
}

/// Returns one record, named by id, also of a pulled record, or id prefix.
pub fn show(workspace: &Workspace, id: &str) -> Result<ShowReport, Error> {
    let (workspace, id) = &workspace.of_id(id)?;
    let (kind, id) = locate(&workspace.store, id)?;
    let entry = entry(&workspace.store, kind, &id)?;
    let record = serde_json::from_slice(&entry.text).or_else(|_| {
        // An entry that is not JSON is shown as text.
        serde_json::value::to_raw_value(&String::from_utf8_lossy(&entry.text))
    });
    let mut warnings = Vec::new();
    if kind == Kind::Memory
        && let Ok(memory) = entry.parse::<Memory>()
    {
        warnings = misfits(memory.memory_type, &memory.metadata);
    }
    warnings.extend(workspace.note_read([(kind, (id.as_str(), entry.user_id().as_deref()))]));
    let document = document(&entry);
    let claimed = document.as_ref().map(|document| document.trust);
    Ok(ShowReport {
        id,
        kind,
        trust: claimed.map(|trust| workspace.store.trust_snapshot().of_entry(&entry, trust)),
        status: document.as_ref().and_then(|d| d.status.clone()),
        source: document.and_then(|d| d.source),
        record: record?,
        warnings,
    })
}

/// Returns the newest executions, oldest first.
pub fn recent_executions(
    store: &Scoped,
    skill: Option<&SkillPath>,
    limit: usize,
) -> Result<Vec<Execution>, Error> {
    let selection = Selection::newest(skill, limit);
    Ok(store.list(&selection)?.records)
}
