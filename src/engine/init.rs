//! Makes a workspace.

use std::path::Path;

use serde::Serialize;

use crate::platform::{Directory, named};
use crate::store::{Error as StoreError, Scoped};

use super::{Error, door};

/// The most bytes of a file that lines are added to.
const LONGEST: u64 = 16 << 20;
const IGNORE: &str = ".gitignore";
/// What version control should leave alone: files that can be made again, copies of damage, and what is this
/// checkout's own: the way back, its name, what a merge has yet to do, what it has pulled from others.
const IGNORED: &str = ".index/\n.lock\n.*.tmp\nrecovered/\n.trust\nchanges.jsonl\nmerge.json\nprimary.json\nreplica\nremote/\n";

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
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// Makes the memory directory and the skills directory, as far as they are missing.
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
        let _writer = door::open(store, random)?;
        store.identity()
    };
    let ignore = directory.join(IGNORE);
    // What a person has put there stays; a workspace of an older version gets what it lacks.
    // What cannot be read is a person's to look at.
    let text = directory.read_text(IGNORE, LONGEST).ok();
    let text = text.and_then(|text| completed(&text.unwrap_or_default(), IGNORED));
    if let Some(text) = text {
        door::replace(directory, &ignore, &text)?;
        created.push(ignore.display().to_string());
    }
    Ok(InitReport {
        directory: directory.display().to_string(),
        skills: skills.display().to_string(),
        origin: identity.map(|identity| identity.origin).unwrap_or_default(),
        created,
        warnings: Vec::new(),
    })
}

/// Adds the lines to a text file that it lacks, and makes one where there is none. Answers whether it
/// lacked any.
pub fn with_lines(path: &Path, wanted: &str) -> Result<bool, Error> {
    let text = match named::read_text(path, LONGEST) {
        Ok(text) => completed(&text, wanted),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => completed("", wanted),
        // What cannot be read is a person's to look at.
        Err(_) => None,
    };
    if let Some(text) = &text {
        door::create(path, text)?;
    }
    Ok(text.is_some())
}

/// Makes a program of the shell that git starts; the file must not be there yet.
pub fn make_hook(path: &Path, text: &str) -> Result<(), Error> {
    door::create(path, text)?;
    let set = named::make_executable(path);
    Ok(set.map_err(StoreError::io("make executable", path))?)
}

/// The lines of a file with those that it lacks behind them; `None` where it lacks none.
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
                "{old}\n.trust\nchanges.jsonl\nmerge.json\nprimary.json\nreplica\nremote/\n"
            )),
        );
    }
}
