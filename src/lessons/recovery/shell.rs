//! Parses a shell line into its commands: lists, pipes, quotes, assignments, redirections,
//! here-documents and wrappers.
//!
//! Nothing is expanded or evaluated. `$(…)` stays as text.

use std::ops::Range;

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

/// Simple commands of a line, in order.
pub(crate) fn commands(line: &str) -> Vec<Simple> {
    let mut all = Vec::new();
    collect(line, 0, &mut all);
    all
}

fn collect(line: &str, depth: usize, all: &mut Vec<Simple>) {
    for mut simple in split(line) {
        unwrap(&mut simple.words);
        if simple.words.is_empty() || all.len() >= MAX_COMMANDS {
            continue;
        }
        let inner = inner(&simple.words).map(str::to_owned);
        match inner.filter(|_| depth < MAX_DEPTH) {
            Some(inner) => collect(&inner, depth + 1, all),
            None => all.push(simple),
        }
    }
}

/// Command of `bash -c '…'`.
fn inner(words: &[String]) -> Option<&str> {
    let program = basename(words.first()?);
    let shells = ["sh", "bash", "zsh", "dash", "ksh"];
    let flag = words.get(1)?;
    let runs = flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c');
    (shells.contains(&program) && runs).then(|| words.get(2).map(String::as_str))?
}

/// Last part of a path.
pub(crate) fn basename(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
}

/// Removes prefixes that do not change what a command does.
fn unwrap(words: &mut Vec<String>) {
    loop {
        let Some(first) = words.first() else { return };
        let assigns = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        });
        let drop = match first.as_str() {
            _ if assigns => 1,
            "time" | "!" | "nohup" | "exec" | "command" | "builtin" | "then" | "do" | "else"
            | "if" | "elif" | "while" | "until" | "{" | "(" | "}" | ")" | "env" | "nice"
            | "stdbuf" | "sudo" | "fi" | "done" | "esac" | "ionice" | "xvfb-run" => 1,
            "timeout" | "gtimeout" => {
                let flags = words[1..].iter().take_while(|w| w.starts_with('-')).count();
                2 + flags
            }
            "for" | "case" | "function" => words.len(),
            flag if flag.starts_with('-') && words.len() > 1 => 1,
            _ => return,
        };
        words.drain(..drop.min(words.len()));
    }
}

/// Simple commands of a line as they are written: with assignments, wrappers and `bash -c '…'`.
pub(crate) fn written_commands(line: &str) -> Vec<Simple> {
    split(line)
}

/// Splits a line at its operators and assigns here-documents to their commands.
#[expect(clippy::too_many_lines, reason = "one arm for each character that means something")]
fn split(line: &str) -> Vec<Simple> {
    let mut all = Vec::new();
    let mut now = Simple::default();
    let mut word: Option<String> = None;
    let mut ends: Vec<String> = Vec::new();
    let mut chars = line.char_indices().peekable();
    macro_rules! end_word {
        () => {
            if let Some(word) = word.take() {
                now.words.push(word);
            }
        };
    }
    macro_rules! end_command {
        ($end:expr, $piped:expr, $fallback:expr) => {
            end_word!();
            let end: usize = $end;
            let text = &line[now.span.start..end];
            now.span.start += text.len() - text.trim_start().len();
            now.span.end = now.span.start + text.trim().len();
            let start = chars.peek().map_or(line.len(), |(at, _)| *at);
            let next = Simple {
                piped: $piped,
                fallback: $fallback,
                span: start..start,
                ..Simple::default()
            };
            all.push(std::mem::replace(&mut now, next));
        };
    }
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' | '"' => {
                let text = word.get_or_insert_default();
                while let Some((_, inside)) = chars.next() {
                    match inside {
                        end if end == c => break,
                        '\\' if c == '"' => text.extend(chars.next().map(|(_, c)| c)),
                        other => text.push(other),
                    }
                }
            }
            '\\' => match chars.next() {
                Some((_, '\n')) | None => {}
                Some((_, c)) => word.get_or_insert_default().push(c),
            },
            '$' if chars.peek().is_some_and(|(_, c)| *c == '(') => {
                let text = word.get_or_insert_default();
                text.push('$');
                let mut depth = 0_usize;
                for (_, c) in chars.by_ref() {
                    text.push(c);
                    match c {
                        '(' => depth += 1,
                        ')' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
            '#' if word.is_none() => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
            '<' if line[at..].starts_with("<<") && !line[at..].starts_with("<<<") => {
                chars.next();
                chars.next_if(|(_, c)| *c == '-');
                while chars.next_if(|(_, c)| *c == ' ').is_some() {}
                let mut end = String::new();
                while let Some((_, c)) =
                    chars.next_if(|(_, c)| c.is_alphanumeric() || matches!(c, '_' | '\'' | '"'))
                {
                    if !matches!(c, '\'' | '"') {
                        end.push(c);
                    }
                }
                if !end.is_empty() {
                    ends.push(end);
                }
            }
            '>' | '<' => {
                // `2>` begins with a stream number that looks like a word.
                if word
                    .as_deref()
                    .is_some_and(|w| w.bytes().all(|b| b.is_ascii_digit()))
                {
                    word = None;
                }
                end_word!();
                while chars
                    .next_if(|(_, c)| matches!(c, '>' | '<' | '&' | '|'))
                    .is_some()
                {}
                while chars.next_if(|(_, c)| *c == ' ').is_some() {}
                let bare = |c: &char| !c.is_whitespace() && !";|&)".contains(*c);
                while chars.next_if(|(_, c)| bare(c)).is_some() {}
            }
            '|' => {
                let or = chars.next_if(|(_, c)| *c == '|').is_some();
                if !or {
                    chars.next_if(|(_, c)| *c == '&');
                }
                end_command!(at, !or, or);
            }
            '&' => {
                if chars.next_if(|(_, c)| *c == '>').is_some() {
                    end_word!();
                    while chars.next_if(|(_, c)| matches!(c, '>' | ' ')).is_some() {}
                    while chars.next_if(|(_, c)| !c.is_whitespace()).is_some() {}
                } else {
                    chars.next_if(|(_, c)| *c == '&');
                    end_command!(at, false, false);
                }
            }
            '\n' if !ends.is_empty() => {
                end_word!();
                now.body = here_document(&mut chars, &ends.remove(0));
                let end = chars.peek().map_or(line.len(), |(at, _)| *at);
                end_command!(end, false, false);
            }
            ';' | '\n' | '(' | ')' => {
                end_command!(at, false, false);
            }
            c if c.is_whitespace() => {
                end_word!();
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    end_command!(line.len(), false, false);
    all.retain(|simple| !simple.words.is_empty());
    all
}

fn here_document(chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>, end: &str) -> String {
    let mut body = String::new();
    let mut line = String::new();
    for (_, c) in chars.by_ref() {
        if c != '\n' {
            line.push(c);
            continue;
        }
        if line.trim() == end {
            return body;
        }
        body.push_str(&line);
        body.push('\n');
        line.clear();
    }
    if line.trim() != end {
        body.push_str(&line);
    }
    body
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in "[a-z \"'\\\\$()<>|&;\n#=-]{0,80}") {
            drop(commands(&line));
        }
    }
}
