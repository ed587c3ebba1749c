//! Makes a workspace.

use std::path::Path;

use serde::Serialize;

use crate::store::{Scoped, atomic};

use super::{Error, door};

/// What version control should leave alone: files that can be made again, copies of damage, and the
/// way back, which is this checkout's own.
const IGNORED: &str = ".index/\n.lock\n.*.tmp\nrecovered/\nchanges.jsonl\n";

/// What was made.
#[derive(Debug, Serialize)]
pub struct InitReport {
    /// The memory directory.
    pub directory: String,
    /// The skills directory.
    pub skills: String,
    /// The workspace's name among workspaces.
    pub origin: String,
    /// What was made now; empty where everything was there.
    pub created: Vec<String>,
}

/// Makes the memory directory and the skills directory, as far as they are missing.
pub fn initialise(
    store: &Scoped,
    skills: &Path,
    random: &mut dyn FnMut() -> String,
) -> Result<InitReport, Error> {
    let directory = store.directory();
    let mut created = Vec::new();
    for path in [directory, skills] {
        if !path.is_dir() {
            atomic::create_dir(path)?;
            created.push(path.display().to_string());
        }
    }
    let identity = {
        let _writer = door::open(store, random)?;
        store.identity()
    };
    let ignore = directory.join(".gitignore");
    if !ignore.exists() {
        door::replace(&ignore, IGNORED)?;
        created.push(ignore.display().to_string());
    }
    Ok(InitReport {
        directory: directory.display().to_string(),
        skills: skills.display().to_string(),
        origin: identity.map(|identity| identity.origin).unwrap_or_default(),
        created,
    })
}
