//! Tombstones of removed records: a removed record is not learned again without a request, and its id is not
//! reused.
//!
//! A tombstone holds the id, the time, and a keyed hash of the content. The hash identifies the
//! same content when it is presented again, and reveals nothing otherwise. Git sees it only if it has seen the record:
//! what this machine alone had leaves nothing behind that others would merge.

use std::collections::{HashMap, HashSet};

use hmac::Mac as _;
use memctl_files::{Directory, hex};
use memctl_redact::composed;
use serde::{Deserialize, Serialize};

use crate::model::{IdShape, Kind};
use crate::store::files::directory::{self, LOCAL_TOMBSTONES, TOMBSTONES};
use crate::store::files::inventory::is_ignored;
use crate::store::files::keyed_hash;
use crate::store::files::log::{self, Sync};
use crate::store::{DataFile, Error, Identity, Lock};

/// All files of tombstones.
pub(crate) const FILES: [&str; 2] = [TOMBSTONES, LOCAL_TOMBSTONES];

/// One removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// Id of the removed record.
    pub id: String,
    /// Kind of the removed record.
    pub kind: Kind,
    /// Time of the removal: RFC 3339, UTC.
    pub at: String,
    /// Id of the record's user; `None` if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// HMAC-SHA-256 of the content under the workspace's key, in hexadecimal.
    pub digest: String,
    /// `true` if this line revokes the tombstone, because the record was restored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lifted: bool,
}

impl Tombstone {
    /// Returns the tombstone of a record, without what is recognised when it comes again.
    pub(crate) fn new(kind: Kind, id: &str, at: &str) -> Self {
        Self {
            id: id.to_owned(),
            kind,
            at: at.to_owned(),
            user_id: None,
            digest: String::new(),
            lifted: false,
        }
    }
}

/// Returns the name of the file with the tombstones of the records in a file.
pub(crate) fn beside(file: DataFile) -> &'static str {
    if is_ignored(file.name()) {
        LOCAL_TOMBSTONES
    } else {
        TOMBSTONES
    }
}

/// Appends lines that revoke the tombstones of restored records, each to the file that has the tombstone.
pub(crate) fn lift(lock: &Lock, kind: Kind, ids: &[&str], at: &str) -> Result<(), Error> {
    for file in FILES {
        let mut lines = Vec::new();
        for dead in in_force_in(lock.directory(), file)? {
            if dead.kind == kind && ids.contains(&dead.id.as_str()) {
                lines.push(serde_json::to_string(&Tombstone {
                    lifted: true,
                    ..Tombstone::new(kind, &dead.id, at)
                })?);
            }
        }
        log::append(lock.directory(), file, &lines, Sync::Wait)?;
    }
    Ok(())
}

/// Returns the tombstones that are not revoked.
pub(crate) fn in_force(directory: &Directory) -> Result<Vec<Tombstone>, Error> {
    let [shared, local] = FILES.map(|file| in_force_in(directory, file));
    Ok([shared?, local?].concat())
}

fn in_force_in(directory: &Directory, file: &str) -> Result<Vec<Tombstone>, Error> {
    let mut all: Vec<Tombstone> = log::read(directory, file)?;
    // The newest line of a record counts.
    let mut newest: HashMap<(Kind, String), bool> = HashMap::new();
    for line in all.iter().rev() {
        newest
            .entry((line.kind, line.id.clone()))
            .or_insert(line.lifted);
    }
    all.retain(|line| !line.lifted && !newest[&(line.kind, line.id.clone())]);
    Ok(all)
}

/// Returns the tombstones of a kind that are not revoked, oldest first.
pub(crate) fn of_kind(
    directory: &Directory,
    kind: Kind,
) -> Result<impl DoubleEndedIterator<Item = Tombstone>, Error> {
    let all = in_force(directory)?.into_iter();
    Ok(all.filter(move |tombstone| tombstone.kind == kind))
}

/// Returns the highest id ever removed. An unreadable file yields none; ids are then unique only
/// among existing records.
pub(crate) fn highest(directory: &Directory, kind: Kind) -> IdShape {
    let all = FILES.map(|file| log::read::<Tombstone>(directory, file).unwrap_or_default());
    let of_kind = all.iter().flatten().filter(|t| t.kind == kind);
    of_kind
        .filter_map(|t| IdShape::of(kind, &t.id))
        .max()
        .unwrap_or_default()
}

/// All tombstones of the workspace, for queries on many records.
#[derive(Debug, Default)]
pub struct ForgottenRecords {
    identity: Option<Identity>,
    ids: HashSet<(Kind, String)>,
    digests: HashSet<(Kind, String)>,
}

impl ForgottenRecords {
    /// Reads the tombstones. Content counts only where `counts` returns `true`.
    pub(crate) fn read(
        directory: &Directory,
        counts: &dyn Fn(&Tombstone) -> bool,
    ) -> Result<Self, Error> {
        let tombstones = in_force(directory)?;
        // A removed id is taken for every caller; removed content is visible only to its user.
        let with_content = tombstones
            .iter()
            .filter(|tombstone| counts(tombstone) && !tombstone.digest.is_empty());
        Ok(Self {
            digests: with_content
                .map(|tombstone| (tombstone.kind, tombstone.digest.clone()))
                .collect(),
            ids: tombstones
                .iter()
                .map(|tombstone| (tombstone.kind, tombstone.id.clone()))
                .collect(),
            identity: directory::identity(directory),
        })
    }

    /// Returns `true` if a record with this id was removed.
    pub fn has_id(&self, kind: Kind, id: &str) -> bool {
        self.ids.contains(&(kind, id.to_owned()))
    }

    /// Returns `true` if a record with this content was removed.
    pub fn has_content(&self, kind: Kind, content: &str) -> bool {
        if self.digests.is_empty() {
            return false;
        }
        let digests = digests(self.identity.as_ref(), kind, content).into_iter();
        let mut digests = digests.map(|digest| (kind, digest));
        digests.any(|digest| self.digests.contains(&digest))
    }

    /// Returns the removed ids of a kind.
    pub fn ids(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let of_kind = self.ids.iter().filter(move |(of, _)| *of == kind);
        of_kind.map(|(_, id)| id.as_str())
    }
}

/// Returns the hashes that a tombstone of this content has, under each key of a workspace.
pub(crate) fn digests(identity: Option<&Identity>, kind: Kind, content: &str) -> Vec<String> {
    let keys = identity.into_iter().flat_map(Identity::keys);
    keys.map(|key| digest(key, kind, content)).collect()
}

/// Returns the keyed hash of a record's content.
pub(crate) fn digest(key: &str, kind: Kind, content: &str) -> String {
    let mut mac = keyed_hash(key.as_bytes());
    mac.update(kind.name().as_bytes());
    mac.update(&[0]);
    mac.update(composed(content).as_bytes());
    hex(&mac.finalize().into_bytes())
}
