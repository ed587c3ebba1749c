//! Imports the notes of other memory programs as observed memories, which a person has yet to
//! approve.
//!
//! The text is screened like tool output: a prompt injection or hidden text is skipped.
//! `metadata.origin` names the source of each note, and no note is imported twice. The metadata
//! holds only what the source provides, so fields that a memory type requires may be missing.

use serde_json::{Value, json, value::to_raw_value};

use super::existing::Existing;
use super::{FORGOTTEN, ImportOptions, ImportReport, Ready};
use crate::model::{Kind, Memory, OBSERVED};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace};
use crate::store::{RawEntry, laid_out, redact};
use crate::upkeep::exchange::{Foreign, Skipped};

/// Returns the notes that are new here.
pub(super) fn ready(
    workspace: &Workspace,
    options: &ImportOptions,
    notes: Vec<Foreign>,
    report: &mut ImportReport,
) -> Result<Ready, Error> {
    let mut existing = Existing::read(workspace, &[Kind::Memory])?;
    let source = report.source.name();
    let mut ready = Ready::default();
    let mut left_out = Vec::new();
    for mut note in notes {
        let user = match (workspace.store.viewer().user_id(), note.user.take()) {
            (Some(own), Some(user)) if user != own => {
                let reason = format!("it is `{user}`'s, and `{own}` imports");
                report.skip(Skipped::one(note.what, reason));
                continue;
            }
            (own, user) => own.map(str::to_owned).or(user),
        };
        let admitted = memctl_redact::admit(&note.text);
        left_out.extend(admitted.redacted);
        let text = memctl_redact::visible(&admitted.text).trim().to_owned();
        let origin = (source.to_owned(), note.id.clone());
        let known = existing.notes.get(&origin);
        let refused = if let Some(reason) = admitted.quarantine {
            format!("{reason}; nobody but a person may say that: memctl memory add")
        } else if memctl_redact::says_nothing(&text) {
            "nothing is left of it without its secrets".to_owned()
        } else if known.is_some_and(|(_, known)| *known != text) {
            "it was imported before, and one of the two has changed since; what is here stays"
                .to_owned()
        } else if known.is_some() || !existing.said.insert((user.clone(), text.clone())) {
            report.known();
            let id = known.map(|(id, _)| id.clone());
            report.approved.extend(id.filter(|_| options.trust));
            continue;
        } else if existing.forgotten.has_content(Kind::Memory, &text) && !options.restore {
            FORGOTTEN.to_owned()
        } else {
            let id = existing.taken.free(Kind::Memory, "", workspace.now);
            let known = (id.clone(), text.clone());
            existing.notes.insert(origin, known);
            let memory = memory(workspace, source, note, text, user, &id)?;
            let json = serde_json::to_string(&memory)?;
            let filtered = redact(&json);
            left_out.extend(filtered.found);
            let text = laid_out(&filtered.text);
            let id_here = id.clone();
            ready.records.push((Kind::Memory, RawEntry { id, text }));
            report.take(Kind::Memory.plural());
            if options.trust {
                report.approved.push(id_here);
            } else {
                report.observed += 1;
            }
            continue;
        };
        report.skip(Skipped::one(note.what, refused));
    }
    report.warnings.extend(redaction_warning(left_out));
    Ok(ready)
}

fn memory(
    workspace: &Workspace,
    source: &str,
    note: Foreign,
    content: String,
    user_id: Option<String>,
    id: &str,
) -> Result<Memory, Error> {
    let mut metadata = note.metadata;
    let origin = json!({"source": source, "id": note.id, "created": note.created});
    metadata.insert("origin".to_owned(), origin);
    Ok(Memory {
        id: id.to_owned(),
        memory_type: note.memory_type,
        content,
        metadata: to_raw_value(&Value::Object(metadata))?,
        user_id,
        created_at: note.created.unwrap_or_else(|| workspace.timestamp()),
        updated_at: workspace.timestamp(),
        // A note from another program has no expiry here; its age is no reason to drop it.
        expires_at: None,
        trust: OBSERVED.to_owned(),
    })
}
