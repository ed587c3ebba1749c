//! Git queries about the repository of a workspace, also from within a merge driver.
//!
//! Uses the installed `git`, so that its configuration and environment apply, except what would start a program.
//! Without git or a repository, queries return nothing.
//!
//! Git passes the contents of one file to a merge driver, without their commits. A merge, a rebase,
//! a cherry-pick and a stash leave different, incomplete traces of these. So all traces are tried, and a
//! commit counts as a side only if it has exactly the given content.
//!
//! Deliberately absent: commits. Only users make them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use memctl_files::named;

use crate::model::error::{Explain, Explanation, Kind};

/// Name of the merge driver in git.
pub(crate) const DRIVER: &str = "memctl";
/// File of a repository that says how git treats its files.
pub(crate) const ATTRIBUTES: &str = ".gitattributes";
/// Maximum size of that file.
const LARGEST_ATTRIBUTES: u64 = 1 << 20;

/// Error of a git command.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Error {
    message: String,
    hint: &'static str,
}

impl Error {
    fn new(message: String, hint: &'static str) -> Self {
        Self { message, hint }
    }

    /// No commit matches the given version of a side of the merge.
    fn unknown_side(side: &str) -> Self {
        Self::new(format!("cannot find the commit of {side}"), "git status")
    }

    fn failed(command: &str, message: &str) -> Self {
        Self::new(format!("`git {command}` failed: {message}"), "git status")
    }
}

impl Explain for Error {
    fn explain(&self) -> Explanation {
        (Kind::Io, Some(self.hint.to_owned()))
    }
}

/// Returns `true` if a project has the merge driver in its attributes, so that people share its memory by git.
pub(crate) fn shares_memory(project: &Path) -> bool {
    let text = named::read_text(&project.join(ATTRIBUTES), LARGEST_ATTRIBUTES);
    let driver = format!("merge={DRIVER}");
    let is_named = |line: &str| line.split_whitespace().any(|word| word == driver);
    text.is_ok_and(|text| text.lines().any(is_named))
}

/// Questions about paths and settings, whose files may be pipes, and their maximum time; that of others, which can
/// read the whole history.
const SHORT: [&str; 4] = ["check-attr", "check-ignore", "config", "rev-parse"];
const SECONDS: [u64; 2] = [4, 600];

/// Repository with a working tree.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// Top-level directory, where git is started.
    top: PathBuf,
    /// `true` to keep the environment variables that git sets for hooks (`GIT_DIR` and others).
    by_variables: bool,
}

impl Repository {
    /// Finds the repository of a directory; `None` without one, or without git.
    pub(crate) fn of(directory: &Path) -> Option<Self> {
        // Git sets these variables relative to the top-level directory, so they can be wrong
        // elsewhere.
        [true, false].into_iter().find_map(|by_variables| {
            let top = directory.to_owned();
            let here = Self { top, by_variables };
            let top = PathBuf::from(here.ask(&["rev-parse", "--show-toplevel"]).ok()?);
            named::is_dir(&top).then_some(Self { top, by_variables })
        })
    }

    /// Top-level directory.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// Value of a setting; `None` if it is not set.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        self.ask(&["config", "--get", name]).ok()
    }

    /// Sets a setting of this repository only.
    ///
    /// # Errors
    ///
    /// Fails if git fails, or would follow a link to another file.
    pub(crate) fn set(&self, name: &str, value: &str) -> Result<(), Error> {
        let file = self
            .top
            .join(self.ask(&["rev-parse", "--git-path", "config"])?);
        let below = file.ancestors().take_while(|path| *path != self.top);
        let is_link = |path: &&Path| named::link_metadata(path).is_ok_and(|m| m.is_symlink());
        if let Some(link) = below.take(2).find(is_link) {
            let message = format!("`{}` is a link, which is not followed", link.display());
            return Err(Error::new(message, "put a file in its place"));
        }
        self.ask(&["config", "--local", name, value]).map(drop)
    }

    /// Value of an attribute of a path.
    pub(crate) fn attribute(&self, name: &str, path: &Path) -> Option<String> {
        let path = path.to_str()?;
        let answer = self.ask(&["check-attr", name, "--", path]).ok()?;
        answer.rsplit(": ").next().map(str::to_owned)
    }

    /// Returns those of some paths that git ignores.
    pub(crate) fn ignored(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let paths: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
        let input = paths.join("\0").into_bytes();
        let ignored = self.run(&["check-ignore", "-z", "--stdin"], input);
        let ignored = ignored.unwrap_or_default();
        let ignored = String::from_utf8_lossy(&ignored);
        ignored.split_terminator('\0').map(PathBuf::from).collect()
    }

    /// Merges three files line by line into the first, with conflict markers where both sides
    /// changed the same lines. Returns `true` if there are conflicts.
    ///
    /// # Errors
    ///
    /// Fails if git refuses the files.
    pub(crate) fn merge_file(
        &self,
        ours: &Path,
        base: &Path,
        theirs: &Path,
    ) -> Result<bool, Error> {
        let args = ["merge-file", "-L", "ours", "-L", "base", "-L", "theirs"].map(OsStr::new);
        let files = [ours, base, theirs].map(Path::as_os_str);
        let output = self.git(&[&args[..], &files].concat(), Vec::new())?;
        match output.status.code() {
            Some(0) => Ok(false),
            Some(1..128) => Ok(true),
            _ => Err(failed("merge-file", &output)),
        }
    }

    /// Runs git and returns its output without trailing whitespace.
    fn ask(&self, args: &[&str]) -> Result<String, Error> {
        let bytes = self.run(args, Vec::new())?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    /// Runs git with `input` on standard input and returns its output.
    fn run(&self, args: &[&str], input: Vec<u8>) -> Result<Vec<u8>, Error> {
        let words: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        let output = self.git(&words, input)?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(failed(&args.join(" "), &output))
        }
    }

    fn git(&self, args: &[&OsStr], input: Vec<u8>) -> Result<Output, Error> {
        let is_short = SHORT.iter().any(|name| args[0] == *name);
        let limit = Duration::from_secs(SECONDS[usize::from(!is_short)]);
        let output = memctl_files::git(&self.top, args, input, self.by_variables, limit);
        output.map_err(|error| {
            let message = format!("`git` does not start or does not end: {error}");
            Error::new(message, "install git, and check that it is in PATH")
        })
    }
}

fn failed(command: &str, output: &Output) -> Error {
    let message = String::from_utf8_lossy(&output.stderr);
    Error::failed(command, message.lines().next().unwrap_or("it said nothing"))
}

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
        let ours = self.commit("HEAD").filter(|commit| has(commit, &own));
        let ours = ours.ok_or_else(|| Error::unknown_side("ours"))?;
        let other = self.hash(theirs)?;
        let theirs = self
            .candidates(input, &other)
            .into_iter()
            .filter_map(|name| self.commit(&name))
            .find(|commit| *commit != ours && has(commit, &other))
            .ok_or_else(|| Error::unknown_side("theirs"))?;
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
        let listed = self.run(&args, Vec::new())?;
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
        let answer = self.run(&["cat-file", "--batch"], blobs)?;
        let cut = || Error::failed("cat-file --batch", "the answer is cut off");
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
