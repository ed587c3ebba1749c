//! Explanations of errors of the store.

use std::io;
use std::path::Path;

use crate::model::error::{Explain, Explanation, Kind};
use crate::store;
use memctl_files::{Owned, owned};

impl Explain for store::Error {
    fn explain(&self) -> Explanation {
        match self {
            Self::NotFound { kind, similar, .. } => {
                let list = kind.map_or("memctl memory status".to_owned(), |kind| {
                    format!("memctl list {}", kind.nouns())
                });
                let hint = match similar.first() {
                    Some(id) => format!("did you mean `{id}`? see: {list}"),
                    None => list,
                };
                (Kind::NotFound, Some(hint))
            }
            Self::Ambiguous { examples, .. } => (
                Kind::Input,
                Some(format!("give a longer prefix: {}", examples.join(", "))),
            ),
            Self::NoOrigin { known, .. } => (
                Kind::NotFound,
                Some(if known.is_empty() {
                    "memctl sync".to_owned()
                } else {
                    format!("give a longer prefix: {}", known.join(", "))
                }),
            ),
            Self::Exists { .. } => (Kind::Input, None),
            Self::OutOfScope { .. } => (
                Kind::Permission,
                Some("give a `--scope` that covers it".to_owned()),
            ),
            Self::Damaged(_) => (Kind::Store, Some("memctl doctor --repair".to_owned())),
            Self::Group(error) => error.explain(),
            Self::NewerFormat { .. } => (
                Kind::Store,
                Some("install a newer memctl; this one can only read the file".to_owned()),
            ),
            Self::Locked { .. } => (
                Kind::Store,
                Some("wait for the other process, or end it".to_owned()),
            ),
            Self::Changing { .. } => (
                Kind::Store,
                Some("run the command again once the other program has saved the file".to_owned()),
            ),
            Self::Io { path, source, .. } => (Kind::Store, Some(advice(path, source))),
            Self::Disabled { .. } => (Kind::Usage, Some("memctl memory enable".to_owned())),
            Self::DisabledForUser { user } => (
                Kind::Permission,
                Some(format!("memctl memory enable --user {user}")),
            ),
            Self::NoPrimary { .. } => (
                Kind::Remote,
                Some("set MEMCTL_DATABASE_URL, or go back to files: memctl remote leave".into()),
            ),
            Self::Primary(fault) => fault.explain(),
            Self::Serialize(_) | Self::Abandoned => (Kind::Internal, None),
            Self::Unjoinable { .. } | Self::InvalidJournal { .. } => (Kind::Store, None),
        }
    }
}

/// Returns the hint for an error of the system at a path.
pub fn advice(path: &Path, error: &io::Error) -> String {
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    let owned = is_denied.then(|| owned(path)).flatten();
    match owned {
        Some(Owned {
            path,
            owner,
            is_foreign: true,
            ..
        }) => format!(
            "`{}` belongs to {owner}, and its directory does not; as root: memctl doctor --repair",
            path.display()
        ),
        Some(Owned {
            path, is_own: true, ..
        }) => format!("chmod u+rwX {}", path.display()),
        Some(Owned { path, owner, .. }) => format!(
            "`{}` belongs to {owner}; run the command as {owner}",
            path.display()
        ),
        None => format!(
            "check the permissions and the free space of `{}`",
            path.display()
        ),
    }
}
