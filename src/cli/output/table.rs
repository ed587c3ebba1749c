//! Tables that fit the terminal. An elastic column drops the middle of its cells, or the end of
//! prose.

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
    columns: Vec<(&'static str, Align)>,
    /// Columns that shrink on a narrow terminal, in this order.
    elastic: &'static [usize],
    rows: Vec<Vec<(Style, String)>>,
}

/// Minimum width of an elastic column.
const LEAST: usize = 8;
/// Spaces between two columns.
const GAP: usize = 2;

impl Table {
    /// Returns a table with the headings in `columns`, separated by `|`: `>` before a heading marks
    /// numbers, `~` marks prose.
    pub(crate) fn new(columns: &'static str, elastic: &'static [usize]) -> Self {
        let column = |heading: &'static str| {
            let numbers = heading
                .strip_prefix('>')
                .map(|heading| (heading, Align::Right));
            let prose = heading
                .strip_prefix('~')
                .map(|heading| (heading, Align::Prose));
            numbers.or(prose).unwrap_or((heading, Align::Left))
        };
        Self {
            columns: columns.split('|').map(column).collect(),
            elastic,
            rows: Vec::new(),
        }
    }

    /// Adds a row of plain cells.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows
            .push(cells.into_iter().map(|cell| (Style::Plain, cell)).collect());
    }

    /// Adds a row of cells with styles.
    pub(crate) fn styled_row(&mut self, cells: Vec<(Style, String)>) {
        self.rows.push(cells);
    }

    /// Renders the table. It is at most `width` columns wide if its fixed columns allow that.
    pub(crate) fn render(&self, width: usize, colour: bool) -> String {
        let widths = self.widths(width);
        let headings = self.columns.iter().map(|(name, _)| (Style::Dim, *name));
        let mut lines = vec![self.line(headings, &widths, colour)];
        for row in &self.rows {
            let cells = row.iter().map(|(style, text)| (*style, text.as_str()));
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
        let (mut line, mut owed) = (String::new(), 0);
        for (((style, text), (_, align)), width) in cells.zip(&self.columns).zip(widths) {
            let text = match align {
                Align::Prose => end(text, *width),
                Align::Left | Align::Right => middle(text, *width),
            };
            let rest = width.saturating_sub(console::measure_text_width(&text));
            let (before, after) = match align {
                Align::Right => (rest, 0),
                Align::Left | Align::Prose => (0, rest),
            };
            owed += before;
            if !text.is_empty() {
                line += &" ".repeat(owed);
                line += &if colour { style.paint(&text) } else { text };
                owed = 0;
            }
            owed += after + GAP;
        }
        line
    }

    /// Returns the width of each column.
    fn widths(&self, width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let cells = cells.map(|(_, text)| console::measure_text_width(text));
                cells.max().unwrap_or(0).max(self.columns[column].0.len())
            })
            .collect();
        let gaps = GAP * widths.len().saturating_sub(1);
        for column in self.elastic {
            let excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
            let spare = widths[*column].saturating_sub(LEAST);
            widths[*column] -= excess.min(spare);
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_and_aligns() {
        let mut table = Table::new("ID|>Cost|~Text", &[2]);
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
    }
}
