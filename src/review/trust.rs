//! Trust in a workspace: the records that it would unlock, and the decision.

use serde::Serialize;

use crate::model::{Kind, Trust, with_origin};
use crate::store::workspace::{Error, Workspace, document};
use crate::store::{Entry, Scoped, Selection};

/// Kinds whose text reaches an agent as more than data, in the order in which they are shown.
const ACTING: [Kind; 3] = [Kind::Reflexion, Kind::Procedure, Kind::Memory];

/// Scope of a decision about trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustMode {
    /// Trusts the workspace as a source: its approvals count from now on.
    Standing,
    /// Trusts the records as they are now; a record that changes is observed again.
    Once,
}

/// Records that do not count yet, by kind.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Untrusted {
    /// Rules, which would be in prompts and at the start of sessions.
    pub rules: Vec<UntrustedRecord>,
    /// Procedures, which would be told outside of the fence.
    pub procedures: Vec<UntrustedRecord>,
    /// Memories that do not count yet.
    pub memories: Vec<UntrustedRecord>,
}

/// Record that its file calls approved, and that this user does not vouch for.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct UntrustedRecord {
    /// Id of the record.
    pub id: String,
    /// Skill of the record; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Redacted text of the record.
    pub text: String,
    /// Reason to quarantine the text, such as prompt injection; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspicious: Option<String>,
}

impl Untrusted {
    /// Returns the records with the name of each kind.
    pub fn by_kind(&self) -> [(&'static str, &[UntrustedRecord]); 3] {
        [
            ("rules", &self.rules),
            ("procedures", &self.procedures),
            ("memories", &self.memories),
        ]
    }
}

/// Returns the records that trust in this workspace, or in the remote `origin`, would unlock.
pub fn untrusted(store: &Scoped, origin: Option<&str>) -> Result<Untrusted, Error> {
    let pulled = origin
        .map(|beginning| store.pulled_as(beginning))
        .transpose()?;
    let store = pulled.as_ref().map_or(store, |pulled| &pulled.store);
    let of_kind = |kind| -> Result<Vec<UntrustedRecord>, Error> {
        let entries = untrusted_entries(store, kind)?;
        let records = entries
            .iter()
            .filter_map(document)
            .map(|document| UntrustedRecord {
                id: match &pulled {
                    Some(pulled) => with_origin(&document.id, &pulled.origin),
                    None => document.id,
                },
                skill: document.skill,
                suspicious: memctl_redact::admit(&document.content).quarantine,
                text: said_once(&memctl_redact::redact(&document.content).text),
            });
        Ok(records.collect())
    };
    Ok(Untrusted {
        rules: of_kind(Kind::Reflexion)?,
        procedures: of_kind(Kind::Procedure)?,
        memories: of_kind(Kind::Memory)?,
    })
}

/// Returns a text without the lines that another line has, whole: the fields of a lesson repeat it.
fn said_once(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if !lines.iter().any(|known| known.contains(line)) {
            lines.retain(|known| !line.contains(known));
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// Makes the approvals of this workspace count.
pub fn trust(workspace: &Workspace, mode: TrustMode) -> Result<(), Error> {
    let mut random = || (workspace.random)();
    let approvals = workspace.store.approvals();
    match mode {
        TrustMode::Standing => approvals.trust(&workspace.timestamp(), &mut random)?,
        TrustMode::Once => {
            for kind in ACTING {
                approvals.approve(&untrusted_entries(&workspace.store, kind)?, &mut random)?;
            }
        }
    }
    Ok(())
}

/// Revokes all trust in this workspace: the decision about it, and the approvals of its records.
pub fn revoke(workspace: &Workspace) -> Result<(), Error> {
    let mut entries = Vec::new();
    for kind in ACTING {
        workspace
            .store
            .each_entry(kind, &Selection::default(), &mut |entry| {
                entries.push(entry);
            })?;
    }
    Ok(workspace.store.approvals().revoke(&entries)?)
}

/// Makes the approvals of a remote origin count. Returns the full origin.
pub fn trust_origin(workspace: &Workspace, beginning: &str) -> Result<String, Error> {
    let pulled = workspace.store.pulled_as(beginning)?;
    let approvals = workspace.store.approvals();
    approvals.trust_origin(&pulled.origin, &mut || (workspace.random)())?;
    Ok(pulled.origin)
}

/// Entries of a kind that are trusted by their file, but by no one here.
fn untrusted_entries(store: &Scoped, kind: Kind) -> Result<Vec<Entry>, Error> {
    let trust_snapshot = store.trust_snapshot();
    let mut found = Vec::new();
    store.each_entry(kind, &Selection::default(), &mut |entry| {
        let own = document(&entry).map_or(Trust::Observed, |document| document.trust);
        if own != Trust::Observed && trust_snapshot.of_entry(&entry, own) == Trust::Observed {
            found.push(entry);
        }
    })?;
    Ok(found)
}
