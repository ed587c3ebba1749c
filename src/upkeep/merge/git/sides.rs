//! Identifies the commits of a merge from within a merge driver.
//!
//! Git passes the contents of one file to a merge driver, without their commits. A merge, a rebase,
//! a cherry-pick and a stash leave different, incomplete traces. So all traces are tried, and a
//! commit counts as a side only if it has exactly the given content.

use std::collections::BTreeMap;
use std::path::Path;

use memctl_files::named;

use super::{Error, Repository};

/// Input of the merge driver.
#[derive(Debug)]
pub(crate) struct DriverInput<'a> {
    /// Path of the file, relative to the top-level directory.
    pub path: &'a str,
    /// Files with the three versions: base, ours, theirs.
    pub versions: [&'a Path; 3],
    /// Git's labels of the base and of their side, if given.
    pub labels: [Option<&'a str>; 2],
    /// Commits that the environment names as sides of a merge.
    pub heads: Vec<String>,
}

/// Commits of a merge, or their trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sides {
    /// Common base; `None` if it is not a commit.
    pub base: Option<String>,
    /// Side that is merged into.
    pub ours: String,
    /// Side that is merged.
    pub theirs: String,
}

impl Repository {
    /// Sides of the merge in progress.
    ///
    /// # Errors
    ///
    /// Fails if no commit has the given content.
    pub(crate) fn sides(&self, input: &DriverInput<'_>) -> Result<Sides, Error> {
        let [base, ours, theirs] = input.versions;
        let has = |commit: &str, blob: &str| self.blob(commit, input.path).as_deref() == Some(blob);
        let own = self.hash(ours)?;
        let ours = ["HEAD"]
            .into_iter()
            .filter_map(|name| self.commit(name))
            .find(|commit| has(commit, &own))
            .ok_or(Error::UnknownSide("ours"))?;
        let other = self.hash(theirs)?;
        let theirs = self
            .candidates(input, &other)
            .into_iter()
            .filter_map(|name| self.commit(&name))
            .find(|commit| *commit != ours && has(commit, &other))
            .ok_or(Error::UnknownSide("theirs"))?;
        let before = self.hash(base)?;
        let label = input.labels[0].and_then(commit_of);
        let common = self
            .ask(&["merge-base", "--all", &ours, &theirs])
            .unwrap_or_default();
        let bases: Vec<String> = label
            .into_iter()
            .chain(common.lines().map(str::to_owned))
            .chain([format!("{theirs}^")])
            .filter_map(|name| self.commit(&name))
            .collect();
        let is_empty = named::metadata(base).is_ok_and(|m| m.len() == 0);
        let fits = |commit: &&String| {
            has(commit, &before) || (is_empty && self.blob(commit, input.path).is_none())
        };
        Ok(Sides {
            base: bases.iter().find(fits).or(bases.first()).cloned(),
            ours,
            theirs,
        })
    }

    /// Names that can refer to their side.
    fn candidates(&self, input: &DriverInput<'_>, blob: &str) -> Vec<String> {
        let mut names = Vec::new();
        if let Some(label) = input.labels[1] {
            names.push(label.to_owned());
            names.extend(commit_of(label));
        }
        names.extend(input.heads.iter().cloned());
        names.push("MERGE_HEAD".to_owned());
        // Commits that a rebase, a cherry-pick or a stash applies have brought the content.
        let find = format!("--find-object={blob}");
        let args = [
            "log", "--all", "--reflog", "--format=%H", "-n", "8", &find, "--", input.path,
        ];
        let found = self.ask(&args).unwrap_or_default();
        names.extend(found.lines().map(str::to_owned));
        names
    }

    /// Contents of the files below `below` in a commit, filtered by `wanted`.
    ///
    /// # Errors
    ///
    /// Fails if git fails.
    pub(crate) fn files(
        &self,
        commit: &str,
        below: &[String],
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let mut args = vec!["ls-tree", "-r", "-z", "--full-tree", commit, "--"];
        args.extend(below.iter().map(String::as_str));
        let listed = self.bytes(&args)?;
        let mut names = Vec::new();
        let mut blobs = Vec::new();
        for entry in listed.split(|b| *b == 0) {
            // `<mode> blob <hash>\t<path>`; links and submodules are skipped.
            let Some((about, path)) = std::str::from_utf8(entry)
                .ok()
                .and_then(|e| e.split_once('\t'))
            else {
                continue;
            };
            let mut about = about.split(' ');
            let is_file = about.next().is_some_and(|mode| mode.starts_with("100"));
            let (Some(hash), true) = (about.nth(1), is_file && wanted(path)) else {
                continue;
            };
            names.push(path.to_owned());
            blobs.extend_from_slice(hash.as_bytes());
            blobs.push(b'\n');
        }
        let mut files = BTreeMap::new();
        if names.is_empty() {
            return Ok(files);
        }
        let answer = self.bytes_of(&["cat-file", "--batch"], blobs)?;
        let cut = || Error::Failed {
            command: "cat-file --batch".to_owned(),
            said: "the answer is cut off".to_owned(),
        };
        let mut rest = &answer[..];
        for name in names {
            // `<hash> blob <size>\n<content>\n`
            let line = rest.iter().position(|b| *b == b'\n').ok_or_else(cut)?;
            let size = std::str::from_utf8(&rest[..line])
                .ok()
                .and_then(|l| l.rsplit(' ').next());
            let size: usize = size.and_then(|size| size.parse().ok()).ok_or_else(cut)?;
            let content = rest.get(line + 1..line + 1 + size).ok_or_else(cut)?;
            files.insert(name, content.to_vec());
            rest = rest.get(line + 2 + size..).ok_or_else(cut)?;
        }
        Ok(files)
    }

    fn commit(&self, name: &str) -> Option<String> {
        // A leading dash would make the name an option.
        if name.is_empty() || name.starts_with('-') {
            return None;
        }
        let wanted = format!("{name}^{{commit}}");
        self.ask(&["rev-parse", "--quiet", "--verify", &wanted])
            .ok()
    }

    fn blob(&self, commit: &str, path: &str) -> Option<String> {
        let name = format!("{commit}:{path}");
        self.ask(&["rev-parse", "--quiet", "--verify", &name]).ok()
    }

    fn hash(&self, file: &Path) -> Result<String, Error> {
        let file = file.to_string_lossy();
        self.ask(&["hash-object", "--no-filters", "--", &file])
    }
}

/// Commit that a git label begins with, `1f2e3d4 (subject)`, or its parent: `parent of 1f2e3d4
/// (subject)`.
fn commit_of(label: &str) -> Option<String> {
    let (rest, mark) = match label.strip_prefix("parent of ") {
        Some(rest) => (rest, "^"),
        None => (label, ""),
    };
    let word = rest.split_whitespace().next()?;
    let is_hash = word.len() >= 4 && word.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash.then(|| [word, mark].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_a_commit_or_its_parent() {
        let check = |label: &str, expected: Option<&str>| {
            assert_eq!(commit_of(label).as_deref(), expected);
        };
        check("1f2e3d4 (a subject)", Some("1f2e3d4"));
        check("parent of 1f2e3d4 (x)", Some("1f2e3d4^"));
        check("feature", None);
        check("%Y", None);
        check("", None);
        check("merged common ancestors", None);
    }
}
