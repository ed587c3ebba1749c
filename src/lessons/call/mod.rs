//! A call in comparable form: the simple commands of a shell line, or the arguments of a tool.
//!
//! Plumbing is left out: pipes into programs that only look, redirections, `echo`, `timeout`, `|| true`,
//! options of verbosity. The directories of `cd` are stored separately, because the same command elsewhere is
//! another call.
//!
//! `run` has the program, subcommand and arguments of each command.
//!
//! Deliberately absent: what a call means, and whether it worked.

use crate::lessons::vocabulary::WORDS;
use memctl_sessions::Step;
use memctl_shell::{Join, KEYWORDS, Layer, Raw, Word, basename, is_assignment, layer, scan};
use serde_json::Value;

mod run;

pub(crate) use run::{Run, code_words, wrapped};

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
    WORDS.shell_words.has_word_of(&lower) || WORDS.shell_tools.contains(&lower)
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

/// Option or variable without its value: `--out` of `--out=a`.
pub(crate) fn without_value(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

/// Returns `true` for an option that only changes how much is printed.
fn is_verbosity(word: &str) -> bool {
    let name = without_value(word);
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

/// Simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Simple {
    /// Program and arguments, without quotes, assignments and wrappers; empty if there is nothing else.
    pub(crate) words: Vec<String>,
    /// Assignments before it, and `sudo`.
    pub(crate) environment: Vec<String>,
    /// Quotes and backslashes, in order.
    pub(crate) quoting: String,
    /// Reads the output of the previous command.
    pub(crate) piped: bool,
    /// Runs only if the previous command failed.
    pub(crate) fallback: bool,
    /// Text of its here-document.
    pub(crate) body: String,
    /// Call of another tool than a shell.
    pub(crate) is_tool: bool,
}

impl Simple {
    /// Name of the program, without its directory; empty if there is none.
    pub(crate) fn program(&self) -> &str {
        self.words.first().map_or("", |word| basename(word))
    }
}

/// Maximum nesting of `bash -c '…'`.
const MAX_DEPTH: usize = 3;
/// Maximum number of simple commands per line.
const MAX_COMMANDS: usize = 64;
/// Simple commands of a line, in order: without quotes, assignments, and wrappers that change only time, priority or
/// environment. Substitutions (`$(…)`) stay as text.
pub(crate) fn commands(line: &str) -> Vec<Simple> {
    let mut all = commands_and_settings(line);
    all.retain(|simple| !simple.words.is_empty());
    all
}

/// Simple commands of a line, and the assignments between them.
pub(crate) fn commands_and_settings(line: &str) -> Vec<Simple> {
    let mut all = Vec::new();
    collect(line, 0, &mut all);
    all
}

/// Words of a line in which a shell looks for files, and those in which quotes keep it from doing so.
#[derive(Debug, Default)]
pub(crate) struct Globs {
    pub(crate) open: Vec<String>,
    pub(crate) quoted: Vec<String>,
}

impl Globs {
    pub(crate) fn of(line: &str) -> Self {
        let mut globs = Self::default();
        let words = scan(line).into_iter().flat_map(|raw| raw.words);
        // `$?` is a variable.
        for word in words.filter(|word| word.text.replace("$?", "").contains(['*', '?'])) {
            let written = line.get(word.start..word.end).unwrap_or_default();
            let is_quoted = written.contains(['"', '\'', '\\']);
            let found = if is_quoted {
                &mut globs.quoted
            } else {
                &mut globs.open
            };
            found.push(word.text);
        }
        globs
    }
}

fn collect(line: &str, depth: usize, all: &mut Vec<Simple>) {
    for raw in scan(line) {
        let (simple, inner) = simple(line, &raw);
        match inner.filter(|_| depth < MAX_DEPTH) {
            Some(inner) => inner
                .iter()
                .for_each(|inner| collect(inner, depth + 1, all)),
            None if all.len() < MAX_COMMANDS
                && !(simple.words.is_empty() && simple.environment.is_empty()) =>
            {
                all.push(simple);
            }
            None => {}
        }
    }
}

/// Command without the prefixes that do not change what it does, and the lines that a shell runs.
fn simple(line: &str, raw: &Raw) -> (Simple, Option<Vec<String>>) {
    let start = raw.words.first().map_or(raw.end, |word| word.start);
    let end = raw.end.max(raw.input_end).max(start);
    let text = line.get(start..end).unwrap_or_default();
    let mut simple = Simple {
        piped: raw.join == Join::Pipe,
        fallback: raw.join == Join::Failure,
        body: raw.input.clone(),
        quoting: text.chars().filter(|c| "'\"\\`".contains(*c)).collect(),
        ..Simple::default()
    };
    let mut words: &[Word] = &raw.words;
    let mut inner = None;
    while let Some(first) = words.first() {
        let text = first.text.as_str();
        let sets = is_assignment(text) || basename(text) == "sudo";
        let is_plain =
            sets || KEYWORDS.contains(&text) || WORDS.plain_wrappers.contains(basename(text));
        match layer(words) {
            Layer::Dropped(count) if is_plain => {
                simple.environment.extend(sets.then(|| text.to_owned()));
                words = words.get(count..).unwrap_or_default();
                continue;
            }
            Layer::Lines(lines) if memctl_shell::is_shell(text) => inner = Some(lines),
            Layer::Nothing => words = &[],
            _ => {}
        }
        break;
    }
    simple.words = words.iter().map(|word| word.text.clone()).collect();
    (simple, inner)
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

#[cfg(test)]
mod tests_of_lines {
    use super::*;

    fn check(line: &str, expected: &[&[&str]]) {
        let words: Vec<Vec<String>> = commands(line).into_iter().map(|s| s.words).collect();
        assert_eq!(words, expected, "{line}");
    }

    #[test]
    fn a_line_becomes_simple_commands() {
        check(
            "a b && c; d | e || f",
            &[&["a", "b"], &["c"], &["d"], &["e"], &["f"]],
        );
        check(
            "A=1 B=2 time ./x y 2>&1 | head -3",
            &[&["./x", "y"], &["head", "-3"]],
        );
        check(
            "cd '/a b' && x \"c d\" > out 2>/dev/null",
            &[&["cd", "/a b"], &["x", "c d"]],
        );
        check(
            "X=$(go env A)/b && grep \"f(x)\" $X",
            &[&["grep", "f(x)", "$X"]],
        );
        check("bash -lc 'a && b'", &[&["a"], &["b"]]);
        check("timeout 60 make && sudo env X=1 y", &[&["make"], &["y"]]);
        check(
            "python3 - <<'EOF'\nprint(1)\nEOF\nls",
            &[&["python3", "-"], &["ls"]],
        );
        check("export A=b && \\\n x # a; b", &[&["export", "A=b"], &["x"]]);
        check("for i in 1 2; do x $i; done", &[&["x", "$i"]]);
        check("a &> f; (b)", &[&["a"], &["b"]]);
        assert_eq!(commands("cat <<E\nx y\nE")[0].body, "x y\n");
        assert!(commands("a | b")[1].piped);
        assert!(commands("a || b")[1].fallback);
    }

    #[test]
    fn removed_options_are_reported() {
        let all =
            commands_and_settings("A=1; B=2 sudo -u x timeout 5 make 'c d' && bash -c \"C=3 y\"");
        let environments: Vec<Vec<String>> =
            all.iter().map(|one| one.environment.clone()).collect();
        assert_eq!(environments, [&["A=1"][..], &["B=2", "sudo"], &["C=3"]]);
        assert_eq!(
            (all[1].words.join(" ").as_str(), all[1].quoting.as_str()),
            ("make c d", "''")
        );
    }
}
