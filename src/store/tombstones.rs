//! What was removed on purpose, so that it is neither learnt again unasked nor its id given anew.
//!
//! A tombstone holds the id, the time, and a keyed hash of the content. The hash says "this is what
//! was removed" to whoever comes with the same content, and nothing to whoever does not.

use std::collections::HashSet;

use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::model::{IdShape, Kind};
use crate::platform::Directory;

use super::directory::{self, Lock};
use super::error::Error;
use super::log::{self, Sync};

pub(super) const FILE: &str = "tombstones.jsonl";

/// One removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// The id of what was removed.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// When it was removed: RFC 3339, UTC.
    pub at: String,
    /// Whose it was, of the kinds that have a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// HMAC-SHA-256 of the content under the workspace's key, in hexadecimal.
    pub digest: String,
    /// Whether this line says that the removal was taken back, so that there is no tombstone any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lifted: bool,
}

/// A record that is to be removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Removal<'a> {
    pub(super) id: &'a str,
    /// Whose it is, of the kinds that have a user.
    pub(super) user_id: Option<&'a str>,
    pub(super) content: &'a str,
}

/// What is remembered of records that are removed: a line each.
pub(super) fn lines(
    key: &str,
    kind: Kind,
    at: &str,
    removals: &[Removal<'_>],
) -> Result<Vec<String>, Error> {
    let tombstone = |removal: &Removal<'_>| Tombstone {
        id: removal.id.to_owned(),
        kind,
        at: at.to_owned(),
        user_id: removal.user_id.map(str::to_owned),
        digest: digest(key, kind, removal.content),
        lifted: false,
    };
    let lines = removals
        .iter()
        .map(|removal| serde_json::to_string(&tombstone(removal)));
    Ok(lines.collect::<Result<_, _>>()?)
}

/// Remembers them.
pub(super) fn bury(lock: &Lock, lines: &[String]) -> Result<(), Error> {
    log::append_all(lock, FILE, lines, Sync::Wait)
}

/// Remembers that removed records have come back.
pub(super) fn lift(lock: &Lock, kind: Kind, ids: &[&str], at: &str) -> Result<(), Error> {
    let lines = ids.iter().map(|id| {
        serde_json::to_string(&Tombstone {
            id: (*id).to_owned(),
            kind,
            at: at.to_owned(),
            user_id: None,
            digest: String::new(),
            lifted: true,
        })
    });
    let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    log::append_all(lock, FILE, &lines, Sync::Wait)
}

/// The tombstones that stand.
pub(super) fn standing(directory: &Directory) -> Result<Vec<Tombstone>, Error> {
    let all: Vec<Tombstone> = log::read(directory, FILE)?;
    // The newest line on a record counts.
    let mut seen: HashSet<(Kind, String)> = HashSet::new();
    let mut standing: Vec<Tombstone> = Vec::with_capacity(all.len());
    let mut lifted: HashSet<(Kind, String)> = HashSet::new();
    for line in all.into_iter().rev() {
        let key = (line.kind, line.id.clone());
        let is_newest = seen.insert(key.clone());
        if line.lifted && is_newest {
            lifted.insert(key);
        } else if !line.lifted && !lifted.contains(&key) {
            standing.push(line);
        }
    }
    standing.reverse();
    Ok(standing)
}

/// What is remembered of a removed record of which nothing but the id is to be known.
pub(super) fn line_of_id(kind: Kind, id: &str, at: &str) -> Result<String, Error> {
    Ok(serde_json::to_string(&Tombstone {
        id: id.to_owned(),
        kind,
        at: at.to_owned(),
        digest: String::new(),
        user_id: None,
        lifted: false,
    })?)
}

/// The last removal of a record of this kind with this content, among those that count.
pub(super) fn find(
    directory: &Directory,
    kind: Kind,
    content: &str,
    counts: &dyn Fn(&Tombstone) -> bool,
) -> Result<Option<Tombstone>, Error> {
    let Some(identity) = directory::identity(directory) else {
        return Ok(None);
    };
    let digest = digest(&identity.tombstone_key, kind, content);
    Ok(standing(directory)?
        .into_iter()
        .rev()
        .find(|t| t.kind == kind && t.digest == digest && counts(t)))
}

/// The ids of this kind that were removed, each with its line.
pub(super) fn standing_lines(
    directory: &Directory,
    kind: Kind,
) -> Result<Vec<(String, String)>, Error> {
    let of_kind = standing(directory)?.into_iter().filter(|t| t.kind == kind);
    let lines = of_kind.map(|t| Ok((t.id.clone(), serde_json::to_string(&t)?)));
    lines.collect()
}

/// The ids of this kind that were removed.
pub(super) fn ids(directory: &Directory, kind: Kind) -> Result<HashSet<String>, Error> {
    let of_kind = standing(directory)?.into_iter().filter(|t| t.kind == kind);
    Ok(of_kind.map(|t| t.id).collect())
}

/// The removal of the record with this id, whatever its case.
pub(super) fn of_id(
    directory: &Directory,
    kind: Kind,
    id: &str,
) -> Result<Option<Tombstone>, Error> {
    Ok(standing(directory)?
        .into_iter()
        .rev()
        .find(|t| t.kind == kind && t.id.eq_ignore_ascii_case(id)))
}

/// The highest id that was ever removed. What cannot be read gives none: ids are then unique
/// among the living, which is what the files themselves can promise.
pub(super) fn highest(directory: &Directory, kind: Kind) -> IdShape {
    let all: Vec<Tombstone> = log::read(directory, FILE).unwrap_or_default();
    let of_kind = all.iter().filter(|t| t.kind == kind);
    of_kind
        .filter_map(|t| IdShape::of(kind, &t.id))
        .max()
        .unwrap_or_default()
}

/// What the content of a record is told by.
pub(super) fn digest(key: &str, kind: Kind, content: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) else {
        // HMAC takes keys of every length; there is no other way for it to fail.
        return String::new();
    };
    mac.update(kind.name().as_bytes());
    mac.update(&[0]);
    mac.update(content.as_bytes());
    mac.finalize()
        .into_bytes()
        .iter()
        .fold(String::new(), |mut text, byte| {
            text.extend(
                [byte >> 4, byte & 15].map(|n| char::from_digit(n.into(), 16).unwrap_or('0')),
            );
            text
        })
}
