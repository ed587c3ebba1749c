//! Plan of a push, pure: records to send and rows to remove, per kind. Also the progress of the pull from each
//! database, stored next to the pulled records, and the origin: the name of this workspace in the shared store.
//!
//! The name is created once. A copied directory, or a clone with the identity in version control,
//! has the same name as the original. The first copy that pushes keeps it, and every other copy
//! uses its replica name. Otherwise each copy would remove the records that only the other one has.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_64;

use crate::remote::connection::Connection;
use crate::remote::error::Error;
use crate::store::{Entry, Positions, Puller, Scoped, redact};

/// Plan for one kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Positions of the records to send, in file order.
    pub(super) send: Vec<u32>,
    /// Ids of rows whose record is gone.
    pub(super) remove: Vec<String>,
    /// Number of rows in the shared store.
    pub(super) there: u64,
    /// `true` if the shared store has never had a row.
    pub(super) is_first: bool,
}

impl Plan {
    /// Plan for records of which the shared store has none.
    pub(super) fn of_all(places: impl Iterator<Item = u32>) -> Self {
        let mut send: Vec<u32> = places.collect();
        send.sort_unstable();
        Self {
            send,
            is_first: true,
            ..Self::default()
        }
    }
}

/// Compact list of the local records of a kind, with a small entry for each.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    lines: HashMap<u64, Line>,
    /// Names of the records that no row can hold.
    pub(super) unfit: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    /// First 8 bytes of the SHA-256 of the text; `None` if the record has expired. Expired records
    /// are not sent, and their rows are not removed.
    text: Option<u64>,
    /// Place among the records of its kind.
    place: u32,
}

impl Manifest {
    /// Compares a row of this workspace: its id, and the first 8 bytes of its hash.
    pub(super) fn meet(&mut self, id: &str, text: u64, plan: &mut Plan) {
        plan.there += 1;
        match self.lines.get_mut(&hash_of_id(id)) {
            // The row is identical.
            Some(line) if line.text == Some(text) => line.text = None,
            Some(_) => {}
            None => plan.remove.push(id.to_owned()),
        }
    }

    /// Completes the plan after all rows have been compared.
    pub(super) fn finish(self, plan: Plan) -> Plan {
        let open = self.lines.values().filter(|line| line.text.is_some());
        let mut send: Vec<u32> = open.map(|line| line.place).collect();
        send.sort_unstable();
        Plan { send, ..plan }
    }
}

/// Record prepared for sending.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) entry: Entry,
    /// Redacted text.
    pub(super) text: String,
}

pub(super) fn hash_of_id(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

/// First 8 bytes of the SHA-256.
pub(super) fn hash_of_text(text: &str) -> u64 {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .first_chunk()
        .map_or(0, |first| u64::from_be_bytes(*first))
}

/// Returns `true` if a record with this id and text can be stored as a row.
pub(crate) fn is_fit(id: &str, text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    id.len() <= 128
        && id.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && id.bytes().all(plain)
        && !text.contains('\0')
}

/// Redacts a record for sending.
///
/// # Errors
///
/// Name for a record that cannot be stored as a row.
pub(super) fn outgoing(entry: Entry) -> Result<Outgoing, String> {
    let text = std::str::from_utf8(&entry.text).map(|text| redact(text).text.into_owned());
    match text {
        Ok(text) if is_fit(&entry.id, &text) => Ok(Outgoing { entry, text }),
        _ if entry.id.is_empty() => Err(format!("a {} without an id", entry.kind.noun())),
        _ => {
            let shown: String = entry.id.chars().take(NAME_SHOWN).collect();
            Err(format!("`{}`", shown.escape_debug()))
        }
    }
}

/// Number of characters of an id in a warning.
const NAME_SHOWN: usize = 60;

/// Reads all records of a kind. Calls `on_record` for each.
pub(super) fn manifest(
    positions: &Positions,
    on_record: &mut dyn FnMut(),
) -> Result<Manifest, Error> {
    let mut manifest = Manifest::default();
    for place in positions.places() {
        on_record();
        let Some((_, entry)) = positions.any_entry(place)? else {
            continue;
        };
        let is_alive = !entry.kind.may_expire() || positions.entry(place)?.is_some();
        let outgoing = match outgoing(entry) {
            Ok(outgoing) => outgoing,
            Err(name) => {
                manifest.unfit.push(name);
                continue;
            }
        };
        let text = is_alive.then(|| hash_of_text(&outgoing.text));
        // If records share an id, the last one wins, as everywhere.
        let id = hash_of_id(&outgoing.entry.id);
        manifest.lines.insert(id, Line { text, place });
    }
    Ok(manifest)
}

/// Last pulled sequence number, by database and table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    #[serde(default)]
    pulled: BTreeMap<String, BTreeMap<String, i64>>,
}

impl State {
    /// Reads the stored state. An unreadable state counts as empty, so that everything is pulled
    /// again.
    pub(super) fn read(puller: &Puller) -> Self {
        let bytes = puller.state().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    pub(super) fn keep(&self, puller: &Puller) -> Result<(), Error> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        Ok(puller.keep_state(&bytes)?)
    }

    pub(super) fn reached(&self, database: &str, table: &str) -> i64 {
        let tables = self.pulled.get(database);
        tables
            .and_then(|tables| tables.get(table))
            .copied()
            .unwrap_or(0)
    }

    /// Forgets what was pulled from a database, so that everything is pulled again.
    pub(super) fn forget(&mut self, database: &str) {
        self.pulled.remove(database);
    }

    pub(super) fn reach(&mut self, database: &str, table: &str, seq: i64) {
        let tables = self.pulled.entry(database.to_owned()).or_default();
        let reached = tables.entry(table.to_owned()).or_default();
        *reached = seq.max(*reached);
    }
}

const CANNOT_CLAIM: &str = "the name of the memory cannot be claimed";

/// Claim on a name.
pub(crate) struct Claimed {
    pub(crate) replica: String,
    /// `None` if the claim belongs to a workspace that pushes its files.
    pub(crate) tombstone_key: Option<String>,
}

/// Returns the claim on a name; `None` if it is free.
pub(crate) async fn claimed(
    connection: &Connection,
    origin: &str,
) -> Result<Option<Claimed>, Error> {
    let claimed = "select replica, tombstone_key from memctl.origins
        where user_id = (select memctl.current_user_id()) and origin = $1";
    let rows = connection.rows(CANNOT_CLAIM, claimed, &[&origin]).await?;
    Ok(rows.first().map(|row| Claimed {
        replica: row.get(0),
        tombstone_key: row.get(1),
    }))
}

/// Claims a name for a copy, unless it is taken.
pub(crate) async fn claim_for(
    connection: &Connection,
    origin: &str,
    replica: &str,
) -> Result<(), Error> {
    let claim =
        "insert into memctl.origins (origin, replica) values ($1, $2) on conflict do nothing";
    let claimed = connection
        .run(CANNOT_CLAIM, claim, &[&origin, &replica])
        .await;
    claimed.map(drop)
}

/// Claims the name of the workspace, or returns the replica name and a warning if another copy holds it.
pub(super) async fn claim(
    connection: &Connection,
    store: &Scoped,
    dry_run: bool,
    random: &mut dyn FnMut() -> String,
) -> Result<(String, Option<String>), Error> {
    let (origin, replica) = if dry_run {
        let identity = store.identity().map(|identity| identity.origin);
        (
            identity.unwrap_or_default(),
            store.replica().unwrap_or_default(),
        )
    } else {
        let (identity, replica) = store.name_itself(random)?;
        (identity.origin, replica)
    };
    if !dry_run {
        claim_for(connection, &origin, &replica).await?;
    }
    let claimed = claimed(connection, &origin).await?;
    if claimed.is_none_or(|claimed| claimed.replica == replica) {
        return Ok((origin, None));
    }
    let warning = format!(
        "another copy of this workspace shares as `{origin}`; this one shares as `{replica}`, and what \
         both have is there twice"
    );
    Ok((replica, Some(warning)))
}

/// Number of records that a plan would remove from one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrinking {
    /// Records to remove.
    pub going: u64,
    /// Records in total.
    pub of: u64,
    /// `true` for the shared store, `false` for the local store.
    pub is_remote: bool,
}

impl Shrinking {
    /// Returns `true` if the plan removes more than a tenth.
    pub(super) fn is_much(self) -> bool {
        self.going * 10 > self.of
    }
}

impl std::fmt::Display for Shrinking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.is_remote {
            "this workspace shares would go from the shared store"
        } else {
            "others share would go from this memory"
        };
        write!(f, "{} of {} records that {place}", self.going, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(records: &[(&str, Option<u64>)]) -> Manifest {
        let lines = records.iter().zip(0..);
        let lines = lines.map(|((id, text), place)| (hash_of_id(id), Line { text: *text, place }));
        Manifest {
            lines: lines.collect(),
            unfit: Vec::new(),
        }
    }

    #[test]
    fn changed_records_are_sent_and_missing_ones_removed() {
        let check =
            |here: &[(&str, Option<u64>)], there: &[(&str, u64)], send: &[u32], remove: &[&str]| {
                let (mut manifest, mut plan) = (manifest(here), Plan::default());
                for (id, text) in there {
                    manifest.meet(id, *text, &mut plan);
                }
                let plan = manifest.finish(plan);
                assert_eq!(
                    (plan.send.as_slice(), plan.there),
                    (send, there.len() as u64)
                );
                assert_eq!(plan.remove, remove);
            };
        check(&[], &[], &[], &[]);
        check(&[("A", Some(1)), ("B", Some(2))], &[], &[0, 1], &[]);
        check(
            &[("A", Some(1)), ("B", Some(2))],
            &[("B", 2), ("A", 1)],
            &[],
            &[],
        );
        check(
            &[("A", Some(1)), ("B", Some(2))],
            &[("A", 1), ("B", 9)],
            &[1],
            &[],
        );
        check(&[("A", Some(1))], &[("A", 1), ("C", 3)], &[], &["C"]);
        // Expired records are not sent, and their rows are not removed.
        check(&[("A", None), ("B", None)], &[("A", 7)], &[], &[]);
    }
}

#[cfg(test)]
mod tests_of_manifest {
    use super::*;

    #[test]
    fn a_hash_is_the_beginning_of_the_one_that_the_server_makes() {
        // select left(encode(sha256(convert_to('abc', 'UTF8')), 'hex'), 16)
        assert_eq!(hash_of_text("abc"), 0xba78_16bf_8f01_cfea);
    }

    #[test]
    fn record_that_fits_no_row_is_left_out() {
        let check = |id: &str, text: &str, expected: bool| {
            assert_eq!(is_fit(id, text), expected, "{id:?} {text:?}");
        };
        check("CORR-001", "{}", true);
        check("EXEC-20260220124341-a1b2c3", "{}", true);
        check("", "{}", false);
        check("-x", "{}", false);
        check("a b", "{}", false);
        check(&"x".repeat(129), "{}", false);
        check("CORR-001", "{\"a\": \"\0\"}", false);
    }
}

#[cfg(test)]
mod tests_of_state {
    use super::*;

    #[test]
    fn a_state_only_goes_on() {
        let mut state = State::default();
        state.reach("db", "reflexions", 7);
        state.reach("db", "reflexions", 5);
        assert_eq!(state.reached("db", "reflexions"), 7);
        assert_eq!(
            (
                state.reached("db", "x"),
                state.reached("other", "reflexions")
            ),
            (0, 0)
        );
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
    }
}
