//! Names and numbers that two failures with the same fix do not share.
//!
//! `No module named 'numpy'` and `No module named 'pandas'` have one key, and the fix of the first one
//! says `pip install numpy`. A fix for a failing `pip install numpy` says so too, also at `pip install pandas`.
//! The agent is told which word of the fix it has to read otherwise. Deliberately absent: putting the new word
//! into the fix. A name in an error is text of others, and a command that contains it would be this
//! program's advice.

use serde::{Deserialize, Serialize};

use crate::learn::fix::subject::names;
use crate::learn::shell::{Simple, commands};

/// Maximum number of names to tell.
const MOST: usize = 3;
/// Maximum length of a name to tell, in bytes.
const LONGEST: usize = 60;

/// Name of one failure, and what the other failure has in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DifferingName {
    /// In the failure that the fix was learned from, and in its working code.
    pub then: String,
    /// In the present failure.
    pub now: String,
    /// Where both names are.
    #[serde(default)]
    pub source: NameSource,
}

/// Part of a failure that has a name.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum NameSource {
    /// The line of the error.
    #[default]
    Error,
    /// The call that failed.
    Call,
}

/// Names that a working code takes from the failure that it was learned from.
#[derive(Debug)]
pub(crate) struct DifferingNames<'a> {
    working_code: &'a str,
    found: Vec<DifferingName>,
}

impl<'a> DifferingNames<'a> {
    pub(crate) fn new(working_code: &'a str) -> Self {
        Self {
            working_code,
            found: Vec::new(),
        }
    }

    /// Adds the names that the error line `now` has otherwise than `then`. Both lines have the same
    /// error key.
    pub(crate) fn compare_errors(&mut self, then: &str, now: &str) {
        let (then, now): (Vec<&str>, Vec<&str>) = (words(then).collect(), words(now).collect());
        // Lines of different form, such as paths with spaces, cannot be compared word by word.
        if then.len() == now.len() {
            for (then, now) in then.into_iter().zip(now) {
                self.add(then, now, NameSource::Error);
            }
        }
    }

    /// Adds the names that the call `now` has otherwise than the failing code `then`, in commands of one form.
    pub(crate) fn compare_calls(&mut self, then: &str, now: &str) {
        let now = commands(now);
        for then in commands(then) {
            let alike = now.iter().filter(|now| is_alike(&then, now));
            if let Some(now) = alike.min_by_key(|now| differing(&then, now).count()) {
                for (place, then, now) in differing(&then, now) {
                    if is_argument(place, then) && is_argument(place, now) {
                        self.add(then, now, NameSource::Call);
                    }
                }
            }
        }
    }

    pub(crate) fn found(self) -> Vec<DifferingName> {
        self.found
    }

    fn add(&mut self, then: &str, now: &str, source: NameSource) {
        let is_known = self.found.iter().any(|known| known.then == then);
        let is_told = then != now && now.len() <= LONGEST && names(self.working_code, then);
        if is_told && !is_known && self.found.len() < MOST {
            self.found.push(DifferingName {
                then: then.to_owned(),
                now: now.to_owned(),
                source,
            });
        }
    }
}

/// Returns true for commands of the same program with as many words, of which one differs, or less than half.
/// More differences make another task, and its names are no substitutes.
fn is_alike(then: &Simple, now: &Simple) -> bool {
    let is_same_form =
        then.words.first() == now.words.first() && then.words.len() == now.words.len();
    let differing = differing(then, now).count();
    is_same_form && (differing <= 1 || differing * 2 < then.words.len())
}

/// Words of two commands that differ, by place.
fn differing<'c>(
    then: &'c Simple,
    now: &'c Simple,
) -> impl Iterator<Item = (usize, &'c str, &'c str)> {
    let words = then.words.iter().zip(&now.words).enumerate();
    words
        .filter(|(_, (then, now))| then != now)
        .map(|(place, (then, now))| (place, then.as_str(), now.as_str()))
}

/// Returns true for a word that may be a name, at this place of a command. No option, and no subcommand
/// (`npm test`, `npm install`): another one is another task.
fn is_argument(place: usize, word: &str) -> bool {
    let is_subcommand = place == 1 && word.chars().all(char::is_alphabetic);
    !is_subcommand
        && !word.starts_with('-')
        && word
            .chars()
            .all(|c| is_inside(c) || matches!(c, '=' | ':' | '~'))
        && word.contains(char::is_alphanumeric)
}

/// Words of an error line: names, numbers and paths, without the punctuation around them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c| !is_inside(c))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty())
}

fn is_inside(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+')
}

/// Text of a hint about such names, below its code.
pub(crate) fn render(names: &[DifferingName]) -> String {
    let line = |DifferingName { then, now, source }: &DifferingName| {
        let source = match source {
            NameSource::Error => "the error",
            NameSource::Call => "this call",
        };
        format!("  HERE: {source} names `{now}` where that one named `{then}`\n")
    };
    names.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs<'n>(names: &'n DifferingNames<'_>) -> Vec<(&'n str, &'n str)> {
        let found = names.found.iter();
        found.map(|name| (&*name.then, &*name.now)).collect()
    }

    #[test]
    fn names_that_a_fix_takes_from_its_call_are_told() {
        let check = |then: &str, now: &str, working: &str, expected: &[(&str, &str)]| {
            let mut names = DifferingNames::new(working);
            names.compare_calls(then, now);
            assert_eq!(pairs(&names), expected, "{then}: {now}");
        };
        let install = "pip install --user pandas";
        let other: &[_] = &[("pandas", "requests")];
        check("pip install pandas", "pip install requests", install, other);
        check(
            "pip install pandas",
            "cd shop && pip install 'requests' | tee log",
            install,
            other,
        );
        check(
            "cat a.txt",
            "ls && cat b.txt",
            "sudo cat a.txt",
            &[("a.txt", "b.txt")],
        );
        check(
            "pip install pandas",
            "pip install flask==2.0",
            install,
            &[("pandas", "flask==2.0")],
        );
        check("pip install pandas", "pip install pandas", install, &[]);
        // The working code does not name it.
        check("npm run a", "npm run b", "npm ci", &[]);
        // Commands of other forms, options, and words with other characters.
        check("pip install pandas", "pip install -r req.txt", install, &[]);
        check("pip install pandas", "npm install requests", install, &[]);
        check(
            "git push origin a",
            "git add b c",
            "git push -u origin a",
            &[],
        );
        check("tar -x a", "tar -c a", "tar -x a b", &[]);
        check("cat a.c", "cat '$(id)'", "sudo cat a.c", &[]);
        check("npm install", "npm test", "cd web && npm install", &[]);
        check("cmake ..", "cmake .", "cmake -S ../.. -B .", &[]);
    }

    #[test]
    fn a_name_of_error_and_call_is_told_once() {
        let mut names = DifferingNames::new("pip install --user pandas");
        names.compare_errors("no pandas", "no requests");
        names.compare_calls("pip install pandas", "pip install requests");
        assert_eq!(names.found.len(), 1);
        assert_eq!(names.found()[0].source, NameSource::Error);
    }

    #[test]
    fn names_that_a_fix_takes_from_its_error_are_told() {
        let check = |then: &str, now: &str, working: &str, expected: &[(&str, &str)]| {
            let mut names = DifferingNames::new(working);
            names.compare_errors(then, now);
            assert_eq!(pairs(&names), expected, "{then} {now}");
        };
        let missing = |name: &str| format!("ModuleNotFoundError: No module named '{name}'");
        let install = "pip install numpy && pytest";
        check(
            &missing("numpy"),
            &missing("pandas"),
            install,
            &[("numpy", "pandas")],
        );
        check(&missing("numpy"), &missing("numpy"), install, &[]);
        check(
            &missing("cv2"),
            &missing("pandas"),
            "pip install opencv-python",
            &[],
        );
        check(
            "Error: listen EADDRINUSE: address already in use :::3000",
            "Error: listen EADDRINUSE: address already in use :::8081",
            "kill $(lsof -t -i:3000) && node server.js",
            &[("3000", "8081")],
        );
        check(
            "bash: ./build.sh: Permission denied",
            "bash: ./deploy.sh: Permission denied",
            "chmod +x build.sh && ./build.sh",
            &[("./build.sh", "./deploy.sh")],
        );
        // Nothing is told of lines that differ in form, and no long name.
        check(
            "cannot open a: Permission denied",
            "cannot open b c: Permission denied",
            "chmod a",
            &[],
        );
        check(&missing("numpy"), &missing(&"x".repeat(61)), install, &[]);
    }

    #[test]
    fn the_text_of_a_hint_has_no_line_of_the_error() {
        let mut names = DifferingNames::new("use a1 c3");
        names.compare_errors("no 'a1': x", "no 'b2`': x");
        names.compare_calls("run c3", "run d4");
        let expected = "  HERE: the error names `b2` where that one named `a1`\n  \
            HERE: this call names `d4` where that one named `c3`\n";
        assert_eq!(render(&names.found()), expected);
    }
}
