//! Stores verdicts: one write of each kind for a batch.
//!
//! Records are read again under the lock. One that a person has approved or removed since the
//! question was asked stays as it is.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;

use crate::guard;
use crate::hints::fixes::prepare;
use crate::indexing::Index;
use crate::learn::triage::{Decision, LearnedFrom, code, demand, sentence, steps};
use crate::model::{Fix, Judgement, Kind, Procedure, Record as _, Reflexion, Trust, Verdict};
use crate::store::{Selection, Writer};
use crate::workspace::document::{document, level};
use crate::workspace::execution_log_lines::raw;
use crate::workspace::{Error, Workspace, repair_warnings};

use super::candidates::data;
use super::{ConsolidateReport, Judged, Undecided};

/// Fields of a record and their new values.
type Changes = Vec<(&'static str, Box<RawValue>)>;

/// Edits of the records of a batch.
#[derive(Default)]
struct Edits {
    changes: HashMap<Kind, BTreeMap<String, Changes>>,
    /// Ids of procedures to delete, each with its content.
    gone: Vec<(String, String)>,
}

impl Edits {
    /// Sets fields of a record; a field that is set twice has its last value.
    fn change(&mut self, kind: Kind, id: &str, changes: Changes) {
        let of_kind = self.changes.entry(kind).or_default();
        let of_record = of_kind.entry(id.to_owned()).or_default();
        for (name, value) in changes {
            of_record.retain(|(known, _)| *known != name);
            of_record.push((name, value));
        }
    }
}

/// Stores verdicts of `by`, and adds them to the report. With `dry_run`, nothing is written.
pub(super) fn apply(
    workspace: &Workspace,
    decisions: &[Decision],
    by: &str,
    dry_run: bool,
    report: &mut ConsolidateReport,
) -> Result<(), Error> {
    if decisions.is_empty() {
        return Ok(());
    }
    let mut writer = workspace.writer()?;
    let all = Selection::default();
    let fixes = writer.store().list::<Fix>(&all)?.records.into_iter();
    let mut fixes: HashMap<String, Fix> = fixes.map(|fix| (fix.fix_id.clone(), fix)).collect();
    let mut edits = Edits::default();
    for decision in decisions {
        if let Some(reason) = changed_since(&writer, decision)? {
            let id = decision.id.clone();
            report.undecided.push(Undecided { id, reason });
            continue;
        }
        let judgement = Judgement {
            verdict: decision.verdict,
            into: decision.into.clone().unwrap_or_default(),
            reason: decision.reason.clone(),
            by: by.to_owned(),
            at: workspace.timestamp(),
        };
        let mut judged = Judged {
            id: decision.id.clone(),
            kind: decision.kind,
            verdict: decision.verdict,
            into: decision.into.clone(),
            reason: decision.reason.clone(),
            by: by.to_owned(),
            reworded: Vec::new(),
            summary: String::new(),
        };
        match decision.kind {
            Kind::Fix => {
                let warnings = judge_fix(
                    &writer, &mut fixes, decision, &judgement, &mut edits, &mut judged,
                )?;
                report.warnings.extend(warnings);
            }
            Kind::Procedure => {
                judge_procedure(&writer, decision, &judgement, &mut edits, &mut judged)?;
            }
            _ => {
                let entry = writer.store().find(decision.kind, &decision.id)?;
                let said = entry.as_ref().and_then(document);
                judged.summary = said.map(|said| said.summary).unwrap_or_default();
                let changes = vec![("judgement", raw(&judgement)?)];
                edits.change(decision.kind, &decision.id, changes);
                if let Some(rule) = entry.and_then(|entry| entry.parse::<Reflexion>().ok()) {
                    let refused = judge_rule(&rule, decision, by, &mut edits, &mut judged)?;
                    report.warnings.extend(refused);
                }
            }
        }
        report.judged.push(judged);
    }
    if !dry_run {
        write(workspace, &mut writer, &edits)?;
    }
    report
        .warnings
        .extend(repair_warnings(writer.take_repairs()));
    drop(writer);
    if !dry_run && !edits.gone.is_empty() {
        // The index could reveal the deleted texts.
        Index::open(&workspace.store)?.drop_gone(&mut |_, _| {})?;
    }
    Ok(())
}

/// Reason why a verdict no longer counts; `None` if it does.
fn changed_since(writer: &Writer, decision: &Decision) -> Result<Option<String>, Error> {
    let store = writer.store();
    let Some(entry) = store.find(decision.kind, &decision.id)? else {
        return Ok(Some("it was deleted in the meantime".to_owned()));
    };
    if level(store, &entry) != Trust::Observed {
        return Ok(Some("it was approved in the meantime".to_owned()));
    }
    let Some(into) = &decision.into else {
        return Ok(None);
    };
    let is_there = store.find(decision.kind, into)?.is_some();
    Ok((!is_there).then(|| format!("`{into}` was deleted in the meantime")))
}

/// Adds the edits of a fix and its procedure. Returns warnings about refused texts.
fn judge_fix(
    writer: &Writer,
    fixes: &mut HashMap<String, Fix>,
    decision: &Decision,
    judgement: &Judgement,
    edits: &mut Edits,
    judged: &mut Judged,
) -> Result<Option<String>, Error> {
    let mut fix: Fix = writer.store().get(&decision.id)?;
    let procedure = writer.store().find(Kind::Procedure, &fix.procedure_id)?;
    let procedure = procedure.and_then(|entry| entry.parse::<Procedure>().ok());
    let mut changes = vec![("judgement", raw(judgement)?)];
    let mut refused = None;
    let was_episode = fix.is_episode();
    if decision.verdict == Verdict::Keep {
        let worked = &decision.rewording.worked;
        if !worked.is_empty() && *worked != fix.working_code {
            let learned = LearnedFrom {
                failing: &fix.failing_code,
                working: &fix.working_code,
                error: &fix.error_line,
            };
            match code(worked, &learned) {
                Ok(text) => {
                    changes.push(("working_code", raw(&text)?));
                    judged.reworded.push("working_code");
                    if was_episode {
                        changes.push(("status", raw(&"active")?));
                    }
                    fix.working_code = text;
                }
                Err(reason) => {
                    let id = &decision.id;
                    refused = Some(format!("`{id}` keeps its working call: {reason}"));
                }
            }
        }
        if let Some(procedure) = procedure
            && let Some(reworded) = reword(&procedure, decision, judged)?
        {
            let id = &procedure.procedure_id;
            let fields = vec![("data", reworded), ("distilled_by", raw(&judgement.by)?)];
            edits.change(Kind::Procedure, id, fields);
        }
    } else if !was_episode {
        changes.push(("status", raw(&"retired")?));
        if let Some(procedure) = procedure
            && writer.store().trust_snapshot().level(&procedure) == Trust::Observed
        {
            let content = procedure.content();
            edits.gone.push((procedure.procedure_id, content));
        }
    }
    if let Some(into) = &decision.into
        && !was_episode
        && let Some(kept) = fixes.get_mut(into)
    {
        take_over(kept, &fix);
        edits.change(Kind::Fix, into, counts(kept)?);
    }
    judged.summary = summary(&fix);
    edits.change(Kind::Fix, &decision.id, changes);
    Ok(refused)
}

/// Adds the words of a model for a rule that was heard in a chat. They act only after a person has
/// approved them. Returns a warning if they may not replace the person's own.
fn judge_rule(
    rule: &Reflexion,
    decision: &Decision,
    by: &str,
    edits: &mut Edits,
    judged: &mut Judged,
) -> Result<Option<String>, Error> {
    let proposed = &decision.rewording;
    let quote = rule.said.first().map(|said| said.quote.as_str());
    let (Some(quote), Verdict::Keep) = (quote, decision.verdict) else {
        return Ok(None);
    };
    if proposed.rule.is_empty() || proposed.rule == rule.rule {
        return Ok(None);
    }
    match demand(&proposed.rule, &proposed.applies_when, quote) {
        Ok((text, applies_when)) => {
            judged.summary = line(&text);
            judged.reworded.push("rule");
            let mut changes = vec![("rule", raw(&text)?), ("distilled_by", raw(&by)?)];
            if applies_when != rule.applies_when {
                judged.reworded.push("applies_when");
                changes.push(("applies_when", raw(&applies_when)?));
            }
            edits.change(decision.kind, &decision.id, changes);
            Ok(None)
        }
        Err(reason) => Ok(Some(format!("`{}` keeps its words: {reason}", decision.id))),
    }
}

/// Adds the edits of a procedure without a fix.
fn judge_procedure(
    writer: &Writer,
    decision: &Decision,
    judgement: &Judgement,
    edits: &mut Edits,
    judged: &mut Judged,
) -> Result<(), Error> {
    let procedure: Procedure = writer.store().get(&decision.id)?;
    let fields = data(&procedure);
    judged.summary = line(fields["procedure_name"].as_str().unwrap_or_default());
    if decision.verdict != Verdict::Keep {
        let content = procedure.content();
        edits.gone.push((procedure.procedure_id, content));
        return Ok(());
    }
    let mut changes = vec![("judgement", raw(judgement)?)];
    if let Some(reworded) = reword(&procedure, decision, judged)? {
        changes.push(("data", reworded));
        changes.push(("distilled_by", raw(&judgement.by)?));
    }
    edits.change(Kind::Procedure, &decision.id, changes);
    Ok(())
}

/// Fields of a procedure with the proposed texts; `None` if none of them may replace its own.
fn reword(
    procedure: &Procedure,
    decision: &Decision,
    judged: &mut Judged,
) -> Result<Option<Box<RawValue>>, Error> {
    let before = judged.reworded.len();
    let mut fields = data(procedure);
    let rewording = &decision.rewording;
    for (name, text) in [
        ("procedure_name", &rewording.name),
        ("identified_root_cause", &rewording.cause),
    ] {
        if let Some(text) = sentence(text) {
            fields[name] = text.into();
            judged.reworded.push(name);
        }
    }
    if let Some(steps) = steps(&rewording.steps) {
        fields["learned_procedure_steps"] = steps.into();
        judged.reworded.push("learned_procedure_steps");
    }
    (judged.reworded.len() > before)
        .then(|| raw(&fields))
        .transpose()
}

/// Adds the evidence of a merged fix.
fn take_over(kept: &mut Fix, merged: &Fix) {
    let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b).or(a).or(b);
    kept.occurrences = Some(kept.occurrences.unwrap_or(1.0) + merged.occurrences.unwrap_or(1.0));
    kept.shown = sum(kept.shown, merged.shown);
    kept.helped = sum(kept.helped, merged.helped);
    kept.harmed = sum(kept.harmed, merged.harmed);
    for origin in &merged.origins {
        if !kept.origins.contains(origin) {
            kept.origins.push(origin.clone());
        }
    }
    if merged.last_seen > kept.last_seen {
        kept.last_seen.clone_from(&merged.last_seen);
    }
}

fn counts(fix: &Fix) -> Result<Changes, Error> {
    let mut changes = vec![
        ("occurrences", raw(&fix.occurrences)?),
        ("origins", raw(&fix.origins)?),
        ("last_seen", raw(&fix.last_seen)?),
    ];
    for (name, count) in [
        ("shown", fix.shown),
        ("helped", fix.helped),
        ("harmed", fix.harmed),
    ] {
        if let Some(count) = count {
            changes.push((name, raw(&count)?));
        }
    }
    Ok(changes)
}

fn write(workspace: &Workspace, writer: &mut Writer, edits: &Edits) -> Result<(), Error> {
    for kind in Kind::ALL {
        if let Some(changes) = edits.changes.get(&kind) {
            let changes: Vec<_> = changes
                .iter()
                .map(|(id, changes)| (id.clone(), changes.clone()))
                .collect();
            writer.update_all(kind, &changes)?;
        }
    }
    let gone: Vec<(&str, &str)> = edits
        .gone
        .iter()
        .map(|(id, content)| (id.as_str(), content.as_str()))
        .collect();
    if !gone.is_empty() {
        writer.remove_several(Kind::Procedure, &gone, workspace.now)?;
    }
    prepare(writer.store())
}

/// Fix on one line: the failing and the working call.
fn summary(fix: &Fix) -> String {
    format!("{} → {}", line(&fix.failing_code), line(&fix.working_code))
}

/// First 80 characters of a text, on one line.
fn line(text: &str) -> String {
    let text = guard::redact(text).text;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    guard::beginning(&text, 80).into_owned()
}
