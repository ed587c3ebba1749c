//! Matches the records of the three versions, and decides the id that each has after the merge.
//!
//! Two records are the same if they share an id, present or former, and the creation time: no two
//! records are created in one microsecond. If the time has whole seconds only, the base must hold
//! the record too, or both texts must be equal. A record has our id after the merge, except:
//!
//! - Git takes a file that only theirs has changed as it is, so its records keep their ids.
//! - An id that an earlier merge on their side gave a record stays, if it is free.
//! - A record whose id another record has or had gets a new one: one of theirs, and in the first case one of ours.
//!
//! The result depends only on the three versions of all files, so the ids are the same for every
//! file that is merged.

use std::collections::{HashMap, HashSet};

use chrono::DateTime;

use crate::model::Kind;
use crate::store::renaming::{NewId, NewIds, Taken, digest, is_exact, rename};

use super::side::{Record, Side};

const BASE: usize = 0;
const OURS: usize = 1;
const THEIRS: usize = 2;

/// New ids of the records.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// New ids of the base, of ours and of theirs, by the former ones.
    pub(crate) of: [NewIds; 3],
    /// Records of theirs that get a new id in this merge.
    pub(crate) new: Vec<NewId>,
    /// Records of ours that get another id.
    pub(crate) given_up: Vec<NewId>,
}

/// One record, as the base, ours and theirs have it.
struct Matched<'a> {
    kind: Kind,
    of: [Option<&'a Record>; 3],
}

impl Matched<'_> {
    /// Returns `true` if a record of a side with the same id and creation time is this one.
    fn is(&self, side: usize, record: &Record) -> bool {
        let is_same = |other: &&Record| digest(&other.text) == digest(&record.text);
        self.of[side].is_none()
            && (is_exact(&record.created)
                || self.of[BASE].is_some()
                || self.of.iter().flatten().all(is_same))
    }
}

fn matched<'a>(sides: [&'a Side; 3]) -> Vec<Matched<'a>> {
    let mut found: Vec<Matched<'a>> = Vec::new();
    let mut births: HashMap<(Kind, &str, &str), usize> = HashMap::new();
    for (side, records) in sides.into_iter().enumerate() {
        for (kind, record) in records.all().filter(|(_, record)| !record.id.is_empty()) {
            let birth = |id: &'a str| (kind, id, record.created.as_str());
            let same = record.ids().find_map(|id| births.get(&birth(id)).copied());
            let same = same.filter(|at| found[*at].is(side, record));
            let at = same.unwrap_or(found.len());
            if same.is_none() {
                let of = [None; 3];
                found.push(Matched { kind, of });
            }
            found[at].of[side] = Some(record);
            for id in record.ids().filter(|id| !id.is_empty()) {
                births.entry(birth(id)).or_insert(at);
            }
        }
    }
    found
}

/// Records by side and by their id there, with their id after the merge.
type Places<'a> = HashMap<(usize, Kind, &'a str), (&'a Matched<'a>, &'a String)>;

/// All ids of the three versions.
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
    /// Decides the ids. `as_is` are the kinds whose file git takes from theirs as it is.
    pub(crate) fn decide(sides: [&Side; 3], as_is: &HashSet<Kind>) -> Self {
        let mut taken = taken(sides);
        let matched = matched(sides);
        let of_ours: HashSet<&str> = sides[OURS].all().map(|(_, r)| r.id.as_str()).collect();
        let removed = sides[OURS].removed_ids();
        let mut ids = Self::default();
        let mut used: HashSet<String> = HashSet::new();
        let mut decided: Vec<Option<String>> = vec![None; matched.len()];
        // Ids of theirs that stay, then ours, the others of theirs, and those of the base alone.
        for (step, side) in [THEIRS, OURS, THEIRS, BASE].into_iter().enumerate() {
            for (one, decided) in matched.iter().zip(&mut decided) {
                let Some(record) = one.of[side].filter(|_| decided.is_none()) else {
                    continue;
                };
                let (kind, id) = (one.kind, &record.id);
                let is_renamed = |ours: &Record| record.before.contains(&ours.id);
                let stays = as_is.contains(&kind)
                    || one.of[OURS].is_some_and(is_renamed) && !of_ours.contains(id.as_str());
                if step == 0 && !stays {
                    continue;
                }
                let is_new = step == 2 && one.of[BASE].is_none();
                let is_free =
                    !used.contains(id) && !(is_new && removed.contains(&(kind, id.clone())));
                let to = if is_free {
                    id.clone()
                } else {
                    taken.free(kind, &record.created, DateTime::UNIX_EPOCH)
                };
                if is_new && !is_free {
                    ids.new.push(new_id(kind, id, &to));
                }
                used.insert(to.clone());
                *decided = Some(to);
            }
        }
        let mut places: Places<'_> = HashMap::new();
        for (one, to) in matched.iter().zip(decided.iter().flatten()) {
            for (side, record) in one.of.iter().enumerate() {
                let Some(record) = record else { continue };
                places.insert((side, one.kind, &record.id), (one, to));
                if record.id != *to {
                    rename(&mut ids.of[side], one.kind, &record.id, to);
                    if side == OURS {
                        ids.given_up.push(new_id(one.kind, &record.id, to));
                    }
                }
            }
        }
        ids.of_tombstones(sides, &places, &mut taken, &used);
        ids
    }

    /// Ids of tombstones: those of their records, and new ones for records that were created and deleted on one
    /// side, where another record has the id. Other entries still name them.
    fn of_tombstones(
        &mut self,
        sides: [&Side; 3],
        places: &Places<'_>,
        taken: &mut Taken,
        used: &HashSet<String>,
    ) {
        let [known, removed] = [BASE, OURS].map(|side| sides[side].removed_ids());
        let of_ours = sides[OURS].tombstones();
        let of_ours: HashSet<(String, String)> = of_ours.map(|one| (one.id, one.at)).collect();
        for side in [OURS, THEIRS] {
            for one in sides[side].tombstones() {
                let key = (one.kind, one.id.clone());
                let place = |side| places.get(&(side, one.kind, one.id.as_str()));
                let to = if place(side).is_some() || known.contains(&key) {
                    continue;
                } else if let Some((_, to)) = place(BASE).filter(|(one, _)| one.of[side].is_none())
                {
                    (*to).clone()
                } else if side == THEIRS && of_ours.contains(&(one.id.clone(), one.at.clone())) {
                    self.of[OURS].get(&one.id).unwrap_or(&one.id).clone()
                } else if used.contains(&one.id) || side == THEIRS && removed.contains(&key) {
                    taken.free(one.kind, &one.at, DateTime::UNIX_EPOCH)
                } else {
                    continue;
                };
                if to != one.id {
                    rename(&mut self.of[side], one.kind, &one.id, &to);
                }
            }
        }
    }
}

fn new_id(kind: Kind, from: &str, to: &str) -> NewId {
    let (from, to) = (from.to_owned(), to.to_owned());
    NewId { kind, from, to }
}
