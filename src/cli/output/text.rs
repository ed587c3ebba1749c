//! Sanitizing and shortening of text for a terminal, and tables that fit it: a column drops the middle of its cells, or
//! the end of prose.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use console::measure_text_width;

use crate::cli::output::Style;

/// Removes everything that a terminal would interpret or a reader would not see: escape sequences,
/// control characters, bidirectional marks, hidden characters. Keeps line breaks and tabs.
pub(crate) fn clean(text: &str) -> String {
    let stripped = console::strip_ansi_codes(text);
    memctl_redact::visible(&stripped)
        .chars()
        .filter(|c| {
            let hidden = matches!(u32::from(*c), 0x061C | 0x200B..=0x200C | 0x200E..=0x200F | 0x2028..=0x2029);
            (!c.is_control() || matches!(c, '\n' | '\t')) && !hidden
        })
        .collect()
}

/// Escapes what a terminal would interpret or a reader would not see, in a JSON document: U+007F to
/// U+009F, bidirectional marks, hidden characters. The document means the same as before.
pub(crate) fn escape_json(json: String) -> String {
    let is_open = |c: char| c != '\u{7f}' && (c.is_ascii() || !is_unsafe(c));
    if json.chars().all(is_open) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_open(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _written = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

fn is_unsafe(c: char) -> bool {
    memctl_redact::is_hidden(c) || matches!(u32::from(c), 0x2028 | 0x2029)
}

/// Returns text that is used as it is, such as a prompt. Sanitizes it only if it contains control
/// characters.
pub(crate) fn product(text: &str) -> Cow<'_, str> {
    let is_calm = |c: char| !c.is_control() || matches!(c, '\n' | '\t' | '\r');
    if text.chars().all(is_calm) && !text.replace("\r\n", "").contains('\r') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(clean(text))
    }
}

/// Returns the text on one line. It is redacted before it is joined, which would hide secrets from the redactor.
pub(crate) fn one_line(text: &str) -> String {
    joined(text, " ")
}

/// Returns the lines of a text, redacted, sanitized and joined, on one line.
fn joined(text: &str, between: &str) -> String {
    let text = clean(&memctl_redact::redact(text).text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let joined = lines.collect::<Vec<_>>().join(between);
    joined.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the text on one line of at most `width` columns. Shortens it in the middle, because ids
/// and paths differ at their ends.
pub(crate) fn middle(text: &str, width: usize) -> String {
    let flat = one_line(text);
    if measure_text_width(&flat) <= width {
        return flat;
    }
    let room = width.saturating_sub(1);
    let head = console::truncate_str(&flat, room.div_ceil(2), "").into_owned();
    let mut tail: Vec<char> = Vec::new();
    let mut used = measure_text_width(&head);
    for c in flat.chars().rev() {
        used += measure_text_width(c.encode_utf8(&mut [0; 4]));
        if used > room {
            break;
        }
        tail.push(c);
    }
    let tail: String = tail.into_iter().rev().collect();
    format!("{head}…{tail}")
}

/// Returns the text on one line of at most `width` columns, shortened at the end.
pub(crate) fn end(text: &str, width: usize) -> String {
    console::truncate_str(&one_line(text), width, "…").into_owned()
}

/// Wraps text between words to at most `width` columns. A paragraph that is a command stays on one row, since it is
/// copied.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for paragraph in text.lines() {
        let text = paragraph.trim_start_matches(' ');
        let indent = &paragraph[..paragraph.len() - text.len()];
        let mut row = indent.to_owned();
        for word in text.split(' ') {
            let is_begun = row.len() > indent.len();
            let length = measure_text_width(&row) + 1 + measure_text_width(word);
            if is_begun && length > width && !text.starts_with("memctl ") {
                rows.push(std::mem::replace(&mut row, indent.to_owned()));
            } else if is_begun {
                row.push(' ');
            }
            row.push_str(word);
        }
        rows.push(row);
    }
    if rows.is_empty() {
        rows.push(String::new());
    }
    rows
}

/// Returns the age of a record, or the text itself if it is no timestamp.
pub(crate) fn when(created: &str, now: DateTime<Utc>) -> String {
    let Ok(at) = DateTime::parse_from_rfc3339(created) else {
        return middle(created, 19);
    };
    let seconds = (now - at.to_utc()).num_seconds();
    match seconds {
        ..0 => "now".to_owned(),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..2_592_000 => format!("{}d", seconds / 86_400),
        _ => at.format("%Y-%m-%d").to_string(),
    }
}

/// Returns the day of a timestamp, or the text itself if it cannot be parsed.
pub(crate) fn day(time: &str) -> String {
    let parsed = DateTime::parse_from_rfc3339(time);
    parsed.map_or_else(|_| time.to_owned(), |at| at.format("%Y-%m-%d").to_string())
}

/// Returns a count with its noun: `1 rule`, `3 rules`.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// Returns a number with at most one decimal, and none from 100 on.
pub(crate) fn number(value: f64) -> String {
    let digits = usize::from(value.abs() < 100.0);
    let text = format!("{value:.digits$}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// Returns an amount in US dollars.
pub(crate) fn usd(value: f64) -> String {
    if value == 0.0 || value >= 0.1 {
        format!("${value:.2}")
    } else {
        format!("${value:.4}")
    }
}

/// Returns a duration in milliseconds.
pub(crate) fn ms(value: f64) -> String {
    if value < 1_000.0 {
        format!("{} ms", number(value))
    } else {
        format!("{} s", number(value / 1_000.0))
    }
}

/// Returns a size in bytes.
pub(crate) fn size(bytes: f64) -> String {
    match bytes {
        ..1_000.0 => format!("{bytes:.0} bytes"),
        ..1_000_000.0 => format!("{} kB", number(bytes / 1_000.0)),
        _ => format!("{} MB", number(bytes / 1_000_000.0)),
    }
}

/// Returns a change in at most `width` columns.
pub(crate) fn change(failing: &str, working: &str, width: usize) -> String {
    let [failing, working] = [failing, working].map(|code| joined(code, "; "));
    let used = measure_text_width(&working) + " → ".chars().count();
    // The working call matters more, and gets most of the width if both are long.
    let room = width.saturating_sub(used).max(width / 5 * 2);
    end(&format!("{} → {working}", end(&failing, room)), width)
}

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
            let (name, align) = match heading.split_at_checked(1) {
                Some((">", name)) => (name, Align::Right),
                Some(("~", name)) => (name, Align::Prose),
                _ => (heading, Align::Left),
            };
            (name.to_owned(), align)
        };
        Self {
            columns: columns.split('|').map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row of as many plain cells as there are columns.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
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
            let rest = width.saturating_sub(measure_text_width(&text));
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
                let cells = cells.map(|text| measure_text_width(text));
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
    fn a_terminal_obeys_nothing_that_was_stored() {
        assert_eq!(
            clean("a\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}b\u{202e}c\r\n\td"),
            "aredbc\n\td"
        );
        assert!(!clean("\u{1b}\u{9b}2J\u{8}x").contains(['\u{1b}', '\u{9b}', '\u{8}']));
        assert_eq!(
            clean("a\u{2060}b\u{e0069}c\u{61c}d\u{ad}e\u{2028}f"),
            "abcdef"
        );
        assert_eq!(clean("👩\u{200d}👧"), "👩\u{200d}👧");
    }

    #[test]
    fn product_stays_as_it_is_unless_a_terminal_would_obey_it() {
        assert_eq!(product("a\r\n\tb"), "a\r\n\tb");
        assert_eq!(product("a\u{1b}[2Jb"), "ab");
        assert_eq!(product("over\rwritten"), "overwritten");
    }

    #[test]
    fn long_text_loses_its_middle() {
        let check = |text: &str, width, expected: &str| assert_eq!(middle(text, width), expected);
        check("EXEC-20260220124341", 19, "EXEC-20260220124341");
        check("EXEC-20260220124341", 11, "EXEC-…24341");
        check("日本語日本語", 7, "日…本語");
        check("a\n  b", 10, "a b");
        check("abc", 1, "…");
        check("abc", 0, "…");
    }

    #[test]
    fn a_command_is_not_cut() {
        let check = |text: &str, expected: &str| {
            assert_eq!(wrap(text, 40).join("\n"), expected, "{text}");
        };
        let long = "memctl correct \"a rule of many words\" --command REGEX";
        check(long, long);
        check(
            &format!("to change it:\n{long}"),
            &format!("to change it:\n{long}"),
        );
        check(
            "\n  memctl stats          see what hints were worth",
            "\n  memctl stats          see what hints were worth",
        );
        check(
            "  the words of a long sentence go on below it",
            "  the words of a long sentence go on\n  below it",
        );
        check("", "");
    }

    #[test]
    fn numbers_are_as_long_as_they_are_sure() {
        assert_eq!([3.0, 3.12, 1568.4].map(number), ["3", "3.1", "1568"]);
        assert_eq!(
            [0.0, 0.01234, 12.3].map(usd),
            ["$0.00", "$0.0123", "$12.30"]
        );
        assert_eq!([ms(12.3), ms(1_500.0)], ["12.3 ms", "1.5 s"]);
        let sizes = [999.0, 1_500.0, 2e6].map(size);
        assert_eq!(sizes, ["999 bytes", "1.5 kB", "2 MB"]);
    }

    #[test]
    fn ages_are_short() {
        let now = DateTime::parse_from_rfc3339("2026-02-20T12:00:00Z")
            .unwrap()
            .to_utc();
        let check = |at: &str, expected: &str| assert_eq!(when(at, now), expected, "{at}");
        check("2026-02-20T11:59:30Z", "30s");
        check("2026-02-20T11:00:00+00:00", "1h");
        check("2026-02-18T11:59:00.123456+00:00", "2d");
        check("2025-02-18T12:00:00Z", "2025-02-18");
        check("2026-02-20T12:00:05Z", "now");
        check("yesterday", "yesterday");
    }

    #[test]
    fn a_fix_is_shown_by_both_calls() {
        let check = |failing: &str, working: &str, width: usize, expected: &str| {
            let line = change(failing, working, width);
            assert_eq!(line, expected);
            assert!(measure_text_width(&line) <= width, "{line}");
        };
        check("npm i", "pnpm i", 40, "npm i → pnpm i");
        check(
            "./go.sh",
            "chmod +x go.sh\n./go.sh",
            60,
            "./go.sh → chmod +x go.sh; ./go.sh",
        );
        let long = "x ".repeat(200);
        check(&long, "y z", 20, &format!("{}x… → y z", "x ".repeat(6)));
        check("y z", &long, 20, &format!("y z → {}x…", "x ".repeat(6)));
    }

    #[test]
    fn a_secret_over_two_lines_stays_out() {
        let secret = format!("gh{}{}", "p_", "a1B2c3D4e5".repeat(4));
        let line = change("a", &format!("export T={secret}\na"), 200);
        assert!(!line.contains(&secret[6..20]), "{line}");
    }

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
        assert!(text.lines().all(|line| measure_text_width(line) <= 34));
        // A column without a text gives its width to the others.
        let mut table = Table::new("ID|Skill|~Text");
        table.row(["R-1".into(), String::new(), "use tabs here".into()]);
        assert_eq!(table.render(18, false), "ID   Text\nR-1  use tabs here");
    }
}
