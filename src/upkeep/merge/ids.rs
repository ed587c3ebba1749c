//! Matches the records of two sides, and assigns new ids to those that clash.
//!
//! Two records are the same if they share an id, present or former, and the creation time: no two
//! records are created in one microsecond. If the time has whole seconds only, the base must hold
//! the record too, or both texts must be equal. Any other record whose id is taken on our side gets
//! a new id, and keeps the old one in its list of former ids.
//!
//! Git takes a file that only one side has changed as it is. So a record of theirs in such a file keeps its id,
//! and our record gets a new one ([`Ids::given_up`]). It also keeps an id that an earlier merge gave it.
//!
//! The result depends only on the three versions of all files, so the ids are the same for every
//! file that is merged.

use std::collections::{HashMap, HashSet};

use chrono::DateTime;

use crate::model::Kind;
use crate::store::Tombstone;
use crate::store::renaming::{NewId, NewIds, Taken, digest, is_exact, rename};

use super::side::{Record, Side};

/// New ids for the records of the base and of their side.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    pub(crate) base: NewIds,
    pub(crate) theirs: NewIds,
    /// Records of theirs that get a new id in this merge.
    pub(crate) new: Vec<NewId>,
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

/// Records of the base and of our side, among which those of theirs are looked up.
struct Lookup<'a> {
    of_base: Births<'a>,
    of_ours: Births<'a>,
    ours: HashMap<(Kind, &'a str), &'a Record>,
    removed: HashSet<(Kind, String)>,
}

/// Our side's version of a record of theirs, and of its id.
#[derive(Clone, Copy)]
enum Found<'a> {
    /// The record under its id, or neither of the two.
    Fits,
    /// The record under another id, and the record that has its id.
    Renamed {
        same: &'a Record,
        other: Option<&'a Record>,
    },
    /// Another record with its id.
    Clashes(&'a Record),
    /// A tombstone of another record with its id.
    Removed,
}

impl<'a> Lookup<'a> {
    fn new(base: &'a Side, ours: &'a Side) -> Self {
        let by_id = ours.all().map(|(kind, r)| ((kind, r.id.as_str()), r));
        Self {
            of_base: births(base),
            of_ours: births(ours),
            ours: by_id.collect(),
            removed: ours.removed_ids(),
        }
    }

    fn is_in_base(&self, kind: Kind, record: &Record) -> bool {
        find(&self.of_base, kind, record).is_some()
    }

    fn find(&self, kind: Kind, record: &Record) -> Found<'a> {
        let is_in_base = self.is_in_base(kind, record);
        let same = find(&self.of_ours, kind, record).filter(|ours| {
            is_exact(&record.created) || is_in_base || digest(&ours.text) == digest(&record.text)
        });
        let other = self.ours.get(&(kind, record.id.as_str())).copied();
        match (same, other) {
            (Some(same), _) if same.id == record.id => Found::Fits,
            (Some(same), other) => Found::Renamed { same, other },
            (None, Some(other)) => Found::Clashes(other),
            (None, None) => {
                let was_taken = self.removed.contains(&(kind, record.id.clone()));
                if was_taken && !is_in_base {
                    Found::Removed
                } else {
                    Found::Fits
                }
            }
        }
    }
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
    /// Other ids for records of ours. `as_is` are the kinds whose file git takes from theirs as it is.
    pub(crate) fn given_up(
        base: &Side,
        ours: &Side,
        theirs: &Side,
        as_is: &HashSet<Kind>,
    ) -> Vec<NewId> {
        let lookup = Lookup::new(base, ours);
        let mut taken = taken([base, ours, theirs]);
        let mut given: HashMap<(Kind, &str), String> = HashMap::new();
        let mut displaced = Vec::new();
        for (kind, record) in theirs.all().filter(|(_, r)| !r.id.is_empty()) {
            let stays = as_is.contains(&kind);
            match lookup.find(kind, record) {
                // An earlier merge gave it the id that it has.
                Found::Renamed { same, other }
                    if stays || other.is_none() && record.before.contains(&same.id) =>
                {
                    given.insert((kind, &same.id), record.id.clone());
                    displaced.extend(other.map(|other| (kind, other)));
                }
                Found::Clashes(other) if stays => displaced.push((kind, other)),
                Found::Removed if stays => displaced.push((kind, record)),
                _ => {}
            }
        }
        for (kind, record) in displaced {
            let to = || taken.free(kind, &record.created, DateTime::UNIX_EPOCH);
            given.entry((kind, &record.id)).or_insert_with(to);
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
        let lookup = Lookup::new(base, ours);
        let mut taken = taken([base, ours, theirs]);
        let mut ids = Self::default();
        ids.of_theirs(theirs, &lookup, &mut taken);
        ids.of_base(base, theirs, &lookup, &mut taken);
        ids.of_tombstones([base, ours, theirs], &lookup, &mut taken);
        ids
    }

    fn of_theirs(&mut self, theirs: &Side, lookup: &Lookup<'_>, taken: &mut Taken) {
        for (kind, record) in theirs.all().filter(|(_, r)| !r.id.is_empty()) {
            let to = match lookup.find(kind, record) {
                Found::Fits => continue,
                Found::Renamed { same, .. } => same.id.clone(),
                Found::Clashes(_) | Found::Removed => {
                    let to = taken.free(kind, &record.created, DateTime::UNIX_EPOCH);
                    if !lookup.is_in_base(kind, record) {
                        self.new.push(NewId {
                            kind,
                            from: record.id.clone(),
                            to: to.clone(),
                        });
                    }
                    to
                }
            };
            rename(&mut self.theirs, kind, &record.id, &to);
        }
    }

    fn of_base(&mut self, base: &Side, theirs: &Side, lookup: &Lookup<'_>, taken: &mut Taken) {
        let of_theirs = births(theirs);
        for (kind, record) in base.all().filter(|(_, r)| !r.id.is_empty()) {
            let to = if let Some(same) = find(&lookup.of_ours, kind, record) {
                same.id.clone()
            } else if let Some(same) = find(&of_theirs, kind, record) {
                self.theirs.get(&same.id).unwrap_or(&same.id).clone()
            } else if lookup.ours.contains_key(&(kind, record.id.as_str())) {
                // Both sides have removed it, and another record of ours uses its id now.
                taken.free(kind, &record.created, DateTime::UNIX_EPOCH)
            } else {
                continue;
            };
            if to != record.id {
                rename(&mut self.base, kind, &record.id, &to);
            }
        }
    }

    /// New ids for records that were created and deleted on their side; other entries still name them.
    fn of_tombstones(&mut self, sides: [&Side; 3], lookup: &Lookup<'_>, taken: &mut Taken) {
        let [base, ours, theirs] = sides;
        let in_base = base.all().map(|(kind, record)| (kind, record.id.clone()));
        let in_base: HashSet<(Kind, String)> = in_base.collect();
        let removed_base = base.removed_ids();
        let shared: HashSet<(Kind, String, String)> = ours
            .tombstones()
            .map(|tombstone| (tombstone.kind, tombstone.id, tombstone.at))
            .collect();
        for Tombstone { kind, id, at, .. } in theirs.tombstones() {
            let key = (kind, id.clone());
            if let Some(to) = self.base.get(&id).filter(|_| in_base.contains(&key)) {
                rename(&mut self.theirs, kind, &id, to);
                continue;
            }
            let is_known = in_base.contains(&key)
                || removed_base.contains(&key)
                || self.theirs.contains_key(&id)
                || shared.contains(&(kind, id.clone(), at.clone()));
            let is_taken =
                lookup.ours.contains_key(&(kind, id.as_str())) || lookup.removed.contains(&key);
            if is_taken && !is_known {
                let to = taken.free(kind, &at, DateTime::UNIX_EPOCH);
                rename(&mut self.theirs, kind, &id, &to);
            }
        }
    }
}

/// Returns the new ids by the former ones, with the names of tests.
pub(crate) fn by_former(new: &[NewId]) -> NewIds {
    let mut ids = NewIds::new();
    for id in new {
        rename(&mut ids, id.kind, &id.from, &id.to);
    }
    ids
}
