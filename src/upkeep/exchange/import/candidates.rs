//! Imports the notes of other memory programs as observed memories, which a person has yet to
//! approve.
//!
//! The text is screened like tool output: a prompt injection or hidden text is skipped.
//! `metadata.origin` names the source of each note, and no note is imported twice. The metadata
//! holds only what the source provides, so fields that a memory type requires may be missing.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json, value::to_raw_value};

use crate::model::{Kind, Memory, OBSERVED, Record as _, Trust};
use crate::store::{ForgottenRecords, RawEntry, foreign_entries, laid_out, redact};
use crate::upkeep::exchange::{Foreign, Found, Skipped};

use super::existing::Taken;
use super::{ImportOptions, ImportReport};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings};

pub(crate) fn import(
    workspace: &Workspace,
    options: &ImportOptions,
    found: Found,
    report: &mut ImportReport,
) -> Result<(), Error> {
    for skipped in found.skipped {
        report.skip(skipped);
    }
    let mut writer = if options.dry_run {
        None
    } else {
        Some(workspace.writer()?)
    };
    let store = &workspace.store;
    let Existing {
        forgotten,
        mut taken,
        mut origins,
        mut said,
    } = Existing::read(workspace)?;
    let source = report.source.name();
    let mut left_out = Vec::new();
    let mut texts = Vec::new();
    for mut foreign in found.records {
        let user = match (store.viewer().user_id(), foreign.user.take()) {
            (Some(own), Some(user)) if user != own => {
                let reason = format!("it is `{user}`'s, and `{own}` imports");
                report.skip(Skipped::one(foreign.what, reason));
                continue;
            }
            (own, user) => own.map(str::to_owned).or(user),
        };
        let admitted = memctl_redact::admit(&foreign.text);
        left_out.extend(admitted.redacted);
        let text = memctl_redact::visible(&admitted.text).trim().to_owned();
        if let Some(reason) = admitted.quarantine {
            let reason = format!("{reason}; nobody but a person may say that: memctl memory add");
            report.skip(Skipped::one(foreign.what, reason));
            continue;
        }
        if text.is_empty() || memctl_redact::says_nothing(&text) {
            report.skip(Skipped::one(
                foreign.what,
                "nothing is left of it without its secrets",
            ));
            continue;
        }
        let origin = (source.to_owned(), foreign.id.clone());
        match origins.get(&origin) {
            Some(content) if *content == text => {
                report.known();
                continue;
            }
            Some(_) => {
                let reason = "it was imported before, and one of the two has changed since; what is here stays";
                report.skip(Skipped::one(foreign.what, reason));
                continue;
            }
            None => {}
        }
        if !said.insert((user.clone(), text.clone())) {
            report.known();
            continue;
        }
        if forgotten.has_content(Kind::Memory, &text) && !options.restore {
            let reason = "it was forgotten here on purpose; `--restore` takes it in";
            report.skip(Skipped::one(foreign.what, reason));
            continue;
        }
        origins.insert(origin, text.clone());
        let memory = note(workspace, source, foreign, text, user)?;
        let id = taken.free(Kind::Memory, "", workspace.now);
        let memory = Memory {
            id: id.clone(),
            ..memory
        };
        let json = serde_json::to_string(&memory).map_err(crate::store::Error::from)?;
        let filtered = redact(&json);
        left_out.extend(filtered.found);
        texts.push(RawEntry {
            id,
            text: laid_out(&filtered.text),
        });
        report.take(Kind::Memory.plural());
    }
    report.warnings.extend(redaction_warning(left_out));
    if let Some(writer) = &mut writer {
        writer.restore(Kind::Memory, &texts, None)?;
        report
            .warnings
            .extend(repair_warnings(writer.take_repairs()));
    }
    Ok(())
}

/// Existing memories and tombstones.
struct Existing {
    forgotten: ForgottenRecords,
    taken: Taken,
    /// Sources of imported notes, with their content.
    origins: HashMap<(String, String), String>,
    /// Existing (user, content) pairs.
    said: HashSet<(Option<String>, String)>,
}

impl Existing {
    fn read(workspace: &Workspace) -> Result<Self, Error> {
        let store = &workspace.store;
        let mut here = Self {
            forgotten: store.all_forgotten()?,
            taken: Taken::default(),
            origins: HashMap::new(),
            said: HashSet::new(),
        };
        for entry in foreign_entries(store.directory(), Kind::Memory)?.0 {
            // An id is taken even if the caller may not see its record.
            here.taken.take(Kind::Memory, &entry.id);
            if !store.covers(Kind::Memory, &entry.text) {
                continue;
            }
            let Ok(memory) = entry.parse::<Memory>() else {
                continue;
            };
            if let Some(origin) = origin(&memory) {
                here.origins.insert(origin, memory.content.clone());
            }
            here.said.insert((memory.user_id, memory.content));
        }
        for id in here.forgotten.ids(Kind::Memory) {
            here.taken.take(Kind::Memory, id);
        }
        Ok(here)
    }
}

fn note(
    workspace: &Workspace,
    source: &str,
    foreign: Foreign,
    content: String,
    user_id: Option<String>,
) -> Result<Memory, Error> {
    let mut metadata = foreign.metadata;
    let origin = json!({"source": source, "id": foreign.id, "created": foreign.created});
    metadata.insert("origin".to_owned(), origin);
    Ok(Memory {
        id: String::new(),
        memory_type: foreign.memory_type,
        content,
        metadata: to_raw_value(&Value::Object(metadata)).map_err(crate::store::Error::from)?,
        user_id,
        created_at: foreign.created.unwrap_or_else(|| workspace.timestamp()),
        updated_at: workspace.timestamp(),
        // A note from another program has no expiry here; its age is no reason to drop it.
        expires_at: None,
        trust: OBSERVED.to_owned(),
    })
}

/// Source and source id of an imported note; `None` for other memories.
fn origin(memory: &Memory) -> Option<(String, String)> {
    if memory.trust() == Trust::User {
        return None;
    }
    let metadata: Value = serde_json::from_str(memory.metadata.get()).ok()?;
    let part = |name: &str| Some(metadata.get("origin")?.get(name)?.as_str()?.to_owned());
    Some((part("source")?, part("id")?))
}
