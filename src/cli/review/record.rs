//! An entry of the queue as a person reads it: the text that is decided about, why it waits, where it
//! comes from, and its evidence.

use crate::cli::output::{Page, Style, plural};
use crate::model;
use crate::review::queue::{Part, Waiting};

/// Maximum number of lines of one text.
const LONGEST: usize = 200;

/// Pairs of texts of which the first is replaced by the second.
const REPLACED: [(&str, &str); 2] = [("failed", "worked"), ("older", "newer")];

/// Parts that are sentences. Any other may be code, and keeps its lines so that it can be copied.
const SENTENCES: [&str; 6] = ["rule", "lesson", "quote", "mistake", "older", "newer"];

/// Adds the record of an entry to a page.
pub(crate) fn record(page: &mut Page, waiting: &Waiting) {
    let of_decision = |part: &&Part| {
        let is_replaced = |(old, new): &(&str, &str)| *old == part.name && has(waiting, new);
        ["rule", "lesson", "memory"].contains(&part.name) && !REPLACED.iter().any(is_replaced)
    };
    let first = waiting.parts.iter().find(of_decision);
    if let Some(part) = first {
        lines(page, part, "", Style::Strong);
    }
    let similar = waiting
        .near
        .as_ref()
        .map(|near| format!("{} ({:.2}): {}", near.id, near.score, near.rule));
    let fields = [
        ("why", waiting.reason.clone()),
        ("careful", waiting.suspicious.clone().unwrap_or_default()),
        ("advice", advice(waiting)),
        ("from", origin(waiting, page)),
        ("seen", evidence(waiting)),
        ("similar", similar.unwrap_or_default()),
    ];
    // Redacted before it is wrapped, so that no secret is cut in two.
    page.fields(
        fields.map(|(label, text)| (label, memctl_redact::redact(&text).text.into_owned())),
    );
    // A rule that a person typed is its own quote.
    let is_said = |part: &Part| first.is_some_and(|first| first.text == part.text);
    for part in waiting.parts.iter().filter(|part| !is_said(part)) {
        let (mark, style) = match part.name {
            name if REPLACED
                .iter()
                .any(|(old, new)| *old == name && has(waiting, new)) =>
            {
                ("- ", Style::Bad)
            }
            name if REPLACED
                .iter()
                .any(|(old, new)| *new == name && has(waiting, old)) =>
            {
                ("+ ", Style::Good)
            }
            "error" => ("  ", Style::Bad),
            "quote" => ("“ ", Style::Strong),
            _ => ("  ", Style::Plain),
        };
        page.dim(part.name);
        lines(page, part, mark, style);
    }
}

fn has(waiting: &Waiting, name: &str) -> bool {
    waiting.text(name).is_some()
}

/// Adds a text behind a mark. The terminal wraps the lines of code.
fn lines(page: &mut Page, part: &Part, mark: &str, style: Style) {
    let text = memctl_redact::redact(&part.text).text;
    for line in text.lines().take(LONGEST) {
        if SENTENCES.contains(&part.name) {
            page.sentence(style, mark, line);
        } else {
            page.styled(&[(style, &[mark, line].concat())]);
        }
    }
    let more = text.lines().count().saturating_sub(LONGEST);
    if more > 0 {
        page.dim(format!("… and {}", plural(more as u64, "more line")));
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

fn origin(waiting: &Waiting, page: &Page) -> String {
    let of = &waiting.origin;
    let age = match page.age(&of.at) {
        age if of.at.is_empty() || age.contains('-') || age == "now" => age,
        age => age + " ago",
    };
    let words = [
        ("skill ", waiting.skill.as_deref().unwrap_or_default()),
        ("project ", &of.project),
        ("session ", &of.session),
        ("tool ", &of.tool),
        ("source ", &of.source),
        ("", &age),
    ];
    let known = words.iter().filter(|(_, text)| !text.is_empty());
    let known: Vec<String> = known.map(|(name, text)| [*name, text].concat()).collect();
    known.join(", ")
}

fn evidence(waiting: &Waiting) -> String {
    let of = &waiting.evidence;
    let mut words = Vec::new();
    match (of.times, of.sessions) {
        (0, 0) => {}
        (times, 0) => words.push(plural(times, "time")),
        (times, sessions) => words.push(format!(
            "{} in {}",
            plural(times, "time"),
            plural(sessions, "session")
        )),
    }
    let uses = of.uses;
    if uses != model::Evidence::default() {
        words.push(format!(
            "shown {}, helped {}, harmed {}",
            uses.shown, uses.helped, uses.harmed
        ));
    }
    if let Some(confidence) = of.confidence {
        words.push(format!("confidence {confidence:.2}"));
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;
    use crate::review::queue::WaitingKind;
    use crate::rules::SimilarRule;

    fn text(
        kind: WaitingKind,
        parts: &[(&'static str, &str)],
        near: Option<SimilarRule>,
    ) -> String {
        let mut one = Waiting::about(kind, Kind::Reflexion, "REFL-003", String::new());
        for (name, text) in parts {
            one.part(name, text);
        }
        one.near = near;
        let mut page = Page::new(80, false, "2026-02-04T00:00:00Z".parse().unwrap());
        record(&mut page, &one);
        page.into_text()
    }

    #[test]
    fn the_text_that_is_decided_about_comes_first_and_no_escape_of_a_record_is_obeyed() {
        let near = SimilarRule {
            id: "REFL-009".to_owned(),
            rule: "Use yarn".to_owned(),
            score: 0.8,
        };
        let parts = [
            ("quote", "no, use pnpm"),
            ("rule", "Use pnpm\u{1b}[2J here"),
        ];
        assert_eq!(
            text(WaitingKind::Candidate, &parts, Some(near)),
            "Use pnpm here\nsimilar:      REFL-009 (0.80): Use yarn\nquote\n“ no, use pnpm\n"
        );
    }

    #[test]
    fn a_long_rule_breaks_between_words_and_is_not_shown_twice() {
        let rule = format!("Use pnpm {}here", "and not npm ".repeat(8));
        let parts = [("rule", rule.as_str()), ("quote", &rule)];
        let shown = text(WaitingKind::Candidate, &parts, None);
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
        assert_eq!(shown.replace('\n', " ").trim(), rule);
    }

    #[test]
    fn what_replaces_stands_below_what_it_replaces() {
        let pair = [("older", "ALWAYS name it."), ("newer", "NEVER name it.")];
        assert_eq!(
            text(WaitingKind::Contradiction, &pair, None),
            "older\n- ALWAYS name it.\nnewer\n+ NEVER name it.\n"
        );
    }

    #[test]
    fn a_text_that_is_cut_says_so_and_shows_no_secret() {
        let secret = format!("gh{}{}", "p_", "a1B2c3D4e5".repeat(4));
        let long = format!("{secret}\n{}", "line\n".repeat(300));
        let shown = text(WaitingKind::Memory, &[("memory", &long)], None);
        assert!(!shown.contains(&secret[6..20]), "{shown}");
        assert!(shown.ends_with("line\n… and 101 more lines\n"), "{shown}");
    }
}
