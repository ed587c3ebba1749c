//! `merge-driver`: git's merge driver for files of the memory. `init --git` installs it.

use std::path::{Path, PathBuf};

use clap::Args;
use memctl_files::named;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::output::page::Page;
use crate::cli::output::text::plural;
use crate::cli::output::{Done, Report, Style};
use crate::cli::start::init::no_repository;
use crate::model::Kind;
use crate::store::{DIRECTORY, Role, role};
use crate::upkeep::merge::git::{DriverInput, Repository};
use crate::upkeep::merge::{
    Joined, Versions, is_of_corrections, join, write_renamed, write_result,
};

/// Merge memory files of two git branches by records (called by git)
///
/// `memctl init --git` installs it: git then merges the files below `.agentura/`, and the output of
/// corrections in skills, by records instead of lines.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct MergeDriverArgs {
    /// File as both sides had it
    #[arg(value_name = "BASE")]
    base: PathBuf,
    /// File of our side; the result is written here
    #[arg(value_name = "OURS")]
    ours: PathBuf,
    /// File of their side
    #[arg(value_name = "THEIRS")]
    theirs: PathBuf,
    /// Path of the file in the repository
    #[arg(long, value_name = "PATH")]
    path: String,
    /// Git's label for the common version
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
    base_label: Option<String>,
    /// Git's label for their side
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
    their_label: Option<String>,
}

pub(crate) fn merge_driver(context: &Context, args: &MergeDriverArgs) -> Done {
    let here = |path: &PathBuf| context.environment.absolute(path);
    let (base, ours, theirs) = (here(&args.base), here(&args.ours), here(&args.theirs));
    let repository = Repository::of(&context.environment.current_dir);
    let repository = repository.ok_or_else(no_repository)?;
    let input = DriverInput {
        path: &args.path,
        versions: [&base, &ours, &theirs],
        labels: [args.base_label.as_deref(), args.their_label.as_deref()],
        heads: context.environment.names_after("GITHEAD_"),
    };
    driven(&repository, &input)
}

/// Returns `true` if the file at this workspace path is merged by records.
fn takes_part(path: &str) -> bool {
    match path
        .strip_prefix(DIRECTORY)
        .and_then(|rest| rest.strip_prefix('/'))
    {
        Some(name) => matches!(
            role(name),
            Role::Records(_) | Role::Log | Role::Tombstones | Role::Identity
        ),
        None => is_of_corrections(path),
    }
}

/// Merges one file, or leaves it in conflict as git would.
fn driven(repository: &Repository, input: &DriverInput<'_>) -> Done {
    let done = joined(repository, input);
    let (reason, notes) = match done {
        Ok(Merged {
            text: Some(text),
            conflicts,
            notes,
        }) => {
            write_result(input.versions[1], &text)?;
            return Ok(Box::new(Driven {
                path: input.path.to_owned(),
                conflicts,
                notes,
                reason: None,
            }));
        }
        Ok(done) => ("the merge would remove this file".to_owned(), done.notes),
        Err(reason) => (reason, Vec::new()),
    };
    let [base, ours, theirs] = input.versions;
    repository.merge_file(ours, base, theirs)?;
    Ok(Box::new(Driven {
        path: input.path.to_owned(),
        conflicts: Vec::new(),
        notes,
        reason: Some(reason),
    }))
}

/// Merge result for one file.
struct Merged {
    /// Merged bytes; `None` if only a person can merge the file.
    text: Option<Vec<u8>>,
    /// Record fields that a person has to decide.
    conflicts: Vec<String>,
    notes: Vec<String>,
}

fn joined(repository: &Repository, input: &DriverInput<'_>) -> Result<Merged, String> {
    let message = |error: &dyn std::error::Error| {
        let source = error.source().map(|source| format!(": {source}"));
        format!("{error}{}", source.unwrap_or_default())
    };
    let prefix = workspace_of(repository, input.path).ok_or("not in a workspace")?;
    let path = &input.path[prefix.len()..];
    let sides = repository.sides(input).map_err(|error| message(&error))?;
    let below = [format!("{prefix}{DIRECTORY}"), format!("{prefix}skills")];
    let wanted = |path: &str| path.strip_prefix(&*prefix).is_some_and(takes_part);
    let files = |commit: Option<&String>| {
        let Some(commit) = commit else {
            return Ok(std::collections::BTreeMap::new());
        };
        let files = repository
            .files(commit, &below, &wanted)
            .map_err(|error| message(&error))?;
        let files = files.into_iter();
        Ok::<_, String>(
            files
                .map(|(path, bytes)| (path[prefix.len()..].to_owned(), bytes))
                .collect(),
        )
    };
    let versions = Versions {
        base: files(sides.base.as_ref())?,
        ours: files(Some(&sides.ours))?,
        theirs: files(Some(&sides.theirs))?,
    };
    let root = repository.top().join(&prefix);
    let joined = join(&versions).map_err(|error| message(&error))?;
    if let Some(reason) = joined.refused.get(path) {
        return Err(reason.clone());
    }
    let mut done = of_file(&joined, path);
    if let Some((new, content)) = joined.renamed(path) {
        write_renamed(&named::directory(&root), &new, content).map_err(|error| message(&error))?;
        done.notes
            .push(format!("their version is in {new}; add that file"));
    }
    let has_new_ids = kind_of(path).is_some_and(|k| joined.new_ids.iter().any(|id| id.kind == k));
    for outdated in joined.outdated(&versions) {
        if has_new_ids {
            done.notes
                .push(format!("{outdated} names records by their former ids"));
        }
    }
    Ok(done)
}

/// Kind of the records in a file at this workspace path.
fn kind_of(path: &str) -> Option<Kind> {
    let name = path.strip_prefix(DIRECTORY)?.strip_prefix('/')?;
    match role(name) {
        Role::Records(kind) => Some(kind),
        _ => None,
    }
}

/// Returns the part of a merge that concerns one file.
fn of_file(joined: &Joined, path: &str) -> Merged {
    let kind = kind_of(path);
    let mut notes = Vec::new();
    let new: Vec<String> = joined
        .new_ids
        .iter()
        .filter(|id| Some(id.kind) == kind)
        .map(|id| format!("{} → {}", id.from, id.to))
        .collect();
    if let [first, .., last] = &new[..] {
        let count = plural(new.len() as u64, "record");
        notes.push(format!(
            "{count} from their side got new ids: {first} … {last}"
        ));
    } else if let [only] = &new[..] {
        notes.push(format!("1 record from their side got a new id: {only}"));
    }
    if let Some(kind) = kind {
        let of_kind = joined
            .notes
            .iter()
            .filter(|note| note.starts_with(kind.name()));
        notes.extend(of_kind.cloned());
    }
    let conflicts = joined
        .conflicts
        .iter()
        .filter(|conflict| Some(conflict.kind) == kind);
    Merged {
        text: joined.files.get(path).cloned(),
        conflicts: conflicts.map(|c| format!("{} {}", c.id, c.field)).collect(),
        notes,
    }
}

/// Returns the path of a file's workspace in the repository, with a trailing slash; empty for the
/// top.
fn workspace_of(repository: &Repository, path: &str) -> Option<String> {
    let inside = format!("{DIRECTORY}/");
    if let Some(at) = path.find(&inside)
        && (at == 0 || path.as_bytes()[at - 1] == b'/')
    {
        return Some(path[..at].to_owned());
    }
    let mut above = Path::new(path).ancestors().skip(1);
    let found = above.find(|above| named::is_dir(&repository.top().join(above).join(DIRECTORY)))?;
    let found = found.to_str()?;
    Some(if found.is_empty() {
        String::new()
    } else {
        format!("{found}/")
    })
}

/// Merge report for one file, as git shows it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Driven {
    path: String,
    /// Fields that both branches have set to different values.
    conflicts: Vec<String>,
    notes: Vec<String>,
    /// Reason why the file is left to a person; `None` if it is merged.
    reason: Option<String>,
}

impl Report for Driven {
    fn page(&self, page: &mut Page) {
        page.fails_if(self.reason.is_some() || !self.conflicts.is_empty());
        let path = format!("{}: ", self.path);
        for note in &self.notes {
            page.styled(&[
                (Style::Dim, "memctl: "),
                (Style::Plain, &path),
                (Style::Plain, note),
            ]);
        }
        for conflict in &self.conflicts {
            let id = conflict.split(' ').next().unwrap_or_default();
            let line = format!(
                "{path}both sides changed {conflict}; \
                run `memctl memory resolve {id} --ours` or `--theirs`"
            );
            page.warn("memctl: ", &line);
        }
        if let Some(reason) = &self.reason {
            let line = format!("{path}not merged, conflict markers are in the file: {reason}");
            page.warn("memctl: ", &line);
        }
    }
}
