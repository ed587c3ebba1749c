//! Texts inside of texts: a line in which another text stands escaped, as JSON and shells do it.
//!
//! The inner text is written out once more, findings are looked for in it, and their places are
//! mapped back. Only lines that have escaped line ends or quotes are, and only so deep.

use std::ops::Range;

/// How deep a text may lie in others.
pub(super) const DEPTH: usize = 3;

/// A text that stood escaped, and where its pieces stood.
pub(super) struct View {
    pub(super) text: String,
    /// Where a piece begins in the inner text, and where it did in the outer one.
    pieces: Vec<(usize, usize)>,
    end: usize,
}

impl View {
    /// The text between two positions without one level of escapes; `None` where it has none that
    /// matter.
    pub(super) fn of(outer: &str, at: Range<usize>) -> Option<Self> {
        let line = outer.get(at.clone())?;
        if !has_escapes(line.as_bytes()) {
            return None;
        }
        let mut view = Self {
            text: String::with_capacity(line.len()),
            pieces: vec![(0, at.start)],
            end: at.end,
        };
        let mut from = 0;
        while let Some(found) = memchr::memchr(b'\\', &line.as_bytes()[from..]) {
            let slash = from + found;
            if line.get(slash.saturating_sub(1)..slash + 3) == Some(QUOTE) && slash > from {
                view.text.push_str(&line[from..slash - 1]);
                view.pieces.push((view.text.len(), at.start + slash - 1));
                view.text.push('\'');
                from = slash + 3;
                view.pieces.push((view.text.len(), at.start + from));
                continue;
            }
            let Some(plain) = line[slash + 1..].chars().next().and_then(unescaped) else {
                view.text.push_str(&line[from..=slash]);
                from = slash + 1;
                continue;
            };
            view.text.push_str(&line[from..slash]);
            view.pieces.push((view.text.len(), at.start + slash));
            view.text.push(plain);
            from = slash + 2;
            view.pieces.push((view.text.len(), at.start + from));
        }
        view.text.push_str(&line[from..]);
        Some(view)
    }

    /// Where a piece of the inner text stands in the outer one.
    pub(super) fn outer(&self, at: &Range<usize>) -> Range<usize> {
        self.place(at.start)..self.place(at.end).min(self.end)
    }

    fn place(&self, at: usize) -> usize {
        let index = self.pieces.partition_point(|(inner, _)| *inner <= at);
        self.pieces
            .get(index.saturating_sub(1))
            .map_or(0, |(inner, outer)| outer + (at - inner))
    }
}

const fn unescaped(c: char) -> Option<char> {
    match c {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '"' | '\\' | '/' => Some(c),
        _ => None,
    }
}

/// How a shell's single-quoted text holds a single quote.
const QUOTE: &str = r"'\''";

/// Whether a line end or a quote stands escaped in it.
fn has_escapes(line: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', line).any(|at| {
        matches!(line.get(at + 1), Some(b'n' | b'"' | b'\\'))
            || line.get(at.saturating_sub(1)..at + 3) == Some(QUOTE.as_bytes())
    })
}
