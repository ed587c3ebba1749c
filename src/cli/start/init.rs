//! `init`: creation of a workspace, and of git's merge driver: attributes, which the repository
//! shares, and settings, which each clone has for itself. `merge-driver`: what git calls.

use std::path::{Path, PathBuf};

use clap::Args;
use memctl_files::{SharedFile, named};
use serde::Serialize;

use crate::cli::context::{Context, random};
use crate::cli::output::{Done, Page, Report};
use crate::cli::start::places::program;
use crate::host;
use crate::model::Kind;
use crate::model::error::{UserError, message};
use crate::store::workspace::redacting_writer;
use crate::store::{DIRECTORY, IDENTITY, Role, role, shared_files};
use crate::upkeep::merge::git::{ATTRIBUTES, DRIVER, DriverInput, Repository};
use crate::upkeep::merge::{Files, Joined, Versions, is_of_corrections, join, write_renamed};
use crate::upkeep::{InitReport, initialise, with_lines};

/// Create a workspace: `.agentura/` for records
///
/// It is at the top of the repository, for its work trees too, or here; `--root .` gives a folder its own.
///
/// Git sees what people share: approved rules and lessons, notes, corrections. What a session
/// changes is ignored. `--git` installs a merge driver, which merges the records of two branches; in a
/// clone without it, git leaves conflict markers, and `memctl init --git && git checkout --merge
/// .agentura` merges the files again.
///
/// ```console
/// $ memctl init
/// $ memctl init --git
/// ```
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Install the git merge driver for a memory that branches share
    #[arg(long)]
    git: bool,
}

pub(crate) fn init(context: &Context, args: &InitArgs) -> Done<InitReport> {
    // Nothing is created without the repository that was asked for.
    let repository = if args.git {
        Some(Repository::of(context.project()).ok_or_else(no_repository)?)
    } else {
        None
    };
    let store = context.store(&context.config()?)?;
    let mut random = random;
    let mut report = initialise(&store, &context.places.skills, &mut random)?;
    report.git = seen_by_git(context, Vec::new());
    if let Some(repository) = repository {
        let (done, warnings) = install(context, &repository)?;
        report.created.extend(done);
        report.warnings.extend(warnings);
    }
    Ok(report)
}

impl Report for InitReport {
    fn page(&self, page: &mut Page) {
        if page.quiet {
            return;
        }
        if self.created.is_empty() {
            return page.line(format!("Already set up: {}", self.directory));
        }
        self.created
            .iter()
            .for_each(|created| page.good("created ", created));
        show_git(&self.git, page);
        page.line("\nNext:");
        page.line(
            "  memctl setup                  let agents use it, and learn from past sessions",
        );
        page.line("  put a skill into `skills/<domain>/<skill>/SKILL.md`, and run it:");
        page.line("  memctl run <domain>/<skill> --input FILE");
    }
}

/// Files of the memory, and `more`, that git does not ignore, by their paths in the project. Each is there when the
/// first of its records is: `tombstones.jsonl` after the first `forget`.
pub(crate) fn seen_by_git(context: &Context, more: Vec<PathBuf>) -> Vec<String> {
    let project = context.project();
    let Some(repository) = Repository::of(project) else {
        return Vec::new();
    };
    let memory = &context.places.memory;
    let of_memory = shared_files().chain([".gitignore", IDENTITY]);
    let files = of_memory.map(|name| memory.join(name)).chain(more);
    let files: Vec<PathBuf> = files.filter(|path| path.starts_with(project)).collect();
    let ignored = repository.ignored(&files);
    let mut seen: Vec<String> = files
        .iter()
        .filter(|path| !ignored.contains(path))
        .filter_map(|path| Some(path.strip_prefix(project).ok()?.display().to_string()))
        .collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

/// Says what git will see.
pub(crate) fn show_git(files: &[String], page: &mut Page) {
    if !files.is_empty() {
        page.field("git will see", &files.join(", "));
        page.field("", "What sessions change stays out of it.");
    }
}

/// Returns the lines of `.gitattributes`.
fn attributes() -> String {
    let of_memory = shared_files()
        .chain([IDENTITY])
        .map(|name| format!("{DIRECTORY}/{name}"));
    let of_skills = [
        "skills/**/GUARDRAILS.md",
        "skills/**/tests/generated/*.json",
    ];
    let patterns = of_memory.chain(of_skills.map(str::to_owned));
    let lines: Vec<String> = patterns
        .map(|pattern| format!("/{pattern} merge={DRIVER}\n"))
        .collect();
    lines.concat()
}

/// Installs what is missing. Returns what was installed, and what a person has to do.
pub(crate) fn install(
    context: &Context,
    repository: &Repository,
) -> Result<(Vec<String>, Vec<String>), UserError> {
    let (mut done, mut warnings) = (Vec::new(), Vec::new());
    let file = SharedFile::of_project(context.project(), ATTRIBUTES);
    match with_lines(&file, &attributes()) {
        Ok(true) => done.push(file.path().display().to_string()),
        Ok(false) => {}
        Err(error) => warnings.push(format!(
            "the merge driver is not installed in `.gitattributes`: {}",
            UserError::from(error).message
        )),
    }
    let program = host::quoted(&program(context));
    // Git quotes the values that it fills in.
    let driver =
        format!("{program} merge-driver %O %A %B --path %P --base-label %S --their-label %Y");
    let settings = [
        ("name", "records of memctl".to_owned()),
        ("driver", driver),
        // Two merge bases are merged as bases, not as sides.
        ("recursive", "binary".to_owned()),
    ];
    for (name, value) in settings {
        let name = format!("merge.{DRIVER}.{name}");
        if repository.setting(&name).as_ref() != Some(&value) {
            repository.set(&name, &value)?;
            done.push(format!("{name} in the settings of this clone"));
        }
    }
    Ok((done, warnings))
}

/// Returns problems of the git setup of a workspace, and the command that installs the merge driver. The command
/// is only for a memory that git tracks without the attributes; that alone is no problem.
pub(crate) fn problems(directory: &Path) -> (Vec<String>, Option<String>) {
    let Some(repository) = Repository::of(directory) else {
        return (Vec::new(), None);
    };
    let memory = directory.join(DIRECTORY);
    let file = memory.join(Kind::Correction.file());
    let is_named = repository.attribute("merge", &file).as_deref() == Some(DRIVER);
    let is_known = || {
        repository
            .setting(&format!("merge.{DRIVER}.driver"))
            .is_some()
    };
    let mut found = Vec::new();
    if is_named && !is_known() {
        found.push(
            "`.gitattributes` names the memctl merge driver, which is not installed in this clone; \
            run `memctl init --git`"
                .to_owned(),
        );
    }
    let is_open = !is_named && named::exists(&memory) && repository.ignored(&[file]).is_empty();
    let offer = "to merge the memory of two branches by records: memctl init --git";
    (found, is_open.then(|| offer.to_owned()))
}

pub(crate) fn no_repository() -> UserError {
    UserError::usage("not a git repository, or git is not installed", "git init")
}

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

pub(crate) fn merge_driver(context: &Context, args: &MergeDriverArgs) -> Done<Driven> {
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
    let mut driven = Driven {
        path: args.path.clone(),
        conflicts: Vec::new(),
        notes: Vec::new(),
        reason: None,
    };
    let reason = match merged(&repository, &input, &mut driven) {
        Ok(Some(text)) => {
            redacting_writer::write_output(&ours, &text)?;
            return Ok(driven);
        }
        Ok(None) => "the merge would remove this file".to_owned(),
        Err(reason) => reason,
    };
    // The file is left in conflict as git would leave it.
    repository.merge_file(&ours, &base, &theirs)?;
    driven.conflicts.clear();
    driven.reason = Some(reason);
    Ok(driven)
}

/// Returns `true` if the file at this workspace path is merged by records.
fn takes_part(path: &str) -> bool {
    match role_of(path) {
        Some(role) => matches!(role, Role::Records(_) | Role::Tombstones | Role::Identity),
        None => is_of_corrections(path),
    }
}

/// Role of the file at this workspace path; `None` outside of the memory.
fn role_of(path: &str) -> Option<Role> {
    let name = path.strip_prefix(DIRECTORY)?.strip_prefix('/')?;
    Some(role(name))
}

/// Returns the merged text of a file, `None` if no side has it, or the reason why only a person can
/// merge it.
fn merged(
    repository: &Repository,
    input: &DriverInput<'_>,
    driven: &mut Driven,
) -> Result<Option<Vec<u8>>, String> {
    let prefix = workspace_of(repository, input.path).ok_or("not in a workspace")?;
    let path = &input.path[prefix.len()..];
    let sides = repository.sides(input).map_err(|error| message(&error))?;
    let below = [format!("{prefix}{DIRECTORY}"), format!("{prefix}skills")];
    let wanted = |path: &str| path.strip_prefix(&*prefix).is_some_and(takes_part);
    let files = |commit: &String| {
        let files = repository.files(commit, &below, &wanted);
        let files = files.map_err(|error| message(&error))?.into_iter();
        let files = files.map(|(path, bytes)| (path[prefix.len()..].to_owned(), bytes));
        Ok::<Files, String>(files.collect())
    };
    let versions = Versions {
        base: sides
            .base
            .as_ref()
            .map(files)
            .transpose()?
            .unwrap_or_default(),
        ours: files(&sides.ours)?,
        theirs: files(&sides.theirs)?,
    };
    let joined = join(&versions)?;
    if let Some(reason) = joined.refused.get(path) {
        return Err(reason.clone());
    }
    if let Some(kind) = kind_of(path) {
        driven.of_kind(&joined, kind);
    }
    if let Some((whose, new, content)) = joined.renamed(path) {
        let root = named::directory(&repository.top().join(&prefix));
        write_renamed(&root, &new, content).map_err(|error| message(&error))?;
        let note = format!("{whose} version is in {new}; add that file");
        driven.notes.push(note);
    }
    let mut new = joined.new_ids.iter().chain(&joined.given_up);
    if kind_of(path).is_some_and(|kind| new.any(|id| id.kind == kind)) {
        let note = |file: &String| format!("{file} names records by their former ids");
        driven.notes.extend(joined.outdated.iter().map(note));
    }
    Ok(joined.files.get(path).cloned())
}

/// Kind of the records in a file at this workspace path.
fn kind_of(path: &str) -> Option<Kind> {
    match role_of(path)? {
        Role::Records(kind) => Some(kind),
        _ => None,
    }
}

impl Driven {
    /// Adds what a merge did to the records of a kind.
    fn of_kind(&mut self, joined: &Joined, kind: Kind) {
        for (whose, new) in [("their", &joined.new_ids), ("our", &joined.given_up)] {
            let new = new.iter().filter(|id| id.kind == kind);
            let new: Vec<String> = new.map(|id| format!("{} → {}", id.from, id.to)).collect();
            self.notes.extend(match &new[..] {
                [] => None,
                [only] => Some(format!("1 record from {whose} side got a new id: {only}")),
                [first, .., last] => Some(format!(
                    "{} records from {whose} side got new ids: {first} … {last}",
                    new.len()
                )),
            });
        }
        let notes = joined.notes.iter();
        let notes = notes.filter(|note| note.starts_with(kind.name()));
        self.notes.extend(notes.cloned());
        let conflicts = joined
            .conflicts
            .iter()
            .filter(|conflict| conflict.kind == kind);
        let named = conflicts.map(|conflict| format!("{} {}", conflict.id, conflict.field));
        self.conflicts.extend(named);
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
    Some(match found.to_str()? {
        "" => String::new(),
        found => format!("{found}/"),
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
            page.note("memctl: ", format!("{path}{note}"));
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
            page.warn("memctl: ", line);
        }
    }
}
