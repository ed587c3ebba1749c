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

use crate::model::highest_after;

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

/// Merges two texts with a common base, section by section: a section that one side has added,
/// reworded or removed is taken from that side, even under another number. New sections get new numbers.
/// As with records, a removal wins over a new wording, unless a person has added lines to the section.
/// Returns `None` if both sides have reworded one section, or have other changes: these need a manual
/// merge.
pub fn join(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let [rest, of_ours, of_theirs] = [base, ours, theirs].map(without_sections);
    let (start, other) = if of_theirs == rest {
        (ours, theirs)
    } else if of_ours == rest {
        (theirs, ours)
    } else {
        return None;
    };
    let before = bodies(base);
    let (here, there) = (bodies(start), bodies(other));
    let mut text = String::new();
    let mut from = 0;
    for (section, (key, body)) in sections(start).into_iter().zip(&here) {
        let (before, there) = (find(&before, key), find(&there, key));
        if there == Some(body) || before == there {
            continue;
        }
        let is_reworded = before.is_some_and(|before| before != body);
        if is_reworded && (there.is_some() || !is_plain(body)) {
            return None;
        }
        let (begin, end) = match there {
            None => with_gap(start, from, section.start, section.end),
            Some(_) if before.is_none() => return None,
            Some(_) => {
                let heading = section.end - section.text.len();
                let colon = section.text.find(':').unwrap_or_default();
                (heading + colon + 1, section.end)
            }
        };
        text.push_str(&start[from..begin]);
        if let Some(body) = there {
            let line_end = if uses_crlf(start) { "\r\n" } else { "\n" };
            text.push_str(&body.replace('\n', line_end));
        }
        from = end;
    }
    text.push_str(&start[from..]);
    for (key, body) in &there {
        let before = find(&before, key);
        if find(&here, key).is_some() || before == Some(body) {
            continue;
        }
        if before.is_some() {
            if is_plain(body) {
                continue;
            }
            return None;
        }
        let number = highest_number(&text).saturating_add(1);
        text = insert(&text, &format!("## GRD-{number:03}:{body}"));
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

/// Returns `true` for the text of a section in the form that this program writes: a heading, a rule, and its source.
fn is_plain(body: &str) -> bool {
    body.lines().filter(|line| !line.is_empty()).count() == 3
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
    let mut fence: Option<&str> = None;
    let mut at = 0;
    // Position of a `---` line followed only by blank lines so far.
    let mut rule = None;
    let mut after_blank = true;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| content.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) if content == MARKER => return Some(rule.unwrap_or(at)),
            _ => {}
        }
        if content == "---" && after_blank && fence.is_none() {
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
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    if words.is_empty() {
        or_else.to_owned()
    } else {
        words.join(" ")
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
mod tests;
