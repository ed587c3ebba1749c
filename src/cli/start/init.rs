//! `init`: creation of a workspace, and of git's merge driver: attributes, which the repository
//! shares, and settings, which each clone has for itself.

use std::path::{Path, PathBuf};

use clap::Args;
use memctl_files::{SharedFile, named};

use crate::cli::context::{Context, random};
use crate::cli::output::{Done, Page, Report};
use crate::cli::start::hooks::program;
use crate::host;
use crate::model::Kind;
use crate::model::error::UserError;
use crate::store::{DIRECTORY, IDENTITY, shared_files};
use crate::upkeep::merge::git::{ATTRIBUTES, DRIVER, Repository};
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
        if page.is_quiet() {
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
