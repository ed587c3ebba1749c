//! Words for what made a call work: what ran first, and what was added, left out or replaced.
//!
//! The words come from the two calls alone: their common beginning and end are taken away, and the
//! rest is the change. No list of tools, and no meaning. A change that is long, or in several
//! places, has no words here: the working call itself says it.

use serde_json::Value;

use super::script::Script;

/// Maximum number of words of one side of a change.
const WORDS: usize = 12;
/// Maximum number of commands before the call; more are a script, which the call itself says.
const FIRST: usize = 3;
/// Maximum length of one side of a change, in bytes.
const LONGEST: usize = 160;

/// Difference of a working call to the failing one, in the words of the calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Commands that run before the call.
    pub(crate) first: Vec<String>,
    /// Change of the call itself; `None` if it is the same, or has no short words.
    pub(crate) edit: Option<Edit>,
}

/// Change of one place of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Words of a command that the working call has besides.
    Add(String),
    /// Words of code or arguments that the working call has besides.
    Specify(String),
    /// Words that only the failing call has.
    LeaveOut(String),
    /// Words of the working call in place of those of the failing one.
    Replace {
        /// Words of the failing call.
        old: String,
        /// Words of the working call.
        new: String,
    },
}

impl Change {
    /// Compares two calls, each as a fix stores it. `is_shell` is true for commands.
    pub(crate) fn between(failing: &str, working: &str, is_shell: bool) -> Self {
        if !is_shell {
            return Self {
                first: Vec::new(),
                edit: of_arguments(failing, working),
            };
        }
        let (before, after) = (parts(failing), parts(working));
        let (Some(old), Some((new, first))) = (before.last(), after.split_last()) else {
            return Self::default();
        };
        let is_new = |part: &&String| !before.contains(part) && part.len() <= LONGEST;
        let mut first: Vec<String> = first.iter().filter(is_new).cloned().collect();
        if first.len() > FIRST {
            first.clear();
        }
        Self {
            first,
            edit: of_command(old, new),
        }
    }
}

impl Edit {
    /// Returns the change as a step.
    pub(crate) fn step(&self) -> String {
        match self {
            Self::Add(words) => format!("Add `{words}`."),
            Self::Specify(words) => format!("Specify `{words}`."),
            Self::LeaveOut(words) => format!("Leave out `{words}`."),
            Self::Replace { old, new } => format!("Use `{new}` instead of `{old}`."),
        }
    }

    /// Returns the lack of the failing call as a statement.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Add(words) | Self::Specify(words) => format!("The call lacked `{words}`."),
            Self::LeaveOut(words) => format!("The call works without `{words}`."),
            Self::Replace { old, new } => format!("The call had `{old}`, and `{new}` works."),
        }
    }
}

/// Commands of a shell line.
fn parts(line: &str) -> Vec<String> {
    let script = Script::of(line);
    let parts = script.parts.iter().map(|part| script.text(part));
    // A line may go on behind a backslash.
    let parts = parts.map(|part| part.trim_start_matches(['\\', '\n', ' ']));
    parts.map(str::to_owned).collect()
}

fn of_command(old: &str, new: &str) -> Option<Edit> {
    let (before, after) = (split(old), split(new));
    let (start, old, new) = middle(&before, &after);
    match (old, new) {
        ([], []) => None,
        // Another program runs the same command.
        ([], new) if start == 0 && after.len() > new.len() => Some(Edit::Replace {
            old: before[0].to_owned(),
            new: short(&after[..=new.len()], " ")?,
        }),
        ([], new) => Some(Edit::Add(short(new, " ")?)),
        (old, []) => Some(Edit::LeaveOut(short(old, " ")?)),
        // Code in quotes: the change is inside.
        ([one], [other]) if is_quoted(one) && is_quoted(other) => of_code(one, other),
        (old, new) => replace(old, new),
    }
}

/// Change of code, or of a tool's arguments.
fn of_arguments(failing: &str, working: &str) -> Option<Edit> {
    let arguments = |call: &str| {
        let at = call.find('{')?;
        serde_json::from_str::<Value>(&call[at..]).ok()
    };
    let (Some(old), Some(new)) = (arguments(failing), arguments(working)) else {
        return of_code(failing, working);
    };
    let mut edits = Vec::new();
    of_values("", &old, &new, &mut edits);
    match edits.as_mut_slice() {
        [only] => only.take(),
        _ => None,
    }
}

fn of_values(name: &str, old: &Value, new: &Value, edits: &mut Vec<Option<Edit>>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in after {
                if let Some(old) = before.get(name) {
                    of_values(name, old, value, edits);
                } else {
                    let text = format!("{name}: {value}");
                    edits.push((text.len() <= LONGEST).then_some(Edit::Specify(text)));
                }
            }
            let gone = before.keys().filter(|name| !after.contains_key(*name));
            edits.extend(gone.map(|name| Some(Edit::LeaveOut(name.clone()))));
        }
        (Value::String(old), Value::String(new)) => edits.push(of_code(old, new)),
        (old, new) => {
            let (old, new) = (format!("{name}: {old}"), format!("{name}: {new}"));
            let is_short = old.len().max(new.len()) <= LONGEST;
            edits.push(is_short.then_some(Edit::Replace { old, new }));
        }
    }
}

fn of_code(old: &str, new: &str) -> Option<Edit> {
    let (before, after) = (tokens(old), tokens(new));
    let left: Vec<&str> = before.iter().map(|(_, word)| *word).collect();
    let right: Vec<&str> = after.iter().map(|(_, word)| *word).collect();
    let (start, gone, added) = middle(&left, &right);
    let written = |code: &str, tokens: &[(usize, &str)], count: usize| {
        let last = tokens[start + count - 1];
        short(&[&code[tokens[start].0..last.0 + last.1.len()]], "")
    };
    match (gone.len(), added.len()) {
        (0, 0) => None,
        (0, count) => Some(Edit::Specify(written(new, &after, count)?)),
        (count, 0) => Some(Edit::LeaveOut(written(old, &before, count)?)),
        (less, more) => Some(Edit::Replace {
            old: written(old, &before, less)?,
            new: written(new, &after, more)?,
        }),
    }
}

fn replace(old: &[&str], new: &[&str]) -> Option<Edit> {
    Some(Edit::Replace {
        old: short(old, " ")?,
        new: short(new, " ")?,
    })
}

/// Words joined; `None` if they are too long to name.
fn short(words: &[&str], by: &str) -> Option<String> {
    let text = words.join(by);
    (words.len() <= WORDS && text.len() <= LONGEST && !text.contains('\n')).then_some(text)
}

/// Position of the first difference, and what lies between the common beginning and end.
fn middle<'s, 'w>(a: &'s [&'w str], b: &'s [&'w str]) -> (usize, &'s [&'w str], &'s [&'w str]) {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    let same = a.iter().rev().zip(b.iter().rev());
    let end = same.take_while(|(a, b)| a == b).count();
    (start, &a[..a.len() - end], &b[..b.len() - end])
}

/// Words of a command as they are written, with their quotes.
fn split(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut quote = None;
    let (mut from, mut escaped) = (0, false);
    for (at, c) in command.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, c) if c.is_whitespace() => {
                words.push(&command[from..at]);
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    words.push(&command[from..]);
    words.retain(|word| !word.is_empty());
    words
}

fn is_quoted(word: &str) -> bool {
    word.starts_with(['"', '\'']) && word.contains(char::is_whitespace)
}

/// Words of code with their positions; brackets, quotes and separators stand alone.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let is_mark = |c: char| matches!(c, ';' | ',' | ')' | '(' | '"' | '\'');
    let mut tokens = Vec::new();
    let mut from = 0;
    for (at, c) in code.char_indices() {
        if !c.is_whitespace() && !is_mark(c) {
            continue;
        }
        tokens.push((from, &code[from..at]));
        from = at + c.len_utf8();
        if is_mark(c) {
            tokens.push((at, &code[at..from]));
        }
    }
    tokens.push((from, &code[from..]));
    tokens.retain(|(_, token)| !token.is_empty());
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(failing: &str, working: &str, is_shell: bool, first: &[&str], step: &str) {
        let change = Change::between(failing, working, is_shell);
        assert_eq!(change.first, first, "{failing} -> {working}");
        let said = change.edit.map(|edit| edit.step()).unwrap_or_default();
        assert_eq!(said, step, "{failing} -> {working}");
    }

    #[test]
    fn change_of_a_command_is_said_in_its_words() {
        let shell = |failing, working, step| check(failing, working, true, &[], step);
        shell("pip install x", "pip install --user x", "Add `--user`.");
        shell(
            "pytest tests",
            "python3 -m pytest tests",
            "Use `python3 -m pytest` instead of `pytest`.",
        );
        shell("ls -z a", "ls a", "Leave out `-z`.");
        shell(
            "jq .total r.json",
            "jq '.[0].total' r.json",
            "Use `'.[0].total'` instead of `.total`.",
        );
        shell("make", "make", "");
        check("make", "cd sub && make", true, &["cd sub"], "");
        check(
            "a && make",
            "a && npm ci && make all",
            true,
            &["npm ci"],
            "Add `all`.",
        );
    }

    #[test]
    fn long_script_has_no_commands_to_run_first() {
        check("e", "a && \\\nb && e", true, &["a", "b"], "");
        check("e", "a && b && c && d && e", true, &[], "");
    }

    #[test]
    fn change_of_code_is_what_has_to_be_specified() {
        check(
            "psql -c 'ALTER TABLE users ADD COLUMN last_name;'",
            "psql -c 'ALTER TABLE users ADD COLUMN last_name TEXT;'",
            true,
            &[],
            "Specify `TEXT`.",
        );
        check(
            r#"query {"sql":"ALTER TABLE users ADD COLUMN last_name;"}"#,
            r#"query {"sql":"ALTER TABLE users ADD COLUMN last_name TEXT;"}"#,
            false,
            &[],
            "Specify `TEXT`.",
        );
        check(
            r#"Read {"file_path":"/a"}"#,
            r#"Read {"file_path":"/a","limit":400}"#,
            false,
            &[],
            "Specify `limit: 400`.",
        );
        check(
            "query {\"sql\":\"SELECT a FROM order\"}",
            "query {\"sql\":\"SELECT a FROM \\\"order\\\"\"}",
            false,
            &[],
            "Use `\"order\"` instead of `order`.",
        );
        // Two changes have no short words.
        check(
            r#"Read {"file_path":"/a"}"#,
            r#"Read {"file_path":"/b","limit":400}"#,
            false,
            &[],
            "",
        );
    }

    #[test]
    fn long_or_broken_calls_have_no_words_and_do_no_harm() {
        let long = "word ".repeat(40);
        let change = Change::between("run", &format!("run {long}"), true);
        assert_eq!(change, Change::default());
        for call in ["", " ", "'", "\"a b", "x \\", "{", "a {b", "é 'ü ß"] {
            for other in ["", "x", "'ü", "{\"a\":1}", "é 'ü ß' z"] {
                for is_shell in [true, false] {
                    drop(Change::between(call, other, is_shell));
                    drop(Change::between(other, call, is_shell));
                }
            }
        }
    }
}
