//! A call in comparable form: the simple commands of a shell line, or the arguments of a tool.
//!
//! Plumbing is left out: pipes into programs that only look, redirections, `echo`, `timeout`,
//! `|| true`, options of verbosity. Directories of `cd` are kept apart, because the same command
//! elsewhere is another call.
//!
//! Deliberately absent: what a call means, and whether it worked.

use serde_json::Value;

use super::goal::leaves;
use crate::lessons::recovery::shell::Run;
use crate::lessons::recovery::shell::{Simple, commands_and_settings};
use crate::lessons::vocabulary::WORDS;
use memctl_sessions::Step;

/// Maximum length of a call that is compared, in bytes.
pub(crate) const LONGEST: usize = 3_000;

/// Call in comparable form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    /// Shell line.
    Shell(Line),
    /// Call of another tool: its name, and the paths and texts of its arguments.
    Tool(String, Vec<(String, String)>),
}

/// Shell line without its plumbing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
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
            return (!arguments.is_empty()).then(|| Self::Tool(name.to_owned(), arguments));
        }
        if !tool.is_empty() && !is_shell(tool) {
            let text = (String::new(), code.to_owned());
            return Some(Self::Tool(tool.to_owned(), vec![text]));
        }
        let line = Line::of(code);
        (!line.commands.is_empty()).then_some(Self::Shell(line))
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
    words.any(|word| {
        [
            "bash", "sh", "zsh", "shell", "terminal", "powershell", "console",
        ]
        .contains(&word)
    }) || [
        "execute_command", "exec_command", "run_command", "runcommand", "exec", "command",
        "runterminalcmd", "bashoutput",
    ]
    .contains(&lower.as_str())
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

impl Line {
    fn of(code: &str) -> Self {
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

/// Returns `true` for an option that only changes how much is printed.
fn is_verbosity(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    WORDS.verbosity.contains(name) || name.starts_with("--tb")
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
        let expected = vec![("/query".to_owned(), "select 1".to_owned())];
        let call = Some(Call::Tool("query_db".to_owned(), expected));
        assert_eq!(read(r#"query_db {"query": "select 1"}"#, "query_db"), call);
        assert_eq!(read(r#"{"query": "select 1"}"#, "query_db"), call);
        assert_eq!(read(r#"Edit {"command": null}"#, "Edit"), None);
        assert_eq!(read("", "Bash"), None);
        assert!(is_shell("Bash") && is_shell("run_shell_command") && !is_shell("execute_sql"));
    }
}
