//! Difference between a failing and a working call: the words that were added and dropped.
//!
//! It decides what a fix consists of, which names it depends on, and whether a later call has
//! adopted it. Shell lines are compared word by word, edits and tool arguments by their tokens.

use std::collections::HashMap;

use serde_json::Value;

use super::script::Script;

/// Words that two calls do not share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Words of the working call only.
    pub(crate) added: Vec<String>,
    /// Words of the failing call only.
    pub(crate) dropped: Vec<String>,
    /// The words are equal, and their quotes are not.
    pub(crate) requoted: bool,
}

impl Difference {
    /// Compares two calls, each as a fix stores it or a hook reports it.
    pub(crate) fn between(failing: &str, working: &str) -> Self {
        let (before, after) = (words_of(failing), words_of(working));
        let mut added = surplus(&after.present, &before.present);
        added.retain(|word| !after.removed.contains(word));
        let mut dropped = surplus(&before.present, &after.present);
        dropped.extend(after.removed);
        // Words that differ in their quotes alone are the same word.
        let bare = |word: &str| word.replace(['\'', '"', '\\', ' '], "");
        let mut left: HashMap<String, usize> = HashMap::new();
        for word in dropped.iter().filter(|word| word.len() > 1) {
            *left.entry(bare(word)).or_default() += 1;
        }
        let mut same: HashMap<String, usize> = HashMap::new();
        let mut take = |word: &String| {
            let name = bare(word);
            let is_left = left.get_mut(&name).filter(|count| **count > 0);
            let Some(count) = is_left.filter(|_| word.len() > 1) else {
                return false;
            };
            *count -= 1;
            *same.entry(name).or_default() += 1;
            true
        };
        let only_added: Vec<String> = added.into_iter().filter(|word| !take(word)).collect();
        let mut requoted = !same.is_empty();
        let only_dropped: Vec<String> = dropped
            .into_iter()
            .filter(|word| match same.get_mut(&bare(word)) {
                Some(count) if *count > 0 && word.len() > 1 => {
                    *count -= 1;
                    false
                }
                _ => true,
            })
            .collect();
        requoted |= only_added.is_empty() && only_dropped.is_empty() && failing != working;
        Self {
            added: only_added,
            dropped: only_dropped,
            requoted,
        }
    }

    /// Returns `true` if the calls have the same words.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.dropped.is_empty() && !self.requoted
    }
}

/// Words of a call.
#[derive(Debug, Default)]
struct Words {
    present: Vec<String>,
    /// Words that an edit takes away.
    removed: Vec<String>,
}

/// All words of a call.
pub(crate) fn words(code: &str) -> Vec<String> {
    words_of(code).present
}

fn words_of(code: &str) -> Words {
    let mut words = Words::default();
    let code = code.trim();
    let json = code.find('{').filter(|at| {
        // `Tool {…}`, or the arguments alone.
        code[..*at].split_whitespace().count() <= 1
    });
    if let Some(input) = json.and_then(|at| serde_json::from_str::<Value>(&code[at..]).ok()) {
        words.present.extend(tokens(&code[..json.unwrap_or(0)]));
        of_arguments(&input, &mut words);
        return words;
    }
    let mut shell = String::new();
    let mut in_edit = false;
    for line in code.lines() {
        match line.split_at_checked(2) {
            Some(("+ ", new)) if in_edit => words.present.extend(tokens(new)),
            Some(("- ", old)) if in_edit => words.removed.extend(tokens(old)),
            _ if in_edit && (line == "+" || line == "-") => {}
            _ => {
                in_edit = is_edit_header(line);
                if !in_edit {
                    shell.push_str(line);
                    shell.push('\n');
                }
            }
        }
    }
    let kept = surplus(&words.removed, &words.present);
    words.present = surplus(&words.present, &words.removed);
    words.removed = kept;
    words.present.extend(Script::of(shell.trim_end()).words());
    words
}

/// First line of an edit in a fix: the tool and the file.
fn is_edit_header(line: &str) -> bool {
    let mut parts = line.split_whitespace();
    let tool = parts.next().unwrap_or_default();
    tool.starts_with(|c: char| c.is_ascii_uppercase())
        && tool.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && parts.next().is_some()
        && parts.next().is_none()
        || matches!(
            tool,
            "str_replace_editor" | "write_file" | "edit_file" | "replace"
        )
}

fn of_arguments(input: &Value, words: &mut Words) {
    match input {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value.as_str()) {
                    ("old_string" | "old_str", Some(old)) => words.removed.extend(tokens(old)),
                    ("new_string" | "new_str" | "content", Some(new)) => {
                        words.present.extend(tokens(new));
                    }
                    ("description" | "thought", _) => {}
                    _ => {
                        words.present.push(name.clone());
                        of_arguments(value, words);
                    }
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| of_arguments(value, words)),
        Value::String(text) => words
            .present
            .extend(text.split_whitespace().map(str::to_owned)),
        Value::Null => {}
        other => words.present.push(other.to_string()),
    }
}

/// Tokens of code: letters, digits and the marks inside names.
pub(crate) fn tokens(code: &str) -> Vec<String> {
    code.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.' | '/' | '@'))
        .map(|token| token.trim_matches(['.', '-']))
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Words of `a` that `b` has fewer of.
fn surplus(a: &[String], b: &[String]) -> Vec<String> {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for word in b {
        *left.entry(word).or_default() += 1;
    }
    let mut out = Vec::new();
    for word in a {
        match left.get_mut(word.as_str()) {
            Some(count) if *count > 0 => *count -= 1,
            _ => out.push(word.clone()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(failing: &str, working: &str, added: &[&str], dropped: &[&str]) {
        let found = Difference::between(failing, working);
        assert_eq!(found.added, added, "{failing} -> {working}");
        assert_eq!(found.dropped, dropped, "{failing} -> {working}");
    }

    #[test]
    fn words_that_calls_do_not_share_are_the_difference() {
        check(
            "git push",
            "git push -u origin x",
            &["-u", "origin", "x"],
            &[],
        );
        check("x -it a", "x -i a", &["-i"], &["-it"]);
        check("a b", "A=1 a b", &["A=1"], &[]);
        check("make", "chmod +x f && make", &["chmod", "+x", "f"], &[]);
        check(
            "run",
            "Edit a.py\n- open(f)\n+ open(f, encoding=\"x\")\nrun",
            &["encoding", "x"],
            &[],
        );
        check(
            r#"Read {"file_path":"/a"}"#,
            r#"Read {"file_path":"/a","limit":400}"#,
            &["limit", "400"],
            &[],
        );
    }

    #[test]
    fn quotes_alone_are_a_difference() {
        let found = Difference::between("pip install .[dev]", "pip install '.[dev]'");
        assert!(found.requoted && found.added.is_empty() && found.dropped.is_empty());
        let found = Difference::between("x \"{'a': 1}\"", "x '{\"a\": 1}'");
        assert!(found.requoted && found.added.is_empty(), "{found:?}");
        assert!(Difference::between("a  b", "a  b").is_empty());
    }
}
