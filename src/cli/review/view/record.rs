//! Record of an entry as lines: its texts, why it waits, where it comes from, and its evidence.

use chrono::{DateTime, Utc};
use similar::{Algorithm, capture_diff_slices};

use crate::cli::output::Style;
use crate::cli::output::text::{clean, plural, when};
use crate::review::queue::{Part, Waiting};

/// Maximum number of lines of one text.
const LONGEST: usize = 200;
/// Width of the labels above the texts.
const LABEL: usize = 9;

/// Pairs of texts that are shown by their difference: the first is replaced by the second.
const REPLACED: [(&str, &str); 4] = [
    ("failed", "worked"),
    ("older", "newer"),
    ("rule", "in the file"),
    ("here", "merged branch"),
];

/// Returns the record of an entry in lines of `width` columns.
pub(crate) fn record(waiting: &Waiting, now: DateTime<Utc>, width: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    // The text that is decided about comes first: a small screen shows few lines.
    let of_decision = |part: &&Part| ["rule", "lesson", "memory"].contains(&part.name);
    let first = waiting
        .parts
        .iter()
        .find(|part| of_decision(part) && !has_pair(waiting, part));
    if let Some(part) = first {
        text(part, &mut lines, width);
    }
    let mut field = |label: &str, style: Style, text: &str| {
        if !text.is_empty() {
            let label = (Style::Dim, format!("{label:<LABEL$}"));
            lines.extend(wrap(label, &words(style, &shown(text)), width));
        }
    };
    field("why", Style::Warn, &waiting.reason);
    if let Some(reason) = &waiting.suspicious {
        field("careful", Style::Bad, reason);
    }
    field("advice", Style::Warn, &advice(waiting));
    field("from", Style::Plain, &origin(waiting, now));
    field("seen", Style::Plain, &evidence(waiting));
    if let Some(near) = &waiting.near {
        let near = format!("{} ({:.2}): {}", near.id, near.score, near.rule);
        field("similar", Style::Plain, &near);
    }
    let rest = waiting.parts.iter().filter(|part| Some(*part) != first);
    let rest: Vec<Part> = rest.cloned().collect();
    let mut parts = rest.as_slice();
    while let Some((part, rest)) = parts.split_first() {
        let other = REPLACED
            .iter()
            .find(|(old, _)| *old == part.name)
            .and_then(|(_, new)| Some((rest.iter().position(|part| part.name == *new)?, rest)));
        if let Some((at, rest)) = other {
            // Parts between the two texts of a pair follow them.
            replaced(part, &rest[at], &mut lines, width);
            for part in &rest[..at] {
                plain(part, &mut lines, width);
            }
            parts = &rest[at + 1..];
        } else {
            plain(part, &mut lines, width);
            parts = rest;
        }
    }
    lines
}

fn heading(name: &str, lines: &mut Vec<Line>) {
    lines.push(Vec::new());
    lines.push(vec![(Style::Dim, name.to_owned())]);
}

/// Returns `true` if a part is shown by its difference to another one.
fn has_pair(waiting: &Waiting, part: &Part) -> bool {
    let pair = REPLACED.iter().find(|(old, _)| *old == part.name);
    pair.is_some_and(|(_, new)| waiting.parts.iter().any(|part| part.name == *new))
}

fn plain(part: &Part, lines: &mut Vec<Line>, width: usize) {
    heading(part.name, lines);
    text(part, lines, width);
}

fn text(part: &Part, lines: &mut Vec<Line>, width: usize) {
    let (mark, style) = match part.name {
        "quote" => ("“ ", Style::Strong),
        "rule" | "lesson" => ("  ", Style::Strong),
        "error" => ("  ", Style::Bad),
        _ => ("  ", Style::Plain),
    };
    let mut mark = mark;
    for line in shown(&part.text).lines().take(LONGEST) {
        lines.extend(wrap((style, mark.to_owned()), &words(style, line), width));
        mark = "  ";
    }
}

/// Adds two texts with the words that differ in colour.
fn replaced(old: &Part, new: &Part, lines: &mut Vec<Line>, width: usize) {
    // Redacted before it is split, so that no secret is cut in two.
    let texts = [shown(&old.text), shown(&new.text)];
    let of_lines = texts.each_ref().map(|text| lines_of_words(text));
    let (a, b) = changed(&of_lines[0].concat(), &of_lines[1].concat());
    let sides = [
        (old.name, "- ", Style::Bad, a),
        (new.name, "+ ", Style::Good, b),
    ];
    for ((name, mark, style, changed), text) in sides.into_iter().zip(&of_lines) {
        heading(name, lines);
        let mut changed = changed.into_iter();
        for line in text.iter().take(LONGEST) {
            let pieces: Vec<Piece> = line
                .iter()
                .map(|word| {
                    let is_changed = changed.next().unwrap_or_default();
                    let style = if is_changed { style } else { Style::Plain };
                    (style, (*word).to_owned())
                })
                .collect();
            lines.extend(wrap((style, mark.to_owned()), &pieces, width));
        }
    }
}

fn advice(waiting: &Waiting) -> String {
    let Some(advice) = &waiting.advice else {
        return String::new();
    };
    let into = match advice.into.as_str() {
        "" => String::new(),
        into => format!(" into {into}"),
    };
    format!(
        "{}{into}: {} ({})",
        advice.verdict, advice.reason, advice.by
    )
}

fn origin(waiting: &Waiting, now: DateTime<Utc>) -> String {
    let of = &waiting.origin;
    let mut words = Vec::new();
    let named = |name: &str, text: &str| match text {
        "" => None,
        text => Some(format!("{name} {text}")),
    };
    words.extend(named("skill", waiting.skill.as_deref().unwrap_or_default()));
    words.extend(named("project", &of.project));
    words.extend(named("session", &of.session));
    words.extend(named("tool", &of.tool));
    words.extend(named("source", &of.source));
    if !of.at.is_empty() {
        let age = when(&of.at, now);
        let is_date = age.contains('-');
        words.push(if is_date || age == "now" {
            age
        } else {
            age + " ago"
        });
    }
    words.join(", ")
}

fn evidence(waiting: &Waiting) -> String {
    let of = &waiting.evidence;
    let mut words = Vec::new();
    if of.times > 0 {
        words.push(plural(of.times, "time"));
    }
    if of.sessions > 0 {
        words.push(format!("in {}", plural(of.sessions, "session")));
    }
    let uses = of.uses;
    if uses != crate::model::Evidence::default() {
        words.push(format!(
            "; shown {}, helped {}, harmed {}",
            uses.shown, uses.helped, uses.harmed
        ));
    }
    if let Some(confidence) = of.confidence {
        words.push(format!("; confidence {confidence:.2}"));
    }
    let text = words.join(" ").replace(" ;", ";");
    memctl_redact::redact(text.trim_start_matches("; "))
        .text
        .into_owned()
}

/// Splits a text into lines of words; each word keeps the space behind it.
fn lines_of_words(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| line.split_inclusive(' ').collect())
        .collect()
}

/// Returns for each word of both texts `true` if the other text lacks it there.
pub(crate) fn changed(a: &[&str], b: &[&str]) -> (Vec<bool>, Vec<bool>) {
    let bare = |words: &[&str]| -> Vec<String> {
        let bare = words.iter().map(|word| word.trim_end().to_owned());
        bare.collect()
    };
    let mut of_a = vec![true; a.len()];
    let mut of_b = vec![true; b.len()];
    for same in capture_diff_slices(Algorithm::Patience, &bare(a), &bare(b)) {
        if let similar::DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = same
        {
            of_a[old_index..old_index + len].fill(false);
            of_b[new_index..new_index + len].fill(false);
        }
    }
    (of_a, of_b)
}

/// Piece of text with its meaning.
pub(crate) type Piece = (Style, String);

/// Line of pieces.
pub(crate) type Line = Vec<Piece>;

/// Width of a tab.
const TAB: &str = "    ";

/// Returns stored text for the screen: redacted first, since lines that are joined hide a secret,
/// then without control characters.
pub(crate) fn shown(text: &str) -> String {
    clean(&memctl_redact::redact(text).text).replace('\t', TAB)
}

/// Returns one style's words of a text, each with the space behind it.
pub(crate) fn words(style: Style, text: &str) -> Vec<Piece> {
    let words = text.split_inclusive(' ');
    words.map(|word| (style, word.to_owned())).collect()
}

/// Wraps words to `width` columns, behind `first` on the first line and as many spaces on the
/// others. A word that is wider than a line is cut.
pub(crate) fn wrap(first: Piece, words: &[Piece], width: usize) -> Vec<Line> {
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
    fn only_the_words_that_differ_are_marked() {
        let check = |a: &str, b: &str, expected: (&str, &str)| {
            let (a, b): (Vec<&str>, Vec<&str>) =
                (lines_of_words(a).concat(), lines_of_words(b).concat());
            let (of_a, of_b) = changed(&a, &b);
            let marked = |words: &[&str], changed: &[bool]| -> String {
                let marked = words.iter().zip(changed).filter(|(_, changed)| **changed);
                let marked: Vec<&str> = marked.map(|(word, _)| word.trim_end()).collect();
                marked.join(" ")
            };
            assert_eq!(
                (marked(&a, &of_a).as_str(), marked(&b, &of_b).as_str()),
                expected
            );
        };
        check("npm i x", "pnpm i x", ("npm", "pnpm"));
        check(
            "pip install flask",
            "pip install --user flask",
            ("", "--user"),
        );
        check("a b c d", "x b y d z", ("a c", "x y z"));
        check("", "new", ("", "new"));
        check("same", "same", ("", ""));
        let long = "w ".repeat(600);
        check(&format!("{long}old"), &format!("{long}new"), ("old", "new"));
    }

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
