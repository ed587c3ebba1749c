//! Call of an agent as its commands and paths, and the match with a check.

use crate::learn::goal::Goal;
use crate::learn::shell::{self, Simple, basename};
use crate::learn::shell_command::{Run, wrapped};
use crate::model::{Check, Step};

use super::pattern::{matches_command, matches_path, matches_tool};

/// Call of an agent, ready to match.
#[derive(Debug, Default)]
pub struct Call {
    tool: String,
    /// Simple commands, each as its words.
    commands: Vec<Vec<String>>,
    /// Paths that the call changes.
    written: Vec<String>,
    /// All paths of the call.
    paths: Vec<String>,
}

/// Programs that change the files that they are given.
const CHANGING: &[&str] = &[
    "rm", "rmdir", "touch", "truncate", "ln", "unlink", "shred", "git rm", "git mv",
];

impl Call {
    /// Reads a call. Paths become relative to `root`, the directory of the project, or else to the
    /// working directory.
    pub fn of(step: &Step, root: &str) -> Self {
        let mut call = Self {
            tool: step.tool.clone(),
            ..Self::default()
        };
        let cwd = step.cwd.as_deref().unwrap_or(root);
        let goal = Goal::of(step);
        let written = goal.written().into_iter().map(str::to_owned);
        call.written = written.collect();
        call.paths.clone_from(&call.written);
        if let Some(command) = step.command() {
            for simple in shell::commands(&command) {
                call.take(&simple);
            }
        } else {
            call.paths
                .extend(goal.looked_for().into_iter().map(str::to_owned));
            let named = step.argument(&["file_path", "path", "notebook_path", "absolute_path"]);
            call.paths.extend(named.map(str::to_owned));
        }
        for path in call.written.iter_mut().chain(&mut call.paths) {
            *path = relative(path, cwd, root);
        }
        call
    }

    fn take(&mut self, simple: &Simple) {
        let run = Run::of(simple);
        let operands = || run.operands.iter().cloned();
        self.paths.extend(operands());
        if run.writes || CHANGING.contains(&run.name.as_str()) {
            self.written.extend(operands());
        }
        let mut words = simple.words.clone();
        // A script of a shell behind `<<` is a list of commands.
        if words.len() == 1
            && !simple.body.is_empty()
            && ["sh", "bash", "zsh"].contains(&&*words[0])
        {
            for inner in shell::commands(&simple.body) {
                self.commands.push(inner.words);
            }
        }
        if let Some(first) = words.first_mut() {
            *first = basename(first).to_owned();
            let plain = first.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            // `python3` and `pip3.12` are also `python` and `pip`.
            if plain.len() > 1 && plain.len() < first.len() {
                let plain = plain.to_owned();
                let mut other = words.clone();
                other[0] = plain;
                self.commands.push(other);
            }
        }
        self.commands.extend(wrapped(&words));
        self.commands.push(words);
    }

    /// Returns `true` if the call changes a named file.
    pub(super) fn writes(&self) -> bool {
        !self.written.is_empty()
    }

    /// Programs that the call runs.
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        self.commands
            .iter()
            .filter_map(|words| Some(&**words.first()?))
    }

    /// Returns `true` if all patterns of a check match. A path pattern concerns files that the call
    /// changes; with a tool pattern, all of its files.
    pub fn matches(&self, check: &Check) -> bool {
        if check.is_blank() || !check.tool.is_empty() && !matches_tool(&check.tool, &self.tool) {
            return false;
        }
        let is_command = |words: &Vec<String>| matches_command(&check.command, words);
        if !check.command.is_empty() && !self.commands.iter().any(is_command) {
            return false;
        }
        let paths = if check.tool.is_empty() && check.command.is_empty() {
            &self.written
        } else {
            &self.paths
        };
        check.path.is_empty() || paths.iter().any(|path| matches_path(&check.path, path))
    }
}

/// Returns a path relative to the project or the working directory, without `.` and `..`. Paths of
/// Windows get `/` between their names, and before a drive.
fn relative(path: &str, cwd: &str, root: &str) -> String {
    let is_windows = has_drive(path) || has_drive(cwd);
    let plain = |path: &str| match (is_windows, has_drive(path)) {
        (false, _) => path.to_owned(),
        (true, drive) => format!(
            "{}{}",
            if drive { "/" } else { "" },
            path.replace('\\', "/")
        ),
    };
    let [path, cwd, root] = &[path, cwd, root].map(plain);
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{cwd}/{path}")
    };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    let whole = format!("/{}", names.join("/"));
    let below = |directory: &str| {
        let rest = whole.strip_prefix(directory.trim_end_matches('/'))?;
        rest.strip_prefix('/').map(str::to_owned)
    };
    below(root).or_else(|| below(cwd)).unwrap_or(whole)
}

/// Returns `true` for an absolute path of Windows with a drive: `C:\a` or `C:/a`.
fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::learn::check::{terms, terms_of_call};
    use crate::model::CheckAction;

    fn call(tool: &str, input: Value) -> Call {
        let step = Step {
            tool: tool.to_owned(),
            input,
            cwd: Some("/home/u/p/web".to_owned()),
            ..Step::default()
        };
        Call::of(&step, "/home/u/p")
    }

    fn check(tool: &str, command: &str, path: &str) -> Check {
        Check {
            tool: tool.to_owned(),
            command: command.to_owned(),
            path: path.to_owned(),
            action: CheckAction::Note,
        }
    }

    /// A check that matches has a term in common with the call.
    fn matches(call: &Call, check: &Check) -> bool {
        let found = call.matches(check);
        let terms = terms(check);
        let is_indexed = terms_of_call(call).iter().any(|term| terms.contains(term));
        assert!(!found || is_indexed, "{call:?} {check:?}");
        found
    }

    #[test]
    fn paths_of_windows_are_relative_to_the_project() {
        let check = |path: &str, expected: &str| {
            let found = relative(path, r"C:\Users\u\p\web", r"C:\Users\u\p");
            assert_eq!(found, expected, "{path}");
        };
        check(r"C:\Users\u\p\src\main.rs", "src/main.rs");
        check("C:/Users/u/p/src/main.rs", "src/main.rs");
        check(r"..\src\.\main.rs", "src/main.rs");
        check("index.html", "web/index.html");
        check(r"D:\other", "/D:/other");
        assert_eq!(relative(r"a\b", "/p", "/p"), r"a\b");
    }

    #[test]
    fn a_command_is_found_in_the_parsed_line() {
        let run = |line: &str, pattern: &str, expected: bool| {
            let call = call("Bash", json!({"command": line}));
            let check = check("", pattern, "");
            assert_eq!(matches(&call, &check), expected, "{line}: {pattern}");
        };
        run("npm install", "npm", true);
        run("cd x && npm install", "npm", true);
        run(
            "cd x; FOO=1 sudo npm install | tee log",
            "npm install",
            true,
        );
        run("bash -lc 'cd x && npm ci'", "npm ci", true);
        run("/usr/local/bin/npm ci", "npm", true);
        run("timeout 60 npm ci", "npm", true);
        run("bash <<'EOF'\nnpm ci\nEOF", "npm", true);
        run("echo npm", "npm", false);
        run("echo 'npm install' > notes", "npm", false);
        run("git commit -m 'use npm install'", "npm", false);
        run("cat <<EOF > x\nnpm install\nEOF", "npm", false);
        run("# npm install\nls", "npm", false);
        run("pnpm install", "npm", false);
        run("python3 -m pip install x", "pip install", true);
        run("pip3 install x", "pip", true);
        run("python3.12 a.py", "python", true);
        run("uv run pytest -x", "pytest", true);
        run("npx -y jest", "jest", true);
        run("uv pip install x", "pip", false);
        run(
            "git commit --no-verify -m x",
            "git commit --no-verify",
            true,
        );
    }

    #[test]
    fn a_path_is_found_in_what_the_call_changes() {
        let run = |tool: &str, input: Value, path: &str, expected: bool| {
            let call = call(tool, input.clone());
            assert_eq!(
                matches(&call, &check("", "", path)),
                expected,
                "{input} {path}"
            );
        };
        let edit = |path: &str| json!({"file_path": path, "old_string": "a", "new_string": "b"});
        run(
            "Edit",
            edit("/home/u/p/db/migrations/1.sql"),
            "db/migrations/",
            true,
        );
        run(
            "Edit",
            edit("/home/u/p/db/models/1.py"),
            "db/migrations/",
            false,
        );
        run(
            "Edit",
            edit("a/../package-lock.json"),
            "web/package-lock.json",
            true,
        );
        run(
            "Write",
            json!({"file_path": "/etc/x", "content": "c"}),
            "/etc/**",
            true,
        );
        run(
            "Read",
            json!({"file_path": "/home/u/p/db/migrations/1.sql"}),
            "db/migrations/",
            false,
        );
        run(
            "Bash",
            json!({"command": "cat ../db/migrations/1.sql"}),
            "db/migrations/",
            false,
        );
        run(
            "Bash",
            json!({"command": "rm ../db/migrations/1.sql"}),
            "db/migrations/",
            true,
        );
        run(
            "Bash",
            json!({"command": "sed -i s/a/b/ ../db/migrations/1.sql"}),
            "db/migrations/",
            true,
        );
        run(
            "apply_patch",
            json!({"input": "*** Begin Patch\n*** Update File: db/migrations/1.sql\n@@\n"}),
            "migrations",
            true,
        );
        // With a tool, reading counts too.
        let read = call("Read", json!({"file_path": "/home/u/p/.env"}));
        assert!(matches(&read, &check("Read", "", ".env")));
        assert!(!matches(&read, &check("Edit|Write", "", ".env")));
        let cat = call("Bash", json!({"command": "cat ../.env"}));
        assert!(matches(&cat, &check("", "cat", ".env")));
    }

    #[test]
    fn a_tool_is_found_by_its_name() {
        let fetch = call("mcp__web__fetch", json!({"url": "https://x"}));
        assert!(matches(&fetch, &check("mcp__web__*", "", "")));
        assert!(matches(&fetch, &check("WebFetch|MCP__*", "", "")));
        assert!(!matches(&fetch, &check("web", "", "")));
        assert!(!matches(&fetch, &check("", "", "")));
    }

    proptest! {
        #[test]
        fn no_call_makes_it_panic(line in "[a-z \"'\\\\$()<>|&;\n#=./-]{0,60}", path in "[a-z*/.]{0,12}") {
            let call = call("Bash", json!({"command": line}));
            matches(&call, &check("", "", &path));
            matches(&call, &check("", &path, ""));
        }
    }
}
