//! Adds a typed memory.
//!
//! All problems of the input are reported together, and then nothing is written. An equal memory is
//! not stored twice: the report gives its id, and its expiry is renewed as for a new one. A person
//! may add a memory again after its removal; a warning says so.
//!
//! A memory from an agent has trust `observed` until a person approves or repeats it. It is
//! screened like tool output, and refused if it has a tombstone.

use chrono::{DateTime, TimeDelta, Utc};
use memctl_files::json::{self, compact, string_field};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{Kind, Memory, MemoryType, Misfit, OBSERVED, Record as _, Trust, ending, later};
use crate::store::workspace::{Error, Workspace, raw, stamp, warnings_of};
use crate::store::writer::unreadable;
use crate::store::{Scoped, SeenTexts, Selection, Writer};

/// Memory to add.
#[derive(Debug, Clone)]
pub struct AddOptions {
    /// Memory type.
    pub memory_type: MemoryType,
    /// Text of the memory.
    pub content: String,
    /// Metadata as JSON. `None` is an empty object; missing fields are then at most a warning,
    /// because the source document's own clients write memories without metadata.
    pub metadata: Option<Box<RawValue>>,
    /// Expiry: a time, a date, a span from now such as `30d`, or `never`. `None` uses the default
    /// of the type.
    pub expires_at: Option<String>,
    /// Ids of memories whose place this one takes. They expire now, and stay in the file.
    pub replaces: Vec<String>,
}

/// Outcome of adding a memory.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct AddReport {
    /// Id of the memory.
    pub id: String,
    /// Memory type.
    pub memory_type: MemoryType,
    /// User id; `None` for the owner.
    pub user_id: Option<String>,
    /// Expiry as RFC 3339 in UTC; `None` means never.
    pub expires_at: Option<String>,
    /// `true` if the memory is new; `false` if an equal one was known.
    pub added: bool,
    /// Non-fatal problems, and oddities of the memory.
    pub warnings: Vec<String>,
}

/// Adds a typed memory from a person.
pub fn add_memory(workspace: &Workspace, options: &AddOptions) -> Result<AddReport, Error> {
    add_instead(workspace, options, Trust::User)
}

/// Adds a memory, and ends those whose place it takes: all that a person names, and of those that an
/// agent names the ones that no person wrote or approved.
fn add_instead(
    workspace: &Workspace,
    options: &AddOptions,
    trust: Trust,
) -> Result<AddReport, Error> {
    let resolve = |id: &String| workspace.store.resolve(Kind::Memory, id, None);
    let replaced: Result<Vec<String>, Error> = options.replaces.iter().map(resolve).collect();
    let replaced = replaced?;
    let mut report = add(workspace, options, trust)?;
    if replaced.is_empty() {
        return Ok(report);
    }
    let mut writer = workspace.writer()?;
    for id in replaced.iter().filter(|id| **id != report.id) {
        let old: Memory = writer.store().get(id)?;
        if old.trust() > trust {
            report.warnings.push(format!(
                "`{id}` is a person's, and stays until they remove it"
            ));
            continue;
        }
        let changes = [
            ("expires_at", raw(&stamp(workspace.now))?),
            ("superseded_by", raw(&report.id)?),
        ];
        writer.update(Kind::Memory, id, &changes)?;
    }
    Ok(report)
}

/// Fails as adding the memory would; stores nothing.
pub fn check(workspace: &Workspace, options: &AddOptions, by_agent: bool) -> Result<(), Error> {
    if by_agent {
        let options = admitted(workspace, options)?;
        return new_memory(workspace, &options, Trust::Observed).map(drop);
    }
    new_memory(workspace, options, Trust::User).map(drop)
}

/// Adds a typed memory from an agent.
pub fn add_observed(workspace: &Workspace, options: &AddOptions) -> Result<AddReport, Error> {
    add_instead(workspace, &admitted(workspace, options)?, Trust::Observed)
}

/// Screens a memory of an agent. Returns it as it is stored.
fn admitted(workspace: &Workspace, options: &AddOptions) -> Result<AddOptions, Error> {
    let metadata = options.metadata.as_ref().map_or("", |json| json.get());
    let admitted = memctl_redact::admit(&options.content);
    let of_metadata = || memctl_redact::admit(metadata).quarantine;
    if let Some(reason) = admitted.quarantine.or_else(of_metadata) {
        return Err(Error::suspicious(&reason));
    }
    // Hints that this program showed the agent must not be learned again.
    let content =
        memctl_redact::visible(&memctl_redact::strip_fenced(&options.content)).into_owned();
    let text = admitted.text.trim_end();
    if let Some(removed) = workspace.store.tombstone_of(Kind::Memory, text)? {
        return Err(Error::Forgotten {
            day: removed.at.split('T').next().unwrap_or_default().to_owned(),
            id: removed.id,
            kind: Kind::Memory,
        });
    }
    Ok(AddOptions {
        content,
        ..options.clone()
    })
}

/// Checks a memory, and returns the record to store, with warnings.
fn new_memory(
    workspace: &Workspace,
    options: &AddOptions,
    trust: Trust,
) -> Result<(Memory, Vec<String>), Error> {
    let memory_type = options.memory_type;
    let mut problems = Vec::new();
    // Other programs may end a text with a line break, which means nothing.
    let content = options.content.trim_end();
    if memctl_redact::says_nothing(&memctl_redact::redact(content).text) {
        problems.push("`content` is empty, and must say something".to_owned());
    }
    let metadata = match &options.metadata {
        Some(metadata) => metadata.clone(),
        None => RawValue::from_string("{}".to_owned())?,
    };
    if let Some(value) = json::unreadable(metadata.get()) {
        return Err(unreadable(value));
    }
    let mut warnings = Vec::new();
    // A program may know only some of the fields; what it gives has to fit.
    let found = memory_type.check(&metadata).into_iter();
    let (missing, wrong): (Vec<Misfit>, Vec<Misfit>) = found.partition(Misfit::is_missing);
    problems.extend(described(wrong));
    if trust == Trust::User {
        warnings.extend(described(missing));
    }
    let end = match &options.expires_at {
        Some(given) => ending(given, workspace.now).unwrap_or_else(|reason| {
            problems.push(format!("`expires_at` is `{given}`: {reason}"));
            None
        }),
        None => usual_end(workspace, memory_type),
    };
    if !problems.is_empty() {
        return Err(Error::bad_memory(memory_type, &problems));
    }
    let new = Memory {
        id: String::new(),
        user_id: workspace.store.viewer().user_id().map(str::to_owned),
        memory_type,
        content: content.to_owned(),
        trust: match trust {
            Trust::User => String::new(),
            Trust::Approved => "approved".to_owned(),
            Trust::Observed => OBSERVED.to_owned(),
        },
        metadata,
        created_at: workspace.timestamp(),
        updated_at: workspace.timestamp(),
        expires_at: end.map(stamp),
    };
    Ok((new, warnings))
}

/// Adds a memory, or renews the equal one.
fn add(workspace: &Workspace, options: &AddOptions, trust: Trust) -> Result<AddReport, Error> {
    let (new, mut warnings) = new_memory(workspace, options, trust)?;
    let mut writer = workspace.writer()?;
    let same = equal_to(&new, &workspace.seen_notes, writer.store())?;
    let added = same.is_none();
    let memory = if let Some(same) = same {
        warnings.push(format!("`{}` says the same already", same.id));
        if same.trust() < trust {
            let is_said = [("trust", raw(&"user")?)];
            writer.update(Kind::Memory, &same.id, &is_said)?;
        }
        if trust == Trust::User {
            writer.vouch(Kind::Memory, &same.id)?;
        }
        let is_asked = options.expires_at.is_some();
        say_again(workspace.now, &mut writer, same, new.expires_at, is_asked)?
    } else {
        warnings.extend(was_removed(writer.store(), &new)?);
        writer.append(new, workspace.now)?
    };
    warnings.extend(warnings_of(&mut writer));
    Ok(AddReport {
        id: memory.id,
        memory_type: memory.memory_type,
        user_id: memory.user_id,
        expires_at: memory.expires_at,
        added,
        warnings,
    })
}

/// Default expiry of a memory of this type.
fn usual_end(workspace: &Workspace, memory_type: MemoryType) -> Option<DateTime<Utc>> {
    let days = i64::from(workspace.settings.task_days);
    let ends = memory_type == MemoryType::TaskMemory && days > 0;
    // An expiry after the last day of the calendar means never.
    ends.then(|| later(workspace.now, TimeDelta::try_days(days)?))
        .flatten()
}

/// Renews the expiry of a memory that is added again: the requested one, or else the later one.
fn say_again(
    now: DateTime<Utc>,
    writer: &mut Writer,
    mut memory: Memory,
    end: Option<String>,
    is_asked: bool,
) -> Result<Memory, Error> {
    // Both have one format, in which a later time compares greater.
    let is_later = match (&memory.expires_at, &end) {
        (Some(before), Some(end)) => end > before,
        (before, None) => before.is_some(),
        (None, Some(_)) => false,
    };
    if is_later || (is_asked && memory.expires_at != end) {
        let changes = [
            ("expires_at", raw(&end)?),
            ("updated_at", raw(&stamp(now))?),
        ];
        writer.update(Kind::Memory, &memory.id, &changes)?;
        memory.expires_at = end;
    }
    Ok(memory)
}

/// Returns the memory that says the same as a new one.
fn equal_to(new: &Memory, seen: &SeenTexts, store: &Scoped) -> Result<Option<Memory>, Error> {
    let content = redacted(new);
    if !seen.may_hold(store, Kind::Memory, "content", &content)? {
        return Ok(None);
    }
    let metadata = compact(&memctl_redact::redact_json(new.metadata.get()).text);
    let mut same = None;
    store.each_entry(Kind::Memory, &Selection::default(), &mut |entry| {
        // Parsed only where the text is the same: there may be many.
        let found = string_field(&entry.text, "content").filter(|found| *found == content);
        let found = found.and_then(|_| entry.parse::<Memory>().ok());
        let found = found.filter(|found| {
            found.memory_type == new.memory_type
                && found.user_id == new.user_id
                && compact(found.metadata.get()) == metadata
        });
        if same.is_none() {
            same = found;
        }
    })?;
    Ok(same)
}

/// Returns a warning if an equal memory was removed.
fn was_removed(store: &Scoped, new: &Memory) -> Result<Option<String>, Error> {
    let removed = store.tombstone_of(Kind::Memory, &redacted(new))?;
    Ok(removed.map(|removed| {
        let day = removed.at.split('T').next().unwrap_or_default();
        format!("the same was removed on {day}, as `{}`", removed.id)
    }))
}

fn redacted(memory: &Memory) -> String {
    memctl_redact::redact(&memory.content).text.into_owned()
}

/// Problems in metadata, as messages. Secrets in them are redacted.
pub(crate) fn misfits(memory_type: MemoryType, metadata: &RawValue) -> Vec<String> {
    described(memory_type.check(metadata)).collect()
}

fn described(misfits: Vec<Misfit>) -> impl Iterator<Item = String> {
    let misfits = misfits.into_iter();
    misfits.map(|misfit| memctl_redact::redact(&misfit.to_string()).text.into_owned())
}
