//! Files that a search, a pipe or a loop hands on to a command: `find a -exec rm {} +`, `for f in a/*; do rm $f; done`.
//!
//! Nothing is expanded: a search stands for its places, and a loop for its list as it is written.

use crate::scan::{Word, scan};
use crate::{basename, one_line, prose};

/// Maximum number of files that a word stands for.
pub(crate) const MOST_FILES: usize = 16;

/// Variables of loops, with their values.
#[derive(Default)]
pub(crate) struct Loops(Vec<(String, Vec<String>)>);

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
    let is_file =
        |at: &usize| !texts[*at].starts_with('-') && prose.iter().all(|(place, _)| place != at);
    let files = (1..texts.len())
        .filter(is_file)
        .map(|at| texts[at].to_owned());
    files.filter(|_| LISTS.contains(&program)).collect()
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

impl Loops {
    /// Words of a command with the files that are handed to it in their places, or at its end.
    pub(crate) fn with_files(
        &self,
        words: &[Word],
        handed: &[String],
        is_appended: bool,
    ) -> Vec<String> {
        let mut texts: Vec<String> = words.iter().map(|word| one_line(&word.text)).collect();
        let has_place = texts.iter().any(|text| text.contains("{}"));
        if is_appended && !has_place && !handed.is_empty() {
            texts.push("{}".to_owned());
        }
        texts
            .iter()
            .flat_map(|text| self.files(text, handed))
            .collect()
    }

    /// Values of a word that stands for files: `{}`, the variable of a loop, `$(find …)`.
    pub(crate) fn files(&self, word: &str, handed: &[String]) -> Vec<String> {
        let mut files: Vec<String> = if word.contains("{}") {
            handed.iter().map(|file| word.replace("{}", file)).collect()
        } else if let Some(line) = word.strip_prefix("$(") {
            scan(line.trim_end_matches(')'))
                .iter()
                .flat_map(|raw| listed(&raw.words))
                .collect()
        } else if word.contains('$') {
            let mut loops = self.0.iter().rev();
            let of = |(name, values): &(String, Vec<String>)| -> Option<Vec<String>> {
                values
                    .iter()
                    .map(|value| with_value(word, name, value))
                    .collect()
            };
            loops.find_map(of).unwrap_or_default()
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

    pub(crate) fn add(&mut self, name: &str, mut values: Vec<String>) {
        values.truncate(MOST_FILES);
        self.0.push((name.to_owned(), values));
    }
}
