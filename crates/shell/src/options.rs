//! Options between a program and its subcommand: `git -C a push` is `git push` to most rules.
//!
//! [`TABLE`] names the programs that have such options, and those of them that take a value.

use std::sync::LazyLock;

use crate::basename;
use crate::scan::Word;

/// Command without the options before its subcommand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bare {
    /// As it is written, and without quotes.
    pub forms: Vec<String>,
    /// Names of the options that were taken off, as in `--context`.
    pub taken: Vec<String>,
}

/// Program, or group of its subcommands, with options before the subcommand.
struct Program {
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
const OTHER: &str = "*";

static TABLE: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let rows = include_str!("options.txt").lines();
    rows.filter(|row| !row.starts_with('#'))
        .filter_map(|row| {
            let (name, rest) = match row.split_once("\\ ") {
                Some((program, rest)) => {
                    let (group, rest) = rest.split_once(' ')?;
                    (format!("{program} {group}"), rest)
                }
                None => {
                    let (name, rest) = row.split_once(' ')?;
                    (name.to_owned(), rest)
                }
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

fn named(name: &str) -> Option<&'static Program> {
    TABLE.iter().find(|program| program.name == name)
}

impl Program {
    /// Returns `true` if the next word is the value of this option.
    fn takes_value(&self, option: &str, next: &str) -> bool {
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

/// Takes the options before the subcommand off a command that ends at `end` in its line.
pub(crate) fn bare(line: &str, words: &[Word], end: usize) -> Option<Bare> {
    let text = |at: usize| words.get(at).map(|word| word.text.as_str());
    let mut name = basename(text(0)?).to_owned();
    let mut program = named(&name).or_else(|| named(OTHER))?;
    let is_known = program.name != OTHER;
    let mut kept = vec![name.clone()];
    let mut taken: Vec<String> = Vec::new();
    let mut at = 1;
    let subcommand = loop {
        while let Some(option) = text(at).filter(|word| word.starts_with(['-', '+'])) {
            if option == "--" || !is_known && !option.starts_with("--") {
                return None;
            }
            let option_name = option.split_once('=').map_or(option, |(name, _)| name);
            if SELECTING.contains(&option_name) {
                return None;
            }
            taken.push(option_name.to_owned());
            at += 1 + usize::from(program.takes_value(option, text(at + 1).unwrap_or("-")));
        }
        let subcommand = text(at)?;
        name.extend([" ", subcommand]);
        match named(&name).filter(|_| at + 1 < words.len()) {
            Some(group) => program = group,
            None => break subcommand,
        }
        kept.push(subcommand.to_owned());
        at += 1;
    };
    let is_name = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
    };
    if taken.is_empty() || !is_known && !is_name(subcommand) {
        return None;
    }
    let kept = kept.join(" ");
    let plain: Vec<&str> = words[at..].iter().map(|word| word.text.as_str()).collect();
    let written = format!("{kept} {}", line[words[at].start..end].trim_end());
    let plain = format!("{kept} {}", plain.join(" "));
    let mut forms = vec![written];
    if forms[0] != plain {
        forms.push(plain);
    }
    Some(Bare { forms, taken })
}

#[cfg(test)]
mod tests {
    use crate::commands;

    #[test]
    fn options_before_the_subcommand_are_taken_off() {
        let check = |line: &str, expected: &str| {
            let simple = &commands(line)[0];
            let first = simple.bare.forms.first().map_or("", String::as_str);
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
        for line in [
            "git push -f", "git --version", "git -- push", "shipit -x release", "rm --force a.txt",
            "python -m pytest", "ls --color", "echo a", "pnpm --filter web test",
        ] {
            check(line, "");
        }
        let taken = &commands("aws --profile a --region=b s3 ls")[0].bare.taken;
        assert_eq!(taken, &["--profile", "--region"]);
    }
}
