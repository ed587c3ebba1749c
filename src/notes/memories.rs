//! Lists memories by type and metadata.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use crate::model::{Condition, Kind, Memory, MemoryType};
use crate::store::{Entry, Scoped, Selection};

use super::browse::{ListReport, Listed};
use crate::store::workspace::{Error, Workspace};

/// Returns the newest memories of a type, or of all, whose metadata meets every condition.
pub fn list_memories(
    workspace: &Workspace,
    memory_type: Option<MemoryType>,
    conditions: &[Condition],
    limit: usize,
) -> Result<ListReport, Error> {
    let mut records = Vec::new();
    let all = Selection::default();
    let problems = workspace
        .store
        .each_entry(Kind::Memory, &all, &mut |entry| {
            if fits(&entry, memory_type, conditions) {
                records.push(Listed::of(entry));
            }
        })?;
    let total = records.len() as u64;
    records.reverse();
    records.truncate(limit);
    let read = records.iter().map(|record| {
        let touched = (record.id.as_str(), record.user_id.as_deref());
        (Kind::Memory, touched)
    });
    let unnoted = workspace.note_read(read);
    let warnings = problems.iter().map(ToString::to_string).chain(unnoted);
    Ok(ListReport {
        kind: Kind::Memory,
        total,
        warnings: warnings.collect(),
        records,
    })
}

/// Returns the version keys of memories whose metadata meets every condition, for a search
/// filter.
pub fn memories_where(
    store: &Scoped,
    conditions: &[Condition],
) -> Result<Arc<HashSet<u64>>, Error> {
    let positions = store.positions(Kind::Memory)?;
    let mut keys = HashSet::new();
    for place in positions.places() {
        if let Some((key, entry)) = positions.entry(place)?
            && fits(&entry, None, conditions)
        {
            keys.insert(key);
        }
    }
    Ok(Arc::new(keys))
}

/// Returns `true` if an entry is a memory of this type whose metadata meets every condition.
fn fits(entry: &Entry, memory_type: Option<MemoryType>, conditions: &[Condition]) -> bool {
    let Ok(memory) = entry.parse::<Memory>() else {
        // An unreadable entry has no type; only an unfiltered list shows it.
        return memory_type.is_none() && conditions.is_empty();
    };
    if memory_type.is_some_and(|wanted| memory.memory_type != wanted) {
        return false;
    }
    let metadata = || serde_json::from_str::<Value>(memory.metadata.get()).unwrap_or_default();
    conditions.is_empty() || {
        let metadata = metadata();
        conditions
            .iter()
            .all(|condition| condition.holds(&metadata))
    }
}
