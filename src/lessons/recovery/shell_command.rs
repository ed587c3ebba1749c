//! Program, subcommand and arguments of a simple command.

use std::collections::HashSet;

use super::shell::{Simple, basename};

/// Run of one program.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Program with its subcommand: `git status`, `cargo test`, `build.py`.
    pub(crate) name: String,
    /// Arguments that are not flags.
    pub(crate) operands: Vec<String>,
    /// Words of code arguments.
    pub(crate) code: HashSet<String>,
    /// Words of prose arguments, such as a message or a title.
    pub(crate) prose: HashSet<String>,
    /// Only reads files.
    pub(crate) looks: bool,
}

/// Programs with subcommands.
const LAYERED: &[&str] = &[
    "git", "cargo", "go", "npm", "pnpm", "yarn", "bun", "docker", "kubectl", "gh", "mise", "make",
    "just", "terraform", "pip", "apt", "apt-get", "brew", "dotnet", "gradle", "gradlew", "mvn",
    "mvnw", "rustup", "poetry", "uv", "conda", "helm", "systemctl", "launchctl", "aws", "gcloud",
    "az", "bundle", "rails", "rake", "composer", "task", "nx", "turbo", "deno", "mix", "flutter",
    "dart", "swift", "xcodebuild", "podman", "docker-compose", "glab", "hatch", "pdm", "tox",
    "nox", "invoke", "firebase", "vercel", "supabase", "wrangler", "redis-cli", "openssl",
    "str_replace_editor", "jj", "svn", "hg", "zig",
];

/// Subcommands with subcommands of their own.
const DEEPER: &[&str] = &[
    "run", "stash", "remote", "worktree", "submodule", "compose", "pr", "issue", "tool", "repo",
    "release", "exec", "mod", "workflow", "api", "config", "image", "container", "volume",
    "network", "secret", "s3", "ec2", "compute", "db", "migration", "test:ci", "bisect", "x",
    "dlx",
];

/// Programs that only read or search.
const LOOKS: &[&str] = &[
    "cat", "head", "tail", "less", "more", "nl", "wc", "file", "stat", "ls", "find", "tree", "rg",
    "grep", "egrep", "fgrep", "ag", "ack", "fd", "cut", "sort", "uniq", "du", "open", "md5sum",
    "sha256sum", "xxd", "hexdump", "strings", "bat", "column", "find_file", "search_file",
    "search_dir", "readlink", "realpath", "which", "diff", "jq", "sed", "awk", "tac", "od",
    "scroll_down", "scroll_up", "goto", "ll", "dir", "tr", "git show", "git log", "git diff",
    "git cat-file", "git config", "git blame", "git grep", "git ls-files", "git ls-tree",
    "git rev-parse", "git status", "git fsck", "git diff-index", "git rev-list", "git reflog",
    "git describe", "git count-objects", "pgrep", "ps", "env", "printenv", "df",
];

/// Programs for setup or messages, which are never the goal of a line.
pub(crate) const AROUND: &[&str] = &[
    "cd", "export", "echo", "printf", "set", "source", ".", "pushd", "popd", "sleep", "true", ":",
    "unset", "clear", "wait", "trap", "read", "local", "declare", "shopt", "ulimit", "umask",
    "pwd", "exit", "return", "break", "continue", "test", "[", "[[", "mkdir", "touch", "kill",
    "pkill", "date", "alias", "eval",
];

/// Interpreters that run a file.
const INTERPRETERS: &[&str] = &[
    "python", "node", "ruby", "perl", "php", "bash", "sh", "zsh", "deno", "bun", "tsx", "ts-node",
    "Rscript", "lua", "julia", "java",
];

/// Runners that run a program by name.
const RUNNERS: &[&str] = &["npx", "bunx", "pnpx", "xargs", "uvx", "pipx"];

impl Run {
    /// Returns true if the program prints existing content: lines of files, messages.
    pub(crate) fn prints_content(&self) -> bool {
        let names = [
            "cat", "head", "tail", "less", "more", "nl", "rg", "grep", "egrep", "fgrep", "ag",
            "ack", "sed", "awk", "jq", "cut", "sort", "uniq", "bat", "strings", "git show",
            "git log", "git diff", "git grep", "git blame", "diff", "tac", "column",
        ];
        names.contains(&self.name.as_str())
    }

    pub(crate) fn of(simple: &Simple) -> Self {
        let mut words: &[String] = &simple.words;
        let program = |word: &str| {
            let name = basename(word);
            match name
                .strip_suffix('3')
                .filter(|n| ["python", "pip"].contains(n))
            {
                Some(plain) => plain.to_owned(),
                None => name.to_owned(),
            }
        };
        let mut name = words.first().map(|w| program(w)).unwrap_or_default();
        let by_path = words.first().is_some_and(|w| w.contains('/'));
        words = words.get(1..).unwrap_or_default();
        let runs_another = (name == "uv" || name == "poetry" || name == "pdm" || name == "pipenv")
            && words.first().is_some_and(|w| w == "run")
            || RUNNERS.contains(&name.as_str());
        if runs_another {
            let skip = words
                .iter()
                .take_while(|w| w.starts_with('-') || *w == "run")
                .count();
            if let Some(inner) = words.get(skip) {
                name = program(inner);
                words = &words[skip + 1..];
            }
        }
        let mut code = HashSet::new();
        let mut operands: Vec<String> = Vec::new();
        if INTERPRETERS.contains(&name.as_str()) {
            let valued = [
                "-cp", "-classpath", "--class-path", "-W", "-X", "--require", "-r", "-I",
            ];
            while words.len() > 2 && valued.contains(&words[0].as_str()) {
                words = &words[2..];
            }
            match words
                .iter()
                .position(|w| !w.starts_with('-') || *w == "-c" || *w == "-m" || *w == "-e")
            {
                Some(at) if words[at] == "-m" => {
                    if let Some(module) = words.get(at + 1) {
                        // `python -m pkg.main` runs `pkg/main.py`.
                        name = match module.rsplit_once('.') {
                            Some((_, file)) => format!("{file}.py"),
                            None => module.clone(),
                        };
                        words = &words[at + 2..];
                    }
                }
                Some(at) if words[at].starts_with('-') => {
                    code = code_words(words.get(at + 1).map_or("", String::as_str));
                    words = &[];
                }
                Some(at) => {
                    // `./x.py`, `python x.py` and `python3 -u x.py` run the same program.
                    let script = basename(&words[at]).to_owned();
                    (name, words) = with_subcommands(script, &words[at + 1..]);
                }
                None => {}
            }
        } else if LAYERED.contains(&name.as_str()) || by_path {
            (name, words) = with_subcommands(name, words);
        }
        if !simple.body.is_empty() {
            code.extend(code_words(&simple.body));
        }
        let mut prose = HashSet::new();
        for word in words {
            if word.split_whitespace().count() > 3 && !LOOKS.contains(&name.as_str()) {
                prose.extend(code_words(word));
            } else if !word.starts_with('-') && !word.bytes().all(|b| b.is_ascii_digit()) {
                operands.push(word.clone());
            }
        }
        let in_place = simple
            .words
            .iter()
            .any(|w| w.starts_with("-i") || w == "--in-place" || w == "-pi");
        let looks =
            LOOKS.contains(&name.as_str()) && !(in_place && (name == "sed" || name == "awk"));
        Self {
            name,
            operands,
            code,
            prose,
            looks,
        }
    }
}

/// Command that a runner of programs, modules or scripts runs: `npx`, `uv run`, `python -m`, `sh`;
/// `None` if the words are no such command.
pub(crate) fn wrapped(words: &[String]) -> Option<Vec<String>> {
    let (first, rest) = words.split_first()?;
    let program = basename(first);
    let inner = if RUNNERS.contains(&program) {
        rest
    } else if ["uv", "poetry", "pdm", "pipenv"].contains(&program) && rest.first()? == "run" {
        &rest[1..]
    } else if let Some(module) = module_of(program, rest) {
        &rest[module..]
    } else if INTERPRETERS.contains(&program) || program == "python3" {
        // `sh tools/build` runs `tools/build`. The words of `-c` are code.
        rest.first().filter(|word| !word.starts_with('-'))?;
        rest
    } else {
        return None;
    };
    let flags = inner.iter().take_while(|word| word.starts_with('-'));
    let mut inner = inner[flags.count()..].to_vec();
    let first = inner.first_mut()?;
    *first = basename(first).to_owned();
    Some(inner)
}

/// Place of the module that `python -m` runs, among the words after the program.
fn module_of(program: &str, rest: &[String]) -> Option<usize> {
    let module = rest.iter().position(|word| word == "-m")?;
    program.starts_with("python").then_some(module + 1)
}

/// Returns `true` for known programs with subcommands.
pub(crate) fn has_subcommands(program: &str) -> bool {
    LAYERED.contains(&program)
}

/// Program name with subcommands, and the remaining arguments.
fn with_subcommands(mut name: String, mut words: &[String]) -> (String, &[String]) {
    let mut depth = 0;
    while depth < 2 {
        // `git -C DIR status`: the value of a flag is not a subcommand.
        let valued = words.first().is_some_and(|w| {
            [
                "-C", "-c", "--git-dir", "--prefix", "--cwd", "-f", "--manifest-path", "-p", "-n",
            ]
            .contains(&w.as_str())
        });
        if valued && words.len() > 1 && depth == 0 {
            words = &words[2..];
            continue;
        }
        match words.first() {
            // `cargo +nightly check` is `cargo check`.
            Some(flag) if flag.starts_with(['-', '+']) && depth == 0 => words = &words[1..],
            Some(sub) if is_bare(sub) && (depth == 0 || DEEPER.contains(&last_word(&name))) => {
                name = format!("{name} {sub}");
                words = &words[1..];
                depth += 1;
            }
            _ => break,
        }
    }
    (name, words)
}

fn last_word(name: &str) -> &str {
    name.rsplit(' ').next().unwrap_or(name)
}

/// Returns true if a word can be a subcommand.
fn is_bare(word: &str) -> bool {
    word.len() < 40
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
}

/// Words of code with two bytes or more.
pub(crate) fn code_words(text: &str) -> HashSet<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')
        .filter(|word| word.len() > 1)
        .map(str::to_owned)
        .collect()
}
