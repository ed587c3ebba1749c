//! Simple commands of a shell line as recoveries compare them: without quotes, assignments and the wrappers that
//! change nothing but time, priority or environment.
//!
//! `ssh`, `xargs` and `find -exec` are programs here: who retries them retries the whole call. What is
//! substituted (`$(…)`) stays as text.

use std::ops::Range;

use memctl_shell::{Join, KEYWORDS, Layer, Raw, Word, is_assignment, is_shell, layer, scan};

pub(crate) use memctl_shell::basename;

/// Simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Simple {
    /// Program and arguments, without quotes, assignments and wrappers.
    pub(crate) words: Vec<String>,
    /// Reads the output of the previous command.
    pub(crate) piped: bool,
    /// Runs only if the previous command failed.
    pub(crate) fallback: bool,
    /// Text of its here-document.
    pub(crate) body: String,
    /// Place in the line, in bytes, with redirections and without operators.
    pub(crate) span: Range<usize>,
}

/// Maximum nesting of `bash -c '…'`.
const MAX_DEPTH: usize = 3;
/// Maximum number of simple commands per line.
const MAX_COMMANDS: usize = 64;
/// Wrappers that do not change what a command does.
const PLAIN: &[&str] = &[
    "time", "nohup", "exec", "command", "builtin", "env", "nice", "stdbuf", "sudo", "ionice",
    "xvfb-run", "timeout", "gtimeout",
];

/// Simple commands of a line, in order.
pub(crate) fn commands(line: &str) -> Vec<Simple> {
    let mut all = Vec::new();
    collect(line, 0, &mut all);
    all
}

/// Simple commands of a line as they are written: with assignments, wrappers and `bash -c '…'`.
pub(crate) fn written_commands(line: &str) -> Vec<Simple> {
    let raws = scan(line).into_iter();
    let raws = raws.filter(|raw| !raw.words.is_empty());
    raws.map(|raw| simple(line, &raw, &raw.words)).collect()
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
        let (words, inner) = unwrapped(&raw.words);
        match inner.filter(|_| depth < MAX_DEPTH) {
            Some(inner) => inner
                .iter()
                .for_each(|inner| collect(inner, depth + 1, all)),
            None if !words.is_empty() && all.len() < MAX_COMMANDS => {
                all.push(simple(line, &raw, words));
            }
            None => {}
        }
    }
}

/// Words behind the prefixes that do not change what a command does, and the lines that a shell runs.
fn unwrapped(mut words: &[Word]) -> (&[Word], Option<Vec<String>>) {
    while let Some(first) = words.first() {
        let text = first.text.as_str();
        let is_plain =
            is_assignment(text) || KEYWORDS.contains(&text) || PLAIN.contains(&basename(text));
        match layer(words) {
            Layer::Dropped(count) if is_plain => words = words.get(count..).unwrap_or_default(),
            Layer::Lines(lines) if is_shell(text) => return (words, Some(lines)),
            Layer::Nothing => return (&[], None),
            _ => break,
        }
    }
    (words, None)
}

fn simple(line: &str, raw: &Raw, words: &[Word]) -> Simple {
    let start = raw.words.first().map_or(raw.end, |word| word.start);
    let end = raw.end.max(raw.input_end).max(start);
    Simple {
        words: words.iter().map(|word| word.text.clone()).collect(),
        piped: raw.join == Join::Pipe,
        fallback: raw.join == Join::Failure,
        body: raw.input.clone(),
        span: start..start + line[start..end].trim_end().len(),
    }
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
    fn commands_know_their_place() {
        let line = "A=1 x 'b c' > f && y |  z 2>&1; cat <<E\nq\nE\nls";
        let texts: Vec<&str> = written_commands(line)
            .into_iter()
            .map(|simple| &line[simple.span])
            .collect();
        assert_eq!(
            texts,
            ["A=1 x 'b c' > f", "y", "z 2>&1", "cat <<E\nq\nE", "ls"]
        );
    }
}
