//! Creates a workspace.

use std::path::Path;

use serde::Serialize;

use crate::store::{Scoped, ignore_local_files, with_missing_lines};
use memctl_files::SharedFile;

use crate::store::workspace::{Error, redacting_writer};

/// Maximum size of a file to which lines are added.
const LONGEST: u64 = 16 << 20;

/// Result of an initialisation.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct InitReport {
    /// Path of the memory directory.
    pub directory: String,
    /// Path of the skills directory.
    pub skills: String,
    /// Name of the workspace among other workspaces.
    pub origin: String,
    /// Paths that were created; empty if everything existed.
    pub created: Vec<String>,
    /// Files of the memory that git will see; filled in by the caller, empty outside of a repository.
    pub git: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Creates the memory directory if it is missing. A skills directory is left to the author of a skill.
pub fn initialise(
    store: &Scoped,
    skills: &Path,
    random: &mut dyn FnMut() -> String,
) -> Result<InitReport, Error> {
    let directory = store.directory();
    let mut created = Vec::new();
    if directory.create().map_err(Error::io("create", directory))? {
        created.push(directory.display().to_string());
    }
    let is_new = store.identity().is_none();
    let identity = {
        let _writer = store.write(random)?;
        store.identity()
    };
    // The writer has made the file of a new memory; a person may have removed lines.
    ignore_local_files(directory)?;
    if is_new {
        created.push(directory.join(".gitignore").display().to_string());
    }
    Ok(InitReport {
        directory: directory.display().to_string(),
        skills: skills.display().to_string(),
        origin: identity.map(|identity| identity.origin).unwrap_or_default(),
        created,
        git: Vec::new(),
        warnings: Vec::new(),
    })
}

/// Adds the missing lines to a text file, and creates it if it does not exist. Returns true if
/// lines were missing.
pub fn with_lines(file: &SharedFile, wanted: &str) -> Result<bool, Error> {
    // An unreadable file is left to a person.
    let text = file.read_text(LONGEST).ok();
    let text = text.and_then(|text| with_missing_lines(&text.unwrap_or_default(), wanted.lines()));
    if let Some(text) = &text {
        redacting_writer::replace_in_project(file, text)?;
    }
    Ok(text.is_some())
}
