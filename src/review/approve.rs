//! Approves observed records: a person takes responsibility for them.
//!
//! All ids are resolved before the first write: one wrong id approves nothing. A suspicious text is
//! reported again, and the person decides.
//!
//! Deliberately absent: approval of executions (`review` judges an output), and approval by
//! anything but an id.

use serde::Serialize;
use serde_json::json;

use crate::lessons::telling::table::prepare;
use crate::model::{
    CANDIDATE, CallAction, Correction, EPISODE, Kind, Memory, Procedure, QUARANTINED, Record,
    Reflexion, Trust,
};
use crate::rules::place::passed_on::{ActivationEffects, follow_up, lift};
use crate::rules::{acting, checked};
use crate::store::workspace::records::{entry, level, locate};
use crate::store::workspace::{Error, Workspace, repair_warnings};
use crate::store::{Entry, Writer};

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
    /// Content: names of the fields and their text.
    #[serde(skip)]
    pub says: Vec<(&'static str, String)>,
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
    /// Reasons to check the record again, and non-fatal problems.
    pub warnings: Vec<String>,
}

/// Approves records, named by id or id prefix. A rule with patterns acts on calls from then on, with
/// this action; `None` keeps its own.
pub fn approve(
    workspace: &Workspace,
    ids: &[String],
    action: Option<CallAction>,
) -> Result<Vec<Approved>, Error> {
    let mut named: Vec<(Kind, String)> = Vec::new();
    for id in ids {
        let found = locate(&workspace.store, id)?;
        if matches!(found.0, Kind::Execution | Kind::Session) {
            let (kind, id) = found;
            let hint = match kind {
                Kind::Execution => format!("memctl accept {id}"),
                _ => "memctl list lessons".to_owned(),
            };
            let why = "only procedures and imported notes are observed";
            let message = format!("{kind} `{id}` cannot be approved: {why}");
            return Err(Error::input(message, hint));
        }
        if !named.contains(&found) {
            named.push(found);
        }
    }
    let mut writer = workspace.writer()?;
    let entries = named
        .iter()
        .map(|(kind, id)| entry(writer.store(), *kind, id));
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    let mut approved = Vec::new();
    let mut lifted = Vec::new();
    for entry in &entries {
        let counted = level(writer.store(), entry) != Trust::Observed;
        let record = match entry.kind {
            Kind::Procedure => approve_procedure(&mut writer, entry)?,
            Kind::Memory => approve_words(&mut writer, entry, |memory: Memory| {
                vec![("memory", memory.content)]
            })?,
            Kind::Reflexion => approve_rule(&mut writer, entry, &mut lifted)?,
            Kind::Correction => approve_words(&mut writer, entry, |correction: Correction| {
                let expected = correction.expected_output.map(|json| json.get().to_owned());
                let expected = expected.map(|text| ("expected", text));
                let words = [("correction", correction.user_correction)];
                words.into_iter().chain(expected).collect()
            })?,
            _ => said(entry),
        };
        let record = with_id_now(&writer, record)?;
        writer.vouch(record.kind, &record.id)?;
        let record = match entry.kind {
            Kind::Reflexion => let_act(&mut writer, record, action)?,
            _ => record,
        };
        approved.push(match record.before {
            // The data file claims this trust level; no user of this machine has granted it.
            "approved" | "user" if !counted => Approved {
                warnings: suspicions(&record.id, &record.says),
                before: "observed",
                ..record
            },
            _ => record,
        });
    }
    if approved.iter().any(|record| record.kind == Kind::Procedure) {
        prepare(writer.store())?;
    }
    let trouble: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    if let Some(first) = approved.first_mut() {
        first.warnings.extend(trouble);
    }
    drop(writer);
    for rule in lifted {
        let of_it = |record: &&mut Approved| record.id == rule.reflexion_id;
        if let Some(record) = approved.iter_mut().find(of_it) {
            let ActivationEffects { guardrails, tests } =
                follow_up(workspace, &rule, &mut record.warnings);
            (record.guardrails, record.tests) = (guardrails, tests);
        }
    }
    Ok(approved)
}

/// Sets the id that a record has now: a local one got that of a shared record.
fn with_id_now(writer: &Writer, record: Approved) -> Result<Approved, Error> {
    let id = writer.store().current_id(record.kind, &record.id)?;
    let local_id = (id != record.id).then_some(record.id);
    Ok(Approved {
        id,
        local_id,
        ..record
    })
}

/// Lets a rule act on the calls that its patterns match.
fn let_act(
    writer: &mut Writer,
    mut record: Approved,
    action: Option<CallAction>,
) -> Result<Approved, Error> {
    let rule: Reflexion = writer.store().get(&record.id)?;
    if rule.seen_by.is_empty() {
        return match action {
            Some(_) => {
                let id = record.id;
                let message = format!("`{id}` has no patterns: no call can be seen to break it");
                Err(Error::input(message, format!("memctl approve {id}")))
            }
            None => Ok(record),
        };
    }
    if let Err(reason) = checked(&rule.seen_by) {
        record
            .warnings
            .push(format!("it acts on no call: {reason}"));
        return Ok(record);
    }
    let action = action.unwrap_or(rule.action);
    if action != rule.action {
        writer.update(Kind::Reflexion, &record.id, &[("action", action)])?;
    }
    if rule.is_in_use() {
        writer.let_act(&record.id)?;
        acting::prepare(writer.store())?;
        record.at_calls = Some(action);
    }
    Ok(record)
}

fn approve_procedure(writer: &mut Writer, entry: &Entry) -> Result<Approved, Error> {
    let procedure: Procedure = writer.store().get(&entry.id)?;
    let says = match &procedure.pattern {
        Some(pattern) => vec![
            ("lesson", procedure.lesson.clone()),
            ("error", pattern.error_key.clone()),
            ("wrong", pattern.failing_code.clone()),
            ("correct", pattern.working_code.clone()),
            ("printed", pattern.success_output.clone()),
        ],
        None => vec![("procedure", procedure.content())],
    };
    let was_quarantined = procedure.state == QUARANTINED;
    let was_episode = procedure.is_episode();
    let mut warnings = suspicions(&entry.id, &says);
    if was_quarantined && warnings.is_empty() {
        warnings.push(format!(
            "`{}` was quarantined when it was learned; nothing in it is suspicious today",
            entry.id
        ));
    }
    if procedure.state == "retired" {
        warnings.push(format!(
            "`{}` is retired, since it stopped working: it is found, and not told",
            entry.id
        ));
    }
    let was_approved = procedure.trust() == Trust::Approved;
    let before = match was_approved {
        _ if was_quarantined => QUARANTINED,
        _ if was_episode => EPISODE,
        true => "approved",
        false => "observed",
    };
    let mut changes = Vec::new();
    if !was_approved {
        changes.push(("trust", json!("approved")));
    }
    if was_quarantined || was_episode {
        changes.push(("state", json!("active")));
    }
    if !changes.is_empty() {
        writer.update(Kind::Procedure, &entry.id, &changes)?;
    }
    Ok(Approved {
        says,
        warnings,
        ..looked_at(entry, before)
    })
}

/// Rule: one from a person counts already. A candidate counts from now on and is added to `lifted`;
/// its guardrail and its test are written after the writer is closed.
fn approve_rule(
    writer: &mut Writer,
    entry: &Entry,
    lifted: &mut Vec<Reflexion>,
) -> Result<Approved, Error> {
    let mut rule: Reflexion = writer.store().get(&entry.id)?;
    let mut says = vec![
        ("rule", rule.rule.clone()),
        ("applies when", rule.applies_when.clone()),
        ("mistake", rule.mistake.clone()),
    ];
    // The test will require this output.
    let from = writer.store().find(Kind::Correction, &rule.correction_id)?;
    let from = from.and_then(|entry| entry.parse::<Correction>().ok());
    if let Some(expected) = from.and_then(|correction| correction.expected_output) {
        says.push(("expected", expected.get().to_owned()));
    }
    let before = match rule.trust() {
        Trust::User => return Ok(said(entry)),
        Trust::Approved => "approved",
        Trust::Observed => {
            let was_candidate = rule.is_candidate();
            lift(writer, &mut rule)?;
            if was_candidate {
                lifted.push(rule);
                CANDIDATE
            } else {
                "observed"
            }
        }
    };
    let warnings = suspicions(&entry.id, &says);
    Ok(Approved {
        says,
        warnings,
        ..looked_at(entry, before)
    })
}

/// Memory or correction: one from a person counts already, an imported one and one from an agent from
/// now on.
fn approve_words<R: Record>(
    writer: &mut Writer,
    entry: &Entry,
    words: impl FnOnce(R) -> Vec<(&'static str, String)>,
) -> Result<Approved, Error> {
    let record: R = writer.store().get(&entry.id)?;
    let before = match record.trust() {
        Trust::User => return Ok(said(entry)),
        Trust::Approved => "approved",
        Trust::Observed => {
            writer.update(entry.kind, &entry.id, &[("trust", json!("approved"))])?;
            "observed"
        }
    };
    let says = words(record);
    Ok(Approved {
        warnings: suspicions(&entry.id, &says),
        says,
        ..looked_at(entry, before)
    })
}

/// Record that counts from now on, or did before.
fn looked_at(entry: &Entry, before: &'static str) -> Approved {
    Approved {
        id: entry.id.clone(),
        local_id: None,
        kind: entry.kind,
        before,
        trust: Trust::Approved,
        says: Vec::new(),
        guardrails: Vec::new(),
        at_calls: None,
        tests: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Record from a person, which counts already.
fn said(entry: &Entry) -> Approved {
    let document = crate::store::workspace::records::document(entry);
    let content = document
        .map(|document| document.content)
        .unwrap_or_default();
    Approved {
        trust: Trust::User,
        says: vec![(entry.kind.name(), content.trim().to_owned())],
        ..looked_at(entry, "user")
    }
}

/// Reasons why the texts of a record are suspicious, without duplicates.
fn suspicions(id: &str, says: &[(&'static str, String)]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for (_, text) in says {
        if let Some(reason) = memctl_redact::admit(text).quarantine
            && !reasons.contains(&reason)
        {
            reasons.push(reason);
        }
    }
    let warned = reasons.into_iter();
    warned
        .map(|reason| format!("`{id}` is suspicious: {reason}"))
        .collect()
}
