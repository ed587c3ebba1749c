//! Simple commands of a shell line.
//!
//! Commands are without quotes, assignments, and wrappers that change only time, priority or environment.
//! Substitutions (`$(…)`) stay as text.

use memctl_shell::{Join, KEYWORDS, Layer, Raw, Word, basename, is_assignment, layer, scan};

use crate::lessons::vocabulary::WORDS;

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
