//! Tasks and scripts that a project defines: `make pack`, `npm run unit`, `scripts/dev-db.sh`.
//!
//! A fix that runs one of them is knowledge of the project. Another one has no such task, or has
//! something else under its name. Targets that the tools' own conventions define (`make install`)
//! are not of one project, and neither are wrappers that tools write into every project
//! (`./gradlew`).

use crate::learn::shell_command::Run;

use super::script::{self, Script};

/// Runners whose task names every project invents.
const RUNNERS: &[&str] = &["make", "gmake", "just", "task", "rake", "invoke", "mage"];

/// Runners of the scripts of a package, behind `run`.
const SCRIPT_RUNNERS: &[&str] = &["npm", "pnpm", "yarn", "bun", "composer"];

/// Standard targets of the GNU coding standards, and of package managers' documentation.
const STANDARD: &[&str] = &[
    "all", "build", "check", "clean", "dev", "distclean", "install", "start", "test", "uninstall",
];

/// Endings of scripts.
const SCRIPTS: &[&str] = &[
    "sh", "bash", "zsh", "py", "rb", "pl", "js", "mjs", "cjs", "ts", "ps1",
];

/// Returns the words of a command line that name a task or a script of its project.
pub(super) fn tasks(command: &str) -> Vec<String> {
    let script = Script::of(command);
    let commands = script.parts.iter().flat_map(|part| &part.commands);
    commands
        .flat_map(|simple| {
            let task = task(&script::plain(simple));
            let scripts = simple.words.iter().filter(|word| is_script(word)).cloned();
            task.into_iter().chain(scripts).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the task that a runner is called with.
fn task(run: &Run) -> Option<String> {
    let mut words = run.name.split(' ');
    let runner = words.next()?;
    let named = words.next()?;
    let task = if SCRIPT_RUNNERS.contains(&runner) && named == "run" {
        words.next()?
    } else if RUNNERS.contains(&runner) {
        named
    } else {
        return None;
    };
    (!STANDARD.contains(&task) && !task.contains('=')).then(|| task.to_owned())
}

/// Returns `true` for a script in a folder of the project. A URL names none, and neither does a file
/// of a package that was installed.
fn is_script(word: &str) -> bool {
    let path = word.trim_start_matches("./");
    let is_script = path
        .rsplit_once('.')
        .is_some_and(|(_, ending)| SCRIPTS.contains(&ending));
    let is_foreign = path.contains("://") || path.starts_with("node_modules/");
    is_script
        && !is_foreign
        && path.contains('/')
        && !path.starts_with(['/', '~', '.', '-', '$', '@'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_and_scripts_of_a_project_are_found() {
        let check = |command: &str, expected: &[&str]| {
            assert_eq!(tasks(command), expected, "{command}");
        };
        check("mkdir -p dist && make pack", &["pack"]);
        check("make CC=clang && make install", &[]);
        check("npm run unit && npm run build", &["unit"]);
        check("npm install && npm test", &[]);
        check("./scripts/dev-db.sh up && pytest", &["./scripts/dev-db.sh"]);
        check("python tools/seed.py", &["tools/seed.py"]);
        check("python setup.py install && ./gradlew build", &[]);
        check("curl -O https://a.example/setup.sh", &[]);
        check("node node_modules/vite/bin/vite.js", &[]);
        check("cat /etc/x.sh .venv/bin/a.py", &[]);
    }
}
