//! A call as a list of its commands, of which some can be left out.
//!
//! A line of `&&` and `;` falls into parts; pipelines stay whole. Lines with control structures,
//! groups, fallbacks or here-documents are one part, since a piece of them means something else.

use std::ops::Range;

use crate::learn::shell::{Simple, written_commands};
use crate::learn::shell_command::Run;

/// Words that begin a control structure.
const CONTROL: &[&str] = &[
    "for", "while", "until", "if", "case", "function", "{", "}", "do", "then", "fi", "done",
];

/// A shell line and its parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script<'a> {
    line: &'a str,
    /// Parts in order.
    pub(crate) parts: Vec<Part>,
}

/// A pipeline.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    span: Range<usize>,
    /// Commands, as they are written.
    pub(crate) commands: Vec<Simple>,
}

impl<'a> Script<'a> {
    /// Splits a shell line.
    pub(crate) fn of(line: &'a str) -> Self {
        let commands = written_commands(line);
        let is_whole = commands.iter().any(|simple| {
            let first = simple.words.first().map_or("", String::as_str);
            simple.fallback || !simple.body.is_empty() || CONTROL.contains(&first)
        }) || line.contains('(') && commands.len() > 1 && groups(line, &commands);
        let mut parts: Vec<Part> = Vec::new();
        for simple in commands {
            match parts.last_mut() {
                Some(part) if simple.piped || is_whole => {
                    part.span.end = simple.span.end;
                    part.commands.push(simple);
                }
                _ => parts.push(Part {
                    span: simple.span.clone(),
                    commands: vec![simple],
                }),
            }
        }
        if let (true, [part]) = (is_whole, parts.as_mut_slice()) {
            part.span = 0..line.len();
        }
        Self { line, parts }
    }

    /// Text of a part.
    pub(crate) fn text(&self, part: &Part) -> &'a str {
        self.line[part.span.clone()].trim()
    }

    /// Text of some parts, joined by `&&`, without filters of the output at their end.
    pub(crate) fn render<'p>(&self, parts: impl IntoIterator<Item = &'p Part>) -> String {
        let texts: Vec<&str> = parts
            .into_iter()
            .map(|part| {
                let filters = part
                    .commands
                    .iter()
                    .rev()
                    .take_while(|c| c.piped && plain(c).looks);
                let kept = part.commands.len() - filters.count().min(part.commands.len());
                match part.commands[..kept].last() {
                    Some(last) if kept < part.commands.len() => {
                        self.line[part.span.start..last.span.end].trim()
                    }
                    _ => self.text(part),
                }
            })
            .collect();
        texts.join(" && ")
    }

    /// All words, with assignments and wrappers.
    pub(crate) fn words(&self) -> Vec<String> {
        let commands = self.parts.iter().flat_map(|part| &part.commands);
        commands.flat_map(|simple| simple.words.clone()).collect()
    }
}

/// Returns `true` if a bracket stands between two commands, outside of words.
fn groups(line: &str, commands: &[Simple]) -> bool {
    let mut from = 0;
    commands.iter().any(|simple| {
        let between = &line[from..simple.span.start.max(from)];
        from = simple.span.end;
        between.contains(['(', ')'])
    })
}

impl Part {
    /// Last relevant program of the pipeline, with its subcommand.
    pub(crate) fn run(&self) -> Option<Run> {
        let mut runs = self.commands.iter().map(plain);
        let first = runs.next()?;
        let more: Vec<Run> = runs.filter(|run| !run.looks).collect();
        Some(more.into_iter().next_back().unwrap_or(first))
    }

    /// Words of all its commands.
    pub(crate) fn words(&self) -> Vec<&str> {
        let words = self.commands.iter().flat_map(|simple| &simple.words);
        words.map(String::as_str).collect()
    }
}

/// Run of a command without its assignments and wrappers.
pub(crate) fn plain(simple: &Simple) -> Run {
    let mut simple = simple.clone();
    simple.unwrap();
    Run::of(&simple)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_falls_into_pipelines() {
        let check = |line: &str, expected: &[&str]| {
            let script = Script::of(line);
            let texts: Vec<&str> = script.parts.iter().map(|part| script.text(part)).collect();
            assert_eq!(texts, expected, "{line}");
        };
        check("a && b | c; d > f", &["a", "b | c", "d > f"]);
        check("A=1 x 'y z'", &["A=1 x 'y z'"]);
        check("make || true", &["make || true"]);
        check("for i in 1; do x; done", &["for i in 1; do x; done"]);
        check("(a; b) && c", &["(a; b) && c"]);
        check("x $(y) && z", &["x $(y)", "z"]);
        check("", &[]);
    }
}
