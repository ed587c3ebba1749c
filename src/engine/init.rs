//! Makes a workspace.

use std::path::Path;

use serde::Serialize;

use crate::store::{Scoped, atomic};

use super::{Error, door};

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
    // What a person has put there stays; a workspace of an older version gets what it lacks.
    if with_lines(&ignore, IGNORED)? {
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
    let text = match std::fs::read_to_string(path) {
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
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(0o755);
        let set = std::fs::set_permissions(path, mode);
        set.map_err(|source| crate::store::Error::Io {
            action: "make executable",
            path: path.to_owned(),
            source,
        })?;
    }
    Ok(())
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
