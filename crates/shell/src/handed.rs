//! Words that a command gets from the line around it: files of a search or a pipe (`find a -exec rm {} +`), and values of
//! variables that the line sets (`for f in a/*; do rm $f; done`, `f=a; rm $f`).
//!
//! A search stands for its places, and a loop for its list as it is written.

use crate::scan::{Word, is_assignment, scan};
use crate::{basename, one_line, prose};

/// Maximum number of files that a word stands for.
pub(crate) const MOST_FILES: usize = 16;
/// Maximum number of variables.
const MOST_VARIABLES: usize = 64;

/// Variables that the line sets, with their values: one, or those of a loop.
#[derive(Default)]
pub(crate) struct Variables(Vec<(String, Vec<String>)>);

/// Files that a command lists for others, as far as the line tells: a search in its places, or operands.
pub(crate) fn listed(words: &[Word]) -> Vec<String> {
    const LISTS: [&str; 9] = [
        "ag", "echo", "fd", "fdfind", "git", "grep", "ls", "printf", "rg",
    ];
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let Some((program, rest)) = texts.split_first() else {
        return Vec::new();
    };
    let program = basename(program);
    if program == "find" {
        let is_place = |word: &&&str| !word.starts_with(['-', '(', '!']);
        let places: Vec<&str> = rest.iter().take_while(is_place).copied().collect();
        let conditions = rest.windows(3).filter(|three| {
            matches!(three[1], "-name" | "-iname") && !matches!(three[0], "!" | "-not")
        });
        let mut patterns: Vec<&str> = conditions.map(|three| three[2]).collect();
        if patterns.is_empty() {
            patterns.push("*");
        }
        let files = places.iter().flat_map(|place| {
            let place = place.trim_end_matches('/');
            patterns
                .iter()
                .map(move |pattern| format!("{place}/{pattern}"))
        });
        return files.collect();
    }
    let prose = prose::in_command(words, false);
    let is_sought = |at: &usize| prose.iter().any(|(place, _)| place == at);
    let files = (1..texts.len())
        .filter(|at| !is_sought(at))
        .filter_map(|at| {
            let option = texts[at].starts_with('-');
            // `--include='*.c'` names files, too.
            if option {
                texts[at].split_once('=').map(|(_, value)| value)
            } else {
                Some(texts[at])
            }
        });
    let files = files.filter(|_| LISTS.contains(&program));
    files.map(str::to_owned).collect()
}

/// Puts a value in the place of a variable, if a word has it.
fn with_value(word: &str, name: &str, value: &str) -> Option<String> {
    let braced = format!("${{{name}}}");
    if word.contains(&braced) {
        return Some(word.replace(&braced, value));
    }
    let (before, after) = word.split_once(&format!("${name}"))?;
    let is_longer = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    (!is_longer).then(|| format!("{before}{value}{after}"))
}

impl Variables {
    /// Words of a command with the values of variables and the files that are handed to it in their places, or at its
    /// end.
    pub(crate) fn with_files(
        &self,
        words: &[Word],
        handed: &[String],
        is_appended: bool,
    ) -> Vec<String> {
        let mut texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let has_place = texts.iter().any(|text| text.contains("{}"));
        if is_appended && !has_place && !handed.is_empty() {
            texts.push("{}");
        }
        texts
            .iter()
            .flat_map(|text| self.files(text, handed))
            .collect()
    }

    /// Texts of a command with each value of the variable that it names, or with the files that are handed to it; none
    /// if it has neither.
    pub(crate) fn texts(
        &self,
        words: &[Word],
        handed: &[String],
        is_appended: bool,
    ) -> Vec<String> {
        let is_used = |name: &str| {
            let mut words = words.iter();
            words.any(|word| with_value(&word.text, name, "").is_some())
        };
        if let Some((name, values)) = self.0.iter().rev().find(|(name, _)| is_used(name)) {
            let with = |value: &String| {
                let words = words.iter().map(|word| {
                    let text = with_value(&word.text, name, value);
                    let text = text.as_deref().unwrap_or(&word.text);
                    self.files(text, handed).join(" ")
                });
                one_line(&words.collect::<Vec<_>>().join(" "))
            };
            return values.iter().map(with).collect();
        }
        let has_files = is_appended || words.iter().any(|word| word.text.contains("{}"));
        let files = (has_files && !handed.is_empty())
            .then(|| one_line(&self.with_files(words, handed, is_appended).join(" ")));
        files.into_iter().collect()
    }

    /// Values of a word that stands for files: `{}`, a variable, `$(find …)`.
    pub(crate) fn files(&self, word: &str, handed: &[String]) -> Vec<String> {
        let mut files: Vec<String> = if word.contains("{}") {
            handed.iter().map(|file| word.replace("{}", file)).collect()
        } else if let Some(line) = word.strip_prefix("$(") {
            scan(line.trim_end_matches(')'))
                .iter()
                .flat_map(|raw| listed(&raw.words))
                .collect()
        } else if word.contains('$') {
            let mut set = self.0.iter().rev();
            let of = |(name, values): &(String, Vec<String>)| -> Option<Vec<String>> {
                values
                    .iter()
                    .map(|value| with_value(word, name, value))
                    .collect()
            };
            set.find_map(of).unwrap_or_default()
        } else {
            Vec::new()
        };
        if files.is_empty() {
            files.push(word.to_owned());
        }
        files.truncate(MOST_FILES);
        files
    }

    /// Remembers the variable of `for NAME in …`.
    pub(crate) fn remember(&mut self, words: &[Word]) {
        if let [head, name, within, values @ ..] = words
            && (head.text.as_str(), within.text.as_str()) == ("for", "in")
        {
            let values = self.with_files(values, &[], false);
            self.add(&name.text, values);
        }
    }

    /// Remembers the variable of `NAME=value`. Other words set none.
    pub(crate) fn assign(&mut self, word: &str) {
        if let Some((name, value)) = word.split_once('=').filter(|_| is_assignment(word)) {
            self.add(name, self.files(value, &[]));
        }
    }

    pub(crate) fn add(&mut self, name: &str, mut values: Vec<String>) {
        values.truncate(MOST_FILES);
        if self.0.len() < MOST_VARIABLES {
            self.0.push((name.to_owned(), values));
        }
    }
}
