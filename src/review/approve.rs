//! Decisions about proposals: a person approves an observed record or rejects it. And the decision to trust a
//! workspace, with the records that it would unlock.
//!
//! An approval is checked as a whole before the first write: one wrong id, or an action for a rule without
//! patterns, approves nothing. A suspicious text is reported again, and the person decides. A rejected record
//! stays in its file with the reason, so that nothing proposes it again; `memctl forget` deletes a record.
//!
//! Deliberately absent: approval of executions (`accept` judges an output), and approval by anything but an id.

use serde::Serialize;
use serde_json::{Value, json};

use crate::lessons::storage::table::prepare;
use crate::model::{
    CANDIDATE, CallAction, Correction, EPISODE, Judgement, Kind, Memory, Procedure, QUARANTINED,
    Record as _, Reflexion, Trust, with_origin,
};
use crate::review::queue::{Part, Waiting, WaitingKind};
use crate::rules::place::activation::{activate, follow_up};
use crate::rules::place::changes::update_rule;
use crate::rules::{acting, checked};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, document, entry, level, locate, repair_warnings};
use crate::store::{Basis, Entry, Here, Scoped, Selection, Writer};

/// Approved record.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Approved {
    /// Id of the record.
    pub id: String,
    /// Id that it had before; `None` if it is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_id: Option<String>,
    /// Kind of the record.
    pub kind: Kind,
    /// State before: `observed`, `quarantined`, `episode`, `candidate`, `approved` or `user`.
    pub before: &'static str,
    /// Trust level now.
    pub trust: Trust,
    /// Texts of the record, as in the queue.
    #[serde(skip)]
    pub parts: Vec<Part>,
    /// Guardrail files that the rule was added to; only for a former candidate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<String>,
    /// Files that hold the regression test; only for a former candidate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// Answer to a call that breaks the rule, which it now acts on; `None` for other records, and for a
    /// rule that no call can be seen to break.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_calls: Option<CallAction>,
    /// `true` for a rule in use without a skill that no call can be seen to break.
    #[serde(skip)]
    pub is_silent_at_calls: bool,
    /// Reasons to check the record again, and non-fatal problems.
    pub warnings: Vec<String>,
}

/// Checks what an approval would do, and returns the records. Nothing is written.
fn approvable(
    store: &Scoped,
    ids: &[String],
    action: Option<CallAction>,
) -> Result<Vec<(Kind, String)>, Error> {
    let mut named: Vec<(Kind, String)> = Vec::new();
    for id in ids {
        let (kind, id) = locate(store, id)?;
        let refused = |hint: String| {
            let why = "rules, lessons and notes wait for approval";
            let message = format!("the {} `{id}` cannot be approved: {why}", kind.noun());
            Err(Error::input(message, hint))
        };
        match kind {
            Kind::Execution => return refused(format!("memctl accept {id}")),
            Kind::Session => return refused("memctl list lessons".to_owned()),
            Kind::Reflexion => {
                let rule: Reflexion = store.get(&id)?;
                if let Some(new) = successor(store, &rule)? {
                    let new = new.reflexion_id;
                    let message = format!("`{new}` has taken the place of `{id}`");
                    let hint = format!("memctl forget {new}, then memctl approve {id}");
                    return Err(Error::input(message, hint));
                }
                if action.is_some() && rule.seen_by.is_empty() {
                    let message =
                        format!("`{id}` has no patterns: no call can be seen to break it");
                    return Err(Error::input(message, format!("memctl approve {id}")));
                }
            }
            _ => {}
        }
        if !named.contains(&(kind, id.clone())) {
            named.push((kind, id));
        }
    }
    Ok(named)
}

/// Approves records, named by id or id prefix. A rule with patterns acts on calls from then on, with
/// this action; `None` keeps its own. A rule of a project that is not `here` is one of this project from then on.
pub fn approve(
    workspace: &Workspace,
    ids: &[String],
    action: Option<CallAction>,
    here: Option<&Here<'_>>,
) -> Result<Vec<Approved>, Error> {
    let named = approvable(&workspace.store, ids, action)?;
    let mut writer = workspace.writer()?;
    let entries = named
        .iter()
        .map(|(kind, id)| entry(writer.store(), *kind, id));
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    let mut approved = Vec::new();
    let mut activated = Vec::new();
    for entry in &entries {
        let settled = match entry.kind {
            Kind::Reflexion => Some(settle(&mut writer, &entry.id, here)?),
            _ => None,
        };
        let entry = settled.as_ref().unwrap_or(entry);
        approved.push(approve_one(&mut writer, entry, action, &mut activated)?);
    }
    if approved.iter().any(|record| record.kind == Kind::Procedure) {
        prepare(writer.store())?;
    }
    let trouble: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    if let Some(first) = approved.first_mut() {
        first.warnings.extend(trouble);
    }
    drop(writer);
    for rule in activated {
        let of_it = |record: &&mut Approved| record.id == rule.reflexion_id;
        if let Some(record) = approved.iter_mut().find(of_it) {
            let files = follow_up(workspace, &rule, &mut record.warnings);
            (record.guardrails, record.tests) = (files.guardrails, files.tests);
        }
    }
    Ok(approved)
}

/// Approves one record. A record of a person counts already. A candidate counts from now on and is added to
/// `activated`; its guardrail and its test are written after the writer is closed.
fn approve_one(
    writer: &mut Writer,
    entry: &Entry,
    action: Option<CallAction>,
    activated: &mut Vec<Reflexion>,
) -> Result<Approved, Error> {
    let (id, kind) = (&entry.id, entry.kind);
    let own = document(entry).map_or(Trust::Observed, |document| document.trust);
    // The data file may claim a trust level that no user of this machine has granted.
    let counted = level(writer.store(), entry) != Trust::Observed;
    let text = texts(writer.store(), entry)?;
    let suspicions = text.suspicions().into_iter();
    let mut warnings: Vec<String> = suspicions
        .map(|reason| format!("`{id}` is suspicious: {reason}"))
        .collect();
    let mut before = own.name();
    let mut changes: Vec<(&str, Value)> = Vec::new();
    if own == Trust::Observed && kind != Kind::Reflexion {
        changes.push(("trust", json!("approved")));
    }
    if kind == Kind::Procedure {
        let procedure: Procedure = writer.store().get(id)?;
        if procedure.state == QUARANTINED && warnings.is_empty() {
            warnings.push(format!(
                "`{id}` was quarantined when it was learned; nothing in it is suspicious today"
            ));
        }
        if procedure.state == "retired" {
            warnings.push(format!(
                "`{id}` is retired, since it stopped working: it is found, and not told"
            ));
        }
        if procedure.state == QUARANTINED || procedure.is_episode() {
            before = if procedure.is_episode() {
                EPISODE
            } else {
                QUARANTINED
            };
            changes.push(("state", json!("active")));
        }
    } else if kind == Kind::Reflexion && own == Trust::Observed {
        let mut rule: Reflexion = writer.store().get(id)?;
        let was_candidate = rule.is_candidate();
        activate(writer, &mut rule)?;
        if was_candidate {
            before = CANDIDATE;
            activated.push(rule);
        }
    }
    if !changes.is_empty() {
        writer.update(kind, id, &changes)?;
    }
    if own == Trust::User && counted {
        warnings.clear();
    } else if own != Trust::Observed && !counted && !matches!(before, QUARANTINED | EPISODE) {
        before = "observed";
    }
    // A local record got the id of a shared one.
    let id_now = writer.store().current_id(kind, id)?;
    writer.vouch(kind, &id_now)?;
    let at_calls = match kind {
        Kind::Reflexion => let_act(writer, &id_now, action, &mut warnings)?,
        _ => None,
    };
    let is_silent_at_calls = kind == Kind::Reflexion && {
        let rule: Reflexion = writer.store().get(&id_now)?;
        rule.skill.is_empty() && rule.seen_by.is_empty() && rule.is_in_use()
    };
    Ok(Approved {
        local_id: (id_now != *id).then(|| id.clone()),
        id: id_now,
        kind,
        before,
        trust: if own == Trust::User {
            own
        } else {
            Trust::Approved
        },
        parts: text.parts,
        guardrails: Vec::new(),
        tests: Vec::new(),
        at_calls,
        is_silent_at_calls,
        warnings,
    })
}

/// Takes away what would keep an approved rule from being told: a successor that is gone, and a project that is not
/// here.
fn settle(writer: &mut Writer, id: &str, here: Option<&Here<'_>>) -> Result<Entry, Error> {
    let before: Reflexion = writer.store().get(id)?;
    let mut rule = before.clone();
    if !rule.superseded_by.is_empty() {
        rule.superseded_by.clear();
        rule.weigh();
    }
    if let Some(here) = here.filter(|here| here.is_strange_to(&rule)) {
        let project = here.project_name().unwrap_or_default();
        let of_others = rule
            .said
            .iter_mut()
            .filter(|said| !said.workspace.is_empty());
        // A rule without a project would act everywhere.
        of_others.filter(|_| !project.is_empty()).for_each(|said| {
            said.workspace.clone_from(&project);
        });
    }
    update_rule(writer, &before, &mut rule)?;
    entry(writer.store(), Kind::Reflexion, &rule.reflexion_id)
}

/// Returns the rule in force that has taken the place of another.
fn successor(store: &Scoped, rule: &Reflexion) -> Result<Option<Reflexion>, Error> {
    if rule.superseded_by.is_empty() {
        return Ok(None);
    }
    let entry = store.find(Kind::Reflexion, &rule.superseded_by)?;
    let successor = entry.and_then(|entry| entry.parse::<Reflexion>().ok());
    Ok(successor.filter(Reflexion::is_in_use))
}

/// Texts of a record, as the queue shows them, with the output that its test will require.
fn texts(store: &Scoped, entry: &Entry) -> Result<Waiting, Error> {
    let mut text = Waiting::about(WaitingKind::Candidate, entry.kind, &entry.id, String::new());
    let mut correction: Option<Correction> = None;
    match entry.kind {
        Kind::Procedure => text.add_procedure(&store.get::<Procedure>(&entry.id)?),
        Kind::Memory => text.add_memory(&store.get::<Memory>(&entry.id)?),
        Kind::Reflexion => {
            let rule: Reflexion = store.get(&entry.id)?;
            text.add_rule(&rule);
            let from = store.find(Kind::Correction, &rule.correction_id)?;
            correction = from.and_then(|from| from.parse().ok());
        }
        _ => {
            let own: Correction = store.get(&entry.id)?;
            text.part("correction", &own.user_correction);
            correction = Some(own);
        }
    }
    let expected = correction.and_then(|correction| correction.expected_output);
    text.part("expected", expected.as_ref().map_or("", |json| json.get()));
    Ok(text)
}

/// Lets a rule act on the calls that its patterns match. Returns its answer to them.
fn let_act(
    writer: &mut Writer,
    id: &str,
    action: Option<CallAction>,
    warnings: &mut Vec<String>,
) -> Result<Option<CallAction>, Error> {
    let rule: Reflexion = writer.store().get(id)?;
    if rule.seen_by.is_empty() {
        return Ok(None);
    }
    if let Err(reason) = checked(&rule.seen_by) {
        warnings.push(format!("it acts on no call: {reason}"));
        return Ok(None);
    }
    let action = action.unwrap_or(rule.action);
    if action != rule.action {
        writer.update(Kind::Reflexion, id, &[("action", action)])?;
    }
    if !rule.is_in_use() {
        return Ok(None);
    }
    writer.let_act(id)?;
    acting::prepare(writer.store())?;
    Ok(Some(action))
}

/// Outcome of [`reject()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Rejected {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Record on one line.
    pub summary: String,
    /// Reason of the rejection, as stored.
    pub reason: String,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Rejects a candidate rule or an observed procedure, given by id or id prefix. A rejected procedure is
/// retired.
///
/// # Errors
///
/// [`Error::Refused`] for a record of another kind, and for one that counts: `memctl forget`
/// deletes it.
pub fn reject(workspace: &Workspace, id: &str, reason: &str) -> Result<Rejected, Error> {
    let (kind, id) = locate(&workspace.store, id)?;
    let mut writer = workspace.writer()?;
    let entry = entry(writer.store(), kind, &id)?;
    let redacted = memctl_redact::redact(reason.trim());
    let reason = redacted.text.into_owned();
    let judgement = Judgement {
        verdict: "discard".to_owned(),
        reason: reason.clone(),
        by: "user".to_owned(),
        at: workspace.timestamp(),
    };
    let mut changes: Vec<(&str, Value)> = vec![("judgement", json!(judgement))];
    let candidate = match kind {
        Kind::Reflexion => Some(writer.store().get::<Reflexion>(&id)?),
        _ => None,
    };
    let candidate = candidate.filter(Reflexion::is_candidate);
    let summary = if let Some(rule) = candidate {
        rule.summary()
    } else if kind == Kind::Procedure && level(writer.store(), &entry) == Trust::Observed {
        changes.push(("state", json!("retired")));
        writer.store().get::<Procedure>(&id)?.summary()
    } else {
        let why = "only rules and lessons that were proposed here are proposals";
        let hint = format!("memctl forget {id}, which deletes it for everybody");
        let message = format!("the {} `{id}` cannot be rejected: {why}", kind.noun());
        return Err(Error::input(message, hint));
    };
    writer.update(kind, &id, &changes)?;
    if kind == Kind::Procedure {
        prepare(writer.store())?;
    }
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    warnings.extend(redaction_warning(redacted.found));
    Ok(Rejected {
        id,
        kind,
        summary,
        reason,
        warnings,
    })
}

/// Kinds whose text reaches an agent as more than data, in the order in which they are shown.
const ACTING: [Kind; 3] = [Kind::Reflexion, Kind::Procedure, Kind::Memory];

/// Records that do not count yet, by kind.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Untrusted {
    /// Rules, which would be in prompts and at the start of sessions.
    pub rules: Vec<UntrustedRecord>,
    /// Procedures, which would be told outside of the fence.
    pub procedures: Vec<UntrustedRecord>,
    /// Memories that do not count yet.
    pub memories: Vec<UntrustedRecord>,
}

/// Record that its file calls approved, and that this user does not vouch for.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct UntrustedRecord {
    /// Id of the record.
    pub id: String,
    /// Skill of the record; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Redacted text of the record.
    pub text: String,
    /// Reason to quarantine the text, such as prompt injection; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspicious: Option<String>,
}

impl Untrusted {
    /// Returns the records with the name of each kind.
    pub fn by_kind(&self) -> [(&'static str, &[UntrustedRecord]); 3] {
        [
            ("rules", &self.rules),
            ("procedures", &self.procedures),
            ("memories", &self.memories),
        ]
    }
}

/// Returns the records that trust in this workspace, or in the remote `origin`, would unlock.
pub fn untrusted(store: &Scoped, origin: Option<&str>) -> Result<Untrusted, Error> {
    let pulled = origin
        .map(|beginning| store.pulled_as(beginning))
        .transpose()?;
    let store = pulled.as_ref().map_or(store, |pulled| &pulled.store);
    let of_kind = |kind| -> Result<Vec<UntrustedRecord>, Error> {
        let entries = untrusted_entries(store, kind)?;
        let records = entries
            .iter()
            .filter_map(document)
            .map(|document| UntrustedRecord {
                id: match &pulled {
                    Some(pulled) => with_origin(&document.id, &pulled.origin),
                    None => document.id,
                },
                skill: document.skill,
                suspicious: memctl_redact::admit(&document.content).quarantine,
                text: without_repeated_lines(&memctl_redact::redact(&document.content).text),
            });
        Ok(records.collect())
    };
    Ok(Untrusted {
        rules: of_kind(Kind::Reflexion)?,
        procedures: of_kind(Kind::Procedure)?,
        memories: of_kind(Kind::Memory)?,
    })
}

/// Returns a text without the lines that another line has, whole: the fields of a lesson repeat it.
fn without_repeated_lines(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        let says = |one: &str, other: &str| one.contains(other.trim_end_matches('.'));
        if !lines.iter().any(|other| says(other, line)) {
            lines.retain(|other| !says(line, other));
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// Trusts this workspace as a source: its approvals count from now on.
pub fn trust(workspace: &Workspace) -> Result<(), Error> {
    let mut random = || (workspace.random)();
    let approvals = workspace.store.approvals();
    approvals.trust(Basis::Trusted, &workspace.timestamp(), &mut random)
}

/// Revokes all trust in this workspace: the decision about it, and the approvals of its records.
pub fn revoke(workspace: &Workspace) -> Result<(), Error> {
    let mut entries = Vec::new();
    for kind in ACTING {
        workspace
            .store
            .each_entry(kind, &Selection::default(), &mut |entry| {
                entries.push(entry);
            })?;
    }
    workspace.store.approvals().revoke(&entries)
}

/// Makes the approvals of a remote origin count. Returns the full origin.
pub fn trust_origin(workspace: &Workspace, beginning: &str) -> Result<String, Error> {
    let pulled = workspace.store.pulled_as(beginning)?;
    let approvals = workspace.store.approvals();
    approvals.trust_origin(&pulled.origin, &mut || (workspace.random)())?;
    Ok(pulled.origin)
}

/// Entries of a kind that are trusted by their file, but by no one here.
fn untrusted_entries(store: &Scoped, kind: Kind) -> Result<Vec<Entry>, Error> {
    let trust_snapshot = store.trust_snapshot();
    let mut found = Vec::new();
    store.each_entry(kind, &Selection::default(), &mut |entry| {
        let own = document(&entry).map_or(Trust::Observed, |document| document.trust);
        if own != Trust::Observed && trust_snapshot.of_entry(&entry, own) == Trust::Observed {
            found.push(entry);
        }
    })?;
    Ok(found)
}
