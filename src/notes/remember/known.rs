//! Search for the memory that says the same as a new one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use chrono::{DateTime, Utc};

use crate::model::{Kind, Memory};
use crate::store::workspace::{Error, Workspace};
use crate::store::{Scoped, Selection, SkipCondition};
use memctl_files::json::{compact, string_field};

use super::timestamp;

/// Returns the condition on which a new memory is not added; `None` if there may be an equal one.
pub(super) fn unless_known(
    workspace: &Workspace,
    new: &Memory,
) -> Result<Option<SkipCondition>, Error> {
    let user = new.user_id.as_deref();
    let digest = digest(new.memory_type.name(), user, &redacted(new));
    let seen = &workspace.seen_memories;
    let (is_likely, compared) =
        seen.may_hold(&workspace.store, Kind::Memory, digest, &digest_of)?;
    let repeats = || Box::new(repeats(workspace.now, new));
    Ok((!is_likely).then(|| SkipCondition {
        compared,
        repeats: repeats(),
    }))
}

/// Returns a check for entries that say the same as a new memory, and have not expired.
fn repeats(now: DateTime<Utc>, new: &Memory) -> impl Fn(&[u8]) -> bool + Send + use<> {
    let says_same = equality(new);
    let now = timestamp(now);
    move |entry| {
        let known = serde_json::from_slice::<Memory>(entry);
        known.is_ok_and(|known| {
            let is_over = known.expires_at.as_ref().is_some_and(|end| *end <= now);
            !is_over && says_same(&known)
        })
    }
}

/// Returns a check for memories that say the same as a new one.
fn equality(new: &Memory) -> impl Fn(&Memory) -> bool + Send + use<> {
    let content = redacted(new);
    let metadata = compact(&memctl_redact::redact_json(new.metadata.get()).text);
    let (memory_type, user_id) = (new.memory_type, new.user_id.clone());
    move |known| {
        known.content == content
            && known.memory_type == memory_type
            && known.user_id == user_id
            && compact(known.metadata.get()) == metadata
    }
}

/// Returns the equal memory, if there is one. Warns about it, and about an equal memory that was removed.
pub(super) fn same(
    store: &Scoped,
    new: &Memory,
    warnings: &mut Vec<String>,
) -> Result<Option<Memory>, Error> {
    let known = store.list::<Memory>(&Selection::default())?.records;
    let same = known.into_iter().find(equality(new));
    match &same {
        Some(known) => warnings.push(format!("`{}` says the same already", known.id)),
        None => warnings.extend(was_removed(store, new)?),
    }
    Ok(same)
}

/// Returns a warning if an equal memory was removed.
pub(super) fn was_removed(store: &Scoped, new: &Memory) -> Result<Option<String>, Error> {
    let removed = store.tombstone_of(Kind::Memory, &redacted(new))?;
    Ok(removed.map(|removed| {
        let day = removed.at.split('T').next().unwrap_or_default();
        format!("the same was removed on {day}, as `{}`", removed.id)
    }))
}

fn redacted(memory: &Memory) -> String {
    memctl_redact::redact(&memory.content).text.into_owned()
}

/// Returns a digest that memories with the same text, type and user share.
fn digest(memory_type: &str, user: Option<&str>, content: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (memory_type, user, content).hash(&mut hasher);
    hasher.finish()
}

/// Returns the digest of an entry; `None` if it has no content.
fn digest_of(entry: &[u8]) -> Option<u64> {
    let field = |name| string_field(entry, name);
    let memory_type = field("memory_type").unwrap_or_default();
    let content = field("content")?;
    Some(digest(&memory_type, field("user_id").as_deref(), &content))
}
