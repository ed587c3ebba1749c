//! GUARDRAILS.md: mistakes to avoid, one section each.
//!
//! [`append`] adds the section of a correction and leaves all other bytes unchanged. The text of a
//! correction is data: it goes on one line, after a label. So it cannot forge a heading, a rule or
//! the source of another correction.
//!
//! [`join`] merges the sections of two branches. [`rewrite()`] removes or rewords the section of a correction,
//! if it is exactly as it was written. A section that a person has edited or extended is left alone and
//! reported.
//!
//! Deliberately absent: file access. [`super::Skills::guardrail_files`] lists the files.

use crate::model::{highest_after, text};

/// Heading that stays last; new sections go before it.
const MARKER: &str = "## When to Add New Guardrails";

/// Guardrail from a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guardrail<'a> {
    /// Short heading; empty for a default.
    pub title: &'a str,
    /// Correct behaviour; empty for a default.
    pub rule: &'a str,
    /// Correction id, such as `CORR-003`. A file holds at most one guardrail per correction.
    pub correction_id: &'a str,
}

/// Text with the guardrail added; `None` if it has one for this correction already.
///
/// The number is one above the highest `GRD-<n>` in the text. The section goes before the first
/// heading `## When to Add New Guardrails`, or before the `---` line above that, or at the end.
pub fn append(text: &str, guardrail: &Guardrail<'_>) -> Option<String> {
    let id = one_line(guardrail.correction_id, "unknown");
    let source = format!("**Source**: {id}");
    if text.lines().any(|line| line.trim_end() == source) {
        return None;
    }
    let number = highest_number(text).saturating_add(1);
    Some(insert(text, &guardrail.section(number)))
}

impl Guardrail<'_> {
    /// Section from the heading to the source line.
    fn section(&self, number: u64) -> String {
        let id = one_line(self.correction_id, "unknown");
        let title = one_line(self.title, "learned from a correction");
        let rule = one_line(self.rule, "See the correction.");
        format!("## GRD-{number:03}: {title}\n\n**Rule**: {rule}\n{SOURCE}{id}\n")
    }
}

/// Inserts a section that ends with a line break, with a `---` line before it.
fn insert(text: &str, section: &str) -> String {
    let mut block = format!("\n---\n\n{section}");
    let at = if let Some(at) = marker(text) {
        block.push('\n');
        // Dashes directly below text would turn that text into a heading; after a blank line,
        // another one would leave a gap.
        if ends_blank(&text[..at]) {
            block.remove(0);
        }
        at
    } else {
        let open = !text.is_empty() && !text.ends_with('\n');
        block.insert_str(0, if open { "\n" } else { "" });
        text.len()
    };
    if uses_crlf(text) {
        block = block.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    [&text[..at], &block, &text[at..]].concat()
}

/// Merges two texts with a common base, section by section: one that a side has added, reworded or removed is taken
/// from that side; it gets a new number at the end of the other text. Returns `None` if both have changed a section in
/// different ways, or have other changes: these need a manual merge.
pub fn join(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let rest = without_sections(base);
    let (start, other) = if without_sections(theirs) == rest {
        (ours, theirs)
    } else if without_sections(ours) == rest {
        (theirs, ours)
    } else {
        return None;
    };
    let [before, here, there] = [base, start, other].map(bodies);
    for (key, _) in before.iter().chain(&there) {
        let [before, here, there] = [&before, &here, &there].map(|of| find(of, key));
        if here != there && here != before && there != before {
            return None;
        }
    }
    let mut text = String::new();
    let mut from = 0;
    for (section, (key, body)) in sections(start).into_iter().zip(&here) {
        let is_unchanged = find(&before, key) == Some(body);
        if is_unchanged && find(&there, key) != Some(body) {
            let (begin, end) = with_gap(start, from, section.start, section.end);
            text.push_str(&start[from..begin]);
            from = end;
        }
    }
    text.push_str(&start[from..]);
    for (key, body) in &there {
        if find(&before, key) != Some(body) && find(&here, key) != Some(body) {
            let number = highest_number(&text).saturating_add(1);
            text = insert(&text, &format!("## GRD-{number:03}:{body}"));
        }
    }
    Some(text)
}

/// Lines of a text outside of its sections, without blank ones.
fn without_sections(text: &str) -> String {
    let mut rest = String::new();
    let mut from = 0;
    for section in sections(text) {
        rest.push_str(&text[from..section.start]);
        from = section.end;
    }
    rest.push_str(&text[from..]);
    let lines = rest.lines().map(str::trim_end).filter(|l| !l.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Key of a section: its source, and how many sections of that source stand before it.
type Key<'a> = (&'a str, usize);

/// Sections of a text in their order: the text behind the number, with plain line ends.
fn bodies(text: &str) -> Vec<(Key<'_>, String)> {
    let mut found: Vec<(Key<'_>, String)> = Vec::new();
    for section in sections(text) {
        let source = section.source.trim_end();
        let earlier = found.iter().filter(|((other, _), _)| *other == source);
        let key = (source, earlier.count());
        let (_, body) = section.text.split_once(':').unwrap_or(("", section.text));
        found.push((key, body.replace("\r\n", "\n")));
    }
    found
}

fn find<'a>(bodies: &'a [(Key<'_>, String)], key: &Key<'_>) -> Option<&'a String> {
    let found = bodies.iter().find(|(other, _)| other == key);
    found.map(|(_, body)| body)
}

/// Section added from a correction.
struct Section<'a> {
    /// Position of the `---` line before it.
    start: usize,
    end: usize,
    /// Text from the heading to the source line.
    text: &'a str,
    source: &'a str,
}

const SOURCE: &str = "**Source**: ";

fn sections(text: &str) -> Vec<Section<'_>> {
    let mut found = Vec::new();
    let (mut rule, mut heading) = (None, None);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        let end = at + line.len();
        if content == "---" {
            rule = Some(at);
            heading = None;
        } else if content.starts_with("## GRD-") {
            heading = Some(at);
        } else if content.starts_with("## ") {
            (rule, heading) = (None, None);
        } else if let (Some(start), Some(from), Some(source)) =
            (rule, heading, content.strip_prefix(SOURCE))
        {
            found.push(Section {
                start,
                end,
                text: &text[from..end],
                source,
            });
            (rule, heading) = (None, None);
        }
        at = end;
    }
    found
}

/// Position of the closing section: its heading, or the `---` line before it.
fn marker(text: &str) -> Option<usize> {
    let mut at = 0;
    // Position of a `---` line followed only by blank lines so far.
    let mut rule = None;
    let mut after_blank = true;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        if content == MARKER {
            return Some(rule.unwrap_or(at));
        }
        if content == "---" && after_blank {
            rule = Some(at);
        } else if !content.is_empty() {
            rule = None;
        }
        after_blank = content.is_empty();
        at += line.len();
    }
    None
}

fn ends_blank(text: &str) -> bool {
    text.lines()
        .last()
        .is_none_or(|line| line.trim().is_empty())
}

fn uses_crlf(text: &str) -> bool {
    text.find('\n').is_some_and(|at| text[..at].ends_with('\r'))
}

/// Highest `GRD-<n>` anywhere in the text; a number that is still mentioned is not reused.
fn highest_number(text: &str) -> u64 {
    highest_after(text.as_bytes(), "GRD-")
}

/// Highest number of a correction whose section is in the text.
pub fn highest_source(text: &str) -> u64 {
    highest_after(text.as_bytes(), "**Source**: CORR-")
}

/// Words of a text on one line, or `or_else` if there are none.
fn one_line(text: &str, or_else: &str) -> String {
    let words = text::one_line(&text.replace(char::is_control, " "));
    if words.is_empty() {
        or_else.to_owned()
    } else {
        words
    }
}

/// Text after a removal or a rewording.
#[derive(Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// New text; `None` if nothing changed.
    pub text: Option<String>,
    /// `true` if an edited section of the correction stays.
    pub is_left: bool,
}

/// Removes the sections that `old` has in the text, or replaces them by `new` under their number.
pub fn rewrite(text: &str, old: &Guardrail<'_>, new: Option<&Guardrail<'_>>) -> Rewritten {
    let source = one_line(old.correction_id, "unknown");
    let line_end = if uses_crlf(text) { "\r\n" } else { "\n" };
    let mut out = String::with_capacity(text.len());
    let (mut from, mut found) = (0, 0);
    for section in sections(text) {
        if section.source.trim_end() != source || !is_closed(&text[section.end..]) {
            continue;
        }
        let Some(number) = number(section.text) else {
            continue;
        };
        let written = |guardrail: &Guardrail<'_>| {
            let section = format!("---\n\n{}", guardrail.section(number));
            section.replace('\n', line_end)
        };
        if text[section.start..section.end] != written(old) {
            continue;
        }
        found += 1;
        let (start, end) = match new {
            Some(_) => (section.start, section.end),
            None => with_gap(text, from, section.start, section.end),
        };
        out.push_str(&text[from..start]);
        out.extend(new.map(written));
        from = end;
    }
    out.push_str(&text[from..]);
    let is_new = out != text;
    let holds = |line: &&str| line.strip_prefix(SOURCE).map(str::trim_end) == Some(&source);
    // Rules without a correction share their source line.
    let is_left = !old.correction_id.is_empty() && text.lines().filter(holds).count() > found;
    Rewritten {
        text: is_new.then_some(out),
        is_left,
    }
}

/// Returns `true` if nothing was added below the source line: the next text is a line `---`, a
/// heading, or the end.
fn is_closed(rest: &str) -> bool {
    let next = rest.lines().map(str::trim_end).find(|l| !l.is_empty());
    next.is_none_or(|line| line == "---" || line.starts_with("# ") || line.starts_with("## "))
}

/// Number in the heading of a section, as written by this program.
fn number(section: &str) -> Option<u64> {
    let (number, _) = section.strip_prefix("## GRD-")?.split_once(':')?;
    number.parse().ok()
}

/// Range of a section with the blank line that came with it: the one below, or at the end of the
/// text the one above.
fn with_gap(text: &str, from: usize, start: usize, end: usize) -> (usize, usize) {
    let rest = &text[end..];
    for blank in ["\r\n", "\n"] {
        if rest.starts_with(blank) {
            return (start, end + blank.len());
        }
    }
    for blank in ["\r\n", "\n"] {
        let above = text[from..start].strip_suffix(blank);
        if rest.is_empty() && above.is_some_and(|above| above.is_empty() || above.ends_with(blank))
        {
            return (start - blank.len(), end);
        }
    }
    (start, end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GUARDRAIL: Guardrail<'static> = Guardrail {
        title: "System design is scored on its own",
        rule: "Score below 60.",
        correction_id: "CORR-003",
    };

    fn section(number: &str) -> String {
        format!(
            "\n---\n\n## GRD-{number}: System design is scored on its own\n\n\
             **Rule**: Score below 60.\n**Source**: CORR-003\n"
        )
    }

    #[test]
    fn a_guardrail_goes_before_the_closing_section_or_to_the_end() {
        let check = |before: &str, after: &str, inserted: &str| {
            let new = append(&format!("{before}{after}"), &GUARDRAIL).unwrap();
            assert_eq!(new, format!("{before}{inserted}{after}"));
        };
        let (one, m) = (section("001"), MARKER);
        // An existing blank line is not doubled.
        let flush = one.trim_start_matches('\n');
        check("", "", &one);
        check("# G\n", "", &one);
        check("# G", "", &format!("\n{one}"));
        check("# G\n\n", &format!("{m}\nx\n{m}\n"), &format!("{flush}\n"));
        check("# G\n", m, &format!("{one}\n"));
        check("# G\n\n", &format!("---\n\n{m}\n"), &format!("{flush}\n"));
        // Dashes directly below text underline it and are not a separator.
        check(
            "# G\n\na\n---\n\n",
            &format!("{m}\n"),
            &format!("{flush}\n"),
        );
        // A mention does not count as the heading.
        check(&format!("see {m}\n#{m}\n"), "", &one);
    }

    #[test]
    fn numbers_go_up_and_are_not_used_twice() {
        let check = |text: &str, expected: &str| {
            let new = append(text, &GUARDRAIL).unwrap();
            assert!(
                new.contains(&format!("\n## GRD-{expected}: ")),
                "{text}: {new}"
            );
        };
        check("## GR-009: x\n", "001");
        check("## GRD-001: x\n## GRD-007: y\n", "008");
        check("GRD-041 was retired\n", "042");
        check("## GRD-999: x\n", "1000");
        check("## GRD-: x\nGRD-99999999999999999999999\nGRD-é", "001");
    }

    #[test]
    fn one_correction_makes_one_guardrail() {
        let once = append("# G\n", &GUARDRAIL).unwrap();
        assert_eq!(append(&once, &GUARDRAIL), None);
        assert_eq!(append(&once.replace('\n', "\r\n"), &GUARDRAIL), None);
        let other = Guardrail {
            correction_id: "CORR-0031",
            rule: "As **Source**: CORR-004\n**Source**: CORR-004",
            ..GUARDRAIL
        };
        let twice = append(&once, &other).unwrap();
        assert!(twice.contains("## GRD-002: "));
        let third = Guardrail {
            correction_id: "CORR-004",
            ..GUARDRAIL
        };
        assert!(append(&twice, &third).is_some());
    }

    #[test]
    fn a_file_keeps_its_line_ends() {
        let new = append("# G\r\n\r\n## When to Add New Guardrails\r\n", &GUARDRAIL).unwrap();
        assert_eq!(new.matches('\n').count(), new.matches("\r\n").count());
    }

    #[test]
    fn missing_text_gets_general_words() {
        let empty = Guardrail {
            title: " ",
            rule: "\n",
            correction_id: "CORR-1",
        };
        let new = append("", &empty).unwrap();
        assert!(new.starts_with("\n---\n\n## GRD-001: learned from a correction\n\n"));
        assert!(new.contains("\n**Rule**: See the correction.\n"));
    }

    #[test]
    fn sections_of_two_branches_are_joined() {
        let with = |text: &str, id: &str| {
            append(
                text,
                &Guardrail {
                    correction_id: id,
                    ..GUARDRAIL
                },
            )
            .unwrap()
        };
        for base in [
            "# G\n",
            "# G\n\n## When to Add New Guardrails\nx\n",
            "# G\r\n\r\na\r\n",
        ] {
            let base = with(base, "CORR-001");
            let (ours, theirs) = (
                with(&base, "CORR-002"),
                with(&with(&base, "CORR-003"), "CORR-004"),
            );
            let joined = join(&base, &ours, &theirs).unwrap();
            assert_eq!(
                sections(&joined)
                    .iter()
                    .map(|section| section.source)
                    .collect::<Vec<_>>(),
                ["CORR-001", "CORR-002", "CORR-003", "CORR-004"]
            );
            for number in 1..=4 {
                assert_eq!(
                    joined.matches(&format!("## GRD-00{number}: ")).count(),
                    1,
                    "{joined}"
                );
            }
            assert_eq!(joined.matches("---").count(), 4, "{joined}");
            assert_eq!(join(&base, &joined, &theirs).unwrap(), joined);
            assert_eq!(join(&base, &ours, &base).unwrap(), ours);
            // Other changes on one side are merged, on both sides they are not.
            let edited = ours.replace("# G", "# Guardrails");
            assert!(
                join(&base, &edited, &theirs)
                    .unwrap()
                    .starts_with("# Guardrails")
            );
            assert!(
                join(&base, &theirs, &edited)
                    .unwrap()
                    .starts_with("# Guardrails")
            );
            assert_eq!(join(&base, &edited, &theirs.replace("# G", "# H")), None);
        }
    }

    #[test]
    fn a_section_that_one_branch_has_reworded_or_removed_meets_those_of_the_other() {
        let with = |text: &str, id: &str| {
            let added = Guardrail {
                correction_id: id,
                ..GUARDRAIL
            };
            append(text, &added).unwrap()
        };
        let base = with(&with("# G\n", "CORR-001"), "CORR-003");
        // On their branch, a section was merged before ours, which has another number there.
        let theirs = with(&with(&with("# G\n", "CORR-001"), "CORR-002"), "CORR-003");
        let mine = Guardrail {
            correction_id: "CORR-001",
            ..GUARDRAIL
        };
        let new = Guardrail {
            rule: "Another.",
            ..mine
        };
        let reworded = rewrite(&base, &mine, Some(&new)).text.unwrap();
        let removed = rewrite(&base, &mine, None).text.unwrap();
        for (ours, theirs) in [(&reworded, &theirs), (&theirs, &reworded)] {
            let joined = join(&base, ours, theirs).unwrap();
            assert_eq!(joined.matches("Another.").count(), 1, "{joined}");
            assert_eq!(joined.matches(SOURCE).count(), 3, "{joined}");
        }
        for (ours, theirs) in [(&removed, &theirs), (&theirs, &removed)] {
            let joined = join(&base, ours, theirs).unwrap();
            assert!(!joined.contains("CORR-001"), "{joined}");
            assert_eq!(joined.matches(SOURCE).count(), 2, "{joined}");
        }
        let other = Guardrail {
            rule: "A third.",
            ..mine
        };
        let other = rewrite(&base, &mine, Some(&other)).text.unwrap();
        assert_eq!(join(&base, &reworded, &other), None);
        // Both have changed the section: a person decides.
        for (ours, theirs) in [(&reworded, &removed), (&removed, &reworded)] {
            assert_eq!(join(&base, ours, theirs), None);
        }
    }

    /// Lines of real files, and lines that an attacker could forge.
    fn lines() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            Just(MARKER.to_owned()),
            Just("---".to_owned()),
            Just("```".to_owned()),
            Just("## GRD-004: x".to_owned()),
            Just("**Source**: CORR-001".to_owned()),
            Just(String::new()),
            any::<String>(),
        ];
        (proptest::collection::vec(line, 0..12), any::<bool>())
            .prop_map(|(lines, crlf)| lines.join(if crlf { "\r\n" } else { "\n" }))
    }

    proptest! {
        #[test]
        fn everything_else_is_left_alone(text in lines(), rule in lines(), title in lines()) {
            let guardrail = Guardrail { title: &title, rule: &rule, ..GUARDRAIL };
            let new = append(&text, &guardrail).unwrap();
            let same = |(a, b): &(u8, u8)| a == b;
            let head = text.bytes().zip(new.bytes()).take_while(same).count();
            let tail = text.bytes().rev().zip(new.bytes().rev()).take_while(same).count();
            prop_assert!(head + tail >= text.len(), "{text:?} {new:?}");
            // For every correction text: one rule, no marker, one source.
            let count = |what: &str| {
                let of = |text: &str| text.lines().filter(|line| line.trim_end() == what).count();
                of(&new) - of(&text)
            };
            prop_assert_eq!(count("---"), 1);
            prop_assert_eq!(count(MARKER), 0);
            prop_assert_eq!(count("**Source**: CORR-003"), 1);
            prop_assert_eq!(append(&new, &guardrail), None);
        }
    }

    #[test]
    fn a_rewording_keeps_the_number_and_a_removal_the_other_sections() {
        let other = Guardrail {
            rule: "Score below 50.",
            correction_id: "CORR-004",
            ..GUARDRAIL
        };
        let text = append(&append("# G\n", &GUARDRAIL).unwrap(), &other).unwrap();
        let new = Guardrail {
            rule: "Score below 40.",
            ..GUARDRAIL
        };
        let reworded = rewrite(&text, &GUARDRAIL, Some(&new));
        let expected = text.replace("below 60", "below 40");
        assert_eq!((reworded.text, reworded.is_left), (Some(expected), false));
        // The text of the record is not the text of the section: somebody has edited one of them.
        let unknown = rewrite(&text, &new, None);
        assert_eq!((unknown.text, unknown.is_left), (None, true));
        let rest = rewrite(&text, &other, None);
        assert_eq!(rest.text, append("# G\n", &GUARDRAIL));
    }

    proptest! {
        #[test]
        fn a_removal_reverts_an_addition(
            lines in prop::collection::vec(prop::sample::select(vec![
                "# G", "a", "", "---", "```", MARKER, "## GRD-007: b", "**Source**: CORR-001",
            ]), 0..9),
            crlf in any::<bool>(),
        ) {
            let end = if crlf { "\r\n" } else { "\n" };
            let text: String = lines.iter().flat_map(|line| [*line, end]).collect();
            let added = append(&text, &GUARDRAIL).unwrap();
            let removed = rewrite(&added, &GUARDRAIL, None);
            // Text that follows without a heading counts as added below the section.
            if let Some(rest) = removed.text {
                let words = |text: &str| -> Vec<String> {
                    let lines = text.lines().map(|line| line.trim_end().to_owned());
                    lines.filter(|line| !line.is_empty()).collect()
                };
                prop_assert_eq!(words(&rest), words(&text));
                prop_assert!(rest.len() <= text.len() + end.len());
            } else {
                prop_assert!(removed.is_left);
            }
        }
    }
}
