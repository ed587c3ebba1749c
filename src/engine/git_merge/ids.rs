//! Which records of two sides are one, and which ids their records get here.
//!
//! Two records are one if they share an id that they have or had, and the time of their birth: nobody
//! makes two in one microsecond. Where the time is whole seconds, what both sides have started from must
//! hold the record, too, or they must say the same. Any other record whose id is taken here gets a new
//! one, and remembers the old.
//!
//! What comes out depends on the three versions of all files and on nothing else, so that every file that
//! is joined for itself finds the same ids.

use std::collections::{HashMap, HashSet};

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use crate::model::Kind;

use super::super::import::{Taken, digest, tests};
use super::side::{Record, Side};

/// A record that could not keep its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewId {
    /// Its kind.
    pub kind: Kind,
    /// The id that it had on its side.
    pub from: String,
    /// The id that it has now.
    pub to: String,
}

/// What the ids of the two other versions are here.
#[derive(Debug, Default)]
pub(super) struct Ids {
    pub(super) base: HashMap<String, String>,
    pub(super) theirs: HashMap<String, String>,
    /// Records of theirs that get a new id now.
    pub(super) new: Vec<NewId>,
}

type Births<'a> = HashMap<(Kind, &'a str, &'a str), &'a Record>;

fn births(side: &Side) -> Births<'_> {
    let mut births = HashMap::new();
    for kind in Kind::ALL {
        for record in side.records(kind) {
            for id in record.ids().filter(|id| !id.is_empty()) {
                births
                    .entry((kind, id, record.created.as_str()))
                    .or_insert(record);
            }
        }
    }
    births
}

fn find<'a>(births: &Births<'a>, kind: Kind, record: &Record) -> Option<&'a Record> {
    let mut ids = record.ids();
    ids.find_map(|id| births.get(&(kind, id, record.created.as_str())).copied())
}

impl Ids {
    pub(super) fn decide(base: &Side, ours: &Side, theirs: &Side) -> Self {
        let mut ids = Self::default();
        let (of_base, of_ours) = (births(base), births(ours));
        let mut taken = Taken::default();
        let mut here: HashSet<(Kind, &str)> = HashSet::new();
        let (buried_base, buried) = (base.buried(), ours.buried());
        for side in [base, ours, theirs] {
            for kind in Kind::ALL {
                for record in side.records(kind) {
                    taken.take(kind, &record.id);
                }
            }
            for stone in side.stones() {
                taken.take(stone.kind, &stone.id);
            }
        }
        for kind in Kind::ALL {
            here.extend(ours.records(kind).iter().map(|r| (kind, r.id.as_str())));
        }
        for kind in Kind::ALL {
            for record in theirs.records(kind).iter().filter(|r| !r.id.is_empty()) {
                let before = find(&of_base, kind, record);
                let same = find(&of_ours, kind, record).filter(|ours| {
                    record.created.contains('.')
                        || before.is_some()
                        || digest(&ours.text) == digest(&record.text)
                });
                let new = if let Some(same) = same {
                    (same.id != record.id).then(|| same.id.clone())
                } else {
                    let key = (kind, record.id.clone());
                    let is_other = before.is_none() && buried.contains(&key);
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
        }
        let of_theirs = births(theirs);
        for kind in Kind::ALL {
            for record in base.records(kind).iter().filter(|r| !r.id.is_empty()) {
                let new = if let Some(same) = find(&of_ours, kind, record) {
                    Some(same.id.clone())
                } else if let Some(same) = find(&of_theirs, kind, record) {
                    Some(ids.theirs.get(&same.id).unwrap_or(&same.id).clone())
                } else {
                    // Neither side has it any more; another record here may have its id by now.
                    let is_taken = here.contains(&(kind, record.id.as_str()));
                    is_taken.then(|| taken.free(kind, &record.created, DateTime::UNIX_EPOCH))
                };
                if let Some(to) = new.filter(|to| *to != record.id) {
                    rename(&mut ids.base, kind, &record.id, &to);
                }
            }
        }
        // Records that were born and removed on their side: others still name them.
        let mut known: HashSet<(Kind, String)> = HashSet::new();
        for kind in Kind::ALL {
            known.extend(base.records(kind).iter().map(|r| (kind, r.id.clone())));
        }
        let shared: HashSet<(Kind, String, String)> = ours
            .stones()
            .into_iter()
            .map(|stone| (stone.kind, stone.id, stone.at))
            .collect();
        for stone in theirs.stones() {
            let key = (stone.kind, stone.id.clone());
            if let Some(to) = ids.base.get(&stone.id).filter(|_| known.contains(&key)) {
                let to = to.clone();
                rename(&mut ids.theirs, stone.kind, &stone.id, &to);
                continue;
            }
            let is_shared = known.contains(&key) || buried_base.contains(&key);
            let is_taken = here.contains(&(stone.kind, stone.id.as_str())) || buried.contains(&key);
            if is_taken
                && !is_shared
                && !ids.theirs.contains_key(&stone.id)
                && !shared.contains(&(stone.kind, stone.id.clone(), stone.at.clone()))
            {
                let to = taken.free(stone.kind, &stone.at, DateTime::UNIX_EPOCH);
                rename(&mut ids.theirs, stone.kind, &stone.id, &to);
            }
        }
        ids
    }
}

fn rename(ids: &mut HashMap<String, String>, kind: Kind, from: &str, to: &str) {
    if !ids.contains_key(from) {
        ids.extend(tests(kind, from, to));
        ids.insert(from.to_owned(), to.to_owned());
    }
}
