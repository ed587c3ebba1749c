//! Record of an entry as lines: its texts, why it waits, where it comes from, and its evidence.

use chrono::{DateTime, Utc};

use crate::cli::output::{Style, plural, when};
use crate::review::queue::{Part, Waiting};

use super::difference;
use super::text::{Line, Piece, shown, words, wrap};

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
pub(super) fn record(waiting: &Waiting, now: DateTime<Utc>, width: usize) -> Vec<Line> {
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
    let of_lines = texts.each_ref().map(|text| difference::words(text));
    let (a, b) = difference::changed(&of_lines[0].concat(), &of_lines[1].concat());
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
