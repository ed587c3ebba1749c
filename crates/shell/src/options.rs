//! Options between a program and its subcommand: `git -C a push` is `git push` to most rules.
//!
//! [`TABLE`] names the programs that have such options, and those of them that take a value.

use std::sync::LazyLock;

use crate::basename;
use crate::scan::Word;
use crate::wrappers::{Layer, layer};

/// Command without the options before its subcommand, or without the program that runs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bare {
    /// As it is written, and without quotes.
    pub forms: Vec<String>,
    /// Removed options, in each form in which a rule may name them: `--context`, `context`, `-c`, the value.
    pub taken: Vec<String>,
    /// Names of the removed runners.
    pub runners: Vec<String>,
}

/// Program, or group of its subcommands, with options before the subcommand.
pub(crate) struct Program {
    name: String,
    /// Letters of options with a value.
    letters: &'static str,
    /// Names of options with a value, with commas.
    names: &'static str,
}

/// Options that say which part of a project a command is for: without them it would be another command.
const SELECTING: &[&str] = &[
    "--filter", "--filter-prod", "--package", "--pl", "--projects", "--scope", "--workspace",
    "--workspaces", "-F", "-pl", "-w",
];
/// Row of the programs that are not in the table.
pub(crate) const OTHER: &str = "*";

static TABLE: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let rows = include_str!("options.txt").lines();
    rows.filter(|row| !row.starts_with('#'))
        .filter_map(|row| {
            let (name, rest) = if let Some((program, rest)) = row.split_once("\\ ") {
                let (group, rest) = rest.split_once(' ')?;
                (format!("{program} {group}"), rest)
            } else {
                let (name, rest) = row.split_once(' ')?;
                (name.to_owned(), rest)
            };
            let mut columns = rest.split_whitespace();
            Some(Program {
                name,
                letters: columns.next()?,
                names: columns.next()?,
            })
        })
        .collect()
});

pub(crate) fn named(name: &str) -> Option<&'static Program> {
    TABLE.iter().find(|program| program.name == name)
}

impl Program {
    /// Returns `true` if the next word is the value of this option.
    pub(crate) fn takes_value(&self, option: &str, next: &str) -> bool {
        let name = option.trim_start_matches('-');
        if name.contains('=') || option.starts_with('+') {
            return false;
        }
        let is_valued = match name.len() {
            1 => self.letters.contains(name),
            _ => self.names.split(',').any(|one| one == name),
        };
        is_valued || (name.len() == 1 && next.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

/// Returns `true` if the next word is the value of this option, which comes before the subcommand of a program.
pub fn takes_value(program: &str, option: &str, next: &str) -> bool {
    let row = named(program).or_else(|| named(OTHER));
    row.is_some_and(|row| row.takes_value(option, next))
}

/// Returns `true` if a command only shows its help or its version.
pub fn shows_help(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let program = basename(program);
    let mut operands = rest.iter().filter(|word| !word.starts_with('-'));
    let last = rest.last().map_or("", String::as_str);
    let has_subcommands = |row: &Program| {
        // A program whose `-h` has a value has another letter for help.
        operands.next().is_some_and(|first| first == "help")
            || last == "-h" && !row.letters.contains('h')
    };
    rest.iter().any(|word| word == "--help" || word == "-help")
        || rest.len() == 1 && last == "--version"
        || program == "aws" && last == "help"
        || named(program).is_some_and(has_subcommands)
}

/// Returns the shorter texts of a command that ends at `end` in its line: without the options before its
/// subcommand, and as what a runner runs.
pub(crate) fn shorter(line: &str, words: &[Word], end: usize) -> Vec<Bare> {
    let runner = run(words);
    let is_listed = words
        .first()
        .is_some_and(|word| named(basename(&word.text)).is_some());
    let mut all: Vec<Bare> = Vec::new();
    if is_listed || runner.is_none() {
        all.extend(without_options(line, words, end, false));
    }
    if !is_listed && !all.is_empty() {
        all.extend(without_options(line, words, end, true));
    }
    if let Some((at, runners)) = runner {
        let inner = &words[at..];
        // A version is no part of a name: `jest@29`.
        let program = basename(&inner[0].text);
        let program = program.split_once('@').map_or(program, |(name, _)| name);
        let rest: Vec<&str> = inner[1..].iter().map(|word| word.text.as_str()).collect();
        let written = format!("{program}{}", &line[inner[0].end..end]);
        let plain = [&[program], &rest[..]].concat().join(" ");
        let mut forms = vec![written.trim_end().to_owned()];
        if forms[0] != plain {
            forms.push(plain);
        }
        let first = Bare {
            forms,
            ..Bare::default()
        };
        for mut bare in std::iter::once(first).chain(shorter(line, inner, end)) {
            bare.runners.extend(runners.iter().cloned());
            all.push(bare);
        }
    }
    all
}

impl Program {
    /// Ways in which a rule may name an option with its value.
    fn names(&self, option: &str, value: Option<&str>) -> Vec<String> {
        let (option, value) = match option.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (option, value),
        };
        let name = option.trim_start_matches(['-', '+']);
        let mut names = vec![option.to_owned()];
        if name.len() > 1 {
            names.push(name.to_owned());
        }
        // The short option and the long one of the same letter are usually the same.
        let longs = self.names.split(',').filter(|long| long.len() > 1);
        if name.len() == 1 {
            let letter = name.to_ascii_lowercase();
            for long in longs.filter(|long| long.starts_with(&letter)) {
                names.extend([format!("--{long}"), long.to_owned()]);
            }
        } else if let Some(first) = name.get(..1) {
            let upper = first.to_ascii_uppercase();
            let letters = [first, upper.as_str()];
            let letters = letters
                .iter()
                .filter(|letter| self.letters.contains(**letter));
            names.extend(letters.map(|letter| format!("-{letter}")));
        }
        let value = value.filter(|value| value.len() > 1);
        names.extend(value.map(str::to_owned));
        names
    }
}

/// Takes the options before the subcommand off a command that ends at `end` in its line. Of a program that is not in
/// the table each option has a value if `have_values`.
fn without_options(line: &str, words: &[Word], end: usize, have_values: bool) -> Option<Bare> {
    let text = |at: usize| words.get(at).map(|word| word.text.as_str());
    let mut name = basename(text(0)?).to_owned();
    let mut program = named(&name).or_else(|| named(OTHER))?;
    let is_known = program.name != OTHER;
    let mut name_words = vec![name.clone()];
    let mut options: Vec<String> = Vec::new();
    let mut at = 1;
    let subcommand = loop {
        while let Some(option) = text(at).filter(|word| word.starts_with(['-', '+'])) {
            if option == "--" {
                return None;
            }
            let option_name = option.split_once('=').map_or(option, |(name, _)| name);
            if SELECTING.contains(&option_name) {
                return None;
            }
            let is_valued = |next: &&str| {
                have_values && !next.starts_with('-') || program.takes_value(option, next)
            };
            let value = text(at + 1).filter(is_valued);
            options.extend(program.names(option, value));
            at += 1 + usize::from(value.is_some());
        }
        let subcommand = text(at)?;
        name.extend([" ", subcommand]);
        match named(&name).filter(|_| at + 1 < words.len()) {
            Some(group) => program = group,
            None => break subcommand,
        }
        name_words.push(subcommand.to_owned());
        at += 1;
    };
    let is_name = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
    };
    if options.is_empty() || !is_known && !is_name(subcommand) {
        return None;
    }
    let name_words = name_words.join(" ");
    let plain: Vec<&str> = words[at..].iter().map(|word| word.text.as_str()).collect();
    let written = format!("{name_words} {}", line[words[at].start..end].trim_end());
    let plain = format!("{name_words} {}", plain.join(" "));
    let mut forms = vec![written];
    if forms[0] != plain {
        forms.push(plain);
    }
    Some(Bare {
        forms,
        taken: options,
        runners: Vec::new(),
    })
}

/// Where the command of a runner begins.
#[derive(Debug, Clone, Copy)]
enum Begin {
    /// Behind its options and this number of operands.
    Operands(usize),
    /// Behind `--`.
    Dashes,
    /// Behind this option.
    Option(&'static str),
}

/// Program that runs another one, with its subcommand for that: `npx -y jest` is `jest`, unless a rule is about `npx`.
/// `_` is any word. `runners.txt` has a row for each, with the place where its command begins.
struct Runner {
    names: Vec<&'static str>,
    /// Letters of options with a value, beside those of the table.
    letters: &'static str,
    begin: Begin,
}

static RUNNERS: LazyLock<Vec<Runner>> = LazyLock::new(|| {
    let rows = include_str!("runners.txt").lines();
    let runner = |row: &'static str| {
        let mut columns = row.split_whitespace();
        Some(Runner {
            letters: columns.next()?.trim_matches('-'),
            begin: match columns.next()? {
                "--" => Begin::Dashes,
                option if option.starts_with('-') => Begin::Option(option),
                count => Begin::Operands(count.parse().ok()?),
            },
            names: columns.collect(),
        })
    };
    rows.filter(|row| !row.starts_with('#'))
        .filter_map(runner)
        .collect()
});

/// Runners whose command runs in a container: a rule may want it there.
const CONTAINERS: [&str; 5] = ["docker", "docker-compose", "kubectl", "oc", "podman"];
/// Name of such runners: what they run changes no file of this machine.
pub(crate) const CONTAINER: &str = "container";

/// Returns the place of the command that a runner runs, behind its wrappers, and the names of the runner.
pub(crate) fn run(words: &[Word]) -> Option<(usize, Vec<String>)> {
    let text = |at: usize| words.get(at).map(|word| word.text.as_str());
    let program = basename(text(0)?);
    let versioned = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let program = if versioned == "python" {
        versioned
    } else {
        program
    };
    let place = |runner: &Runner| {
        let (first, subcommands) = runner.names.split_first()?;
        if *first != "_" && *first != program {
            return None;
        }
        // The options of the program stand before its subcommand.
        let (mut at, mut row) = (1, named(program).or_else(|| named(OTHER)));
        for name in subcommands {
            at = behind_options(words, at, row, "", None)?;
            text(at).filter(|word| *name == "_" || word == name)?;
            at += 1;
            row = None;
        }
        let row = named(&runner.names.join(" "));
        let letters = runner.letters;
        let begin = match runner.begin {
            Begin::Operands(count) => {
                let first = behind_options(words, at, row, letters, None)? + count;
                first + usize::from(text(first) == Some("--"))
            }
            Begin::Dashes => words.iter().position(|word| word.text == "--")? + 1,
            Begin::Option(option) => behind_options(words, at, row, letters, Some(option))?,
        };
        text(begin)
            .filter(|word| {
                !word.starts_with('-') && !basename(word).starts_with('.') && !word.is_empty()
            })
            .map(|_| begin)
    };
    let mut begin = RUNNERS.iter().find_map(place)?;
    while let Layer::Dropped(count) = layer(&words[begin..]) {
        begin += count;
        words.get(begin)?;
    }
    // `uvx` belongs to `uv`, and `bunx` to `bun`.
    let mut names = vec![program, program.strip_suffix('x').unwrap_or(program)];
    if CONTAINERS.contains(&program) {
        names.extend([CONTAINER, "containers", "docker"]);
    }
    Some((begin, names.into_iter().map(str::to_owned).collect()))
}

/// Returns the place behind the options of a program, or behind this one of them.
fn behind_options(
    words: &[Word],
    mut at: usize,
    row: Option<&Program>,
    letters: &str,
    wanted: Option<&str>,
) -> Option<usize> {
    while let Some(option) = words.get(at).map(|word| word.text.as_str()) {
        if !option.starts_with('-') || option == "--" {
            break;
        }
        if wanted == Some(option) {
            return Some(at + 1);
        }
        let next = words.get(at + 1).map_or("-", |word| word.text.as_str());
        let is_letter = option.len() == 2 && letters.contains(&option[1..]);
        at += 1 + usize::from(is_letter || row.is_some_and(|row| row.takes_value(option, next)));
    }
    wanted.is_none().then_some(at)
}

#[cfg(test)]
mod tests {
    use crate::commands;

    #[test]
    fn options_before_the_subcommand_are_taken_off() {
        let check = |line: &str, expected: &str| {
            let simple = &commands(line)[0];
            let bare = simple.typed.bare.iter().find(|bare| !bare.taken.is_empty());
            let first = bare.map_or("", |bare| &bare.forms[0]);
            assert_eq!(first, expected, "{line}");
        };
        check("git -C web push --force origin", "git push --force origin");
        check(
            "git -c user.name='A B' --no-pager commit -m x",
            "git commit -m x",
        );
        check("sudo git --git-dir=/x/.git gc", "git gc");
        check(
            "kubectl -n prod --context=a delete pod x",
            "kubectl delete pod x",
        );
        check("docker --context far -D run x", "docker run x");
        check("docker -H ssh://x compose -f a.yml up", "docker compose up");
        check("docker compose -p x down -v", "docker compose down -v");
        check("npm --prefix web install", "npm install");
        check("terraform -chdir=infra apply", "terraform apply");
        check("cargo +nightly publish", "cargo publish");
        check("make -j 4 -C web deploy", "make deploy");
        check(
            "/usr/bin/helm --namespace x upgrade a b",
            "helm upgrade a b",
        );
        check("npx -y spellbook cast", "npx spellbook cast");
        check("uv run --with x -p 3.12 spellbook", "uv run spellbook");
        check("gh pr -R a/b merge 7", "gh pr merge 7");
        // A program that is not in the table.
        check("shipit --profile far --dry release x", "shipit release x");
        check("shipit --env=far release", "shipit release");
        check("shipit -vx release", "shipit release");
        let last = |line: &str| {
            commands(line)[0]
                .typed
                .bare
                .last()
                .map(|bare| bare.forms[0].clone())
        };
        assert_eq!(
            last("shipit -z far release b").as_deref(),
            Some("shipit release b")
        );
        for line in [
            "git push -f", "git --version", "git -- push", "shipit -x", "rm --force a.txt",
            "python -m pytest", "ls --color", "echo a", "pnpm --filter web test",
        ] {
            check(line, "");
        }
        let taken = |line: &str| commands(line)[0].typed.bare[0].taken.clone();
        assert_eq!(
            taken("kubectl --namespace web -s=x get"),
            [
                "--namespace", "namespace", "-n", "web", "-s", "--server", "server"
            ]
        );
        assert_eq!(taken("cargo +nightly fmt"), ["+nightly", "nightly"]);
    }

    #[test]
    fn help_is_told_from_use() {
        let check = |line: &str, expected: bool| {
            assert_eq!(
                super::shows_help(&commands(line)[0].words),
                expected,
                "{line}"
            );
        };
        for line in [
            "spell cast --help", "terraform apply -help", "git help push", "git push -h",
            "helm help", "aws s3 help", "spell --version",
        ] {
            check(line, true);
        }
        for line in [
            "git commit -m help",
            "git add help",
            "psql -h far",
            "grep help a",
            "heroku run help x",
            "spell install --version 2",
            "gsutil ls -h",
        ] {
            check(line, false);
        }
    }
}

#[cfg(test)]
mod tests_of_runners {
    use crate::commands;

    #[test]
    fn command_of_a_runner_is_found() {
        let check = |line: &str, expected: &str| {
            let simple = &commands(line)[0];
            let mut bare = simple
                .typed
                .bare
                .iter()
                .filter(|bare| bare.taken.is_empty());
            let last = bare.next_back().map_or("", |bare| &bare.forms[0]);
            assert_eq!(last, expected, "{line}");
        };
        check("npx --yes spell@3 cast 'a b'", "spell cast 'a b'");
        check("npx -p spell cast", "cast");
        check("npm exec -- spell cast", "spell cast");
        check("poetry -C web run spell cast", "spell cast");
        check("uv run --with x python -m spell cast", "spell cast");
        check("python3.12 -X dev -m spell", "spell");
        check("mise exec node@20 -- spell cast", "spell cast");
        check("bundle exec bin/spell cast > a", "spell cast > a");
        check("direnv exec . spell", "spell");
        check("nix develop -c spell cast", "spell cast");
        check("pnpm --filter web exec spell cast", "spell cast");
        check("pnpm -F web exec spell", "spell");
        check("yarn workspace web exec spell cast", "spell cast");
        check("npm exec -w web -- spell cast", "spell cast");
        check("npx --workspace web spell", "spell");
        check("go run example.org/spells/cmd/spell@v2 cast", "spell cast");
        check("go run -tags dev ./cmd/spell", "spell");
        check("go tool spell cast", "spell cast");
        check("podbox --profile far exec web -- spell", "spell");
        check("docker exec web sudo -u me env A=1 spell", "spell");
        for line in [
            "npm run spell", "python spell.py -m x", "npx", "uv pip install x", "poetry add x",
        ] {
            check(line, "");
        }
    }
}
