//! Styled text in lines of a width.

use crate::cli::output::{Style, clean};

/// Piece of text with its meaning.
pub(super) type Piece = (Style, String);

/// Line of pieces.
pub(super) type Line = Vec<Piece>;

/// Width of a tab.
const TAB: &str = "    ";

/// Returns stored text for the screen: redacted first, since lines that are joined hide a secret,
/// then without control characters.
pub(super) fn shown(text: &str) -> String {
    clean(&memctl_redact::redact(text).text).replace('\t', TAB)
}

/// Returns one style's words of a text, each with the space behind it.
pub(super) fn words(style: Style, text: &str) -> Vec<Piece> {
    let words = text.split_inclusive(' ');
    words.map(|word| (style, word.to_owned())).collect()
}

/// Wraps words to `width` columns, behind `first` on the first line and as many spaces on the
/// others. A word that is wider than a line is cut.
pub(super) fn wrap(first: Piece, words: &[Piece], width: usize) -> Vec<Line> {
    let indent = console::measure_text_width(&first.1);
    let room = width.saturating_sub(indent).max(1);
    let mut lines = vec![vec![first]];
    let mut used = 0;
    for (style, word) in words {
        let mut rest = word.as_str();
        loop {
            let needed = console::measure_text_width(rest.trim_end());
            if used + needed <= room {
                break;
            }
            if used > 0 {
                lines.push(vec![(Style::Plain, " ".repeat(indent))]);
                used = 0;
                continue;
            }
            let cut = console::truncate_str(rest, room, "").len();
            // A character may be wider than the line.
            let cut = cut.max(rest.chars().next().map_or(0, char::len_utf8));
            push(&mut lines, *style, &rest[..cut]);
            rest = &rest[cut..];
            lines.push(vec![(Style::Plain, " ".repeat(indent))]);
            if rest.is_empty() {
                break;
            }
        }
        push(&mut lines, *style, rest);
        used += console::measure_text_width(rest);
    }
    lines
}

fn push(lines: &mut [Line], style: Style, text: &str) {
    let Some(line) = lines.last_mut().filter(|_| !text.is_empty()) else {
        return;
    };
    match line.last_mut() {
        Some((last, known)) if *last == style => known.push_str(text),
        _ => line.push((style, text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_behind_their_mark() {
        let check = |text: &str, width: usize, expected: &[&str]| {
            let lines = wrap(
                (Style::Bad, "- ".to_owned()),
                &words(Style::Plain, text),
                width,
            );
            let lines: Vec<String> = lines
                .iter()
                .map(|line| line.iter().map(|(_, text)| text.as_str()).collect())
                .map(|line: String| line.trim_end().to_owned())
                .collect();
            assert_eq!(lines, expected, "{text}");
        };
        check("npm i", 20, &["- npm i"]);
        check("one two three", 9, &["- one two", "  three"]);
        check("abcdefgh ij", 6, &["- abcd", "  efgh", "  ij"]);
        check("", 9, &["-"]);
        check("日本語", 4, &["- 日", "  本", "  語"]);
        check("日", 1, &["- 日", ""]);
    }
}
