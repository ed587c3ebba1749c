//! Installation of the git merge driver: attributes, which the repository shares, and settings, which
//! each clone has for itself.

use std::path::Path;

use crate::cli::config::Places;
use crate::cli::context::Context;
use crate::cli::learning::hooks::program;
use crate::model::error::UserError;
use crate::store::{DIRECTORY, shared_files};
use crate::upkeep::merge::git::Repository;
use crate::upkeep::with_lines;
use memctl_files::{ProjectPath, named};

/// Name of the driver in git.
const NAME: &str = "memctl";

/// Returns the lines of `.gitattributes`.
fn attributes() -> String {
    let mut patterns: Vec<String> = shared_files()
        .map(|name| format!("/{DIRECTORY}/{name}"))
        .collect();
    patterns.push("/skills/**/GUARDRAILS.md".to_owned());
    patterns.push("/skills/**/tests/generated/**".to_owned());
    let lines = patterns.iter();
    lines
        .flat_map(|pattern| [pattern.as_str(), " merge=", NAME, "\n"])
        .collect()
}

/// Installs what is missing. Returns what was installed, and what a person has to do.
pub(crate) fn install(
    context: &Context,
    repository: &Repository,
) -> Result<(Vec<String>, Vec<String>), UserError> {
    let (mut done, mut warnings) = (Vec::new(), Vec::new());
    let file = ProjectPath::new(project(&context.places), ".gitattributes");
    match with_lines(&file, &attributes()) {
        Ok(true) => done.push(file.path().display().to_string()),
        Ok(false) => {}
        Err(error) => warnings.push(format!(
            "the merge driver is not installed in `.gitattributes`: {}",
            UserError::from(error).message
        )),
    }
    let program = quoted(&program(context));
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
        let name = format!("merge.{NAME}.{name}");
        if repository.setting(&name).as_ref() != Some(&value) {
            repository.set(&name, &value)?;
            done.push(format!("{name} in the settings of this clone"));
        }
    }
    Ok((done, warnings))
}

/// Returns problems of the git setup of a workspace; empty if it is not in a git repository.
pub(crate) fn problems(directory: &Path) -> Vec<String> {
    let Some(repository) = Repository::of(directory) else {
        return Vec::new();
    };
    let file = directory
        .join(DIRECTORY)
        .join(crate::model::Kind::Correction.file());
    let is_named = repository.attribute("merge", &file).as_deref() == Some(NAME);
    let is_known = repository
        .setting(&format!("merge.{NAME}.driver"))
        .is_some();
    let mut found = Vec::new();
    if is_named && !is_known {
        found.push(
            "`.gitattributes` names the memctl merge driver, which is not installed in this clone; \
            run `memctl init --git`"
                .to_owned(),
        );
    }
    found
}

/// Returns the command that installs the merge driver, for a memory in a git repository that does
/// not ignore it and has no attributes for it. Nothing is wrong in such a repository.
pub(crate) fn offer(directory: &Path) -> Option<String> {
    let repository = Repository::of(directory)?;
    let memory = directory.join(DIRECTORY);
    let file = memory.join(crate::model::Kind::Correction.file());
    let is_open = named::exists(&memory)
        && !repository.ignores(&file)
        && repository.attribute("merge", &file).as_deref() != Some(NAME);
    is_open.then(|| "to merge the memory of two branches by records: memctl init --git".to_owned())
}

pub(crate) fn no_repository() -> UserError {
    UserError::usage("not a git repository, or git is not installed", "git init")
}

/// Returns the parent directory of a workspace's memory.
pub(crate) fn project(places: &Places) -> &Path {
    places.memory.parent().unwrap_or(&places.memory)
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
