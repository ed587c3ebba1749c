//! Programs that run another one: `npx -y jest` is `jest`, unless a rule is about `npx`.
//!
//! `runners.txt` names them, and where the command of each begins.

use std::sync::LazyLock;

use crate::basename;
use crate::options::{OTHER, Program, named};
use crate::scan::Word;
use crate::wrappers::{Layer, layer};

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

/// Program that runs another one, with its subcommand for that. `_` is any word.
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
