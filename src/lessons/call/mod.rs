//! A call in comparable form: the simple commands of a shell line, or the arguments of a tool.
//!
//! Plumbing is left out: pipes into programs that only look, redirections, `echo`, `timeout`, `|| true`,
//! options of verbosity. The directories of `cd` are stored separately, because the same command elsewhere is
//! another call.
//!
//! `simple` has the commands of a line, `run` the program, subcommand and arguments of each.
//!
//! Deliberately absent: what a call means, and whether it worked.

mod run;
mod simple;

use memctl_sessions::Step;
use serde_json::Value;

use crate::lessons::vocabulary::WORDS;

pub(crate) use run::{Run, code_words, wrapped};
pub(crate) use simple::{Globs, Simple, commands, commands_and_settings};

/// Maximum length of a call that is compared, in bytes.
pub(crate) const LONGEST: usize = 3_000;

/// Call in comparable form: a shell line without its plumbing, or the call of another tool, as a command with its
/// arguments as options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Call {
    /// Directories of `cd`, in order.
    pub(crate) directories: Vec<String>,
    /// Commands, in order.
    pub(crate) commands: Vec<Simple>,
}

impl Call {
    /// Reads the call of a step; `None` if its input is unknown, or too long to be compared.
    pub(crate) fn of_step(step: &Step) -> Option<Self> {
        Self::of(&code(step), Some(&step.tool))
    }

    /// Reads a call as [`code`] writes it, or as a hook reports it.
    pub(crate) fn of(code: &str, tool: Option<&str>) -> Option<Self> {
        let code = code.trim();
        if code.is_empty() || code.len() > LONGEST {
            return None;
        }
        let tool = tool.unwrap_or_default();
        if let Some((name, arguments)) = tool_call(code) {
            let name = if name.is_empty() { tool } else { name };
            return (!arguments.is_empty()).then(|| Self::of_tool(name, arguments));
        }
        if !tool.is_empty() && !is_shell(tool) {
            let text = (String::new(), code.to_owned());
            return Some(Self::of_tool(tool, vec![text]));
        }
        Some(Self::of_line(code)).filter(|call| !call.commands.is_empty())
    }

    fn of_tool(name: &str, arguments: Vec<(String, String)>) -> Self {
        let options = arguments.into_iter();
        let options = options.flat_map(|(path, text)| [path.replacen('/', "--", 1), text]);
        let command = Simple {
            words: std::iter::once(name.to_owned()).chain(options).collect(),
            is_tool: true,
            ..Simple::default()
        };
        Self {
            commands: vec![command],
            ..Self::default()
        }
    }

    fn of_line(code: &str) -> Self {
        let mut line = Self::default();
        let mut exported: Vec<String> = Vec::new();
        for mut simple in commands_and_settings(code) {
            let is_plumbing = simple.fallback || simple.piped && Run::of(&simple).looks;
            simple.words.retain(|word| !is_verbosity(word));
            let program = simple.program().to_owned();
            match program.as_str() {
                "" => exported.extend(simple.environment),
                "cd" | "pushd" => line.directories.extend(simple.words.get(1).cloned()),
                "export" => exported.extend(simple.words.drain(1..)),
                "source" | "." => exported.push(simple.words.join(" ")),
                program if is_plumbing || WORDS.around.contains(program) => {}
                _ => line.commands.push(Simple {
                    environment: [exported.as_slice(), &simple.environment].concat(),
                    piped: false,
                    fallback: false,
                    ..simple
                }),
            }
        }
        line
    }
}

/// Name and arguments of a tool call as text: `NAME {…}`, or the arguments alone.
fn tool_call(code: &str) -> Option<(&str, Vec<(String, String)>)> {
    let (name, json) = code.split_at(code.find('{')?);
    let name = name.trim();
    let is_name = name
        .chars()
        .all(|c| c.is_alphanumeric() || "_-.:/".contains(c));
    let input: Value = serde_json::from_str(json).ok().filter(|_| is_name)?;
    input.is_object().then(|| (name, leaves(&input)))
}

/// Returns `true` for tools whose command is a shell line.
pub(crate) fn is_shell(tool: &str) -> bool {
    let lower = tool.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| WORDS.shell_words.contains(word)) || WORDS.shell_tools.contains(&lower)
}

/// Text of a call: a shell line as it is, another tool as its name and its arguments.
pub(crate) fn code(step: &Step) -> String {
    let command = step
        .command()
        .filter(|_| step.tool.is_empty() || is_shell(&step.tool));
    match (command, &step.input) {
        (Some(command), _) => command.trim().to_owned(),
        (None, Value::Null) => String::new(),
        (None, Value::String(text)) => text.trim().to_owned(),
        (None, input) => format!("{} {input}", step.tool),
    }
}

/// Returns `true` for an option that only changes how much is printed.
fn is_verbosity(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    WORDS.verbosity.contains(name) || name.starts_with("--tb")
}

/// Minimum number of words by which a lesson is told before a call.
const BEGINNING: usize = 2;

/// Words that a call like this one begins with: the program of its last command, with its subcommand.
pub(crate) fn beginning_of(line: &str) -> String {
    let is_plumbing = |simple: &Simple| {
        simple.fallback
            || simple.piped && Run::of(simple).looks
            || WORDS.around.contains(simple.program())
    };
    let mut all = commands(line).into_iter().rev();
    let Some(last) = all.find(|simple| !is_plumbing(simple)) else {
        return String::new();
    };
    let words = Run::of(&last).name.split(' ').count().max(BEGINNING);
    last.words[..words.min(last.words.len())].join(" ")
}

/// Values of a tool's arguments, with their paths, without explanatory fields.
pub(crate) fn leaves(input: &Value) -> Vec<(String, String)> {
    fn walk(value: &Value, path: &str, out: &mut Vec<(String, String)>) {
        if out.len() >= 64 {
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if !["description", "timeout", "thought", "explanation"]
                        .contains(&name.as_str())
                    {
                        walk(value, &format!("{path}/{name}"), out);
                    }
                }
            }
            // The order of a list rarely matters.
            Value::Array(values) => values.iter().for_each(|value| walk(value, path, out)),
            Value::String(text) => out.push((path.to_owned(), text.clone())),
            Value::Null => {}
            other => out.push((path.to_owned(), other.to_string())),
        }
    }
    let mut out = Vec::new();
    walk(input, "", &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plumbing_makes_no_other_call() {
        let check = |a: &str, b: &str, is_same: bool| {
            let read = |code: &str| Call::of(code, Some("Bash"));
            assert_eq!(read(a) == read(b), is_same, "{a} | {b}");
        };
        check("go build", "go build 2>&1", true);
        check(
            "go test ./x",
            "timeout 60 go test -v ./x 2>&1 | head -20",
            true,
        );
        check("make", "make > /dev/null; echo \"exit: $?\"", true);
        check("make", "make || true", true);
        check("make", "cd a && make", false);
        check("make", "make -j1", false);
        check("make", "CC=gcc make", false);
        check("export CC=gcc; make", "CC=gcc make", true);
    }

    #[test]
    fn tools_are_read_from_their_arguments() {
        let read = |code: &str, tool: &str| Call::of(code, Some(tool));
        let call = read(r#"query_db {"query": "select 1"}"#, "query_db").unwrap();
        assert_eq!(call.commands[0].words, ["query_db", "--query", "select 1"]);
        assert_eq!(
            read(r#"{"query": "select 1"}"#, "query_db"),
            Some(call.clone())
        );
        assert_ne!(read("query_db --query 'select 1'", "Bash"), Some(call));
        assert_eq!(read(r#"Edit {"command": null}"#, "Edit"), None);
        assert_eq!(read("", "Bash"), None);
        assert!(is_shell("Bash") && is_shell("run_shell_command") && !is_shell("execute_sql"));
    }

    #[test]
    fn a_call_begins_with_its_program_and_its_subcommand() {
        let check = |line: &str, expected: &str| assert_eq!(beginning_of(line), expected, "{line}");
        check("cd web && pytest tests/ -q 2>&1 | tail -3", "pytest tests/");
        check("FOO=1 npm run lint -- --fix", "npm run lint");
        check("make", "make");
        check("cd web", "");
    }
}
