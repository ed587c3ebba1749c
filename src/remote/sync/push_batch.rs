//! Records in transit to the shared store, in batches of one statement each.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::model::Kind;
use crate::store::Positions;

use super::super::error::Error;
use super::plan::hash_of_id;
use super::tables::{RowUser, fields, fields_with_user};

/// Maximum number of rows and of bytes per transaction.
pub(super) const MAX_ROWS: usize = 2_000;
const MAX_BYTES: usize = 4 << 20;

/// Rows of one statement, each id once.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) ids: Vec<String>,
    pub(super) skills: Vec<String>,
    pub(super) texts: Vec<String>,
    pub(super) fields: Vec<String>,
    bytes: usize,
    places: HashMap<u64, usize>,
}

impl Batch {
    /// Adds a record. If records share an id, the last one wins, as everywhere.
    fn add(&mut self, outgoing: super::plan::Outgoing, fields: String) {
        self.bytes += outgoing.text.len() + fields.len();
        let skill = outgoing.skill();
        let place = self.places.entry(hash_of_id(&outgoing.entry.id));
        if let Entry::Occupied(place) = &place {
            let at = *place.get();
            self.skills[at] = skill;
            self.texts[at] = outgoing.text;
            self.fields[at] = fields;
            return;
        }
        place.insert_entry(self.ids.len());
        self.skills.push(skill);
        self.ids.push(outgoing.entry.id);
        self.texts.push(outgoing.text);
        self.fields.push(fields);
    }

    fn is_full(&self) -> bool {
        self.ids.len() >= MAX_ROWS || self.bytes >= MAX_BYTES
    }
}

/// Numbers of records that are not sent.
#[derive(Debug, Default)]
pub(super) struct Missed {
    /// They have no valid id or text.
    pub(super) unfit: u64,
    /// They are no valid records of their kind.
    pub(super) unreadable: u64,
}

/// Reads the records at these places, and passes them on in batches until `take` returns `false`.
pub(super) fn read_batches(
    kind: Kind,
    user: RowUser,
    positions: &Positions,
    places: &[u32],
    take: &dyn Fn(Batch) -> bool,
) -> Result<Missed, Error> {
    let mut batch = Batch::default();
    let mut missed = Missed::default();
    for place in places {
        let Some((_, entry)) = positions.any_entry(*place)? else {
            continue;
        };
        let Some(outgoing) = super::plan::outgoing(entry) else {
            missed.unfit += 1;
            continue;
        };
        let fields = match user {
            RowUser::Login => fields(kind, &outgoing.text),
            RowUser::Record => Some(fields_with_user(kind, &outgoing.text)),
        };
        match fields {
            Some(fields) => batch.add(outgoing, fields),
            None => missed.unreadable += 1,
        }
        if batch.is_full() && !take(std::mem::take(&mut batch)) {
            // The receiver was dropped after an error, which it reports itself.
            return Ok(missed);
        }
    }
    if !batch.ids.is_empty() {
        take(batch);
    }
    Ok(missed)
}
