//! Names and numbers that two errors with the same key do not share.
//!
//! `No module named 'numpy'` and `No module named 'pandas'` have one key, and the fix of the first one
//! says `pip install numpy`. The agent is told which word of the fix it has to read otherwise. Deliberately
//! absent: putting the new word into the fix. A name in an error is text of others, and a command that
//! contains it would be this program's advice.

use serde::{Deserialize, Serialize};

use crate::learn::fix::subject::names;

/// Maximum number of names to tell.
const MOST: usize = 3;
/// Maximum length of a name to tell, in bytes.
const LONGEST: usize = 60;

/// Name of one error, and what the other error has in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DifferingName {
    /// In the error that the fix was learned from, and in its working code.
    pub then: String,
    /// In the present error.
    pub now: String,
}

/// Returns the names that a fix for the error line `then` takes from it, and that the line `now` has
/// otherwise. Both lines have the same error key.
pub(crate) fn differing_names(then: &str, now: &str, working_code: &str) -> Vec<DifferingName> {
    let (then, now): (Vec<&str>, Vec<&str>) = (words(then).collect(), words(now).collect());
    let mut found: Vec<DifferingName> = Vec::new();
    // Lines of different form, such as paths with spaces, cannot be compared word by word.
    if then.len() != now.len() {
        return found;
    }
    for (then, now) in then.into_iter().zip(now) {
        let is_told = then != now && now.len() <= LONGEST && names(working_code, then);
        if is_told && found.len() < MOST && found.iter().all(|known| known.then != then) {
            found.push(DifferingName {
                then: then.to_owned(),
                now: now.to_owned(),
            });
        }
    }
    found
}

/// Words of an error line: names, numbers and paths, without the punctuation around them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+');
    line.split(move |c| !is_inside(c))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty())
}

/// Text of a hint about such names, below its code.
pub(crate) fn render(names: &[DifferingName]) -> String {
    let line = |DifferingName { then, now }: &DifferingName| {
        format!("  HERE: the error names `{now}` where that one named `{then}`\n")
    };
    names.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_fix_takes_from_its_error_are_told() {
        let check = |then: &str, now: &str, working: &str, expected: &[(&str, &str)]| {
            let found = differing_names(then, now, working);
            let found: Vec<_> = found
                .iter()
                .map(|name| (name.then.as_str(), name.now.as_str()))
                .collect();
            assert_eq!(found, expected, "{then} {now}");
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
        let names = differing_names("no 'a1': x", "no 'b2`': x", "use a1");
        let expected = "  HERE: the error names `b2` where that one named `a1`\n";
        assert_eq!(render(&names), expected);
    }
}
