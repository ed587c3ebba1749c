//! Trust in a workspace: what it would unlock, and the decision.

use serde::Serialize;

use crate::guard;
use crate::model::{Kind, Trust, abroad};
use crate::store::{Entry, Scoped, Selection};

use super::find::document;
use super::{Engine, Error};

/// Kinds whose text reaches an agent as more than data, in the order in which they are shown.
const ACTING: [Kind; 4] = [Kind::Reflexion, Kind::Fix, Kind::Procedure, Kind::Memory];

/// Scope of a decision about trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustMode {
    /// The workspace is a source: its approvals count from now on.
    Standing,
    /// The records as they are now; a record that changes is observed again.
    Once,
}

/// Records that do not count yet, by kind.
#[derive(Debug, Default, Serialize)]
pub struct Untrusted {
    /// Rules, which would stand in prompts and at the start of sessions.
    pub rules: Vec<UntrustedRecord>,
    /// Fixes, which would be hints outside of the fence.
    pub fixes: Vec<UntrustedRecord>,
    /// Procedures.
    pub procedures: Vec<UntrustedRecord>,
    /// Memories.
    pub memories: Vec<UntrustedRecord>,
}

/// A record whose file says that somebody approved it, and that this user does not stand behind.
#[derive(Debug, Serialize)]
pub struct UntrustedRecord {
    /// Its id.
    pub id: String,
    /// The skill that it belongs to, if it belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Its text.
    pub text: String,
    /// Why a person should look twice; `None` where nothing in it is suspicious.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspicious: Option<String>,
}

impl Untrusted {
    /// The records with the words for their kinds.
    pub fn by_kind(&self) -> [(&'static str, &[UntrustedRecord]); 4] {
        [
            ("rules", &self.rules),
            ("fixes", &self.fixes),
            ("procedures", &self.procedures),
            ("memories", &self.memories),
        ]
    }

    fn of_kind(&mut self, kind: Kind) -> &mut Vec<UntrustedRecord> {
        match kind {
            Kind::Fix => &mut self.fixes,
            Kind::Procedure => &mut self.procedures,
            Kind::Memory => &mut self.memories,
            _ => &mut self.rules,
        }
    }
}

impl Engine {
    /// What trust in this workspace, or in the pulled records of `origin`, would unlock.
    pub fn untrusted(&self, origin: Option<&str>) -> Result<Untrusted, Error> {
        let mut found = Untrusted::default();
        let (store, origin) = match origin {
            Some(beginning) => {
                let pulled = self.store.pulled_as(beginning)?;
                (pulled.store, Some(pulled.origin))
            }
            None => (self.store.clone(), None),
        };
        for kind in ACTING {
            for entry in untrusted(&store, kind)? {
                let Some(document) = document(&entry) else {
                    continue;
                };
                found.of_kind(kind).push(UntrustedRecord {
                    id: match &origin {
                        Some(origin) => abroad(&document.id, origin),
                        None => document.id,
                    },
                    skill: document.skill,
                    suspicious: guard::admit(&document.content).quarantine,
                    text: guard::redact(document.content.trim()).text.into_owned(),
                });
            }
        }
        Ok(found)
    }

    /// Makes the workspace's own approvals count.
    pub fn trust(&self, mode: TrustMode) -> Result<(), Error> {
        let mut random = || (self.random)();
        let approvals = self.store.approvals();
        match mode {
            TrustMode::Standing => approvals.trust(&self.timestamp(), &mut random)?,
            TrustMode::Once => {
                for kind in ACTING {
                    approvals.approve(&untrusted(&self.store, kind)?, &mut random)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the approvals of another workspace count, whose records were pulled. Answers its origin.
    pub fn trust_origin(&self, beginning: &str) -> Result<String, Error> {
        let pulled = self.store.pulled_as(beginning)?;
        let approvals = self.store.approvals();
        approvals.trust_origin(&pulled.origin, &mut || (self.random)())?;
        Ok(pulled.origin)
    }
}

/// The entries of a kind whose file gives them trust that nobody here did.
fn untrusted(store: &Scoped, kind: Kind) -> Result<Vec<Entry>, Error> {
    let standing = store.standing();
    let mut found = Vec::new();
    store.each_entry(kind, &Selection::default(), &mut |entry| {
        let own = document(&entry).map_or(Trust::Observed, |document| document.trust);
        if own != Trust::Observed && standing.of_entry(&entry, own) == Trust::Observed {
            found.push(entry);
        }
    })?;
    Ok(found)
}
