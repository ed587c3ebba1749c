//! Looks for secrets in files: in the memory, or wherever somebody points to.
//!
//! What is written goes through the door and is clean; what lies there from before, or from other
//! programs, is found here. A secret is told by its file, its line and its kind, and never shown.
//! Mending takes it out of our own records, after a copy; files of others are only read.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::guard;
use crate::model::Kind;
use crate::platform::{Directory, FoundKind, named};
use crate::skill::Skills;
use crate::store::{Cleaned, Error as StoreError};

use super::index::Index;
use super::{Engine, Error, door};

/// Files are read in blocks of about this size, so that a large one needs no more memory.
const BLOCK: u64 = 16 << 20;
/// Directories that hold copies of what is looked at elsewhere, or what others publish.
const PASSED_OVER: &[&str] = &[".git", "node_modules"];

/// What was found.
#[derive(Debug, Serialize)]
pub struct SecretsReport {
    /// Whether nothing was found, or nothing is left.
    pub clean: bool,
    /// How many files were read.
    pub files: u64,
    /// Where secrets stand now; a line is told once for each kind.
    pub secrets: Vec<SecretAt>,
    /// Files that secrets were taken out of.
    pub redacted: Vec<Cleaned>,
    /// What could not be read.
    pub warnings: Vec<String>,
}

/// The place of a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SecretAt {
    /// The file.
    pub path: PathBuf,
    /// The line on which it begins, from 1.
    pub line: u64,
    /// What it is.
    pub kind: &'static str,
}

impl Engine {
    /// Looks for secrets in these files and directories; in the memory and the skills where none
    /// are named. With `repair`, takes them out of the records and the guardrail files first.
    pub fn secrets(&self, paths: &[PathBuf], repair: bool) -> Result<SecretsReport, Error> {
        if !self.store.sees_all() {
            let what = "the files as a whole".to_owned();
            return Err(StoreError::OutOfScope { what }.into());
        }
        let redacted = if repair { self.take_out()? } else { Vec::new() };
        let own = [
            self.store.directory().path().to_owned(),
            self.skills_dir.clone(),
        ];
        let mut search = Search {
            // The copies that were just made hold what was taken out, and the report says so.
            passed_over: redacted.iter().map(|c| c.copy.clone()).collect(),
            ..Search::default()
        };
        for path in if paths.is_empty() { &own[..] } else { paths } {
            if !paths.is_empty() || named::exists(path) {
                search.look_into(path);
            }
        }
        Ok(SecretsReport {
            clean: search.found.is_empty(),
            files: search.files,
            secrets: search.found.into_iter().collect(),
            redacted,
            warnings: search.warnings,
        })
    }

    fn take_out(&self) -> Result<Vec<Cleaned>, Error> {
        let mut redacted = Vec::new();
        for kind in Kind::ALL {
            redacted.extend(self.store.clean(kind, door::redact, self.now)?);
        }
        if !redacted.is_empty() {
            // A text can be guessed from its words and its vector.
            Index::open(&self.store)?.drop_gone(&mut |_, _| {})?;
        }
        // The lock also keeps corrections from writing the same files now.
        let _writer = self.writer()?;
        let Ok(skills) = Skills::open(&self.skills_dir) else {
            return Ok(redacted);
        };
        for path in guardrails(&skills)? {
            let Some(text) = skills.generated(&path).ok().flatten() else {
                continue;
            };
            if guard::findings(&text).is_empty() {
                continue;
            }
            let copy = self.copy_aside(&path, &text)?;
            let found = door::replace(skills.directory(), &path, &text)?;
            redacted.push(Cleaned {
                path,
                copy,
                records: found.len(),
            });
        }
        Ok(redacted)
    }
}

/// The guardrail files of all skills, each once.
fn guardrails(skills: &Skills) -> Result<BTreeSet<PathBuf>, Error> {
    let mut files = BTreeSet::new();
    for skill in skills.list()?.skills {
        files.extend(skills.guardrail_files(&skill)?);
    }
    Ok(files)
}

/// A search on its way through files.
#[derive(Debug, Default)]
struct Search {
    files: u64,
    found: BTreeSet<SecretAt>,
    warnings: Vec<String>,
    passed_over: HashSet<PathBuf>,
}

impl Search {
    fn look_into(&mut self, path: &Path) {
        let looked = match named::link_metadata(path) {
            // A link leads to what is looked at where it lies, or to what nobody has named.
            Ok(metadata) if metadata.is_symlink() => Ok(()),
            Ok(metadata) if metadata.is_dir() => self.directory(&Directory::at(path)),
            Ok(metadata) if metadata.is_file() => {
                named::open_plain(path).and_then(|file| self.file(path, file))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        self.warn(path, looked);
    }

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
                FoundKind::File => match directory.open(&found.name) {
                    Ok(Some(file)) => self.file(&path, file),
                    Ok(None) => Ok(()),
                    Err(error) => Err(error),
                },
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
        let extension = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default();
        let is_json = matches!(extension, "json" | "jsonl" | "ndjson" | "traj" | "ipynb");
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
                guard::findings_in_json(&text)
            } else {
                guard::findings(&text)
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
