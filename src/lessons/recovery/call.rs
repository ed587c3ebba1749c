//! A call in comparable form: the simple commands of a shell line, or the arguments of a tool.
//!
//! Plumbing is left out: pipes into programs that only look, redirections, `echo`, `timeout`, `|| true`,
//! options of verbosity. The directories of `cd` are stored separately, because the same command elsewhere is
//! another call.
//!
//! Commands are without quotes, assignments, and wrappers that change only time, priority or environment. Each
//! has its program, subcommand and arguments. `ssh`, `xargs` and `find -exec` count as programs, because a
//! retry repeats the whole call. Substitutions (`$(…)`) stay as text.
//!
//! Deliberately absent: what a call means, and whether it worked.

use std::collections::HashSet;

use memctl_sessions::Step;
use memctl_shell::{
    Join, KEYWORDS, Layer, Raw, Word, basename, is_assignment, layer, scan, takes_value,
};
use serde_json::Value;

use super::goal::leaves;
use crate::lessons::vocabulary::WORDS;

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
/// Simple commands of a line, in order.
pub(crate) fn commands(line: &str) -> Vec<Simple> {
    let mut all = commands_and_settings(line);
    all.retain(|simple| !simple.words.is_empty());
    all
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

/// Simple commands of a line, and the assignments between them.
pub(crate) fn commands_and_settings(line: &str) -> Vec<Simple> {
    let mut all = Vec::new();
    collect(line, 0, &mut all);
    all
}

/// Words of a line in which a shell looks for files, and those in which quotes keep it from doing so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Globs {
    pub(crate) open: bool,
    pub(crate) quoted: bool,
}

impl Globs {
    pub(crate) fn of(line: &str) -> Self {
        let mut globs = Self::default();
        let words = scan(line).into_iter().flat_map(|raw| raw.words);
        // `$?` is a variable.
        for word in words.filter(|word| word.text.replace("$?", "").contains(['*', '?'])) {
            let written = line.get(word.start..word.end).unwrap_or_default();
            let is_quoted = written.contains(['"', '\'', '\\']);
            globs.quoted |= is_quoted;
            globs.open |= !is_quoted;
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

/// Run of one program.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Program with its subcommand: `git status`, `cargo test`, `build.py`.
    pub(crate) name: String,
    /// Arguments that are not flags.
    pub(crate) operands: Vec<String>,
    /// Words of code arguments.
    pub(crate) code: HashSet<String>,
    /// Words of prose arguments, such as a message or a title.
    pub(crate) prose: HashSet<String>,
    /// Only reads files.
    pub(crate) looks: bool,
}

impl Run {
    /// Returns true if the program prints existing content: lines of files, messages.
    pub(crate) fn prints_content(&self) -> bool {
        WORDS.prints_content.contains(&self.name)
    }

    pub(crate) fn of(simple: &Simple) -> Self {
        let mut words: &[String] = &simple.words;
        let program = |word: &String| {
            let name = basename(word);
            // `python3.12`, `pip3`.
            let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            let is_known = bare == "pip" || WORDS.interpreters.contains(bare);
            if is_known { bare } else { name }.to_owned()
        };
        let mut name = words.first().map(program).unwrap_or_default();
        let by_path = words.first().is_some_and(|w| w.contains('/'));
        words = words.get(1..).unwrap_or_default();
        let runs_another = WORDS.managers.contains(&name)
            && words.first().is_some_and(|w| w == "run")
            || WORDS.runners.contains(&name);
        let is_before = |w: &&String| w.starts_with('-') || *w == "run";
        let skip = words.iter().take_while(is_before).count();
        if let Some(inner) = words.get(skip).filter(|_| runs_another) {
            name = program(inner);
            words = &words[skip + 1..];
        }
        let mut code = HashSet::new();
        let mut operands: Vec<String> = Vec::new();
        if WORDS.interpreters.contains(&name) {
            let valued = [
                "-cp", "-classpath", "--class-path", "-W", "-X", "--require", "-r", "-I",
            ];
            while words.len() > 2 && valued.contains(&words[0].as_str()) {
                words = &words[2..];
            }
            let is_what =
                |w: &String| !w.starts_with('-') || ["-c", "-m", "-e"].contains(&w.as_str());
            match words.iter().position(is_what) {
                Some(at) if words[at] == "-m" => {
                    if let Some(module) = words.get(at + 1) {
                        // `python -m pkg.main` runs `pkg/main.py`.
                        name = match module.rsplit_once('.') {
                            Some((_, file)) => format!("{file}.py"),
                            None => module.clone(),
                        };
                        words = &words[at + 2..];
                    }
                }
                Some(at) if words[at].starts_with('-') => {
                    code = code_words(words.get(at + 1).map_or("", String::as_str));
                    words = &[];
                }
                Some(at) => {
                    // `./x.py`, `python x.py` and `python3 -u x.py` run the same program.
                    let script = basename(&words[at]).to_owned();
                    (name, words) = with_subcommands(script, &words[at + 1..]);
                }
                None => {}
            }
        } else if WORDS.layered.contains(&name) || by_path {
            (name, words) = with_subcommands(name, words);
        }
        if !simple.body.is_empty() {
            code.extend(code_words(&simple.body));
        }
        let mut prose = HashSet::new();
        for word in words {
            if word.split_whitespace().count() > 3 && !WORDS.looks.contains(&name) {
                prose.extend(code_words(word));
            } else if !word.starts_with('-') && !word.bytes().all(|b| b.is_ascii_digit()) {
                operands.push(word.clone());
            }
        }
        let in_place = |w: &String| w.starts_with("-i") || w == "--in-place" || w == "-pi";
        let edits = (name == "sed" || name == "awk") && simple.words.iter().any(in_place);
        let looks = WORDS.looks.contains(&name) && !edits;
        Self {
            name,
            operands,
            code,
            prose,
            looks,
        }
    }
}

/// Command that a runner of programs, modules or scripts runs: `npx`, `uv run`, `python -m`, `sh`;
/// `None` if the words are no such command.
pub(crate) fn wrapped(words: &[String]) -> Option<Vec<String>> {
    let (first, rest) = words.split_first()?;
    let program = basename(first);
    let inner = if WORDS.runners.contains(program) {
        rest
    } else if WORDS.managers.contains(program) && rest.first()? == "run" {
        &rest[1..]
    } else if let Some(module) = module_of(program, rest) {
        &rest[module..]
    } else if WORDS.interpreters.contains(program) || program == "python3" {
        // `sh tools/build` runs `tools/build`. The words of `-c` are code.
        rest.first().filter(|word| !word.starts_with('-'))?;
        rest
    } else {
        return None;
    };
    let flags = inner.iter().take_while(|word| word.starts_with('-'));
    let mut inner = inner[flags.count()..].to_vec();
    let first = inner.first_mut()?;
    *first = basename(first).to_owned();
    Some(inner)
}

/// Place of the module that `python -m` runs, among the words after the program.
fn module_of(program: &str, rest: &[String]) -> Option<usize> {
    let module = rest.iter().position(|word| word == "-m")?;
    program.starts_with("python").then_some(module + 1)
}

/// Program name with subcommands, and the remaining arguments.
fn with_subcommands(mut name: String, mut words: &[String]) -> (String, &[String]) {
    let mut depth = 0;
    while depth < 2 {
        // `git -C DIR status`: the value of a flag is not a subcommand.
        if let [option, value, rest @ ..] = words
            && option.starts_with('-')
            && takes_value(&name, option, value)
        {
            words = rest;
            continue;
        }
        match words.first() {
            // `cargo +nightly check` is `cargo check`, and `make CROSS=arm- image` is `make image`.
            Some(flag) if depth == 0 && (flag.starts_with(['-', '+']) || is_assignment(flag)) => {
                words = &words[1..];
            }
            Some(sub)
                if is_bare(sub) && (depth == 0 || WORDS.deeper.contains(last_word(&name))) =>
            {
                name = format!("{name} {sub}");
                words = &words[1..];
                depth += 1;
            }
            _ => break,
        }
    }
    (name, words)
}

fn last_word(name: &str) -> &str {
    name.rsplit(' ').next().unwrap_or(name)
}

/// Returns true if a word can be a subcommand.
fn is_bare(word: &str) -> bool {
    word.len() < 40
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
}

/// Words of code with two bytes or more.
pub(crate) fn code_words(text: &str) -> HashSet<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')
        .filter(|word| word.len() > 1)
        .map(str::to_owned)
        .collect()
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
    fn a_call_begins_with_its_program_and_its_subcommand() {
        let check = |line: &str, expected: &str| assert_eq!(beginning_of(line), expected, "{line}");
        check("cd web && pytest tests/ -q 2>&1 | tail -3", "pytest tests/");
        check("FOO=1 npm run lint -- --fix", "npm run lint");
        check("make", "make");
        check("cd web", "");
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
