//! Creates a workspace.

use std::path::Path;

use serde::Serialize;

use crate::platform::{Directory, ProjectPath};
use crate::store::{Error as StoreError, Scoped};

use crate::workspace::Error;
use crate::workspace::redacting_writer;

/// Maximum size of a file to which lines are added.
const LONGEST: u64 = 16 << 20;
const IGNORE: &str = ".gitignore";
/// Patterns for git to ignore: derived files, copies of damaged files, personal files, and the local
/// state of a checkout. Personal files are unapproved records, sessions and their log, and the undo
/// journal. A file that git tracks already stays tracked.
const IGNORED: &str = ".index/\n.lock\n.*.tmp\nrecovered/\n.trust\nchanges.jsonl\n*.local.json\nsessions.json\nexecution_logs.jsonl\nprimary.json\nreplica\nremote/\n";

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
    /// Skill to run first; filled in by the caller.
    #[serde(skip)]
    pub first_skill: Option<String>,
    /// Offer to join a database; filled in by the caller.
    #[serde(skip)]
    pub offer: Option<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Creates the memory directory and the skills directory if they are missing.
pub fn initialise(
    store: &Scoped,
    skills: &Path,
    random: &mut dyn FnMut() -> String,
) -> Result<InitReport, Error> {
    let directory = store.directory();
    let mut created = Vec::new();
    for path in [directory, &Directory::at(skills)] {
        if path.create().map_err(StoreError::io("create", path))? {
            created.push(path.display().to_string());
        }
    }
    let identity = {
        let _writer = store.write(random)?;
        store.identity()
    };
    let ignore = directory.join(IGNORE);
    // Lines from a person stay; a workspace of an older version gets the missing lines. An
    // unreadable file is left to a person.
    let text = directory.read_text(IGNORE, LONGEST).ok();
    let text = text.and_then(|text| completed(&text.unwrap_or_default(), IGNORED));
    if let Some(text) = text {
        redacting_writer::replace(directory, &ignore, &text)?;
        created.push(ignore.display().to_string());
    }
    Ok(InitReport {
        directory: directory.display().to_string(),
        skills: skills.display().to_string(),
        origin: identity.map(|identity| identity.origin).unwrap_or_default(),
        created,
        first_skill: None,
        offer: None,
        warnings: Vec::new(),
    })
}

/// Adds the missing lines to a text file, and creates it if it does not exist. Returns true if
/// lines were missing.
pub fn with_lines(file: &ProjectPath, wanted: &str) -> Result<bool, Error> {
    // An unreadable file is left to a person.
    let text = file.read_text(LONGEST).ok();
    let text = text.and_then(|text| completed(&text.unwrap_or_default(), wanted));
    if let Some(text) = &text {
        redacting_writer::replace_in_project(file, text)?;
    }
    Ok(text.is_some())
}

/// Returns the text with the missing lines appended; `None` if none are missing.
fn completed(text: &str, wanted: &str) -> Option<String> {
    let lacking: Vec<&str> = wanted
        .lines()
        .filter(|wanted| !text.lines().any(|line| line.trim() == *wanted))
        .collect();
    if lacking.is_empty() {
        return None;
    }
    let gap = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Some(format!("{text}{gap}{}\n", lacking.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignore_file_keeps_its_lines_and_gets_what_it_lacks() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(completed(text, IGNORED).as_deref(), expected, "{text:?}");
        };
        check("", Some(IGNORED));
        check(IGNORED, None);
        check(&format!("mine\n{IGNORED}"), None);
        let old = ".index/\n.lock\n.*.tmp\nrecovered/";
        check(
            old,
            Some(&format!(
                "{old}\n.trust\nchanges.jsonl\n*.local.json\nsessions.json\nexecution_logs.jsonl\n\
                 primary.json\nreplica\nremote/\n"
            )),
        );
    }
}
