//! Page of text, built before anything is written.

use super::style::Style;
use super::table::Table;
use super::text::clean;

#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    width: usize,
    colour: bool,
}

impl Page {
    /// Returns an empty page of `width` columns.
    pub(crate) fn new(width: usize, colour: bool) -> Self {
        Self {
            text: String::new(),
            width,
            colour,
        }
    }

    /// Adds a line. Sanitizes it here, so that no command can forget to.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(&clean(line.as_ref()));
        self.text.push('\n');
    }

    /// Adds text unchanged, for output that is used as it is: a prompt, a JSON document.
    pub(crate) fn verbatim(&mut self, text: &str) {
        self.text.push_str(text);
        if !text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Adds a line of styled parts.
    pub(crate) fn styled(&mut self, parts: &[(Style, &str)]) {
        for (style, text) in parts {
            let piece = self.paint(*style, &clean(text));
            self.text.push_str(&piece);
        }
        self.text.push('\n');
    }

    /// Adds `label: value`, with the value wrapped and indented.
    pub(crate) fn field(&mut self, label: &str, value: &str) {
        const INDENT: usize = 14;
        let room = self.width.saturating_sub(INDENT).max(20);
        let lines = wrap(&clean(value), room);
        for (i, line) in lines.iter().enumerate() {
            let label = if i == 0 && !label.is_empty() {
                let words = clean(label);
                format!(
                    "{}:",
                    words.split_whitespace().collect::<Vec<_>>().join(" ")
                )
            } else {
                String::new()
            };
            let label = self.paint(Style::Dim, &format!("{label:<INDENT$}"));
            self.text.extend([&label, line.as_str(), "\n"]);
        }
    }

    pub(crate) fn table(&mut self, table: &Table) {
        let text = table.render(self.width, self.colour);
        self.text.push_str(&text);
        self.text.push('\n');
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour {
            style.paint(text)
        } else {
            text.to_owned()
        }
    }

    /// Returns the width in columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Returns the finished text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// Wraps text between words to at most `width` columns.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let needed = console::measure_text_width(&line) + 1 + console::measure_text_width(word);
            if !line.is_empty() && needed > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_wrapped_under_themselves() {
        let mut page = Page::new(40, false);
        page.field("rule", "When screening, ALWAYS check the design of systems");
        assert_eq!(
            page.into_text(),
            "rule:         When screening, ALWAYS\n              check the design of\n              systems\n"
        );
    }

    #[test]
    fn colours_vanish_where_they_are_not_wanted() {
        let text = |colour| {
            let mut page = Page::new(80, colour);
            page.styled(&[(Style::Bad, "bad\u{1b}[2J"), (Style::Plain, " plain")]);
            page.into_text()
        };
        assert_eq!(text(false), "bad plain\n");
        assert_eq!(text(true), "\u{1b}[31mbad\u{1b}[0m plain\n");
    }
}
