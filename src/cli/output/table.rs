//! Table that fits the terminal: a column drops the middle of its cells, or the end of prose.

use std::cmp::Reverse;

use crate::cli::output::Style;
use crate::cli::output::text::{end, middle};

/// Alignment and shortening of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    /// Names, ids and paths: left-aligned, shortened in the middle.
    Left,
    /// Prose: left-aligned, shortened at the end.
    Prose,
    /// Numbers: right-aligned.
    Right,
}

/// Table with a heading.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

/// Minimum width of a column that shrinks.
const LEAST: usize = 8;
/// Spaces between two columns.
const GAP: usize = 2;

impl Table {
    /// Returns a table with the headings in `columns`, separated by `|`: `>` before a heading marks
    /// numbers, `~` marks prose.
    pub(crate) fn new(columns: &str) -> Self {
        let column = |heading: &str| {
            let numbers = heading
                .strip_prefix('>')
                .map(|heading| (heading, Align::Right));
            let prose = heading
                .strip_prefix('~')
                .map(|heading| (heading, Align::Prose));
            let (name, align) = numbers.or(prose).unwrap_or((heading, Align::Left));
            (name.to_owned(), align)
        };
        Self {
            columns: columns.split('|').map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row of plain cells.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.add(cells.into());
    }

    /// Adds a row of as many plain cells as there are columns.
    pub(crate) fn add(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Renders the table. It is at most `width` columns wide if its fixed columns allow that.
    pub(crate) fn render(&self, width: usize, colour: bool) -> String {
        let widths = self.widths(width);
        let headings = self
            .columns
            .iter()
            .map(|(name, _)| (Style::Dim, name.as_str()));
        let mut lines = vec![self.line(headings, &widths, colour)];
        for row in &self.rows {
            let cells = row.iter().map(|text| (Style::Plain, text.as_str()));
            lines.push(self.line(cells, &widths, colour));
        }
        lines.join("\n")
    }

    /// Returns a row as one line, without spaces at its end.
    fn line<'t>(
        &self,
        cells: impl Iterator<Item = (Style, &'t str)>,
        widths: &[usize],
        colour: bool,
    ) -> String {
        let (mut line, mut gap) = (String::new(), 0);
        let cells = cells.zip(&self.columns).zip(widths);
        for (((style, text), (_, align)), width) in cells.filter(|(_, width)| **width > 0) {
            let text = match align {
                Align::Prose => end(text, *width),
                Align::Left | Align::Right => middle(text, *width),
            };
            let rest = width.saturating_sub(console::measure_text_width(&text));
            let (before, after) = match align {
                Align::Right => (rest, 0),
                Align::Left | Align::Prose => (0, rest),
            };
            gap += before;
            if !text.is_empty() {
                line += &" ".repeat(gap);
                line += &if colour { style.paint(&text) } else { text };
                gap = 0;
            }
            gap += after + GAP;
        }
        line
    }

    /// Returns the width of each column; 0 for one without a text, which is left out.
    fn widths(&self, width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let cells = cells.map(|text| console::measure_text_width(text));
                match cells.max() {
                    Some(0) => 0,
                    widest => widest.unwrap_or(0).max(self.columns[column].0.len()),
                }
            })
            .collect();
        let shown = widths.iter().filter(|width| **width > 0).count();
        let gaps = GAP * shown.saturating_sub(1);
        // Prose is shortened first, then the widest names; numbers stay.
        let mut order: Vec<usize> = (0..widths.len()).collect();
        order.retain(|column| self.columns[*column].1 != Align::Right);
        order.sort_by_key(|column| {
            let is_prose = self.columns[*column].1 == Align::Prose;
            (!is_prose, Reverse(widths[*column]))
        });
        for column in order {
            let excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
            let spare = widths[column].saturating_sub(LEAST);
            widths[column] -= excess.min(spare);
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_and_aligns() {
        let mut table = Table::new("ID|>Cost|~Text");
        table.row([
            "EXEC-1".into(),
            "$0.5".into(),
            "a rather long text that has to give way".into(),
        ]);
        table.row(["E".into(), "$10.25".into(), "short".into()]);
        let text = table.render(34, false);
        assert_eq!(
            text,
            "ID        Cost  Text\nEXEC-1    $0.5  a rather long tex…\nE       $10.25  short"
        );
        assert!(
            text.lines()
                .all(|line| console::measure_text_width(line) <= 34)
        );
        // A column without a text gives its width to the others.
        let mut table = Table::new("ID|Skill|~Text");
        table.row(["R-1".into(), String::new(), "use tabs here".into()]);
        assert_eq!(table.render(18, false), "ID   Text\nR-1  use tabs here");
    }
}
