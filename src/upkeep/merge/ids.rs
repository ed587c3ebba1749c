//! Matches the records of two sides, and assigns new ids to those that clash.
//!
//! Two records are the same if they share an id, present or former, and the creation time: no two
//! records are created in one microsecond. If the time has whole seconds only, the base must hold
//! the record too, or both texts must be equal. Any other record whose id is taken on our side gets
//! a new id, and keeps the old one in its list of former ids.
//!
//! Git takes a file that only one side has changed as it is. So a record of theirs keeps its id if such a file
//! of theirs holds or names it, and our record gets a new one ([`Ids::given_up`]). It also keeps an id that an
//! earlier merge gave it.
//!
//! The result depends only on the three versions of all files, so the ids are the same for every
//! file that is merged.

use std::collections::{HashMap, HashSet};

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use crate::model::Kind;

use super::side::{Record, Side};
use crate::upkeep::exchange::import::existing::{Taken, digest, tests};

/// Record that could not keep its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewId {
    /// Kind of the record.
    pub kind: Kind,
    /// Id on its own side.
    pub from: String,
    /// New id after the merge.
    pub to: String,
}

/// New ids for the records of the base and of their side.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    pub(crate) base: HashMap<String, String>,
    pub(crate) theirs: HashMap<String, String>,
    /// Records of theirs that get a new id in this merge.
    pub(crate) new: Vec<NewId>,
}

/// Words of the files that git takes from one side as they are.
#[derive(Debug, Default)]
pub(crate) struct AsIs {
    /// Words of files that our side alone has changed.
    pub(crate) ours: HashSet<String>,
    /// Words of files that their side alone has changed.
    pub(crate) theirs: HashSet<String>,
    /// Kinds whose file their side alone has changed.
    pub(crate) kinds: HashSet<Kind>,
}

type Births<'a> = HashMap<(Kind, &'a str, &'a str), &'a Record>;

fn births(side: &Side) -> Births<'_> {
    let mut births = HashMap::new();
    for (kind, record) in side.all() {
        for id in record.ids().filter(|id| !id.is_empty()) {
            let birth = (kind, id, record.created.as_str());
            births.entry(birth).or_insert(record);
        }
    }
    births
}

fn find<'a>(births: &Births<'a>, kind: Kind, record: &Record) -> Option<&'a Record> {
    let mut ids = record.ids();
    ids.find_map(|id| births.get(&(kind, id, record.created.as_str())).copied())
}

/// Returns the record of ours that is the same as one of theirs.
fn same<'a>(
    of_ours: &Births<'a>,
    kind: Kind,
    record: &Record,
    is_in_base: bool,
) -> Option<&'a Record> {
    find(of_ours, kind, record).filter(|ours| {
        record.created.contains('.') || is_in_base || digest(&ours.text) == digest(&record.text)
    })
}

fn taken(sides: [&Side; 3]) -> Taken {
    let mut taken = Taken::default();
    for side in sides {
        for (kind, record) in side.all() {
            taken.take(kind, &record.id);
        }
        for tombstone in side.tombstones() {
            taken.take(tombstone.kind, &tombstone.id);
        }
    }
    taken
}

impl Ids {
    /// Other ids for records of ours, where git takes files that name theirs as they are.
    pub(crate) fn given_up(base: &Side, ours: &Side, theirs: &Side, as_is: &AsIs) -> Vec<NewId> {
        let (of_base, of_ours) = (births(base), births(ours));
        let here = ours.all().map(|(kind, r)| ((kind, r.id.as_str()), r));
        let here: HashMap<(Kind, &str), &Record> = here.collect();
        let removed = ours.removed_ids();
        let mut taken = taken([base, ours, theirs]);
        let mut given: HashMap<(Kind, &str), String> = HashMap::new();
        let mut displaced = Vec::new();
        for (kind, record) in theirs.all().filter(|(_, r)| !r.id.is_empty()) {
            let is_in_base = find(&of_base, kind, record).is_some();
            let same = same(&of_ours, kind, record, is_in_base);
            let key = (kind, record.id.as_str());
            let other = here
                .get(&key)
                .filter(|other| same.is_none_or(|same| same.id != other.id));
            let is_bound = [same, other.copied()].into_iter().flatten();
            let is_bound = is_bound
                .into_iter()
                .any(|ours| as_is.ours.contains(&ours.id));
            let is_renamed = same.is_some_and(|same| record.before.contains(&same.id));
            let is_renamed = is_renamed && other.is_none();
            let is_kept = as_is.kinds.contains(&kind)
                || !is_bound && (is_renamed || as_is.theirs.contains(&record.id));
            if !is_kept {
                continue;
            }
            if let Some(same) = same.filter(|same| same.id != record.id) {
                given.insert((kind, &same.id), record.id.clone());
            }
            let is_removed = !is_in_base && removed.contains(&(kind, record.id.clone()));
            if let Some(other) = other {
                displaced.push((kind, other.id.as_str(), other.created.as_str()));
            } else if is_removed && same.is_none() {
                displaced.push((kind, &record.id, &record.created));
            }
        }
        for (kind, id, born) in displaced {
            let to = || taken.free(kind, born, DateTime::UNIX_EPOCH);
            given.entry((kind, id)).or_insert_with(to);
        }
        let given = given.into_iter().map(|((kind, from), to)| {
            let from = from.to_owned();
            NewId { kind, from, to }
        });
        let mut given: Vec<NewId> = given.collect();
        given.sort_by(|a, b| a.from.cmp(&b.from));
        given
    }

    pub(crate) fn decide(base: &Side, ours: &Side, theirs: &Side) -> Self {
        let mut ids = Self::default();
        let (of_base, of_ours) = (births(base), births(ours));
        let mut taken = taken([base, ours, theirs]);
        let here: HashSet<(Kind, &str)> =
            ours.all().map(|(kind, r)| (kind, r.id.as_str())).collect();
        let (removed_base, removed) = (base.removed_ids(), ours.removed_ids());
        for (kind, record) in theirs.all().filter(|(_, r)| !r.id.is_empty()) {
            let before = find(&of_base, kind, record);
            let same = same(&of_ours, kind, record, before.is_some());
            let new = if let Some(same) = same {
                (same.id != record.id).then(|| same.id.clone())
            } else {
                let key = (kind, record.id.clone());
                let is_other = before.is_none() && removed.contains(&key);
                let clashes = here.contains(&(kind, record.id.as_str())) || is_other;
                clashes.then(|| {
                    let to = taken.free(kind, &record.created, DateTime::UNIX_EPOCH);
                    if before.is_none() {
                        ids.new.push(NewId {
                            kind,
                            from: record.id.clone(),
                            to: to.clone(),
                        });
                    }
                    to
                })
            };
            if let Some(to) = new {
                rename(&mut ids.theirs, kind, &record.id, &to);
            }
        }
        let of_theirs = births(theirs);
        for (kind, record) in base.all().filter(|(_, r)| !r.id.is_empty()) {
            let new = if let Some(same) = find(&of_ours, kind, record) {
                Some(same.id.clone())
            } else if let Some(same) = find(&of_theirs, kind, record) {
                Some(ids.theirs.get(&same.id).unwrap_or(&same.id).clone())
            } else {
                // Both sides have removed it; another record of ours may use its id now.
                let is_taken = here.contains(&(kind, record.id.as_str()));
                is_taken.then(|| taken.free(kind, &record.created, DateTime::UNIX_EPOCH))
            };
            if let Some(to) = new.filter(|to| *to != record.id) {
                rename(&mut ids.base, kind, &record.id, &to);
            }
        }
        // Records that were created and deleted on their side; other entries still name them.
        let in_base = base.all().map(|(kind, record)| (kind, record.id.clone()));
        let in_base: HashSet<(Kind, String)> = in_base.collect();
        let shared: HashSet<(Kind, String, String)> = ours
            .tombstones()
            .map(|tombstone| (tombstone.kind, tombstone.id, tombstone.at))
            .collect();
        for tombstone in theirs.tombstones() {
            let key = (tombstone.kind, tombstone.id.clone());
            if let Some(to) = ids
                .base
                .get(&tombstone.id)
                .filter(|_| in_base.contains(&key))
            {
                let to = to.clone();
                rename(&mut ids.theirs, tombstone.kind, &tombstone.id, &to);
                continue;
            }
            let is_shared = in_base.contains(&key) || removed_base.contains(&key);
            let is_taken =
                here.contains(&(tombstone.kind, tombstone.id.as_str())) || removed.contains(&key);
            if is_taken
                && !is_shared
                && !ids.theirs.contains_key(&tombstone.id)
                && !shared.contains(&(tombstone.kind, tombstone.id.clone(), tombstone.at.clone()))
            {
                let to = taken.free(tombstone.kind, &tombstone.at, DateTime::UNIX_EPOCH);
                rename(&mut ids.theirs, tombstone.kind, &tombstone.id, &to);
            }
        }
        ids
    }
}

/// Returns the new ids by the former ones, with the names of tests.
pub(crate) fn by_former(new: &[NewId]) -> HashMap<String, String> {
    let mut ids = HashMap::new();
    for id in new {
        rename(&mut ids, id.kind, &id.from, &id.to);
    }
    ids
}

fn rename(ids: &mut HashMap<String, String>, kind: Kind, from: &str, to: &str) {
    if !ids.contains_key(from) {
        ids.extend(tests(kind, from, to));
        ids.insert(from.to_owned(), to.to_owned());
    }
}
