//! Finds secrets in the files of the memory and of the skills.
//!
//! Records are redacted when they are written. This scan finds older secrets, and those that other programs
//! wrote. A finding gives the file, line and kind of a secret, and never shows it. A repair redacts our own
//! records and guardrails and drops changes from the undo journal, after a copy.
//!
//! Deliberately absent: a search of other files, which programs such as gitleaks do.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::store::files::directory::{AUDIT_LOG, RECOVERED};
use crate::store::skill::Skills;
use crate::store::{Cleaned, DataFile};
use memctl_files::{Directory, FoundKind, named};

use crate::notes::indexing::Index;
use crate::store::workspace::{Error, Workspace, redacting_writer};

/// Approximate size of the blocks in which files are read, so that a large file needs no more
/// memory.
const BLOCK: u64 = 16 << 20;
/// Directories to skip: they hold published files of others, or copies of files scanned elsewhere.
const PASSED_OVER: &[&str] = &[".git", "node_modules"];

/// Outcome of [`secrets()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SecretsReport {
    /// `true` if no secret was found, or none is left.
    pub clean: bool,
    /// Number of files read.
    pub files: u64,
    /// Locations of the remaining secrets, once for each line and kind.
    pub secrets: Vec<SecretAt>,
    /// Files that were redacted.
    pub redacted: Vec<Cleaned>,
    /// Files that could not be read.
    pub warnings: Vec<String>,
    /// `true` after a repair: what is left cannot be redacted.
    #[serde(skip)]
    pub is_repaired: bool,
}

impl SecretsReport {
    /// Returns what a person has to do about the secrets that a repair leaves.
    pub fn left_to_do(&self) -> Vec<String> {
        let copies = self.redacted.iter().map(|cleaned| &cleaned.copy);
        let left = self.secrets.iter().map(|secret| &secret.path);
        let (copies, left): (BTreeSet<_>, BTreeSet<_>) =
            copies.chain(left).partition(|path| is_copy(path));
        let (audit, others): (BTreeSet<_>, BTreeSet<_>) =
            left.into_iter().partition(|path| path.ends_with(AUDIT_LOG));
        let mut found = Vec::new();
        if let Some(copies) = copies.first().and_then(|copy| copy.parent()) {
            let copies = copies.display();
            found.push(format!(
                "check the records, then delete the copies in {copies}"
            ));
        }
        if let Some(audit) = audit.first() {
            found.push(format!(
                "no line of the audit log can change: revoke the secret, or delete {}; the next event then \
                 begins a log, and `memctl memory audit verify` says that one is gone",
                audit.display()
            ));
        }
        if !others.is_empty() {
            found.push("a repair changes records, guardrails and the undo journal: take the rest out by hand".to_owned());
        }
        found
    }
}

fn is_copy(path: &Path) -> bool {
    let above = path.parent().and_then(Path::file_name);
    above.is_some_and(|above| above == RECOVERED)
}

/// Location of a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub struct SecretAt {
    /// Path of the file.
    pub path: PathBuf,
    /// Line on which the secret begins, from 1.
    pub line: u64,
    /// Kind of the secret.
    pub kind: &'static str,
}

/// Finds secrets in the memory and the skills. With `repair`, redacts the records and the guardrail
/// files first.
pub fn secrets(workspace: &Workspace, repair: bool) -> Result<SecretsReport, Error> {
    if !workspace.store.sees_all() {
        return Err(Error::OutOfScope("the files as a whole".to_owned()));
    }
    let redacted = if repair {
        take_out(workspace)?
    } else {
        Vec::new()
    };
    let mut search = Search {
        // The copies made by the repair hold the secrets, and the report names them.
        passed_over: redacted.iter().map(|c| c.copy.clone()).collect(),
        ..Search::default()
    };
    for path in [workspace.store.directory().path(), &workspace.skills_dir] {
        if named::exists(path) {
            let looked = search.directory(&Directory::at(path));
            search.warn(path, looked);
        }
    }
    Ok(SecretsReport {
        clean: search.found.is_empty(),
        files: search.files,
        secrets: search.found.into_iter().collect(),
        redacted,
        warnings: search.warnings,
        is_repaired: repair,
    })
}

fn take_out(workspace: &Workspace) -> Result<Vec<Cleaned>, Error> {
    let mut redacted = Vec::new();
    for file in DataFile::ALL {
        redacted.extend(workspace.store.clean(file, workspace.now)?);
    }
    if !redacted.is_empty() {
        Index::drop_gone(&workspace.store)?;
    }
    // The lock also stops corrections from writing the same files now.
    let mut writer = workspace.writer()?;
    if let Some((path, text, records)) = writer.drop_changes_with_secrets()? {
        let copy = workspace.copy_aside(&path, &text)?;
        redacted.push(Cleaned {
            path,
            copy,
            records,
        });
    }
    let Ok(skills) = Skills::open(&workspace.skills_dir) else {
        return Ok(redacted);
    };
    for path in guardrails(&skills)? {
        let Some(text) = skills.generated(&path).ok().flatten() else {
            continue;
        };
        if memctl_redact::findings(&text).is_empty() {
            continue;
        }
        let copy = workspace.copy_aside(&path, &text)?;
        let found = redacting_writer::replace(skills.directory(), &path, &text)?;
        redacted.push(Cleaned {
            path,
            copy,
            records: found.len(),
        });
    }
    Ok(redacted)
}

/// Guardrail files of all skills, each once.
fn guardrails(skills: &Skills) -> Result<BTreeSet<PathBuf>, Error> {
    let mut files = BTreeSet::new();
    for skill in skills.list()?.skills {
        files.extend(skills.guardrail_files(&skill)?);
    }
    Ok(files)
}

/// State of a scan for secrets.
#[derive(Debug, Default)]
struct Search {
    files: u64,
    found: BTreeSet<SecretAt>,
    warnings: Vec<String>,
    passed_over: HashSet<PathBuf>,
}

impl Search {
    fn warn(&mut self, path: &Path, looked: io::Result<()>) {
        if let Err(error) = looked {
            self.warnings
                .push(format!("cannot read `{}`: {error}", path.display()));
        }
    }

    fn directory(&mut self, directory: &Directory) -> io::Result<()> {
        for found in directory.list()? {
            if PASSED_OVER.iter().any(|passed| found.name == *passed) {
                continue;
            }
            let path = directory.join(&found.name);
            let looked = match found.kind {
                FoundKind::Directory => self.directory(&directory.below(&found.name)),
                FoundKind::File => {
                    let file = directory.open(&found.name);
                    file.and_then(|file| file.map_or(Ok(()), |file| self.file(&path, file)))
                }
                // A link leads to a file that is scanned at its own path, or that is none of ours.
                FoundKind::Link | FoundKind::Other => Ok(()),
            };
            self.warn(&path, looked);
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, file: File) -> io::Result<()> {
        if self.passed_over.contains(path) {
            return Ok(());
        }
        let mut reader = BufReader::new(file);
        let extension = path.extension().and_then(|end| end.to_str());
        let extension = extension.unwrap_or_default();
        let is_json = matches!(extension, "json" | "jsonl");
        let mut line = 1;
        self.files += 1;
        loop {
            let mut block = Vec::new();
            reader.by_ref().take(BLOCK).read_to_end(&mut block)?;
            if block.is_empty() {
                return Ok(());
            }
            reader.read_until(b'\n', &mut block)?;
            let text = String::from_utf8_lossy(&block);
            let findings = if is_json {
                memctl_redact::findings_in_json(&text)
            } else {
                memctl_redact::findings(&text)
            };
            let mut counted = 0;
            for finding in findings {
                line += breaks(&text[counted..finding.at.start]);
                counted = finding.at.start;
                self.found.insert(SecretAt {
                    path: path.to_owned(),
                    line,
                    kind: finding.kind,
                });
            }
            line += breaks(&text[counted..]);
        }
    }
}

fn breaks(text: &str) -> u64 {
    memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64
}
