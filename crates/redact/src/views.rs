//! Texts escaped inside a line of another text, as JSON and shells do.
//!
//! The inner text is unescaped and searched, and its findings are mapped back to the outer text.
//! Only lines with escaped line ends or quotes are treated so, down to `DEPTH` levels.

use std::ops::Range;

/// Maximum nesting of escaped texts.
pub(super) const DEPTH: usize = 3;

/// Unescaped text and the origin of its pieces.
pub(super) struct View {
    pub(super) text: String,
    /// Start of each piece in the inner and in the outer text.
    pieces: Vec<(usize, usize)>,
    end: usize,
}

impl View {
    /// Removes one level of escapes between two positions; `None` if there are no relevant ones.
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

    /// Maps a range of the inner text to the outer text.
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

/// A single quote within a shell's single-quoted text.
const QUOTE: &str = r"'\''";

/// Returns true if a line contains an escaped line end, quote or backslash.
fn has_escapes(line: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', line).any(|at| {
        matches!(line.get(at + 1), Some(b'n' | b'"' | b'\\'))
            || line.get(at.saturating_sub(1)..at + 3) == Some(QUOTE.as_bytes())
    })
}
